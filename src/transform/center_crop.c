// SPDX-License-Identifier: MIT
// CenterCrop by torchvision's rule: a side that is too short is padded with zeros on both
// ends (the odd one behind), a longer one is cut at Python's round((side - size) / 2).
#include "transform/op.h"

#include "transform/rows.h"

#include <math.h>
#include <string.h>

enum { HEIGHT, WIDTH, VALUES };

static const char title[] = "CenterCrop";

typedef struct padding_stream {
    fl_row_source source;
    fl_box inside; // the part of the window that has pixels, from the window's corner
    fl_size window;
    fl_size region; // what the source delivers: `inside`, or one row or column beside it
    int32_t rows_out; // delivered so far
    uint8_t *row;     // one row of the source
} padding_stream;

static fl_status check(const double *values, fl_error *error)
{
    fl_status status =
        fl_op_check_whole(title, "height", values[HEIGHT], 1, FL_MAX_SIDE, error);
    if (status == FL_OK)
        status = fl_op_check_whole(title, "width", values[WIDTH], 1, FL_MAX_SIDE, error);
    return status;
}

static bool find_size(const double *values, const fl_size *in, fl_size *out)
{
    (void)in;
    *out = (fl_size){(int32_t)values[WIDTH], (int32_t)values[HEIGHT]};
    return true;
}

// Where the crop starts along one axis; negative: padding before it.
static int32_t find_start(int32_t side, int32_t size)
{
    if (size > side)
        return -((size - side) / 2);
    return (int32_t)rint((side - size) / 2.0); // half to even
}

static fl_op_effect effect(const double *values, const int32_t *drawn, fl_size in,
                           fl_size out)
{
    (void)values;
    (void)drawn;
    bool is_inside = out.width <= in.width && out.height <= in.height;
    return is_inside ? FL_EFFECT_NONE : FL_EFFECT_PIXELS;
}

static int32_t clamp(int32_t value, int32_t low, int32_t high)
{
    return value < low ? low : value > high ? high : value;
}

// The part [*start, *start + *count) of a side; a window that lies beside the picture
// still reads one row or column, since somebody has to be asked for something.
static void clip(int32_t side, int32_t *start, int32_t *count)
{
    int32_t end = clamp(*start + *count, 1, side);
    *start = clamp(*start, 0, end - 1);
    *count = end - *start;
}

static fl_box region(const double *values, const int32_t *drawn, fl_size in, fl_size out,
                     fl_box window)
{
    (void)values;
    (void)drawn;
    window.x += find_start(in.width, out.width);
    window.y += find_start(in.height, out.height);
    clip(in.width, &window.x, &window.width);
    clip(in.height, &window.y, &window.height);
    return window;
}

static fl_status read_row(padding_stream *stream, fl_error *error)
{
    fl_row_source source = stream->source;
    size_t stride = fl_row_stride(stream->region.width);
    return source.read(source.context, stream->row, stride, 1, error);
}

static fl_status read_padded(void *context, uint8_t *rows, size_t stride, int32_t count,
                             fl_error *error)
{
    padding_stream *stream = context;
    const fl_box *inside = &stream->inside;
    for (int32_t i = 0; i < count; i++, stream->rows_out++) {
        uint8_t *row = rows + (size_t)i * stride;
        int32_t y = stream->rows_out - inside->y;
        bool is_inside = y >= 0 && y < inside->height;
        bool is_dropped = inside->height == 0 && stream->rows_out == 0;
        if (is_inside || is_dropped) {
            fl_status status = read_row(stream, error);
            if (status != FL_OK)
                return status;
        }
        memset(row, 0, (size_t)stream->window.width * FL_PIXEL_SIZE);
        if (is_inside)
            memcpy(row + (size_t)inside->x * FL_PIXEL_SIZE, stream->row,
                   (size_t)inside->width * FL_PIXEL_SIZE);
    }
    return FL_OK;
}

// The overlap of a window's side that starts at `start` with a picture's side.
static void find_overlap(int32_t side, int32_t start, int32_t count, int32_t *before,
                         int32_t *inside)
{
    int32_t low = clamp(-start, 0, count);
    int32_t high = clamp(side - start, low, count);
    *before = low;
    *inside = high - low;
}

static void open(const double *values, const int32_t *drawn, const fl_op_place *place,
                 fl_arena *arena, fl_row_source *rows)
{
    (void)values;
    (void)drawn;
    fl_size in = place->in, out = place->out;
    fl_box window = place->window, inside;
    find_overlap(in.width, window.x + find_start(in.width, out.width), window.width,
                 &inside.x, &inside.width);
    find_overlap(in.height, window.y + find_start(in.height, out.height), window.height,
                 &inside.y, &inside.height);
    padding_stream *stream = fl_arena_take(arena, 1, sizeof(*stream));
    uint8_t *row = fl_rows_take(arena, place->region.width, 1);
    if (!fl_arena_is_ready(arena))
        return;

    *stream = (padding_stream){
        .source = *rows,
        .inside = inside,
        .window = {window.width, window.height},
        .region = {place->region.width, place->region.height},
        .row = row,
    };
    *rows = (fl_row_source){.read = read_padded, .context = stream};
}

const fl_op_vtable fl_op_center_crop = {
    .name = "center_crop",
    .title = title,
    .value_count = VALUES,
    .check = check,
    .find_size = find_size,
    .effect = effect,
    .region = region,
    .open = open,
};
