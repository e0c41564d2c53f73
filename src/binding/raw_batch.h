// SPDX-License-Identifier: MIT
// RawBatch: a popped batch in the user's form. Attached.
#ifndef FL_BINDING_RAW_BATCH_H
#define FL_BINDING_RAW_BATCH_H

#include "binding/output.h"

// Makes the values of all fields but the two hidden ones, which stand last in the layout.
// The batch stays the caller's. NULL with an exception set.
PyObject *fl_raw_batch_make(const fl_module *state, const fl_output *output,
                            const fl_layout *layout, const fl_batch *batch);

#endif
