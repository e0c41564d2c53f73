// SPDX-License-Identifier: MIT
// The table of operations. An op is one file and one line in op.c. Its numbers
// (`values`) come from the user and are checked once; what it draws for one picture
// (`drawn`) is a few integers. All functions are pure: any thread.
//
// Geometry ops form a pipeline of row sources: each one reads rows of its input picture
// and delivers rows of a window of its output picture. A window of the final output is
// pushed backwards through the ops (`region`), so that each computes, and the decoder
// decodes, only what is needed.
#ifndef FL_TRANSFORM_OP_H
#define FL_TRANSFORM_OP_H

#include "base/error.h"
#include "base/philox.h"
#include "data/image.h"
#include "transform/arena.h"
#include "transform/resize.h"
#include "transform/store.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    FL_MAX_OP_VALUES = 16,
    // Sides of pictures between two ops: integers up to here are exact in float32, in
    // which Pillow keeps the edges of boxes.
    FL_MAX_SIDE = (1 << 24) - 1,
};

// What an op with these draws does to the pixels of its window.
typedef enum fl_op_effect {
    FL_EFFECT_NONE,        // nothing: the window is elsewhere, that is all
    FL_EFFECT_MIRROR,      // reverses each row, nothing else
    FL_EFFECT_UPSIDE_DOWN, // reverses the order of the rows, nothing else
    FL_EFFECT_PIXELS,      // makes pixels
} fl_op_effect;

// Where an op stands in the pipeline of one picture.
typedef struct fl_op_place {
    fl_size in, out; // the whole pictures before and after it
    fl_box region;   // the part of `in` that is read
    fl_box window;   // the part of `out` that is delivered
    const fl_resize_kernels *kernels;
} fl_op_place;

typedef struct fl_op_vtable {
    const char *name;  // in fl_op_spec
    const char *title; // in messages: as the user writes it
    int32_t value_count;
    bool is_random;
    // Are the numbers possible?
    fl_status (*check)(const double *values, fl_error *error);

    // Geometry; NULL in ops on values, which have only `end`.
    //
    // The size that comes out for the size `in`, or for any size (`in` is NULL): false if
    // that depends. May be zero or huge: the chain checks it.
    bool (*find_size)(const double *values, const fl_size *in, fl_size *out);
    // Draws, or refuses the picture. NULL if there is nothing to draw or to refuse.
    fl_status (*draw)(const double *values, fl_size in, fl_random *random, int32_t *drawn,
                      fl_error *error);
    fl_op_effect (*effect)(const double *values, const int32_t *drawn, fl_size in,
                           fl_size out);
    // The part of the input that the window needs; never empty.
    fl_box (*region)(const double *values, const int32_t *drawn, fl_size in, fl_size out,
                     fl_box window);
    // Not for EFFECT_NONE: `rows` delivers the region and is
    // replaced by a source of the window. If the arena is not ready after the op has
    // taken its pieces, nothing else happens.
    void (*open)(const double *values, const int32_t *drawn, const fl_op_place *place,
                 fl_arena *arena, fl_row_source *rows);

    // Ops on values: what the chain's end does with 8-bit pixels.
    fl_status (*end)(const double *values, fl_store_spec *spec, fl_error *error);
} fl_op_vtable;

// NULL if there is no op of this name.
const fl_op_vtable *fl_op_find(const char *name);

extern const fl_op_vtable fl_op_random_resized_crop;
extern const fl_op_vtable fl_op_resize;
extern const fl_op_vtable fl_op_center_crop;
extern const fl_op_vtable fl_op_random_crop;
extern const fl_op_vtable fl_op_pad;
extern const fl_op_vtable fl_op_random_horizontal_flip;
extern const fl_op_vtable fl_op_random_vertical_flip;
extern const fl_op_vtable fl_op_normalize;
extern const fl_op_vtable fl_op_to_dtype;

// For the ops' checks: is this a whole number within [low, high]?
bool fl_op_is_whole(double value, int32_t low, int32_t high);
// "<title>: <name> must be a whole number from <low> to <high>, not <value>".
FL_MUST_CHECK fl_status fl_op_check_whole(const char *title, const char *name,
                                          double value, int32_t low, int32_t high,
                                          fl_error *error);
// Are these the number of a filter and of an order of passes?
FL_MUST_CHECK fl_status fl_op_check_resize(const char *title, double filter,
                                           double passes, fl_error *error);

#endif
