// SPDX-License-Identifier: MIT
// One error object for the whole core: code, message, place. Caller-owned plain data;
// every function that takes one accepts NULL. Who detects an error writes the message;
// who passes it on only adds the place. An object belongs to one thread at a time.
#ifndef FL_BASE_ERROR_H
#define FL_BASE_ERROR_H

#include "base/status.h"

#include <stdint.h>

// A Python exception travelling through the core. The core never looks inside; `release`
// may run on any thread and must not call Python there.
typedef struct fl_exception {
    void *object;
    void (*release)(void *object);
} fl_exception;

typedef struct fl_error {
    fl_status code;
    int os_error;      // errno, 0 if the system was not asked
    char message[320]; // what is wrong and what to do; UTF-8 but for quoted bytes
    char place[512];   // path or shard; the head is cut when it is longer, not the name
    int64_t index;     // in the data set, -1 if unknown
    int64_t offset;    // bytes into the place, -1 if unknown
    fl_exception exception; // owned
} fl_error;

#define FL_ERROR_INIT                                                                    \
    {                                                                                    \
        .code = FL_OK, .index = -1, .offset = -1                                         \
    }

// Writes code and message over whatever was there and returns `code`.
fl_status fl_error_set(fl_error *error, fl_status code, const char *format, ...)
    FL_PRINTF(3, 4);

// FL_ERROR_IO with errno and its text appended: "cannot read: Permission denied".
fl_status fl_error_set_os(fl_error *error, int os_error, const char *format, ...)
    FL_PRINTF(3, 4);

// What to do about it, behind a message that is there already.
void fl_error_add_advice(fl_error *error, const char *advice);

fl_status fl_error_no_memory(fl_error *error);

// Add the place, unless one is already known.
void fl_error_add_path(fl_error *error, const char *path);
void fl_error_add_index(fl_error *error, int64_t index);

// Moves `from` (and its exception) to `to`; `from` is empty after it.
void fl_error_move(fl_error *to, fl_error *from);

// Releases the exception and empties the object.
void fl_error_clear(fl_error *error);

#endif
