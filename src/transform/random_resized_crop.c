// SPDX-License-Identifier: MIT
// RandomResizedCrop by torchvision's rule.
//
// What is drawn, in this order, all in doubles (docs/order.md): at most ten tries of
//   area  = width * height * uniform(scale_low, scale_high)
//   ratio = exp(uniform(log(ratio_low), log(ratio_high)))
//   w = rint(sqrt(area * ratio)), h = rint(sqrt(area / ratio)), half to even;
// the first with 0 < w <= width and 0 < h <= height is taken, and then
//   y = below(height - h + 1), x = below(width - w + 1).
// If none is: the largest central crop with a ratio within the bounds, nothing drawn.
#include "transform/op.h"

#include <math.h>

enum {
    HEIGHT,
    WIDTH,
    SCALE_LOW,
    SCALE_HIGH,
    RATIO_LOW,
    RATIO_HIGH,
    INTERPOLATION,
    PASSES,
    VALUES,
};
enum { DRAWN_X, DRAWN_Y, DRAWN_WIDTH, DRAWN_HEIGHT };
enum { TRIES = 10 };

static const char title[] = "RandomResizedCrop";

static fl_status check(const double *values, fl_error *error)
{
    double low = values[SCALE_LOW], high = values[SCALE_HIGH];
    fl_status status =
        fl_op_check_whole(title, "height", values[HEIGHT], 1, FL_MAX_SIDE, error);
    if (status == FL_OK)
        status = fl_op_check_whole(title, "width", values[WIDTH], 1, FL_MAX_SIDE, error);
    if (status == FL_OK)
        status = fl_op_check_resize(title, values[INTERPOLATION], values[PASSES], error);
    if (status != FL_OK)
        return status;
    if (!(low >= 0 && low <= high && high > 0 && isfinite(high)))
        return fl_error_set(error, FL_ERROR_ARGUMENT,
                            "%s: scale must be (low, high) with 0 <= low <= high and "
                            "0 < high, not (%g, %g)",
                            title, low, high);
    low = values[RATIO_LOW];
    high = values[RATIO_HIGH];
    if (!(low > 0 && low <= high && isfinite(high)))
        return fl_error_set(error, FL_ERROR_ARGUMENT,
                            "%s: ratio must be (low, high) with 0 < low <= high, not "
                            "(%g, %g)",
                            title, low, high);
    return FL_OK;
}

static bool find_size(const double *values, const fl_size *in, fl_size *out)
{
    (void)in;
    *out = (fl_size){(int32_t)values[WIDTH], (int32_t)values[HEIGHT]};
    return true;
}

static int32_t at_least_one(double side)
{
    return side < 1.0 ? 1 : (int32_t)side;
}

// The central crop, clipped to the bounds of the ratio.
static fl_size find_fallback(const double *values, fl_size in)
{
    double ratio = (double)in.width / in.height;
    if (ratio < values[RATIO_LOW])
        return (fl_size){in.width, at_least_one(rint(in.width / values[RATIO_LOW]))};
    if (ratio > values[RATIO_HIGH])
        return (fl_size){at_least_one(rint(in.height * values[RATIO_HIGH])), in.height};
    return in;
}

static fl_status draw(const double *values, fl_size in, fl_random *random, int32_t *drawn,
                      fl_error *error)
{
    (void)error;
    double whole = (double)in.width * in.height;
    double low = log(values[RATIO_LOW]), high = log(values[RATIO_HIGH]);
    for (int32_t i = 0; i < TRIES; i++) {
        double area =
            whole * fl_random_uniform(random, values[SCALE_LOW], values[SCALE_HIGH]);
        double ratio = exp(fl_random_uniform(random, low, high));
        double width = rint(sqrt(area * ratio));
        double height = rint(sqrt(area / ratio));
        if (width > 0 && width <= in.width && height > 0 && height <= in.height) {
            drawn[DRAWN_WIDTH] = (int32_t)width;
            drawn[DRAWN_HEIGHT] = (int32_t)height;
            drawn[DRAWN_Y] = (int32_t)fl_random_below(
                random, (uint64_t)(in.height - drawn[DRAWN_HEIGHT] + 1));
            drawn[DRAWN_X] = (int32_t)fl_random_below(
                random, (uint64_t)(in.width - drawn[DRAWN_WIDTH] + 1));
            return FL_OK;
        }
    }
    fl_size size = find_fallback(values, in);
    drawn[DRAWN_WIDTH] = size.width;
    drawn[DRAWN_HEIGHT] = size.height;
    drawn[DRAWN_Y] = (in.height - size.height) / 2;
    drawn[DRAWN_X] = (in.width - size.width) / 2;
    return FL_OK;
}

// The crop is the picture that is resized: nothing outside of it is looked at.
static fl_resize find_resize(const double *values, const int32_t *drawn, fl_size out)
{
    return (fl_resize){
        .in = {drawn[DRAWN_WIDTH], drawn[DRAWN_HEIGHT]},
        .out = out,
        .filter = (fl_filter)values[INTERPOLATION],
        .passes = (fl_resize_passes)values[PASSES],
    };
}

static fl_op_effect effect(const double *values, const int32_t *drawn, fl_size in,
                           fl_size out)
{
    (void)in;
    fl_resize resize = find_resize(values, drawn, out);
    return fl_resize_has_effect(&resize) ? FL_EFFECT_PIXELS : FL_EFFECT_NONE;
}

static fl_box region(const double *values, const int32_t *drawn, fl_size in, fl_size out,
                     fl_box window)
{
    (void)in;
    fl_resize resize = find_resize(values, drawn, out);
    fl_box box = fl_resize_region(&resize, window);
    box.x += drawn[DRAWN_X];
    box.y += drawn[DRAWN_Y];
    return box;
}

static void open(const double *values, const int32_t *drawn, const fl_op_place *place,
                 fl_arena *arena, fl_row_source *rows)
{
    fl_resize resize = find_resize(values, drawn, place->out);
    fl_resize_open(&resize, place->kernels, place->window, arena, rows);
}

const fl_op_vtable fl_op_random_resized_crop = {
    .name = "random_resized_crop",
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
