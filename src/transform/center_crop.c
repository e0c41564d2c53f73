// SPDX-License-Identifier: MIT
// CenterCrop by torchvision's rule: a side that is too short is padded with zeros on both
// ends (the odd one behind), a longer one is cut at Python's round((side - size) / 2).
#include "transform/op.h"

#include "transform/padding.h"

#include <math.h>

enum { HEIGHT, WIDTH, VALUES };

static const char title[] = "CenterCrop";

static fl_status check(const double *values, fl_error *error)
{
    fl_status status =
        fl_op_check_whole(title, "height", values[HEIGHT], 1, FL_MAX_SIDE, error);
    if (status == FL_OK)
        status = fl_op_check_whole(title, "width", values[WIDTH], 1, FL_MAX_SIDE, error);
    return status;
}

static bool find_size(const double *values, const fl_size *in, fl_size *out)
{
    (void)in;
    *out = (fl_size){(int32_t)values[WIDTH], (int32_t)values[HEIGHT]};
    return true;
}

static fl_padding find_axis(int32_t side, int32_t size)
{
    int32_t missing = size > side ? size - side : 0;
    return (fl_padding){
        .mode = FL_PADDING_CONSTANT,
        .side = side,
        .before = missing / 2,
        .after = missing - missing / 2,
        .start = size > side ? 0 : (int32_t)rint((side - size) / 2.0), // half to even
        .count = size,
    };
}

static fl_op_effect effect(const double *values, const int32_t *drawn, fl_size in,
                           fl_size out)
{
    (void)values;
    (void)drawn;
    fl_padding across = find_axis(in.width, out.width);
    fl_padding down = find_axis(in.height, out.height);
    return fl_padding_has_effect(&across, &down) ? FL_EFFECT_PIXELS : FL_EFFECT_NONE;
}

static fl_box region(const double *values, const int32_t *drawn, fl_size in, fl_size out,
                     fl_box window)
{
    (void)values;
    (void)drawn;
    fl_padding across = find_axis(in.width, out.width);
    fl_padding down = find_axis(in.height, out.height);
    return fl_padding_region(&across, &down, window);
}

static void open(const double *values, const int32_t *drawn, const fl_op_place *place,
                 fl_arena *arena, fl_row_source *rows)
{
    static const double black[FL_CHANNELS] = {0, 0, 0};
    (void)values;
    (void)drawn;
    fl_padding across = find_axis(place->in.width, place->out.width);
    fl_padding down = find_axis(place->in.height, place->out.height);
    fl_padding_open(&across, &down, black, place, arena, rows);
}

const fl_op_vtable fl_op_center_crop = {
    .name = "center_crop",
    .title = title,
    .value_count = VALUES,
    .check = check,
    .find_size = find_size,
    .effect = effect,
    .region = region,
    .open = open,
};
