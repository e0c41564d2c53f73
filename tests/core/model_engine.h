// SPDX-License-Identifier: MIT
// An engine over a fake program, and a consumer that does what the binding's next() does:
// pop; if nothing is ready, supply and pop again; start a Python thread if one is wanted;
// wait. Waits have no time slices: a lost wake-up shows as a hang, which ends the program
// with the seed and the engine's state.
#ifndef FL_TESTS_MODEL_ENGINE_H
#define FL_TESTS_MODEL_ENGINE_H

#include "model_program.h"

enum { MODEL_MAX_RUNS = 4 };

typedef struct model_engine {
    model_context *model;
    model_memory memory;
    fl_slab_pool *pool;
    fl_engine *engine;
    model_run orders[MODEL_MAX_RUNS];
    fl_run *runs[MODEL_MAX_RUNS];
    int32_t run_count;
    int64_t live_before;                   // blocks of memory before anything was made
    _Atomic uint32_t python_start_chance;  // in 2^16 that a Python thread cannot start
    _Atomic int32_t python_start_failures; // that many starts fail
    _Atomic uint64_t python_draws;
    _Atomic int32_t python_threads, python_peak;
    _Atomic bool may_close; // somebody stops or closes the engine
} model_engine;

fl_engine_options model_options(void); // 2 + 2 + 1 threads, window 4, no tight budget
void model_engine_init(model_engine *engine, model_context *model,
                       const fl_engine_options *options);
// Adds a run of so many batches; its number.
int32_t model_engine_add_run(model_engine *engine, int64_t batches, int32_t last_rows);

typedef enum model_event {
    MODEL_BATCH,   // *batch
    MODEL_FAILED,  // a batch was received as an error
    MODEL_REFUSED, // no batch: memory, threads or the sampler failed; may be tried again
    MODEL_LATE,    // no batch in time
    MODEL_CLOSED,
    MODEL_END,
} model_event;

// next(). `deadline_ns` 0: none, but a wait that lasts as long as the watchdog allows is
// a hang. `*batch` is owned by the caller. Errors are checked against the oracle and
// counted.
model_event model_next(model_engine *engine, int32_t run, int64_t deadline_ns,
                       fl_batch **batch, fl_error *error);
// After a batch was received: lets others enter, and one of the next run.
void model_refill(model_engine *engine, int32_t run, int32_t successor); // -1: none
// Takes all that is left; asserts that everything came once. Returns the batches that
// came as such.
int64_t model_drain(model_engine *engine, int32_t run);
// All of a run came exactly once.
void model_check_complete(const model_engine *engine, int32_t run);

// What the iterator's destructor does.
void model_drop_run(model_engine *engine, int32_t run);
void model_engine_stop(model_engine *engine);
int32_t model_engine_close(model_engine *engine, int64_t timeout_ns);
// Drops and closes what is left and asserts that nothing is: threads, counts, slabs (but
// those that the test still holds: `kept`), memory.
void model_engine_deinit(model_engine *engine, int64_t kept_slabs);
// The second half for a test that held batches beyond the engine's end.
void model_engine_check_gone(model_engine *engine);

// How long a wait may last before it is a hang: MODEL_TIMEOUT_S, else 20 s.
int64_t model_patience_ns(void);
// Starts the watchdog for one schedule; what is printed if it never ends.
void model_watch(model_engine *engine, uint64_t seed, const char *name);
void model_unwatch(void);
void model_hang(const char *what) __attribute__((noreturn));
// Waits, asleep, until the condition holds; a hang otherwise.
void model_await(bool (*holds)(void *argument), void *argument, const char *what);

#endif
