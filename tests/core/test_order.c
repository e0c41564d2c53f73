// SPDX-License-Identifier: MIT
// The permutation and the cursor: bijection, inverse, the split into ranks and batches
// against its definition in docs/order.md, resume, bad arguments, failing memory.
#include "order/cursor.h"

#include "base/memory.h"
#include "order/permutation.h"

#include "check.h"
#include "order_golden.h"

enum { MAX_SAMPLES = 40 };

static fl_permutation *make_permutation(int64_t count, uint64_t seed, uint64_t epoch)
{
    fl_permutation *permutation = NULL;
    CHECK_INT(fl_permutation_create(count, seed, epoch, &permutation, NULL), FL_OK);
    return permutation;
}

static void check_bijection(int64_t count)
{
    fl_permutation *permutation = make_permutation(count, 7, 1);
    unsigned char *seen = fl_alloc_zeroed((size_t)count);
    CHECK(seen);
    for (int64_t i = 0; i < count; i++) {
        int64_t index = fl_permutation_at(permutation, i);
        CHECK(index >= 0 && index < count && !seen[index]);
        seen[index] = 1;
    }
    fl_free(seen);
    fl_permutation_destroy(permutation);
}

static void check_bijections(void)
{
    for (int64_t count = 0; count <= 300; count++)
        check_bijection(count);
    for (int bits = 9; bits <= 18; bits++)
        for (int64_t beside = -1; beside <= 2; beside++)
            check_bijection((INT64_C(1) << bits) + beside);
    // Squares and their neighbours are where the domain a * b changes its shape.
    for (int64_t beside = -1; beside <= 1; beside++)
        check_bijection(300 * 300 + beside);
}

// Too large to list: the inverse shows that no two positions share an index.
static void check_inverse(int64_t count)
{
    fl_permutation *permutation = make_permutation(count, UINT64_MAX, UINT64_MAX);
    int64_t step = count < 1000 ? 1 : count / 997;
    for (int64_t position = 0; position >= 0 && position < count; position += step) {
        int64_t index = fl_permutation_at(permutation, position);
        CHECK(index >= 0 && index < count);
        CHECK_INT(fl_permutation_find(permutation, index), position);
        if (count - position <= step)
            break;
    }
    fl_permutation_destroy(permutation);
}

static void check_inverses(void)
{
    const int64_t counts[] = {1,
                              2,
                              300,
                              65536,
                              65537,
                              1000003,
                              (INT64_C(1) << 32) + 1,
                              (INT64_C(1) << 62) - 1,
                              INT64_MAX};
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
        check_inverse(counts[i]);
}

// As hash_order in tests/order_golden.py.
static uint64_t hash_order(const fl_permutation *permutation, int64_t count)
{
    uint64_t sum = 0;
    for (int64_t i = 0; i < count; i++) {
        uint64_t z = (uint64_t)i << 32 ^ (uint64_t)fl_permutation_at(permutation, i);
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
        z = (z ^ z >> 27) * 0x94D049BB133111EBu;
        sum += z ^ z >> 31;
    }
    return sum;
}

static void check_goldens(void)
{
    size_t rows = sizeof(order_goldens) / sizeof(order_goldens[0]);
    CHECK_INT(rows, 45);
    for (size_t i = 0; i < rows; i++) {
        const order_golden *golden = &order_goldens[i];
        int64_t count = golden->count, tail = count < 4 ? 0 : count - 4;
        fl_permutation *permutation =
            make_permutation(count, golden->seed, golden->epoch);
        for (int k = 0; k < 8 && k < count; k++)
            CHECK_INT(fl_permutation_at(permutation, k), golden->first[k]);
        for (int k = 0; k < 4 && k < count; k++)
            CHECK_INT(fl_permutation_at(permutation, tail + k), golden->last[k]);
        if (golden->hash)
            CHECK(hash_order(permutation, count) == golden->hash);
        fl_permutation_destroy(permutation);
    }
}

static fl_cursor *make_cursor(const fl_cursor_spec *spec)
{
    fl_cursor *cursor = NULL;
    fl_error error = FL_ERROR_INIT;
    fl_status status = fl_cursor_create(spec, &cursor, &error);
    CHECK_INT(status, FL_OK);
    return cursor;
}

// How far the run of all ranks goes, as the design says it.
static int64_t end_of(const fl_cursor_spec *spec)
{
    int64_t left = spec->count - spec->start;
    int64_t unit =
        spec->uneven == FL_UNEVEN_MASK ? spec->batch_size * spec->world : spec->world;
    int64_t whole = left / unit;
    if (spec->uneven != FL_UNEVEN_DROP && left % unit != 0)
        whole++;
    return spec->start + whole * unit;
}

// Walks rank r's positions s + r, s + r + W, ... and compares row by row.
static void check_rank(const fl_cursor_spec *spec, const fl_permutation *order)
{
    fl_cursor *cursor = make_cursor(spec);
    int64_t position = spec->start + spec->rank, end = end_of(spec), rows = 0;
    for (int64_t number = 0; number < fl_cursor_batches(cursor); number++) {
        rows = fl_cursor_rows(cursor, number);
        CHECK(rows >= 1 && rows <= spec->batch_size);
        CHECK(rows == spec->batch_size ||
              (number == fl_cursor_batches(cursor) - 1 && !spec->drop_last &&
               spec->uneven != FL_UNEVEN_MASK));
        for (int64_t row = 0; row < rows; row++, position += spec->world) {
            fl_place place = fl_cursor_place(cursor, number, row);
            CHECK(position < end);
            CHECK_INT(place.position, position);
            CHECK_INT(place.random_position, position);
            CHECK_INT(place.is_valid, position < spec->count);
            int64_t wrapped = position % spec->count;
            CHECK_INT(place.index,
                      spec->shuffle ? fl_permutation_at(order, wrapped) : wrapped);
        }
        int64_t after = spec->start + (number + 1) * spec->batch_size * spec->world;
        CHECK_INT(fl_cursor_position(cursor, number + 1),
                  after < spec->count ? after : spec->count);
    }
    CHECK_INT(fl_cursor_position(cursor, 0), spec->start);
    int64_t left_out = (end - position + spec->world - 1 + spec->rank) / spec->world;
    if (!spec->drop_last)
        CHECK(position >= end);
    else
        CHECK(left_out < spec->batch_size);
    fl_cursor_destroy(cursor);
}

static void check_worlds(fl_cursor_spec *spec, const fl_permutation *order)
{
    const int64_t worlds[] = {1, 2, 3, 8};
    for (int w = 0; w < 4; w++) {
        spec->world = worlds[w];
        for (int uneven = FL_UNEVEN_PAD; uneven <= FL_UNEVEN_MASK; uneven++) {
            spec->uneven = (fl_uneven)uneven;
            for (int drop = 0; drop <= (uneven == FL_UNEVEN_MASK ? 0 : 1); drop++) {
                spec->drop_last = drop;
                for (spec->rank = 0; spec->rank < spec->world; spec->rank++)
                    check_rank(spec, order);
            }
        }
    }
}

static void check_split(void)
{
    const int64_t counts[] = {1, 2, 7, 16, 37};
    const int64_t batch_sizes[] = {1, 2, 5, 64};
    for (int c = 0; c < 5; c++) {
        fl_permutation *order = make_permutation(counts[c], 3, 4);
        fl_cursor_spec spec = {.count = counts[c], .seed = 3, .epoch = 4};
        for (int b = 0; b < 4; b++) {
            spec.batch_size = batch_sizes[b];
            for (spec.start = 0; spec.start <= spec.count; spec.start++) {
                spec.shuffle = spec.start % 2 == 0;
                check_worlds(&spec, order);
            }
        }
        fl_permutation_destroy(order);
    }
}

// Counts how often each sample comes, validly, from `spec->start` on and over all ranks,
// for at most `limit` batches; returns the position for the state.
static int64_t run_all_ranks(fl_cursor_spec spec, int64_t limit, int *seen)
{
    int64_t position = spec.start;
    for (spec.rank = 0; spec.rank < spec.world; spec.rank++) {
        fl_cursor *cursor = make_cursor(&spec);
        int64_t batches = fl_cursor_batches(cursor);
        if (limit < batches)
            batches = limit;
        for (int64_t number = 0; number < batches; number++)
            for (int64_t row = 0; row < fl_cursor_rows(cursor, number); row++) {
                fl_place place = fl_cursor_place(cursor, number, row);
                seen[place.index] += place.is_valid;
            }
        position = fl_cursor_position(cursor, batches);
        fl_cursor_destroy(cursor);
    }
    return position;
}

// A run that stops after any number of batches and goes on with another world and batch
// size still shows each sample exactly once.
static void check_elastic(void)
{
    const struct {
        int64_t batch_size, world;
    } settings[] = {{1, 1}, {4, 1}, {2, 3}, {5, 2}, {3, 8}};
    for (int before = 0; before < 5; before++)
        for (int after = 0; after < 5; after++)
            for (int64_t stop = 0; stop < 12; stop++) {
                int seen[MAX_SAMPLES] = {0};
                fl_cursor_spec spec = {.count = 37, .shuffle = true, .seed = 11};
                spec.uneven = stop % 2 ? FL_UNEVEN_PAD : FL_UNEVEN_MASK;
                spec.batch_size = settings[before].batch_size;
                spec.world = settings[before].world;
                spec.start = run_all_ranks(spec, stop, seen);
                spec.batch_size = settings[after].batch_size;
                spec.world = settings[after].world;
                run_all_ranks(spec, INT64_MAX, seen);
                for (int i = 0; i < 37; i++)
                    CHECK_INT(seen[i], 1);
            }
}

static void check_refused(fl_cursor_spec spec, const char *part)
{
    fl_cursor *cursor = NULL;
    fl_error error = FL_ERROR_INIT;
    CHECK_INT(fl_cursor_create(&spec, &cursor, &error), FL_ERROR_ARGUMENT);
    CHECK(!cursor);
    CHECK_CONTAINS(error.message, part);
    CHECK_INT(fl_cursor_create(&spec, &cursor, NULL), FL_ERROR_ARGUMENT);
}

static void check_arguments(void)
{
    fl_cursor_spec good = {.count = 10, .batch_size = 2, .world = 2};
    fl_cursor_spec bad = good;
    bad.count = -1;
    check_refused(bad, "number of samples must not be negative, it is -1");
    bad = good;
    bad.batch_size = 0;
    check_refused(bad, "batch_size must be at least 1, it is 0");
    bad = good;
    bad.world = 0;
    check_refused(bad, "world_size must be at least 1, it is 0");
    bad = good;
    bad.rank = 2;
    check_refused(bad, "rank must be in [0, 1], it is 2 (world_size is 2)");
    bad.rank = -1;
    check_refused(bad, "rank must be in [0, 1], it is -1");
    bad = good;
    bad.start = 11;
    check_refused(bad, "start position must be in [0, 10]");
    bad.start = -1;
    check_refused(bad, "it is -1");
    bad = good;
    bad.uneven = FL_UNEVEN_MASK;
    bad.drop_last = true;
    check_refused(bad, "drop_last=True");
    bad = good;
    bad.batch_size = INT64_MAX / 2 + 1;
    check_refused(bad, "batch_size * world_size is too large");
    bad = good;
    bad.count = INT64_MAX - 7;
    check_refused(bad, "batch_size * world_size is too large");
    CHECK_INT(fl_permutation_create(-1, 0, 0, NULL, NULL), FL_ERROR_ARGUMENT);
    fl_cursor_destroy(NULL);
    fl_permutation_destroy(NULL);
}

static void check_empty(void)
{
    for (int uneven = FL_UNEVEN_PAD; uneven <= FL_UNEVEN_MASK; uneven++) {
        fl_cursor_spec spec = {
            .shuffle = true, .batch_size = 4, .world = 3, .uneven = (fl_uneven)uneven};
        fl_cursor *cursor = make_cursor(&spec);
        CHECK_INT(fl_cursor_batches(cursor), 0);
        CHECK_INT(fl_cursor_position(cursor, 0), 0);
        fl_cursor_destroy(cursor);
    }
}

static void check_huge(void)
{
    fl_cursor_spec spec = {.count = INT64_MAX - 64,
                           .shuffle = true,
                           .start = INT64_MAX - 64 - 5,
                           .batch_size = 4,
                           .world = 8,
                           .rank = 7,
                           .uneven = FL_UNEVEN_MASK};
    fl_cursor *cursor = make_cursor(&spec);
    CHECK_INT(fl_cursor_batches(cursor), 1);
    fl_place place = fl_cursor_place(cursor, 0, 3);
    CHECK_INT(place.position, spec.start + 31);
    CHECK(!place.is_valid && place.index >= 0 && place.index < spec.count);
    CHECK_INT(fl_cursor_position(cursor, 1), spec.count);
    fl_cursor_destroy(cursor);
}

static void check_failing_memory(void)
{
    int64_t live = fl_memory_live();
    fl_cursor_spec spec = {.count = 100, .shuffle = true, .batch_size = 4, .world = 1};
    fl_status status = FL_ERROR_NO_MEMORY;
    int64_t failures = 0;
    for (; status != FL_OK; failures++) {
        fl_cursor *cursor = NULL;
        fl_error error = FL_ERROR_INIT;
        fl_memory_fail_at(failures);
        status = fl_cursor_create(&spec, &cursor, &error);
        fl_memory_fail_at(-1);
        CHECK(status == FL_OK || status == FL_ERROR_NO_MEMORY);
        CHECK_INT(error.code, status);
        fl_cursor_destroy(cursor);
        CHECK_INT(fl_memory_live(), live);
    }
    CHECK_INT(failures, 4); // cursor, permutation, table, and the run without a failure
}

int main(void)
{
    check_bijections();
    check_inverses();
    check_goldens();
    check_split();
    check_elastic();
    check_arguments();
    check_empty();
    check_huge();
    check_failing_memory();
    CHECK_INT(fl_memory_live(), 0);
    return 0;
}
