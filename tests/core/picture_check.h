// SPDX-License-Identifier: MIT
// What the tests of the decoders share: decode bytes and compare with the pixels wanted.
// `picture_wanted` is RGBX, as from the decoder.
#ifndef FL_TESTS_PICTURE_CHECK_H
#define FL_TESTS_PICTURE_CHECK_H

#include "base/memory.h"
#include "decode/decoder.h"

#include "check.h"

static const fl_decode_limits PICTURE_LIMITS = {.max_pixels = 1 << 28, .max_scans = 100};
enum { PICTURE_MAX_SIDE = 4096 };

static inline uint32_t picture_random(uint32_t *state)
{
    *state = *state * 1664525 + 1013904223;
    return *state >> 8;
}

static inline fl_status picture_decode_opened(fl_decoder *decoder, fl_box box,
                                              uint8_t *pixels, int32_t rows_a_call,
                                              fl_error *error)
{
    size_t stride = (size_t)box.width * FL_PIXEL_SIZE;
    fl_status status = fl_decoder_start(decoder, box, error);
    fl_row_source rows = fl_decoder_rows(decoder);
    for (int32_t y = 0; y < box.height && status == FL_OK; y += rows_a_call) {
        int32_t count = rows_a_call < box.height - y ? rows_a_call : box.height - y;
        status =
            rows.read(rows.context, pixels + (size_t)y * stride, stride, count, error);
    }
    return status == FL_OK ? fl_decoder_finish(decoder, error) : status;
}

// An empty box means the whole picture, which must fit in `room` pixels.
static inline fl_status picture_decode(fl_decoder *decoder, const uint8_t *bytes,
                                       size_t size, fl_box box, uint8_t *pixels,
                                       int64_t room, int32_t rows_a_call, fl_error *error)
{
    fl_picture picture;
    fl_status status =
        fl_decoder_open(decoder, bytes, size, &PICTURE_LIMITS, NULL, &picture, error);
    if (status == FL_OK) {
        bool is_inside =
            box.x + box.width <= picture.width && box.y + box.height <= picture.height;
        if (box.width == 0)
            box = (fl_box){0, 0, picture.width, picture.height};
        if (is_inside && (int64_t)box.width * box.height <= room)
            status = picture_decode_opened(decoder, box, pixels, rows_a_call, error);
        else
            status = FL_BUSY; // damaged: another size
    }
    fl_decoder_close(decoder);
    return status;
}

static inline void picture_check_rgb(const uint8_t *got, const uint8_t *want,
                                     size_t count)
{
    for (size_t i = 0; i < count; i++)
        CHECK(memcmp(got + i * 4, want + i * 4, 3) == 0);
}

static inline void picture_check_box(fl_decoder *decoder, const uint8_t *bytes,
                                     size_t size, const uint8_t *want, int width,
                                     fl_box box, int32_t rows_a_call)
{
    size_t area = (size_t)box.width * (size_t)box.height * 4;
    uint8_t *pixels = malloc(area + 1);
    CHECK(pixels);
    pixels[area] = 0x5A;
    CHECK_INT(picture_decode(decoder, bytes, size, box, pixels,
                             (int64_t)box.width * box.height, rows_a_call, NULL),
              FL_OK);
    for (int32_t y = 0; y < box.height; y++)
        picture_check_rgb(pixels + (size_t)(y * box.width) * 4,
                          want + (size_t)((box.y + y) * width + box.x) * 4,
                          (size_t)box.width);
    CHECK_INT(pixels[area], 0x5A);
    free(pixels);
}

static inline void picture_check_boxes(fl_decoder *decoder, const uint8_t *bytes,
                                       size_t size, const uint8_t *want, int width,
                                       int height, int count)
{
    uint32_t random = 99;
    picture_check_box(decoder, bytes, size, want, width, (fl_box){0, 0, width, height},
                      3);
    for (int i = 0; i < count; i++) {
        int w = 1 + (int)(picture_random(&random) % (uint32_t)width);
        int h = 1 + (int)(picture_random(&random) % (uint32_t)height);
        int x = (int)(picture_random(&random) % (uint32_t)(width - w + 1));
        int y = (int)(picture_random(&random) % (uint32_t)(height - h + 1));
        picture_check_box(decoder, bytes, size, want, width, (fl_box){x, y, w, h},
                          1 + i % 7);
    }
}

// Each allocation of the core fails in turn; then all succeed. How many there are.
static inline int picture_check_allocations(const uint8_t *bytes, size_t size, fl_box box)
{
    static uint8_t pixels[64 * 64 * 4];
    int64_t live = fl_memory_live();
    fl_status status = FL_ERROR_NO_MEMORY;
    int n;
    for (n = 0; status == FL_ERROR_NO_MEMORY; n++) {
        CHECK(n < 100);
        fl_decoder *decoder = NULL;
        fl_error error = FL_ERROR_INIT;
        fl_memory_fail_at(n);
        status = fl_decoder_create(&decoder, &error);
        if (status == FL_OK)
            status =
                picture_decode(decoder, bytes, size, box, pixels, 64 * 64, 4, &error);
        fl_memory_fail_at(-1);
        CHECK_INT(error.code, status);
        fl_decoder_destroy(decoder);
        CHECK_INT(fl_memory_live(), live);
    }
    CHECK_INT(status, FL_OK);
    return n - 1;
}

#endif
