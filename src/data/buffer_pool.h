// SPDX-License-Identifier: MIT
// A pool of byte buffers: fetched files come and go by the thousand, their memory stays.
// Counted: buffers may come home after the pool was closed. Any thread.
#ifndef FL_DATA_BUFFER_POOL_H
#define FL_DATA_BUFFER_POOL_H

#include "base/error.h"
#include "data/buffer.h"

typedef struct fl_buffer_pool fl_buffer_pool;

// At most `max_free_bytes` lie free in the pool; the rest goes back to the system.
FL_MUST_CHECK fl_status fl_buffer_pool_create(size_t max_free_bytes, fl_buffer_pool **out,
                                              fl_error *error);
fl_buffer_pool *fl_buffer_pool_ref(fl_buffer_pool *pool);
void fl_buffer_pool_unref(fl_buffer_pool **pool);
// A buffer of at least `capacity` bytes with one reference, `size` 0.
FL_MUST_CHECK fl_status fl_buffer_pool_take(fl_buffer_pool *pool, size_t capacity,
                                            fl_buffer **out, fl_error *error);

#endif
