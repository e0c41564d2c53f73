// SPDX-License-Identifier: MIT
// Pillow adds up the step from pixel to pixel in a double instead of multiplying, and so
// does this: some positions differ otherwise.
#include "transform/nearest.h"

#include "transform/remap.h"

// Where the outputs of an axis lie in its input. The sum is off by less than half a step
// for fewer than 2^26 outputs (FL_MAX_SIDE is 2^24 - 1), so it stays inside.
typedef struct axis_walk {
    double step, at;
} axis_walk;

static axis_walk start_walk(int32_t in, int32_t out, int32_t start)
{
    double step = (double)in / out;
    axis_walk walk = {.step = step, .at = step * 0.5};
    for (int32_t i = 0; i < start; i++)
        walk.at += step;
    return walk;
}

static void find_positions(int32_t in, int32_t out, int32_t start, int32_t count,
                           int32_t region_start, int32_t *positions)
{
    axis_walk walk = start_walk(in, out, start);
    for (int32_t i = 0; i < count; i++, walk.at += walk.step)
        positions[i] = (int32_t)walk.at - region_start;
}

static void find_region(int32_t in, int32_t out, int32_t start, int32_t count,
                        int32_t *region_start, int32_t *region_count)
{
    axis_walk walk = start_walk(in, out, start);
    *region_start = (int32_t)walk.at;
    for (int32_t i = 1; i < count; i++)
        walk.at += walk.step;
    *region_count = (int32_t)walk.at + 1 - *region_start;
}

fl_box fl_nearest_region(fl_size in, fl_size out, fl_box window)
{
    fl_box region;
    find_region(in.width, out.width, window.x, window.width, &region.x, &region.width);
    find_region(in.height, out.height, window.y, window.height, &region.y,
                &region.height);
    return region;
}

void fl_nearest_open(fl_size in, fl_size out, fl_box window, fl_arena *arena,
                     fl_row_source *rows)
{
    fl_box region = fl_nearest_region(in, out, window);
    fl_remap *remap = fl_remap_take(arena, region, window, 1);
    if (!remap)
        return;
    find_positions(in.width, out.width, window.x, window.width, region.x, remap->columns);
    find_positions(in.height, out.height, window.y, window.height, region.y, remap->rows);
    fl_remap_open(remap, rows);
}
