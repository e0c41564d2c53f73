// SPDX-License-Identifier: MIT
#include "pipeline/steps.h"

#include "base/clock.h"

#include <assert.h>
#include <stddef.h>

// Work that nobody will see: its run is cancelled, or it lies behind the sample whose
// error the batch will report. Samples before that one go on: they may fail at a lower
// row.
static bool is_dropped(const fl_batch *batch, int32_t row)
{
    return fl_cancel_is_set(&batch->run->cancel) || row > batch->lowest_failed;
}

static void add_part_sizes(fl_batch *batch, int32_t row)
{
    int32_t slots = batch->part_count / batch->view.rows;
    for (int32_t slot = 0; slot < slots; slot++) {
        int64_t size = (int64_t)batch->view.parts[row * slots + slot].size;
        atomic_fetch_add(&batch->run->late_bytes, size);
    }
}

static void drop_parts(fl_batch *batch, int32_t row)
{
    int32_t slots = batch->part_count / batch->view.rows;
    fl_part *parts = batch->view.parts ? batch->view.parts + row * slots : NULL;
    if (!parts)
        return;
    fl_parts_drop(parts, slots);
    for (int32_t slot = 0; slot < slots; slot++)
        parts[slot] = (fl_part){0};
}

static void fail(fl_batch *batch, fl_sample *sample, fl_stage stage, fl_error *error)
{
    const fl_engine *engine = batch->run->engine;
    engine->program.vtable->describe(engine->program.context, sample, error);
    fl_counter_add(&engine->counters.block->stages[stage].errors, 1);
    fl_window_fail(batch, sample->row, error);
}

static void drop_bytes(fl_sample *sample)
{
    fl_buffer_unref(&sample->bytes);
    fl_buffer_unref(&sample->pixels);
}

// `count` samples need nothing more. The last one of a batch finishes it.
static void end_samples(fl_batch *batch, int32_t count)
{
    // Acquire-release: the finisher sees the rows that the others wrote.
    if (count && atomic_fetch_sub_explicit(&batch->remaining, count,
                                           memory_order_acq_rel) == count)
        fl_window_finish(batch);
}

static void push(fl_outcome *outcome, fl_task *task, fl_task_kind kind, fl_queue queue)
{
    task->kind = kind;
    task->queue = queue;
    task->sibling = outcome->pushed;
    outcome->pushed = task;
}

static void run_plan(fl_engine *engine, fl_batch *batch, fl_outcome *outcome)
{
    fl_error error = FL_ERROR_INIT;
    const fl_program *program = &engine->program;
    if (program->vtable->plan(program->context, batch->run->context, &batch->view,
                              &error) != FL_OK) {
        fl_window_abort(batch, &error);
        return;
    }

    int32_t rows = batch->view.rows;
    bool has_fetch = program->vtable->fetch != NULL;
    int32_t step = has_fetch ? 1 : program->range_rows;
    atomic_store_explicit(&batch->remaining, rows,
                          memory_order_relaxed); // published by the push
    for (int32_t row = (rows - 1) / step * step; row >= 0; row -= step) {
        fl_task *task = &batch->tasks[row];
        task->count = rows - row < step ? rows - row : step;
        if (has_fetch)
            push(outcome, task, FL_TASK_FETCH, FL_QUEUE_FETCH);
        else
            push(outcome, task, FL_TASK_COMPUTE, FL_QUEUE_COMPUTE);
    }
}

// Returns how many samples need nothing more.
static int32_t run_fetch(fl_engine *engine, fl_task *task, fl_outcome *outcome)
{
    fl_error error = FL_ERROR_INIT;
    fl_batch *batch = task->batch;
    fl_sample *sample = &batch->view.samples[task->first];
    const fl_program *program = &engine->program;
    if (is_dropped(batch, sample->row))
        return 1;
    if (program->vtable->fetch(program->context, sample, &batch->run->cancel, &error) !=
        FL_OK) {
        fail(batch, sample, FL_STAGE_FETCH, &error);
        return 1;
    }
    int64_t size = (int64_t)sample->bytes->size;
    fl_counter_add(&engine->counters.block->stages[FL_STAGE_FETCH].bytes, size);
    outcome->keeps_charge = true;
    outcome->more_bytes = size - task->charged;
    outcome->fetched = size;
    push(outcome, task, FL_TASK_COMPUTE, FL_QUEUE_COMPUTE);
    return 0;
}

// One sample of a range. True: it is done; else its task of its own was pushed.
static bool compute_sample(fl_engine *engine, fl_batch *batch, int32_t row,
                           bool has_permit, void *worker, fl_outcome *outcome)
{
    fl_error error = FL_ERROR_INIT;
    fl_run *run = batch->run;
    fl_sample *sample = &batch->view.samples[row];
    fl_task *own = &batch->tasks[row];
    const fl_program *program = &engine->program;
    if (is_dropped(batch, row)) {
        drop_bytes(sample);
        return true;
    }

    size_t limit = has_permit ? SIZE_MAX : program->scratch_plan;
    fl_status status =
        program->vtable->compute(program->context, run->context, worker, &batch->view,
                                 sample, limit, &run->cancel, &error);
    if (status != FL_OK)
        drop_parts(batch, row); // whoever comes back starts over
    if (status == FL_NEEDS_PYTHON || status == FL_NEEDS_SCRATCH) {
        own->count = 1;
        if (status == FL_NEEDS_PYTHON) {
            fl_counter_add(&engine->counters.block->python_fallbacks, 1);
            push(outcome, own, FL_TASK_PYTHON, FL_QUEUE_PYTHON);
        } else {
            assert(!has_permit);
            fl_counter_add(&engine->counters.block->oversize_tasks, 1);
            push(outcome, own, FL_TASK_COMPUTE, FL_QUEUE_OVERSIZE);
        }
        return false;
    }
    if (status == FL_OK) {
        int64_t size = sample->bytes ? (int64_t)sample->bytes->size : 0;
        fl_counter_add(&engine->counters.block->stages[FL_STAGE_COMPUTE].bytes, size);
        add_part_sizes(batch, row);
    } else {
        fail(batch, sample, FL_STAGE_COMPUTE, &error);
    }
    drop_bytes(sample);
    return true;
}

static int32_t run_compute(fl_engine *engine, fl_task *task, void *worker,
                           fl_outcome *outcome)
{
    // The task is the first sample's own: read it before that sample may leave as a task
    // again.
    fl_batch *batch = task->batch;
    int32_t first = task->first, end = first + task->count, done = 0;
    bool has_permit = task->has_permit;
    for (int32_t row = first; row < end; row++)
        done += compute_sample(engine, batch, row, has_permit, worker, outcome);
    outcome->keeps_charge = done == 0;
    return done;
}

static const fl_stage kind_stage[] = {
    [FL_TASK_PLAN] = FL_STAGE_PLAN,       [FL_TASK_FETCH] = FL_STAGE_FETCH,
    [FL_TASK_COMPUTE] = FL_STAGE_COMPUTE, [FL_TASK_PYTHON] = FL_STAGE_PYTHON,
    [FL_TASK_COPY] = FL_STAGE_COPY,
};

void fl_steps_run(fl_engine *engine, fl_task *task, void *worker, fl_outcome *outcome)
{
    // A sample that is done may be popped, with its batch; the references keep both here.
    fl_task_kind kind = task->kind;
    int32_t count = task->count, ended = 0;
    int64_t begin = fl_clock_now();
    *outcome = (fl_outcome){.task = task, .fetched = -1};
    switch (kind) {
    case FL_TASK_PLAN:
        run_plan(engine, task->batch, outcome);
        count = 1;
        break;
    case FL_TASK_FETCH:
        ended = run_fetch(engine, task, outcome);
        break;
    case FL_TASK_COMPUTE:
        ended = run_compute(engine, task, worker, outcome);
        break;
    case FL_TASK_COPY: // counts for itself
        fl_window_copy(task->batch);
        return;
    case FL_TASK_PYTHON:
        assert(0 && "native threads run no Python tasks");
        return;
    }
    fl_stage_counters *counters = &engine->counters.block->stages[kind_stage[kind]];
    fl_counter_add(&counters->items, count);
    fl_counter_add(&counters->busy_ns, fl_clock_now() - begin);
    // Counted before the consumer can see the batch.
    end_samples(task->batch, ended);
}

void fl_steps_end_python(fl_task *task, fl_status status, fl_error *error,
                         fl_outcome *outcome)
{
    fl_batch *batch = task->batch;
    fl_sample *sample = &batch->view.samples[task->first];
    *outcome = (fl_outcome){.task = task, .fetched = -1};
    sample->pixels_tried = true;
    if (status == FL_OK && !is_dropped(batch, sample->row)) {
        outcome->keeps_charge = true;
        outcome->more_bytes = (int64_t)sample->pixels->size;
        push(outcome, task, FL_TASK_COMPUTE, FL_QUEUE_COMPUTE);
        return;
    }
    drop_bytes(sample);
    if (status != FL_OK)
        fail(batch, sample, FL_STAGE_PYTHON, error);
    end_samples(batch, 1);
}
