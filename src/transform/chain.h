// SPDX-License-Identifier: MIT
// A chain of operations on pictures, from decoded rows to a row of the batch. Geometry
// (crop, pad, resize, flip) works on 8-bit RGBX; Normalize and ToDtype end the chain and
// are fused with the store. A chain is immutable: any thread. What is drawn for one
// sample is a plain value.
#ifndef FL_TRANSFORM_CHAIN_H
#define FL_TRANSFORM_CHAIN_H

#include "base/error.h"
#include "batch/layout.h"
#include "data/dtype.h"
#include "data/image.h"
#include "data/scratch.h"

#include <stdbool.h>
#include <stdint.h>

// An operation by its name in the table of transform/op.c and its numbers, in that op's
// order.
typedef struct fl_op_spec {
    const char *name;
    const double *values;
    int32_t count;
} fl_op_spec;

typedef enum fl_pixel_layout {
    FL_LAYOUT_NCHW,
    FL_LAYOUT_NHWC,
    FL_LAYOUT_CHANNELS_LAST, // shape of NCHW, memory of NHWC
} fl_pixel_layout;

typedef struct fl_chain fl_chain;

// Copies the specs. A chain that cannot work (geometry behind Normalize, a float16
// Normalize, unknown names, numbers out of range, ...) is refused with the reason:
// FL_ERROR_ARGUMENT.
FL_MUST_CHECK fl_status fl_chain_create(const fl_op_spec *ops, int32_t count,
                                        fl_pixel_layout layout, fl_chain **out,
                                        fl_error *error);
void fl_chain_destroy(fl_chain *chain);

fl_dtype fl_chain_dtype(const fl_chain *chain);
// True with the row's shape if every picture ends at one size (FIXED), else false (LATE).
bool fl_chain_fixed_shape(const fl_chain *chain, fl_row_shape *out);

enum { FL_MAX_OPS = 16, FL_MAX_OP_DRAWS = 8 };

// What was drawn for one sample.
typedef struct fl_chain_draw {
    int32_t width, height; // of the picture
    fl_box region;         // the part of the picture that has to be decoded
    size_t scratch;        // bytes that fl_chain_apply takes from the scratch
    fl_row_shape shape;    // of the row that comes out
    size_t size;           // bytes of that row
    int32_t values[FL_MAX_OPS][FL_MAX_OP_DRAWS]; // the ops' own
} fl_chain_draw;

// Draws every op's parameters for a picture of this size, keyed by (key, position, op
// number). FL_ERROR_ARGUMENT if the picture cannot go through (RandomCrop larger than it,
// ...).
FL_MUST_CHECK fl_status fl_chain_make_draw(const fl_chain *chain, int32_t width,
                                           int32_t height, uint64_t key,
                                           uint64_t position, fl_chain_draw *draw,
                                           fl_error *error);

// Reads exactly the rows of `draw->region` from `source`, in order, and writes the row to
// `out`. `scratch` has room for draw->scratch more bytes.
FL_MUST_CHECK fl_status fl_chain_apply(const fl_chain *chain, const fl_chain_draw *draw,
                                       fl_row_source source, fl_scratch *scratch,
                                       uint8_t *out, fl_error *error);

#endif
