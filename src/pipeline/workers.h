// SPDX-License-Identifier: MIT
// The engine's native threads: started on demand, gone after a while without work,
// detached; each holds the engine from before its start to its last act.
#ifndef FL_PIPELINE_WORKERS_H
#define FL_PIPELINE_WORKERS_H

#include "pipeline/dispatch.h"

// Calls and starts the threads that dispatch asked for. No lock held. A start that fails
// leaves fewer threads; with none of the kind the consumers of all runs are told.
void fl_calls_make(fl_engine *engine, const fl_calls *calls);
// Tries again where a failed start left work without any thread; that failure is the
// caller's error.
FL_MUST_CHECK fl_status fl_workers_ensure(fl_engine *engine, fl_error *error);
// Sleeps until the thread is called or `deadline_ns` passes (false), or the engine stops
// (false).
bool fl_workers_sleep_locked(fl_engine *engine, fl_lane lane, int64_t deadline_ns)
    FL_REQUIRES(engine->lock);

#endif
