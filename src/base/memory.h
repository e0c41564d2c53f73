// SPDX-License-Identifier: MIT
// The only place that calls malloc. All functions: any thread. A failed allocation
// returns NULL and changes nothing; sizes that come from input go through the checked
// arithmetic first.
#ifndef FL_BASE_MEMORY_H
#define FL_BASE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Zero bytes give a valid, unique pointer. The caller owns what it receives: fl_free.
void *fl_alloc(size_t size) __attribute__((malloc));
void *fl_alloc_zeroed(size_t size) __attribute__((malloc));
void *fl_alloc_array(size_t count, size_t size)
    __attribute__((malloc)); // checked, zeroed
void *fl_alloc_aligned(size_t alignment, size_t size) __attribute__((malloc));
// NULL on failure: the old block stays valid and stays the caller's.
void *fl_realloc(void *block, size_t size);
void fl_free(void *block);

// False on overflow; `out` is then untouched.
bool fl_size_add(size_t a, size_t b, size_t *out);
bool fl_size_multiply(size_t a, size_t b, size_t *out);
// `alignment` is a power of two; the caller has checked that it cannot overflow.
size_t fl_size_align(size_t size, size_t alignment);

#ifdef FL_TESTING
// Test builds: the n-th allocation from now fails (0 = the next one); negative: none
// does.
void fl_memory_fail_at(int64_t n);
// What is left of that count; negative once it has failed, or if none was asked for.
int64_t fl_memory_fail_pending(void);
// From now each allocation fails with this chance in 2^16, by a seeded generator; 0 =
// off.
void fl_memory_fail_randomly(uint32_t chance, uint64_t seed);
// Blocks that are allocated now.
int64_t fl_memory_live(void);
#endif

#endif
