// SPDX-License-Identifier: MIT
// The jobs that bench_core times, each on one picture. One thread; whatever fails ends
// the program with the reason.
#ifndef FL_BENCH_JOBS_H
#define FL_BENCH_JOBS_H

#include "data/buffer.h"
#include "data/buffer_pool.h"
#include "decode/decoder.h"
#include "transform/chain.h"

#include <stddef.h>
#include <stdint.h>

enum { BENCH_SIDE = 224, BENCH_BATCH = 64 };

typedef struct bench {
    fl_buffer_pool *pool;
    fl_decoder *decoder;
    fl_chain *to_float; // RandomResizedCrop, flip, Normalize: float32 NCHW
    fl_chain *to_bytes; // the same without Normalize: uint8 NCHW
    fl_scratch scratch;
    uint8_t *batch; // a slab of BENCH_BATCH rows, filled in turn
    size_t row_size;
    uint64_t key; // of the epoch's draws
    void *bare;   // the plain libjpeg decoder

    // Between the steps of one picture, when they are timed apart.
    fl_buffer *bytes;
    fl_chain_draw draw;
    uint8_t *pixels;
    size_t pixels_size;
} bench;

void bench_init(bench *bench);
void bench_deinit(bench *bench);
void bench_set_epoch(bench *bench, uint64_t seed, uint64_t epoch);
// Can the file be decoded? Fills in the picture's size.
bool bench_probe(bench *bench, const char *path, fl_picture *picture);

// The whole way of picture `position` to its place in the batch.
void bench_run_core(bench *bench, const char *path, uint64_t position);
// Its steps, to be called in this order.
void bench_read(bench *bench, const char *path, uint64_t position);
void bench_decode(bench *bench, const char *path, uint64_t position);
void bench_resize(bench *bench, const char *path, uint64_t position);
void bench_resize_normalize(bench *bench, const char *path, uint64_t position);
// libjpeg-turbo alone: every row of the bytes read before, as RGB.
void bench_run_bare(bench *bench, const char *path, uint64_t position);

#endif
