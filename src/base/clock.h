// SPDX-License-Identifier: MIT
// Clocks in nanoseconds. Any thread.
#ifndef FL_BASE_CLOCK_H
#define FL_BASE_CLOCK_H

#include <stdint.h>

#define FL_SECOND_NS INT64_C(1000000000)
#define FL_MILLISECOND_NS INT64_C(1000000)

int64_t fl_clock_now(void);        // monotonic: no jumps when the wall clock is set
int64_t fl_clock_thread_cpu(void); // CPU time of the calling thread

#endif
