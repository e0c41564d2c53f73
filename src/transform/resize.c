// SPDX-License-Identifier: MIT
// The stream of a resize. Horizontal first: each row that arrives is resized at once and
// kept in a ring of the vertical filter's span. Vertical first: the rows themselves are
// kept in the ring. Either way the picture is never in memory as a whole.
#include "transform/resize.h"

#include "base/cpu.h"
#include "transform/nearest.h"

#include <string.h>

typedef struct resize_stream {
    const fl_resize_kernels *kernels;
    fl_row_source source;
    bool has_horizontal, has_vertical, is_vertical_first;
    fl_taps across, down;
    int32_t width_in, rows_in; // of the region
    int32_t width_out;         // of the window
    int32_t rows_out;          // of the vertical pass, so far

    // The vertical pass: rows [ring_end - ring_rows, ring_end) of its input at most.
    uint8_t *ring;
    size_t ring_stride;
    int32_t ring_rows, ring_end;
    const uint8_t **spanned; // pointers to the rows under the filter

    uint8_t *rows; // FL_RESIZE_ROWS input rows of the horizontal pass
    size_t rows_stride;
} resize_stream;

const fl_resize_kernels *fl_resize_choose_kernels(void)
{
#if defined(__x86_64__)
    if (fl_cpu_features() & FL_CPU_AVX2)
        return &fl_resize_avx2;
#endif
    return &fl_resize_scalar;
}

bool fl_resize_has_effect(const fl_resize *resize)
{
    return resize->in.width != resize->out.width ||
           resize->in.height != resize->out.height;
}

static fl_axis across_axis(const fl_resize *resize)
{
    return (fl_axis){resize->filter, resize->in.width, resize->out.width};
}

static fl_axis down_axis(const fl_resize *resize)
{
    return (fl_axis){resize->filter, resize->in.height, resize->out.height};
}

fl_box fl_resize_region(const fl_resize *resize, fl_box window)
{
    fl_box region;
    if (resize->filter == FL_FILTER_NEAREST)
        return fl_nearest_region(resize->in, resize->out, window);
    fl_axis across = across_axis(resize), down = down_axis(resize);
    fl_taps_region(&across, window.x, window.width, &region.x, &region.width);
    fl_taps_region(&down, window.y, window.height, &region.y, &region.height);
    return region;
}

static uint8_t clip_pixel(int32_t sum)
{
    int32_t value = sum >> FL_RESIZE_BITS;
    return (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value);
}

static void resize_row(const fl_taps *taps, const uint8_t *in, uint8_t *out)
{
    const int32_t half = 1 << (FL_RESIZE_BITS - 1);
    for (int32_t x = 0; x < taps->count; x++) {
        const uint8_t *pixel = in + (size_t)taps->first[x] * FL_PIXEL_SIZE;
        const int32_t *weights = taps->weights + (size_t)x * (size_t)taps->capacity;
        int32_t red = half, green = half, blue = half;
        for (int32_t i = 0; i < taps->length[x]; i++, pixel += FL_PIXEL_SIZE) {
            red += pixel[0] * weights[i];
            green += pixel[1] * weights[i];
            blue += pixel[2] * weights[i];
        }
        out[0] = clip_pixel(red);
        out[1] = clip_pixel(green);
        out[2] = clip_pixel(blue);
        out[3] = 0;
        out += FL_PIXEL_SIZE;
    }
}

static void resize_horizontal(const fl_taps *taps, const uint8_t *const *in,
                              uint8_t *const *out, int32_t rows)
{
    for (int32_t i = 0; i < rows; i++)
        resize_row(taps, in[i], out[i]);
}

static void resize_vertical(const uint8_t *const *in, const int32_t *weights,
                            int32_t taps, uint8_t *out, int32_t width)
{
    for (size_t i = 0; i < (size_t)width * FL_PIXEL_SIZE; i++) {
        int32_t sum = 1 << (FL_RESIZE_BITS - 1);
        for (int32_t k = 0; k < taps; k++)
            sum += in[k][i] * weights[k];
        out[i] = clip_pixel(sum);
    }
}

const fl_resize_kernels fl_resize_scalar = {
    .horizontal = resize_horizontal,
    .vertical = resize_vertical,
};

// Reads `count` rows of the source and resizes them into `out`.
static fl_status read_horizontal(resize_stream *stream, uint8_t *const *out,
                                 int32_t count, fl_error *error)
{
    const uint8_t *in[FL_RESIZE_ROWS];
    fl_row_source source = stream->source;
    fl_status status =
        source.read(source.context, stream->rows, stream->rows_stride, count, error);
    if (status != FL_OK)
        return status;
    for (int32_t i = 0; i < count; i++)
        in[i] = stream->rows + (size_t)i * stream->rows_stride;
    stream->kernels->horizontal(&stream->across, in, out, count);
    return FL_OK;
}

static int32_t at_most(int32_t a, int32_t b)
{
    return a < b ? a : b;
}

// Puts up to FL_RESIZE_ROWS more rows into the ring.
static fl_status fill_ring(resize_stream *stream, fl_error *error)
{
    int32_t slot = stream->ring_end % stream->ring_rows;
    int32_t count = at_most(FL_RESIZE_ROWS, stream->rows_in - stream->ring_end);
    fl_status status;
    if (stream->has_horizontal && !stream->is_vertical_first) {
        uint8_t *out[FL_RESIZE_ROWS];
        for (int32_t i = 0; i < count; i++) {
            int32_t row = (slot + i) % stream->ring_rows;
            out[i] = stream->ring + (size_t)row * stream->ring_stride;
        }
        status = read_horizontal(stream, out, count, error);
    } else {
        fl_row_source source = stream->source;
        count = at_most(count, stream->ring_rows - slot);
        status =
            source.read(source.context, stream->ring + (size_t)slot * stream->ring_stride,
                        stream->ring_stride, count, error);
    }
    if (status == FL_OK)
        stream->ring_end += count;
    return status;
}

// The next row of the vertical pass, `width` pixels.
static fl_status make_vertical(resize_stream *stream, uint8_t *out, int32_t width,
                               fl_error *error)
{
    const fl_taps *down = &stream->down;
    int32_t row = stream->rows_out;
    int32_t first = down->first[row], length = down->length[row];
    while (stream->ring_end < first + length) {
        fl_status status = fill_ring(stream, error);
        if (status != FL_OK)
            return status;
    }
    for (int32_t i = 0; i < length; i++) {
        int32_t slot = (first + i) % stream->ring_rows;
        stream->spanned[i] = stream->ring + (size_t)slot * stream->ring_stride;
    }
    stream->spanned[length] = stream->spanned[0]; // for an odd one out; its weight is 0
    stream->kernels->vertical(stream->spanned,
                              down->weights + (size_t)row * (size_t)down->capacity,
                              (length + 1) & ~1, out, width);
    stream->rows_out++;
    return FL_OK;
}

// Up to FL_RESIZE_ROWS rows, the vertical pass first.
static fl_status make_vertical_first(resize_stream *stream, uint8_t *const *out,
                                     int32_t count, fl_error *error)
{
    const uint8_t *in[FL_RESIZE_ROWS];
    for (int32_t i = 0; i < count; i++) {
        uint8_t *row = stream->rows + (size_t)i * stream->rows_stride;
        fl_status status = make_vertical(stream, row, stream->width_in, error);
        if (status != FL_OK)
            return status;
        in[i] = row;
    }
    stream->kernels->horizontal(&stream->across, in, out, count);
    return FL_OK;
}

static fl_status read_resized(void *context, uint8_t *rows, size_t stride, int32_t count,
                              fl_error *error)
{
    resize_stream *stream = context;
    fl_status status = FL_OK;
    for (int32_t done = 0; done < count && status == FL_OK;) {
        uint8_t *out[FL_RESIZE_ROWS];
        int32_t n = at_most(FL_RESIZE_ROWS, count - done);
        for (int32_t i = 0; i < n; i++)
            out[i] = rows + (size_t)(done + i) * stride;
        if (!stream->has_vertical) {
            status = read_horizontal(stream, out, n, error);
        } else if (stream->has_horizontal && stream->is_vertical_first) {
            status = make_vertical_first(stream, out, n, error);
        } else {
            for (int32_t i = 0; i < n && status == FL_OK; i++)
                status = make_vertical(stream, out[i], stream->width_out, error);
        }
        done += n;
    }
    return status;
}

static bool is_vertical_first(const fl_resize *resize)
{
    fl_size in = resize->in, out = resize->out;
    if (resize->passes == FL_PASSES_HORIZONTAL_FIRST)
        return false;
    return in.height > out.height &&
           in.height - (int64_t)out.height > 2 * (in.width - (int64_t)out.width);
}

// Takes what the passes need; the size of the ring follows from the filter.
static void take_memory(resize_stream *stream, const fl_resize *resize, fl_box region,
                        fl_box window, fl_arena *arena)
{
    fl_axis across = across_axis(resize), down = down_axis(resize);
    if (stream->has_horizontal) {
        fl_taps_take(&stream->across, &across, window.width, true, arena);
        stream->rows = fl_rows_take(arena, region.width, FL_RESIZE_ROWS);
        stream->rows_stride = fl_row_stride(region.width);
    }
    if (stream->has_vertical) {
        int32_t width = stream->is_vertical_first ? region.width : window.width;
        fl_taps_take(&stream->down, &down, window.height, false, arena);
        // Rows enter by fours: the first of them may be the last one needed.
        stream->ring_rows =
            at_most(region.height, stream->down.capacity + FL_RESIZE_ROWS - 1);
        stream->ring = fl_rows_take(arena, width, stream->ring_rows);
        stream->ring_stride = fl_row_stride(width);
        stream->spanned = fl_arena_take(arena, (size_t)stream->down.capacity + 1,
                                        sizeof(*stream->spanned));
    }
}

void fl_resize_open(const fl_resize *resize, const fl_resize_kernels *kernels,
                    fl_box window, fl_arena *arena, fl_row_source *rows)
{
    if (resize->filter == FL_FILTER_NEAREST) {
        fl_nearest_open(resize->in, resize->out, window, arena, rows);
        return;
    }
    fl_axis across = across_axis(resize), down = down_axis(resize);
    fl_box region = fl_resize_region(resize, window);
    resize_stream plan = {
        .kernels = kernels,
        .source = *rows,
        .has_horizontal = across.in != across.out,
        .has_vertical = down.in != down.out,
        .is_vertical_first = is_vertical_first(resize),
        .rows_in = region.height,
        .width_in = region.width,
        .width_out = window.width,
    };
    resize_stream *state = fl_arena_take(arena, 1, sizeof(*state));
    take_memory(&plan, resize, region, window, arena);
    if (!fl_arena_is_ready(arena))
        return;

    if (plan.has_horizontal)
        fl_taps_compute(&plan.across, &across, window.x);
    if (plan.has_vertical)
        fl_taps_compute(&plan.down, &down, window.y);
    *state = plan;
    *rows = (fl_row_source){.read = read_resized, .context = state};
}
