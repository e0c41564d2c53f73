// SPDX-License-Identifier: MIT
// PNG decoding: every kind and box, cut and damaged files, limits, cancellation, failing
// allocations, memory.
#include "check.h"

#ifdef FL_HAVE_PNG
#include "png_samples.h"

#include <malloc.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED
#endif
#endif

static fl_decoder *decoder;
static uint8_t pixels[64 * 64 * 4];
static const fl_box WHOLE = {0};

static const png_sample *find_sample(const char *name)
{
    for (size_t i = 0; i < PNG_SAMPLE_COUNT; i++)
        if (strcmp(PNG_SAMPLES[i].name, name) == 0)
            return &PNG_SAMPLES[i];
    CHECK(0 && "sample");
    return NULL;
}

static fl_status decode(const uint8_t *bytes, size_t size, fl_box box, fl_error *error)
{
    return picture_decode(decoder, bytes, size, box, pixels, 64 * 64, 4, error);
}

static void check_samples(void)
{
    static const int sizes[][2] = {{1, 1}, {3, 2}, {5, 9}, {8, 40}, {33, 10}, {67, 33}};
    for (size_t i = 0; i < PNG_SAMPLE_COUNT; i++)
        for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
            png_file file = png_sample_make(&PNG_SAMPLES[i], sizes[s][0], sizes[s][1]);
            picture_check_boxes(decoder, file.bytes, file.size, file.pixels, file.width,
                                file.height, 40);
            png_file_free(&file);
        }
}

// Of the cuts, those behind the last row may pass; a box above it needs the end as well.
static void check_cuts(void)
{
    for (size_t i = 0; i < PNG_SAMPLE_COUNT; i++) {
        png_file file = png_sample_make(&PNG_SAMPLES[i], 21, 15);
        int passed = 0;
        for (size_t cut = 0; cut < file.size; cut++) {
            uint8_t *exact = malloc(cut ? cut : 1); // reads behind it are seen
            CHECK(exact);
            memcpy(exact, file.bytes, cut);
            fl_error error = FL_ERROR_INIT;
            fl_status whole = decode(exact, cut, WHOLE, &error);
            if (whole == FL_OK) {
                picture_check_rgb(pixels, file.pixels, 21 * 15);
                CHECK(cut + 24 > file.size);
                passed++;
            } else if (whole == FL_ERROR_DATA) {
                CHECK(cut == 0 || strstr(error.message, "truncated"));
            } else {
                CHECK(whole == FL_NEEDS_PYTHON && cut < 8);
            }
            CHECK_INT(decode(exact, cut, (fl_box){2, 3, 15, 5}, NULL), whole);
            free(exact);
        }
        CHECK(passed > 0);
        png_file_free(&file);
    }
}

static void check_damage(void)
{
    uint32_t random = 4711;
    int decoded = 0, refused = 0;
    for (size_t i = 0; i < PNG_SAMPLE_COUNT; i++) {
        png_file file = png_sample_make(&PNG_SAMPLES[i], 21, 15);
        uint8_t *damaged = malloc(file.size);
        CHECK(damaged);
        for (int round = 0; round < 300; round++) {
            memcpy(damaged, file.bytes, file.size);
            for (int k = 0; k < 1 + round % 3; k++)
                damaged[8 + picture_random(&random) % (uint32_t)(file.size - 8)] =
                    (uint8_t)picture_random(&random);
            if (round % 4)
                png_sample_repair(damaged, file.size);
            fl_error error = FL_ERROR_INIT;
            fl_status status = decode(damaged, file.size, WHOLE, &error);
            if (status < 0)
                CHECK_CONTAINS(error.message, "the PNG");
            decoded += status == FL_OK;
            refused += status < 0;
        }
        free(damaged);
        png_file_free(&file);
    }
    CHECK(decoded > 500 && refused > 500);
}

static void check_refused(const uint8_t *bytes, size_t size, int64_t max_pixels,
                          fl_status want, const char *text)
{
    const fl_decode_limits limits = {.max_pixels = max_pixels, .max_scans = 100};
    fl_picture picture;
    fl_error error = FL_ERROR_INIT;
    CHECK_INT(fl_decoder_open(decoder, bytes, size, &limits, NULL, &picture, &error),
              want);
    fl_decoder_close(decoder);
    CHECK_CONTAINS(error.message, text);
}

static void check_headers(void)
{
    png_file file = png_sample_make(find_sample("rgb8"), 21, 15);
    uint8_t *header = file.bytes + 16;
    check_refused(file.bytes, file.size, 21 * 15 - 1, FL_ERROR_LIMIT, "21 x 15 pixels");
    png_sample_put_u32(header, 0x7FFFFFFF);
    png_sample_put_u32(header + 4, 0x7FFFFFFF);
    check_refused(file.bytes, file.size, 1 << 30, FL_ERROR_DATA, "a checksum is wrong");
    png_sample_repair(file.bytes, file.size);
    check_refused(file.bytes, file.size, 1 << 30, FL_ERROR_LIMIT,
                  "2147483647 x 2147483647 pixels");
    png_sample_put_u32(header, 0x80000000);
    png_sample_repair(file.bytes, file.size);
    check_refused(file.bytes, file.size, INT64_MAX, FL_ERROR_DATA, "impossible width");
    png_sample_put_u32(header, 21);
    header[8] = 3;
    png_sample_repair(file.bytes, file.size);
    check_refused(file.bytes, file.size, INT64_MAX, FL_ERROR_DATA, "impossible depth");
    png_file_free(&file);
}

// An interlaced picture is unpacked whole: who budgets memory hears of it.
static void check_promised_memory(void)
{
    const fl_decode_limits none = {.max_pixels = INT64_MAX, .max_scans = 100};
    fl_picture picture;
    for (int is_interlaced = 0; is_interlaced < 2; is_interlaced++) {
        png_file file = png_sample_make(
            find_sample(is_interlaced ? "rgba16-interlaced" : "rgba16"), 21, 15);
        png_sample_put_u32(file.bytes + 16, 100000);
        png_sample_put_u32(file.bytes + 20, 100000);
        png_sample_repair(file.bytes, file.size);
        CHECK_INT(
            fl_decoder_open(decoder, file.bytes, file.size, &none, NULL, &picture, NULL),
            FL_OK);
        if (is_interlaced)
            CHECK(picture.memory > (size_t)100000 * 100000 * 4);
        else
            CHECK(picture.memory < (size_t)100000 * 40);
        fl_decoder_close(decoder);
        png_file_free(&file);
    }
}

static void check_bombs(void)
{
    enum { EXPANDED = (1 << 20) + 1 };
    static uint8_t zeros[EXPANDED], chunk[8192];
    static const char *const names[] = {"zTXt", "iTXt", "iCCP"};
    for (size_t i = 0; i < 3; i++)
        for (size_t expanded = EXPANDED - 1; expanded <= EXPANDED; expanded++) {
            png_file file = png_sample_make(find_sample("grey8"), 21, 15);
            size_t head = i == 1 ? 6 : 3;
            memcpy(chunk, i == 1 ? "k\0\1\0\0\0" : "k\0\0", head);
            uLongf size = sizeof(chunk) - head;
            CHECK_INT(compress2(chunk + head, &size, zeros, expanded, 9), Z_OK);
            png_file_insert(&file, names[i], chunk, head + size);
            if (expanded < EXPANDED)
                CHECK_INT(decode(file.bytes, file.size, WHOLE, NULL), FL_OK);
            else
                check_refused(file.bytes, file.size, 1 << 20, FL_ERROR_LIMIT,
                              "expand to more");
            png_file_free(&file);
        }
}

// A palette is needed to know the colours; Pillow knows what it does without one.
static void check_left_to_pillow(void)
{
    png_file file = png_sample_make(find_sample("palette8"), 21, 15);
    memcpy(file.bytes + 33 + 4, "abCD", 4); // was PLTE
    png_sample_repair(file.bytes, file.size);
    fl_picture picture;
    CHECK_INT(fl_decoder_open(decoder, file.bytes, file.size, &PICTURE_LIMITS, NULL,
                              &picture, NULL),
              FL_NEEDS_PYTHON);
    CHECK_INT(fl_decoder_warnings(decoder), 0); // nothing is open
    png_file_free(&file);
}

static void check_cancel(void)
{
    for (size_t i = 0; i < PNG_SAMPLE_COUNT; i++) {
        png_file file = png_sample_make(&PNG_SAMPLES[i], 21, 15);
        fl_cancel cancel = {0};
        fl_picture picture;
        CHECK_INT(fl_decoder_open(decoder, file.bytes, file.size, &PICTURE_LIMITS,
                                  &cancel, &picture, NULL),
                  FL_OK);
        if (!PNG_SAMPLES[i].is_interlaced) {
            CHECK_INT(fl_decoder_start(decoder, (fl_box){0, 0, 21, 15}, NULL), FL_OK);
            fl_row_source rows = fl_decoder_rows(decoder);
            CHECK_INT(rows.read(rows.context, pixels, 21 * 4, 3, NULL), FL_OK);
            fl_cancel_set(&cancel);
            CHECK_INT(rows.read(rows.context, pixels, 21 * 4, 3, NULL),
                      FL_ERROR_CANCELLED);
        } else {
            fl_cancel_set(&cancel);
            CHECK_INT(fl_decoder_start(decoder, (fl_box){0, 0, 21, 15}, NULL),
                      FL_ERROR_CANCELLED);
        }
        fl_decoder_close(decoder);
        CHECK_INT(fl_decoder_open(decoder, file.bytes, file.size, &PICTURE_LIMITS,
                                  &cancel, &picture, NULL),
                  FL_ERROR_CANCELLED);
        fl_decoder_close(decoder);
        png_file_free(&file);
    }
}

static void check_failing_allocations(void)
{
    static const uint8_t text[] = "k\0\0\x78\x9c\x03\0\0\0\0\1"; // packed: nothing
    for (int is_interlaced = 0; is_interlaced < 2; is_interlaced++) {
        png_file file = png_sample_make(
            find_sample(is_interlaced ? "grey4-interlaced" : "grey4"), 21, 15);
        int plain =
            picture_check_allocations(file.bytes, file.size, (fl_box){5, 5, 9, 9});
        CHECK(plain > 5); // libpng's and zlib's are among them
        png_file_free(&file);
    }
    // Without memory to look at a text it is not to be trusted.
    png_file file = png_sample_make(find_sample("grey4"), 21, 15);
    png_file_insert(&file, "zTXt", text, sizeof(text) - 1);
    CHECK_INT(decode(file.bytes, file.size, WHOLE, NULL), FL_OK);
    fl_memory_fail_at(0);
    CHECK_INT(decode(file.bytes, file.size, WHOLE, NULL), FL_ERROR_LIMIT);
    fl_memory_fail_at(-1);
    png_file_free(&file);
}

// The estimate covers what is taken, and is not far beyond it.
static void check_memory_estimate(void)
{
#ifndef SANITIZED // whose allocators do not count
    for (size_t i = 0; i < PNG_SAMPLE_COUNT; i++) {
        png_file file = png_sample_make(&PNG_SAMPLES[i], 400, 300);
        fl_decoder *fresh = NULL;
        fl_picture picture;
        struct mallinfo2 before = mallinfo2();
        CHECK_INT(fl_decoder_create(&fresh, NULL), FL_OK);
        CHECK_INT(fl_decoder_open(fresh, file.bytes, file.size, &PICTURE_LIMITS, NULL,
                                  &picture, NULL),
                  FL_OK);
        CHECK_INT(fl_decoder_start(fresh, (fl_box){0, 100, 60, 50}, NULL), FL_OK);
        fl_row_source rows = fl_decoder_rows(fresh);
        CHECK_INT(rows.read(rows.context, pixels, 240, 1, NULL), FL_OK);
        struct mallinfo2 after = mallinfo2();
        size_t taken = after.uordblks + after.hblkhd - before.uordblks - before.hblkhd;
        if (taken > 0) { // valgrind's allocator does not count either
            CHECK(taken <= picture.memory);
            CHECK(picture.memory <= 2 * taken + (128 << 10));
        }
        fl_decoder_destroy(fresh); // closes
        png_file_free(&file);
    }
#endif
}

int main(void)
{
    CHECK_INT(fl_decoder_create(&decoder, NULL), FL_OK);
    check_samples();
    check_cuts();
    check_damage();
    check_headers();
    check_promised_memory();
    check_bombs();
    check_left_to_pillow();
    check_cancel();
    check_failing_allocations();
    check_memory_estimate();
    fl_decoder_destroy(decoder);
    CHECK_INT(fl_memory_live(), 0);
    return 0;
}
#else
int main(void)
{
    puts("libpng is not installed: left out");
    return 0;
}
#endif
