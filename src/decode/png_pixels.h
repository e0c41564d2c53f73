// SPDX-License-Identifier: MIT
// Rows of a PNG to RGBX, as Pillow's convert("RGB") does. Any thread.
#ifndef FL_DECODE_PNG_PIXELS_H
#define FL_DECODE_PNG_PIXELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum fl_png_kind {
    FL_PNG_BYTES_TABLE,  // one byte: grey of at most 8 bits, or a place in the palette
    FL_PNG_BYTES_GREY16, // two, the high one first
    FL_PNG_BYTES_GREY_ALPHA, // two
    FL_PNG_BYTES_RGB,        // three
    FL_PNG_BYTES_RGBA,       // four
} fl_png_kind;

typedef struct fl_png_pixels {
    fl_png_kind kind;
    size_t size;            // bytes of a pixel before the conversion
    uint8_t table[256 * 4]; // RGBX; TABLE only
} fl_png_pixels;

// Grey of `depth` bits, at most 8: 0 is black, the largest value white.
void fl_png_pixels_set_grey(fl_png_pixels *pixels, int depth);
// Three bytes an entry, at most 256 entries; those that are missing are black.
void fl_png_pixels_set_palette(fl_png_pixels *pixels, const uint8_t *palette,
                               size_t size);
void fl_png_pixels_set_kind(fl_png_pixels *pixels, fl_png_kind kind);

// `count` pixels, at least one.
void fl_png_pixels_convert(const fl_png_pixels *pixels, const uint8_t *from, uint8_t *to,
                           size_t count);

#endif
