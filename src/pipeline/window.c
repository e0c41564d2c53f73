// SPDX-License-Identifier: MIT
// The window of a run: its undelivered batches, from entry to pop. FILLING -> READY, or,
// where LATE data needs memory that only a consumer can supply, FILLING -> NEEDS_SLAB ->
// SUPPLYING -> READY.
#include "base/clock.h"
#include "pipeline/dispatch.h"
#include "pipeline/workers.h"

#include <stddef.h>

void fl_window_call_consumers_locked(fl_run *run)
{
    if (run->needs_attention)
        return; // called already, and nobody has come yet
    run->needs_attention = true;
    fl_condition_broadcast(&run->batch_ready);
}

// The batch that pop would take now.
static fl_batch *find_ready_locked(const fl_run *run)
{
    if (!run->engine->options.in_order)
        return run->ready;
    return run->first && run->first->state == FL_BATCH_READY ? run->first : NULL;
}

static fl_batch *find_slabless_locked(const fl_run *run)
{
    for (fl_batch *batch = run->first; batch; batch = batch->next)
        if (batch->state == FL_BATCH_NEEDS_SLAB)
            return batch;
    return NULL;
}

// Only those that memory has not been refused to: a consumer that waits for them would
// spin.
static bool can_supply_locked(const fl_run *run)
{
    for (fl_batch *batch = run->first; batch; batch = batch->next)
        if (batch->state == FL_BATCH_NEEDS_SLAB && !batch->is_refused)
            return true;
    return false;
}

// The head will not become ready by itself: a consumer has to supply memory, to let a
// batch enter, or to learn that this is the end. Only the head counts, out of order too:
// the batches behind it may wait for bytes until it is gone.
static bool is_dry_locked(const fl_run *run)
{
    return run->first ? run->first->state == FL_BATCH_NEEDS_SLAB : !run->is_admitting;
}

static bool is_over_locked(const fl_run *run)
{
    return run->is_admitted && !run->first;
}

// Cancelled counts as closed: a batch whose samples were dropped must not be seen. Who
// finished it has seen the flag, so who finds it here sees it too.
static bool is_closed_locked(const fl_run *run)
{
    return run->is_closed || fl_cancel_is_set(&run->cancel);
}

// ---- What engine threads do with a batch.

void fl_window_fail(fl_batch *batch, int32_t row, fl_error *error)
{
    // Of several failures the one at the lowest row is reported, whichever came first.
    fl_run *run = batch->run;
    fl_mutex_lock(&run->lock);
    if (row < batch->lowest_failed) {
        batch->lowest_failed = row;
        fl_error previous = batch->error;
        batch->error = *error;
        *error = previous;
    }
    fl_mutex_unlock(&run->lock);
    fl_error_clear(error);
}

static void mark_ready(fl_batch *batch)
{
    fl_run *run = batch->run;
    fl_counter_add(&run->engine->counters.block->batches_ready, 1);
    fl_mutex_lock(&run->lock);
    batch->state = FL_BATCH_READY;
    if (!run->engine->options.in_order) {
        fl_batch **link = &run->ready;
        while (*link)
            link = &(*link)->next_ready;
        *link = batch;
    }
    bool can_pop = find_ready_locked(run) != NULL;
    fl_mutex_unlock(&run->lock);
    // One consumer; who pops signals on if another batch can be popped.
    if (can_pop)
        fl_condition_signal(&run->batch_ready);
}

void fl_window_copy(fl_batch *batch)
{
    fl_engine *engine = batch->run->engine;
    int64_t begin = fl_clock_now();
    fl_parts_copy(batch->view.parts, batch->part_count, batch->late_slab->memory);
    fl_stage_counters *counters = &engine->counters.block->stages[FL_STAGE_COPY];
    fl_counter_add(&counters->items, 1);
    fl_counter_add(&counters->bytes, (int64_t)batch->late_size);
    fl_counter_add(&counters->busy_ns, fl_clock_now() - begin);
    mark_ready(batch);
}

// Memory for the LATE fields: taken here if the allocator is plain, else by a consumer.
static fl_status place_late(fl_batch *batch, bool *is_placed, fl_error *error)
{
    fl_engine *engine = batch->run->engine;
    fl_status status =
        fl_parts_layout(batch->view.parts, batch->part_count, &batch->late_size, error);
    if (status != FL_OK)
        return status;
    *is_placed = fl_slab_pool_is_plain(engine->pool);
    if (!*is_placed)
        return FL_OK;
    return fl_slab_pool_take(engine->pool, batch->late_size, &batch->late_slab, error);
}

void fl_window_abort(fl_batch *batch, fl_error *error)
{
    fl_window_fail(batch, 0, error);
    mark_ready(batch);
}

void fl_window_finish(fl_batch *batch)
{
    fl_run *run = batch->run;
    if (run->engine->program.layout->late_count == 0 ||
        batch->lowest_failed != INT32_MAX || fl_cancel_is_set(&run->cancel)) {
        mark_ready(batch);
        return;
    }

    fl_error error = FL_ERROR_INIT;
    bool is_placed = true;
    if (place_late(batch, &is_placed, &error) != FL_OK) {
        fl_window_abort(batch, &error);
        return;
    }
    if (is_placed) {
        fl_window_copy(batch);
        return;
    }
    fl_mutex_lock(&run->lock);
    batch->state = FL_BATCH_NEEDS_SLAB;
    fl_mutex_unlock(&run->lock);
    fl_condition_signal(&run->batch_ready);
}

// ---- What consumers do.

static int64_t measure_late(const fl_batch *batch)
{
    int64_t bytes = 0;
    for (int32_t i = 0; i < batch->part_count; i++)
        bytes += (int64_t)batch->view.parts[i].size;
    return bytes;
}

static void unlink_locked(fl_run *run, fl_batch *batch)
{
    if (run->ready == batch)
        run->ready = batch->next_ready;
    *(batch->previous ? &batch->previous->next : &run->first) = batch->next;
    *(batch->next ? &batch->next->previous : &run->last) = batch->previous;
    run->window_count--;
    run->delivered++;
}

// The head moved: its fetches pass, and a run that has ended gives its share back.
static void tell_dispatch(fl_run *run, int64_t head, bool is_over)
{
    fl_engine *engine = run->engine;
    fl_calls calls = {0};
    fl_mutex_lock(&engine->lock);
    if (head > run->head)
        run->head = head;
    if (is_over)
        fl_dispatch_end_run_locked(engine, run, &calls);
    else
        fl_dispatch_recruit_all_locked(engine, &calls);
    fl_mutex_unlock(&engine->lock);
    fl_calls_make(engine, &calls);
}

fl_status fl_run_pop(fl_run *run, fl_batch **out, fl_error *error)
{
    *out = NULL;
    fl_mutex_lock(&run->lock);
    bool is_closed = is_closed_locked(run), is_over = is_over_locked(run);
    fl_batch *batch = is_closed ? NULL : find_ready_locked(run);
    if (!batch) {
        fl_mutex_unlock(&run->lock);
        if (is_closed)
            return fl_error_set(
                error, FL_ERROR_CLOSED,
                "the iterator or its loader was closed; call iter() again");
        return is_over ? FL_END : FL_BUSY;
    }
    unlink_locked(run, batch);
    int64_t head = run->first ? run->first->view.number : run->next_number;
    bool has_more = find_ready_locked(run) || is_dry_locked(run);
    is_over = is_over_locked(run);
    fl_mutex_unlock(&run->lock);

    if (is_over)
        fl_condition_broadcast(&run->batch_ready); // for the others it is the end
    else if (has_more)
        fl_condition_signal(&run->batch_ready);
    tell_dispatch(run, head, is_over);

    fl_counters_block *counters = run->engine->counters.block;
    fl_counter_add(&counters->batches_ready, -1);
    fl_counter_add(&counters->batches_delivered, 1);
    atomic_fetch_sub(&run->late_bytes, measure_late(batch));
    if (batch->lowest_failed != INT32_MAX) {
        fl_status status = batch->error.code;
        fl_error_move(error, &batch->error);
        fl_batch_unref(batch);
        return status;
    }
    fl_counter_add(&counters->samples_delivered, batch->view.rows);
    *out = batch;
    return FL_OK;
}

// Memory for one batch that waits for it. FL_END: none does.
static fl_status supply_slab(fl_run *run, fl_error *error)
{
    fl_engine *engine = run->engine;
    fl_mutex_lock(&run->lock);
    fl_batch *batch = run->is_closed ? NULL : find_slabless_locked(run);
    if (batch)
        batch->state =
            FL_BATCH_SUPPLYING; // claimed: two consumers never supply one batch
    fl_mutex_unlock(&run->lock);
    if (!batch)
        return FL_END;

    fl_status status =
        fl_slab_pool_take(engine->pool, batch->late_size, &batch->late_slab, error);
    if (status != FL_OK) {
        // For all that wait: the next one would be refused as well.
        fl_mutex_lock(&run->lock);
        batch->state = FL_BATCH_NEEDS_SLAB;
        for (batch = run->first; batch; batch = batch->next)
            batch->is_refused |= batch->state == FL_BATCH_NEEDS_SLAB;
        fl_mutex_unlock(&run->lock);
        return status;
    }
    fl_calls calls = {0};
    batch->task.kind = FL_TASK_COPY;
    fl_mutex_lock(&engine->lock);
    fl_dispatch_push_locked(engine, run, &batch->task);
    fl_dispatch_recruit_locked(engine, FL_LANE_COMPUTE, &calls);
    fl_mutex_unlock(&engine->lock);
    fl_calls_make(engine, &calls);
    return FL_OK;
}

// LATE data is held while its batch is in the window: it gates the entry of batches,
// never one that is in; an empty window lets one in.
static bool may_enter_locked(const fl_run *run)
{
    const fl_engine_options *options = &run->engine->options;
    if (is_closed_locked(run) || run->is_admitted || run->is_admitting)
        return false;
    if (run->window_count == 0)
        return true;
    return run->window_count < options->window &&
           atomic_load(&run->late_bytes) < options->late_bytes;
}

static void enter_locked(fl_run *run, fl_batch *batch)
{
    batch->previous = run->last;
    *(run->last ? &run->last->next : &run->first) = batch;
    run->last = batch;
    run->window_count++;
    run->next_number++;
}

// Asks the program for batch `number` and makes it. FL_END: there is none.
static fl_status make_batch(fl_run *run, int64_t number, fl_batch **out, fl_error *error)
{
    int32_t rows = 0;
    const fl_program *program = &run->engine->program;
    fl_status status =
        program->vtable->admit(program->context, run->context, number, &rows, error);
    if (status != FL_OK)
        return status;
    return fl_batch_create(run, number, rows, out, error);
}

static void queue_plan(fl_run *run, fl_batch *batch)
{
    fl_engine *engine = run->engine;
    fl_calls calls = {0};
    fl_mutex_lock(&engine->lock);
    if (engine->is_stopping) {
        // It was not in the list when the engine stopped.
        fl_run_close_locked(engine, run, &calls);
    } else {
        fl_dispatch_list_run_locked(engine, run);
        fl_dispatch_push_locked(engine, run, &batch->task);
        fl_dispatch_recruit_locked(engine, FL_LANE_COMPUTE, &calls);
    }
    fl_mutex_unlock(&engine->lock);
    fl_calls_make(engine, &calls);
}

fl_status fl_run_feed(fl_run *run, fl_error *error)
{
    fl_mutex_lock(&run->lock);
    bool may_enter = may_enter_locked(run);
    int64_t number = run->next_number;
    run->is_admitting |= may_enter;
    fl_mutex_unlock(&run->lock);
    if (!may_enter)
        return FL_END;

    fl_batch *batch = NULL;
    fl_status status = make_batch(run, number, &batch, error);

    fl_mutex_lock(&run->lock);
    run->is_admitting = false;
    bool has_entered = status == FL_OK && !run->is_closed;
    if (has_entered)
        enter_locked(run, batch);
    if (status == FL_END)
        run->is_admitted = true;
    bool is_over = is_over_locked(run);
    fl_mutex_unlock(&run->lock);

    if (is_over)
        tell_dispatch(run, number, true); // the last batch was popped before
    if (has_entered) {
        queue_plan(run, batch);
        return FL_OK;
    }
    // The others may find the end, or try what failed here.
    fl_condition_broadcast(&run->batch_ready);
    fl_batch_unref(batch);
    return status == FL_OK ? FL_END : status;
}

fl_status fl_run_supply(fl_run *run, fl_error *error)
{
    // One at a time, with a look at the head in between: memory may be slow to come. Two
    // at least: in place of the batch that was taken, and so that a short window grows.
    fl_status status;
    bool is_ready, is_dry;
    int32_t supplied = 0;
    do {
        status = supply_slab(run, error);
        if (status == FL_END)
            status = fl_run_feed(run, error);
        fl_mutex_lock(&run->lock);
        is_ready = find_ready_locked(run) != NULL;
        is_dry = is_dry_locked(run);
        fl_mutex_unlock(&run->lock);
        supplied += status == FL_OK;
    } while (status == FL_OK && (!is_ready || supplied < 2));

    // A failed supply never loses a batch: the window stays shorter. It is the caller's
    // error only if nothing is on its way; then the others try as well.
    if (status < 0 && is_dry) {
        fl_condition_broadcast(&run->batch_ready);
        return status;
    }
    fl_error_clear(error);
    return fl_workers_ensure(run->engine, error);
}

// A window with nothing on its way would never wake anybody. One that is only shorter
// than it may be is not a reason: memory that was refused once would make the consumer
// spin.
static bool must_look_locked(const fl_run *run)
{
    return is_closed_locked(run) || run->needs_attention || is_dry_locked(run) ||
           find_ready_locked(run) || can_supply_locked(run);
}

static void count_waiter(fl_run *run, int32_t amount)
{
    fl_engine *engine = run->engine;
    fl_mutex_lock(&engine->lock);
    run->waiters += amount;
    engine->consumers_inside += amount;
    bool is_quiet = engine->is_stopping && engine->consumers_inside == 0;
    fl_mutex_unlock(&engine->lock);
    if (is_quiet)
        fl_condition_broadcast(&engine->quiet);
}

fl_status fl_run_wait(fl_run *run, int64_t deadline_ns, fl_error *error)
{
    fl_counters_block *counters = run->engine->counters.block;
    int64_t begin = fl_clock_now();
    // Of several consumers the first one's wait is shown, until it ends.
    int64_t nobody = 0, mine = begin;
    atomic_compare_exchange_strong(&counters->waiting_since_ns, &nobody, begin);
    count_waiter(run, 1);

    bool in_time = true;
    fl_mutex_lock(&run->lock);
    while (!must_look_locked(run) && in_time)
        in_time = fl_condition_wait_until(&run->batch_ready, &run->lock, deadline_ns);
    bool must_look = must_look_locked(run);
    run->needs_attention = false;
    fl_mutex_unlock(&run->lock);

    count_waiter(run, -1);
    fl_counter_add(&counters->consumer_waits, 1);
    fl_counter_add(&counters->consumer_wait_ns, fl_clock_now() - begin);
    atomic_compare_exchange_strong(&counters->waiting_since_ns, &mine, 0);
    if (!must_look)
        return fl_error_set(error, FL_ERROR_TIMEOUT, "no batch was ready in time");
    return FL_OK;
}

void fl_run_leave(fl_run *run)
{
    // A signal may have been spent on this consumer: another looks for itself.
    fl_mutex_lock(&run->lock);
    fl_window_call_consumers_locked(run);
    fl_mutex_unlock(&run->lock);
}
