// SPDX-License-Identifier: MIT
// What the engine's deterministic cases share: rules by table, and consumers on threads
// of their own whose progress a case can wait for.
#ifndef FL_TESTS_MODEL_CASES_H
#define FL_TESTS_MODEL_CASES_H

#include "model_engine.h"

enum { CASE_SPECIALS = 16 };

typedef struct model_special {
    int64_t run, position; // -1: any
    model_sample sample;
} model_special;

// The fallback for all samples but the special ones, the first that fits.
typedef struct model_case {
    model_context model;
    model_engine engine;
    model_sample fallback;
    model_special specials[CASE_SPECIALS];
    int32_t special_count;
} model_case;

// Zeroed, with files of 1000 bytes; no engine yet.
model_case *case_create(const char *name);
void case_add(model_case *test, int64_t run, int64_t position, model_sample sample);
void case_start(model_case *test, const fl_engine_options *options);
void case_finish(model_case *test); // deinit of the engine, then free
void case_free(model_case *test);

// A thread that takes batches of a run until it is refused `refusals` times, has taken
// `limit` events (0: no limit), or the run ends or is closed. Batches are checked and
// freed.
typedef struct model_taker {
    model_case *test;
    int32_t run;
    int64_t limit;
    int64_t refusals;
    pthread_t thread;
    _Atomic int64_t batches, failures, refused, last;
    model_event end; // of the last event
} model_taker;

void taker_start(model_taker *taker, model_case *test, int32_t run);
void taker_join(model_taker *taker);

// Waits until this is so; a hang otherwise.
void case_await_waiters(model_case *test, int32_t run, int32_t waiters);
void case_await_ready(model_case *test, int64_t batches);
void case_await_queued(model_case *test, int32_t stage, int64_t samples);
void case_await_computed(model_case *test, int64_t samples);
void case_await_fetches(model_case *test, int64_t samples); // ended, well or not
void case_await_fetched_bytes(model_case *test, int64_t at_least);
void case_await_idle(model_case *test, int32_t lane, int32_t awake); // the rest sleep

// One batch, asserted and freed; its number.
int64_t case_take(model_case *test, int32_t run);
// The status of a batch that fails.
fl_status case_take_failure(model_case *test, int32_t run, int64_t *index);
model_event case_try(model_case *test, int32_t run, int64_t timeout_ns);

#endif
