// SPDX-License-Identifier: MIT
// Slabs: one aligned block of memory a batch, counted, from a pool.
//
// Ownership: the pool owns free slabs; the batch owns the slab while it is filled (one
// reference); every exported array holds one more. The last unref, on any thread and
// without Python, hands the memory back: to the pool, or to the allocator if the pool is
// closed or full. The pool is counted apart from the engine, since arrays outlive both.
// In a forked child an unref only decrements: the pool's lock may have been held at the
// fork.
#ifndef FL_BATCH_SLAB_H
#define FL_BATCH_SLAB_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FL_SLAB_ALIGNMENT = 4096 };

// Where the memory of slabs comes from. `is_plain`: `allocate` may be called on engine
// threads (heap, mmap); else only on the consumer's thread inside next().
typedef struct fl_allocator {
    const char *name;
    bool is_plain;
    bool is_reusable; // false: memory goes back to its source after each use, never to
                      // the pool
    // Writes the block's address and, if it needs one, a handle.
    fl_status (*allocate)(void *context, size_t size, void **memory, void **handle,
                          fl_error *error);
    // Any thread, no lock held, no Python.
    void (*give)(void *context, void *memory, size_t size, void *handle);
    // Called when the last slab and the pool itself are gone. May be NULL.
    void (*destroy)(void *context);
    void *context;
} fl_allocator;

// Anonymous memory; huge pages are asked for where a block fills them.
fl_allocator fl_allocator_heap(void);

typedef struct fl_slab_pool fl_slab_pool;

typedef struct fl_slab {
    uint8_t *memory;
    size_t size;
    void *handle; // the allocator's
    // Private to slab.c from here on.
    _Atomic int64_t references;
    fl_slab_pool *pool; // a counted reference
    struct fl_slab *next;
} fl_slab;

// `max_free`: more free slabs than this go back to the allocator, oldest first. Takes the
// allocator on success.
FL_MUST_CHECK fl_status fl_slab_pool_create(fl_allocator allocator, int32_t max_free,
                                            fl_slab_pool **out, fl_error *error);
fl_slab_pool *fl_slab_pool_ref(fl_slab_pool *pool);
// The last unref, once all slabs are home, frees the pool.
void fl_slab_pool_unref(fl_slab_pool **pool);
// From now on slabs that come home are freed; free ones are freed now. Idempotent.
void fl_slab_pool_close(fl_slab_pool *pool);
bool fl_slab_pool_is_plain(const fl_slab_pool *pool);

// A slab of at least `size` bytes with one reference: a free one that fits (not more than
// twice as large), else a new one.
FL_MUST_CHECK fl_status fl_slab_pool_take(fl_slab_pool *pool, size_t size, fl_slab **out,
                                          fl_error *error);
fl_slab *fl_slab_ref(fl_slab *slab);
void fl_slab_unref(fl_slab **slab); // clears the caller's pointer; NULL is fine

typedef struct fl_slab_pool_usage {
    int64_t free_slabs, free_bytes; // in the pool
    int64_t out_slabs, out_bytes;   // in batches and with the user
    int64_t made;                   // taken from the allocator since the start
} fl_slab_pool_usage;
fl_slab_pool_usage fl_slab_pool_read_usage(fl_slab_pool *pool);

#endif
