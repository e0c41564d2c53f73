// SPDX-License-Identifier: MIT
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

#ifdef FL_TESTING
#include "base/sync.h"
#include <assert.h>
#include <stdatomic.h>

static _Atomic int64_t live_blocks;
static _Atomic int64_t fail_countdown = -1;
static _Atomic uint32_t fail_chance;
static _Atomic uint64_t fail_state;

void fl_memory_fail_at(int64_t n)
{
    atomic_store(&fail_countdown, n);
}

int64_t fl_memory_fail_pending(void)
{
    return atomic_load(&fail_countdown);
}

void fl_memory_fail_randomly(uint32_t chance, uint64_t seed)
{
    atomic_store(&fail_state, seed);
    atomic_store(&fail_chance, chance);
}

int64_t fl_memory_live(void)
{
    return atomic_load(&live_blocks);
}

// splitmix64 of a running counter: threads share the stream, each draw is used once.
static bool fails_randomly(void)
{
    uint32_t chance = atomic_load(&fail_chance);
    if (chance == 0)
        return false;
    uint64_t z = atomic_fetch_add(&fail_state, 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return ((z ^ (z >> 31)) & 0xFFFF) < chance;
}

static bool must_fail(void)
{
    assert(fl_locks_held() == 0 && "allocation under a lock");
    if (fails_randomly())
        return true;
    if (atomic_load(&fail_countdown) < 0)
        return false;
    return atomic_fetch_sub(&fail_countdown, 1) == 0;
}

static void *count(void *block)
{
    if (block)
        atomic_fetch_add(&live_blocks, 1);
    return block;
}

static void uncount(void)
{
    assert(fl_locks_held() == 0 && "release of memory under a lock");
    atomic_fetch_sub(&live_blocks, 1);
}
#else
static bool must_fail(void)
{
    return false;
}

static void *count(void *block)
{
    return block;
}

static void uncount(void)
{
}
#endif

void *fl_alloc(size_t size)
{
    return must_fail() ? NULL : count(malloc(size ? size : 1));
}

void *fl_alloc_zeroed(size_t size)
{
    return must_fail() ? NULL : count(calloc(1, size ? size : 1));
}

void *fl_alloc_array(size_t count, size_t size)
{
    size_t total;
    return fl_size_multiply(count, size, &total) ? fl_alloc_zeroed(total) : NULL;
}

void *fl_alloc_aligned(size_t alignment, size_t size)
{
    if (must_fail())
        return NULL;
    void *block = NULL;
    if (posix_memalign(&block, alignment, size ? size : 1) != 0)
        return NULL;
    return count(block);
}

void *fl_realloc(void *block, size_t size)
{
    if (!block)
        return fl_alloc(size);
    return must_fail() ? NULL : realloc(block, size ? size : 1);
}

void fl_free(void *block)
{
    if (!block)
        return;
    uncount();
    free(block);
}

bool fl_size_add(size_t a, size_t b, size_t *out)
{
    size_t sum;
    if (__builtin_add_overflow(a, b, &sum))
        return false;
    *out = sum;
    return true;
}

bool fl_size_multiply(size_t a, size_t b, size_t *out)
{
    size_t product;
    if (__builtin_mul_overflow(a, b, &product))
        return false;
    *out = product;
    return true;
}

size_t fl_size_align(size_t size, size_t alignment)
{
    return (size + alignment - 1) & ~(alignment - 1);
}
