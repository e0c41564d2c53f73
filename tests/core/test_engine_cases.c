// SPDX-License-Identifier: MIT
// Situations that the engine must answer, one a function, with gates instead of sleeps.
#include "model_cases.h"

#include "base/clock.h"
#include "check.h"
#include "pipeline/state.h"

static void test_huge_file_behind_a_full_read_ahead(void)
{
    // The head's 200 MB file is still being read when the others have filled the budget,
    // and no compute thread is free to give bytes back.
    model_case *test = case_create(__func__);
    fl_engine_options options = model_options();
    options.fetch_bytes = 400000;
    test->model.rows = 4;
    case_add(test, -1, 0, (model_sample){.file_size = 200 << 20, .fetch_gate = 1});
    test->fallback = (model_sample){.file_size = 100000, .compute_gate = 2};
    case_start(test, &options);
    model_engine_add_run(&test->engine, 6, 4);
    model_engine_add_run(&test->engine, 6, 4);
    CHECK_INT(fl_run_supply(test->engine.runs[0], NULL), FL_OK);
    case_await_fetched_bytes(test, options.fetch_bytes - 130000);
    CHECK_INT(fl_run_supply(test->engine.runs[1], NULL), FL_OK);
    model_gate_open(&test->model, 1);
    model_gate_open(&test->model, 2);
    CHECK_INT(model_drain(&test->engine, 1), 6); // the younger one first
    CHECK_INT(model_drain(&test->engine, 0), 6);
    case_finish(test);
}

static void test_paused_run_and_a_young_one_without_share(void)
{
    // Files are larger than the young run's share: only its head's rule lets them pass.
    model_case *test = case_create(__func__);
    fl_engine_options options = model_options();
    options.fetch_bytes = 150000;
    test->fallback.file_size = 140000;
    case_start(test, &options);
    model_engine_add_run(&test->engine, 8, 2);
    model_engine_add_run(&test->engine, 8, 2);
    CHECK_INT(case_take(test, 0), 0);
    model_refill(&test->engine, 0, -1);
    CHECK_INT(model_drain(&test->engine, 1), 8);
    CHECK_INT(model_drain(&test->engine, 0), 7);
    case_finish(test);
}

static void test_head_above_the_limit_holds_one_sample(void)
{
    model_case *test = case_create(__func__);
    fl_engine_options options = model_options();
    options.fetch_bytes = 1;
    options.fetch_threads = 4;
    test->model.rows = 8;
    test->fallback = (model_sample){.file_size = 5000, .fetch_pause = 50};
    case_start(test, &options);
    model_engine_add_run(&test->engine, 6, 8);
    CHECK_INT(model_drain(&test->engine, 0), 6);
    CHECK_INT(test->model.bytes_peak, 5000);
    case_finish(test);
}

static void test_files_are_charged_by_their_real_size(void)
{
    // Estimates are far too low at first, and nothing is given back: the limit is passed
    // by no more than a file a reading thread.
    model_case *test = case_create(__func__);
    fl_engine_options options = model_options();
    options.fetch_bytes = 1000000;
    test->model.rows = 16;
    test->fallback = (model_sample){.file_size = 500000, .compute_gate = 1};
    case_start(test, &options);
    model_engine_add_run(&test->engine, 1, 16);
    CHECK_INT(fl_run_supply(test->engine.runs[0], NULL), FL_OK);
    model_gate_await(&test->model, 1, 2);
    case_await_idle(test, FL_LANE_FETCH, 0);
    CHECK(test->model.bytes_peak <= options.fetch_bytes + 2 * 500000);
    model_gate_open(&test->model, 1);
    CHECK_INT(model_drain(&test->engine, 0), 1);
    case_finish(test);
}

static void test_burst_reaches_all_threads(void)
{
    // One task makes eight; each thread that takes one calls the next, asleep or not yet
    // started.
    model_case *test = case_create(__func__);
    fl_engine_options options = model_options();
    options.compute_threads = options.fetch_threads = options.python_threads = 3;
    test->model.rows = 8;
    test->fallback =
        (model_sample){.fetch_gate = 1, .compute_gate = 2, .needs_python = true};
    test->fallback.python_gate = 3;
    case_start(test, &options);
    model_engine_add_run(&test->engine, 2, 8);
    model_taker taker = {0};
    taker_start(&taker, test, 0);
    for (int32_t round = 0; round < 2; round++) {
        for (int32_t gate = 1; gate <= MODEL_GATES - 1; gate++) {
            model_gate_await(&test->model, gate, 3);
            model_gate_open(&test->model, gate);
        }
        if (round == 1)
            break;
        while (taker.batches == 0)
            model_pause(-1);
        atomic_store(&test->engine.orders[0].may_close, true);
        fl_run_cancel(test->engine.runs[0]); // the consumer still holds the run
        taker_join(&taker);
        for (int32_t lane = 0; lane < FL_LANE_COUNT; lane++)
            case_await_idle(test, lane, 0);
        for (int32_t gate = 1; gate <= MODEL_GATES - 1; gate++)
            model_gate_close(&test->model, gate);
        taker = (model_taker){0};
        taker_start(&taker, test, model_engine_add_run(&test->engine, 1, 8));
    }
    taker_join(&taker);
    CHECK_INT(taker.batches, 1);
    case_finish(test);
}

static void test_all_reading_threads_stuck(void)
{
    model_case *test = case_create(__func__);
    fl_engine_options options = model_options();
    case_add(test, 0, 2, (model_sample){.fetch_gate = 1});
    case_add(test, 0, 3, (model_sample){.fetch_gate = 1});
    case_start(test, &options);
    model_engine_add_run(&test->engine, 9, 2);
    CHECK_INT(case_take(test, 0), 0); // what was read is computed
    model_refill(&test->engine, 0, -1);
    model_gate_await(&test->model, 1, 2);
    CHECK_INT(case_try(test, 0, FL_MILLISECOND_NS), MODEL_LATE);
    CHECK_INT(case_try(test, 0, FL_MILLISECOND_NS), MODEL_LATE);
    CHECK_INT(model_engine_close(&test->engine, 20 * FL_MILLISECOND_NS), 2);
    CHECK_INT(case_try(test, 0, FL_SECOND_NS), MODEL_CLOSED);
    model_gate_open(&test->model, 1); // the abandoned free what they hold
    case_finish(test);
}

static void test_one_reading_thread_stuck(void)
{
    model_case *test = case_create(__func__);
    fl_engine_options options = model_options();
    case_add(test, 0, 2, (model_sample){.fetch_gate = 1});
    case_start(test, &options);
    model_engine_add_run(&test->engine, 5, 2);
    CHECK_INT(case_take(test, 0), 0);
    model_refill(&test->engine, 0, -1);
    case_await_computed(test, 9); // all of the window but the stuck one
    case_await_ready(test, 3);
    model_gate_open(&test->model, 1);
    CHECK_INT(model_drain(&test->engine, 0), 4);
    case_finish(test);
}

static void test_slow_sample_in_order(void)
{
    model_case *test = case_create(__func__);
    fl_engine_options options = model_options();
    options.window = 3;
    case_add(test, 0, 0, (model_sample){.compute_gate = 1});
    case_start(test, &options);
    model_engine_add_run(&test->engine, 9, 2);
    CHECK_INT(case_try(test, 0, FL_MILLISECOND_NS), MODEL_LATE);
    case_await_ready(test, 2); // the window is full, and stays so
    CHECK_INT(case_try(test, 0, FL_MILLISECOND_NS), MODEL_LATE);
    CHECK_INT(test->engine.orders[0].admitted, 3);
    CHECK_INT(test->engine.memory.made, 3);
    model_gate_open(&test->model, 1);
    for (int64_t number = 0; number < 9; number++)
        CHECK_INT(case_take(test, 0), number);
    case_finish(test);
}

static void test_slow_sample_out_of_order(void)
{
    model_case *test = case_create(__func__);
    fl_engine_options options = model_options();
    options.in_order = false;
    options.window = 2;
    case_add(test, 0, 0, (model_sample){.compute_gate = 1});
    case_start(test, &options);
    model_engine_add_run(&test->engine, 9, 2);
    for (int32_t i = 0; i < 8; i++)
        CHECK(case_take(test, 0) > 0);
    CHECK_INT(case_try(test, 0, FL_MILLISECOND_NS), MODEL_LATE);
    model_gate_open(&test->model, 1);
    CHECK_INT(case_take(test, 0), 0);
    CHECK_INT(model_drain(&test->engine, 0), 0);
    case_finish(test);
}

static void test_user_keeps_every_batch_beyond_close(void)
{
    enum { BATCHES = 12 };
    model_case *test = case_create(__func__);
    fl_engine_options options = model_options();
    options.window = 2;
    test->model.late_count = 1;
    test->fallback.late_size[0] = 300;
    case_start(test, &options);
    model_engine_add_run(&test->engine, BATCHES, 2);
    fl_batch *kept[BATCHES] = {NULL};
    uint64_t checksums[BATCHES];
    for (int32_t i = 0; i < BATCHES; i++) {
        fl_error error = FL_ERROR_INIT;
        CHECK_INT(model_next(&test->engine, 0, 0, &kept[i], &error), MODEL_BATCH);
        checksums[i] = model_check_batch(&test->engine.orders[0], kept[i]);
    }
    CHECK_INT(test->engine.memory.made, 2 * BATCHES);
    model_engine_deinit(&test->engine, 2 * BATCHES);
    for (int32_t i = 0; i < BATCHES; i++) {
        CHECK(model_checksum(kept[i]) == checksums[i]);
        fl_batch_free(kept[i]);
    }
    model_engine_check_gone(&test->engine);
    case_free(test);
}

typedef struct drop_list {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    fl_batch *batch;
    bool is_over;
} drop_list;

static void *drop_batches(void *argument)
{
    drop_list *dropper = argument;
    pthread_mutex_lock(&dropper->mutex);
    while (!dropper->is_over || dropper->batch) {
        fl_batch *batch = dropper->batch;
        dropper->batch = NULL;
        if (!batch) {
            pthread_cond_wait(&dropper->changed, &dropper->mutex);
            continue;
        }
        pthread_mutex_unlock(&dropper->mutex);
        fl_batch_free(batch);
        pthread_mutex_lock(&dropper->mutex);
        pthread_cond_signal(&dropper->changed);
    }
    pthread_mutex_unlock(&dropper->mutex);
    return NULL;
}

static void test_batches_dropped_on_another_thread(void)
{
    model_case *test = case_create(__func__);
    fl_engine_options options = model_options();
    drop_list dropper = {.mutex = PTHREAD_MUTEX_INITIALIZER,
                         .changed = PTHREAD_COND_INITIALIZER};
    pthread_t thread;
    case_start(test, &options);
    model_engine_add_run(&test->engine, 100, 2);
    CHECK(pthread_create(&thread, NULL, drop_batches, &dropper) == 0);
    for (int64_t number = 0; number < 100; number++) {
        fl_batch *batch = NULL;
        fl_error error = FL_ERROR_INIT;
        CHECK_INT(model_next(&test->engine, 0, 0, &batch, &error), MODEL_BATCH);
        model_check_batch(&test->engine.orders[0], batch);
        pthread_mutex_lock(&dropper.mutex);
        while (dropper.batch)
            pthread_cond_wait(&dropper.changed, &dropper.mutex);
        dropper.batch = batch;
        dropper.is_over = number == 99;
        pthread_cond_signal(&dropper.changed);
        pthread_mutex_unlock(&dropper.mutex);
        model_refill(&test->engine, 0, -1);
    }
    pthread_join(thread, NULL);
    CHECK(test->engine.memory.made <= options.window + 4); // they came back
    case_finish(test);
}

static int64_t run_of(const model_case *test, int64_t step)
{
    return test->model.trace[step] / MODEL_RUN_STRIDE;
}

static void test_waiting_head_before_an_older_run(void)
{
    // One compute thread, stuck in the old run, whose whole window lies queued. The young
    // run's consumer waits: all of its batch comes next.
    model_case *test = case_create(__func__);
    fl_engine_options options = model_options();
    options.compute_threads = 1;
    test->model.has_fetch = false;
    case_add(test, 0, 0, (model_sample){.compute_gate = 1});
    case_start(test, &options);
    model_engine_add_run(&test->engine, 4, 2);
    model_engine_add_run(&test->engine, 1, 2);
    CHECK_INT(fl_run_supply(test->engine.runs[0], NULL), FL_OK);
    model_gate_await(&test->model, 1, 1);
    model_taker taker = {0};
    taker_start(&taker, test, 1);
    case_await_waiters(test, 1, 1);
    model_gate_open(&test->model, 1);
    taker_join(&taker);
    CHECK_INT(taker.batches, 1);
    CHECK_INT(run_of(test, 1), 1);
    CHECK_INT(run_of(test, 2), 1);
    CHECK_INT(model_drain(&test->engine, 0), 4);
    case_finish(test);
}

static void test_two_waiting_heads_in_turns(void)
{
    model_case *test = case_create(__func__);
    fl_engine_options options = model_options();
    options.compute_threads = 1;
    test->model.has_fetch = false;
    test->model.rows = 8;
    case_add(test, 0, 0, (model_sample){.compute_gate = 1});
    case_start(test, &options);
    for (int32_t run = 0; run < 3; run++)
        model_engine_add_run(&test->engine, 1, 8);
    CHECK_INT(fl_run_supply(test->engine.runs[0], NULL), FL_OK);
    model_gate_await(&test->model, 1, 1);
    model_taker takers[2] = {0};
    for (int32_t i = 0; i < 2; i++) {
        taker_start(&takers[i], test, 1 + i);
        case_await_waiters(test, 1 + i, 1);
    }
    model_gate_open(&test->model, 1);
    taker_join(&takers[0]);
    taker_join(&takers[1]);
    for (int64_t step = 1; step < 16; step++)
        CHECK_INT(run_of(test, step) + run_of(test, step + 1), 3); // one of each
    CHECK_INT(model_drain(&test->engine, 0), 1);
    case_finish(test);
}

static void test_prestarted_run_is_cancelled_unseen(void)
{
    model_case *test = case_create(__func__);
    fl_engine_options options = model_options();
    case_start(test, &options);
    for (int32_t run = 0; run < 3; run++)
        model_engine_add_run(&test->engine, 4, 2);
    for (int32_t i = 0; i < 4; i++) {
        case_take(test, 0);
        model_refill(&test->engine, 0, 1);
    }
    CHECK(test->engine.orders[1].admitted > 0);
    model_drop_run(&test->engine, 1);
    CHECK_INT(model_drain(&test->engine, 2), 4);
    case_finish(test);
}

static void test_prestarted_run_goes_on(void)
{
    model_case *test = case_create(__func__);
    fl_engine_options options = model_options();
    case_start(test, &options);
    model_engine_add_run(&test->engine, 4, 2);
    model_engine_add_run(&test->engine, 4, 2);
    for (int32_t i = 0; i < 4; i++) {
        case_take(test, 0);
        model_refill(&test->engine, 0, 1);
    }
    CHECK_INT(case_try(test, 0, FL_SECOND_NS), MODEL_END);
    CHECK(test->engine.orders[1].admitted > 0);
    CHECK_INT(test->engine.orders[1].delivered[0], 0);
    CHECK_INT(model_drain(&test->engine, 1), 4);
    case_finish(test);
}

static void test_finished_run_gives_its_share_back(void)
{
    model_case *test = case_create(__func__);
    fl_engine_options options = model_options();
    options.window = 1; // the end is found after the last batch was popped
    case_start(test, &options);
    model_engine_add_run(&test->engine, 3, 2);
    CHECK_INT(model_drain(&test->engine, 0), 3);
    fl_engine *engine = test->engine.engine;
    fl_mutex_lock(&engine->lock);
    CHECK_INT(engine->run_count, 0);
    fl_mutex_unlock(&engine->lock);
    case_finish(test);
}

static void test_cancelled_run_gives_its_share_to_others(void)
{
    // Half of the budget lets one file of the other run be read at a time.
    model_case *test = case_create(__func__);
    fl_engine_options options = model_options();
    options.fetch_bytes = 300000;
    case_add(test, 1, -1, (model_sample){.fetch_gate = 1});
    test->fallback.compute_gate = 2; // the old run keeps its bytes
    case_start(test, &options);
    model_engine_add_run(&test->engine, 1, 1);
    model_engine_add_run(&test->engine, 4, 2);
    CHECK_INT(fl_run_supply(test->engine.runs[0], NULL), FL_OK);
    model_gate_await(&test->model, 2, 1);
    CHECK_INT(fl_run_supply(test->engine.runs[1], NULL), FL_OK);
    model_gate_await(&test->model, 1, 1);
    case_await_queued(test, FL_STAGE_FETCH, 7);
    case_await_idle(test, FL_LANE_FETCH, 1);
    model_drop_run(&test->engine, 0);
    model_gate_await(&test->model, 1, 2);
    model_gate_open(&test->model, 1);
    model_gate_open(&test->model, 2);
    CHECK_INT(model_drain(&test->engine, 1), 4);
    case_finish(test);
}

static void test_error_does_not_depend_on_timing(void)
{
    // Row 2 fails first, row 1 later: row 1 is reported; row 3 is dropped, row 0 not.
    model_case *test = case_create(__func__);
    fl_engine_options options = model_options();
    options.compute_threads = options.fetch_threads = 4;
    test->model.rows = 4;
    case_add(test, 0, 0, (model_sample){.compute_gate = 1});
    case_add(test, 0, 1, (model_sample){.compute_gate = 1, .compute_fails = true});
    case_add(test, 0, 2, (model_sample){.fetch_gate = 3, .fetch_fails = true});
    case_add(test, 0, 3, (model_sample){.fetch_gate = 2});
    case_start(test, &options);
    model_engine_add_run(&test->engine, 1, 4);
    CHECK_INT(case_try(test, 0, FL_MILLISECOND_NS), MODEL_LATE);
    model_gate_await(&test->model, 1, 2);
    model_gate_await(&test->model, 2, 1);
    model_gate_await(&test->model, 3, 1);
    model_gate_open(&test->model, 3);
    case_await_fetches(test, 3);
    model_gate_open(&test->model, 2);
    case_await_fetches(test, 4);
    model_gate_open(&test->model, 1);
    int64_t index;
    CHECK_INT(case_take_failure(test, 0, &index), FL_ERROR_DATA);
    CHECK_INT(index, 1);
    CHECK_INT(test->engine.orders[0].computed[0], 1);
    CHECK_INT(test->engine.orders[0].computed[3], 0);
    CHECK_INT(model_drain(&test->engine, 0), 0);
    case_finish(test);
}

int main(void)
{
    test_huge_file_behind_a_full_read_ahead();
    test_paused_run_and_a_young_one_without_share();
    test_head_above_the_limit_holds_one_sample();
    test_files_are_charged_by_their_real_size();
    test_burst_reaches_all_threads();
    test_all_reading_threads_stuck();
    test_one_reading_thread_stuck();
    test_slow_sample_in_order();
    test_slow_sample_out_of_order();
    test_user_keeps_every_batch_beyond_close();
    test_batches_dropped_on_another_thread();
    test_waiting_head_before_an_older_run();
    test_two_waiting_heads_in_turns();
    test_prestarted_run_is_cancelled_unseen();
    test_prestarted_run_goes_on();
    test_finished_run_gives_its_share_back();
    test_cancelled_run_gives_its_share_to_others();
    test_error_does_not_depend_on_timing();
    return 0;
}
