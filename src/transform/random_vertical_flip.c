// SPDX-License-Identifier: MIT
// RandomVerticalFlip. Drawn: unit() < p.
//
// Behind the last op that makes pixels the store writes the rows bottom up. In front of
// one, all rows that it needs are kept here first, since rows come from the top.
#include "transform/op.h"

#include "transform/remap.h"

enum { PROBABILITY, VALUES };
enum { DRAWN_FLIP };

static const char title[] = "RandomVerticalFlip";

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
    return drawn[DRAWN_FLIP] ? FL_EFFECT_UPSIDE_DOWN : FL_EFFECT_NONE;
}

static fl_box region(const double *values, const int32_t *drawn, fl_size in, fl_size out,
                     fl_box window)
{
    (void)values;
    (void)out;
    if (drawn[DRAWN_FLIP])
        window.y = in.height - window.y - window.height;
    return window;
}

static void open(const double *values, const int32_t *drawn, const fl_op_place *place,
                 fl_arena *arena, fl_row_source *rows)
{
    (void)values;
    (void)drawn; // only opened if it flips
    int32_t width = place->window.width, height = place->window.height;
    fl_remap *remap = fl_remap_take(arena, place->region, place->window, height);
    if (!remap)
        return;
    for (int32_t x = 0; x < width; x++)
        remap->columns[x] = x;
    for (int32_t y = 0; y < height; y++)
        remap->rows[y] = height - 1 - y;
    fl_remap_open(remap, rows);
}

const fl_op_vtable fl_op_random_vertical_flip = {
    .name = "random_vertical_flip",
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
