// SPDX-License-Identifier: MIT
// The whole picture, then a box drawn from the bytes. Where both succeed, the box's
// pixels are the whole's.
#include "fuzz_picture.h"

#include "base/memory.h"
#include "decode/decoder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Small, so that an input takes milliseconds.
static const fl_decode_limits LIMITS = {.max_pixels = 1 << 18, .max_scans = 20};

static fl_status decode_box(fl_decoder *decoder, const uint8_t *data, size_t size,
                            fl_box box, int32_t rows_a_call, uint8_t *pixels)
{
    fl_picture picture;
    fl_error error = FL_ERROR_INIT;
    size_t stride = (size_t)box.width * FL_PIXEL_SIZE;
    fl_status status =
        fl_decoder_open(decoder, data, size, &LIMITS, NULL, &picture, &error);
    if (status == FL_OK)
        status = fl_decoder_start(decoder, box, &error);
    fl_row_source rows = fl_decoder_rows(decoder);
    for (int32_t y = 0; y < box.height && status == FL_OK; y += rows_a_call) {
        int32_t count = rows_a_call < box.height - y ? rows_a_call : box.height - y;
        status =
            rows.read(rows.context, pixels + (size_t)y * stride, stride, count, &error);
    }
    if (status == FL_OK)
        status = fl_decoder_finish(decoder, &error);
    fl_decoder_close(decoder);
    if (status < 0 && !error.message[0])
        abort(); // an error says what it is
    return status;
}

static uint8_t *allocate_pixels(fl_box box)
{
    uint8_t *pixels = fl_alloc((size_t)box.width * (size_t)box.height * FL_PIXEL_SIZE);
    if (!pixels)
        exit(1);
    return pixels;
}

// FNV-1a over the bytes: the same box each time.
static uint64_t hash(const uint8_t *data, size_t size)
{
    uint64_t value = 0xcbf29ce484222325u;
    for (size_t i = 0; i < size; i++)
        value = (value ^ data[i]) * 0x100000001b3u;
    return value;
}

static fl_box draw_box(uint64_t random, int32_t width, int32_t height)
{
    fl_box box;
    box.width = 1 + (int32_t)(random % (uint32_t)width);
    box.height = 1 + (int32_t)((random >> 16) % (uint32_t)height);
    box.x = (int32_t)((random >> 32) % (uint32_t)(width - box.width + 1));
    box.y = (int32_t)((random >> 48) % (uint32_t)(height - box.height + 1));
    return box;
}

static void compare(const uint8_t *whole, int32_t width, const uint8_t *part, fl_box box)
{
    for (int32_t y = 0; y < box.height; y++)
        for (int32_t x = 0; x < box.width; x++) {
            size_t from = (size_t)(box.y + y) * (size_t)width + (size_t)(box.x + x);
            size_t to = (size_t)y * (size_t)box.width + (size_t)x;
            if (memcmp(whole + from * FL_PIXEL_SIZE, part + to * FL_PIXEL_SIZE, 3) == 0)
                continue;
            fprintf(stderr, "box %d %d %d %d of width %d differs at %d %d\n", box.x,
                    box.y, box.width, box.height, width, x, y);
            abort();
        }
}

void fuzz_picture(const uint8_t *data, size_t size)
{
    fl_decoder *decoder = NULL;
    fl_picture picture;
    if (fl_decoder_create(&decoder, NULL) != FL_OK)
        exit(1);
    fl_status status =
        fl_decoder_open(decoder, data, size, &LIMITS, NULL, &picture, NULL);
    fl_decoder_close(decoder);
    if (status == FL_OK) {
        uint64_t random = hash(data, size);
        fl_box all = {0, 0, picture.width, picture.height};
        fl_box box = draw_box(random, picture.width, picture.height);
        uint8_t *whole = allocate_pixels(all), *part = allocate_pixels(box);
        fl_status first = decode_box(decoder, data, size, all, all.height, whole);
        fl_status second =
            decode_box(decoder, data, size, box, 1 + (int32_t)(random % 5), part);
        if (first == FL_OK && second == FL_OK)
            compare(whole, picture.width, part, box);
        fl_free(part);
        fl_free(whole);
    }
    fl_decoder_destroy(decoder);
}
