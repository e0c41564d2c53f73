// SPDX-License-Identifier: MIT
// A batch in the making, and what a consumer reads from it. Counted: the last holder, on
// any thread, drops the slabs.
#include "base/memory.h"
#include "pipeline/state.h"

#include <assert.h>
#include <stddef.h>

static fl_status refuse_memory(const fl_batch *batch, fl_error *error)
{
    return fl_error_set(error, FL_ERROR_NO_MEMORY,
                        "out of memory for the %d samples of a batch; make batch_size or "
                        "the pictures smaller",
                        batch->view.rows);
}

static fl_status allocate(fl_batch *batch, const fl_layout *layout, fl_error *error)
{
    size_t rows = (size_t)batch->view.rows;
    batch->view.samples = fl_alloc_array(rows, sizeof(*batch->view.samples));
    batch->tasks = fl_alloc_array(rows, sizeof(*batch->tasks));
    if (!batch->view.samples || !batch->tasks)
        return refuse_memory(batch, error);
    if (layout->late_count > 0) {
        size_t parts = rows * (size_t)layout->late_count;
        if (parts <= INT32_MAX)
            batch->view.parts = fl_alloc_array(parts, sizeof(fl_part));
        if (!batch->view.parts)
            return refuse_memory(batch, error);
        batch->part_count = (int32_t)parts;
    }
    return FL_OK;
}

static fl_status take_slab(fl_batch *batch, fl_error *error)
{
    const fl_engine *engine = batch->run->engine;
    if (engine->program.layout->slab_size == 0)
        return FL_OK;
    fl_status status = fl_slab_pool_take(engine->pool, engine->program.layout->slab_size,
                                         &batch->slab, error);
    if (status == FL_OK)
        batch->view.memory = batch->slab->memory;
    return status;
}

fl_status fl_batch_create(fl_run *run, int64_t number, int32_t rows, fl_batch **out,
                          fl_error *error)
{
    assert(rows > 0);
    fl_status status;
    fl_batch *batch = fl_alloc_zeroed(sizeof(*batch));
    if (!batch)
        return fl_error_no_memory(error);

    batch->run = run;
    batch->references = 1;
    batch->lowest_failed = INT32_MAX;
    batch->error = (fl_error)FL_ERROR_INIT;
    batch->view.number = number;
    batch->view.rows = rows;
    batch->task = (fl_task){.batch = batch,
                            .number = number,
                            .first = -1,
                            .kind = FL_TASK_PLAN,
                            .queue = FL_QUEUE_COMPUTE};

    status = allocate(batch, run->engine->program.layout, error);
    if (status == FL_OK)
        status = take_slab(batch, error);
    if (status != FL_OK)
        goto fail;

    for (int32_t row = 0; row < rows; row++) {
        batch->view.samples[row].row = row;
        batch->tasks[row] = (fl_task){.batch = batch, .number = number, .first = row};
    }
    *out = batch;
    return FL_OK;
fail:
    fl_batch_unref(batch);
    return status;
}

fl_batch *fl_batch_ref(fl_batch *batch)
{
    // Relaxed: a new reference is made from one that is held.
    atomic_fetch_add_explicit(&batch->references, 1, memory_order_relaxed);
    return batch;
}

void fl_batch_unref(fl_batch *batch)
{
    // Acquire-release: the last holder sees what all others wrote.
    if (!batch ||
        atomic_fetch_sub_explicit(&batch->references, 1, memory_order_acq_rel) > 1)
        return;
    for (int32_t row = 0; batch->view.samples && row < batch->view.rows; row++) {
        fl_buffer_unref(&batch->view.samples[row].bytes);
        fl_buffer_unref(&batch->view.samples[row].pixels);
    }
    if (batch->view.parts)
        fl_parts_drop(batch->view.parts, batch->part_count);
    fl_slab_unref(&batch->slab);
    fl_slab_unref(&batch->late_slab);
    fl_error_clear(&batch->error);
    fl_free(batch->view.samples);
    fl_free(batch->view.parts);
    fl_free(batch->tasks);
    fl_free(batch);
}

int64_t fl_batch_number(const fl_batch *batch)
{
    return batch->view.number;
}

const fl_batch_view *fl_batch_read(const fl_batch *batch)
{
    return &batch->view;
}

fl_slab *fl_batch_slab(const fl_batch *batch)
{
    return batch->slab;
}

fl_slab *fl_batch_late_slab(const fl_batch *batch)
{
    return batch->late_slab;
}

void fl_batch_free(fl_batch *batch)
{
    fl_batch_unref(batch);
}
