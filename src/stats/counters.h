// SPDX-License-Identifier: MIT
// Counters of one engine, in one block of memory with a version, on a memfd so that
// another process can map it through /proc/PID/fd. Written with relaxed atomics by every
// thread; read at any time. Times are nanoseconds.
#ifndef FL_STATS_COUNTERS_H
#define FL_STATS_COUNTERS_H

#include "base/error.h"

#include <stdint.h>

enum { FL_COUNTERS_MAGIC = 0x464c4354, FL_COUNTERS_VERSION = 1 }; // "FLCT"

typedef enum fl_stage {
    FL_STAGE_PLAN,
    FL_STAGE_FETCH,
    FL_STAGE_COMPUTE,
    FL_STAGE_PYTHON,
    FL_STAGE_COPY,
    FL_STAGE_COUNT,
} fl_stage;

typedef struct fl_stage_counters {
    _Atomic int64_t items; // samples (plan, copy: batches)
    _Atomic int64_t bytes; // bytes read, decoded or copied
    _Atomic int64_t errors;
    _Atomic int64_t busy_ns;    // at work
    _Atomic int64_t starved_ns; // a thread of the kind slept: nothing to do
    _Atomic int64_t blocked_ns; // it slept while work waited for a budget
    _Atomic int64_t queued;     // now
    _Atomic int64_t threads;    // now
} fl_stage_counters;

typedef struct fl_counters_block {
    uint32_t magic, version;
    uint64_t size; // of this struct
    fl_stage_counters stages[FL_STAGE_COUNT];
    _Atomic int64_t batches_delivered, samples_delivered;
    _Atomic int64_t batches_ready;    // now
    _Atomic int64_t consumer_wait_ns; // time inside next() without a batch, past waits
    _Atomic int64_t consumer_waits;
    _Atomic int64_t
        waiting_since_ns; // monotonic; 0: nobody waits. Shows a stall in progress
    _Atomic int64_t fetched_bytes;    // held now
    _Atomic int64_t oversize_tasks;   // samples that needed more than the scratch plan
    _Atomic int64_t python_fallbacks; // samples that took a Python step
    _Atomic int64_t jpeg_warnings;    // libjpeg's warnings, ignored as Pillow does
} fl_counters_block;

typedef struct fl_counters {
    fl_counters_block *block; // never NULL
    int descriptor;           // of the memfd, -1 if there is none
} fl_counters;

// Falls back to anonymous memory where memfd_create is missing.
FL_MUST_CHECK fl_status fl_counters_init(fl_counters *counters, fl_error *error);
void fl_counters_deinit(fl_counters *counters);
// One relaxed add: counters order nothing.
void fl_counter_add(_Atomic int64_t *counter, int64_t amount);
int64_t fl_counter_read(const _Atomic int64_t *counter);

#endif
