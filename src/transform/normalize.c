// SPDX-License-Identifier: MIT
// Normalize: (x - mean) / std in float32. On 8-bit pixels x is the value / 255, as behind
// torchvision's ToTensor.
#include "transform/op.h"

#include <math.h>

enum { MEAN, STD = MEAN + FL_CHANNELS, VALUES = STD + FL_CHANNELS };

static const char title[] = "Normalize";

static fl_status check(const double *values, fl_error *error)
{
    for (int32_t i = 0; i < FL_CHANNELS; i++) {
        if (!isfinite((float)values[MEAN + i]))
            return fl_error_set(error, FL_ERROR_ARGUMENT,
                                "%s: mean[%d] must be a finite float32, not %g", title, i,
                                values[MEAN + i]);
        float std = (float)values[STD + i];
        if (!isfinite(std) || std == 0.0f)
            return fl_error_set(error, FL_ERROR_ARGUMENT,
                                "%s: std[%d] must be a finite float32 other than 0, not "
                                "%g",
                                title, i, values[STD + i]);
    }
    return FL_OK;
}

static fl_status end(const double *values, fl_store_spec *spec, fl_error *error)
{
    if (spec->has_normalize)
        return fl_error_set(error, FL_ERROR_ARGUMENT,
                            "%s: the pictures are normalised already; use one Normalize",
                            title);
    if (spec->dtype == FL_FLOAT16 || spec->dtype == FL_BFLOAT16)
        return fl_error_set(error, FL_ERROR_ARGUMENT,
                            "%s works in float32, but the pictures are %s by then: put "
                            "ToDtype(%s) behind Normalize",
                            title, fl_dtype_name(spec->dtype),
                            fl_dtype_name(spec->dtype));
    if (spec->dtype == FL_UINT8)
        spec->scale = FL_SCALE_DIVIDE;
    spec->dtype = FL_FLOAT32;
    spec->has_normalize = true;
    for (int32_t i = 0; i < FL_CHANNELS; i++) {
        spec->mean[i] = (float)values[MEAN + i];
        spec->std[i] = (float)values[STD + i];
    }
    return FL_OK;
}

const fl_op_vtable fl_op_normalize = {
    .name = "normalize",
    .title = title,
    .value_count = VALUES,
    .check = check,
    .end = end,
};
