// SPDX-License-Identifier: MIT
// Slabs whose memory Python objects own (torch's pinned blocks): an allocator that calls
// a Python function, attached, inside next(). Each block is dropped after its use and
// never reused here: its owner knows when the device has read it.
#ifndef FL_BINDING_EXTERNAL_H
#define FL_BINDING_EXTERNAL_H

#include "binding/module.h"

typedef struct fl_external fl_external;

// The context of one allocator. `function` is borrowed: call fl_external_forget before
// its owner lets it go. NULL with MemoryError set.
fl_external *fl_external_create(PyObject *function);
// The allocator; its destroy, which runs on any thread, frees the context.
fl_allocator fl_external_allocator(fl_external *external);
// For an allocator that nobody took.
void fl_external_destroy(fl_external *external);
// Attached. No call of the function begins from now on.
void fl_external_forget(fl_external *external);

#endif
