// SPDX-License-Identifier: MIT
// Each operation here is one of Pillow's, in its order: reassociating any of them changes
// pixels.
#include "transform/taps.h"

#include <math.h>
#include <string.h>

// The filter of one axis: how far it reaches and where an output lies in the input.
typedef struct axis_filter {
    int32_t in;
    double scale, filter_scale, support;
} axis_filter;

static axis_filter make_axis(int32_t in, int32_t out)
{
    // Pillow's box edges are float32; whole numbers up to FL_MAX_SIDE are exact in it.
    double scale = (double)in / out;
    double filter_scale = scale < 1.0 ? 1.0 : scale;
    return (axis_filter){
        .in = in, .scale = scale, .filter_scale = filter_scale, .support = filter_scale};
}

static double find_center(const axis_filter *axis, int32_t output)
{
    return (output + 0.5) * axis->scale;
}

// The inputs [*first, *end) under the filter.
static void find_bounds(const axis_filter *axis, double center, int32_t *first,
                        int32_t *end)
{
    int32_t low = (int32_t)(center - axis->support + 0.5);
    int32_t high = (int32_t)(center + axis->support + 0.5);
    *first = low < 0 ? 0 : low;
    *end = high > axis->in ? axis->in : high;
}

static double bilinear(double x)
{
    if (x < 0.0)
        x = -x;
    return x < 1.0 ? 1.0 - x : 0.0;
}

void fl_taps_region(int32_t in, int32_t out, int32_t start, int32_t count,
                    int32_t *region_start, int32_t *region_count)
{
    axis_filter axis = make_axis(in, out);
    int32_t first, end, unused;
    if (in == out) { // no pass: the filter would reach one input too far, with weight 0
        *region_start = start;
        *region_count = count;
        return;
    }
    find_bounds(&axis, find_center(&axis, start), &first, &unused);
    find_bounds(&axis, find_center(&axis, start + count - 1), &unused, &end);
    *region_start = first;
    *region_count = end - first;
}

void fl_taps_take(fl_taps *taps, int32_t in, int32_t out, int32_t count,
                  bool is_horizontal, fl_arena *arena)
{
    axis_filter axis = make_axis(in, out);
    double reach = ceil(axis.support) * 2 + 1;
    int32_t capacity = reach < in ? (int32_t)reach : in;

    *taps = (fl_taps){.count = count, .capacity = (capacity + 1) & ~1};
    size_t outputs = (size_t)count, weights = (size_t)taps->capacity;
    taps->first = fl_arena_take(arena, outputs, sizeof(*taps->first));
    taps->length = fl_arena_take(arena, outputs, sizeof(*taps->length));
    taps->weights = fl_arena_take(arena, outputs, weights * sizeof(*taps->weights));
    if (is_horizontal)
        taps->pairs = fl_arena_take(arena, outputs, weights * 2 * sizeof(*taps->pairs));
}

// Writes the weights of one output and returns how many.
static int32_t compute_output(const axis_filter *axis, int32_t output, int32_t *first,
                              int32_t *weights)
{
    int32_t end;
    double center = find_center(axis, output);
    double inverse = 1.0 / axis->filter_scale;
    double sum = 0.0;
    find_bounds(axis, center, first, &end);
    int32_t length = end - *first;
    for (int32_t i = 0; i < length; i++)
        sum += bilinear((i + *first - center + 0.5) * inverse);
    for (int32_t i = 0; i < length; i++) {
        double weight = bilinear((i + *first - center + 0.5) * inverse);
        if (sum != 0.0)
            weight /= sum;
        weights[i] = (int32_t)(0.5 + weight * (1 << FL_RESIZE_BITS));
    }
    return length;
}

// Moves outputs at the right edge to the left, behind leading zeros, so that a kernel may
// read `used` inputs of each.
static void move_inside(fl_taps *taps, int32_t region_count)
{
    int32_t last = region_count > taps->used ? region_count - taps->used : 0;
    for (int32_t i = taps->count - 1; i >= 0 && taps->first[i] > last; i--) {
        int32_t *weights = taps->weights + (size_t)i * (size_t)taps->capacity;
        int32_t shift = taps->first[i] - last;
        memmove(weights + shift, weights, (size_t)taps->length[i] * sizeof(*weights));
        memset(weights, 0, (size_t)shift * sizeof(*weights));
        taps->first[i] = last;
        taps->length[i] += shift;
    }
}

static void split_weights(fl_taps *taps)
{
    const int32_t low_mask = (1 << FL_RESIZE_LOW_BITS) - 1;
    for (int32_t i = 0; i < taps->count; i++) {
        const int32_t *weights = taps->weights + (size_t)i * (size_t)taps->capacity;
        int16_t *pairs = taps->pairs + (size_t)i * (size_t)taps->capacity * 2;
        for (int32_t k = 0; k < taps->used; k += 2) {
            pairs[2 * k] = (int16_t)(weights[k] & low_mask);
            pairs[2 * k + 1] = (int16_t)(weights[k + 1] & low_mask);
            pairs[2 * k + 2] = (int16_t)(weights[k] >> FL_RESIZE_LOW_BITS);
            pairs[2 * k + 3] = (int16_t)(weights[k + 1] >> FL_RESIZE_LOW_BITS);
        }
    }
}

void fl_taps_compute(fl_taps *taps, int32_t in, int32_t out, int32_t start)
{
    axis_filter axis = make_axis(in, out);
    int32_t region_start, region_count, longest = 0;
    fl_taps_region(in, out, start, taps->count, &region_start, &region_count);
    for (int32_t i = 0; i < taps->count; i++) {
        int32_t *weights = taps->weights + (size_t)i * (size_t)taps->capacity;
        int32_t first;
        int32_t length = compute_output(&axis, start + i, &first, weights);
        memset(weights + length, 0, (size_t)(taps->capacity - length) * sizeof(*weights));
        taps->first[i] = first - region_start;
        taps->length[i] = length;
        longest = length > longest ? length : longest;
    }
    taps->used = (longest + 1) & ~1;
    if (taps->pairs) {
        move_inside(taps, region_count);
        split_weights(taps);
    }
}
