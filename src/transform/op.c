// SPDX-License-Identifier: MIT
#include "transform/op.h"

#include <math.h>
#include <string.h>

static const fl_op_vtable *const ops[] = {
    &fl_op_random_resized_crop,  &fl_op_resize,    &fl_op_center_crop,
    &fl_op_random_crop,          &fl_op_pad,       &fl_op_random_horizontal_flip,
    &fl_op_random_vertical_flip, &fl_op_normalize, &fl_op_to_dtype,
};

const fl_op_vtable *fl_op_find(const char *name)
{
    for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
        if (strcmp(ops[i]->name, name) == 0)
            return ops[i];
    }
    return NULL;
}

bool fl_op_is_whole(double value, int32_t low, int32_t high)
{
    // A NaN fails the comparisons.
    return value >= low && value <= high && value == rint(value);
}

fl_status fl_op_check_whole(const char *title, const char *name, double value,
                            int32_t low, int32_t high, fl_error *error)
{
    if (fl_op_is_whole(value, low, high))
        return FL_OK;
    return fl_error_set(error, FL_ERROR_ARGUMENT,
                        "%s: %s must be a whole number from %d to %d, not %g", title,
                        name, low, high, value);
}

fl_status fl_op_check_resize(const char *title, double filter, double passes,
                             fl_error *error)
{
    fl_status status = fl_op_check_whole(title, "interpolation", filter,
                                         FL_FILTER_NEAREST, FL_FILTER_HAMMING, error);
    if (status == FL_OK)
        status = fl_op_check_whole(title, "passes", passes, FL_PASSES_PILLOW_13,
                                   FL_PASSES_HORIZONTAL_FIRST, error);
    return status;
}
