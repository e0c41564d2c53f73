// SPDX-License-Identifier: MIT
#include "base/status.h"

const char *fl_status_name(fl_status status)
{
    switch (status) {
    case FL_OK:
        return "ok";
    case FL_END:
        return "end";
    case FL_BUSY:
        return "busy";
    case FL_NEEDS_PYTHON:
        return "needs python";
    case FL_NEEDS_SCRATCH:
        return "needs scratch";
    case FL_ERROR_NO_MEMORY:
        return "no memory";
    case FL_ERROR_ARGUMENT:
        return "argument";
    case FL_ERROR_IO:
        return "io";
    case FL_ERROR_DATA:
        return "data";
    case FL_ERROR_UNSUPPORTED:
        return "unsupported";
    case FL_ERROR_LIMIT:
        return "limit";
    case FL_ERROR_CANCELLED:
        return "cancelled";
    case FL_ERROR_CLOSED:
        return "closed";
    case FL_ERROR_TIMEOUT:
        return "timeout";
    case FL_ERROR_THREAD:
        return "thread";
    case FL_ERROR_PYTHON:
        return "python";
    }
    return "unknown";
}
