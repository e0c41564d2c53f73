// SPDX-License-Identifier: MIT
// Resize with antialiasing, bit for bit Pillow's: two passes, weights of 22 bits fixed
// point, 8 bits between the passes; nearest neighbours (transform/nearest.h) instead
// where that is the filter. Streaming: rows come in order, and only as many
// are kept as the vertical filter spans. The state lives in scratch memory and belongs to
// the thread that reads.
//
// resize.c is the definition, resize_avx2.c gives the same results.
#ifndef FL_TRANSFORM_RESIZE_H
#define FL_TRANSFORM_RESIZE_H

#include "base/error.h"
#include "data/image.h"
#include "transform/arena.h"
#include "transform/rows.h"
#include "transform/taps.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FL_RESIZE_ROWS = 4 }; // that a horizontal kernel takes at once

typedef struct fl_resize_kernels {
    // Resizes 1 to FL_RESIZE_ROWS rows horizontally. May read 16 bytes beyond a row.
    void (*horizontal)(const fl_taps *taps, const uint8_t *const *in, uint8_t *const *out,
                       int32_t rows);
    // One output row of `width` pixels from `taps` input rows; `taps` is even. May write,
    // and read, up to the next multiple of 32 bytes.
    void (*vertical)(const uint8_t *const *in, const int32_t *weights, int32_t taps,
                     uint8_t *out, int32_t width);
} fl_resize_kernels;

// The fastest kernels that fl_cpu_features() allows.
const fl_resize_kernels *fl_resize_choose_kernels(void);
extern const fl_resize_kernels fl_resize_scalar;
#if defined(__x86_64__)
extern const fl_resize_kernels fl_resize_avx2;
#endif

// Which pass comes first; each rounds to 8 bits, so it shows.
typedef enum fl_resize_passes {
    FL_PASSES_PILLOW_13 = 0, // vertical iff h > oh and h - oh > 2 * (w - ow)
    FL_PASSES_HORIZONTAL_FIRST = 1,
} fl_resize_passes;

typedef struct fl_resize {
    fl_size in, out; // the whole pictures
    fl_filter filter;
    fl_resize_passes passes;
} fl_resize;

// Does it change the picture?
bool fl_resize_has_effect(const fl_resize *resize);
// The part of the picture that the window of the result needs.
fl_box fl_resize_region(const fl_resize *resize, fl_box window);
// Replaces `rows`, a source of exactly that region, by a source of the window; it has an
// effect. Nothing but the arena changes if the arena is not ready after it.
void fl_resize_open(const fl_resize *resize, const fl_resize_kernels *kernels,
                    fl_box window, fl_arena *arena, fl_row_source *rows);

#endif
