// SPDX-License-Identifier: MIT
// The extension module `feedline._core`: its state and what every file of the binding
// shares. Include it first: Python.h comes before all other headers.
//
// A file of the binding offers one function `fl_bind_<file>(module, state)`, declared
// below and called by the table in module.c; it makes the file's types with fl_add_type,
// keeps what it needs in the state and adds its functions with PyModule_AddFunctions.
// Rules: heap types only, all of them final; no native thread calls anything in this
// folder but fl_held_release. There may be no GIL: "attached" means that Python may be
// called, not that others wait. Objects are immutable once others can see them; what is
// not is guarded as critical_section.h says. What a container holds is borrowed only from
// tuples and from what nobody else can see.
#ifndef FL_BINDING_MODULE_H
#define FL_BINDING_MODULE_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "feedline.h"

// Owned by the module; written by its exec only, read-only from then on.
typedef struct fl_module {
    PyObject *core_error, *decode_error, *limit_error, *closed_error;
    PyTypeObject *catalog_type, *cursor_type;
    PyTypeObject *tensor_type, *raw_batch_type, *run_type, *engine_type;
    PyTypeObject *file_bytes_type; // python_step.c's own, without a name in the module
} fl_module;

// The state from the module, from an instance of one of its types, and from the class
// that a METH_CLASS function gets (a METH_STATIC one gets nothing: use METH_CLASS).
fl_module *fl_module_of(PyObject *module);
fl_module *fl_module_of_instance(PyObject *self);
fl_module *fl_module_of_type(PyObject *type);

// Makes a type that belongs to the module, adds it under its name and returns a new
// reference for the state; NULL with an exception set.
PyTypeObject *fl_add_type(PyObject *module, PyType_Spec *spec);
// The end of a final type's dealloc: frees the object, drops its type.
void fl_free_instance(PyObject *self);

// One a file. 0, or -1 with an exception set.
int fl_bind_exceptions(PyObject *module, fl_module *state);
int fl_bind_catalog(PyObject *module, fl_module *state);
int fl_bind_order(PyObject *module, fl_module *state);
int fl_bind_tensor(PyObject *module, fl_module *state);
int fl_bind_raw_batch(PyObject *module, fl_module *state);
int fl_bind_python_step(PyObject *module, fl_module *state);
int fl_bind_run(PyObject *module, fl_module *state);
int fl_bind_engine(PyObject *module, fl_module *state);
int fl_bind_functions(PyObject *module, fl_module *state);

// catalog_object.c: the core's catalog of a Catalog object, borrowed from it. The caller
// has checked the type.
fl_catalog *fl_catalog_of_object(PyObject *catalog);

// Raises the core's error as a Python exception and clears it; always NULL, so that
// `return fl_raise(...)` reads well. `path`: the sample's full path if the caller knows
// it (error->place may be cut), or NULL.
PyObject *fl_raise(const fl_module *state, fl_error *error);
PyObject *fl_raise_at(const fl_module *state, fl_error *error, const char *path);
// The exception that is set now, moved into `error` with its traceback; attached. The
// core carries it to whoever calls fl_raise.
void fl_error_from_python(fl_error *error);

#endif
