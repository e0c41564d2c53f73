// SPDX-License-Identifier: MIT
// What a task does, on the thread that runs it, with no lock held. Fills in what has to
// be settled under the engine's lock afterwards.
#ifndef FL_PIPELINE_STEPS_H
#define FL_PIPELINE_STEPS_H

#include "pipeline/dispatch.h"

void fl_steps_run(fl_engine *engine, fl_task *task, void *worker, fl_outcome *outcome);
// The Python step of one sample has ended: the pixels are there, or `error` (moved).
void fl_steps_end_python(fl_task *task, fl_status status, fl_error *error,
                         fl_outcome *outcome);

#endif
