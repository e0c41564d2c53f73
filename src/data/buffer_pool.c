// SPDX-License-Identifier: MIT
// Free buffers lie in lists by size class, four classes to a power of two, so at most a
// quarter of a buffer is waste and a take is a few steps. The pool's count: one for each
// holder and one for each buffer that is out; free buffers have none.
#include "data/buffer_pool.h"

#include "base/memory.h"
#include "base/sync.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

enum {
    CLASS_STEPS = 4,     // classes to a power of two
    SMALLEST_SHIFT = 12, // class 0 holds up to 4 KiB
    LARGEST_SHIFT = 40,  // beyond: not pooled
    CLASS_COUNT = (LARGEST_SHIFT - SMALLEST_SHIFT) * CLASS_STEPS + 1,
    CLASSES_TO_SEARCH = 4, // a buffer of up to twice the size serves too
};

struct fl_buffer_pool {
    _Atomic int64_t references;
    size_t max_free_bytes; // immutable
    fl_mutex lock;
    size_t free_bytes FL_GUARDED_BY(lock);
    int next_victim FL_GUARDED_BY(lock); // the class that gives way first
    // A free buffer's `owner` is the next one in its list.
    fl_buffer *free[CLASS_COUNT] FL_GUARDED_BY(lock);
};

// Capacity of a class: 4 KiB, 5, 6, 7, 8, 10, 12, 14, 16, ...
static size_t class_capacity(int class)
{
    int shift = SMALLEST_SHIFT + class / CLASS_STEPS;
    return ((size_t)1 << shift) +
           (size_t)(class % CLASS_STEPS) * ((size_t)1 << shift) / CLASS_STEPS;
}

// The smallest class that holds `capacity`, or CLASS_COUNT.
static int class_of(size_t capacity)
{
    if (capacity <= class_capacity(0))
        return 0;
    if (capacity > class_capacity(CLASS_COUNT - 1))
        return CLASS_COUNT;
    // 2^shift < capacity <= 2^(shift + 1)
    int shift = 63 - __builtin_clzll((unsigned long long)capacity - 1);
    size_t step = ((size_t)1 << shift) / CLASS_STEPS;
    size_t steps = (capacity - ((size_t)1 << shift) + step - 1) / step;
    return (shift - SMALLEST_SHIFT) * CLASS_STEPS + (int)steps;
}

fl_status fl_buffer_pool_create(size_t max_free_bytes, fl_buffer_pool **out,
                                fl_error *error)
{
    fl_buffer_pool *pool = fl_alloc_zeroed(sizeof(*pool));
    if (!pool)
        return fl_error_no_memory(error);
    pool->max_free_bytes = max_free_bytes;
    fl_mutex_init(&pool->lock, FL_LOCK_POOL);
    atomic_init(&pool->references, 1);
    *out = pool;
    return FL_OK;
}

fl_buffer_pool *fl_buffer_pool_ref(fl_buffer_pool *pool)
{
    // Relaxed: the caller's own reference keeps the pool alive.
    atomic_fetch_add_explicit(&pool->references, 1, memory_order_relaxed);
    return pool;
}

static void free_list(fl_buffer *buffer)
{
    while (buffer) {
        fl_buffer *next = buffer->owner;
        fl_free(buffer);
        buffer = next;
    }
}

void fl_buffer_pool_unref(fl_buffer_pool **pool)
{
    fl_buffer_pool *gone = *pool;
    *pool = NULL;
    if (!gone)
        return;
    // As fl_buffer_unref: the last one sees what the others did.
    if (atomic_fetch_sub_explicit(&gone->references, 1, memory_order_acq_rel) > 1)
        return;
    for (int class = 0; class < CLASS_COUNT; class ++)
        free_list(gone->free[class]);
    fl_mutex_deinit(&gone->lock);
    fl_free(gone);
}

static void push_locked(fl_buffer_pool *pool, int class, fl_buffer *buffer)
    FL_REQUIRES(pool->lock)
{
    buffer->owner = pool->free[class];
    pool->free[class] = buffer;
    pool->free_bytes += buffer->capacity;
}

static fl_buffer *pop_locked(fl_buffer_pool *pool, int class) FL_REQUIRES(pool->lock)
{
    fl_buffer *buffer = pool->free[class];
    if (!buffer)
        return NULL;
    pool->free[class] = buffer->owner;
    pool->free_bytes -= buffer->capacity;
    return buffer;
}

// Takes buffers out until `capacity` more bytes may lie free, classes in turn: sizes that
// nobody asks for any more do not fill the pool for good.
static fl_buffer *evict_locked(fl_buffer_pool *pool, size_t capacity)
    FL_REQUIRES(pool->lock)
{
    fl_buffer *victims = NULL;
    while (pool->free_bytes > pool->max_free_bytes - capacity) {
        fl_buffer *victim = pop_locked(pool, pool->next_victim);
        pool->next_victim = (pool->next_victim + 1) % CLASS_COUNT;
        if (!victim)
            continue;
        victim->owner = victims;
        victims = victim;
    }
    return victims;
}

// The last reference to a pooled buffer went.
static void release_to_pool(fl_buffer *buffer)
{
    fl_buffer_pool *pool = buffer->owner;
    fl_buffer *unwanted = buffer;
    if (buffer->capacity <= pool->max_free_bytes) {
        fl_mutex_lock(&pool->lock);
        unwanted = evict_locked(pool, buffer->capacity);
        push_locked(pool, class_of(buffer->capacity), buffer);
        fl_mutex_unlock(&pool->lock);
    } else {
        buffer->owner = NULL;
    }
    free_list(unwanted);
    fl_buffer_pool_unref(&pool);
}

static fl_buffer *find_free(fl_buffer_pool *pool, int class)
{
    fl_buffer *buffer = NULL;
    fl_mutex_lock(&pool->lock);
    for (int i = class; i < CLASS_COUNT && i <= class + CLASSES_TO_SEARCH && !buffer; i++)
        buffer = pop_locked(pool, i);
    fl_mutex_unlock(&pool->lock);
    return buffer;
}

fl_status fl_buffer_pool_take(fl_buffer_pool *pool, size_t capacity, fl_buffer **out,
                              fl_error *error)
{
    int class = class_of(capacity);
    if (class == CLASS_COUNT) // no machine has it; and it would fit no list
        return fl_error_no_memory(error);
    fl_buffer *buffer = find_free(pool, class);
    if (!buffer) {
        fl_status status = fl_buffer_create(class_capacity(class), &buffer, error);
        if (status != FL_OK)
            return status;
        buffer->release = release_to_pool;
    }
    buffer->size = 0;
    buffer->owner = fl_buffer_pool_ref(pool);
    atomic_store_explicit(&buffer->references, 1, memory_order_relaxed);
    *out = buffer;
    return FL_OK;
}
