// SPDX-License-Identifier: MIT
// The pool has one lock, for its list of free slabs and the figures; blocks are made and
// given back outside it. Two counts keep the pool alive: `owners` are those who may still
// take (the last one closes the pool); `references` are the owners together and each slab
// that is out (the last one frees the pool).
#include "batch/slab.h"

#include "base/memory.h"
#include "base/sync.h"

#include <assert.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { HUGE_PAGE = 2 << 20 };

#ifdef FL_TESTING
enum { POISON = 0xDB };
#endif

struct fl_slab_pool {
    // Immutable.
    fl_allocator allocator;
    int32_t max_free;
    pid_t process; // that made the pool; elsewhere the lock is never touched

    _Atomic int64_t owners;
    _Atomic int64_t references;

    fl_mutex lock;
    fl_slab *free FL_GUARDED_BY(lock); // the newest first
    bool is_closed FL_GUARDED_BY(lock);
    fl_slab_pool_usage usage FL_GUARDED_BY(lock);
};

// Straight from the system: what is given back is really gone.
static void *map(size_t size)
{
    void *block =
        mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return block == MAP_FAILED ? NULL : block;
}

// A block that begins with a huge page: map more than needed, give the ends back.
static void *map_huge(size_t size)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t whole = fl_size_align(size, page);
    uint8_t *base = map(whole + HUGE_PAGE);
    if (!base)
        return NULL;
    size_t head = (size_t)(-(uintptr_t)base & (HUGE_PAGE - 1));
    if (head > 0)
        munmap(base, head);
    munmap(base + head + whole, HUGE_PAGE - head);
    madvise(base + head, whole, MADV_HUGEPAGE); // a wish: small pages work as well
    return base + head;
}

static fl_status heap_allocate(void *context, size_t size, void **memory, void **handle,
                               fl_error *error)
{
    (void)context;
    void *block = NULL;
    if (size < HUGE_PAGE)
        block = map(size);
    else if (size < SIZE_MAX / 2) // else it cannot be, and must not overflow
        block = map_huge(size);
    if (!block) {
        return fl_error_set(error, FL_ERROR_NO_MEMORY,
                            "out of memory: no block of %zu bytes for a batch; make "
                            "batch_size or the pictures smaller",
                            size);
    }
    *memory = block;
    *handle = NULL;
    return FL_OK;
}

static void heap_give(void *context, void *memory, size_t size, void *handle)
{
    (void)context;
    (void)handle;
    munmap(memory, size);
}

fl_allocator fl_allocator_heap(void)
{
    return (fl_allocator){.name = "heap",
                          .is_plain = true,
                          .is_reusable = true,
                          .allocate = heap_allocate,
                          .give = heap_give};
}

static void give_back(fl_slab_pool *pool, fl_slab *slab)
{
    pool->allocator.give(pool->allocator.context, slab->memory, slab->size, slab->handle);
    fl_free(slab);
}

static void give_back_list(fl_slab_pool *pool, fl_slab *list)
{
    while (list) {
        fl_slab *next = list->next;
        give_back(pool, list);
        list = next;
    }
}

static bool is_foreign(const fl_slab_pool *pool)
{
    return getpid() != pool->process;
}

fl_status fl_slab_pool_create(fl_allocator allocator, int32_t max_free,
                              fl_slab_pool **out, fl_error *error)
{
    assert(max_free >= 0);
    fl_slab_pool *pool = fl_alloc_zeroed(sizeof(*pool));
    if (!pool)
        return fl_error_no_memory(error);
    pool->allocator = allocator;
    pool->max_free = max_free;
    pool->process = getpid();
    atomic_init(&pool->owners, 1);
    atomic_init(&pool->references, 1);
    fl_mutex_init(&pool->lock, FL_LOCK_POOL);
    *out = pool;
    return FL_OK;
}

// Drops one of `references`. No slab is out and nobody may take any more when the last
// one goes: the pool is closed, its list empty.
static void release_pool(fl_slab_pool *pool)
{
    // Release: what this holder did is seen by the one that frees; acquire: its partner.
    if (atomic_fetch_sub_explicit(&pool->references, 1, memory_order_acq_rel) != 1)
        return;
    if (is_foreign(pool))
        return;
    if (pool->allocator.destroy)
        pool->allocator.destroy(pool->allocator.context);
    fl_mutex_deinit(&pool->lock);
    fl_free(pool);
}

fl_slab_pool *fl_slab_pool_ref(fl_slab_pool *pool)
{
    atomic_fetch_add_explicit(&pool->owners, 1, memory_order_relaxed);
    return pool;
}

void fl_slab_pool_unref(fl_slab_pool **pool)
{
    fl_slab_pool *mine = *pool;
    *pool = NULL;
    if (!mine || atomic_fetch_sub_explicit(&mine->owners, 1, memory_order_acq_rel) != 1)
        return;
    fl_slab_pool_close(mine);
    release_pool(mine);
}

void fl_slab_pool_close(fl_slab_pool *pool)
{
    if (is_foreign(pool))
        return;
    fl_mutex_lock(&pool->lock);
    pool->is_closed = true;
    fl_slab *list = pool->free;
    pool->free = NULL;
    pool->usage.free_slabs = 0;
    pool->usage.free_bytes = 0;
    fl_mutex_unlock(&pool->lock);
    give_back_list(pool, list);
}

bool fl_slab_pool_is_plain(const fl_slab_pool *pool)
{
    return pool->allocator.is_plain;
}

static void count_out_locked(fl_slab_pool *pool, int64_t slabs, size_t size)
    FL_REQUIRES(pool->lock)
{
    pool->usage.out_slabs += slabs;
    pool->usage.out_bytes += slabs * (int64_t)size;
}

// Unlinks the newest free slab that fits: it is the likeliest to be in the caches.
static fl_slab *find_free_locked(fl_slab_pool *pool, size_t size) FL_REQUIRES(pool->lock)
{
    for (fl_slab **link = &pool->free; *link; link = &(*link)->next) {
        fl_slab *slab = *link;
        if (slab->size < size || slab->size / 2 > size)
            continue;
        *link = slab->next;
        slab->next = NULL;
        pool->usage.free_slabs--;
        pool->usage.free_bytes -= (int64_t)slab->size;
        return slab;
    }
    return NULL;
}

static fl_status make_slab(fl_slab_pool *pool, size_t size, fl_slab **out,
                           fl_error *error)
{
    fl_slab *slab = fl_alloc_zeroed(sizeof(*slab));
    if (!slab)
        return fl_error_no_memory(error);
    void *memory = NULL;
    fl_status status = pool->allocator.allocate(pool->allocator.context, size, &memory,
                                                &slab->handle, error);
    if (status != FL_OK) {
        fl_free(slab);
        return status;
    }
    slab->memory = memory;
    slab->size = size;
    slab->pool = pool;
    *out = slab;
    return FL_OK;
}

fl_status fl_slab_pool_take(fl_slab_pool *pool, size_t size, fl_slab **out,
                            fl_error *error)
{
    size_t padded;
    if (!fl_size_add(size ? size : 1, FL_SLAB_ALIGNMENT - 1, &padded))
        return fl_error_no_memory(error);
    size = padded & ~(size_t)(FL_SLAB_ALIGNMENT - 1);
    if (is_foreign(pool)) {
        return fl_error_set(error, FL_ERROR_CLOSED,
                            "this loader's memory belongs to the process that made it; "
                            "make a new iterator after fork()");
    }

    fl_mutex_lock(&pool->lock);
    fl_slab *slab = find_free_locked(pool, size);
    if (slab)
        count_out_locked(pool, 1, slab->size);
    fl_mutex_unlock(&pool->lock);

    if (!slab) {
        fl_status status = make_slab(pool, size, &slab, error);
        if (status != FL_OK)
            return status;
        fl_mutex_lock(&pool->lock);
        pool->usage.made++;
        count_out_locked(pool, 1, slab->size);
        fl_mutex_unlock(&pool->lock);
    }
    // The caller is an owner, so the count cannot have reached zero.
    atomic_fetch_add_explicit(&pool->references, 1, memory_order_relaxed);
    atomic_store_explicit(&slab->references, 1, memory_order_relaxed);
    *out = slab;
    return FL_OK;
}

fl_slab *fl_slab_ref(fl_slab *slab)
{
    atomic_fetch_add_explicit(&slab->references, 1, memory_order_relaxed);
    return slab;
}

// Unlinks the oldest free slabs beyond `max_free`.
static fl_slab *trim_locked(fl_slab_pool *pool) FL_REQUIRES(pool->lock)
{
    if (pool->usage.free_slabs <= pool->max_free)
        return NULL;
    fl_slab **link = &pool->free;
    for (int32_t kept = 0; kept < pool->max_free; kept++)
        link = &(*link)->next;
    fl_slab *rest = *link;
    *link = NULL;
    for (const fl_slab *slab = rest; slab; slab = slab->next) {
        pool->usage.free_slabs--;
        pool->usage.free_bytes -= (int64_t)slab->size;
    }
    return rest;
}

// The slab comes home: kept for the next batch, or given back.
static void bring_home(fl_slab *slab)
{
    fl_slab_pool *pool = slab->pool;
#ifdef FL_TESTING
    memset(slab->memory, POISON, slab->size);
#endif
    fl_mutex_lock(&pool->lock);
    count_out_locked(pool, -1, slab->size);
    fl_slab *leaving = slab;
    if (pool->allocator.is_reusable && !pool->is_closed) {
        slab->next = pool->free;
        pool->free = slab;
        pool->usage.free_slabs++;
        pool->usage.free_bytes += (int64_t)slab->size;
        leaving = trim_locked(pool);
    }
    fl_mutex_unlock(&pool->lock);
    give_back_list(pool, leaving);
    release_pool(pool);
}

void fl_slab_unref(fl_slab **slab)
{
    fl_slab *mine = *slab;
    *slab = NULL;
    if (!mine)
        return;
    // Release: this holder's reads and writes are done before the memory is used again;
    // acquire: whoever brings it home comes behind all of them.
    if (atomic_fetch_sub_explicit(&mine->references, 1, memory_order_acq_rel) != 1)
        return;
    if (!is_foreign(mine->pool))
        bring_home(mine);
}

fl_slab_pool_usage fl_slab_pool_read_usage(fl_slab_pool *pool)
{
    if (is_foreign(pool))
        return (fl_slab_pool_usage){0};
    fl_mutex_lock(&pool->lock);
    fl_slab_pool_usage usage = pool->usage;
    fl_mutex_unlock(&pool->lock);
    return usage;
}
