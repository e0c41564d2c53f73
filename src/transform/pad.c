// SPDX-License-Identifier: MIT
// Pad by torchvision's rules for PIL pictures: negative numbers cut off; the modes other
// than constant cut first and extend what is left.
#include "transform/op.h"

#include "transform/padding.h"

static const char title[] = "Pad";

static fl_status check(const double *values, fl_error *error)
{
    return fl_padding_check(title, values, error);
}

static bool find_size(const double *values, const fl_size *in, fl_size *out)
{
    if (!in)
        return false;
    *out = (fl_size){fl_padding_across(values, in->width).count,
                     fl_padding_down(values, in->height).count};
    return true;
}

// Nothing is drawn; this is where a picture can be refused.
static fl_status draw(const double *values, fl_size in, fl_random *random, int32_t *drawn,
                      fl_error *error)
{
    (void)random;
    (void)drawn;
    fl_padding across = fl_padding_across(values, in.width);
    fl_padding down = fl_padding_down(values, in.height);
    return fl_padding_check_picture(title, &across, &down, error);
}

static fl_op_effect effect(const double *values, const int32_t *drawn, fl_size in,
                           fl_size out)
{
    (void)drawn;
    (void)out;
    fl_padding across = fl_padding_across(values, in.width);
    fl_padding down = fl_padding_down(values, in.height);
    return fl_padding_has_effect(&across, &down) ? FL_EFFECT_PIXELS : FL_EFFECT_NONE;
}

static fl_box region(const double *values, const int32_t *drawn, fl_size in, fl_size out,
                     fl_box window)
{
    (void)drawn;
    (void)out;
    fl_padding across = fl_padding_across(values, in.width);
    fl_padding down = fl_padding_down(values, in.height);
    return fl_padding_region(&across, &down, window);
}

static void open(const double *values, const int32_t *drawn, const fl_op_place *place,
                 fl_arena *arena, fl_row_source *rows)
{
    (void)drawn;
    fl_padding across = fl_padding_across(values, place->in.width);
    fl_padding down = fl_padding_down(values, place->in.height);
    fl_padding_open(&across, &down, values + FL_PADDING_FILL, place, arena, rows);
}

const fl_op_vtable fl_op_pad = {
    .name = "pad",
    .title = title,
    .value_count = FL_PADDING_VALUES,
    .check = check,
    .find_size = find_size,
    .draw = draw,
    .effect = effect,
    .region = region,
    .open = open,
};
