// SPDX-License-Identifier: MIT
// Resize by nearest neighbours, Pillow's: not a filter in two passes, but one input pixel
// for each output pixel. Used through transform/resize.h.
#ifndef FL_TRANSFORM_NEAREST_H
#define FL_TRANSFORM_NEAREST_H

#include "data/image.h"
#include "transform/arena.h"
#include "transform/rows.h"

// The part of a picture of size `in` that the window of its resize to `out` needs.
fl_box fl_nearest_region(fl_size in, fl_size out, fl_box window);
// Replaces `rows`, a source of exactly that region, by a source of the window. Nothing
// but the arena changes if the arena is not ready after it.
void fl_nearest_open(fl_size in, fl_size out, fl_box window, fl_arena *arena,
                     fl_row_source *rows);

#endif
