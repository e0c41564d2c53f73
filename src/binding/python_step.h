// SPDX-License-Identifier: MIT
// The step that only Python can do: a file that no decoder of the core takes goes to a
// Python function, on threads that Python made. Attached, but for the wait for work.
#ifndef FL_BINDING_PYTHON_STEP_H
#define FL_BINDING_PYTHON_STEP_H

#include "binding/module.h"

// What the engine's Python threads serve it with. Holds the engine, not the Engine
// object. NULL with an exception set.
PyObject *fl_python_step_make(const fl_module *state, fl_engine *engine,
                              PyObject *decode);
// Calls start_thread(target) if one more thread would find work; `target` takes no
// arguments and serves the engine until it is not needed any more. 0, or -1 with an
// exception set; a target that comes to run after that does nothing.
int fl_python_step_start(PyObject *step, PyObject *start_thread);
// Is the calling thread one that serves this engine now?
bool fl_python_step_is_thread_of(const fl_engine *engine);

#endif
