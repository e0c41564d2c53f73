// SPDX-License-Identifier: MIT
// Each operation here is one of Pillow's, in its order: reassociating any of them changes
// pixels.
#include "transform/taps.h"

#include <math.h>
#include <string.h>

// How far the filter of an axis reaches and where an output lies in the input.
typedef struct axis_reach {
    int32_t in;
    double scale, filter_scale, support;
} axis_reach;

static axis_reach find_reach(const fl_axis *axis)
{
    // Pillow's box edges are float32; whole numbers up to FL_MAX_SIDE are exact in it.
    double scale = (double)axis->in / axis->out;
    double filter_scale = scale < 1.0 ? 1.0 : scale;
    return (axis_reach){
        .in = axis->in,
        .scale = scale,
        .filter_scale = filter_scale,
        .support = fl_filter_support(axis->filter) * filter_scale,
    };
}

static double find_center(const axis_reach *reach, int32_t output)
{
    return (output + 0.5) * reach->scale;
}

// The inputs [*first, *end) under the filter.
static void find_bounds(const axis_reach *reach, double center, int32_t *first,
                        int32_t *end)
{
    int32_t low = (int32_t)(center - reach->support + 0.5);
    int32_t high = (int32_t)(center + reach->support + 0.5);
    *first = low < 0 ? 0 : low;
    *end = high > reach->in ? reach->in : high;
}

void fl_taps_region(const fl_axis *axis, int32_t start, int32_t count,
                    int32_t *region_start, int32_t *region_count)
{
    axis_reach reach = find_reach(axis);
    int32_t first, end, unused;
    if (axis->in == axis->out) { // no pass: filters reach further, with weight 0
        *region_start = start;
        *region_count = count;
        return;
    }
    find_bounds(&reach, find_center(&reach, start), &first, &unused);
    find_bounds(&reach, find_center(&reach, start + count - 1), &unused, &end);
    *region_start = first;
    *region_count = end - first;
}

void fl_taps_take(fl_taps *taps, const fl_axis *axis, int32_t count, bool is_horizontal,
                  fl_arena *arena)
{
    axis_reach reach = find_reach(axis);
    double most = ceil(reach.support) * 2 + 1;
    int32_t capacity = most < axis->in ? (int32_t)most : axis->in;

    *taps = (fl_taps){.count = count, .capacity = (capacity + 1) & ~1};
    size_t outputs = (size_t)count, weights = (size_t)taps->capacity;
    taps->first = fl_arena_take(arena, outputs, sizeof(*taps->first));
    taps->length = fl_arena_take(arena, outputs, sizeof(*taps->length));
    taps->weights = fl_arena_take(arena, outputs, weights * sizeof(*taps->weights));
    taps->values = fl_arena_take(arena, weights, sizeof(*taps->values));
    if (is_horizontal)
        taps->pairs = fl_arena_take(arena, outputs, weights * 2 * sizeof(*taps->pairs));
}

// Half away from zero.
static int32_t round_weight(double weight)
{
    double scaled = weight * (1 << FL_RESIZE_BITS);
    return (int32_t)(weight < 0 ? -0.5 + scaled : 0.5 + scaled);
}

// Writes the weights of one output and returns how many.
static int32_t compute_output(fl_filter filter, const axis_reach *reach, int32_t output,
                              double *values, int32_t *first, int32_t *weights)
{
    int32_t end;
    double center = find_center(reach, output);
    double inverse = 1.0 / reach->filter_scale;
    find_bounds(reach, center, first, &end);
    int32_t length = end - *first;
    double sum = fl_filter_weigh(filter, *first, length, center, inverse, values);
    for (int32_t i = 0; i < length; i++)
        weights[i] = round_weight(sum != 0.0 ? values[i] / sum : values[i]);
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

void fl_taps_compute(fl_taps *taps, const fl_axis *axis, int32_t start)
{
    axis_reach reach = find_reach(axis);
    int32_t region_start, region_count, longest = 0;
    fl_taps_region(axis, start, taps->count, &region_start, &region_count);
    for (int32_t i = 0; i < taps->count; i++) {
        int32_t *weights = taps->weights + (size_t)i * (size_t)taps->capacity;
        int32_t first;
        int32_t length = compute_output(axis->filter, &reach, start + i, taps->values,
                                        &first, weights);
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
