// SPDX-License-Identifier: MIT
#include "transform/padding.h"

#include "transform/remap.h"

fl_status fl_padding_check(const char *title, const double *values, fl_error *error)
{
    static const char *const names[] = {"left", "top", "right", "bottom"};
    static const char *const colours[] = {"red", "green", "blue"};
    fl_status status = FL_OK;
    for (int32_t i = 0; i < 4 && status == FL_OK; i++)
        status = fl_op_check_whole(title, names[i], values[FL_PADDING_LEFT + i],
                                   -FL_MAX_SIDE, FL_MAX_SIDE, error);
    for (int32_t i = 0; i < FL_CHANNELS && status == FL_OK; i++)
        status = fl_op_check_whole(title, colours[i], values[FL_PADDING_FILL + i], 0, 255,
                                   error);
    if (status == FL_OK)
        status = fl_op_check_whole(title, "padding_mode", values[FL_PADDING_MODE],
                                   FL_PADDING_CONSTANT, FL_PADDING_SYMMETRIC, error);
    return status;
}

static fl_padding make_padding(const double *values, int32_t side, double before,
                               double after)
{
    fl_padding padding = {
        .mode = (fl_padding_mode)values[FL_PADDING_MODE],
        .side = side,
        .before = (int32_t)before,
        .after = (int32_t)after,
    };
    padding.count = side + padding.before + padding.after;
    return padding;
}

fl_padding fl_padding_across(const double *values, int32_t width)
{
    return make_padding(values, width, values[FL_PADDING_LEFT], values[FL_PADDING_RIGHT]);
}

fl_padding fl_padding_down(const double *values, int32_t height)
{
    return make_padding(values, height, values[FL_PADDING_TOP],
                        values[FL_PADDING_BOTTOM]);
}

static int32_t above_zero(int32_t value)
{
    return value > 0 ? value : 0;
}

// What is left of the picture where the ends are cut off.
static int32_t find_left(const fl_padding *padding)
{
    return padding->side - above_zero(-padding->before) - above_zero(-padding->after);
}

// The side after the first padding.
static int32_t find_padded(const fl_padding *padding)
{
    return padding->side + padding->before + padding->after;
}

static bool is_possible(const fl_padding *padding)
{
    if (padding->mode == FL_PADDING_CONSTANT)
        return find_padded(padding) > 0;
    return find_left(padding) > 0;
}

fl_status fl_padding_check_picture(const char *title, const fl_padding *across,
                                   const fl_padding *down, fl_error *error)
{
    if (is_possible(across) && is_possible(down))
        return FL_OK;
    return fl_error_set(error, FL_ERROR_ARGUMENT,
                        "%s: the padding (%d, %d, %d, %d) (left, top, right, bottom) "
                        "leaves nothing of a picture of %d x %d pixels (width x height)",
                        title, across->before, down->before, across->after, down->after,
                        across->side, down->side);
}

// Where the pixel at `at` lies among `side` pixels that it may be beside of.
static int32_t find_inside(fl_padding_mode mode, int32_t side, int32_t at)
{
    if (at >= 0 && at < side)
        return at;
    if (mode == FL_PADDING_CONSTANT)
        return FL_REMAP_FILL;
    if (mode == FL_PADDING_EDGE || side == 1)
        return at < 0 ? 0 : side - 1;
    // Back and forth, for ever; reflect does not repeat the pixels at the ends.
    int32_t repeats = mode == FL_PADDING_SYMMETRIC;
    int32_t period = 2 * (side - 1 + repeats);
    int32_t rest = at % period;
    rest += rest < 0 ? period : 0;
    return rest < side ? rest : period - rest - repeats;
}

// The picture's pixel that is pixel `i` of the result, or FL_REMAP_FILL.
static int32_t find_source(const fl_padding *padding, int32_t i)
{
    int32_t at = find_inside(padding->mode, find_padded(padding),
                             i + padding->start - padding->extra);
    if (at == FL_REMAP_FILL)
        return at;
    if (padding->mode == FL_PADDING_CONSTANT)
        return find_inside(padding->mode, padding->side, at - padding->before);
    // What is cut off is gone before the rest is extended.
    at = find_inside(padding->mode, find_left(padding), at - above_zero(padding->before));
    return at + above_zero(-padding->before);
}

static bool is_part(const fl_padding *padding)
{
    int32_t start = padding->start - padding->extra;
    int32_t end = start + padding->count;
    return start >= 0 && end <= find_padded(padding) && start >= padding->before &&
           end - padding->before <= padding->side;
}

bool fl_padding_has_effect(const fl_padding *across, const fl_padding *down)
{
    return !is_part(across) || !is_part(down);
}

static void find_region(const fl_padding *padding, int32_t window_start,
                        int32_t window_count, int32_t *start, int32_t *count)
{
    int32_t first = padding->side, last = -1;
    for (int32_t i = 0; i < window_count; i++) {
        int32_t at = find_source(padding, window_start + i);
        if (at == FL_REMAP_FILL)
            continue;
        first = at < first ? at : first;
        last = at > last ? at : last;
    }
    // A window beside the picture: somebody has to be asked for something.
    *start = last < 0 ? 0 : first;
    *count = last < 0 ? 1 : last - first + 1;
}

fl_box fl_padding_region(const fl_padding *across, const fl_padding *down, fl_box window)
{
    fl_box region;
    find_region(across, window.x, window.width, &region.x, &region.width);
    find_region(down, window.y, window.height, &region.y, &region.height);
    return region;
}

// How many rows have to be kept: as far as a row may lie behind the furthest one so far.
static int32_t count_kept(const fl_padding *down, fl_box window)
{
    int32_t furthest = 0, kept = 1;
    for (int32_t i = 0; i < window.height; i++) {
        int32_t at = find_source(down, window.y + i);
        if (at == FL_REMAP_FILL)
            continue;
        furthest = at > furthest ? at : furthest;
        kept = furthest - at + 1 > kept ? furthest - at + 1 : kept;
    }
    return kept;
}

static void find_sources(const fl_padding *padding, int32_t window_start,
                         int32_t window_count, int32_t region_start, int32_t *sources)
{
    for (int32_t i = 0; i < window_count; i++) {
        int32_t at = find_source(padding, window_start + i);
        sources[i] = at == FL_REMAP_FILL ? at : at - region_start;
    }
}

void fl_padding_open(const fl_padding *across, const fl_padding *down, const double *fill,
                     const fl_op_place *place, fl_arena *arena, fl_row_source *rows)
{
    fl_box region = place->region, window = place->window;
    fl_remap *remap = fl_remap_take(arena, region, window, count_kept(down, window));
    if (!remap)
        return;
    find_sources(across, window.x, window.width, region.x, remap->columns);
    find_sources(down, window.y, window.height, region.y, remap->rows);
    for (int32_t i = 0; i < FL_CHANNELS; i++)
        remap->fill[i] = (uint8_t)fill[i];
    fl_remap_open(remap, rows);
}
