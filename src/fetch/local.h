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
// `*out` and adds the path to the error.
FL_MUST_CHECK fl_status fl_local_read(const char *path, int64_t max_bytes,
                                      fl_buffer_pool *pool, const fl_cancel *cancel,
                                      fl_buffer **out, fl_error *error);

#ifdef FL_TESTING
#include <sys/types.h>
// Test builds: reads go through `read` instead of pread; NULL: through pread again.
void fl_local_replace_read(ssize_t (*read)(int file, void *bytes, size_t size,
                                           off_t offset));
#endif

#endif
