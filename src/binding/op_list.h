// SPDX-License-Identifier: MIT
// Operations on pictures as Python gives them, and the words for layouts. Attached.
#ifndef FL_BINDING_OP_LIST_H
#define FL_BINDING_OP_LIST_H

#include "binding/module.h"

// Owned by whoever made it; zero-filled before the first use.
typedef struct fl_op_list {
    fl_op_spec specs[FL_MAX_OPS];
    int32_t count;
    double *values;  // of all ops, one after the other
    PyObject *names; // keeps the text of the specs' names
} fl_op_list;

// From a sequence of (name, numbers). 0, or -1 with TypeError or ValueError set.
int fl_op_list_init(fl_op_list *list, PyObject *ops);
void fl_op_list_deinit(fl_op_list *list);
// "NCHW", "NHWC" or "channels_last". 0, or -1 with ValueError set.
int fl_parse_pixel_layout(const char *name, fl_pixel_layout *out);

#endif
