// SPDX-License-Identifier: MIT
// What the engine runs: one const vtable and one immutable context a loader. The engine
// knows nothing of pictures; the program knows nothing of threads, queues and budgets.
//
// A sample goes PLANNED -> FETCHED -> (compute) -> STORED. Any step may be a Python task:
// compute answers FL_NEEDS_PYTHON, Python fills in what is missing, compute is called
// again.
#ifndef FL_PIPELINE_PROGRAM_H
#define FL_PIPELINE_PROGRAM_H

#include "base/error.h"
#include "batch/layout.h"
#include "batch/slab.h"
#include "data/buffer.h"
#include "data/cancel.h"

#include <stdbool.h>
#include <stdint.h>

// What travels through the stages. Its fields belong to the task that runs it.
typedef struct fl_sample {
    int64_t position;        // in the epoch's global order
    int64_t random_position; // keys the sample's random numbers
    int64_t index;           // in the data set
    int32_t row;             // in its batch
    bool is_valid;           // false: padding
    bool pixels_tried;       // the Python step has had its turn
    fl_buffer *bytes;        // after fetch; owned
    fl_buffer *pixels;       // RGBX from a Python step; owned
    int32_t pixel_width, pixel_height;
    size_t scratch_need; // with FL_NEEDS_SCRATCH: bytes beyond the worker's plan
} fl_sample;

// The program's view of a batch that is being filled.
typedef struct fl_batch_view {
    int64_t number;
    int32_t rows;
    fl_sample *samples;
    uint8_t *memory; // the FIXED slab's
    fl_part
        *parts; // rows * late_count; part of (row, slot): parts[row * late_count + slot]
} fl_batch_view;

typedef struct fl_program_vtable {
    // How many rows has batch `number` of this run? FL_END behind the last one. Called on
    // the consumer's thread, in order of numbers.
    fl_status (*admit)(const void *context, void *run_context, int64_t number,
                       int32_t *rows, fl_error *error);
    // Writes position, index, ... of every sample. Compute thread.
    fl_status (*plan)(const void *context, void *run_context, fl_batch_view *batch,
                      fl_error *error);
    // Reads the sample's bytes. Fetch thread; NULL if nothing has to be fetched.
    fl_status (*fetch)(const void *context, fl_sample *sample, const fl_cancel *cancel,
                       fl_error *error);
    // Does the rest: writes the row. FL_OK, FL_NEEDS_PYTHON, FL_NEEDS_SCRATCH (beyond
    // `scratch_limit`; called again with SIZE_MAX once the permit is there) or an error.
    // Compute thread; `worker` is that thread's own. Without FL_OK the engine drops the
    // sample's parts.
    fl_status (*compute)(const void *context, void *run_context, void *worker,
                         fl_batch_view *batch, fl_sample *sample, size_t scratch_limit,
                         const fl_cancel *cancel, fl_error *error);
    // A compute thread's own state; any thread may create it, its thread destroys it.
    fl_status (*worker_create)(const void *context, void **worker, fl_error *error);
    void (*worker_destroy)(void *worker);
    // Adds the sample's place (path) to an error. Any engine thread.
    void (*describe)(const void *context, const fl_sample *sample, fl_error *error);
    // The last holder of a run lets its order go. Any thread, no Python.
    void (*run_release)(void *run_context);
    // The last holder of the engine lets the program go. Any thread, no Python.
    void (*release)(void *context);
} fl_program_vtable;

typedef struct fl_program {
    const fl_program_vtable *vtable;
    void *context;
    const fl_layout *layout; // borrowed from the context
    int32_t range_rows;  // samples a compute task: 1 for pictures, more for small rows
    size_t scratch_plan; // bytes that a worker may use without the permit
} fl_program;

#endif
