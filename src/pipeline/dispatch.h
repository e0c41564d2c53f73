// SPDX-License-Identifier: MIT
// Which task runs next, and who is woken for it. Everything here is under the engine's
// lock but fl_calls_make, which runs after it was let go.
//
// No task ever blocks on a budget: what is not granted stays in its run's queue and
// closes that queue only. Granted first: the head batches of runs whose consumer waits,
// in turns; then runs by age, each in position order.
#ifndef FL_PIPELINE_DISPATCH_H
#define FL_PIPELINE_DISPATCH_H

#include "pipeline/state.h"

// Threads to be called or started once the lock is open: signalling under it costs 20
// times as long as holding it.
typedef struct fl_calls {
    int32_t wake[FL_LANE_COUNT];
    int32_t start[FL_LANE_COUNT];
} fl_calls;

// What a thread has to settle after a task, in the same acquisition that takes the next
// one.
typedef struct fl_outcome {
    fl_task *task; // the one that ran: its permit goes back, its charge unless it is kept
    bool keeps_charge;  // the sample goes on and holds its bytes
    int64_t more_bytes; // charged in addition (or, negative, less than the estimate)
    int64_t fetched;    // size of the file, for the mean; -1: nothing was fetched
    fl_task *pushed;    // a list of tasks to queue, linked by `sibling`
} fl_outcome;

void fl_dispatch_push_locked(fl_engine *engine, fl_run *run, fl_task *task)
    FL_REQUIRES(engine->lock);
void fl_dispatch_settle_locked(fl_engine *engine, const fl_outcome *outcome,
                               fl_calls *calls) FL_REQUIRES(engine->lock);
// The next task of a kind of threads, with a reference of its batch and run; NULL: none
// may run.
fl_task *fl_dispatch_take_locked(fl_engine *engine, fl_lane lane)
    FL_REQUIRES(engine->lock);
// Calls one more thread of the kind if a task may run. For every cause that can make one
// grantable: a push, bytes or the permit given back, a head that moved, a run that ended.
void fl_dispatch_recruit_locked(fl_engine *engine, fl_lane lane, fl_calls *calls)
    FL_REQUIRES(engine->lock);
void fl_dispatch_recruit_all_locked(fl_engine *engine, fl_calls *calls)
    FL_REQUIRES(engine->lock);
// Is there work for this kind, waiting for a budget or not? For the counters.
bool fl_dispatch_has_queued_locked(fl_engine *engine, fl_lane lane)
    FL_REQUIRES(engine->lock);

void fl_dispatch_list_run_locked(fl_engine *engine, fl_run *run)
    FL_REQUIRES(engine->lock);
// Drops the run's queued tasks and its share of the budgets. Idempotent.
void fl_dispatch_end_run_locked(fl_engine *engine, fl_run *run, fl_calls *calls)
    FL_REQUIRES(engine->lock);

// run.c: ends the run for its consumers too: cancelled, or its engine stops. Takes the
// run's lock inside the engine's.
void fl_run_close_locked(fl_engine *engine, fl_run *run, fl_calls *calls)
    FL_REQUIRES(engine->lock);

#endif
