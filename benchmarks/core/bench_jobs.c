// SPDX-License-Identifier: MIT
#include "bench_jobs.h"

#include "base/memory.h"
#include "base/philox.h"
#include "fetch/local.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

static const fl_decode_limits LIMITS = {.max_pixels = 1 << 28, .max_scans = 500};
static const double CROP[] = {BENCH_SIDE, BENCH_SIDE, 0.08, 1.0, 3.0 / 4, 4.0 / 3, 2, 0};
static const double FLIP[] = {0.5};
static const double NORMALIZE[] = {0.485, 0.456, 0.406, 0.229, 0.224, 0.225};

typedef struct bare {
    struct jpeg_decompress_struct jpeg;
    struct jpeg_error_mgr errors;
    uint8_t *pixels;
    size_t size;
} bare;

static void require(fl_status status, fl_error *error, const char *path)
{
    if (status == FL_OK)
        return;
    fprintf(stderr, "bench_core: %s: %s\n", path,
            error->message[0] ? error->message : fl_status_name(status));
    exit(1);
}

static void *require_memory(void *block)
{
    if (!block) {
        fprintf(stderr, "bench_core: out of memory\n");
        exit(1);
    }
    return block;
}

static fl_chain *make_chain(int32_t count)
{
    fl_op_spec ops[] = {
        {"random_resized_crop", CROP, sizeof(CROP) / sizeof(CROP[0])},
        {"random_horizontal_flip", FLIP, sizeof(FLIP) / sizeof(FLIP[0])},
        {"normalize", NORMALIZE, sizeof(NORMALIZE) / sizeof(NORMALIZE[0])},
    };
    fl_error error = FL_ERROR_INIT;
    fl_chain *chain = NULL;
    require(fl_chain_create(ops, count, FL_LAYOUT_NCHW, &chain, &error), &error, "chain");
    return chain;
}

void bench_init(bench *bench)
{
    fl_error error = FL_ERROR_INIT;
    *bench = (struct bench){0};
    require(fl_buffer_pool_create(64 << 20, &bench->pool, &error), &error, "pool");
    require(fl_decoder_create(&bench->decoder, &error), &error, "decoder");
    bench->to_float = make_chain(3);
    bench->to_bytes = make_chain(2);
    fl_scratch_init(&bench->scratch);
    bench->row_size = (size_t)3 * BENCH_SIDE * BENCH_SIDE * sizeof(float);
    bench->batch = require_memory(fl_alloc_aligned(64, BENCH_BATCH * bench->row_size));
    memset(bench->batch, 0, BENCH_BATCH * bench->row_size); // the pages are there

    bare *bare = require_memory(fl_alloc_zeroed(sizeof(*bare)));
    bare->jpeg.err = jpeg_std_error(&bare->errors);
    jpeg_create_decompress(&bare->jpeg);
    bench->bare = bare;
}

void bench_deinit(bench *bench)
{
    bare *bare = bench->bare;
    jpeg_destroy_decompress(&bare->jpeg);
    fl_free(bare->pixels);
    fl_free(bare);
    fl_buffer_unref(&bench->bytes);
    fl_free(bench->pixels);
    fl_free(bench->batch);
    fl_scratch_deinit(&bench->scratch);
    fl_chain_destroy(bench->to_bytes);
    fl_chain_destroy(bench->to_float);
    fl_decoder_destroy(bench->decoder);
    fl_buffer_pool_unref(&bench->pool);
}

void bench_set_epoch(bench *bench, uint64_t seed, uint64_t epoch)
{
    bench->key = fl_key_derive(seed, epoch, FL_KEY_SAMPLE, 0);
}

static uint8_t *place_of(const bench *bench, uint64_t position)
{
    return bench->batch + position % BENCH_BATCH * bench->row_size;
}

bool bench_probe(bench *bench, const char *path, fl_picture *picture)
{
    fl_buffer *bytes = NULL;
    if (fl_local_read(path, INT64_MAX, bench->pool, NULL, &bytes, NULL) != FL_OK)
        return false;
    fl_status status = fl_decoder_open(bench->decoder, bytes->data, bytes->size, &LIMITS,
                                       NULL, picture, NULL);
    if (status == FL_OK)
        status = fl_decoder_start(bench->decoder,
                                  (fl_box){0, 0, picture->width, picture->height}, NULL);
    fl_row_source rows = fl_decoder_rows(bench->decoder);
    uint8_t *row = require_memory(fl_alloc((size_t)65500 * FL_PIXEL_SIZE));
    for (int32_t y = 0; status == FL_OK && y < picture->height; y++)
        status = rows.read(rows.context, row, 0, 1, NULL);
    if (status == FL_OK)
        status = fl_decoder_finish(bench->decoder, NULL);
    fl_free(row);
    fl_decoder_close(bench->decoder);
    fl_buffer_unref(&bytes);
    return status == FL_OK;
}

void bench_run_core(bench *bench, const char *path, uint64_t position)
{
    fl_error error = FL_ERROR_INIT;
    fl_buffer *bytes = NULL;
    fl_picture picture;
    fl_chain_draw draw;
    fl_decoder *decoder = bench->decoder;
    require(fl_local_read(path, INT64_MAX, bench->pool, NULL, &bytes, &error), &error,
            path);
    require(fl_decoder_open(decoder, bytes->data, bytes->size, &LIMITS, NULL, &picture,
                            &error),
            &error, path);
    require(fl_chain_make_draw(bench->to_float, picture.width, picture.height, bench->key,
                               position, &draw, &error),
            &error, path);
    require(fl_decoder_start(decoder, draw.region, &error), &error, path);
    require(fl_scratch_reserve(&bench->scratch, draw.scratch, &error), &error, path);
    require(fl_chain_apply(bench->to_float, &draw, fl_decoder_rows(decoder),
                           &bench->scratch, place_of(bench, position), &error),
            &error, path);
    require(fl_decoder_finish(decoder, &error), &error, path);
    fl_decoder_close(decoder);
    fl_buffer_unref(&bytes);
}

void bench_read(bench *bench, const char *path, uint64_t position)
{
    (void)position;
    fl_error error = FL_ERROR_INIT;
    fl_buffer_unref(&bench->bytes);
    require(fl_local_read(path, INT64_MAX, bench->pool, NULL, &bench->bytes, &error),
            &error, path);
}

static void reserve_pixels(bench *bench, size_t size)
{
    if (size <= bench->pixels_size)
        return;
    fl_free(bench->pixels);
    bench->pixels = require_memory(fl_alloc_aligned(64, size));
    bench->pixels_size = size;
}

void bench_decode(bench *bench, const char *path, uint64_t position)
{
    fl_error error = FL_ERROR_INIT;
    fl_picture picture;
    fl_decoder *decoder = bench->decoder;
    require(fl_decoder_open(decoder, bench->bytes->data, bench->bytes->size, &LIMITS,
                            NULL, &picture, &error),
            &error, path);
    require(fl_chain_make_draw(bench->to_float, picture.width, picture.height, bench->key,
                               position, &bench->draw, &error),
            &error, path);
    fl_box box = bench->draw.region;
    size_t stride = (size_t)box.width * FL_PIXEL_SIZE;
    reserve_pixels(bench, stride * (size_t)box.height);
    require(fl_decoder_start(decoder, box, &error), &error, path);
    fl_row_source rows = fl_decoder_rows(decoder);
    require(rows.read(rows.context, bench->pixels, stride, box.height, &error), &error,
            path);
    require(fl_decoder_finish(decoder, &error), &error, path);
    fl_decoder_close(decoder);
}

typedef struct memory_rows {
    const uint8_t *at;
    size_t size; // bytes a row
} memory_rows;

static fl_status read_memory(void *context, uint8_t *rows, size_t stride, int32_t count,
                             fl_error *error)
{
    (void)error;
    memory_rows *from = context;
    for (int32_t i = 0; i < count; i++, from->at += from->size)
        memcpy(rows + (size_t)i * stride, from->at, from->size);
    return FL_OK;
}

static void apply(bench *bench, const fl_chain *chain, const char *path,
                  uint64_t position)
{
    fl_error error = FL_ERROR_INIT;
    fl_chain_draw draw;
    require(fl_chain_make_draw(chain, bench->draw.width, bench->draw.height, bench->key,
                               position, &draw, &error),
            &error, path);
    memory_rows rows = {bench->pixels, (size_t)draw.region.width * FL_PIXEL_SIZE};
    require(fl_scratch_reserve(&bench->scratch, draw.scratch, &error), &error, path);
    require(fl_chain_apply(chain, &draw,
                           (fl_row_source){.read = read_memory, .context = &rows},
                           &bench->scratch, place_of(bench, position), &error),
            &error, path);
}

void bench_resize(bench *bench, const char *path, uint64_t position)
{
    apply(bench, bench->to_bytes, path, position);
}

void bench_resize_normalize(bench *bench, const char *path, uint64_t position)
{
    apply(bench, bench->to_float, path, position);
}

void bench_run_bare(bench *bench, const char *path, uint64_t position)
{
    (void)path;
    (void)position;
    bare *bare = bench->bare;
    struct jpeg_decompress_struct *jpeg = &bare->jpeg;
    jpeg_mem_src(jpeg, bench->bytes->data, bench->bytes->size);
    jpeg_read_header(jpeg, TRUE);
    if (jpeg->num_components != 4)
        jpeg->out_color_space = JCS_RGB;
    jpeg_start_decompress(jpeg);
    size_t stride = (size_t)jpeg->output_width * (size_t)jpeg->output_components;
    if (stride * jpeg->output_height > bare->size) {
        fl_free(bare->pixels);
        bare->size = stride * jpeg->output_height;
        bare->pixels = require_memory(fl_alloc(bare->size));
    }
    while (jpeg->output_scanline < jpeg->output_height) {
        JSAMPROW row = bare->pixels + stride * jpeg->output_scanline;
        jpeg_read_scanlines(jpeg, &row, 1);
    }
    jpeg_finish_decompress(jpeg);
}
