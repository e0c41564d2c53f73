// SPDX-License-Identifier: MIT
// The slab pool: reuse, fit, trim, close, life beyond its owners, threads, fork, and
// allocators of every kind, failing ones among them.
#include "base/memory.h"
#include "base/philox.h"
#include "base/thread.h"
#include "batch/slab.h"
#include "check.h"

#include <stdatomic.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

enum { POISON = 0xDB };

// A source of blocks that counts, and fails on demand.
typedef struct source {
    _Atomic int64_t taken, given, destroyed;
    _Atomic int64_t fail_at; // the n-th from now; negative: none
    bool checks_poison;
} source;

static fl_status source_allocate(void *context, size_t size, void **memory, void **handle,
                                 fl_error *error)
{
    source *self = context;
    if (atomic_load(&self->fail_at) >= 0 && atomic_fetch_sub(&self->fail_at, 1) == 0)
        return fl_error_set(error, FL_ERROR_NO_MEMORY, "the source is empty");
    *memory = fl_alloc_aligned(FL_SLAB_ALIGNMENT, size);
    if (!*memory)
        return fl_error_no_memory(error);
    memset(*memory, 0, size);
    *handle = self;
    atomic_fetch_add(&self->taken, 1);
    return FL_OK;
}

static void source_give(void *context, void *memory, size_t size, void *handle)
{
    source *self = context;
    CHECK(handle == self);
    if (self->checks_poison) {
        for (size_t i = 0; i < size; i++)
            CHECK_INT(((uint8_t *)memory)[i], POISON);
    }
    fl_free(memory);
    atomic_fetch_add(&self->given, 1);
}

static void source_destroy(void *context)
{
    source *self = context;
    atomic_fetch_add(&self->destroyed, 1);
}

static fl_allocator source_allocator(source *self, bool is_plain, bool is_reusable)
{
    *self = (source){.fail_at = -1, .checks_poison = true};
    return (fl_allocator){.name = "fake",
                          .is_plain = is_plain,
                          .is_reusable = is_reusable,
                          .allocate = source_allocate,
                          .give = source_give,
                          .destroy = source_destroy,
                          .context = self};
}

static fl_slab_pool *make_pool(fl_allocator allocator, int32_t max_free)
{
    fl_slab_pool *pool = NULL;
    CHECK_INT(fl_slab_pool_create(allocator, max_free, &pool, NULL), FL_OK);
    return pool;
}

static fl_slab *take(fl_slab_pool *pool, size_t size)
{
    fl_slab *slab = NULL;
    CHECK_INT(fl_slab_pool_take(pool, size, &slab, NULL), FL_OK);
    CHECK(slab->size >= size);
    CHECK_INT((uintptr_t)slab->memory % FL_SLAB_ALIGNMENT, 0);
    return slab;
}

static void check_usage(fl_slab_pool *pool, int64_t free_slabs, int64_t free_bytes,
                        int64_t out_slabs, int64_t out_bytes, int64_t made)
{
    fl_slab_pool_usage usage = fl_slab_pool_read_usage(pool);
    CHECK_INT(usage.free_slabs, free_slabs);
    CHECK_INT(usage.free_bytes, free_bytes);
    CHECK_INT(usage.out_slabs, out_slabs);
    CHECK_INT(usage.out_bytes, out_bytes);
    CHECK_INT(usage.made, made);
}

static void test_reuse(void)
{
    source blocks;
    fl_slab_pool *pool = make_pool(source_allocator(&blocks, true, true), 4);
    CHECK(fl_slab_pool_is_plain(pool));
    fl_slab *slab = take(pool, 5000); // two pages of 4096
    check_usage(pool, 0, 0, 1, 8192, 1);
    uint8_t *memory = slab->memory;
    memory[4999] = 1;
    fl_slab *second = fl_slab_ref(slab);
    fl_slab_unref(&slab);
    CHECK(!slab);
    CHECK_INT(memory[4999], 1); // still referenced
    check_usage(pool, 0, 0, 1, 8192, 1);
    fl_slab_unref(&second);
    CHECK_INT(memory[4999], POISON);
    check_usage(pool, 1, 8192, 0, 0, 1);
    slab = take(pool, 8192);
    CHECK(slab->memory == memory);
    check_usage(pool, 0, 0, 1, 8192, 1);
    fl_slab_unref(&slab);
    fl_slab_unref(&slab); // NULL is fine
    fl_slab_pool_unref(&pool);
    CHECK(!pool);
    CHECK_INT(blocks.given, 1);
    CHECK_INT(blocks.destroyed, 1);
    CHECK_INT(fl_memory_live(), 0);
}

static void test_fit(void)
{
    source blocks;
    fl_slab_pool *pool = make_pool(source_allocator(&blocks, true, true), 4);
    fl_slab *large = take(pool, 4 * 4096);
    fl_slab_unref(&large);
    fl_slab *small = take(pool, 4096); // four times as large does not fit
    check_usage(pool, 1, 4 * 4096, 1, 4096, 2);
    fl_slab *half = take(pool, 2 * 4096); // twice as large does
    CHECK_INT(half->size, 4 * 4096);
    check_usage(pool, 0, 0, 2, 5 * 4096, 2);
    fl_slab_unref(&half);
    fl_slab *larger = take(pool, 5 * 4096); // too small for this
    check_usage(pool, 1, 4 * 4096, 2, 6 * 4096, 3);
    fl_slab *nothing = take(pool, 0);
    CHECK_INT(nothing->size, 4096);
    fl_slab_unref(&nothing);
    fl_slab_unref(&larger);
    fl_slab_unref(&small);
    fl_slab *huge = NULL;
    fl_error error = FL_ERROR_INIT;
    CHECK_INT(fl_slab_pool_take(pool, SIZE_MAX - 10, &huge, &error), FL_ERROR_NO_MEMORY);
    fl_slab_pool_unref(&pool);
    CHECK_INT(blocks.taken, blocks.given);
    CHECK_INT(fl_memory_live(), 0);
}

// The oldest free slabs leave first, the newest is taken first.
static void test_trim(void)
{
    source blocks;
    fl_slab_pool *pool = make_pool(source_allocator(&blocks, true, true), 2);
    fl_slab *slabs[4];
    for (int i = 0; i < 4; i++)
        slabs[i] = take(pool, 4096);
    const uint8_t *third = slabs[2]->memory, *fourth = slabs[3]->memory;
    for (int i = 0; i < 4; i++)
        fl_slab_unref(&slabs[i]);
    check_usage(pool, 2, 2 * 4096, 0, 0, 4);
    CHECK_INT(blocks.given, 2);
    slabs[0] = take(pool, 4096);
    slabs[1] = take(pool, 4096);
    CHECK(slabs[0]->memory == fourth);
    CHECK(slabs[1]->memory == third);
    fl_slab_unref(&slabs[0]);
    fl_slab_unref(&slabs[1]);
    fl_slab_pool_unref(&pool);

    pool = make_pool(source_allocator(&blocks, true, true), 0); // keeps none
    fl_slab *slab = take(pool, 4096);
    fl_slab_unref(&slab);
    check_usage(pool, 0, 0, 0, 0, 1);
    fl_slab_pool_unref(&pool);
    CHECK_INT(blocks.given, 1);
    CHECK_INT(fl_memory_live(), 0);
}

static void test_not_reusable(void)
{
    source blocks;
    fl_slab_pool *pool = make_pool(source_allocator(&blocks, false, false), 4);
    CHECK(!fl_slab_pool_is_plain(pool));
    for (int i = 0; i < 3; i++) {
        fl_slab *slab = take(pool, 4096);
        fl_slab_unref(&slab);
        CHECK_INT(blocks.given, i + 1);
    }
    check_usage(pool, 0, 0, 0, 0, 3);
    fl_slab_pool_unref(&pool);
    CHECK_INT(blocks.destroyed, 1);
    CHECK_INT(fl_memory_live(), 0);
}

static void test_close(void)
{
    source blocks;
    fl_slab_pool *pool = make_pool(source_allocator(&blocks, true, true), 4);
    fl_slab *kept = take(pool, 4096), *home = take(pool, 4096);
    fl_slab_unref(&home);
    fl_slab_pool_close(pool);
    fl_slab_pool_close(pool);
    CHECK_INT(blocks.given, 1);
    check_usage(pool, 0, 0, 1, 4096, 2);
    fl_slab_unref(&kept);
    CHECK_INT(blocks.given, 2);
    check_usage(pool, 0, 0, 0, 0, 2);
    fl_slab_pool_unref(&pool);
    CHECK_INT(fl_memory_live(), 0);
}

// Slabs outlive every owner of the pool; the last one takes it along.
static void test_outlives_owners(void)
{
    source blocks;
    fl_slab_pool *pool = make_pool(source_allocator(&blocks, true, true), 4);
    fl_slab_pool *other = fl_slab_pool_ref(pool);
    fl_slab *first = take(pool, 4096), *second = take(pool, 4096);
    fl_slab *third = take(pool, 4096);
    fl_slab_unref(&third);
    fl_slab_pool_unref(&pool);
    CHECK_INT(blocks.given, 0);
    fl_slab_pool_unref(&other);
    CHECK_INT(blocks.given, 1); // nobody can take the free one any more
    first->memory[0] = 7;
    fl_slab_unref(&first);
    CHECK_INT(blocks.given, 2);
    CHECK_INT(blocks.destroyed, 0);
    fl_slab_unref(&second);
    CHECK_INT(blocks.given, 3);
    CHECK_INT(blocks.destroyed, 1);
    CHECK_INT(fl_memory_live(), 0);
}

static void test_failures(void)
{
    source blocks;
    fl_slab_pool *pool = NULL;
    fl_error error = FL_ERROR_INIT;
    fl_allocator allocator = source_allocator(&blocks, true, true);
    fl_memory_fail_at(0);
    CHECK_INT(fl_slab_pool_create(allocator, 4, &pool, &error), FL_ERROR_NO_MEMORY);
    fl_memory_fail_at(-1);
    CHECK(!pool);
    CHECK_INT(blocks.destroyed, 0); // taken on success only

    pool = make_pool(allocator, 4);
    fl_slab *slab = NULL;
    for (int64_t n = 0; n < 2; n++) { // the record, then the block
        fl_memory_fail_at(n);
        CHECK_INT(fl_slab_pool_take(pool, 4096, &slab, &error), FL_ERROR_NO_MEMORY);
        fl_memory_fail_at(-1);
        CHECK(!slab);
    }
    atomic_store(&blocks.fail_at, 0);
    CHECK_INT(fl_slab_pool_take(pool, 4096, &slab, &error), FL_ERROR_NO_MEMORY);
    CHECK_CONTAINS(error.message, "the source is empty");
    check_usage(pool, 0, 0, 0, 0, 0);
    slab = take(pool, 4096); // and on it goes
    fl_slab_unref(&slab);
    fl_slab_pool_unref(&pool);
    CHECK_INT(fl_memory_live(), 0);
}

static void test_heap(void)
{
    fl_slab_pool *pool = make_pool(fl_allocator_heap(), 2);
    size_t sizes[] = {1, 4096, 100000, (2 << 20) - 1, 2 << 20, (5 << 20) + 12345};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        fl_slab *slab = take(pool, sizes[i]);
        if (slab->size >= 2 << 20)
            CHECK_INT((uintptr_t)slab->memory % (2 << 20), 0);
        memset(slab->memory, 0x55, slab->size);
        fl_slab_unref(&slab);
    }
    fl_slab *slab = NULL;
    fl_error error = FL_ERROR_INIT;
    CHECK_INT(fl_slab_pool_take(pool, SIZE_MAX / 4, &slab, &error), FL_ERROR_NO_MEMORY);
    CHECK_INT(fl_slab_pool_take(pool, SIZE_MAX - 8192, &slab, &error),
              FL_ERROR_NO_MEMORY);
    CHECK_CONTAINS(error.message, "out of memory");
    fl_slab_pool_unref(&pool);
    CHECK_INT(fl_memory_live(), 0);
}

// A child only counts down: the lock, the list and the blocks belong to the parent.
static void test_fork(void)
{
    source blocks;
    fl_slab_pool *pool = make_pool(source_allocator(&blocks, true, true), 4);
    fl_slab *slab = take(pool, 4096), *home = take(pool, 4096);
    fl_slab_unref(&home);
    slab->memory[9] = 42;
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        uint8_t *memory = slab->memory;
        fl_slab_unref(&slab);
        CHECK(!slab);
        CHECK_INT(memory[9], 42); // neither poisoned nor freed
        fl_slab *none = NULL;
        fl_error error = FL_ERROR_INIT;
        CHECK_INT(fl_slab_pool_take(pool, 4096, &none, &error), FL_ERROR_CLOSED);
        CHECK_CONTAINS(error.message, "after fork()");
        check_usage(pool, 0, 0, 0, 0, 0);
        fl_slab_pool_close(pool);
        fl_slab_pool_unref(&pool);
        CHECK_INT(blocks.given, 0);
        CHECK_INT(blocks.destroyed, 0);
        _exit(0);
    }
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    check_usage(pool, 1, 4096, 1, 4096, 2);
    fl_slab_unref(&slab);
    fl_slab_pool_unref(&pool);
    CHECK_INT(blocks.given, 2);
    CHECK_INT(fl_memory_live(), 0);
}

enum { THREADS = 4, ROUNDS = 3000, MAILBOXES = 16 };

// Threads take slabs, write their mark and post them to mailboxes, from which any thread
// takes and drops them.
typedef struct exchange {
    fl_slab_pool *pool;
    _Atomic(fl_slab *) mailboxes[MAILBOXES];
    _Atomic uint64_t next_seed;
} exchange;

static void check_mark(const fl_slab *slab)
{
    uint8_t mark = slab->memory[0];
    CHECK(mark != POISON);
    CHECK_INT(slab->memory[slab->size - 1], mark);
}

static void exchange_run(void *argument)
{
    exchange *shared = argument;
    fl_random random = fl_random_make(99, atomic_fetch_add(&shared->next_seed, 1), 0);
    for (int round = 0; round < ROUNDS; round++) {
        size_t size = 4096 * (1 + fl_random_below(&random, 6));
        fl_slab *slab = take(shared->pool, size);
        uint8_t mark = (uint8_t)fl_random_below(&random, 200);
        slab->memory[0] = mark;
        slab->memory[slab->size - 1] = mark;
        fl_slab *copy = fl_slab_ref(slab);
        fl_slab *old = atomic_exchange(
            &shared->mailboxes[fl_random_below(&random, MAILBOXES)], slab);
        if (old)
            check_mark(old);
        fl_slab_unref(&old);
        check_mark(copy);
        fl_slab_unref(&copy);
    }
    fl_slab_pool *mine = shared->pool;
    fl_slab_pool_unref(&mine);
}

static void test_threads(bool is_reusable)
{
    source blocks;
    fl_slab_pool *pool = make_pool(source_allocator(&blocks, true, is_reusable), 5);
    exchange shared = {.pool = pool};
    fl_thread threads[THREADS];
    for (int i = 1; i < THREADS; i++)
        fl_slab_pool_ref(pool); // one a thread
    for (int i = 0; i < THREADS; i++) {
        CHECK_INT(fl_thread_start(&threads[i], "test", exchange_run, &shared, NULL),
                  FL_OK);
    }
    for (int i = 0; i < THREADS; i++)
        fl_thread_join(&threads[i]);
    CHECK_INT(blocks.destroyed, 0); // the mailboxes hold slabs
    for (int i = 0; i < MAILBOXES; i++) {
        fl_slab *slab = atomic_load(&shared.mailboxes[i]);
        if (slab)
            check_mark(slab);
        fl_slab_unref(&slab);
    }
    CHECK_INT(blocks.taken, blocks.given);
    CHECK_INT(blocks.destroyed, 1);
    CHECK_INT(fl_memory_live(), 0);
}

int main(void)
{
    test_reuse();
    test_fit();
    test_trim();
    test_not_reusable();
    test_close();
    test_outlives_owners();
    test_failures();
    test_heap();
    test_fork();
    test_threads(true);
    test_threads(false);
    return 0;
}
