// SPDX-License-Identifier: MIT
// The engine: threads, budgets, runs. docs/threads.md tells how it works.
//
// Ownership: counted. The loader, each run and each thread hold it; the last one frees
// it, from whatever thread that is. All functions may be called from any thread unless
// said otherwise; the ones that may block say so, and a caller that is attached to Python
// detaches around them.
#ifndef FL_PIPELINE_ENGINE_H
#define FL_PIPELINE_ENGINE_H

#include "base/error.h"
#include "batch/slab.h"
#include "pipeline/program.h"
#include "stats/counters.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct fl_engine fl_engine;
typedef struct fl_run fl_run;
typedef struct fl_batch fl_batch;

typedef struct fl_engine_options {
    int32_t compute_threads, fetch_threads, python_threads; // at most
    int32_t window;                                         // undelivered batches a run
    int64_t fetch_bytes; // fetched, not yet decoded: all runs together
    int64_t late_bytes;  // undelivered bytes of LATE fields: gates the entry of batches
    bool in_order;
    int64_t idle_exit_ns; // a thread without work ends after this long
} fl_engine_options;

// Takes the program and a reference of the pool on success. No thread is started.
FL_MUST_CHECK fl_status fl_engine_create(const fl_engine_options *options,
                                         fl_program program, fl_slab_pool *pool,
                                         fl_engine **out, fl_error *error);
// Stops: cancels all runs, wakes everything, waits (blocks) until `deadline_ns` for
// threads and callers inside; what is stuck then is abandoned and frees itself on return.
// Returns how many were abandoned. Idempotent. Call detached, and not from a
// thread of the engine (stop instead).
int32_t fl_engine_close(fl_engine *engine, int64_t deadline_ns);
// Like close without waiting; for destructors and engine threads.
void fl_engine_stop(fl_engine *engine);
fl_engine *fl_engine_ref(fl_engine *engine);
void fl_engine_unref(fl_engine **engine);
bool fl_engine_is_closed(fl_engine *engine);
const fl_counters *fl_engine_counters(const fl_engine *engine); // borrowed

// A run: one pass over an order. Nothing is started or held before its first pop. Takes
// `run_context` on success.
FL_MUST_CHECK fl_status fl_run_create(fl_engine *engine, void *run_context, fl_run **out,
                                      fl_error *error);
// Cancels; queued work is dropped, running tasks finish on their own. Never blocks.
void fl_run_cancel(fl_run *run);
fl_run *fl_run_ref(fl_run *run);
void fl_run_unref(fl_run **run); // the iterator cancels first

// The next batch if one is ready: FL_OK; FL_BUSY: none yet, supply and wait; FL_END; or
// an error: FL_ERROR_CLOSED, or the batch's own error, which counts as received (`*out`
// is then NULL and `delivered` has moved on). Never blocks.
FL_MUST_CHECK fl_status fl_run_pop(fl_run *run, fl_batch **out, fl_error *error);
// Lets batches enter until the window is full and gives memory to those that wait for it.
// The allocator is called on this thread, attached. Never blocks otherwise.
FL_MUST_CHECK fl_status fl_run_supply(fl_run *run, fl_error *error);
// Lets one batch enter: FL_OK; FL_END: none may. For a pre-started run, fed a batch a
// call by the next() of the run that ends.
FL_MUST_CHECK fl_status fl_run_feed(fl_run *run, fl_error *error);
// Blocks until there is something to pop or to supply, or until `deadline_ns`
// (FL_ERROR_TIMEOUT). Call detached.
FL_MUST_CHECK fl_status fl_run_wait(fl_run *run, int64_t deadline_ns, fl_error *error);
// A consumer that leaves without a batch (timeout, interrupt, refused memory or thread)
// hands its wake-up on.
void fl_run_leave(fl_run *run);
// Batches received so far, failed ones included.
int64_t fl_run_delivered(fl_run *run);
// True once every batch of the run has entered its window: the next epoch's run may be
// fed.
bool fl_run_is_admitted(fl_run *run);

// A popped batch: the slabs, shapes and samples that the exported arrays are made from.
int64_t fl_batch_number(const fl_batch *batch);
const fl_batch_view *fl_batch_read(const fl_batch *batch);
fl_slab *fl_batch_slab(const fl_batch *batch); // borrowed; NULL if all fields are LATE
fl_slab *fl_batch_late_slab(const fl_batch *batch); // borrowed; NULL without LATE fields
void fl_batch_free(fl_batch *batch);                // drops its slab references

// Python steps. A thread made by Python takes a task (blocks; call detached), works
// attached, and finishes it. FL_END: the engine stops or the thread is not needed any
// more.
typedef struct fl_python_task {
    fl_run *run;       // counted for the task
    fl_sample *sample; // fill in `pixels`, `pixel_width`, `pixel_height`
    void *task;        // private, as is the next
    int64_t begin_ns;
} fl_python_task;

// Takes a place for one more Python thread if one would find work now. The caller starts
// it; its last act, or the caller's if it could not be started, is fl_engine_python_exit.
bool fl_engine_python_enter(fl_engine *engine);
void fl_engine_python_exit(fl_engine *engine);
FL_MUST_CHECK fl_status fl_engine_python_take(fl_engine *engine, fl_python_task *out);
// `status` FL_OK: the pixels are there; else `error` (moved) fails the sample.
void fl_engine_python_finish(fl_engine *engine, fl_python_task *task, fl_status status,
                             fl_error *error);

#endif
