// SPDX-License-Identifier: MIT
// RandomCrop by torchvision's rule: padding, then, if asked for, what a side still lacks
// on both of its ends, then a crop. Drawn, unless the crop is all of it:
//   y = below(height - crop height + 1), x = below(width - crop width + 1).
#include "transform/op.h"

#include "transform/padding.h"

enum { HEIGHT, WIDTH, PAD_IF_NEEDED, PADDING, VALUES = PADDING + FL_PADDING_VALUES };
enum { DRAWN_X, DRAWN_Y };

static const char title[] = "RandomCrop";

static fl_status check(const double *values, fl_error *error)
{
    fl_status status =
        fl_op_check_whole(title, "height", values[HEIGHT], 1, FL_MAX_SIDE, error);
    if (status == FL_OK)
        status = fl_op_check_whole(title, "width", values[WIDTH], 1, FL_MAX_SIDE, error);
    if (status == FL_OK)
        status =
            fl_op_check_whole(title, "pad_if_needed", values[PAD_IF_NEEDED], 0, 1, error);
    if (status == FL_OK)
        status = fl_padding_check(title, values + PADDING, error);
    return status;
}

static bool find_size(const double *values, const fl_size *in, fl_size *out)
{
    (void)in;
    *out = (fl_size){(int32_t)values[WIDTH], (int32_t)values[HEIGHT]};
    return true;
}

// `padding` has all of the padded side as its result.
static fl_padding extend(fl_padding padding, const double *values, int32_t size)
{
    if (values[PAD_IF_NEEDED] == 1 && padding.count < size) {
        padding.extra = size - padding.count;
        padding.count += 2 * padding.extra;
    }
    return padding;
}

static fl_padding extend_across(const double *values, fl_size in)
{
    return extend(fl_padding_across(values + PADDING, in.width), values,
                  (int32_t)values[WIDTH]);
}

static fl_padding extend_down(const double *values, fl_size in)
{
    return extend(fl_padding_down(values + PADDING, in.height), values,
                  (int32_t)values[HEIGHT]);
}

static fl_status draw(const double *values, fl_size in, fl_random *random, int32_t *drawn,
                      fl_error *error)
{
    int32_t height = (int32_t)values[HEIGHT], width = (int32_t)values[WIDTH];
    fl_padding across = extend_across(values, in), down = extend_down(values, in);
    fl_status status = fl_padding_check_picture(title, &across, &down, error);
    if (status != FL_OK)
        return status;
    if (down.count < height || across.count < width)
        return fl_error_set(error, FL_ERROR_ARGUMENT,
                            "Required crop size (%d, %d) is larger than input image size "
                            "(%d, %d) (height, width): give RandomCrop padding or "
                            "pad_if_needed=True, or leave out such pictures",
                            height, width, down.count, across.count);
    if (down.count == height && across.count == width)
        return FL_OK;
    drawn[DRAWN_Y] =
        (int32_t)fl_random_below(random, (uint64_t)(down.count - height + 1));
    drawn[DRAWN_X] =
        (int32_t)fl_random_below(random, (uint64_t)(across.count - width + 1));
    return FL_OK;
}

static fl_padding crop_across(const double *values, const int32_t *drawn, fl_size in)
{
    fl_padding across = extend_across(values, in);
    across.start = drawn[DRAWN_X];
    across.count = (int32_t)values[WIDTH];
    return across;
}

static fl_padding crop_down(const double *values, const int32_t *drawn, fl_size in)
{
    fl_padding down = extend_down(values, in);
    down.start = drawn[DRAWN_Y];
    down.count = (int32_t)values[HEIGHT];
    return down;
}

static fl_op_effect effect(const double *values, const int32_t *drawn, fl_size in,
                           fl_size out)
{
    (void)out;
    fl_padding across = crop_across(values, drawn, in);
    fl_padding down = crop_down(values, drawn, in);
    return fl_padding_has_effect(&across, &down) ? FL_EFFECT_PIXELS : FL_EFFECT_NONE;
}

static fl_box region(const double *values, const int32_t *drawn, fl_size in, fl_size out,
                     fl_box window)
{
    (void)out;
    fl_padding across = crop_across(values, drawn, in);
    fl_padding down = crop_down(values, drawn, in);
    return fl_padding_region(&across, &down, window);
}

static void open(const double *values, const int32_t *drawn, const fl_op_place *place,
                 fl_arena *arena, fl_row_source *rows)
{
    fl_padding across = crop_across(values, drawn, place->in);
    fl_padding down = crop_down(values, drawn, place->in);
    fl_padding_open(&across, &down, values + PADDING + FL_PADDING_FILL, place, arena,
                    rows);
}

const fl_op_vtable fl_op_random_crop = {
    .name = "random_crop",
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
