// SPDX-License-Identifier: MIT
// The life of a run. Cancelling is a flag, an unlink and a wake-up; the last holder,
// which may be a compute thread, frees it.
#include "base/memory.h"
#include "pipeline/dispatch.h"
#include "pipeline/workers.h"

#include <assert.h>
#include <stddef.h>

fl_status fl_run_create(fl_engine *engine, void *run_context, fl_run **out,
                        fl_error *error)
{
    if (fl_engine_is_closed(engine))
        return fl_error_set(error, FL_ERROR_CLOSED, "the loader was closed");
    fl_run *run = fl_alloc_zeroed(sizeof(*run));
    if (!run)
        return fl_error_no_memory(error);
    run->engine = fl_engine_ref(engine);
    run->context = run_context;
    run->references = 1;
    fl_mutex_init(&run->lock, FL_LOCK_RUN);
    fl_condition_init(&run->batch_ready);
    *out = run;
    return FL_OK;
}

fl_run *fl_run_ref(fl_run *run)
{
    // Relaxed: a new reference is made from one that is held.
    atomic_fetch_add_explicit(&run->references, 1, memory_order_relaxed);
    return run;
}

static void destroy(fl_run *run)
{
    assert(!run->is_listed && "cancel a run before its last reference goes");
    // What queued tasks held when the run was cancelled goes now, with their samples.
    fl_counter_add(&run->engine->counters.block->fetched_bytes, -run->bytes_used);
    for (fl_batch *batch = run->first, *next; batch; batch = next) {
        next = batch->next;
        if (batch->state == FL_BATCH_READY)
            fl_counter_add(&run->engine->counters.block->batches_ready, -1);
        fl_batch_unref(batch);
    }
    run->engine->program.vtable->run_release(run->context);
    fl_condition_deinit(&run->batch_ready);
    fl_mutex_deinit(&run->lock);
    fl_engine_unref(&run->engine);
    fl_free(run);
}

void fl_run_unref(fl_run **run)
{
    fl_run *released = *run;
    *run = NULL;
    // Acquire-release: the last holder sees what all others wrote.
    if (released &&
        atomic_fetch_sub_explicit(&released->references, 1, memory_order_acq_rel) == 1)
        destroy(released);
}

void fl_run_close_locked(fl_engine *engine, fl_run *run, fl_calls *calls)
{
    // The flag first: a batch that is finished by dropping its samples is finished after
    // it, and whoever pops that batch looks at the flag.
    fl_cancel_set(&run->cancel);
    fl_dispatch_end_run_locked(engine, run, calls);
    fl_mutex_lock(&run->lock);
    run->is_closed = true;
    fl_condition_broadcast(&run->batch_ready);
    fl_mutex_unlock(&run->lock);
}

void fl_run_cancel(fl_run *run)
{
    fl_engine *engine = run->engine;
    fl_calls calls = {0};
    fl_mutex_lock(&engine->lock);
    fl_run_close_locked(engine, run, &calls);
    fl_mutex_unlock(&engine->lock);
    fl_calls_make(engine, &calls);
}

int64_t fl_run_delivered(fl_run *run)
{
    fl_mutex_lock(&run->lock);
    int64_t delivered = run->delivered;
    fl_mutex_unlock(&run->lock);
    return delivered;
}

bool fl_run_is_admitted(fl_run *run)
{
    fl_mutex_lock(&run->lock);
    bool is_admitted = run->is_admitted;
    fl_mutex_unlock(&run->lock);
    return is_admitted;
}
