// SPDX-License-Identifier: MIT
// Each row that is kept has one pixel more than the region: the fill colour, which the
// columns without one of their own take. So a row is made without a decision a pixel.
#include "transform/remap.h"

#include <assert.h>
#include <string.h>

fl_remap *fl_remap_take(fl_arena *arena, fl_box region, fl_box window, int32_t kept_rows)
{
    fl_remap *remap = fl_arena_take(arena, 1, sizeof(*remap));
    size_t width = (size_t)window.width, height = (size_t)window.height;
    int32_t *columns = fl_arena_take(arena, width, sizeof(*columns));
    int32_t *rows = fl_arena_take(arena, height, sizeof(*rows));
    // A pixel more always fits into the padding of a row.
    uint8_t *kept = fl_rows_take(arena, region.width, kept_rows);
    if (!fl_arena_is_ready(arena))
        return NULL;

    *remap = (fl_remap){
        .region = {region.width, region.height},
        .window = {window.width, window.height},
        .columns = columns,
        .rows = rows,
        .kept = kept,
        .kept_rows = kept_rows,
    };
    for (size_t x = 0; x < width; x++)
        columns[x] = FL_REMAP_FILL;
    for (size_t y = 0; y < height; y++)
        rows[y] = FL_REMAP_FILL;
    return remap;
}

static uint8_t *kept_row(const fl_remap *remap, int32_t row)
{
    size_t slot = (size_t)(row % remap->kept_rows);
    return remap->kept + slot * fl_row_stride(remap->region.width);
}

// Reads rows of the region until there are `count`.
static fl_status read_until(fl_remap *remap, int32_t count, fl_error *error)
{
    fl_row_source source = remap->source;
    size_t stride = fl_row_stride(remap->region.width);
    size_t end = (size_t)remap->region.width * FL_PIXEL_SIZE;
    for (; remap->rows_in < count; remap->rows_in++) {
        uint8_t *row = kept_row(remap, remap->rows_in);
        fl_status status = source.read(source.context, row, stride, 1, error);
        if (status != FL_OK)
            return status;
        memcpy(row + end, remap->fill, FL_PIXEL_SIZE);
    }
    return FL_OK;
}

static void copy_pixels(const fl_remap *remap, const uint8_t *from, uint8_t *to,
                        int32_t start, int32_t end)
{
    for (int32_t x = start; x < end; x++)
        memcpy(to + (size_t)x * FL_PIXEL_SIZE,
               from + (size_t)remap->columns[x] * FL_PIXEL_SIZE, FL_PIXEL_SIZE);
}

static void make_row(const fl_remap *remap, const uint8_t *from, uint8_t *to)
{
    int32_t start = remap->run_start, end = start + remap->run_length;
    copy_pixels(remap, from, to, 0, start);
    memcpy(to + (size_t)start * FL_PIXEL_SIZE,
           from + (size_t)remap->columns[start] * FL_PIXEL_SIZE,
           (size_t)remap->run_length * FL_PIXEL_SIZE);
    copy_pixels(remap, from, to, end, remap->window.width);
}

static void fill_row(const fl_remap *remap, uint8_t *to)
{
    for (int32_t x = 0; x < remap->window.width; x++)
        memcpy(to + (size_t)x * FL_PIXEL_SIZE, remap->fill, FL_PIXEL_SIZE);
}

static fl_status read_remapped(void *context, uint8_t *rows, size_t stride, int32_t count,
                               fl_error *error)
{
    fl_remap *remap = context;
    for (int32_t i = 0; i < count; i++) {
        int32_t row = remap->rows[remap->rows_out++];
        // The region is read to its end, also where it ends with rows for nobody.
        bool is_last = remap->rows_out == remap->window.height;
        fl_status status = read_until(remap, row + 1, error);
        if (status != FL_OK)
            return status;
        assert(remap->rows_in - row <= remap->kept_rows || row == FL_REMAP_FILL);
        if (row == FL_REMAP_FILL)
            fill_row(remap, rows + (size_t)i * stride);
        else
            make_row(remap, kept_row(remap, row), rows + (size_t)i * stride);
        if (is_last)
            status = read_until(remap, remap->region.height, error);
        if (status != FL_OK)
            return status;
    }
    return FL_OK;
}

// The longest run of neighbours: for padding that is all of the picture.
static void find_run(fl_remap *remap)
{
    int32_t start = 0;
    remap->run_length = 0;
    for (int32_t x = 1; x <= remap->window.width; x++) {
        if (x < remap->window.width && remap->columns[x] == remap->columns[x - 1] + 1)
            continue;
        if (x - start > remap->run_length) {
            remap->run_start = start;
            remap->run_length = x - start;
        }
        start = x;
    }
}

void fl_remap_open(fl_remap *remap, fl_row_source *rows)
{
    for (int32_t x = 0; x < remap->window.width; x++) {
        if (remap->columns[x] == FL_REMAP_FILL)
            remap->columns[x] = remap->region.width;
    }
    find_run(remap);
    remap->source = *rows;
    *rows = (fl_row_source){.read = read_remapped, .context = remap};
}
