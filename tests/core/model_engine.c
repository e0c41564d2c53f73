// SPDX-License-Identifier: MIT
#include "model_engine.h"

#include "base/clock.h"
#include "base/memory.h"
#include "base/sync.h"
#include "check.h"
#include "pipeline/state.h"

#include <signal.h>
#include <unistd.h>

// ---- The watchdog. State of the test program, not of the core.

static model_engine *_Atomic watched;
static _Atomic uint64_t watched_seed;
static const char *_Atomic watched_name;

int64_t model_patience_ns(void)
{
    const char *text = getenv("MODEL_TIMEOUT_S");
    int64_t seconds = text ? strtol(text, NULL, 10) : 0;
    return (seconds > 0 ? seconds : 20) * FL_SECOND_NS;
}

// Without locks: whoever holds them may be what hangs.
__attribute__((no_sanitize_thread)) static void print_run(const fl_run *run)
{
    fprintf(
        stderr,
        "  run %p: head %lld next %lld delivered %lld waiters %d bytes %lld listed %d "
        "ended %d closed %d admitting %d admitted %d attention %d queues",
        (const void *)run, (long long)run->head, (long long)run->next_number,
        (long long)run->delivered, run->waiters, (long long)run->bytes_used,
        run->is_listed, run->is_ended, run->is_closed, run->is_admitting,
        run->is_admitted, run->needs_attention);
    for (int queue = 0; queue < FL_QUEUE_COUNT; queue++)
        fprintf(stderr, " %lld", (long long)run->queues[queue].count);
    fprintf(stderr, "\n");
    for (const fl_batch *batch = run->first; batch; batch = batch->next)
        fprintf(stderr, "    batch %lld: state %d remaining %d held %d refused %d\n",
                (long long)batch->view.number, batch->state, batch->remaining,
                batch->held, batch->is_refused);
}

__attribute__((no_sanitize_thread)) static void print_engine(const model_engine *tested)
{
    const fl_engine *engine = tested->engine;
    fprintf(stderr, " stopping %d runs %d permit %d mean %lld python %d\n",
            engine->is_stopping, engine->run_count, engine->permit_taken,
            (long long)engine->mean_bytes, tested->python_threads);
    for (int lane = 0; lane < FL_LANE_COUNT; lane++) {
        const fl_lane_state *state = &engine->lanes[lane];
        fprintf(stderr, "  lane %d: threads %d of %d idle %d calls %d failed %d\n", lane,
                state->threads, state->maximum, state->idle, state->calls,
                state->has_failed);
    }
    for (int32_t i = 0; i < tested->run_count; i++)
        if (tested->runs[i])
            print_run(tested->runs[i]);
}

void model_hang(const char *what)
{
    const char *name = watched_name;
    fprintf(stderr, "HANG in %s, seed %llu: %s\n", name ? name : "?",
            (unsigned long long)watched_seed, what);
    const model_engine *tested = watched;
    if (tested && tested->engine)
        print_engine(tested);
    _exit(124);
}

static void on_alarm(int number)
{
    (void)number;
    model_hang("it takes for ever");
}

void model_watch(model_engine *engine, uint64_t seed, const char *name)
{
    watched = engine;
    watched_seed = seed;
    watched_name = name;
    signal(SIGALRM, on_alarm);
    alarm((unsigned)(3 * model_patience_ns() / FL_SECOND_NS));
}

void model_unwatch(void)
{
    alarm(0);
    watched = NULL;
}

void model_await(bool (*holds)(void *argument), void *argument, const char *what)
{
    int64_t deadline = fl_clock_now() + model_patience_ns();
    for (int32_t tries = 0; !holds(argument); tries++) {
        if (fl_clock_now() > deadline)
            model_hang(what);
        model_pause(tries < 20 ? -1 : 50);
    }
}

// ---- The engine.

fl_engine_options model_options(void)
{
    return (fl_engine_options){.compute_threads = 2,
                               .fetch_threads = 2,
                               .python_threads = 1,
                               .window = 4,
                               .fetch_bytes = INT64_C(1) << 40,
                               .late_bytes = INT64_C(1) << 40,
                               .in_order = true,
                               .idle_exit_ns = 3600 * FL_SECOND_NS};
}

void model_engine_init(model_engine *engine, model_context *model,
                       const fl_engine_options *options)
{
    engine->live_before = fl_memory_live();
    engine->model = model;
    model_init(model);
    CHECK(fl_slab_pool_create(model_allocator(&engine->memory), options->window + 3,
                              &engine->pool, NULL) == FL_OK);
    CHECK(fl_engine_create(options, model_program(model), engine->pool, &engine->engine,
                           NULL) == FL_OK);
}

int32_t model_engine_add_run(model_engine *engine, int64_t batches, int32_t last_rows)
{
    int32_t run = engine->run_count++;
    CHECK(run < MODEL_MAX_RUNS);
    model_run_init(&engine->orders[run], engine->model, run, batches, last_rows);
    CHECK(fl_run_create(engine->engine, &engine->orders[run], &engine->runs[run], NULL) ==
          FL_OK);
    return run;
}

// ---- Fake Python threads.

static void *serve_python(void *argument)
{
    model_engine *tested = argument;
    fl_engine *engine = fl_engine_ref(tested->engine);
    fl_python_task task;
    while (fl_engine_python_take(engine, &task) == FL_OK) {
        fl_error error = FL_ERROR_INIT;
        model_run *order = &tested->orders[task.sample->index / MODEL_RUN_STRIDE];
        model_sample rules = {0};
        tested->model->behave(tested->model, order->id,
                              task.sample->index % MODEL_RUN_STRIDE, &rules);
        fl_status status =
            model_python_step(tested->model, task.run, order, task.sample, &error);
        if (rules.stops_engine)
            model_engine_stop(tested);
        fl_engine_python_finish(engine, &task, status, &error);
        CHECK(!error.exception.object);
    }
    fl_engine_python_exit(engine);
    fl_engine_unref(&engine);
    atomic_fetch_sub(&tested->python_threads, 1);
    return NULL;
}

// False: it could not be started.
static bool start_python(model_engine *tested)
{
    uint64_t draw = model_hash(atomic_fetch_add(&tested->python_draws, 1), 3) & 0xFFFF;
    bool is_refused = draw < tested->python_start_chance ||
                      (atomic_load(&tested->python_start_failures) > 0 &&
                       atomic_fetch_sub(&tested->python_start_failures, 1) > 0);
    pthread_t thread;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    int32_t count = atomic_fetch_add(&tested->python_threads, 1) + 1;
    if (!is_refused && count > tested->python_peak)
        tested->python_peak = count;
    is_refused =
        is_refused || pthread_create(&thread, &attributes, serve_python, tested) != 0;
    pthread_attr_destroy(&attributes);
    if (is_refused) {
        atomic_fetch_sub(&tested->python_threads, 1);
        fl_engine_python_exit(tested->engine);
    }
    return !is_refused;
}

// ---- The consumer.

static bool is_closing(const model_engine *engine, int32_t run)
{
    return atomic_load(&engine->may_close) || atomic_load(&engine->orders[run].may_close);
}

// A batch that came as an error: is it the one that a serial loop would report?
static void check_failure(model_engine *engine, int32_t run, const fl_error *error)
{
    model_run *order = &engine->orders[run];
    CHECK(error->message[0]);
    if (error->index < 0) { // of the batch itself: memory for its LATE data
        CHECK_INT(error->code, FL_ERROR_NO_MEMORY);
        atomic_fetch_add(&order->unknown_errors, 1);
        return;
    }
    CHECK_INT(error->index / MODEL_RUN_STRIDE, run);
    int64_t number = error->index % MODEL_RUN_STRIDE / engine->model->rows, index;
    fl_status expected = model_run_expect(order, number, &index);
    if (error->code == FL_ERROR_NO_MEMORY) {
        CHECK(expected == FL_OK || error->index <= index);
    } else {
        CHECK_INT(error->code, expected);
        CHECK_INT(error->index, index);
        CHECK((error->code == FL_ERROR_ARGUMENT) == (error->offset == MODEL_PLAN_MARK));
    }
    CHECK_INT(atomic_fetch_add(&order->delivered[number], 1), 0);
}

static model_event receive(model_engine *engine, int32_t run, fl_status status,
                           fl_batch *batch, const fl_error *error)
{
    if (status == FL_END)
        return MODEL_END;
    if (status == FL_ERROR_CLOSED) {
        CHECK(is_closing(engine, run));
        return MODEL_CLOSED;
    }
    if (status != FL_OK) {
        CHECK(!batch && status == error->code);
        check_failure(engine, run, error);
        return MODEL_FAILED;
    }
    int64_t number = fl_batch_number(batch);
    CHECK_INT(atomic_fetch_add(&engine->orders[run].delivered[number], 1), 0);
    return MODEL_BATCH;
}

static model_event refuse(model_engine *engine, int32_t run)
{
    fl_run_leave(engine->runs[run]);
    return MODEL_REFUSED;
}

model_event model_next(model_engine *engine, int32_t run, int64_t deadline_ns,
                       fl_batch **batch, fl_error *error)
{
    fl_run *mine = engine->runs[run];
    int64_t patience = fl_clock_now() + model_patience_ns();
    bool is_late = false;
    fl_status status;
    model_set_consumer(true);
    for (;;) {
        status = fl_run_pop(mine, batch, error);
        if (status == FL_BUSY) {
            if (fl_run_supply(mine, error) < 0)
                return refuse(engine, run);
            status = fl_run_pop(mine, batch, error);
        }
        if (status != FL_BUSY)
            return receive(engine, run, status, *batch, error);
        if (is_late) {
            fl_run_leave(mine);
            return MODEL_LATE;
        }
        if (fl_engine_python_enter(engine->engine) && !start_python(engine)) {
            fl_error_set(error, FL_ERROR_THREAD, "the Python thread cannot start");
            return refuse(engine, run);
        }
        status = fl_run_wait(mine, deadline_ns ? deadline_ns : patience, error);
        CHECK(status == FL_OK || status == FL_ERROR_TIMEOUT);
        // Also where a look at the window found what no wake-up had told.
        if (fl_clock_now() > patience)
            model_hang("a consumer was not woken");
        if (status == FL_OK)
            continue;
        is_late = true; // the window first, then the clock
    }
}

void model_refill(model_engine *engine, int32_t run, int32_t successor)
{
    fl_error error = FL_ERROR_INIT;
    if (fl_run_supply(engine->runs[run], &error) < 0)
        CHECK(error.code < 0);
    fl_error_clear(&error);
    if (successor >= 0 && fl_run_is_admitted(engine->runs[run]) &&
        fl_run_feed(engine->runs[successor], &error) < 0)
        fl_error_clear(&error);
}

int64_t model_drain(model_engine *engine, int32_t run)
{
    int64_t batches = 0;
    for (;;) {
        fl_batch *batch = NULL;
        fl_error error = FL_ERROR_INIT;
        model_event event = model_next(engine, run, 0, &batch, &error);
        fl_error_clear(&error);
        if (event == MODEL_END)
            break;
        CHECK(event == MODEL_BATCH || event == MODEL_FAILED);
        if (event == MODEL_BATCH) {
            model_check_batch(&engine->orders[run], batch);
            fl_batch_free(batch);
            batches++;
        }
        model_refill(engine, run, -1);
    }
    model_check_complete(engine, run);
    return batches;
}

void model_check_complete(const model_engine *engine, int32_t run)
{
    const model_run *order = &engine->orders[run];
    int64_t received = order->unknown_errors;
    for (int64_t number = 0; number < order->batches; number++) {
        CHECK(order->delivered[number] <= 1);
        received += order->delivered[number];
    }
    CHECK_INT(received, order->batches);
    CHECK_INT(fl_run_delivered(engine->runs[run]), order->batches);
    CHECK_INT(order->admitted, order->batches);
    CHECK(fl_run_is_admitted(engine->runs[run]));
}

// ---- The end.

void model_drop_run(model_engine *engine, int32_t run)
{
    atomic_store(&engine->orders[run].may_close, true);
    fl_run_cancel(engine->runs[run]);
    fl_run_unref(&engine->runs[run]);
}

void model_engine_stop(model_engine *engine)
{
    atomic_store(&engine->may_close, true);
    fl_engine_stop(engine->engine);
}

int32_t model_engine_close(model_engine *engine, int64_t timeout_ns)
{
    atomic_store(&engine->may_close, true);
    int64_t deadline = fl_clock_now() + timeout_ns;
    int32_t left = fl_engine_close(engine->engine, deadline);
    if (left == 0 && fl_clock_now() > deadline)
        model_hang("close was not woken");
    return left;
}

static bool is_python_gone(void *argument)
{
    return atomic_load(&((model_engine *)argument)->python_threads) == 0;
}

static bool is_program_gone(void *argument)
{
    const model_engine *engine = argument;
    return engine->model->releases == 1 && engine->model->workers == 0;
}

static bool is_memory_gone(void *argument)
{
    const model_engine *engine = argument;
    return engine->memory.destroyed == 1 && fl_memory_live() == engine->live_before;
}

static void check_counters(const fl_counters_block *block)
{
    for (int stage = 0; stage < FL_STAGE_COUNT; stage++) {
        CHECK_INT(fl_counter_read(&block->stages[stage].queued), 0);
        CHECK_INT(fl_counter_read(&block->stages[stage].threads), 0);
    }
    CHECK_INT(fl_counter_read(&block->fetched_bytes), 0);
    CHECK_INT(fl_counter_read(&block->batches_ready), 0);
    CHECK_INT(fl_counter_read(&block->waiting_since_ns), 0);
}

void model_engine_deinit(model_engine *engine, int64_t kept_slabs)
{
    for (int32_t run = 0; run < engine->run_count; run++)
        if (engine->runs[run])
            model_drop_run(engine, run);
    CHECK_INT(model_engine_close(engine, model_patience_ns()), 0);
    model_await(is_python_gone, engine, "Python threads do not end");
    check_counters(fl_engine_counters(engine->engine)->block);
    CHECK_INT(fl_slab_pool_read_usage(engine->pool).out_slabs, kept_slabs);
    CHECK_INT(fl_slab_pool_read_usage(engine->pool).free_slabs, 0);
    fl_engine_unref(&engine->engine);
    fl_slab_pool_unref(&engine->pool);
    model_await(is_program_gone, engine, "the engine is never freed");
    CHECK_INT(engine->model->bytes_alive, 0);
    if (kept_slabs == 0)
        model_engine_check_gone(engine);
}

void model_engine_check_gone(model_engine *engine)
{
    model_await(is_memory_gone, engine, "memory or slabs are left");
    CHECK_INT(engine->memory.out, 0);
    for (int32_t run = 0; run < engine->run_count; run++) {
        CHECK_INT(engine->orders[run].releases, 1);
        model_run_deinit(&engine->orders[run]);
    }
    model_deinit(engine->model);
}
