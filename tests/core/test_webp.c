// SPDX-License-Identifier: MIT
// WebP decoding: whole pictures as libwebp gives them, boxes as the whole gives them, cut
// and damaged files, limits, cancellation, failing allocations, memory.
#include "check.h"

#ifdef FL_HAVE_WEBP
#include "webp_samples.h"

static fl_decoder *decoder;
static uint8_t pixels[64 * 64 * 4];
static const fl_box WHOLE = {0};

static fl_status decode(const uint8_t *bytes, size_t size, fl_box box, fl_error *error)
{
    return picture_decode(decoder, bytes, size, box, pixels, 64 * 64, 4, error);
}

static void check_samples(void)
{
    static const int sizes[][2] = {{1, 1}, {3, 2}, {5, 9}, {8, 40}, {33, 10}, {67, 45}};
    for (size_t i = 0; i < WEBP_SAMPLE_COUNT; i++)
        for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
            webp_file file = webp_sample_make(&WEBP_SAMPLES[i], sizes[s][0], sizes[s][1]);
            picture_check_boxes(decoder, file.bytes, file.size, file.pixels, file.width,
                                file.height, 60);
            webp_file_free(&file);
        }
}

// Columns and rows where upsampling and the loop filter would see a box's edge.
static void check_edges(void)
{
    for (size_t i = 0; i < WEBP_SAMPLE_COUNT; i++) {
        webp_file file = webp_sample_make(&WEBP_SAMPLES[i], 41, 35);
        for (int size = 1; size <= 3; size++) {
            for (int x = 0; x + size <= file.width; x++)
                picture_check_box(decoder, file.bytes, file.size, file.pixels, file.width,
                                  (fl_box){x, 2, size, 33}, 33);
            for (int y = 0; y + size <= file.height; y++)
                picture_check_box(decoder, file.bytes, file.size, file.pixels, file.width,
                                  (fl_box){2, y, 33, size}, 1);
        }
        webp_file_free(&file);
    }
}

static void check_cuts(void)
{
    for (size_t i = 0; i < WEBP_SAMPLE_COUNT; i++) {
        webp_file file = webp_sample_make(&WEBP_SAMPLES[i], 41, 35);
        for (size_t cut = 0; cut < file.size; cut++) {
            uint8_t *exact = malloc(cut ? cut : 1); // reads behind it are seen
            CHECK(exact);
            memcpy(exact, file.bytes, cut);
            fl_error error = FL_ERROR_INIT;
            fl_status status = decode(exact, cut, WHOLE, &error);
            if (cut > 0 && cut < 16)
                CHECK_INT(status, FL_NEEDS_PYTHON);
            else
                CHECK_INT(status, FL_ERROR_DATA);
            CHECK_INT(decode(exact, cut, (fl_box){2, 3, 20, 9}, NULL), status);
            // With RIFF's size right, so that the picture data itself is cut.
            if (cut >= 20 && cut % 2 == 0) {
                (void)webp_sample_put(exact + 4, (uint32_t)cut - 8, 4);
                (void)webp_sample_put(exact + 16, (uint32_t)cut - 20, 4);
                (void)decode(exact, cut, WHOLE, NULL);
                (void)decode(exact, cut, (fl_box){2, 3, 20, 9}, NULL);
            }
            free(exact);
        }
        webp_file_free(&file);
    }
}

static void check_damage(void)
{
    uint32_t random = 4711;
    int decoded = 0, refused = 0;
    for (size_t i = 0; i < WEBP_SAMPLE_COUNT; i++) {
        webp_file file = webp_sample_make(&WEBP_SAMPLES[i], 41, 35);
        uint8_t *damaged = malloc(file.size);
        CHECK(damaged);
        for (int round = 0; round < 300; round++) {
            memcpy(damaged, file.bytes, file.size);
            for (int k = 0; k < 1 + round % 3; k++)
                damaged[16 + picture_random(&random) % (uint32_t)(file.size - 16)] =
                    (uint8_t)picture_random(&random);
            fl_error error = FL_ERROR_INIT;
            fl_status status = decode(damaged, file.size, WHOLE, &error);
            if (status < 0)
                CHECK_CONTAINS(error.message, "the WebP of ");
            decoded += status == FL_OK;
            refused += status < 0;
        }
        free(damaged);
        webp_file_free(&file);
    }
    CHECK(decoded > 300 && refused > 300);
}

static void check_limits(void)
{
    for (size_t i = 0; i < WEBP_SAMPLE_COUNT; i++) {
        webp_file file = webp_sample_make(&WEBP_SAMPLES[i], 41, 35);
        const fl_decode_limits limits = {.max_pixels = file.width * file.height - 1};
        fl_picture picture;
        fl_error error = FL_ERROR_INIT;
        char text[64];
        snprintf(text, sizeof(text), "%d x %d pixels", file.width, file.height);
        CHECK_INT(fl_decoder_open(decoder, file.bytes, file.size, &limits, NULL, &picture,
                                  &error),
                  FL_ERROR_LIMIT);
        CHECK_CONTAINS(error.message, text);
        CHECK_INT(fl_decoder_warnings(decoder), 0);
        fl_decoder_close(decoder);
        webp_file_free(&file);
    }
}

static void check_cancel(void)
{
    webp_file file = webp_sample_make(&WEBP_SAMPLES[0], 41, 35);
    fl_cancel cancel = {0};
    fl_picture picture;
    fl_box box = {0, 0, 41, 35};
    CHECK_INT(fl_decoder_open(decoder, file.bytes, file.size, &PICTURE_LIMITS, &cancel,
                              &picture, NULL),
              FL_OK);
    CHECK_INT(fl_decoder_start(decoder, box, NULL), FL_OK);
    fl_row_source rows = fl_decoder_rows(decoder);
    CHECK_INT(rows.read(rows.context, pixels, 41 * 4, 3, NULL), FL_OK);
    fl_cancel_set(&cancel);
    CHECK_INT(rows.read(rows.context, pixels, 41 * 4, 3, NULL), FL_ERROR_CANCELLED);
    CHECK_INT(fl_decoder_start(decoder, box, NULL), FL_ERROR_CANCELLED);
    fl_decoder_close(decoder);
    webp_file_free(&file);
}

static void check_failing_allocations(void)
{
    webp_file file = webp_sample_make(&WEBP_SAMPLES[0], 41, 35);
    CHECK(picture_check_allocations(file.bytes, file.size, (fl_box){5, 5, 9, 9}) >= 2);
    webp_file_free(&file);
}

// The buffer, which libwebp's own memory comes beside, is in the estimate; so it grows
// with the picture and not with the canvas.
static void check_memory_estimate(void)
{
    for (size_t i = 0; i < WEBP_SAMPLE_COUNT; i++) {
        webp_file file = webp_sample_make(&WEBP_SAMPLES[i], 400, 300);
        fl_picture picture;
        CHECK_INT(fl_decoder_open(decoder, file.bytes, file.size, &PICTURE_LIMITS, NULL,
                                  &picture, NULL),
                  FL_OK);
        CHECK(picture.memory > (size_t)400 * 300 * 8);
        CHECK(picture.memory < (size_t)400 * 300 * 16);
        fl_decoder_close(decoder);
        webp_file_free(&file);
    }
}

int main(void)
{
    CHECK_INT(fl_decoder_create(&decoder, NULL), FL_OK);
    check_samples();
    check_edges();
    check_cuts();
    check_damage();
    check_limits();
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
    puts("libwebp is not installed: left out");
    return 0;
}
#endif
