// SPDX-License-Identifier: MIT
// The weights of Pillow's filters along one axis, in the doubles and the 22-bit fixed
// point that Pillow computes them in. Plain data in scratch memory.
//
// An output's weights add up to 1 (2^22, but for rounding). Those of bicubic and lanczos
// go below 0 and above 1, but their absolute values add up to less than 2: that is why
// sums of 8-bit pixels fit int32, here as in Pillow.
#ifndef FL_TRANSFORM_TAPS_H
#define FL_TRANSFORM_TAPS_H

#include "transform/arena.h"
#include "transform/filter.h"

#include <stdbool.h>
#include <stdint.h>

enum { FL_RESIZE_BITS = 22, FL_RESIZE_LOW_BITS = 11 };

// One axis of a resize; not for FL_FILTER_NEAREST.
typedef struct fl_axis {
    fl_filter filter;
    int32_t in, out;
} fl_axis;

// The filter for the outputs of a window.
typedef struct fl_taps {
    int32_t count;    // outputs
    int32_t capacity; // weights an output has room for: even
    int32_t used;     // weights an output has at most, rounded up to even
    int32_t *first;   // first input of each output, from the start of the region
    int32_t *length;  // inputs of each output
    int32_t *weights; // [count][capacity], zero behind `length`
    // Horizontal only: the same weights as their low 11 bits and the rest, so that both
    // fit int16, two taps together: [count][capacity / 2][low, low, rest, rest].
    int16_t *pairs;
    double *values; // of one output, while it is computed: [capacity]
} fl_taps;

// The inputs of an axis that outputs [start, start + count) need.
void fl_taps_region(const fl_axis *axis, int32_t start, int32_t count,
                    int32_t *region_start, int32_t *region_count);

// Takes the memory for them.
void fl_taps_take(fl_taps *taps, const fl_axis *axis, int32_t count, bool is_horizontal,
                  fl_arena *arena);
// Computes them; the memory is there. With pairs, each output's `first` + `used` stays
// within the region, or one input beyond it.
void fl_taps_compute(fl_taps *taps, const fl_axis *axis, int32_t start);

#endif
