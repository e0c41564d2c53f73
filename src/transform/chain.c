// SPDX-License-Identifier: MIT
// Sizes go forward through the geometry ops, windows backward; what is left of the ops
// then is a pipeline of row sources with the store at its end.
#include "transform/chain.h"

#include "base/memory.h"
#include "transform/op.h"

#include <string.h>

// Rows that the store asks for at once.
enum { BLOCK_ROWS = 2 * FL_RESIZE_ROWS };
// A row of a batch: more pixels than this are a mistake in the chain.
static const int64_t max_pixels = INT64_C(1) << 28;

typedef struct chain_op {
    const fl_op_vtable *vtable;
    double values[FL_MAX_OP_VALUES];
} chain_op;

struct fl_chain {
    chain_op ops[FL_MAX_OPS];
    int32_t count;
    int32_t geometry; // the first ops; the rest is in `store`
    fl_pixel_layout layout;
    bool is_fixed; // every picture ends at `fixed_size`
    fl_size fixed_size;
    fl_store store;
    const fl_resize_kernels *kernels;
};

// The pipeline of one picture. Op i goes from sizes[i] to sizes[i + 1] and computes
// windows[i + 1] from windows[i].
typedef struct chain_plan {
    fl_size sizes[FL_MAX_OPS + 1];
    fl_box windows[FL_MAX_OPS + 1];
    bool is_opened[FL_MAX_OPS];
    bool is_flipped, is_upside_down; // by the store
} chain_plan;

static fl_status add_op(fl_chain *chain, const fl_op_spec *spec, fl_store_spec *end,
                        fl_error *error)
{
    const fl_op_vtable *vtable = fl_op_find(spec->name);
    chain_op *op = &chain->ops[chain->count];
    if (!vtable)
        return fl_error_set(error, FL_ERROR_ARGUMENT, "there is no operation \"%.64s\"",
                            spec->name);
    if (spec->count != vtable->value_count)
        return fl_error_set(error, FL_ERROR_ARGUMENT, "%s takes %d numbers, not %d",
                            vtable->title, vtable->value_count, spec->count);
    op->vtable = vtable;
    memcpy(op->values, spec->values, (size_t)spec->count * sizeof(*op->values));
    fl_status status = vtable->check(op->values, error);
    if (status != FL_OK)
        return status;

    chain->count++;
    if (vtable->end)
        return vtable->end(op->values, end, error);
    if (end->dtype != FL_UINT8)
        return fl_error_set(error, FL_ERROR_ARGUMENT,
                            "%s works on 8-bit pixels, but they are %s by then: put it "
                            "before Normalize and ToDtype",
                            vtable->title, fl_dtype_name(end->dtype));
    chain->geometry = chain->count;
    return FL_OK;
}

// Are these the sides of a picture?
static fl_status check_size(const char *title, fl_size size, fl_error *error)
{
    if (size.width >= 1 && size.width <= FL_MAX_SIDE && size.height >= 1 &&
        size.height <= FL_MAX_SIDE)
        return FL_OK;
    return fl_error_set(error, FL_ERROR_ARGUMENT,
                        "%s would make a picture of %d x %d pixels (width x height); "
                        "both sides must be from 1 to %d",
                        title, size.width, size.height, FL_MAX_SIDE);
}

static fl_status check_end(fl_size size, fl_error *error)
{
    if ((int64_t)size.width * size.height <= max_pixels)
        return FL_OK;
    return fl_error_set(
        error, FL_ERROR_ARGUMENT,
        "the transforms would end in a picture of %d x %d pixels (width x "
        "height), more than the limit of %lld",
        size.width, size.height, (long long)max_pixels);
}

// Sets chain->is_fixed, and the size that every picture then ends at.
static fl_status find_fixed_size(fl_chain *chain, fl_error *error)
{
    fl_size size = {0, 0};
    bool is_known = false;
    for (int32_t i = 0; i < chain->geometry; i++) {
        const chain_op *op = &chain->ops[i];
        if (!op->vtable->find_size)
            continue;
        fl_size in = size;
        is_known = op->vtable->find_size(op->values, is_known ? &in : NULL, &size);
        fl_status status = is_known ? check_size(op->vtable->title, size, error) : FL_OK;
        if (status != FL_OK)
            return status;
    }
    chain->is_fixed = is_known;
    chain->fixed_size = size;
    return is_known ? check_end(size, error) : FL_OK;
}

static fl_status build(fl_chain *chain, const fl_op_spec *ops, int32_t count,
                       fl_error *error)
{
    fl_store_spec end = {.dtype = FL_UINT8};
    if (count < 0 || count > FL_MAX_OPS)
        return fl_error_set(error, FL_ERROR_ARGUMENT,
                            "a chain has at most %d operations, not %d", FL_MAX_OPS,
                            count);
    for (int32_t i = 0; i < count; i++) {
        fl_status status = add_op(chain, &ops[i], &end, error);
        if (status != FL_OK)
            return status;
    }
    fl_store_init(&chain->store, &end, chain->layout == FL_LAYOUT_NCHW);
    return find_fixed_size(chain, error);
}

fl_status fl_chain_create(const fl_op_spec *ops, int32_t count, fl_pixel_layout layout,
                          fl_chain **out, fl_error *error)
{
    fl_chain *chain = fl_alloc_zeroed(sizeof(*chain));
    if (!chain)
        return fl_error_no_memory(error);
    chain->layout = layout;
    chain->kernels = fl_resize_choose_kernels();
    fl_status status = build(chain, ops, count, error);
    if (status != FL_OK) {
        fl_chain_destroy(chain);
        return status;
    }
    *out = chain;
    return FL_OK;
}

void fl_chain_destroy(fl_chain *chain)
{
    fl_free(chain);
}

fl_dtype fl_chain_dtype(const fl_chain *chain)
{
    return chain->store.spec.dtype;
}

// CHW or HWC in memory; channels_last is HWC that is indexed as CHW.
static fl_row_shape make_shape(const fl_chain *chain, fl_size size)
{
    int64_t width = size.width, height = size.height, channels = FL_CHANNELS;
    fl_row_shape shape = {.dimensions = FL_MAX_ROW_DIMENSIONS};
    int64_t sides[FL_MAX_ROW_DIMENSIONS] = {channels, height, width};
    int64_t strides[FL_MAX_ROW_DIMENSIONS] = {height * width, width, 1};
    if (chain->layout != FL_LAYOUT_NCHW) {
        strides[0] = 1;
        strides[1] = width * channels;
        strides[2] = channels;
    }
    for (int32_t i = 0; i < FL_MAX_ROW_DIMENSIONS; i++) {
        // NHWC shows the sides in the order of the memory.
        int32_t from = chain->layout == FL_LAYOUT_NHWC ? (i + 1) % 3 : i;
        shape.shape[i] = sides[from];
        shape.strides[i] = strides[from];
    }
    return shape;
}

bool fl_chain_fixed_shape(const fl_chain *chain, fl_row_shape *out)
{
    if (chain->is_fixed)
        *out = make_shape(chain, chain->fixed_size);
    return chain->is_fixed;
}

static fl_status draw_ops(const fl_chain *chain, uint64_t key, uint64_t position,
                          fl_chain_draw *draw, fl_size *size, fl_error *error)
{
    for (int32_t i = 0; i < chain->geometry; i++) {
        const chain_op *op = &chain->ops[i];
        if (!op->vtable->find_size)
            continue;
        fl_status status = FL_OK;
        fl_size in = *size;
        fl_random random = fl_random_make(key, position, (uint32_t)i);
        if (op->vtable->draw)
            status = op->vtable->draw(op->values, in, &random, draw->values[i], error);
        op->vtable->find_size(op->values, &in, size);
        if (status == FL_OK)
            status = check_size(op->vtable->title, *size, error);
        if (status != FL_OK)
            return status;
    }
    return check_end(*size, error);
}

// What the draws mean for a picture of this size. Behind the last op that makes pixels,
// crops only move the window and flips are left to the store.
static void plan_picture(const fl_chain *chain, const fl_chain_draw *draw,
                         chain_plan *plan)
{
    int32_t count = chain->geometry;
    bool is_behind_pixels = true;
    *plan = (chain_plan){.sizes[0] = {draw->width, draw->height}};
    for (int32_t i = 0; i < count; i++) {
        const chain_op *op = &chain->ops[i];
        plan->sizes[i + 1] = plan->sizes[i];
        if (op->vtable->find_size)
            op->vtable->find_size(op->values, &plan->sizes[i], &plan->sizes[i + 1]);
    }
    fl_size end = plan->sizes[count];
    plan->windows[count] = (fl_box){0, 0, end.width, end.height};
    for (int32_t i = count - 1; i >= 0; i--) {
        const chain_op *op = &chain->ops[i];
        const int32_t *drawn = draw->values[i];
        fl_size in = plan->sizes[i], out = plan->sizes[i + 1];
        plan->windows[i] = plan->windows[i + 1];
        if (!op->vtable->find_size)
            continue;
        plan->windows[i] =
            op->vtable->region(op->values, drawn, in, out, plan->windows[i + 1]);
        fl_op_effect effect = op->vtable->effect(op->values, drawn, in, out);
        if (effect == FL_EFFECT_MIRROR && is_behind_pixels)
            plan->is_flipped = !plan->is_flipped;
        else if (effect == FL_EFFECT_UPSIDE_DOWN && is_behind_pixels)
            plan->is_upside_down = !plan->is_upside_down;
        else
            plan->is_opened[i] = effect != FL_EFFECT_NONE;
        is_behind_pixels = is_behind_pixels && effect != FL_EFFECT_PIXELS;
    }
}

// Turns the decoder's rows into the rows of the last picture; `block` are the rows that
// the store reads into.
static void open_pipeline(const fl_chain *chain, const fl_chain_draw *draw,
                          const chain_plan *plan, fl_arena *arena, fl_row_source *rows,
                          uint8_t **block)
{
    for (int32_t i = 0; i < chain->geometry; i++) {
        const chain_op *op = &chain->ops[i];
        fl_op_place place = {
            .in = plan->sizes[i],
            .out = plan->sizes[i + 1],
            .region = plan->windows[i],
            .window = plan->windows[i + 1],
            .kernels = chain->kernels,
        };
        if (plan->is_opened[i])
            op->vtable->open(op->values, draw->values[i], &place, arena, rows);
    }
    *block = fl_rows_take(arena, plan->sizes[chain->geometry].width, BLOCK_ROWS);
}

fl_status fl_chain_make_draw(const fl_chain *chain, int32_t width, int32_t height,
                             uint64_t key, uint64_t position, fl_chain_draw *draw,
                             fl_error *error)
{
    fl_size size = {width, height};
    fl_arena arena = {.scratch = NULL};
    fl_row_source rows = {.read = NULL};
    chain_plan plan;
    uint8_t *block;
    *draw = (fl_chain_draw){.width = width, .height = height};
    fl_status status = check_size("the file", size, error);
    if (status == FL_OK)
        status = draw_ops(chain, key, position, draw, &size, error);
    if (status != FL_OK)
        return status;

    plan_picture(chain, draw, &plan);
    open_pipeline(chain, draw, &plan, &arena, &rows, &block);
    if (arena.has_overflowed)
        return fl_error_set(error, FL_ERROR_LIMIT,
                            "a picture of %d x %d pixels (width x height) needs more "
                            "memory than can be addressed",
                            width, height);
    draw->region = plan.windows[0];
    draw->scratch = arena.size;
    draw->shape = make_shape(chain, size);
    // Checked by check_end: no overflow.
    draw->size = (size_t)size.width * (size_t)size.height * FL_CHANNELS *
                 chain->store.element_size;
    return FL_OK;
}

fl_status fl_chain_apply(const fl_chain *chain, const fl_chain_draw *draw,
                         fl_row_source source, fl_scratch *scratch, uint8_t *out,
                         fl_error *error)
{
    fl_arena arena = {.scratch = scratch};
    chain_plan plan;
    uint8_t *block;
    plan_picture(chain, draw, &plan);
    open_pipeline(chain, draw, &plan, &arena, &source, &block);
    if (!fl_arena_is_ready(&arena))
        return fl_error_set(error, FL_ERROR_LIMIT,
                            "the scratch memory is less than the %zu bytes planned",
                            draw->scratch);

    fl_size size = plan.sizes[chain->geometry];
    size_t stride = fl_row_stride(size.width);
    for (int32_t y = 0; y < size.height; y += BLOCK_ROWS) {
        int32_t left = size.height - y;
        int32_t count = left < BLOCK_ROWS ? left : BLOCK_ROWS;
        fl_status status = source.read(source.context, block, stride, count, error);
        if (status != FL_OK)
            return status;
        for (int32_t i = 0; i < count; i++) {
            int32_t row = plan.is_upside_down ? size.height - 1 - y - i : y + i;
            fl_store_row(&chain->store, block + (size_t)i * stride, size.width,
                         size.height, row, plan.is_flipped, out);
        }
    }
    return FL_OK;
}
