// SPDX-License-Identifier: MIT
// Counted buffers and their pool: reuse, bounds, homecoming after the pool was let go,
// failing allocations, many threads.
#include "base/memory.h"
#include "base/thread.h"
#include "data/buffer.h"
#include "data/buffer_pool.h"

#include "check.h"

static fl_buffer_pool *make_pool(size_t max_free_bytes)
{
    fl_buffer_pool *pool = NULL;
    CHECK_INT(fl_buffer_pool_create(max_free_bytes, &pool, NULL), FL_OK);
    return pool;
}

static fl_buffer *take(fl_buffer_pool *pool, size_t capacity)
{
    fl_buffer *buffer = NULL;
    CHECK_INT(fl_buffer_pool_take(pool, capacity, &buffer, NULL), FL_OK);
    CHECK(buffer->capacity >= capacity);
    CHECK_INT(buffer->size, 0);
    CHECK_INT((uintptr_t)buffer->data % 64, 0);
    for (int i = 0; i < FL_BUFFER_PADDING; i++)
        CHECK_INT(buffer->data[buffer->capacity + (size_t)i], 0);
    memset(buffer->data, 0xAB, buffer->capacity);
    return buffer;
}

static void check_plain_buffer(void)
{
    fl_buffer *buffer = NULL, *other, *none = NULL;
    CHECK_INT(fl_buffer_create(100, &buffer, NULL), FL_OK);
    CHECK_INT(buffer->capacity, 100);
    CHECK_INT((uintptr_t)buffer->data % 64, 0);
    other = fl_buffer_ref(buffer);
    fl_buffer_unref(&buffer);
    CHECK(buffer == NULL);
    other->data[99] = 1; // still there
    fl_buffer_unref(&other);
    fl_buffer_unref(&none);
    CHECK_INT(fl_memory_live(), 0);
}

static void check_sizes_that_cannot_be(void)
{
    fl_error error = FL_ERROR_INIT;
    fl_buffer *buffer = NULL;
    CHECK_INT(fl_buffer_create(SIZE_MAX - 10, &buffer, &error), FL_ERROR_NO_MEMORY);
    fl_buffer_pool *pool = make_pool(0);
    CHECK_INT(fl_buffer_pool_take(pool, SIZE_MAX, &buffer, &error), FL_ERROR_NO_MEMORY);
    CHECK(buffer == NULL);
    fl_buffer_pool_unref(&pool);
}

// A class holds what it is asked for and wastes at most a quarter (beyond 4 KiB).
static void check_capacities(void)
{
    fl_buffer_pool *pool = make_pool(0);
    for (size_t size = 1; size < 3000000; size += 1 + size / 7) {
        for (size_t near = size - 1; near <= size + 1; near++) {
            fl_buffer *buffer = take(pool, near);
            CHECK(buffer->capacity <= 4096 || buffer->capacity * 4 <= near * 5 + 4);
            fl_buffer_unref(&buffer);
        }
    }
    for (int shift = 12; shift < 24; shift++) {
        fl_buffer *buffer = take(pool, (size_t)1 << shift);
        CHECK_INT(buffer->capacity, (size_t)1 << shift);
        fl_buffer_unref(&buffer);
    }
    fl_buffer_pool_unref(&pool);
    CHECK_INT(fl_memory_live(), 0);
}

static void check_reuse(void)
{
    fl_buffer_pool *pool = make_pool(1 << 20);
    fl_buffer *buffer = take(pool, 100000);
    uint8_t *data = buffer->data;
    fl_buffer_unref(&buffer);

    buffer = take(pool, 70000); // a smaller wish within a factor of two
    CHECK(buffer->data == data);
    fl_buffer_unref(&buffer);
    buffer = take(pool, 20000); // too small a wish for so large a buffer
    CHECK(buffer->data != data);
    fl_buffer_unref(&buffer);
    CHECK_INT(fl_memory_live(), 3);
    fl_buffer_pool_unref(&pool);
    CHECK_INT(fl_memory_live(), 0);
}

static void check_bound(void)
{
    fl_buffer_pool *pool = make_pool(1 << 20);
    fl_buffer *small[64], *large = take(pool, 1 << 20), *too_large = take(pool, 2 << 20);
    for (int i = 0; i < 64; i++)
        small[i] = take(pool, 1 << 14);
    for (int i = 0; i < 64; i++)
        fl_buffer_unref(&small[i]);
    CHECK_INT(fl_memory_live(), 1 + 64 + 2); // 1 MiB of small ones lies free
    fl_buffer_unref(&too_large);
    CHECK_INT(fl_memory_live(), 1 + 64 + 1);
    fl_buffer_unref(&large); // they give way
    CHECK_INT(fl_memory_live(), 1 + 1);
    fl_buffer_pool_unref(&pool);

    pool = make_pool(0);
    large = take(pool, 1);
    fl_buffer_unref(&large);
    CHECK_INT(fl_memory_live(), 1);
    fl_buffer_pool_unref(&pool);
    CHECK_INT(fl_memory_live(), 0);
}

static void check_homecoming(void)
{
    fl_buffer_pool *pool = make_pool(1 << 20);
    fl_buffer *a = take(pool, 5000), *b = take(pool, 6000);
    fl_buffer_pool_unref(&pool);
    CHECK(pool == NULL);
    fl_buffer_pool_unref(&pool);
    fl_buffer_unref(&a);
    memset(b->data, 1, b->capacity);
    fl_buffer_unref(&b);
    CHECK_INT(fl_memory_live(), 0);
}

static void check_failing_allocations(void)
{
    fl_error error = FL_ERROR_INIT;
    fl_buffer_pool *pool = NULL;
    fl_buffer *buffer = NULL;
    fl_memory_fail_at(0);
    CHECK_INT(fl_buffer_pool_create(1, &pool, &error), FL_ERROR_NO_MEMORY);
    CHECK(pool == NULL);
    pool = make_pool(1 << 20);
    fl_memory_fail_at(0);
    CHECK_INT(fl_buffer_pool_take(pool, 10, &buffer, &error), FL_ERROR_NO_MEMORY);
    fl_memory_fail_at(0);
    CHECK_INT(fl_buffer_create(10, &buffer, &error), FL_ERROR_NO_MEMORY);
    CHECK(buffer == NULL);
    fl_buffer_pool_unref(&pool);
    CHECK_INT(fl_memory_live(), 0);
}

static void take_and_give(void *argument)
{
    fl_buffer_pool *pool = argument;
    for (size_t i = 0; i < 2000; i++) {
        fl_buffer *a = NULL, *b = NULL;
        CHECK_INT(fl_buffer_pool_take(pool, i * 37 % 20000, &a, NULL), FL_OK);
        CHECK_INT(fl_buffer_pool_take(pool, i * 101 % 9000, &b, NULL), FL_OK);
        fl_buffer *again = fl_buffer_ref(a);
        a->data[0] = 1;
        fl_buffer_unref(&a);
        b->data[b->capacity - 1] = 2;
        fl_buffer_unref(&b);
        CHECK_INT(again->data[0], 1);
        fl_buffer_unref(&again);
    }
    fl_buffer_pool_unref(&pool);
}

static void check_threads(void)
{
    fl_buffer_pool *pool = make_pool(64 << 10);
    fl_thread threads[4];
    for (int i = 0; i < 4; i++)
        CHECK_INT(fl_thread_start(&threads[i], "pool", take_and_give,
                                  fl_buffer_pool_ref(pool), NULL),
                  FL_OK);
    fl_buffer_pool_unref(&pool);
    for (int i = 0; i < 4; i++)
        fl_thread_join(&threads[i]);
    CHECK_INT(fl_memory_live(), 0);
}

int main(void)
{
    check_plain_buffer();
    check_sizes_that_cannot_be();
    check_capacities();
    check_reuse();
    check_bound();
    check_homecoming();
    check_failing_allocations();
    check_threads();
    return 0;
}
