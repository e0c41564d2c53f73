// SPDX-License-Identifier: MIT
#include "data/buffer.h"

#include "base/memory.h"

#include <assert.h>
#include <stdatomic.h>
#include <string.h>

enum { ALIGNMENT = 64 };

// The header and the bytes are one block: a buffer costs one allocation.
static_assert(sizeof(fl_buffer) <= ALIGNMENT, "the header fits before the bytes");

static void release_block(fl_buffer *buffer)
{
    fl_free(buffer);
}

fl_status fl_buffer_create(size_t capacity, fl_buffer **out, fl_error *error)
{
    size_t total;
    if (!fl_size_add(capacity, ALIGNMENT + FL_BUFFER_PADDING, &total))
        return fl_error_no_memory(error);
    uint8_t *block = fl_alloc_aligned(ALIGNMENT, total);
    if (!block)
        return fl_error_no_memory(error);

    fl_buffer *buffer = (fl_buffer *)(void *)block;
    memset(buffer, 0, ALIGNMENT);
    buffer->data = block + ALIGNMENT;
    buffer->capacity = capacity;
    buffer->release = release_block;
    atomic_init(&buffer->references, 1);
    memset(buffer->data + capacity, 0, FL_BUFFER_PADDING);
    *out = buffer;
    return FL_OK;
}

fl_buffer *fl_buffer_ref(fl_buffer *buffer)
{
    // Relaxed: the caller's own reference keeps the buffer alive.
    int64_t before =
        atomic_fetch_add_explicit(&buffer->references, 1, memory_order_relaxed);
    assert(before > 0);
    (void)before;
    return buffer;
}

void fl_buffer_unref(fl_buffer **buffer)
{
    fl_buffer *gone = *buffer;
    *buffer = NULL;
    if (!gone)
        return;
    // Release: our reads and writes come before; acquire: the last one sees everyone's.
    int64_t before =
        atomic_fetch_sub_explicit(&gone->references, 1, memory_order_acq_rel);
    assert(before > 0);
    if (before == 1)
        gone->release(gone);
}
