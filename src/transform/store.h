// SPDX-License-Identifier: MIT
// The end of a chain: 8-bit RGBX rows become a row of the batch, normalised, cast,
// flipped and laid out in one go. Every output is a function of one of 256 values, so a
// table of them is the definition; store_avx2.c computes the same without looking up, and
// is used only where it gives the table's bits. Immutable after init: any thread.
#ifndef FL_TRANSFORM_STORE_H
#define FL_TRANSFORM_STORE_H

#include "data/dtype.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FL_CHANNELS = 3 };

// How an 8-bit value becomes a float32 before the mean is subtracted.
typedef enum fl_scale {
    FL_SCALE_NONE,     // x
    FL_SCALE_DIVIDE,   // x / 255: torchvision's ToTensor
    FL_SCALE_MULTIPLY, // x * float32(1 / 255): torchvision's v2.ToDtype(scale=True)
} fl_scale;

// What the ops on values add up to.
typedef struct fl_store_spec {
    fl_dtype dtype; // UINT8, FLOAT16, BFLOAT16 or FLOAT32; UINT8 does nothing
    fl_scale scale;
    bool has_normalize; // (x - mean) / std, in float32, before the cast
    float mean[FL_CHANNELS], std[FL_CHANNELS];
} fl_store_spec;

// Numbers for eight values at once: planar [channel], interleaved [which third of 24].
typedef struct fl_store_lanes {
    float mean[8], std[8], inverse_std[8];
} fl_store_lanes;

typedef struct fl_store fl_store;

// Writes `width` pixels. Planar: one pointer a channel; interleaved: planes[0].
typedef void (*fl_store_kernel)(const fl_store *store, const uint8_t *pixels,
                                int32_t width, uint8_t *const planes[FL_CHANNELS]);

struct fl_store {
    fl_store_spec spec;
    bool is_planar;
    size_t element_size;
    fl_store_kernel plain, flipped;
    union {
        uint16_t bits16[FL_CHANNELS][256]; // FLOAT16, BFLOAT16
        float float32[FL_CHANNELS][256];
    } table;
    fl_store_lanes lanes[FL_CHANNELS];
};

void fl_store_init(fl_store *store, const fl_store_spec *spec, bool is_planar);
// Writes row `y` of a picture of `width` x `height` to `out`, where the picture starts.
void fl_store_row(const fl_store *store, const uint8_t *pixels, int32_t width,
                  int32_t height, int32_t y, bool is_flipped, uint8_t *out);

// Round to nearest even, as NumPy and torch do.
uint16_t fl_float16_from(float value);
uint16_t fl_bfloat16_from(float value);

// The definition.
void fl_store_scalar(const fl_store *store, const uint8_t *pixels, int32_t width,
                     uint8_t *const planes[FL_CHANNELS]);
void fl_store_scalar_flipped(const fl_store *store, const uint8_t *pixels, int32_t width,
                             uint8_t *const planes[FL_CHANNELS]);
#if defined(__x86_64__)
void fl_store_avx2(const fl_store *store, const uint8_t *pixels, int32_t width,
                   uint8_t *const planes[FL_CHANNELS]);
void fl_store_avx2_flipped(const fl_store *store, const uint8_t *pixels, int32_t width,
                           uint8_t *const planes[FL_CHANNELS]);
#endif

#endif
