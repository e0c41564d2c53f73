// SPDX-License-Identifier: MIT
#include "base/clock.h"

#include <time.h>

static int64_t read_clock(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * FL_SECOND_NS + now.tv_nsec;
}

int64_t fl_clock_now(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

int64_t fl_clock_thread_cpu(void)
{
    return read_clock(CLOCK_THREAD_CPUTIME_ID);
}
