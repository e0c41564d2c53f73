// SPDX-License-Identifier: MIT
#include "transform/rows.h"

#include "base/memory.h"

#include <string.h>

enum { ALIGNMENT = 64, PADDING = 16 };

size_t fl_row_stride(int32_t width)
{
    return fl_size_align((size_t)width * FL_PIXEL_SIZE + PADDING, ALIGNMENT);
}

uint8_t *fl_rows_take(fl_arena *arena, int32_t width, int32_t count)
{
    size_t stride = fl_row_stride(width);
    size_t used = (size_t)width * FL_PIXEL_SIZE;
    uint8_t *rows = fl_arena_take(arena, (size_t)count, stride);
    // Padding is read by kernels, with weight zero: it has to be defined.
    for (int32_t i = 0; rows && i < count; i++)
        memset(rows + (size_t)i * stride + used, 0, stride - used);
    return rows;
}
