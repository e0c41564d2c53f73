// SPDX-License-Identifier: MIT
#include "feedline.h"

#include <stddef.h>

enum {
    FETCH_BYTES_A_THREAD = 4 << 20, // read ahead for each compute thread, ...
    FETCH_BYTES_LEAST = 16 << 20,   // ... but at least this much
    SCRATCH_LEAST = 8 << 20,        // a 12-megapixel baseline picture needs less
    SCRATCH_MOST = 64 << 20,
    POOL_SPARE_SLABS = 3, // the user holds that many while the next ones fill
    MAX_FILE_SIZE = 1 << 30,
};

static const int64_t IDLE_EXIT_NS = 10 * FL_SECOND_NS;

struct fl_loader {
    fl_engine
        *engine; // counted: holds the program, and with it the layout and the catalog
    fl_slab_pool *pool;
    const fl_layout *layout; // the program's
    int64_t count;           // samples in the catalog
    int32_t batch_size;      // at least the layout's rows
    fl_loader_plan plan;
};

static int64_t clamp(int64_t value, int64_t least, int64_t most)
{
    return value < least ? least : value > most ? most : value;
}

// The memory limit is shared out: files that were read take up to a quarter, undelivered
// batches the rest.
static void plan_memory(const fl_loader_spec *spec, fl_loader_plan *plan)
{
    int64_t ahead = (int64_t)spec->compute_threads * FETCH_BYTES_A_THREAD;
    ahead = ahead < FETCH_BYTES_LEAST ? FETCH_BYTES_LEAST : ahead;
    plan->fetch_bytes = clamp(spec->memory_limit / 4, 1, ahead);
    plan->late_bytes = spec->memory_limit - plan->fetch_bytes;
    plan->scratch_plan = clamp(spec->memory_limit / (8 * spec->compute_threads),
                               SCRATCH_LEAST, SCRATCH_MOST);
}

static int32_t plan_window(const fl_loader_spec *spec, const fl_loader_plan *plan,
                           size_t slab_size)
{
    if (slab_size == 0)
        return spec->prefetch_batches;
    int64_t fitting = plan->late_bytes / (int64_t)slab_size;
    return (int32_t)clamp(fitting, 1, spec->prefetch_batches);
}

static fl_status check_spec(const fl_loader_spec *spec, fl_error *error)
{
    if (spec->batch_size < 1)
        return fl_error_set(error, FL_ERROR_ARGUMENT,
                            "batch_size must be at least 1, not %d", spec->batch_size);
    if (spec->compute_threads < 1 || spec->fetch_threads < 1 || spec->python_threads < 0)
        return fl_error_set(error, FL_ERROR_ARGUMENT,
                            "num_threads and io_threads must be at least 1");
    if (spec->prefetch_batches < 1)
        return fl_error_set(error, FL_ERROR_ARGUMENT,
                            "prefetch_batches must be at least 1, not %d",
                            spec->prefetch_batches);
    if (spec->memory_limit < 1)
        return fl_error_set(error, FL_ERROR_ARGUMENT,
                            "memory_limit must be at least 1 byte, not %lld",
                            (long long)spec->memory_limit);
    return FL_OK;
}

// Rows that a batch can have: a batch size beyond the data set asks for one batch of all,
// not for memory.
static int32_t most_rows(const fl_loader_spec *spec)
{
    int64_t count = fl_catalog_count(spec->catalog);
    return spec->full_batches || count >= spec->batch_size
               ? spec->batch_size
               : (int32_t)clamp(count, 1, spec->batch_size);
}

static fl_status make_program(const fl_loader_spec *spec, const fl_loader_plan *plan,
                              fl_program *out, fl_error *error)
{
    fl_file_program_spec program = {.catalog = spec->catalog,
                                    .fields = spec->fields,
                                    .field_count = spec->field_count,
                                    .batch_size = most_rows(spec),
                                    .max_pixels = spec->max_pixels,
                                    .max_file_size = MAX_FILE_SIZE,
                                    .scratch_plan = (size_t)plan->scratch_plan,
                                    .has_fallback = spec->python_threads > 0};
    return fl_file_program_create(&program, out, error);
}

fl_status fl_loader_open(const fl_loader_spec *spec, fl_allocator allocator,
                         fl_loader **out, fl_error *error)
{
    fl_program program = {0};
    fl_loader *loader = NULL;
    fl_status status = check_spec(spec, error);
    if (status != FL_OK)
        goto fail;
    loader = fl_alloc_zeroed(sizeof(*loader));
    if (!loader) {
        status = fl_error_no_memory(error);
        goto fail;
    }
    plan_memory(spec, &loader->plan);
    status = make_program(spec, &loader->plan, &program, error);
    if (status != FL_OK)
        goto fail;
    loader->layout = program.layout;
    loader->count = fl_catalog_count(spec->catalog);
    loader->batch_size = spec->batch_size;
    loader->plan.window = plan_window(spec, &loader->plan, program.layout->slab_size);

    // The pool before the engine: it is the one to give the allocator to, last of what
    // can fail but the engine, whose failure closes it again.
    fl_engine_options options = {.compute_threads = spec->compute_threads,
                                 .fetch_threads = spec->fetch_threads,
                                 .python_threads = spec->python_threads,
                                 .window = loader->plan.window,
                                 .fetch_bytes = loader->plan.fetch_bytes,
                                 .late_bytes = loader->plan.late_bytes,
                                 .in_order = spec->in_order,
                                 .idle_exit_ns = IDLE_EXIT_NS};
    status = fl_slab_pool_create(allocator, loader->plan.window + POOL_SPARE_SLABS,
                                 &loader->pool, error);
    if (status != FL_OK)
        goto fail;
    status = fl_engine_create(&options, program, loader->pool, &loader->engine, error);
    if (status != FL_OK)
        goto fail;
    fl_file_program_count_warnings(
        program, &fl_engine_counters(loader->engine)->block->jpeg_warnings);
    *out = loader;
    return FL_OK;
fail:
    if (program.vtable)
        program.vtable->release(program.context);
    // The pool owns the allocator once it is there.
    if (allocator.destroy && !(loader && loader->pool))
        allocator.destroy(allocator.context);
    fl_loader_free(loader);
    return status;
}

void fl_loader_free(fl_loader *loader)
{
    if (!loader)
        return;
    if (loader->engine)
        fl_engine_stop(loader->engine);
    fl_engine_unref(&loader->engine);
    fl_slab_pool_unref(&loader->pool);
    fl_free(loader);
}

fl_engine *fl_loader_engine(const fl_loader *loader)
{
    return loader->engine;
}

const fl_layout *fl_loader_layout(const fl_loader *loader)
{
    return loader->layout;
}

int32_t fl_loader_batch_size(const fl_loader *loader)
{
    return loader->batch_size;
}

const fl_counters *fl_loader_counters(const fl_loader *loader)
{
    return fl_engine_counters(loader->engine);
}

fl_slab_pool *fl_loader_pool(const fl_loader *loader)
{
    return loader->pool;
}

fl_loader_plan fl_loader_read_plan(const fl_loader *loader)
{
    return loader->plan;
}

fl_status fl_loader_start_run(fl_loader *loader, const fl_cursor_spec *spec, fl_run **out,
                              fl_error *error)
{
    fl_cursor *cursor = NULL;
    void *context = NULL;
    fl_cursor_spec own = *spec;
    own.count = loader->count;
    own.batch_size = loader->batch_size;
    if (spec->uneven == FL_UNEVEN_MASK && loader->layout->rows < loader->batch_size)
        return fl_error_set(error, FL_ERROR_ARGUMENT,
                            "a run that fills its batches needs full_batches");
    fl_status status = fl_cursor_create(&own, &cursor, error);
    if (status != FL_OK)
        return status;
    status = fl_file_program_run(cursor, spec->seed, spec->epoch, &context, error);
    if (status != FL_OK)
        return status;
    status = fl_run_create(loader->engine, context, out, error);
    if (status != FL_OK)
        fl_file_program_run_free(context);
    return status;
}
