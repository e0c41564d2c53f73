// SPDX-License-Identifier: MIT
// The arguments of Engine() and Engine.start_run(), and the counters as a dict. Attached.
#ifndef FL_BINDING_ENGINE_OPTIONS_H
#define FL_BINDING_ENGINE_OPTIONS_H

#include "binding/op_list.h"

// Borrowed from the call's arguments but for the lists and `fields`.
typedef struct fl_engine_arguments {
    fl_loader_spec spec;
    PyObject *catalog, *allocate, *decode, *start_thread;
    const char *output;
    PyObject *fields; // a list of the descriptions, which keeps their text
    fl_field_spec field_specs[FL_MAX_FIELDS];
    fl_op_list op_lists[FL_MAX_FIELDS];
} fl_engine_arguments;

// `arguments` is zero-filled. 0, or -1 with an exception set and nothing held.
int fl_engine_arguments_init(fl_engine_arguments *arguments, const fl_module *state,
                             PyObject *args, PyObject *keywords);
void fl_engine_arguments_deinit(fl_engine_arguments *arguments);

// All but the count and the batch size, which are the engine's.
int fl_run_arguments_parse(fl_cursor_spec *spec, PyObject *args, PyObject *keywords);

// engine_stats.c: Engine.stats().
PyObject *fl_engine_stats(PyObject *self, PyObject *ignored);

#endif
