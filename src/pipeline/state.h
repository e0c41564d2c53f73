// SPDX-License-Identifier: MIT
// The engine's objects, private to this folder. docs/threads.md explains them.
//
// engine: counted; the loader, each run and each thread hold it.
// run:    counted; the iterator and each *running* task hold it. Queued tasks hold
// nothing. batch:  counted; the window (then the popper) and each running task hold it.
// Locks:  the engine's before a run's; never two of a kind; nothing but plain work under
// them.
#ifndef FL_PIPELINE_STATE_H
#define FL_PIPELINE_STATE_H

#include "base/sync.h"
#include "pipeline/engine.h"
#include "pipeline/heap.h"

typedef enum fl_lane {
    FL_LANE_FETCH,
    FL_LANE_COMPUTE,
    FL_LANE_PYTHON, // threads made by Python
    FL_LANE_COUNT,
} fl_lane;

// One kind of threads. Guarded by the engine's lock.
typedef struct fl_lane_state {
    fl_condition work; // idle threads of the kind wait on it
    int32_t maximum;
    int32_t threads; // alive, or about to be started
    int32_t idle;    // asleep and not yet called
    int32_t calls;   // sleepers that were called and have not woken yet
    int32_t started; // since the beginning, for their names
    bool has_failed; // the last start failed and left no thread of the kind
} fl_lane_state;

struct fl_engine {
    // Immutable after create.
    fl_engine_options options;
    fl_program program;
    fl_slab_pool *pool;
    fl_counters counters;

    _Atomic int64_t references;

    fl_mutex lock;      // guards the rest, and the runs' dispatch fields
    fl_condition quiet; // close() waits: a thread ended, or a consumer left
    bool is_stopping FL_GUARDED_BY(lock);
    fl_lane_state lanes[FL_LANE_COUNT] FL_GUARDED_BY(lock);
    fl_run *oldest FL_GUARDED_BY(lock); // live runs by age
    int32_t run_count FL_GUARDED_BY(lock);
    bool permit_taken FL_GUARDED_BY(lock);
    int64_t
        mean_bytes FL_GUARDED_BY(lock); // of a fetched sample: the next one's estimate
    int64_t service_clock FL_GUARDED_BY(lock);
    int32_t consumers_inside FL_GUARDED_BY(lock);
};

struct fl_run {
    fl_engine *engine; // counted
    void *context;     // the program's order
    _Atomic int64_t references;
    fl_cancel cancel;

    // Guarded by the engine's lock: what dispatch needs.
    fl_run *younger;
    bool is_listed, is_ended; // ended: pushes are dropped
    fl_heap queues[FL_QUEUE_COUNT];
    int64_t head;    // number of the oldest batch not popped; moves only forwards
    int32_t waiters; // consumers asleep
    int64_t bytes_used;
    int64_t served[FL_LANE_COUNT]; // service clock when its head was last served

    fl_mutex lock;            // guards the rest
    fl_condition batch_ready; // consumers wait on it
    fl_batch *first FL_GUARDED_BY(lock), *last FL_GUARDED_BY(lock); // window, by number
    fl_batch *ready FL_GUARDED_BY(lock); // in_order = false: READY ones, oldest first
    int32_t window_count FL_GUARDED_BY(lock);
    int64_t next_number FL_GUARDED_BY(lock);
    int64_t delivered FL_GUARDED_BY(lock);
    bool is_admitting FL_GUARDED_BY(lock); // a consumer is making the next batch
    bool is_admitted FL_GUARDED_BY(lock);  // the last batch has entered
    bool is_closed FL_GUARDED_BY(lock);
    bool
        needs_attention FL_GUARDED_BY(lock); // a waiting consumer shall come out and look

    _Atomic int64_t late_bytes; // LATE data of batches in the window
};

typedef enum fl_batch_state {
    FL_BATCH_FILLING,
    FL_BATCH_NEEDS_SLAB, // LATE data waits for memory that only a consumer can supply
    FL_BATCH_SUPPLYING,  // a consumer has claimed it
    FL_BATCH_READY,
} fl_batch_state;

struct fl_batch {
    fl_batch_view
        view;    // `number` and `rows` are immutable; samples belong to their tasks
    fl_run *run; // borrowed; valid for who holds the run
    _Atomic int64_t references;
    _Atomic int32_t remaining;     // samples that are not done
    _Atomic int32_t lowest_failed; // row; INT32_MAX: none
    fl_slab *slab, *late_slab;
    size_t late_size;
    fl_task task;       // of the whole batch: plan, then copy
    fl_task *tasks;     // one a row
    int32_t part_count; // of view.parts
    int32_t held;       // samples that hold fetched bytes; guarded by the engine's lock

    // Guarded by the run's lock.
    fl_batch_state state;
    bool is_refused; // NEEDS_SLAB, and the last supply had no memory: nobody waits for it
    fl_error error;  // of `lowest_failed`, or of the batch
    fl_batch *previous, *next; // window
    fl_batch *next_ready;
};

// batch.c
FL_MUST_CHECK fl_status fl_batch_create(fl_run *run, int64_t number, int32_t rows,
                                        fl_batch **out, fl_error *error);
fl_batch *fl_batch_ref(fl_batch *batch);
void fl_batch_unref(fl_batch *batch);

// window.c: what becomes of a batch whose samples are done. Any engine thread, no lock
// held.
void fl_window_fail(fl_batch *batch, int32_t row, fl_error *error); // moves the error
void fl_window_finish(fl_batch *batch); // all samples are done
void fl_window_abort(fl_batch *batch,
                     fl_error *error); // before any sample; moves the error
void fl_window_copy(fl_batch *batch);  // LATE data into the slab that is there now
void fl_window_call_consumers_locked(fl_run *run) FL_REQUIRES(run->lock); // come and look

#endif
