// SPDX-License-Identifier: MIT
#include "order/cursor.h"

#include "base/memory.h"
#include "order/permutation.h"

#include <assert.h>

struct fl_cursor {
    int64_t count, start, batch_size, rank, world;
    int64_t round;         // positions in one batch of all ranks
    int64_t rank_rows;     // rows of this rank in the whole run
    int64_t batches;       // of this rank, as of every other
    fl_permutation *order; // owned; NULL: sequential
};

static fl_status check_spec(const fl_cursor_spec *spec, fl_error *error)
{
    if (spec->count < 0)
        return fl_error_set(error, FL_ERROR_ARGUMENT,
                            "the number of samples must not be negative, it is %lld",
                            (long long)spec->count);
    if (spec->batch_size < 1)
        return fl_error_set(error, FL_ERROR_ARGUMENT,
                            "batch_size must be at least 1, it is %lld",
                            (long long)spec->batch_size);
    if (spec->world < 1)
        return fl_error_set(error, FL_ERROR_ARGUMENT,
                            "world_size must be at least 1, it is %lld",
                            (long long)spec->world);
    if (spec->rank < 0 || spec->rank >= spec->world)
        return fl_error_set(error, FL_ERROR_ARGUMENT,
                            "rank must be in [0, %lld], it is %lld (world_size is %lld)",
                            (long long)(spec->world - 1), (long long)spec->rank,
                            (long long)spec->world);
    if (spec->start < 0 || spec->start > spec->count)
        return fl_error_set(
            error, FL_ERROR_ARGUMENT,
            "the start position must be in [0, %lld], the number of samples; it is %lld",
            (long long)spec->count, (long long)spec->start);
    if (spec->uneven < FL_UNEVEN_PAD || spec->uneven > FL_UNEVEN_MASK)
        return fl_error_set(error, FL_ERROR_ARGUMENT,
                            "unknown policy for uneven ranks: %d", (int)spec->uneven);
    if (spec->uneven == FL_UNEVEN_MASK && spec->drop_last)
        return fl_error_set(error, FL_ERROR_ARGUMENT,
                            "uneven=\"mask\" makes all batches full: drop_last=True "
                            "contradicts it; leave one of them out");
    return FL_OK;
}

// `value` rounded up to a multiple of `unit`; fl_cursor_create has ruled out overflow.
static int64_t round_up(int64_t value, int64_t unit)
{
    return (value + unit - 1) / unit * unit;
}

// The positions that all ranks cover together.
static int64_t covered(const fl_cursor_spec *spec, int64_t round)
{
    int64_t left = spec->count - spec->start;
    if (spec->uneven == FL_UNEVEN_PAD)
        return round_up(left, spec->world);
    if (spec->uneven == FL_UNEVEN_DROP)
        return left - left % spec->world;
    return round_up(left, round);
}

fl_status fl_cursor_create(const fl_cursor_spec *spec, fl_cursor **out, fl_error *error)
{
    fl_status status = check_spec(spec, error);
    if (status != FL_OK)
        return status;
    // Two rounds beyond the end is the farthest that any sum below can reach.
    int64_t round, two_rounds, end;
    if (__builtin_mul_overflow(spec->batch_size, spec->world, &round) ||
        __builtin_mul_overflow(round, 2, &two_rounds) ||
        __builtin_add_overflow(spec->count, two_rounds, &end))
        return fl_error_set(error, FL_ERROR_ARGUMENT,
                            "batch_size * world_size is too large: %lld * %lld",
                            (long long)spec->batch_size, (long long)spec->world);

    fl_cursor *cursor = fl_alloc_zeroed(sizeof(*cursor));
    if (!cursor)
        return fl_error_no_memory(error);
    cursor->count = spec->count;
    cursor->start = spec->start;
    cursor->batch_size = spec->batch_size;
    cursor->rank = spec->rank;
    cursor->world = spec->world;
    cursor->round = round;
    cursor->rank_rows = covered(spec, round) / spec->world;
    cursor->batches = cursor->rank_rows / spec->batch_size;
    if (!spec->drop_last && cursor->rank_rows % spec->batch_size != 0)
        cursor->batches++;

    if (spec->shuffle) {
        status = fl_permutation_create(spec->count, spec->seed, spec->epoch,
                                       &cursor->order, error);
        if (status != FL_OK) {
            fl_cursor_destroy(cursor);
            return status;
        }
    }
    *out = cursor;
    return FL_OK;
}

void fl_cursor_destroy(fl_cursor *cursor)
{
    if (!cursor)
        return;
    fl_permutation_destroy(cursor->order);
    fl_free(cursor);
}

int64_t fl_cursor_batches(const fl_cursor *cursor)
{
    return cursor->batches;
}

int64_t fl_cursor_rows(const fl_cursor *cursor, int64_t number)
{
    assert(number >= 0 && number < cursor->batches);
    int64_t left = cursor->rank_rows - number * cursor->batch_size;
    return left < cursor->batch_size ? left : cursor->batch_size;
}

fl_place fl_cursor_place(const fl_cursor *cursor, int64_t number, int64_t row)
{
    assert(row >= 0 && row < fl_cursor_rows(cursor, number));
    int64_t position =
        cursor->start + number * cursor->round + row * cursor->world + cursor->rank;
    bool is_valid = position < cursor->count;
    int64_t wrapped = is_valid ? position : position % cursor->count;
    return (fl_place){
        .position = position,
        .random_position = position,
        .index = cursor->order ? fl_permutation_at(cursor->order, wrapped) : wrapped,
        .is_valid = is_valid,
    };
}

int64_t fl_cursor_position(const fl_cursor *cursor, int64_t delivered)
{
    assert(delivered >= 0 && delivered <= cursor->batches);
    int64_t position = cursor->start + delivered * cursor->round;
    return position < cursor->count ? position : cursor->count;
}
