// SPDX-License-Identifier: MIT
#include "model_cases.h"

#include "base/clock.h"
#include "check.h"
#include "pipeline/state.h"

static void behave(const model_context *model, int64_t run, int64_t position,
                   model_sample *out)
{
    const model_case *test = model->user;
    *out = test->fallback;
    for (int32_t i = 0; i < test->special_count; i++) {
        const model_special *special = &test->specials[i];
        if ((special->run < 0 || special->run == run) &&
            (special->position < 0 || special->position == position)) {
            *out = special->sample;
            return;
        }
    }
}

model_case *case_create(const char *name)
{
    model_case *test = calloc(1, sizeof(*test));
    CHECK(test);
    test->model.rows = 2;
    test->model.range_rows = 1;
    test->model.has_fetch = true;
    test->model.has_fixed = true;
    test->model.behave = behave;
    test->model.user = test;
    test->fallback.file_size = 1000;
    test->engine.memory.is_plain = true;
    test->engine.memory.is_reusable = true;
    model_watch(&test->engine, 0, name);
    return test;
}

void case_add(model_case *test, int64_t run, int64_t position, model_sample sample)
{
    CHECK(test->special_count < CASE_SPECIALS);
    test->specials[test->special_count++] =
        (model_special){.run = run, .position = position, .sample = sample};
}

void case_start(model_case *test, const fl_engine_options *options)
{
    model_engine_init(&test->engine, &test->model, options);
    model_set_consumer(true);
}

void case_finish(model_case *test)
{
    model_engine_deinit(&test->engine, 0);
    case_free(test);
}

void case_free(model_case *test)
{
    model_unwatch();
    free(test);
}

// ---- Consumers on threads of their own.

static void *take(void *argument)
{
    model_taker *taker = argument;
    model_engine *engine = &taker->test->engine;
    for (;;) {
        fl_batch *batch = NULL;
        fl_error error = FL_ERROR_INIT;
        model_event event = model_next(engine, taker->run, 0, &batch, &error);
        fl_error_clear(&error);
        taker->end = event;
        if (event == MODEL_BATCH) {
            model_check_batch(&engine->orders[taker->run], batch);
            taker->last = fl_batch_number(batch);
            fl_batch_free(batch);
            atomic_fetch_add(&taker->batches, 1);
        } else if (event == MODEL_FAILED) {
            atomic_fetch_add(&taker->failures, 1);
        } else if (event == MODEL_REFUSED) {
            if (atomic_fetch_add(&taker->refused, 1) + 1 == taker->refusals)
                return NULL;
        } else {
            return NULL;
        }
        if (taker->limit && taker->batches + taker->failures == taker->limit)
            return NULL;
    }
}

void taker_start(model_taker *taker, model_case *test, int32_t run)
{
    taker->test = test;
    taker->run = run;
    CHECK(pthread_create(&taker->thread, NULL, take, taker) == 0);
}

void taker_join(model_taker *taker)
{
    pthread_join(taker->thread, NULL);
}

// ---- Waiting for a state.

typedef struct wanted_state {
    model_case *test;
    int32_t which;
    int64_t count;
} wanted_state;

static bool has_waiters(void *argument)
{
    const wanted_state *wanted = argument;
    fl_run *run = wanted->test->engine.runs[wanted->which];
    fl_engine *engine = wanted->test->engine.engine;
    fl_mutex_lock(&engine->lock);
    bool holds = run->waiters == wanted->count;
    fl_mutex_unlock(&engine->lock);
    if (!holds)
        return false;
    fl_mutex_lock(&run->lock); // who waits holds it until it sleeps
    fl_mutex_unlock(&run->lock);
    return true;
}

void case_await_waiters(model_case *test, int32_t run, int32_t waiters)
{
    wanted_state wanted = {test, run, waiters};
    model_await(has_waiters, &wanted, "consumers do not wait");
}

static const fl_counters_block *counters_of(const model_case *test)
{
    return fl_engine_counters(test->engine.engine)->block;
}

static bool has_ready(void *argument)
{
    const wanted_state *wanted = argument;
    return fl_counter_read(&counters_of(wanted->test)->batches_ready) == wanted->count;
}

void case_await_ready(model_case *test, int64_t batches)
{
    wanted_state wanted = {test, 0, batches};
    model_await(has_ready, &wanted, "batches do not become ready");
}

static bool has_queued(void *argument)
{
    const wanted_state *wanted = argument;
    return fl_counter_read(&counters_of(wanted->test)->stages[wanted->which].queued) ==
           wanted->count;
}

void case_await_queued(model_case *test, int32_t stage, int64_t samples)
{
    wanted_state wanted = {test, stage, samples};
    model_await(has_queued, &wanted, "tasks are not queued");
}

static bool has_computed(void *argument)
{
    const wanted_state *wanted = argument;
    return wanted->test->model.trace_count == wanted->count;
}

void case_await_computed(model_case *test, int64_t samples)
{
    wanted_state wanted = {test, 0, samples};
    model_await(has_computed, &wanted, "samples are not computed");
}

static bool has_fetched(void *argument)
{
    const wanted_state *wanted = argument;
    return fl_counter_read(&counters_of(wanted->test)->fetched_bytes) >= wanted->count;
}

void case_await_fetched_bytes(model_case *test, int64_t at_least)
{
    wanted_state wanted = {test, 0, at_least};
    model_await(has_fetched, &wanted, "files are not read");
}

static bool has_items(void *argument)
{
    const wanted_state *wanted = argument;
    return fl_counter_read(&counters_of(wanted->test)->stages[FL_STAGE_FETCH].items) ==
           wanted->count;
}

void case_await_fetches(model_case *test, int64_t samples)
{
    wanted_state wanted = {test, 0, samples};
    model_await(has_items, &wanted, "fetches do not end");
}

static bool is_idle(void *argument)
{
    const wanted_state *wanted = argument;
    fl_engine *engine = wanted->test->engine.engine;
    fl_mutex_lock(&engine->lock);
    const fl_lane_state *lane = &engine->lanes[wanted->which];
    bool holds = lane->threads - lane->idle == wanted->count && lane->calls == 0;
    fl_mutex_unlock(&engine->lock);
    return holds;
}

void case_await_idle(model_case *test, int32_t lane, int32_t awake)
{
    wanted_state wanted = {test, lane, awake};
    model_await(is_idle, &wanted, "threads do not come to rest");
}

// ---- Batches on this thread.

int64_t case_take(model_case *test, int32_t run)
{
    fl_batch *batch = NULL;
    fl_error error = FL_ERROR_INIT;
    model_event event = model_next(&test->engine, run, 0, &batch, &error);
    CHECK_INT(event, MODEL_BATCH);
    model_check_batch(&test->engine.orders[run], batch);
    int64_t number = fl_batch_number(batch);
    fl_batch_free(batch);
    return number;
}

fl_status case_take_failure(model_case *test, int32_t run, int64_t *index)
{
    fl_batch *batch = NULL;
    fl_error error = FL_ERROR_INIT;
    CHECK_INT(model_next(&test->engine, run, 0, &batch, &error), MODEL_FAILED);
    fl_status status = error.code;
    *index = error.index;
    fl_error_clear(&error);
    return status;
}

model_event case_try(model_case *test, int32_t run, int64_t timeout_ns)
{
    fl_batch *batch = NULL;
    fl_error error = FL_ERROR_INIT;
    model_event event =
        model_next(&test->engine, run, fl_clock_now() + timeout_ns, &batch, &error);
    fl_batch_free(batch);
    fl_error_clear(&error);
    return event;
}
