// SPDX-License-Identifier: MIT
// Pixels between decode and store: 8-bit RGBX, 4 bytes a pixel, rows top down. X is
// undefined. Views: they own nothing and are valid as long as the memory that they were
// cut from.
#ifndef FL_DATA_IMAGE_H
#define FL_DATA_IMAGE_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

enum { FL_PIXEL_SIZE = 4 };

typedef struct fl_box {
    int32_t x, y, width, height; // pixels; may reach outside the picture only where said
} fl_box;

typedef struct fl_image {
    uint8_t *pixels; // the first pixel of the first row
    size_t stride;   // bytes between rows
    int32_t width, height;
} fl_image;

// Delivers the rows of one box of a picture, in order, once.
typedef struct fl_row_source {
    // Writes the next `count` rows of the box, `width` pixels each, to `rows`.
    fl_status (*read)(void *context, uint8_t *rows, size_t stride, int32_t count,
                      fl_error *error);
    void *context;
} fl_row_source;

#endif
