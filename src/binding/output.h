// SPDX-License-Identifier: MIT
// The forms in which arrays go to the user: our Tensor, ndarrays based on one, torch
// tensors. What a form needs is looked up once, when it is made. All functions: attached.
#ifndef FL_BINDING_OUTPUT_H
#define FL_BINDING_OUTPUT_H

#include "binding/module.h"

typedef enum fl_output_kind {
    FL_OUTPUT_DLPACK,
    FL_OUTPUT_NUMPY,
    FL_OUTPUT_TORCH,
} fl_output_kind;

// Immutable after init; owned by whoever made it.
typedef struct fl_output {
    fl_output_kind kind;
    PyObject *bfloat16;                // NUMPY: the dtype from ml_dtypes; NULL: absent
    const DLPackExchangeAPI *exchange; // TORCH: lives as long as torch; NULL: none
    PyObject *from_dlpack;             // TORCH: where there is no exchange API
} fl_output;

// "dlpack", "numpy" or "torch"; imports what that needs. 0, or -1 with an exception set:
// ValueError for another name, ImportError.
int fl_output_init(fl_output *output, const char *name);
void fl_output_deinit(fl_output *output);
// NULL with TypeError set if the form has no such element type.
// 0, or -1 with TypeError set: this form has no such element type.
int fl_output_check(const fl_output *output, fl_dtype dtype);
// A view in this form, with a reference of its own to the slab.
PyObject *fl_output_make(const fl_module *state, const fl_output *output,
                         const fl_array *array);
// The same as an ndarray, whatever the form; not for bfloat16.
PyObject *fl_numpy_make(const fl_module *state, const fl_array *array);

#endif
