// SPDX-License-Identifier: MIT
#include "pipeline/engine.h"

#include "base/clock.h"
#include "base/memory.h"
#include "pipeline/dispatch.h"
#include "pipeline/workers.h"

#include <stddef.h>

// What a sample is taken to hold before any was fetched; ImageNet's mean is 110 KB.
enum { FIRST_ESTIMATE = 128 * 1024 };

fl_status fl_engine_create(const fl_engine_options *options, fl_program program,
                           fl_slab_pool *pool, fl_engine **out, fl_error *error)
{
    fl_engine *engine = fl_alloc_zeroed(sizeof(*engine));
    if (!engine)
        return fl_error_no_memory(error);
    fl_status status = fl_counters_init(&engine->counters, error);
    if (status != FL_OK) {
        fl_free(engine);
        return status;
    }
    engine->options = *options;
    engine->program = program;
    engine->pool = fl_slab_pool_ref(pool);
    engine->references = 1;
    engine->mean_bytes = FIRST_ESTIMATE;
    fl_mutex_init(&engine->lock, FL_LOCK_ENGINE);
    fl_condition_init(&engine->quiet);
    for (fl_lane lane = 0; lane < FL_LANE_COUNT; lane++)
        fl_condition_init(&engine->lanes[lane].work);
    engine->lanes[FL_LANE_FETCH].maximum = options->fetch_threads;
    engine->lanes[FL_LANE_COMPUTE].maximum = options->compute_threads;
    engine->lanes[FL_LANE_PYTHON].maximum = options->python_threads;
    *out = engine;
    return FL_OK;
}

fl_engine *fl_engine_ref(fl_engine *engine)
{
    // Relaxed: a new reference is made from one that is held.
    atomic_fetch_add_explicit(&engine->references, 1, memory_order_relaxed);
    return engine;
}

static void destroy(fl_engine *engine)
{
    engine->program.vtable->release(engine->program.context);
    fl_slab_pool_unref(&engine->pool);
    fl_counters_deinit(&engine->counters);
    for (fl_lane lane = 0; lane < FL_LANE_COUNT; lane++)
        fl_condition_deinit(&engine->lanes[lane].work);
    fl_condition_deinit(&engine->quiet);
    fl_mutex_deinit(&engine->lock);
    fl_free(engine);
}

void fl_engine_unref(fl_engine **engine)
{
    fl_engine *released = *engine;
    *engine = NULL;
    // Acquire-release: the last holder sees what all others wrote.
    if (released &&
        atomic_fetch_sub_explicit(&released->references, 1, memory_order_acq_rel) == 1)
        destroy(released);
}

const fl_counters *fl_engine_counters(const fl_engine *engine)
{
    return &engine->counters;
}

bool fl_engine_is_closed(fl_engine *engine)
{
    fl_mutex_lock(&engine->lock);
    bool is_stopping = engine->is_stopping;
    fl_mutex_unlock(&engine->lock);
    return is_stopping;
}

void fl_engine_stop(fl_engine *engine)
{
    fl_calls calls = {0}; // stays empty: a stopping engine recruits nobody
    fl_mutex_lock(&engine->lock);
    engine->is_stopping = true;
    while (engine->oldest)
        fl_run_close_locked(engine, engine->oldest, &calls);
    for (fl_lane lane = 0; lane < FL_LANE_COUNT; lane++)
        fl_condition_broadcast(&engine->lanes[lane].work);
    fl_mutex_unlock(&engine->lock);
    fl_slab_pool_close(engine->pool);
}

static int32_t count_threads_locked(const fl_engine *engine)
{
    int32_t threads = 0;
    for (fl_lane lane = 0; lane < FL_LANE_COUNT; lane++)
        threads += engine->lanes[lane].threads;
    return threads;
}

int32_t fl_engine_close(fl_engine *engine, int64_t deadline_ns)
{
    fl_engine_stop(engine);
    fl_mutex_lock(&engine->lock);
    bool in_time = true;
    while (in_time && (count_threads_locked(engine) > 0 || engine->consumers_inside > 0))
        in_time = fl_condition_wait_until(&engine->quiet, &engine->lock, deadline_ns);
    int32_t left = count_threads_locked(engine);
    fl_mutex_unlock(&engine->lock);
    return left;
}
