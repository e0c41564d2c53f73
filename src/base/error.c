// SPDX-License-Identifier: MIT
#include "base/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

FL_PRINTF(2, 0)
static void write_message(fl_error *error, const char *format, va_list arguments)
{
    fl_error_clear(error);
    vsnprintf(error->message, sizeof(error->message), format, arguments);
}

fl_status fl_error_set(fl_error *error, fl_status code, const char *format, ...)
{
    if (!error)
        return code;
    va_list arguments;
    va_start(arguments, format);
    write_message(error, format, arguments);
    va_end(arguments);
    error->code = code;
    return code;
}

fl_status fl_error_set_os(fl_error *error, int os_error, const char *format, ...)
{
    if (!error)
        return FL_ERROR_IO;
    va_list arguments;
    va_start(arguments, format);
    write_message(error, format, arguments);
    va_end(arguments);
    error->code = FL_ERROR_IO;
    error->os_error = os_error;

    // GNU strerror_r: the text may lie in `buffer` or be static.
    char buffer[96];
    const char *text = strerror_r(os_error, buffer, sizeof(buffer));
    size_t used = strlen(error->message);
    snprintf(error->message + used, sizeof(error->message) - used, ": %s", text);
    return FL_ERROR_IO;
}

void fl_error_add_advice(fl_error *error, const char *advice)
{
    if (!error || !advice[0])
        return;
    size_t used = strlen(error->message);
    snprintf(error->message + used, sizeof(error->message) - used, "; %s", advice);
}

fl_status fl_error_no_memory(fl_error *error)
{
    return fl_error_set(error, FL_ERROR_NO_MEMORY, "out of memory");
}

void fl_error_add_path(fl_error *error, const char *path)
{
    if (!error || error->place[0])
        return;
    size_t length = strlen(path);
    if (length < sizeof(error->place)) {
        memcpy(error->place, path, length + 1);
        return;
    }
    const char *tail = path + length - (sizeof(error->place) - 4);
    snprintf(error->place, sizeof(error->place), "...%s", tail);
}

void fl_error_add_index(fl_error *error, int64_t index)
{
    if (error && error->index < 0)
        error->index = index;
}

void fl_error_move(fl_error *to, fl_error *from)
{
    if (to) {
        fl_error_clear(to);
        *to = *from;
        from->exception = (fl_exception){0};
    }
    fl_error_clear(from);
}

void fl_error_clear(fl_error *error)
{
    if (!error)
        return;
    if (error->exception.release)
        error->exception.release(error->exception.object);
    *error = (fl_error)FL_ERROR_INIT;
}
