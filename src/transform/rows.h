// SPDX-License-Identifier: MIT
// Rows of pixels in scratch memory. Kernels work on whole vectors: every row that a step
// of a chain writes to has room for fl_row_stride(width) bytes, and may be read and
// written up to there. (A decoder writes its `width` pixels only.)
#ifndef FL_TRANSFORM_ROWS_H
#define FL_TRANSFORM_ROWS_H

#include "data/image.h"
#include "transform/arena.h"

#include <stddef.h>
#include <stdint.h>

typedef struct fl_size {
    int32_t width, height;
} fl_size;

// Bytes of a row of `width` pixels with its padding, a multiple of 64.
size_t fl_row_stride(int32_t width);
// Takes `count` rows; their padding is zero. NULL when the arena is not ready.
uint8_t *fl_rows_take(fl_arena *arena, int32_t width, int32_t count);

#endif
