// SPDX-License-Identifier: MIT
// What the steps of a transform cost: the store alone, and resizes to 224 x 224, from
// pixels in memory. The median of thread CPU time, by the best kernels and by the
// definitions.
#include "base/clock.h"
#include "base/cpu.h"
#include "base/memory.h"
#include "data/scratch.h"
#include "transform/chain.h"
#include "transform/filter.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WIDTH = 500, HEIGHT = 375, ROUNDS = 301, CALLS = 5, MAX_STEPS = 3 };

typedef struct memory_rows {
    const uint8_t *pixels; // WIDTH pixels a row
    fl_box box;
    int32_t y;
} memory_rows;

typedef struct question {
    const char *text;
    int32_t width, height; // of the picture: a corner of the pixels
    fl_pixel_layout layout;
    fl_op_spec ops[MAX_STEPS];
    int32_t count;
} question;

static fl_status read_memory(void *context, uint8_t *rows, size_t stride, int32_t count,
                             fl_error *error)
{
    (void)error;
    memory_rows *source = context;
    for (int32_t i = 0; i < count; i++, source->y++) {
        size_t at = (size_t)(source->box.y + source->y) * WIDTH + (size_t)source->box.x;
        memcpy(rows + (size_t)i * stride, source->pixels + at * FL_PIXEL_SIZE,
               (size_t)source->box.width * FL_PIXEL_SIZE);
    }
    return FL_OK;
}

static void check(fl_status status, const question *asked, const fl_error *error)
{
    if (status == FL_OK)
        return;
    fprintf(stderr, "%s: %s\n", asked->text, error->message);
    exit(1);
}

static int compare(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

// Microseconds for one draw and apply.
static double measure(const question *asked, const fl_chain *chain, fl_scratch *scratch,
                      const uint8_t *pixels, uint8_t *out)
{
    fl_chain_draw draw;
    fl_error error = FL_ERROR_INIT;
    int64_t start = fl_clock_thread_cpu();
    for (int32_t i = 0; i < CALLS; i++) {
        check(fl_chain_make_draw(chain, asked->width, asked->height, 1, 2, &draw, &error),
              asked, &error);
        check(fl_scratch_reserve(scratch, draw.scratch, &error), asked, &error);
        memory_rows rows = {.pixels = pixels, .box = draw.region};
        fl_row_source source = {.read = read_memory, .context = &rows};
        check(fl_chain_apply(chain, &draw, source, scratch, out, &error), asked, &error);
    }
    return (double)(fl_clock_thread_cpu() - start) / CALLS / 1000;
}

static double ask(const question *asked, const uint8_t *pixels)
{
    double times[ROUNDS];
    fl_chain *chain = NULL;
    fl_chain_draw draw;
    fl_scratch scratch;
    fl_error error = FL_ERROR_INIT;
    fl_scratch_init(&scratch);
    check(fl_chain_create(asked->ops, asked->count, asked->layout, &chain, &error), asked,
          &error);
    check(fl_chain_make_draw(chain, asked->width, asked->height, 1, 2, &draw, &error),
          asked, &error);
    uint8_t *out = fl_alloc_aligned(64, draw.size);
    check(out ? FL_OK : fl_error_no_memory(&error), asked, &error);
    for (int32_t round = 0; round < ROUNDS; round++)
        times[round] = measure(asked, chain, &scratch, pixels, out);
    qsort(times, ROUNDS, sizeof(times[0]), compare);
    fl_free(out);
    fl_scratch_deinit(&scratch);
    fl_chain_destroy(chain);
    return times[ROUNDS / 2];
}

int main(void)
{
    static const double resize[] = {224, 224, -1, FL_FILTER_BILINEAR, 0};
    static const double lanczos[] = {224, 224, -1, FL_FILTER_LANCZOS, 0};
    static const double bicubic[] = {224, 224, -1, FL_FILTER_BICUBIC, 0};
    static const double hamming[] = {224, 224, -1, FL_FILTER_HAMMING, 0};
    static const double box[] = {224, 224, -1, FL_FILTER_BOX, 0};
    static const double nearest[] = {224, 224, -1, FL_FILTER_NEAREST, 0};
    static const double crop[] = {224, 224, 1, 4, 4, 4, 4, 2, 0, 0, 0};
    static const double mean_std[] = {0.485, 0.456, 0.406, 0.229, 0.224, 0.225};
    static const double float16[] = {FL_FLOAT16, 0}, bfloat16[] = {FL_BFLOAT16, 0};
    static const double always[] = {1};
    const fl_op_spec to_224 = {"resize", resize, 5}, norm = {"normalize", mean_std, 6};
    const fl_op_spec half = {"to_dtype", float16, 2}, brain = {"to_dtype", bfloat16, 2};
    const fl_op_spec flip = {"random_horizontal_flip", always, 1};
    const fl_op_spec by_lanczos = {"resize", lanczos, 5};
    const fl_op_spec by_bicubic = {"resize", bicubic, 5};
    const fl_op_spec by_hamming = {"resize", hamming, 5}, by_box = {"resize", box, 5};
    const fl_op_spec by_nearest = {"resize", nearest, 5};
    const fl_op_spec padded = {"random_crop", crop, 11};
    const fl_op_spec tumble = {"random_vertical_flip", always, 1};
    const fl_pixel_layout planar = FL_LAYOUT_NCHW, rows = FL_LAYOUT_NHWC;
    const question questions[] = {
        {"store 224x224, uint8 NHWC", 224, 224, rows, {{0}}, 0},
        {"store 224x224, uint8 NCHW", 224, 224, planar, {{0}}, 0},
        {"normalise 224x224, float32 NCHW", 224, 224, planar, {norm}, 1},
        {"normalise 224x224, float32 NHWC", 224, 224, rows, {norm}, 1},
        {"normalise 224x224, float16 NCHW", 224, 224, planar, {norm, half}, 2},
        {"normalise 224x224, bfloat16 NCHW", 224, 224, planar, {norm, brain}, 2},
        {"resize 300x290, uint8 NHWC", 300, 290, rows, {to_224}, 1},
        {"resize 230x360, uint8 NHWC", 230, 360, rows, {to_224}, 1},
        {"resize 500x375, uint8 NHWC", 500, 375, rows, {to_224}, 1},
        {"resize 100x90, uint8 NHWC", 100, 90, rows, {to_224}, 1},
        {"resize 300x290, nearest", 300, 290, rows, {by_nearest}, 1},
        {"resize 300x290, box", 300, 290, rows, {by_box}, 1},
        {"resize 300x290, hamming", 300, 290, rows, {by_hamming}, 1},
        {"resize 300x290, bicubic", 300, 290, rows, {by_bicubic}, 1},
        {"resize 300x290, lanczos", 300, 290, rows, {by_lanczos}, 1},
        {"resize 500x375, lanczos", 500, 375, rows, {by_lanczos}, 1},
        {"resize 100x90, lanczos", 100, 90, rows, {by_lanczos}, 1},
        {"crop of 224x224 padded, reflect", 224, 224, rows, {padded}, 1},
        {"upside down 224x224, uint8 NHWC", 224, 224, rows, {tumble}, 1},
        {"resize 300x290, flip, float32 NCHW", 300, 290, planar, {to_224, flip, norm}, 3},
    };
    size_t size = (size_t)WIDTH * HEIGHT * FL_PIXEL_SIZE;
    uint8_t *pixels = fl_alloc(size);
    for (size_t i = 0; pixels && i < size; i++)
        pixels[i] = (uint8_t)(i * 2654435761u >> 13);
    printf("%-36s %10s %10s\n", "microseconds", "best", "scalar");
    for (size_t i = 0; pixels && i < sizeof(questions) / sizeof(questions[0]); i++) {
        double best = ask(&questions[i], pixels);
        fl_cpu_set_mask(0);
        double scalar = ask(&questions[i], pixels);
        fl_cpu_set_mask(UINT32_MAX);
        printf("%-36s %10.1f %10.1f\n", questions[i].text, best, scalar);
    }
    fl_free(pixels);
    return 0;
}
