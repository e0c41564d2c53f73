// SPDX-License-Identifier: MIT
// Whole local files by pread, into pooled buffers. Any thread.
#ifndef FL_FETCH_LOCAL_H
#define FL_FETCH_LOCAL_H

#include "base/error.h"
#include "data/buffer.h"
#include "data/buffer_pool.h"
#include "data/cancel.h"

// Reads `path` whole. Short reads and EINTR go on; a file that shrinks or grows meanwhile
// is an error; folders, devices and files beyond `max_bytes` are refused. The caller owns
// `*out`.
FL_MUST_CHECK fl_status fl_local_read(const char *path, int64_t max_bytes,
                                      fl_buffer_pool *pool, const fl_cancel *cancel,
                                      fl_buffer **out, fl_error *error);

#endif
