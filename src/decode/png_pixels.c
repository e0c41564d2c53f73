// SPDX-License-Identifier: MIT
#ifdef FL_HAVE_PNG
#include "decode/png_pixels.h"

#include <string.h>

void fl_png_pixels_set_grey(fl_png_pixels *pixels, int depth)
{
    int scale = 255 / ((1 << depth) - 1);
    pixels->kind = FL_PNG_BYTES_TABLE;
    pixels->size = 1;
    for (int i = 0; i < 1 << depth; i++)
        memset(pixels->table + i * 4, i * scale, 4);
}

void fl_png_pixels_set_palette(fl_png_pixels *pixels, const uint8_t *palette, size_t size)
{
    pixels->kind = FL_PNG_BYTES_TABLE;
    pixels->size = 1;
    memset(pixels->table, 0, sizeof(pixels->table));
    for (size_t i = 0; i < size / 3; i++)
        memcpy(pixels->table + i * 4, palette + i * 3, 3);
}

void fl_png_pixels_set_kind(fl_png_pixels *pixels, fl_png_kind kind)
{
    static const size_t sizes[] = {
        [FL_PNG_BYTES_GREY16] = 2,
        [FL_PNG_BYTES_GREY_ALPHA] = 2,
        [FL_PNG_BYTES_RGB] = 3,
        [FL_PNG_BYTES_RGBA] = 4,
    };
    pixels->kind = kind;
    pixels->size = sizes[kind];
}

static void convert_table(const uint8_t *table, const uint8_t *from, uint8_t *to,
                          size_t count)
{
    for (size_t i = 0; i < count; i++)
        memcpy(to + i * 4, table + (size_t)from[i] * 4, 4);
}

// Pillow clips: all above 255 is white.
static void convert_grey16(const uint8_t *from, uint8_t *to, size_t count)
{
    for (size_t i = 0; i < count; i++)
        memset(to + i * 4, from[i * 2] ? 255 : from[i * 2 + 1], 4);
}

static void convert_grey_alpha(const uint8_t *from, uint8_t *to, size_t count)
{
    for (size_t i = 0; i < count; i++)
        memset(to + i * 4, from[i * 2], 4);
}

// Four bytes at a time; behind the last pixel stands nothing that may be read.
static void convert_rgb(const uint8_t *from, uint8_t *to, size_t count)
{
    for (size_t i = 0; i + 1 < count; i++)
        memcpy(to + i * 4, from + i * 3, 4);
    memcpy(to + (count - 1) * 4, from + (count - 1) * 3, 3);
    to[count * 4 - 1] = 255;
}

void fl_png_pixels_convert(const fl_png_pixels *pixels, const uint8_t *from, uint8_t *to,
                           size_t count)
{
    switch (pixels->kind) {
    case FL_PNG_BYTES_TABLE:
        convert_table(pixels->table, from, to, count);
        break;
    case FL_PNG_BYTES_GREY16:
        convert_grey16(from, to, count);
        break;
    case FL_PNG_BYTES_GREY_ALPHA:
        convert_grey_alpha(from, to, count);
        break;
    case FL_PNG_BYTES_RGB:
        convert_rgb(from, to, count);
        break;
    case FL_PNG_BYTES_RGBA:
        memcpy(to, from, count * 4);
        break;
    }
}
#endif
