// SPDX-License-Identifier: MIT
// PNGs for tests, made by libpng from random samples, and the pixels that they mean.
#ifndef FL_TESTS_PNG_SAMPLES_H
#define FL_TESTS_PNG_SAMPLES_H

#include "picture_check.h"

#include <png.h>
#include <zlib.h>

typedef struct png_sample {
    const char *name;
    int depth, colour; // PNG's numbers
    bool is_interlaced;
} png_sample;

#define PNG_SAMPLE_PAIR(name, depth, colour)                                             \
    {name, depth, colour, false},                                                        \
    {                                                                                    \
        name "-interlaced", depth, colour, true                                          \
    }

static const png_sample PNG_SAMPLES[] = {
    PNG_SAMPLE_PAIR("grey1", 1, 0),    PNG_SAMPLE_PAIR("grey2", 2, 0),
    PNG_SAMPLE_PAIR("grey4", 4, 0),    PNG_SAMPLE_PAIR("grey8", 8, 0),
    PNG_SAMPLE_PAIR("grey16", 16, 0),  PNG_SAMPLE_PAIR("rgb8", 8, 2),
    PNG_SAMPLE_PAIR("rgb16", 16, 2),   PNG_SAMPLE_PAIR("palette1", 1, 3),
    PNG_SAMPLE_PAIR("palette2", 2, 3), PNG_SAMPLE_PAIR("palette4", 4, 3),
    PNG_SAMPLE_PAIR("palette8", 8, 3), PNG_SAMPLE_PAIR("alpha8", 8, 4),
    PNG_SAMPLE_PAIR("alpha16", 16, 4), PNG_SAMPLE_PAIR("rgba8", 8, 6),
    PNG_SAMPLE_PAIR("rgba16", 16, 6),
};
enum { PNG_SAMPLE_COUNT = sizeof(PNG_SAMPLES) / sizeof(PNG_SAMPLES[0]) };

typedef struct png_file {
    uint8_t *bytes; // to be freed
    size_t size, room;
    uint8_t *pixels; // RGBX; to be freed
    int width, height;
} png_file;

static inline void png_sample_append(png_structp png, png_bytep data, size_t size)
{
    png_file *file = png_get_io_ptr(png);
    CHECK(file->size + size <= file->room);
    memcpy(file->bytes + file->size, data, size);
    file->size += size;
}

static inline void png_sample_flush(png_structp png)
{
    (void)png;
}

static inline int png_sample_channels(int colour)
{
    static const int channels[] = {1, 0, 3, 1, 2, 0, 4};
    return channels[colour];
}

// What a pixel's samples mean: 16 bits give their high byte, but grey ones are clipped.
static inline void png_sample_set_pixel(const png_sample *sample, const uint16_t *values,
                                        const png_color *palette, uint8_t *pixel)
{
    if (sample->colour == 3) {
        const png_color *entry = &palette[values[0]];
        memcpy(pixel, (uint8_t[]){entry->red, entry->green, entry->blue}, 3);
        return;
    }
    for (int i = 0; i < 3; i++) {
        int value = values[sample->colour & 2 ? i : 0];
        if (sample->depth == 16)
            value = sample->colour != 0 ? value >> 8 : value < 255 ? value : 255;
        else
            value = value * 255 / ((1 << sample->depth) - 1);
        pixel[i] = (uint8_t)value;
    }
}

// Puts one sample into a row, the high bits first.
static inline void png_sample_pack(uint8_t *row, int depth, int index, int value)
{
    if (depth == 16) {
        row[index * 2] = (uint8_t)(value >> 8);
        row[index * 2 + 1] = (uint8_t)value;
        return;
    }
    int bit = index * depth;
    row[bit / 8] = (uint8_t)(row[bit / 8] | value << (8 - depth - bit % 8));
}

static inline png_file png_sample_make(const png_sample *sample, int width, int height)
{
    png_file file = {.room = 1 << 20, .width = width, .height = height};
    uint32_t random = (uint32_t)(width * 31 + height);
    int channels = png_sample_channels(sample->colour);
    size_t row_size = (size_t)(width * channels * sample->depth + 7) / 8;
    uint8_t *rows = calloc((size_t)height, row_size);
    png_bytep *places = calloc((size_t)height, sizeof(*places));
    file.bytes = malloc(file.room);
    file.pixels = calloc((size_t)(width * height), 4);
    CHECK(rows && places && file.bytes && file.pixels);

    png_color palette[256];
    for (size_t i = 0; i < 256; i++)
        palette[i] = (png_color){(uint8_t)picture_random(&random), (uint8_t)(i * 7),
                                 (uint8_t)picture_random(&random)};
    for (int y = 0; y < height; y++) {
        places[y] = rows + (size_t)y * row_size;
        for (int x = 0; x < width; x++) {
            uint16_t values[4];
            for (int i = 0; i < channels; i++) {
                // Neighbours are alike, so that filters differ; 16 bits are often small.
                uint32_t value = picture_random(&random) % 40 + (uint32_t)(x * 3 + y * 5);
                if (sample->depth == 16 && (x & 4))
                    value *= 1777;
                values[i] = (uint16_t)(value & ((1u << sample->depth) - 1));
                png_sample_pack(places[y], sample->depth, x * channels + i, values[i]);
            }
            png_sample_set_pixel(sample, values, palette,
                                 file.pixels + (y * width + x) * 4);
        }
    }

    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
    png_infop info = png_create_info_struct(png);
    png_set_write_fn(png, &file, png_sample_append, png_sample_flush);
    png_set_IHDR(png, info, (png_uint_32)width, (png_uint_32)height, sample->depth,
                 sample->colour, sample->is_interlaced, 0, 0);
    if (sample->colour == 3)
        png_set_PLTE(png, info, palette, 1 << sample->depth);
    png_set_filter(png, 0, PNG_ALL_FILTERS);
    png_set_compression_buffer_size(png, 300); // several chunks of data
    png_set_rows(png, info, places);
    png_write_png(png, info, PNG_TRANSFORM_IDENTITY, NULL);
    png_destroy_write_struct(&png, &info);
    free(places);
    free(rows);
    return file;
}

static inline void png_file_free(png_file *file)
{
    free(file->bytes);
    free(file->pixels);
}

static inline void png_sample_put_u32(uint8_t *to, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        to[i] = (uint8_t)(value >> (24 - 8 * i));
}

static inline uint32_t png_sample_get_u32(const uint8_t *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

// Makes the checksums right, as far as the chunks reach.
static inline void png_sample_repair(uint8_t *bytes, size_t size)
{
    size_t at = 8;
    while (at + 12 <= size) {
        size_t length = png_sample_get_u32(bytes + at);
        if (length > size - at - 12)
            return;
        uLong sum = crc32(0, bytes + at + 4, (uInt)length + 4);
        png_sample_put_u32(bytes + at + 8 + length, (uint32_t)sum);
        at += 12 + length;
    }
}

// Puts a chunk in behind the header.
static inline void png_file_insert(png_file *file, const char *name, const uint8_t *data,
                                   size_t size)
{
    enum { AT = 33 };
    CHECK(file->size + size + 12 <= file->room);
    memmove(file->bytes + AT + size + 12, file->bytes + AT, file->size - AT);
    png_sample_put_u32(file->bytes + AT, (uint32_t)size);
    memcpy(file->bytes + AT + 4, name, 4);
    memcpy(file->bytes + AT + 8, data, size);
    file->size += size + 12;
    png_sample_repair(file->bytes, file->size);
}

#endif
