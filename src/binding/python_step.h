// SPDX-License-Identifier: MIT
// The step that only Python can do: a file that no decoder of the core takes goes to a
// Python function, on threads that Python made. Attached, but for the wait for work.
#ifndef FL_BINDING_PYTHON_STEP_H
#define FL_BINDING_PYTHON_STEP_H

#include "binding/module.h"

// What a thread runs: a callable without arguments that serves `engine` until it is not
// needed any more. Holds the engine, not the Engine object. The caller has taken a place
// with fl_engine_python_enter for each call of it. NULL with an exception set.
PyObject *fl_python_step_make(const fl_module *state, fl_engine *engine,
                              PyObject *decode);
// Is the calling thread one that serves this engine now?
bool fl_python_step_is_thread_of(const fl_engine *engine);

#endif
