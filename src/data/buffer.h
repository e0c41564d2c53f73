// SPDX-License-Identifier: MIT
// Counted byte buffers. References may be taken and dropped on any thread; the bytes
// belong to whoever fills them until the buffer is handed on, and are read-only from then
// on.
#ifndef FL_DATA_BUFFER_H
#define FL_DATA_BUFFER_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

// Zero bytes behind the capacity: kernels may load past the end.
enum { FL_BUFFER_PADDING = 64 };

typedef struct fl_buffer {
    uint8_t *data;
    size_t size;     // bytes in use; set by who fills it
    size_t capacity; // bytes allocated; FL_BUFFER_PADDING more may be read, not written
    _Atomic int64_t references;
    void (*release)(struct fl_buffer *buffer); // called when the last reference goes
    void *owner;                               // for `release`
} fl_buffer;

// A buffer of its own, 64-byte aligned, with one reference.
FL_MUST_CHECK fl_status fl_buffer_create(size_t capacity, fl_buffer **out,
                                         fl_error *error);
fl_buffer *fl_buffer_ref(fl_buffer *buffer);
// Drops the reference in `*buffer` and clears the caller's pointer; NULL is fine.
void fl_buffer_unref(fl_buffer **buffer);

#endif
