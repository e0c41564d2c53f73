// SPDX-License-Identifier: MIT
// A fake program for the engine's tests: stages that pause, fail, block at a gate, ask
// for Python or for oversize scratch, and produce LATE data, each sample by a rule of the
// test. What they write can be checked: every byte follows from the sample's index.
//
// Also the source of slabs: an allocator that poisons what comes back, counts, may
// refuse, and asserts on which threads it is called.
#ifndef FL_TESTS_MODEL_PROGRAM_H
#define FL_TESTS_MODEL_PROGRAM_H

#include "pipeline/engine.h"

#include <pthread.h>
#include <stdatomic.h>

enum {
    MODEL_GATES = 4,
    MODEL_MAX_LATE = 2,
    MODEL_RUN_STRIDE = 1000000, // index = run * stride + position
    MODEL_PLAN_MARK = 77,       // error.offset of a failed plan
    MODEL_TRACE = 256,
};

// A place where samples stop until the test opens it.
typedef struct model_gate {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool is_open;
    int32_t inside;
} model_gate;

// What happens to one sample.
typedef struct model_sample {
    size_t file_size;
    size_t late_size[MODEL_MAX_LATE];
    int32_t fetch_pause, compute_pause, python_pause; // microseconds; -1: yield
    int32_t fetch_gate, compute_gate, python_gate;    // from 1; 0: none
    bool fetch_fails, compute_fails, python_fails;
    bool needs_python, needs_scratch;
    bool cancels_run; // its Python step drops the iterator
    bool stops_engine;
} model_sample;

typedef struct model_context model_context;
struct model_context {
    // The rules; set before the engine is made, constant from then on.
    uint64_t seed;
    int32_t rows, late_count, range_rows;
    int32_t plan_gate; // as in model_sample
    bool has_fetch, has_fixed;
    void (*behave)(const model_context *model, int64_t run, int64_t position,
                   model_sample *out);
    bool (*plan_fails)(const model_context *model, int64_t run,
                       int64_t number); // may be NULL
    void *user;

    fl_layout layout;
    model_gate gates[MODEL_GATES];

    _Atomic int64_t trace[MODEL_TRACE]; // indices in the order of their compute steps
    _Atomic int64_t trace_count;
    _Atomic int64_t bytes_alive, bytes_peak; // of files: from fetched to computed
    _Atomic int32_t oversize_running;
    _Atomic int32_t workers;
    _Atomic int32_t releases;
};

// One run's order: `batches` batches of model->rows rows, the last of `last_rows`.
typedef struct model_run {
    model_context *model;
    int64_t id, batches;
    int32_t last_rows;
    _Atomic int64_t admit_failures; // that many calls of admit fail before one works
    int32_t admit_gate;             // as in model_sample
    int64_t admitted;               // batches so far; one consumer admits at a time
    _Atomic bool may_close;         // somebody has cancelled or closed
    _Atomic int32_t releases;
    _Atomic uint8_t *computed;      // times a position was computed
    _Atomic uint8_t *delivered;     // times a batch was received
    _Atomic int64_t unknown_errors; // received errors that do not name their batch
} model_run;

void model_init(model_context *model); // plans the layout from the rules
void model_deinit(model_context *model);
fl_program model_program(model_context *model);

void model_run_init(model_run *run, model_context *model, int64_t id, int64_t batches,
                    int32_t last_rows);
void model_run_deinit(model_run *run);
int32_t model_run_rows(const model_run *run, int64_t number);

// The status that a serial loop would report for the batch, and the failing sample's
// index.
fl_status model_run_expect(const model_run *run, int64_t number, int64_t *index);
// Asserts the content of a delivered batch; returns a checksum of its slabs.
uint64_t model_check_batch(const model_run *run, const fl_batch *batch);
uint64_t model_checksum(const fl_batch *batch);

// The Python step of a sample, as the fake Python threads run it.
fl_status model_python_step(model_context *model, fl_run *run, model_run *order,
                            fl_sample *sample, fl_error *error);

void model_gate_open(model_context *model, int32_t gate);
void model_gate_close(model_context *model, int32_t gate);
void model_gate_await(model_context *model, int32_t gate,
                      int32_t inside); // that many are in it
int32_t model_gate_inside(model_context *model, int32_t gate);

void model_pause(int32_t microseconds);
uint64_t model_hash(uint64_t a, uint64_t b);

// The source of slabs.
typedef struct model_memory {
    bool is_plain, is_reusable;
    model_context *model;         // with `gate`; may be NULL
    int32_t gate;                 // where allocate stops
    int32_t pause;                // in allocate
    _Atomic uint32_t fail_chance; // in 2^16
    _Atomic int64_t fail_next;    // that many calls fail
    _Atomic int64_t out, made, refused;
    _Atomic int32_t destroyed;
    _Atomic uint64_t draws;
} model_memory;

fl_allocator model_allocator(model_memory *memory);
// The thread calls next(): only such threads may allocate when the source is not plain.
void model_set_consumer(bool is_consumer);

#endif
