// SPDX-License-Identifier: MIT
// RandomHorizontalFlip. Drawn: unit() < p.
//
// Behind the last resize the chain folds the flip into the store. In front of one it is
// done here: the weights of a mirrored filter are summed the other way round, so equal
// results are likely but not certain.
#include "transform/op.h"

#include "transform/rows.h"

#include <string.h>

enum { PROBABILITY, VALUES };
enum { DRAWN_FLIP };

static const char title[] = "RandomHorizontalFlip";

typedef struct flip_stream {
    fl_row_source source;
    int32_t width;
} flip_stream;

static fl_status check(const double *values, fl_error *error)
{
    if (values[PROBABILITY] >= 0 && values[PROBABILITY] <= 1)
        return FL_OK;
    return fl_error_set(error, FL_ERROR_ARGUMENT, "%s: p must be within [0, 1], not %g",
                        title, values[PROBABILITY]);
}

static bool find_size(const double *values, const fl_size *in, fl_size *out)
{
    (void)values;
    if (!in)
        return false;
    *out = *in;
    return true;
}

static fl_status draw(const double *values, fl_size in, fl_random *random, int32_t *drawn,
                      fl_error *error)
{
    (void)in;
    (void)error;
    drawn[DRAWN_FLIP] = fl_random_unit(random) < values[PROBABILITY];
    return FL_OK;
}

static fl_op_effect effect(const double *values, const int32_t *drawn, fl_size in,
                           fl_size out)
{
    (void)values;
    (void)in;
    (void)out;
    return drawn[DRAWN_FLIP] ? FL_EFFECT_MIRROR : FL_EFFECT_NONE;
}

static fl_box region(const double *values, const int32_t *drawn, fl_size in, fl_size out,
                     fl_box window)
{
    (void)values;
    (void)out;
    if (drawn[DRAWN_FLIP])
        window.x = in.width - window.x - window.width;
    return window;
}

static void reverse(uint8_t *row, int32_t width)
{
    for (int32_t left = 0, right = width - 1; left < right; left++, right--) {
        uint32_t a, b;
        memcpy(&a, row + (size_t)left * FL_PIXEL_SIZE, sizeof(a));
        memcpy(&b, row + (size_t)right * FL_PIXEL_SIZE, sizeof(b));
        memcpy(row + (size_t)left * FL_PIXEL_SIZE, &b, sizeof(b));
        memcpy(row + (size_t)right * FL_PIXEL_SIZE, &a, sizeof(a));
    }
}

static fl_status read_flipped(void *context, uint8_t *rows, size_t stride, int32_t count,
                              fl_error *error)
{
    const flip_stream *stream = context;
    fl_row_source source = stream->source;
    fl_status status = source.read(source.context, rows, stride, count, error);
    for (int32_t i = 0; i < count && status == FL_OK; i++)
        reverse(rows + (size_t)i * stride, stream->width);
    return status;
}

static void open(const double *values, const int32_t *drawn, const fl_op_place *place,
                 fl_arena *arena, fl_row_source *rows)
{
    (void)values;
    (void)drawn; // only opened if it flips
    flip_stream *stream = fl_arena_take(arena, 1, sizeof(*stream));
    if (!fl_arena_is_ready(arena))
        return;
    *stream = (flip_stream){.source = *rows, .width = place->window.width};
    *rows = (fl_row_source){.read = read_flipped, .context = stream};
}

const fl_op_vtable fl_op_random_horizontal_flip = {
    .name = "random_horizontal_flip",
    .title = title,
    .value_count = VALUES,
    .is_random = true,
    .check = check,
    .find_size = find_size,
    .draw = draw,
    .effect = effect,
    .region = region,
    .open = open,
};
