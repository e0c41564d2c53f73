// SPDX-License-Identifier: MIT
// Steps that only Python can do, on threads that Python made. They wait here, detached,
// like any other kind of thread; the last one stays while a run lives.
#include "base/clock.h"
#include "pipeline/steps.h"
#include "pipeline/workers.h"

#include <stddef.h>

bool fl_engine_python_enter(fl_engine *engine)
{
    fl_mutex_lock(&engine->lock);
    fl_lane_state *state = &engine->lanes[FL_LANE_PYTHON];
    bool has_work = false;
    for (fl_run *run = engine->oldest; run && !has_work; run = run->younger)
        has_work = run->queues[FL_QUEUE_PYTHON].top != NULL;
    bool is_wanted = has_work && !engine->is_stopping && state->idle == 0 &&
                     state->threads < state->maximum;
    state->threads += is_wanted;
    fl_mutex_unlock(&engine->lock);
    if (is_wanted)
        fl_counter_add(&engine->counters.block->stages[FL_STAGE_PYTHON].threads, 1);
    return is_wanted;
}

void fl_engine_python_exit(fl_engine *engine)
{
    fl_calls calls = {0};
    fl_counter_add(&engine->counters.block->stages[FL_STAGE_PYTHON].threads, -1);
    fl_mutex_lock(&engine->lock);
    // A task may have come since this thread found none. With others alive it is theirs;
    // and a thread that could not be started must not make its consumer try for ever.
    if (--engine->lanes[FL_LANE_PYTHON].threads == 0)
        fl_dispatch_recruit_locked(engine, FL_LANE_PYTHON, &calls);
    fl_condition_broadcast(&engine->quiet);
    fl_mutex_unlock(&engine->lock);
    fl_calls_make(engine, &calls);
}

fl_status fl_engine_python_take(fl_engine *engine, fl_python_task *out)
{
    fl_lane_state *state = &engine->lanes[FL_LANE_PYTHON];
    fl_calls calls = {0};
    fl_task *task = NULL;
    fl_mutex_lock(&engine->lock);
    while (!engine->is_stopping) {
        task = fl_dispatch_take_locked(engine, FL_LANE_PYTHON);
        if (task)
            break;
        bool is_called = fl_workers_sleep_locked(
            engine, FL_LANE_PYTHON, fl_clock_now() + engine->options.idle_exit_ns);
        bool is_needed = state->threads == 1 && engine->oldest;
        if (!is_called && !is_needed)
            break;
    }
    if (task)
        fl_dispatch_recruit_locked(engine, FL_LANE_PYTHON, &calls);
    fl_mutex_unlock(&engine->lock);
    fl_calls_make(engine, &calls);
    if (!task)
        return FL_END;
    *out = (fl_python_task){.run = task->batch->run,
                            .sample = &task->batch->view.samples[task->first],
                            .task = task,
                            .begin_ns = fl_clock_now()};
    return FL_OK;
}

void fl_engine_python_finish(fl_engine *engine, fl_python_task *task, fl_status status,
                             fl_error *error)
{
    fl_outcome outcome;
    fl_calls calls = {0};
    fl_task *done = task->task;
    fl_batch *batch = done->batch;
    fl_run *run = task->run;
    fl_stage_counters *counters = &engine->counters.block->stages[FL_STAGE_PYTHON];
    fl_counter_add(&counters->items, 1);
    fl_counter_add(&counters->busy_ns, fl_clock_now() - task->begin_ns);

    fl_steps_end_python(done, status, error, &outcome);
    fl_mutex_lock(&engine->lock);
    fl_dispatch_settle_locked(engine, &outcome, &calls);
    fl_mutex_unlock(&engine->lock);
    fl_calls_make(engine, &calls);
    fl_batch_unref(batch);
    fl_run_unref(&run);
}
