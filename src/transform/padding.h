// SPDX-License-Identifier: MIT
// Padding, for the ops that pad: one axis of a picture is extended or cut at both ends,
// extended once more, and a part of that is the op's result. Pure functions of plain
// data: any thread.
#ifndef FL_TRANSFORM_PADDING_H
#define FL_TRANSFORM_PADDING_H

#include "transform/op.h"

#include <stdbool.h>
#include <stdint.h>

// What the pixels beside the picture are: torchvision's names, NumPy's meaning.
typedef enum fl_padding_mode {
    FL_PADDING_CONSTANT = 0,  // the fill colour
    FL_PADDING_EDGE = 1,      // aa|abc|cc
    FL_PADDING_REFLECT = 2,   // cb|abc|ba
    FL_PADDING_SYMMETRIC = 3, // ba|abc|cb
} fl_padding_mode;

typedef struct fl_padding {
    fl_padding_mode mode;
    int32_t side;          // of the picture
    int32_t before, after; // that are added; cut off where negative
    int32_t extra;         // that are then added on both ends, by the same mode
    int32_t start, count;  // the result, in what comes of that
} fl_padding;

// The order of the numbers of an op that pads.
enum {
    FL_PADDING_LEFT,
    FL_PADDING_TOP,
    FL_PADDING_RIGHT,
    FL_PADDING_BOTTOM,
    FL_PADDING_MODE,
    FL_PADDING_FILL, // red, green, blue
    FL_PADDING_VALUES = FL_PADDING_FILL + FL_CHANNELS,
};

// Are these numbers possible?
FL_MUST_CHECK fl_status fl_padding_check(const char *title, const double *values,
                                         fl_error *error);
// One axis without `extra`, with all as the result.
fl_padding fl_padding_across(const double *values, int32_t width);
fl_padding fl_padding_down(const double *values, int32_t height);
// Is there a pixel left on both axes, and one to extend from?
FL_MUST_CHECK fl_status fl_padding_check_picture(const char *title,
                                                 const fl_padding *across,
                                                 const fl_padding *down, fl_error *error);

// False if the result is only a part of the picture.
bool fl_padding_has_effect(const fl_padding *across, const fl_padding *down);
// The part of the picture that the window of the result needs; never empty.
fl_box fl_padding_region(const fl_padding *across, const fl_padding *down, fl_box window);
// As an op's `open`; `fill` are three numbers.
void fl_padding_open(const fl_padding *across, const fl_padding *down, const double *fill,
                     const fl_op_place *place, fl_arena *arena, fl_row_source *rows);

#endif
