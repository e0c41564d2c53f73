// SPDX-License-Identifier: MIT
#include "pipeline/workers.h"

#include "base/clock.h"
#include "base/memory.h"
#include "base/thread.h"
#include "pipeline/steps.h"

#include <stdio.h>

typedef struct fl_worker {
    fl_engine *engine; // counted
    fl_lane lane;
    void *state; // the program's, compute threads only
} fl_worker;

static const fl_stage lane_stage[FL_LANE_COUNT] = {
    [FL_LANE_FETCH] = FL_STAGE_FETCH,
    [FL_LANE_COMPUTE] = FL_STAGE_COMPUTE,
    [FL_LANE_PYTHON] = FL_STAGE_PYTHON,
};

static void destroy_worker(fl_worker *worker)
{
    const fl_program *program = &worker->engine->program;
    if (worker->state)
        program->vtable->worker_destroy(worker->state);
    fl_engine_unref(&worker->engine);
    fl_free(worker);
}

bool fl_workers_sleep_locked(fl_engine *engine, fl_lane lane, int64_t deadline_ns)
{
    fl_lane_state *state = &engine->lanes[lane];
    bool is_blocked = fl_dispatch_has_queued_locked(engine, lane);
    int64_t begin = fl_clock_now();
    bool in_time = true;
    state->idle++;
    while (state->calls == 0 && !engine->is_stopping && in_time)
        in_time = fl_condition_wait_until(&state->work, &engine->lock, deadline_ns);

    fl_stage_counters *counters = &engine->counters.block->stages[lane_stage[lane]];
    fl_counter_add(is_blocked ? &counters->blocked_ns : &counters->starved_ns,
                   fl_clock_now() - begin);
    if (state->calls > 0) {
        state->calls--; // whoever called took this sleeper off the idle count
        return !engine->is_stopping;
    }
    state->idle--;
    return false;
}

static void work(fl_worker *worker)
{
    fl_engine *engine = worker->engine;
    fl_outcome outcome = {0};
    bool is_leaving = false;
    for (;;) {
        // One acquisition settles the last task and takes the next.
        fl_calls calls = {0};
        fl_batch *settled = NULL;
        fl_mutex_lock(&engine->lock);
        if (outcome.task) {
            settled = outcome.task->batch;
            fl_dispatch_settle_locked(engine, &outcome, &calls);
            outcome.task = NULL;
        }
        fl_task *task =
            engine->is_stopping ? NULL : fl_dispatch_take_locked(engine, worker->lane);
        if (task)
            fl_dispatch_recruit_locked(engine, worker->lane, &calls);
        else if (!settled && (is_leaving || engine->is_stopping))
            break;
        else if (!settled)
            is_leaving = !fl_workers_sleep_locked(
                engine, worker->lane, fl_clock_now() + engine->options.idle_exit_ns);
        fl_mutex_unlock(&engine->lock);

        fl_calls_make(engine, &calls);
        if (settled) {
            fl_run *run = settled->run;
            fl_batch_unref(settled);
            fl_run_unref(&run);
        }
        if (task) {
            is_leaving = false;
            fl_steps_run(engine, task, worker->state, &outcome);
        }
    }
    engine->lanes[worker->lane].threads--;
    fl_counter_add(&engine->counters.block->stages[lane_stage[worker->lane]].threads, -1);
    fl_condition_broadcast(&engine->quiet);
    fl_mutex_unlock(&engine->lock);
}

static void enter(void *argument)
{
    fl_worker *worker = argument;
    work(worker);
    destroy_worker(worker);
}

// The place in the thread count is taken already. All that can fail happens here, on the
// thread that starts, so that it can tell its caller.
static fl_status start(fl_engine *engine, fl_lane lane, fl_error *error)
{
    static const char *const names[] = {
        [FL_LANE_FETCH] = "fetch", [FL_LANE_COMPUTE] = "compute"};
    const fl_program *program = &engine->program;
    fl_status status = FL_OK;
    char name[32];
    fl_worker *worker = fl_alloc_zeroed(sizeof(*worker));
    if (!worker)
        return fl_error_no_memory(error);
    worker->engine = fl_engine_ref(engine);
    worker->lane = lane;
    if (lane == FL_LANE_COMPUTE)
        status = program->vtable->worker_create(program->context, &worker->state, error);
    if (status != FL_OK)
        goto fail;

    fl_mutex_lock(&engine->lock);
    int32_t number = engine->lanes[lane].started++;
    fl_mutex_unlock(&engine->lock);
    fl_counter_add(&engine->counters.block->stages[lane_stage[lane]].threads, 1);
    snprintf(name, sizeof(name), "fl-%s-%d", names[lane], number);
    status = fl_thread_start_detached(name, enter, worker, error);
    if (status == FL_OK)
        return FL_OK;
    fl_counter_add(&engine->counters.block->stages[lane_stage[lane]].threads, -1);
fail:
    destroy_worker(worker);
    return status;
}

// Gives the place back. With no thread of the kind left, the consumers of all runs come
// and look.
static void note_failed_start(fl_engine *engine, fl_lane lane)
{
    fl_mutex_lock(&engine->lock);
    engine->lanes[lane].threads--;
    if (engine->lanes[lane].threads == 0) {
        engine->lanes[lane].has_failed = true;
        for (fl_run *run = engine->oldest; run; run = run->younger) {
            fl_mutex_lock(&run->lock);
            fl_window_call_consumers_locked(run);
            fl_mutex_unlock(&run->lock);
        }
    }
    fl_condition_broadcast(&engine->quiet);
    fl_mutex_unlock(&engine->lock);
}

void fl_calls_make(fl_engine *engine, const fl_calls *calls)
{
    for (fl_lane lane = 0; lane < FL_LANE_COUNT; lane++) {
        for (int32_t i = 0; i < calls->wake[lane]; i++)
            fl_condition_signal(&engine->lanes[lane].work);
        for (int32_t i = 0; i < calls->start[lane]; i++)
            if (start(engine, lane, NULL) != FL_OK)
                note_failed_start(engine, lane);
    }
}

static bool take_failed_place(fl_engine *engine, fl_lane lane)
{
    fl_mutex_lock(&engine->lock);
    fl_lane_state *state = &engine->lanes[lane];
    bool must_try = state->has_failed && state->threads == 0 && !engine->is_stopping;
    state->has_failed = false;
    state->threads += must_try;
    fl_mutex_unlock(&engine->lock);
    return must_try;
}

fl_status fl_workers_ensure(fl_engine *engine, fl_error *error)
{
    for (fl_lane lane = FL_LANE_FETCH; lane <= FL_LANE_COMPUTE; lane++) {
        if (!take_failed_place(engine, lane))
            continue;
        fl_status status = start(engine, lane, error);
        if (status != FL_OK) {
            note_failed_start(engine, lane);
            return status;
        }
    }
    return FL_OK;
}
