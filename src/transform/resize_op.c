// SPDX-License-Identifier: MIT
// Resize by torchvision's rules: a pair is the size; one number is the shorter edge, the
// longer one follows and may be capped by max_size.
#include "transform/op.h"

#include <math.h>

enum { HEIGHT, WIDTH, MAX_SIZE, INTERPOLATION, PASSES, VALUES };

static const char title[] = "Resize";

static fl_status check(const double *values, fl_error *error)
{
    fl_status status =
        fl_op_check_whole(title, "size", values[HEIGHT], 1, FL_MAX_SIDE, error);
    if (status == FL_OK && values[WIDTH] != -1)
        status = fl_op_check_whole(title, "width", values[WIDTH], 1, FL_MAX_SIDE, error);
    if (status == FL_OK && values[MAX_SIZE] != -1)
        status =
            fl_op_check_whole(title, "max_size", values[MAX_SIZE], 1, FL_MAX_SIDE, error);
    if (status == FL_OK)
        status = fl_op_check_resize(title, values[INTERPOLATION], values[PASSES], error);
    if (status != FL_OK || values[MAX_SIZE] == -1)
        return status;
    if (values[WIDTH] != -1)
        return fl_error_set(error, FL_ERROR_ARGUMENT,
                            "%s: max_size goes with one number for the shorter edge, "
                            "not with a pair (%g, %g)",
                            title, values[HEIGHT], values[WIDTH]);
    if (values[MAX_SIZE] <= values[HEIGHT])
        return fl_error_set(error, FL_ERROR_ARGUMENT,
                            "%s: max_size (%g) must be greater than the size of the "
                            "shorter edge (%g)",
                            title, values[MAX_SIZE], values[HEIGHT]);
    return FL_OK;
}

// Python's int(a * b / c); the product of two sides is exact in a double.
static int32_t scale_side(double a, double b, double c)
{
    double side = a * b / c;
    return side < INT32_MAX ? (int32_t)side : INT32_MAX;
}

static bool find_size(const double *values, const fl_size *in, fl_size *out)
{
    if (values[WIDTH] != -1) {
        *out = (fl_size){(int32_t)values[WIDTH], (int32_t)values[HEIGHT]};
        return true;
    }
    if (!in)
        return false;
    bool is_upright = in->width <= in->height;
    int32_t shorter = is_upright ? in->width : in->height;
    int32_t longer = is_upright ? in->height : in->width;
    int32_t new_shorter = (int32_t)values[HEIGHT];
    int32_t new_longer = scale_side(values[HEIGHT], longer, shorter);
    if (values[MAX_SIZE] != -1 && new_longer > values[MAX_SIZE]) {
        new_shorter = scale_side(values[MAX_SIZE], new_shorter, new_longer);
        new_longer = (int32_t)values[MAX_SIZE];
    }
    *out = is_upright ? (fl_size){new_shorter, new_longer}
                      : (fl_size){new_longer, new_shorter};
    return true;
}

static fl_resize find_resize(const double *values, fl_size in, fl_size out)
{
    return (fl_resize){
        .in = in,
        .out = out,
        .filter = (fl_filter)values[INTERPOLATION],
        .passes = (fl_resize_passes)values[PASSES],
    };
}

static fl_op_effect effect(const double *values, const int32_t *drawn, fl_size in,
                           fl_size out)
{
    (void)drawn;
    fl_resize resize = find_resize(values, in, out);
    return fl_resize_has_effect(&resize) ? FL_EFFECT_PIXELS : FL_EFFECT_NONE;
}

static fl_box region(const double *values, const int32_t *drawn, fl_size in, fl_size out,
                     fl_box window)
{
    (void)drawn;
    fl_resize resize = find_resize(values, in, out);
    return fl_resize_region(&resize, window);
}

static void open(const double *values, const int32_t *drawn, const fl_op_place *place,
                 fl_arena *arena, fl_row_source *rows)
{
    (void)drawn;
    fl_resize resize = find_resize(values, place->in, place->out);
    fl_resize_open(&resize, place->kernels, place->window, arena, rows);
}

const fl_op_vtable fl_op_resize = {
    .name = "resize",
    .title = title,
    .value_count = VALUES,
    .check = check,
    .find_size = find_size,
    .effect = effect,
    .region = region,
    .open = open,
};
