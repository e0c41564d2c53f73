// SPDX-License-Identifier: MIT
// JPEG decoding: whole pictures as libjpeg gives them, boxes as the whole gives them, cut
// and damaged files, limits, cancellation, failing allocations.
#include "base/memory.h"
#include "decode/cmyk.h"
#include "decode/decoder.h"
#include "decode/end_marker.h"

#include "check.h"
#include "jpeg_samples.h"

#include <malloc.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED
#endif
#endif

static const fl_decode_limits LIMITS = {.max_pixels = 1 << 28, .max_scans = 100};
static fl_decoder *decoder;

static const jpeg_sample *find_sample(const char *name)
{
    for (size_t i = 0; i < JPEG_SAMPLE_COUNT; i++)
        if (strcmp(JPEG_SAMPLES[i].name, name) == 0)
            return &JPEG_SAMPLES[i];
    CHECK(0 && "sample");
    return NULL;
}

static fl_status decode_opened(fl_box box, uint8_t *pixels, size_t stride,
                               int32_t rows_a_call, fl_error *error)
{
    fl_status status = fl_decoder_start(decoder, box, error);
    fl_row_source rows = fl_decoder_rows(decoder);
    for (int32_t y = 0; y < box.height && status == FL_OK; y += rows_a_call) {
        int32_t count = rows_a_call < box.height - y ? rows_a_call : box.height - y;
        status =
            rows.read(rows.context, pixels + (size_t)y * stride, stride, count, error);
    }
    return status == FL_OK ? fl_decoder_finish(decoder, error) : status;
}

// An empty box means the whole picture. `pixels` has room.
static fl_status decode(const uint8_t *bytes, size_t size, fl_box box, uint8_t *pixels,
                        int32_t rows_a_call, fl_error *error)
{
    fl_picture picture;
    fl_status status =
        fl_decoder_open(decoder, bytes, size, &LIMITS, NULL, &picture, error);
    if (status == FL_OK) {
        if (box.width == 0)
            box = (fl_box){0, 0, picture.width, picture.height};
        CHECK(picture.width <= 4096 && picture.height <= 4096);
        status = decode_opened(box, pixels, (size_t)box.width * FL_PIXEL_SIZE,
                               rows_a_call, error);
    }
    fl_decoder_close(decoder);
    return status;
}

static const fl_box WHOLE = {0};

static void check_equal_rgb(const uint8_t *got, const uint8_t *want, size_t count)
{
    for (size_t i = 0; i < count; i++)
        CHECK(memcmp(got + i * 4, want + i * 4, 3) == 0);
}

static void check_box(const uint8_t *bytes, size_t size, const uint8_t *want, int width,
                      fl_box box, int32_t rows_a_call)
{
    size_t area = (size_t)box.width * (size_t)box.height * 4;
    uint8_t *pixels = malloc(area + 1);
    CHECK(pixels);
    pixels[area] = 0x5A;
    fl_error error = FL_ERROR_INIT;
    CHECK_INT(decode(bytes, size, box, pixels, rows_a_call, &error), FL_OK);
    for (int32_t y = 0; y < box.height; y++)
        check_equal_rgb(pixels + (size_t)(y * box.width) * 4,
                        want + (size_t)((box.y + y) * width + box.x) * 4,
                        (size_t)box.width);
    CHECK_INT(pixels[area], 0x5A);
    free(pixels);
}

static void check_boxes(const uint8_t *bytes, size_t size, const uint8_t *want, int width,
                        int height)
{
    uint32_t random = 99;
    for (int w = 1; w <= 5 && w <= width; w++) // where upsampling sees an edge
        for (int x = 0; x <= width - w; x++) {
            int y = (int)(jpeg_sample_random(&random) % (uint32_t)height);
            check_box(bytes, size, want, width, (fl_box){x, y, w, 1}, 1);
        }
    for (int i = 0; i < 150; i++) {
        int w = 1 + (int)(jpeg_sample_random(&random) % (uint32_t)width);
        int h = 1 + (int)(jpeg_sample_random(&random) % (uint32_t)height);
        int x = (int)(jpeg_sample_random(&random) % (uint32_t)(width - w + 1));
        int y = (int)(jpeg_sample_random(&random) % (uint32_t)(height - h + 1));
        check_box(bytes, size, want, width, (fl_box){x, y, w, h}, 1 + i % 7);
    }
}

static void check_samples(void)
{
    static const int sizes[][2] = {{1, 1}, {3, 2}, {8, 40}, {33, 10}, {41, 35}, {67, 33}};
    for (size_t i = 0; i < JPEG_SAMPLE_COUNT; i++)
        for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
            size_t size;
            int width, height;
            uint8_t *bytes =
                jpeg_sample_make(&JPEG_SAMPLES[i], sizes[s][0], sizes[s][1], &size);
            uint8_t *want = jpeg_sample_decode(bytes, size, &width, &height);
            size_t count = (size_t)width * (size_t)height;
            if (JPEG_SAMPLES[i].components == 4)
                fl_cmyk_to_rgbx(want, want, count);
            uint8_t *got = malloc(count * 4);
            CHECK(got);
            CHECK_INT(decode(bytes, size, WHOLE, got, 3, NULL), FL_OK);
            check_equal_rgb(got, want, count);
            check_boxes(bytes, size, want, width, height);
            free(got);
            free(want);
            free(bytes);
        }
}

// A whole decode of a cut file fails, or (the last bytes) gives the picture. A box fails:
// the end marker is missing.
static void check_cuts(void)
{
    static uint8_t got[41 * 35 * 4], want[41 * 35 * 4];
    for (size_t i = 0; i < JPEG_SAMPLE_COUNT; i++) {
        size_t size;
        uint8_t *bytes = jpeg_sample_make(&JPEG_SAMPLES[i], 41, 35, &size);
        CHECK_INT(decode(bytes, size, WHOLE, want, 35, NULL), FL_OK);
        size_t step = 1 + size / 400;
        for (size_t cut = 0; cut < size; cut += cut + 40 < size ? step : 1) {
            uint8_t *exact = malloc(cut ? cut : 1); // reads behind it are seen
            CHECK(exact);
            memcpy(exact, bytes, cut);
            fl_error error = FL_ERROR_INIT;
            fl_status status = decode(exact, cut, WHOLE, got, 35, &error);
            if (status == FL_OK)
                check_equal_rgb(got, want, 41 * 35);
            else if (status == FL_ERROR_DATA)
                CHECK(cut == 0 || strstr(error.message, "truncated"));
            else
                CHECK(status == FL_NEEDS_PYTHON && cut < 3);
            status = decode(exact, cut, (fl_box){2, 3, 20, 9}, got, 4, &error);
            CHECK(status == FL_ERROR_DATA || (status == FL_NEEDS_PYTHON && cut < 3));
            free(exact);
        }
        free(bytes);
    }
}

static void check_damage(void)
{
    static uint8_t pixels[4096 * 64 * 4];
    uint32_t random = 4711;
    int64_t warned = 0;
    for (size_t i = 0; i < JPEG_SAMPLE_COUNT; i++) {
        size_t size;
        uint8_t *bytes = jpeg_sample_make(&JPEG_SAMPLES[i], 41, 35, &size);
        uint8_t *damaged = malloc(size);
        CHECK(damaged);
        for (int round = 0; round < 200; round++) {
            memcpy(damaged, bytes, size);
            for (int k = 0; k < 1 + round % 3; k++)
                damaged[160 + jpeg_sample_random(&random) % (uint32_t)(size - 160)] =
                    (uint8_t)jpeg_sample_random(&random);
            fl_picture picture;
            fl_error error = FL_ERROR_INIT;
            fl_status status =
                fl_decoder_open(decoder, damaged, size, &LIMITS, NULL, &picture, &error);
            if (status == FL_OK && (int64_t)picture.width * picture.height <= 4096 * 64)
                status = decode_opened((fl_box){0, 0, picture.width, picture.height},
                                       pixels, (size_t)picture.width * 4, 8, &error);
            if (status != FL_OK)
                CHECK_CONTAINS(error.message, "the JPEG of ");
            warned += fl_decoder_warnings(decoder) > 0;
            fl_decoder_close(decoder);
        }
        free(damaged);
        free(bytes);
    }
    CHECK(warned > 100);
    CHECK_INT(fl_decoder_warnings(decoder), 0); // nothing is open
}

static uint8_t *find_marker(uint8_t *bytes, size_t size, int first, int last)
{
    for (size_t i = 2; i + 4 < size;
         i += 2 + (size_t)(bytes[i + 2] << 8 | bytes[i + 3])) {
        CHECK_INT(bytes[i], 0xFF);
        if (bytes[i + 1] >= first && bytes[i + 1] <= last)
            return bytes + i;
    }
    CHECK(0 && "marker");
    return NULL;
}

static void check_refused(const uint8_t *bytes, size_t size,
                          const fl_decode_limits *limits, fl_status want,
                          const char *text)
{
    fl_picture picture;
    fl_error error = FL_ERROR_INIT;
    CHECK_INT(fl_decoder_open(decoder, bytes, size, limits, NULL, &picture, &error),
              want);
    fl_decoder_close(decoder);
    CHECK_CONTAINS(error.message, text);
    CHECK_INT(error.code, want);
}

static void check_headers(void)
{
    size_t size;
    uint8_t *bytes =
        jpeg_sample_make(find_sample("420-progressive"), 41, 35, &size); // progressive
    uint8_t *sof = find_marker(bytes, size, 0xC0, 0xC2);
    fl_picture picture;
    uint8_t saved[10];
    memcpy(saved, sof, sizeof(saved));

    fl_decode_limits small = {.max_pixels = 41 * 35 - 1, .max_scans = 100};
    check_refused(bytes, size, &small, FL_ERROR_LIMIT, "41 x 35 pixels");
    sof[5] = sof[7] = 0xFF; // 65500 x 65500
    sof[6] = sof[8] = 0xDC;
    check_refused(bytes, size, &LIMITS, FL_ERROR_LIMIT, "65500 x 65500 pixels");
    fl_decode_limits none = {.max_pixels = INT64_MAX, .max_scans = 100};
    CHECK_INT(fl_decoder_open(decoder, bytes, size, &none, NULL, &picture, NULL), FL_OK);
    CHECK(picture.memory > (size_t)65500 * 65500 * 3); // for who has to budget it
    fl_decoder_close(decoder);
    sof[6] = 0xDD;
    check_refused(bytes, size, &none, FL_ERROR_LIMIT, "65500 pixels");
    sof[5] = sof[6] = 0;
    check_refused(bytes, size, &LIMITS, FL_ERROR_DATA, "DNL");
    memcpy(sof, saved, sizeof(saved));
    sof[4] = 12;
    check_refused(bytes, size, &LIMITS, FL_ERROR_UNSUPPORTED, "12");
    sof[4] = 8;
    sof[1] = 0xC5; // hierarchical
    check_refused(bytes, size, &LIMITS, FL_ERROR_UNSUPPORTED, "SOF type 0xc5");
    memcpy(sof, saved, sizeof(saved));
    free(bytes);

    check_refused((const uint8_t *)"", 0, &LIMITS, FL_ERROR_DATA, "the file is empty");
    CHECK_INT(fl_decoder_open(decoder, (const uint8_t *)"GIF89a..", 8, &LIMITS, NULL,
                              &picture, NULL),
              FL_NEEDS_PYTHON);
    fl_decoder_close(decoder);
}

// Scans repeated behind the last one.
static void check_scan_bomb(void)
{
    enum { COPIES = 120 };
    static uint8_t pixels[41 * 35 * 4];
    size_t size, last = 0;
    uint8_t *bytes = jpeg_sample_make(find_sample("420-progressive"), 41, 35, &size);
    for (size_t i = 0; i + 1 < size; i++)
        if (bytes[i] == 0xFF && bytes[i + 1] == 0xDA)
            last = i;
    size_t scan = size - 2 - last;
    uint8_t *bomb = malloc(size + COPIES * scan);
    CHECK(bomb);
    memcpy(bomb, bytes, size - 2);
    for (size_t i = 0; i < COPIES; i++)
        memcpy(bomb + size - 2 + i * scan, bytes + last, scan);
    memcpy(bomb + size - 2 + COPIES * scan, "\xFF\xD9", 2);
    fl_error error = FL_ERROR_INIT;
    CHECK_INT(decode(bomb, size + COPIES * scan, WHOLE, pixels, 35, &error),
              FL_ERROR_LIMIT);
    CHECK_CONTAINS(error.message, "more than 100 scans");
    CHECK_INT(decode(bytes, size, WHOLE, pixels, 35, &error), FL_OK);
    free(bomb);
    free(bytes);
}

static void check_cancel(void)
{
    static uint8_t pixels[41 * 35 * 4];
    for (size_t i = 0; i < JPEG_SAMPLE_COUNT; i++) {
        size_t size;
        uint8_t *bytes = jpeg_sample_make(&JPEG_SAMPLES[i], 41, 35, &size);
        fl_cancel cancel = {0};
        fl_picture picture;
        fl_error error = FL_ERROR_INIT;
        CHECK_INT(fl_decoder_open(decoder, bytes, size, &LIMITS, &cancel, &picture, NULL),
                  FL_OK);
        CHECK_INT(fl_decoder_start(decoder, (fl_box){0, 0, 41, 35}, NULL), FL_OK);
        fl_row_source rows = fl_decoder_rows(decoder);
        CHECK_INT(rows.read(rows.context, pixels, 41 * 4, 3, NULL), FL_OK);
        fl_cancel_set(&cancel);
        CHECK_INT(rows.read(rows.context, pixels, 41 * 4, 3, &error), FL_ERROR_CANCELLED);
        fl_decoder_close(decoder);
        free(bytes);
    }
}

static void check_failing_allocations(void)
{
    static uint8_t pixels[41 * 35 * 4];
    size_t size;
    uint8_t *bytes = jpeg_sample_make(find_sample("420"), 41, 35, &size);
    int64_t live = fl_memory_live();
    fl_decoder *saved = decoder;
    fl_status status = FL_ERROR_NO_MEMORY;
    for (int n = 0; status == FL_ERROR_NO_MEMORY; n++) {
        CHECK(n < 10);
        fl_error error = FL_ERROR_INIT;
        decoder = NULL;
        fl_memory_fail_at(n);
        status = fl_decoder_create(&decoder, &error);
        if (status == FL_OK)
            status = decode(bytes, size, (fl_box){5, 5, 9, 9}, pixels, 4, &error);
        fl_memory_fail_at(-1);
        CHECK_INT(error.code, status);
        fl_decoder_destroy(decoder);
        CHECK_INT(fl_memory_live(), live);
    }
    CHECK_INT(status, FL_OK);
    decoder = saved;
    free(bytes);
}

// The estimate covers what libjpeg takes from the system, and is not far beyond it.
static void check_memory_estimate(void)
{
#ifndef SANITIZED // whose allocators do not count
    static uint8_t pixels[700 * 4];
    for (size_t i = 0; i < JPEG_SAMPLE_COUNT; i++) {
        size_t size;
        uint8_t *bytes = jpeg_sample_make(&JPEG_SAMPLES[i], 700, 500, &size);
        fl_decoder *fresh = NULL, *saved = decoder;
        fl_picture picture;
        struct mallinfo2 before = mallinfo2();
        CHECK_INT(fl_decoder_create(&fresh, NULL), FL_OK);
        decoder = fresh;
        CHECK_INT(fl_decoder_open(fresh, bytes, size, &LIMITS, NULL, &picture, NULL),
                  FL_OK);
        CHECK_INT(fl_decoder_start(fresh, (fl_box){0, 100, 660, 50}, NULL), FL_OK);
        fl_row_source rows = fl_decoder_rows(fresh);
        CHECK_INT(rows.read(rows.context, pixels, 2800, 1, NULL), FL_OK);
        struct mallinfo2 after = mallinfo2();
        size_t taken = after.uordblks + after.hblkhd - before.uordblks - before.hblkhd;
        if (taken > 0) { // valgrind's allocator does not count either
            CHECK(taken <= picture.memory);
            CHECK(picture.memory <= 2 * taken + (128 << 10));
        }
        fl_decoder_destroy(fresh); // closes
        decoder = saved;
        free(bytes);
    }
#endif
}

static void check_rest(const char *text, size_t size, int marker, bool has_restarts,
                       fl_jpeg_rest want)
{
    int found = 0;
    CHECK_INT(
        fl_jpeg_check_rest((const uint8_t *)text, size, marker, has_restarts, &found),
        want);
}

#define REST(text, marker, restarts, want)                                               \
    check_rest(text, sizeof(text) - 1, marker, restarts, FL_JPEG_REST_##want)

static void check_end_marker(void)
{
    REST("", 0, false, TRUNCATED);
    REST("", 0xD9, false, WHOLE);
    REST("", 0xD0, true, TRUNCATED);
    REST("\xFF\xD9", 0, false, WHOLE);
    REST("abc\xFF\xD9trailer\xFF", 0, false, WHOLE);
    REST("abc\xFF\xFF\xFF\xD9", 0, false, WHOLE);
    REST("abc\xFF", 0, false, TRUNCATED);
    REST("abc\xFF\x00\xD9", 0, false, TRUNCATED);
    REST("a\xFF\x00\xFF\xD3zz\xFF\xD9", 0, true, WHOLE);
    REST("a\xFF\xD3zz", 0, true, TRUNCATED);
    REST("a\xFF\xAEzz\xFF\xD9", 0, false, BROKEN);
    REST("a\xFF\xAEzz\xFF\xD9", 0, true, WHOLE); // libjpeg looks for the next restart
    REST("a\xFF\xDA", 0, false, BROKEN);         // a second scan where one is due
    REST("\xFF\xFE\x00\x04\xFF\xD9", 0, false, TRUNCATED); // an end inside a comment
    REST("\xFF\xFE\x00\x04\xFF\xD9\xFF\xD9", 0, false, WHOLE);
    REST("\xFF\xFE\xFF", 0, false, TRUNCATED);
    REST("\xFF\xFE\x00\x02\xFF\xAE\xFF\xD9", 0, true, BROKEN); // no longer in the scan
    REST("\x00\x03z\xFF\xD9", 0xE1, false, WHOLE); // the segment's marker was taken
}

// By hand from the definition: K' = 255 - K and so on are what Pillow holds.
static void check_cmyk(void)
{
    static const uint8_t from[][4] = {
        {255, 255, 255, 255}, {0, 0, 0, 255},      {255, 0, 128, 255},
        {255, 255, 255, 0},   {100, 200, 50, 128},
    };
    // 128 - round(155 * 128 / 255) = 128 - 78, 128 - round(55 * 128 / 255) = 128 - 28,
    // 128 - round(205 * 128 / 255) = 128 - 103
    static const uint8_t want[][3] = {
        {255, 255, 255}, {0, 0, 0}, {255, 0, 128}, {0, 0, 0}, {50, 100, 25}};
    uint8_t to[5][4];
    fl_cmyk_to_rgbx(from[0], to[0], 5);
    for (int i = 0; i < 5; i++)
        CHECK(memcmp(to[i], want[i], 3) == 0);
}

int main(void)
{
    fl_decoder_destroy(NULL);
    CHECK_INT(fl_decoder_create(&decoder, NULL), FL_OK);
    fl_decoder_close(decoder); // nothing is open
    check_cmyk();
    check_end_marker();
    check_samples();
    check_cuts();
    check_damage();
    check_headers();
    check_scan_bomb();
    check_cancel();
    check_failing_allocations();
    check_memory_estimate();
    fl_decoder_destroy(decoder);
    CHECK_INT(fl_memory_live(), 0);
    return 0;
}
