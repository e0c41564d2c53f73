// SPDX-License-Identifier: MIT
// A source of rows whose pixels are those of another one at other places: each column of
// the window is a column of the region, each row a row of it, or else the fill colour.
// That is nearest neighbours, padding, and a picture upside down. Rows of the region come
// in order; those that are needed again later are kept. Lives in scratch memory and
// belongs to the thread that reads.
#ifndef FL_TRANSFORM_REMAP_H
#define FL_TRANSFORM_REMAP_H

#include "data/image.h"
#include "transform/arena.h"
#include "transform/rows.h"

#include <stdint.h>

enum { FL_REMAP_FILL = -1 };

typedef struct fl_remap {
    fl_size region, window;
    // For whoever takes it to fill in, from the region's corner or FL_REMAP_FILL.
    int32_t *columns; // [window.width]
    int32_t *rows;    // [window.height]
    uint8_t fill[FL_PIXEL_SIZE];

    // The rest is remap.c's.
    fl_row_source source;
    int32_t run_start, run_length; // columns that are neighbours in the region, too
    uint8_t *kept;                 // the last rows of the region, a ring
    int32_t kept_rows;
    int32_t rows_in, rows_out; // so far
} fl_remap;

// `kept_rows`: a row is asked for only as long as fewer than this many later ones were.
// NULL if the arena is not ready; all columns and rows are FL_REMAP_FILL.
fl_remap *fl_remap_take(fl_arena *arena, fl_box region, fl_box window, int32_t kept_rows);
// Replaces `rows`, a source of the region, by a source of the window.
void fl_remap_open(fl_remap *remap, fl_row_source *rows);

#endif
