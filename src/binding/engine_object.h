// SPDX-License-Identifier: MIT
// The Engine object, as run_object.c sees it. Attached.
#ifndef FL_BINDING_ENGINE_OBJECT_H
#define FL_BINDING_ENGINE_OBJECT_H

#include "binding/external.h"
#include "binding/output.h"

#include <sys/types.h>

// Immutable once made; the core below it has its own locks.
typedef struct fl_engine_object {
    PyObject_HEAD
    const fl_module *module_state; // lives as long as the type
    fl_loader *loader;
    pid_t process; // that made it: elsewhere the loader's locks are never touched
    fl_output output;
    PyObject *catalog;
    PyObject *allocate;     // NULL: plain memory
    fl_external *external;  // the allocator around `allocate`; the pool owns it
    PyObject *start_thread; // NULL with `step`
    PyObject *step;         // python_step.h; NULL: there is no Python step
} fl_engine_object;

// Made by another process, before a fork?
bool fl_engine_is_foreign(const fl_engine_object *engine);
// Raises the error with the full path of its sample; always NULL.
PyObject *fl_engine_raise(const fl_engine_object *engine, fl_error *error);
// Starts a Python thread if one would find work. 0, or -1 with an exception set.
int fl_engine_start_thread(fl_engine_object *engine);

// run_object.c: a Run over the engine, which it holds.
PyObject *fl_run_object_make(const fl_module *state, fl_engine_object *engine,
                             const fl_cursor_spec *spec);

#endif
