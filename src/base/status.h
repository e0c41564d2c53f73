// SPDX-License-Identifier: MIT
// The result of every call that can fail: FL_OK, a positive state that is not an error,
// or a negative error. Plain values: any thread.
#ifndef FL_BASE_STATUS_H
#define FL_BASE_STATUS_H

#define FL_MUST_CHECK __attribute__((warn_unused_result))
#define FL_PRINTF(text, first) __attribute__((__format__(__printf__, text, first)))

typedef enum fl_status {
    FL_OK = 0,

    // States, not errors.
    FL_END = 1,           // no more data
    FL_BUSY = 2,          // nothing now; wait and ask again
    FL_NEEDS_PYTHON = 3,  // the sample's next step is a Python task
    FL_NEEDS_SCRATCH = 4, // the sample needs more scratch than the worker's plan

    // Errors.
    FL_ERROR_NO_MEMORY = -1,
    FL_ERROR_ARGUMENT = -2,    // the caller asked for something that cannot be
    FL_ERROR_IO = -3,          // the system refused; `os_error` says why
    FL_ERROR_DATA = -4,        // the bytes are not what they claim to be
    FL_ERROR_UNSUPPORTED = -5, // sound bytes of a kind that feedline does not read
    FL_ERROR_LIMIT = -6,       // larger than a limit allows
    FL_ERROR_CANCELLED = -7,   // the run was cancelled
    FL_ERROR_CLOSED = -8,      // the engine or iterator was closed
    FL_ERROR_TIMEOUT = -9,
    FL_ERROR_THREAD = -10, // no thread could be started
    FL_ERROR_PYTHON = -11, // a Python step raised; the error carries the exception
} fl_status;

// A stable, lower-case word for a status ("no memory", "io", ...). Never NULL.
const char *fl_status_name(fl_status status);

#endif
