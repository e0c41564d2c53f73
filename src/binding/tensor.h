// SPDX-License-Identifier: MIT
// Tensor: a typed view of a slab, with a reference of its own. All functions: attached.
#ifndef FL_BINDING_TENSOR_H
#define FL_BINDING_TENSOR_H

#include "binding/module.h"

typedef struct fl_tensor {
    PyObject_HEAD
    PyObject *weak_references;
    fl_array array; // immutable; its slab is counted
    Py_ssize_t byte_strides[FL_ARRAY_MAX_DIMENSIONS];
} fl_tensor;

// Takes a reference of the array's slab. NULL with an exception set.
PyObject *fl_tensor_make(const fl_module *state, const fl_array *array);
// A tuple of the first `count` numbers.
PyObject *fl_int_tuple(const int64_t *values, int32_t count);

// capsule.c: the methods of the DLPack protocol.
PyObject *fl_tensor_dlpack(PyObject *self, PyObject *args, PyObject *keywords);
PyObject *fl_tensor_dlpack_device(PyObject *self, PyObject *ignored);

#endif
