// SPDX-License-Identifier: MIT
// What the engine does when memory, threads or Python steps fail, when consumers leave,
// and when it is stopped from anywhere.
#include "model_cases.h"

#include "base/clock.h"
#include "base/memory.h"
#include "base/thread.h"
#include "check.h"
#include "pipeline/state.h"

enum { ALWAYS = 0x10000 };

// ---- Memory

// Takes all of a run although one allocation fails; each batch comes once.
static void drain_with_failures(model_case *test, int32_t run)
{
    for (int32_t tries = 0;; tries++) {
        CHECK(tries < 100);
        model_event event = case_try(test, run, model_patience_ns());
        CHECK(event != MODEL_LATE && event != MODEL_CLOSED);
        if (event == MODEL_END)
            break;
    }
    model_check_complete(&test->engine, run);
}

// True if the n-th allocation was reached.
static bool run_with_failure_at(int64_t n, bool is_plain, bool has_fetch)
{
    model_case *test = case_create(__func__);
    fl_engine_options options = model_options();
    test->model.late_count = 1;
    test->model.has_fetch = has_fetch;
    test->fallback.late_size[0] = 100;
    test->engine.memory.is_plain = is_plain;
    case_add(test, 0, 1, (model_sample){.needs_python = true, .late_size = {10}});
    case_add(test, 0, 2, (model_sample){.needs_scratch = true, .late_size = {10}});
    case_start(test, &options);
    model_engine_add_run(&test->engine, 3, 2);
    fl_memory_fail_at(n);
    drain_with_failures(test, 0);
    bool was_reached = fl_memory_fail_pending() < 0;
    fl_memory_fail_at(-1);
    case_finish(test);
    return was_reached;
}

static void test_each_allocation_fails(void)
{
    for (int32_t kind = 0; kind < 4; kind++) {
        int64_t n = 0;
        while (run_with_failure_at(n, kind & 1, kind & 2))
            n++;
        CHECK(n > 20);
    }
}

static void test_objects_fail_to_be_made(void)
{
    model_case *test = case_create(__func__);
    fl_engine_options options = model_options();
    case_start(test, &options);
    model_engine_add_run(&test->engine, 1, 2);
    fl_engine *engine = NULL;
    fl_run *run = NULL;
    fl_error error = FL_ERROR_INIT;
    fl_memory_fail_at(0);
    CHECK_INT(fl_engine_create(&options, model_program(&test->model), test->engine.pool,
                               &engine, &error),
              FL_ERROR_NO_MEMORY);
    fl_memory_fail_at(0);
    CHECK_INT(fl_run_create(test->engine.engine, &test->engine.orders[0], &run, &error),
              FL_ERROR_NO_MEMORY);
    CHECK(!engine && !run && error.message[0]);
    fl_error_clear(&error);
    CHECK_INT(model_drain(&test->engine, 0), 1);
    case_finish(test);
}

static void test_refused_slabs_do_not_spin(void)
{
    // Behind a stuck head, two batches wait for memory that is refused: the consumer
    // asks once for each that is new, sleeps, and all comes once memory is there.
    model_case *test = case_create(__func__);
    fl_engine_options options = model_options();
    options.window = options.compute_threads = 3;
    test->engine.memory.is_plain = false;
    test->model.has_fixed = false;
    test->model.late_count = 1;
    test->fallback.late_size[0] = 10;
    case_add(test, 0, 0, (model_sample){.compute_gate = 1});
    case_add(test, 0, 2, (model_sample){.compute_gate = 2});
    case_add(test, 0, 4, (model_sample){.compute_gate = 3});
    case_start(test, &options);
    model_engine_add_run(&test->engine, 3, 2);
    atomic_store(&test->engine.memory.fail_chance, ALWAYS);
    model_taker taker = {0};
    taker_start(&taker, test, 0);
    case_await_waiters(test, 0, 1);
    for (int32_t gate = 1; gate <= 3; gate++)
        model_gate_await(&test->model, gate, 1);
    model_gate_open(&test->model, 2);
    while (test->engine.memory.refused == 0)
        model_pause(-1);
    case_await_waiters(test, 0, 1);
    model_gate_open(&test->model, 3); // a second one behind the refused one
    while (test->engine.memory.refused == 1)
        model_pause(-1);
    model_pause(2000); // a spinning consumer asks thousands of times
    CHECK(test->engine.memory.refused <= 3);
    atomic_store(&test->engine.memory.fail_chance, 0);
    model_gate_open(&test->model, 1);
    taker_join(&taker);
    CHECK_INT(taker.batches, 3);
    CHECK_INT(taker.refused, 0);
    case_finish(test);
}

static void test_refused_head_tells_every_consumer(void)
{
    model_case *test = case_create(__func__);
    fl_engine_options options = model_options();
    test->engine.memory.is_plain = false;
    test->model.late_count = 1;
    test->fallback.late_size[0] = 5000;
    case_add(test, 0, 0, (model_sample){.compute_gate = 1, .late_size = {5000}});
    case_start(test, &options);
    model_engine_add_run(&test->engine, 4, 2);
    model_taker takers[2] = {{.refusals = 1}, {.refusals = 1}};
    for (int32_t i = 0; i < 2; i++)
        taker_start(&takers[i], test, 0);
    case_await_waiters(test, 0, 2);
    atomic_store(&test->engine.memory.fail_chance, ALWAYS);
    model_gate_open(&test->model, 1);
    for (int32_t i = 0; i < 2; i++) {
        taker_join(&takers[i]);
        CHECK_INT(takers[i].refused, 1);
    }
    atomic_store(&test->engine.memory.fail_chance, 0);
    model_drain(&test->engine, 0);
    case_finish(test);
}

static void *supply_once(void *argument)
{
    model_set_consumer(true);
    model_refill(&((model_case *)argument)->engine, 0, -1); // ignores the refusal
    return NULL;
}

static bool needs_slab(void *argument)
{
    fl_run *run = ((model_case *)argument)->engine.runs[0];
    fl_mutex_lock(&run->lock);
    bool holds = run->first && run->first->state == FL_BATCH_NEEDS_SLAB;
    fl_mutex_unlock(&run->lock);
    return holds;
}

static void test_refusal_while_another_waits(void)
{
    // One consumer has claimed the head and asks for memory; another one falls asleep,
    // since the head is on its way. Then the first one is refused.
    model_case *test = case_create(__func__);
    fl_engine_options options = model_options();
    options.window = 1;
    test->engine.memory.is_plain = false;
    test->engine.memory.model = &test->model;
    test->engine.memory.gate = 1;
    test->engine.memory.fail_next = 1;
    test->model.late_count = 1;
    test->model.has_fixed = false;
    case_start(test, &options);
    model_engine_add_run(&test->engine, 1, 2);
    CHECK_INT(fl_run_feed(test->engine.runs[0], NULL), FL_OK);
    model_await(needs_slab, test, "no batch needs memory");
    pthread_t other;
    CHECK(pthread_create(&other, NULL, supply_once, test) == 0);
    model_gate_await(&test->model, 1, 1);
    model_taker taker = {0};
    taker_start(&taker, test, 0);
    case_await_waiters(test, 0, 1);
    model_gate_open(&test->model, 1);
    pthread_join(other, NULL);
    taker_join(&taker);
    CHECK_INT(taker.batches, 1);
    case_finish(test);
}

// ---- Threads

static void test_no_thread_starts(void)
{
    model_case *test = case_create(__func__);
    fl_engine_options options = model_options();
    case_start(test, &options);
    model_engine_add_run(&test->engine, 4, 2);
    fl_thread_fail_randomly(ALWAYS, 1);
    for (int32_t i = 0; i < 3; i++) {
        fl_batch *batch = NULL;
        fl_error error = FL_ERROR_INIT;
        CHECK_INT(model_next(&test->engine, 0, 0, &batch, &error), MODEL_REFUSED);
        CHECK_INT(error.code, FL_ERROR_THREAD);
        CHECK_CONTAINS(error.message, "ulimit");
        fl_error_clear(&error);
    }
    fl_thread_fail_randomly(0, 0);
    CHECK_INT(model_drain(&test->engine, 0), 4);
    case_finish(test);
}

static void test_some_threads_start(void)
{
    for (int64_t n = 0; n < 6; n++) {
        model_case *test = case_create(__func__);
        fl_engine_options options = model_options();
        case_start(test, &options);
        model_engine_add_run(&test->engine, 4, 2);
        fl_thread_fail_at(n);
        drain_with_failures(test, 0);
        fl_thread_fail_at(-1);
        case_finish(test);
    }
}

static void test_failed_start_tells_waiting_consumers(void)
{
    // Fetch threads cannot start while two consumers sleep already.
    model_case *test = case_create(__func__);
    fl_engine_options options = model_options();
    test->model.plan_gate = 1;
    case_start(test, &options);
    model_engine_add_run(&test->engine, 1, 2);
    model_taker takers[2] = {{.refusals = 1}, {.refusals = 1}};
    for (int32_t i = 0; i < 2; i++)
        taker_start(&takers[i], test, 0);
    case_await_waiters(test, 0, 2);
    model_gate_await(&test->model, 1, 1);
    fl_thread_fail_randomly(ALWAYS, 1);
    model_gate_open(&test->model, 1);
    for (int32_t i = 0; i < 2; i++) {
        taker_join(&takers[i]);
        CHECK_INT(takers[i].refused, 1);
    }
    fl_thread_fail_randomly(0, 0);
    CHECK_INT(model_drain(&test->engine, 0), 1);
    case_finish(test);
}

// ---- Python steps

static void test_slow_python_step(void)
{
    model_case *test = case_create(__func__);
    fl_engine_options options = model_options();
    options.window = 3;
    test->fallback = (model_sample){.needs_python = true, .python_gate = 1};
    case_start(test, &options);
    model_engine_add_run(&test->engine, 6, 2);
    CHECK_INT(case_try(test, 0, FL_MILLISECOND_NS), MODEL_LATE);
    while (case_try(test, 0, FL_MILLISECOND_NS), test->engine.python_threads == 0)
        ; // a consumer that waits starts it
    model_gate_await(&test->model, 1, 1);
    case_await_queued(test, FL_STAGE_PYTHON, 5); // the rest of the window
    CHECK_INT(test->engine.orders[0].admitted, 3);
    model_gate_open(&test->model, 1);
    CHECK_INT(model_drain(&test->engine, 0), 6);
    CHECK_INT(test->engine.python_peak, 1);
    case_finish(test);
}

static void test_python_step_fails(void)
{
    model_case *test = case_create(__func__);
    fl_engine_options options = model_options();
    case_add(test, 0, 3, (model_sample){.needs_python = true, .python_fails = true});
    case_start(test, &options);
    model_engine_add_run(&test->engine, 4, 2);
    CHECK_INT(case_take(test, 0), 0);
    int64_t index;
    CHECK_INT(case_take_failure(test, 0, &index), FL_ERROR_PYTHON);
    CHECK_INT(index, 3);
    CHECK_INT(model_drain(&test->engine, 0), 2);
    case_finish(test);
}

static void test_python_thread_cannot_start(void)
{
    // The consumer that is refused leaves it to another one.
    model_case *test = case_create(__func__);
    fl_engine_options options = model_options();
    test->fallback.needs_python = true;
    test->engine.python_start_failures = 2;
    case_start(test, &options);
    model_engine_add_run(&test->engine, 4, 2);
    model_taker takers[3] = {{.refusals = 1}, {.refusals = 1}, {.refusals = 1}};
    for (int32_t i = 0; i < 3; i++)
        taker_start(&takers[i], test, 0);
    int64_t refused = 0;
    for (int32_t i = 0; i < 3; i++) {
        taker_join(&takers[i]);
        refused += takers[i].refused;
    }
    CHECK_INT(refused, 2);
    model_check_complete(&test->engine, 0);
    case_finish(test);
}

static void test_python_task_comes_as_the_last_thread_goes(void)
{
    // Played by hand: two threads are told to go; before they have, a task is queued.
    model_case *test = case_create(__func__);
    fl_engine_options options = model_options();
    options.python_threads = 2;
    options.idle_exit_ns = 0;
    options.window = 1;
    test->fallback.needs_python = true;
    case_start(test, &options);
    model_engine_add_run(&test->engine, 2, 2);
    fl_engine *engine = test->engine.engine;
    fl_run *run = test->engine.runs[0];
    CHECK_INT(fl_run_supply(run, NULL), FL_OK);
    case_await_queued(test, FL_STAGE_PYTHON, 2);
    CHECK(fl_engine_python_enter(engine) && fl_engine_python_enter(engine));
    for (int32_t i = 0; i < 2; i++) {
        fl_python_task task;
        fl_error error = FL_ERROR_INIT;
        CHECK_INT(fl_engine_python_take(engine, &task), FL_OK);
        fl_status status = model_python_step(
            &test->model, task.run, &test->engine.orders[0], task.sample, &error);
        fl_engine_python_finish(engine, &task, status, &error);
    }
    fl_python_task none;
    CHECK_INT(fl_engine_python_take(engine, &none), FL_END);
    CHECK_INT(fl_engine_python_take(engine, &none), FL_END);
    case_await_ready(test, 1);
    CHECK_INT(case_take(test, 0), 0);
    model_taker taker = {0};
    taker_start(&taker, test, 0);
    case_await_queued(test, FL_STAGE_PYTHON, 2);
    case_await_waiters(test, 0, 1);
    fl_engine_python_exit(engine);
    fl_engine_python_exit(engine);
    taker_join(&taker);
    CHECK_INT(taker.batches, 1);
    case_finish(test);
}

static void test_iterator_dropped_in_its_python_task(void)
{
    model_case *test = case_create(__func__);
    fl_engine_options options = model_options();
    case_add(test, 0, 3, (model_sample){.needs_python = true, .cancels_run = true});
    case_start(test, &options);
    model_engine_add_run(&test->engine, 9, 2);
    model_engine_add_run(&test->engine, 3, 2);
    model_taker taker = {0};
    taker_start(&taker, test, 0);
    taker_join(&taker);
    CHECK_INT(taker.end, MODEL_CLOSED);
    CHECK_INT(model_drain(&test->engine, 1), 3); // others go on
    case_finish(test);
}

static void test_loader_closed_in_a_python_task(void)
{
    model_case *test = case_create(__func__);
    fl_engine_options options = model_options();
    case_add(test, 0, 3, (model_sample){.needs_python = true, .stops_engine = true});
    case_start(test, &options);
    model_engine_add_run(&test->engine, 9, 2);
    model_taker taker = {0};
    taker_start(&taker, test, 0);
    taker_join(&taker);
    CHECK_INT(taker.end, MODEL_CLOSED);
    case_finish(test);
}

// ---- Stopping, leaving

static void *close_twice(void *argument)
{
    model_case *test = argument;
    for (int32_t i = 0; i < 2; i++)
        CHECK_INT(model_engine_close(&test->engine, model_patience_ns()), 0);
    return NULL;
}

static void test_close_from_several_threads_inside_next(void)
{
    model_case *test = case_create(__func__);
    fl_engine_options options = model_options();
    test->fallback.compute_gate = 1;
    case_start(test, &options);
    model_engine_add_run(&test->engine, 9, 2);
    model_taker takers[2] = {0};
    pthread_t closers[3];
    for (int32_t i = 0; i < 2; i++)
        taker_start(&takers[i], test, 0);
    case_await_waiters(test, 0, 2);
    model_gate_await(&test->model, 1, 2);
    for (int32_t i = 0; i < 3; i++)
        CHECK(pthread_create(&closers[i], NULL, close_twice, test) == 0);
    for (int32_t i = 0; i < 2; i++) {
        taker_join(&takers[i]); // while compute threads are still stuck
        CHECK_INT(takers[i].end, MODEL_CLOSED);
    }
    model_gate_open(&test->model, 1);
    for (int32_t i = 0; i < 3; i++)
        pthread_join(closers[i], NULL);
    CHECK(fl_engine_is_closed(test->engine.engine));
    fl_run *run = NULL;
    CHECK_INT(fl_run_create(test->engine.engine, NULL, &run, NULL), FL_ERROR_CLOSED);
    case_finish(test);
}

static void test_closed_before_the_first_next(void)
{
    model_case *test = case_create(__func__);
    fl_engine_options options = model_options();
    case_start(test, &options);
    model_engine_add_run(&test->engine, 9, 2);
    model_engine_stop(&test->engine);
    CHECK_INT(case_try(test, 0, model_patience_ns()), MODEL_CLOSED);
    case_finish(test);
}

static void test_cancelled_rows_are_never_seen(void)
{
    // Between cancel's flag and the rest of cancel a batch becomes ready whose second row
    // was dropped.
    model_case *test = case_create(__func__);
    fl_engine_options options = model_options();
    options.compute_threads = 1;
    test->model.has_fetch = false;
    case_add(test, 0, 0, (model_sample){.compute_gate = 1});
    case_start(test, &options);
    model_engine_add_run(&test->engine, 1, 2);
    model_taker taker = {0};
    taker_start(&taker, test, 0);
    case_await_waiters(test, 0, 1);
    model_gate_await(&test->model, 1, 1);
    atomic_store(&test->engine.orders[0].may_close, true);
    fl_cancel_set(&test->engine.runs[0]->cancel);
    model_gate_open(&test->model, 1);
    taker_join(&taker);
    CHECK_INT(taker.end, MODEL_CLOSED);
    CHECK_INT(test->engine.orders[0].computed[1], 0);
    case_finish(test);
}

static void test_leaving_consumer_wakes_another(void)
{
    // A signal may have been spent on the one that leaves.
    model_case *test = case_create(__func__);
    fl_engine_options options = model_options();
    case_add(test, 0, 0, (model_sample){.compute_gate = 1});
    case_start(test, &options);
    model_engine_add_run(&test->engine, 1, 2);
    fl_run *run = test->engine.runs[0];
    model_taker taker = {0};
    taker_start(&taker, test, 0);
    case_await_waiters(test, 0, 1);
    model_gate_await(&test->model, 1, 1);
    int64_t waits =
        fl_counter_read(&fl_engine_counters(test->engine.engine)->block->consumer_waits);
    fl_run_leave(run);
    while (fl_counter_read(
               &fl_engine_counters(test->engine.engine)->block->consumer_waits) == waits)
        model_pause(-1);
    model_gate_open(&test->model, 1);
    taker_join(&taker);
    CHECK_INT(taker.end, MODEL_END);
    case_finish(test);
}

// In a window of one the end is found after the last batch was popped, else before.
static void check_end_wakes_all(int32_t window)
{
    model_case *test = case_create(__func__);
    fl_engine_options options = model_options();
    options.window = window;
    case_add(test, 0, 0, (model_sample){.compute_gate = 1});
    case_start(test, &options);
    model_engine_add_run(&test->engine, 1, 2);
    model_taker takers[3] = {0};
    for (int32_t i = 0; i < 3; i++)
        taker_start(&takers[i], test, 0);
    case_await_waiters(test, 0, 3);
    model_gate_open(&test->model, 1);
    for (int32_t i = 0; i < 3; i++) {
        taker_join(&takers[i]);
        CHECK_INT(takers[i].end, MODEL_END);
    }
    case_finish(test);
}

static void test_end_wakes_all(void)
{
    check_end_wakes_all(1);
    check_end_wakes_all(4);
}

static void *feed_once(void *argument)
{
    model_set_consumer(true);
    CHECK(fl_run_feed(((model_case *)argument)->engine.runs[0], NULL) < 0);
    return NULL;
}

static void test_failed_entry_while_another_waits(void)
{
    // The window is empty, but somebody is making a batch: the consumer sleeps. Then the
    // sampler fails.
    model_case *test = case_create(__func__);
    fl_engine_options options = model_options();
    case_start(test, &options);
    model_engine_add_run(&test->engine, 1, 2);
    test->engine.orders[0].admit_gate = 1;
    test->engine.orders[0].admit_failures = 1;
    pthread_t other;
    CHECK(pthread_create(&other, NULL, feed_once, test) == 0);
    model_gate_await(&test->model, 1, 1);
    model_taker taker = {0};
    taker_start(&taker, test, 0);
    case_await_waiters(test, 0, 1);
    model_gate_open(&test->model, 1);
    pthread_join(other, NULL);
    taker_join(&taker);
    CHECK_INT(taker.batches, 1);
    case_finish(test);
}

// Two consumers sleep; each takes one batch and goes away. The first one must wake the
// other: for the batch that is ready behind the head, or, in a window of one, to let the
// next batch enter.
static void check_popper_wakes_the_next(int32_t window)
{
    model_case *test = case_create(__func__);
    fl_engine_options options = model_options();
    options.window = window;
    case_add(test, 0, 0, (model_sample){.compute_gate = 1});
    case_start(test, &options);
    model_engine_add_run(&test->engine, 2, 2);
    model_taker takers[2] = {{.limit = 1}, {.limit = 1}};
    for (int32_t i = 0; i < 2; i++)
        taker_start(&takers[i], test, 0);
    case_await_waiters(test, 0, 2);
    model_gate_await(&test->model, 1, 1);
    if (window > 1)
        case_await_ready(test, 1);
    model_gate_open(&test->model, 1);
    for (int32_t i = 0; i < 2; i++) {
        taker_join(&takers[i]);
        CHECK_INT(takers[i].batches, 1);
    }
    CHECK_INT(model_drain(&test->engine, 0), 0);
    case_finish(test);
}

static void test_popper_wakes_the_next(void)
{
    check_popper_wakes_the_next(1);
    check_popper_wakes_the_next(2);
}

int main(void)
{
    test_each_allocation_fails();
    test_objects_fail_to_be_made();
    test_refused_slabs_do_not_spin();
    test_refused_head_tells_every_consumer();
    test_refusal_while_another_waits();
    test_no_thread_starts();
    test_some_threads_start();
    test_failed_start_tells_waiting_consumers();
    test_slow_python_step();
    test_python_step_fails();
    test_python_thread_cannot_start();
    test_python_task_comes_as_the_last_thread_goes();
    test_iterator_dropped_in_its_python_task();
    test_loader_closed_in_a_python_task();
    test_close_from_several_threads_inside_next();
    test_closed_before_the_first_next();
    test_cancelled_rows_are_never_seen();
    test_leaving_consumer_wakes_another();
    test_end_wakes_all();
    test_failed_entry_while_another_waits();
    test_popper_wakes_the_next();
    return 0;
}
