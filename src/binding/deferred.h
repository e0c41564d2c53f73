// SPDX-License-Identifier: MIT
// Python objects in the hands of the core. The core may let go of one on any thread, also
// where Python must not be called: it goes to a process-wide list then, and the next
// attached call drops it. What a forked child inherits is forgotten there: it may belong
// to devices or locks of the parent.
#ifndef FL_BINDING_DEFERRED_H
#define FL_BINDING_DEFERRED_H

#include "binding/module.h"

typedef struct fl_held fl_held;

// Attached. Takes a reference of its own; NULL with MemoryError set.
fl_held *fl_held_create(PyObject *object);
// Attached. Borrowed from the record.
PyObject *fl_held_object(const fl_held *held);
// Attached. Frees the record; the caller owns the object now.
PyObject *fl_held_take(fl_held *held);
// Any thread, attached or not: the object is dropped by the next drain. `held` is an
// fl_held; the type suits fl_exception and fl_allocator.
void fl_held_release(void *held);

// Attached, with no exception set that the caller wants to keep. May run any Python code.
void fl_deferred_drain(void);

#endif
