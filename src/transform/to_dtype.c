// SPDX-License-Identifier: MIT
// ToDtype: casts, round to nearest even. From 8-bit pixels `scale` brings the values to
// [0, 1]: 1 divides by 255 (torchvision's ToTensor), 2 multiplies by float32(1 / 255)
// (its v2.ToDtype); the two differ in the last bit of some values. Both are computed in
// float32 and rounded once to a 16-bit type, which is what torch's kernels do. Floats are
// cast as they are.
#include "transform/op.h"

enum { DTYPE, SCALE, VALUES };

static const char title[] = "ToDtype";

static fl_status check(const double *values, fl_error *error)
{
    double dtype = values[DTYPE];
    if (dtype != FL_UINT8 && dtype != FL_FLOAT16 && dtype != FL_BFLOAT16 &&
        dtype != FL_FLOAT32)
        return fl_error_set(error, FL_ERROR_ARGUMENT,
                            "%s: pictures can be uint8, float16, bfloat16 or float32, "
                            "not dtype number %g",
                            title, dtype);
    return fl_op_check_whole(title, "scale", values[SCALE], FL_SCALE_NONE,
                             FL_SCALE_MULTIPLY, error);
}

static fl_status end(const double *values, fl_store_spec *spec, fl_error *error)
{
    fl_dtype dtype = (fl_dtype)values[DTYPE];
    if (dtype == spec->dtype)
        return FL_OK;
    if (spec->dtype != FL_UINT8 && spec->dtype != FL_FLOAT32)
        return fl_error_set(error, FL_ERROR_ARGUMENT,
                            "%s(%s): the pictures are %s already; cast once", title,
                            fl_dtype_name(dtype), fl_dtype_name(spec->dtype));
    if (dtype == FL_UINT8)
        return fl_error_set(error, FL_ERROR_ARGUMENT,
                            "%s(uint8): the pictures are float32 by then, and pictures "
                            "without Normalize and ToDtype are uint8 anyway",
                            title);
    if (spec->dtype == FL_UINT8)
        spec->scale = (fl_scale)values[SCALE];
    spec->dtype = dtype;
    return FL_OK;
}

const fl_op_vtable fl_op_to_dtype = {
    .name = "to_dtype",
    .title = title,
    .value_count = VALUES,
    .check = check,
    .end = end,
};
