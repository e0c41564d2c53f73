// SPDX-License-Identifier: MIT
#include "pipeline/dispatch.h"

#include <assert.h>
#include <stddef.h>

static const fl_stage queue_stage[FL_QUEUE_COUNT] = {
    [FL_QUEUE_FETCH] = FL_STAGE_FETCH,
    [FL_QUEUE_COMPUTE] = FL_STAGE_COMPUTE,
    [FL_QUEUE_OVERSIZE] = FL_STAGE_COMPUTE,
    [FL_QUEUE_PYTHON] = FL_STAGE_PYTHON,
};

static void count_queued(fl_engine *engine, fl_queue queue, int64_t amount)
{
    fl_counter_add(&engine->counters.block->stages[queue_stage[queue]].queued, amount);
}

void fl_dispatch_push_locked(fl_engine *engine, fl_run *run, fl_task *task)
{
    if (run->is_ended)
        return;
    fl_heap_push(&run->queues[task->queue], task);
    count_queued(engine, task->queue, 1);
}

// Fetched bytes gate the dispatch of fetches. The head of each run passes while it holds
// nothing, whatever the budget says: so a full read-ahead of later samples can never stop
// the head.
static bool may_fetch(const fl_engine *engine, const fl_run *run, const fl_task *task)
{
    int64_t share = engine->options.fetch_bytes / engine->run_count;
    if (run->bytes_used + engine->mean_bytes <= share)
        return true;
    return task->number == run->head && task->batch->held == 0;
}

// The first task of the run that this kind of thread may run now.
static fl_task *find_in_run(const fl_engine *engine, const fl_run *run, fl_lane lane)
{
    if (lane == FL_LANE_PYTHON)
        return run->queues[FL_QUEUE_PYTHON].top;
    if (lane == FL_LANE_FETCH) {
        fl_task *task = run->queues[FL_QUEUE_FETCH].top;
        return task && may_fetch(engine, run, task) ? task : NULL;
    }
    fl_task *task = run->queues[FL_QUEUE_COMPUTE].top;
    fl_task *oversize = engine->permit_taken ? NULL : run->queues[FL_QUEUE_OVERSIZE].top;
    if (!task || (oversize && fl_task_is_before(oversize, task)))
        return oversize;
    return task;
}

static fl_task *find_locked(fl_engine *engine, fl_lane lane, bool *is_head)
{
    fl_task *oldest = NULL, *head = NULL;
    fl_run *head_run = NULL;
    for (fl_run *run = engine->oldest; run; run = run->younger) {
        fl_task *task = find_in_run(engine, run, lane);
        if (!task)
            continue;
        if (!oldest)
            oldest = task;
        if (run->waiters == 0 || task->number != run->head)
            continue;
        // In turns: of several waiting heads, the one that this kind served longest ago.
        if (!head || run->served[lane] < head_run->served[lane]) {
            head = task;
            head_run = run;
        }
    }
    *is_head = head != NULL;
    return head ? head : oldest;
}

fl_task *fl_dispatch_take_locked(fl_engine *engine, fl_lane lane)
{
    bool is_head;
    fl_task *task = find_locked(engine, lane, &is_head);
    if (!task)
        return NULL;

    fl_batch *batch = task->batch;
    fl_run *run = batch->run;
    fl_task *popped = fl_heap_pop(&run->queues[task->queue]);
    assert(popped == task);
    (void)popped;
    count_queued(engine, task->queue, -1);
    if (is_head)
        run->served[lane] = ++engine->service_clock;

    if (task->queue == FL_QUEUE_FETCH) {
        task->is_charged = true;
        task->charged = engine->mean_bytes;
        run->bytes_used += task->charged;
        fl_counter_add(&engine->counters.block->fetched_bytes, task->charged);
        batch->held++;
    } else if (task->queue == FL_QUEUE_OVERSIZE) {
        task->has_permit = true;
        engine->permit_taken = true;
    }
    fl_batch_ref(batch);
    fl_run_ref(run);
    return task;
}

static void charge_locked(fl_engine *engine, fl_task *task, int64_t bytes)
{
    task->charged += bytes;
    task->batch->run->bytes_used += bytes;
    fl_counter_add(&engine->counters.block->fetched_bytes, bytes);
}

static void give_charge_back_locked(fl_engine *engine, fl_task *task)
{
    if (!task->is_charged)
        return;
    charge_locked(engine, task, -task->charged);
    task->is_charged = false;
    task->batch->held--;
}

void fl_dispatch_settle_locked(fl_engine *engine, const fl_outcome *outcome,
                               fl_calls *calls)
{
    fl_task *task = outcome->task;
    fl_run *run = task->batch->run;
    if (outcome->fetched >= 0)
        engine->mean_bytes += (outcome->fetched - engine->mean_bytes) / 16;
    if (!outcome->keeps_charge)
        give_charge_back_locked(engine, task);
    else if (task->is_charged)
        charge_locked(engine, task, outcome->more_bytes);
    if (task->has_permit) {
        task->has_permit = false;
        engine->permit_taken = false;
    }

    for (fl_task *pushed = outcome->pushed, *next; pushed; pushed = next) {
        next = pushed->sibling;
        fl_dispatch_push_locked(engine, run, pushed);
    }
    fl_dispatch_recruit_all_locked(engine, calls);
}

// Python threads are made by Python: a consumer that waits comes out of its wait and
// makes one.
static void ask_for_python_locked(fl_engine *engine)
{
    for (fl_run *run = engine->oldest; run; run = run->younger) {
        fl_mutex_lock(&run->lock);
        fl_window_call_consumers_locked(run);
        fl_mutex_unlock(&run->lock);
    }
}

void fl_dispatch_recruit_locked(fl_engine *engine, fl_lane lane, fl_calls *calls)
{
    fl_lane_state *state = &engine->lanes[lane];
    bool is_head;
    if (engine->is_stopping || !find_locked(engine, lane, &is_head))
        return;

    if (state->idle > 0) {
        // Off the idle count at once: else a burst of pushes calls one sleeper many
        // times.
        state->idle--;
        state->calls++;
        calls->wake[lane]++;
    } else if (state->threads < state->maximum) {
        if (lane == FL_LANE_PYTHON) {
            ask_for_python_locked(engine);
            return;
        }
        state->threads++;
        calls->start[lane]++;
    }
}

void fl_dispatch_recruit_all_locked(fl_engine *engine, fl_calls *calls)
{
    for (fl_lane lane = 0; lane < FL_LANE_COUNT; lane++)
        fl_dispatch_recruit_locked(engine, lane, calls);
}

bool fl_dispatch_has_queued_locked(fl_engine *engine, fl_lane lane)
{
    for (fl_run *run = engine->oldest; run; run = run->younger) {
        if (lane == FL_LANE_FETCH && run->queues[FL_QUEUE_FETCH].top)
            return true;
        if (lane == FL_LANE_COMPUTE && run->queues[FL_QUEUE_OVERSIZE].top)
            return true;
    }
    return false;
}

void fl_dispatch_list_run_locked(fl_engine *engine, fl_run *run)
{
    if (run->is_listed || run->is_ended)
        return;
    fl_run **link = &engine->oldest;
    while (*link)
        link = &(*link)->younger;
    *link = run;
    run->is_listed = true;
    engine->run_count++;
}

void fl_dispatch_end_run_locked(fl_engine *engine, fl_run *run, fl_calls *calls)
{
    if (run->is_ended)
        return;
    run->is_ended = true;
    for (fl_queue queue = 0; queue < FL_QUEUE_COUNT; queue++) {
        count_queued(engine, queue, -run->queues[queue].count);
        run->queues[queue] = (fl_heap){0};
    }
    if (run->is_listed) {
        fl_run **link = &engine->oldest;
        while (*link != run)
            link = &(*link)->younger;
        *link = run->younger;
        run->is_listed = false;
        engine->run_count--;
    }
    // The others' shares grow.
    fl_dispatch_recruit_all_locked(engine, calls);
}
