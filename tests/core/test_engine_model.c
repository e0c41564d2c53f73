// SPDX-License-Identifier: MIT
// The engine under random schedules: fake stages, several runs and consumers, cancel and
// close in the middle, failing memory and threads. A schedule follows from its seed:
//   test_engine_model [first_seed] [count]
// After each: every batch came once, in order, right or as the error that a serial loop
// names; all slabs, memory, threads and counts are back.
#include "model_engine.h"

#include "base/clock.h"
#include "base/memory.h"
#include "base/thread.h"
#include "check.h"

enum { DEFAULT_COUNT = 3000, MAX_CONSUMERS = 3, MAX_BATCHES = 10 };

// ---- A schedule, drawn from its seed.

typedef struct draw_state {
    uint64_t seed, count;
} draw_state;

static int64_t draw(draw_state *draws, int64_t low, int64_t high)
{
    uint64_t value = model_hash(draws->seed, draws->count++);
    return low + (int64_t)(value % (uint64_t)(high - low + 1));
}

static bool chance(draw_state *draws, int64_t percent)
{
    return draw(draws, 1, 100) <= percent;
}

static int64_t pick(draw_state *draws, const int64_t *values, int32_t count)
{
    return values[draw(draws, 0, count - 1)];
}

// Chances in percent, and sizes.
typedef struct rule_set {
    int64_t pause, long_pause, fetch_fails, compute_fails, plan_fails;
    int64_t needs_python, python_fails, needs_scratch, cancels_run, stops_engine;
    int64_t file_size, huge_file, late_size;
} rule_set;

typedef struct model_schedule model_schedule;

typedef struct consumer_state {
    model_schedule *schedule;
    int32_t run, id;
    pthread_t thread;
} consumer_state;

typedef struct kept_batch {
    fl_batch *batch;
    uint64_t checksum;
    struct kept_batch *next;
} kept_batch;

struct model_schedule {
    uint64_t seed;
    model_context model;
    model_engine engine;
    fl_engine_options options;
    rule_set rules;

    int32_t run_count, consumers_a_run;
    consumer_state consumers[MODEL_MAX_RUNS * MAX_CONSUMERS];
    bool is_chained;                      // each run feeds the next one
    int64_t breaks_after[MODEL_MAX_RUNS]; // batches; -1: goes to the end
    bool starts[MODEL_MAX_RUNS];
    int64_t pause, short_deadline, keep, refill, hand_over; // percent
    int32_t stoppers;
    int64_t stops_after; // batches of all runs together
    bool has_faults;

    _Atomic int64_t received; // by all
    _Atomic int64_t received_of[MODEL_MAX_RUNS];
    _Atomic int32_t consumers_left;
    pthread_mutex_t mutex; // guards the lists
    kept_batch *held;      // till the end
    kept_batch *handed;    // to the thread that frees
    int64_t held_count;
};

static bool has(const rule_set *rules, int64_t percent, uint64_t key, uint64_t what)
{
    (void)rules;
    return (int64_t)(model_hash(key, what) % 1000) < percent * 10;
}

static int32_t draw_pause(const rule_set *rules, uint64_t key, uint64_t what)
{
    if (has(rules, rules->long_pause, key, what))
        return (int32_t)(model_hash(key, what + 1) % 1500);
    if (has(rules, rules->pause, key, what + 2))
        return (int32_t)(model_hash(key, what + 3) % 40) - 1;
    return 0;
}

static void behave(const model_context *model, int64_t run, int64_t position,
                   model_sample *out)
{
    const rule_set *rules = model->user;
    uint64_t key = model_hash(model->seed, (uint64_t)(run * MODEL_RUN_STRIDE + position));
    bool is_huge = has(rules, rules->huge_file, key, 10);
    out->file_size = model_hash(key, 11) % (uint64_t)(rules->file_size + 1);
    if (has(rules, 10, key, 12))
        out->file_size = 0;
    if (is_huge)
        out->file_size = 4 << 20;
    for (uint64_t i = 0; i < MODEL_MAX_LATE; i++)
        out->late_size[i] = has(rules, 10, key, 20 + i)
                                ? 0
                                : model_hash(key, 25 + i) % (uint64_t)rules->late_size;
    out->fetch_pause = draw_pause(rules, key, 30);
    out->compute_pause = draw_pause(rules, key, 40);
    out->python_pause = draw_pause(rules, key, 50);
    out->fetch_fails = has(rules, rules->fetch_fails, key, 60);
    out->compute_fails = has(rules, rules->compute_fails, key, 61);
    out->needs_python = has(rules, rules->needs_python, key, 62);
    out->python_fails = has(rules, rules->python_fails, key, 63);
    out->needs_scratch = has(rules, rules->needs_scratch, key, 64);
    out->cancels_run = has(rules, rules->cancels_run, key, 65);
    out->stops_engine = has(rules, rules->stops_engine, key, 66);
}

static bool plan_fails(const model_context *model, int64_t run, int64_t number)
{
    const rule_set *rules = model->user;
    uint64_t key = model_hash(model->seed, (uint64_t)(run * MAX_BATCHES + number));
    return has(rules, rules->plan_fails, key, 70);
}

static void draw_rules(model_schedule *schedule, draw_state *draws)
{
    bool is_quick = chance(draws, 40), may_fail = chance(draws, 50);
    bool has_python = chance(draws, 35), has_scratch = chance(draws, 35);
    schedule->rules = (rule_set){
        .pause = is_quick ? draw(draws, 0, 5) : draw(draws, 0, 60),
        .long_pause = is_quick ? 0 : draw(draws, 0, 3),
        .fetch_fails = may_fail ? draw(draws, 0, 10) : 0,
        .compute_fails = may_fail ? draw(draws, 0, 10) : 0,
        .plan_fails = may_fail ? draw(draws, 0, 10) : 0,
        .needs_python = has_python ? draw(draws, 1, 50) : 0,
        .python_fails = may_fail ? draw(draws, 0, 30) : 0,
        .needs_scratch = has_scratch ? draw(draws, 1, 50) : 0,
        .cancels_run = chance(draws, 10) ? draw(draws, 1, 5) : 0,
        .stops_engine = chance(draws, 5) ? draw(draws, 1, 5) : 0,
        .file_size = pick(draws, (const int64_t[]){100, 20000, 200000}, 3),
        .huge_file = chance(draws, 20) ? draw(draws, 1, 20) : 0,
        .late_size = pick(draws, (const int64_t[]){1, 100, 3000}, 3),
    };
    model_context *model = &schedule->model;
    model->seed = schedule->seed;
    model->rows = (int32_t)draw(draws, 1, chance(draws, 20) ? 64 : 8);
    model->late_count = chance(draws, 50) ? (int32_t)draw(draws, 1, 2) : 0;
    model->has_fixed = model->late_count == 0 || chance(draws, 70);
    model->has_fetch = chance(draws, 70);
    model->range_rows = model->has_fetch ? 1 : (int32_t)draw(draws, 1, 64);
    model->behave = behave;
    model->plan_fails = plan_fails;
    model->user = &schedule->rules;
}

static void draw_options(model_schedule *schedule, draw_state *draws)
{
    schedule->options = (fl_engine_options){
        .compute_threads = (int32_t)draw(draws, 1, 4),
        .fetch_threads = (int32_t)draw(draws, 1, 4),
        .python_threads = (int32_t)draw(draws, 1, 2),
        .window = (int32_t)draw(draws, 1, 8),
        .fetch_bytes =
            pick(draws, (const int64_t[]){1, 300000, 1000000, INT64_C(1) << 40}, 4),
        .late_bytes = pick(draws, (const int64_t[]){0, 1, 3000, INT64_C(1) << 40}, 4),
        .in_order = chance(draws, 70),
        .idle_exit_ns = chance(draws, 80) ? 3600 * FL_SECOND_NS : draw(draws, 0, 200000),
    };
    model_memory *memory = &schedule->engine.memory;
    memory->is_plain = chance(draws, 40);
    memory->is_reusable = chance(draws, 60);
    memory->pause = chance(draws, 20) ? (int32_t)draw(draws, 1, 100) : 0;
    memory->fail_chance = chance(draws, 15) ? (uint32_t)draw(draws, 1, 20000) : 0;
}

static void draw_actions(model_schedule *schedule, draw_state *draws)
{
    schedule->run_count = (int32_t)(chance(draws, 50) ? 1 : draw(draws, 2, 3));
    schedule->consumers_a_run =
        (int32_t)(chance(draws, 60) ? 1 : draw(draws, 2, MAX_CONSUMERS));
    schedule->is_chained = chance(draws, 30);
    for (int32_t run = 0; run < schedule->run_count; run++) {
        schedule->breaks_after[run] =
            chance(draws, 20) ? draw(draws, 0, MAX_BATCHES) : -1;
        schedule->starts[run] = run == 0 || chance(draws, 90);
    }
    schedule->pause = chance(draws, 30) ? draw(draws, 1, 50) : 0;
    schedule->short_deadline = chance(draws, 30) ? draw(draws, 1, 80) : 0;
    schedule->keep = chance(draws, 25) ? 100 : draw(draws, 0, 50);
    schedule->hand_over = draw(draws, 0, 100);
    schedule->refill = chance(draws, 70) ? 100 : draw(draws, 0, 100);
    schedule->stoppers = chance(draws, 20) ? (int32_t)draw(draws, 1, 2) : 0;
    schedule->stops_after = draw(draws, 0, 2 * MAX_BATCHES);
    schedule->has_faults = chance(draws, 15);
}

// ---- Batches that live on.

static void release_kept(kept_batch *kept)
{
    CHECK(model_checksum(kept->batch) == kept->checksum); // nobody wrote over it
    fl_batch_free(kept->batch);
    free(kept);
}

static void keep_batch(model_schedule *schedule, draw_state *draws, fl_batch *batch,
                       uint64_t checksum)
{
    kept_batch *mine = calloc(1, sizeof(*mine));
    CHECK(mine);
    *mine = (kept_batch){.batch = batch, .checksum = checksum};
    bool is_held = chance(draws, schedule->keep);
    if (!is_held && !chance(draws, schedule->hand_over)) {
        release_kept(mine);
        return;
    }
    pthread_mutex_lock(&schedule->mutex);
    kept_batch **list = is_held ? &schedule->held : &schedule->handed;
    mine->next = *list;
    *list = mine;
    schedule->held_count += is_held;
    pthread_mutex_unlock(&schedule->mutex);
}

static void release_list(model_schedule *schedule, kept_batch **list)
{
    pthread_mutex_lock(&schedule->mutex);
    kept_batch *first = *list;
    *list = NULL;
    pthread_mutex_unlock(&schedule->mutex);
    while (first) {
        kept_batch *next = first->next;
        release_kept(first);
        first = next;
    }
}

// Frees on a thread of its own what the consumers hand over.
static void *free_batches(void *argument)
{
    model_schedule *schedule = argument;
    while (atomic_load(&schedule->consumers_left) > 0) {
        release_list(schedule, &schedule->handed);
        model_pause(30);
    }
    release_list(schedule, &schedule->handed);
    return NULL;
}

// ---- Consumers and those who stop them.

static bool must_break(model_schedule *schedule, int32_t run)
{
    int64_t limit = schedule->breaks_after[run];
    return limit >= 0 && atomic_load(&schedule->received_of[run]) >= limit;
}

static void *consume(void *argument)
{
    consumer_state *self = argument;
    model_schedule *schedule = self->schedule;
    model_engine *engine = &schedule->engine;
    int32_t run = self->run;
    int32_t successor =
        schedule->is_chained && run + 1 < schedule->run_count ? run + 1 : -1;
    draw_state draws = {model_hash(schedule->seed, (uint64_t)(100 + self->id)), 0};
    int64_t last = -1, refusals = 0;
    for (;;) {
        if (must_break(schedule, run)) {
            atomic_store(&engine->orders[run].may_close, true);
            fl_run_cancel(engine->runs[run]);
        }
        fl_batch *batch = NULL;
        fl_error error = FL_ERROR_INIT;
        int64_t deadline = chance(&draws, schedule->short_deadline)
                               ? fl_clock_now() + draw(&draws, 0, 300000)
                               : 0;
        model_event event = model_next(engine, run, deadline, &batch, &error);
        fl_error_clear(&error);
        if (event == MODEL_END || event == MODEL_CLOSED)
            break;
        if (event == MODEL_REFUSED)
            CHECK(refusals++ < 100000);
        if (event == MODEL_BATCH || event == MODEL_FAILED) {
            atomic_fetch_add(&schedule->received, 1);
            atomic_fetch_add(&schedule->received_of[run], 1);
            if (chance(&draws, schedule->refill))
                model_refill(engine, run, successor);
        }
        if (event == MODEL_BATCH) {
            int64_t number = fl_batch_number(batch);
            CHECK(!schedule->options.in_order || number > last);
            last = number;
            keep_batch(schedule, &draws, batch,
                       model_check_batch(&engine->orders[run], batch));
        }
        if (chance(&draws, schedule->pause))
            model_pause((int32_t)draw(&draws, -1, 200));
    }
    atomic_fetch_sub(&schedule->consumers_left, 1);
    return NULL;
}

static void *stop(void *argument)
{
    model_schedule *schedule = argument;
    while (atomic_load(&schedule->received) < schedule->stops_after &&
           atomic_load(&schedule->consumers_left) > 0)
        model_pause(20);
    model_engine_stop(&schedule->engine);
    CHECK_INT(model_engine_close(&schedule->engine, model_patience_ns()), 0);
    return NULL;
}

static void start_thread(pthread_t *thread, void *(*run)(void *), void *argument)
{
    CHECK(pthread_create(thread, NULL, run, argument) == 0);
}

static void run_threads(model_schedule *schedule)
{
    pthread_t freeing, stopping[2];
    int32_t count = 0;
    for (int32_t run = 0; run < schedule->run_count; run++)
        for (int32_t i = 0; schedule->starts[run] && i < schedule->consumers_a_run; i++) {
            schedule->consumers[count] =
                (consumer_state){.schedule = schedule, .run = run, .id = count};
            count++;
        }
    schedule->consumers_left = count;
    for (int32_t i = 0; i < count; i++)
        start_thread(&schedule->consumers[i].thread, consume, &schedule->consumers[i]);
    start_thread(&freeing, free_batches, schedule);
    for (int32_t i = 0; i < schedule->stoppers; i++)
        start_thread(&stopping[i], stop, schedule);
    for (int32_t i = 0; i < count; i++)
        pthread_join(schedule->consumers[i].thread, NULL);
    pthread_join(freeing, NULL);
    for (int32_t i = 0; i < schedule->stoppers; i++)
        pthread_join(stopping[i], NULL);
}

// Granted fetches may pass the limit by what they were estimated too low: one file a
// reading thread and a compute thread, and the head's.
static void check_bytes(const model_schedule *schedule)
{
    const fl_engine_options *options = &schedule->options;
    int64_t largest = schedule->rules.huge_file ? 4 << 20 : schedule->rules.file_size;
    if (schedule->run_count > 1 || schedule->rules.needs_python ||
        schedule->breaks_after[0] >= 0 || schedule->stoppers)
        return;
    CHECK(schedule->model.bytes_peak <=
          options->fetch_bytes +
              largest * (options->fetch_threads + options->compute_threads + 1));
}

static void check_runs(const model_schedule *schedule)
{
    const model_engine *engine = &schedule->engine;
    for (int32_t run = 0; run < schedule->run_count; run++) {
        const model_run *order = &engine->orders[run];
        if (schedule->starts[run] && !order->may_close && !engine->may_close)
            model_check_complete(engine, run);
        if (!schedule->has_faults && !schedule->engine.memory.is_plain)
            CHECK_INT(order->unknown_errors, 0);
    }
}

static void set_faults(const model_schedule *schedule, bool is_on)
{
    draw_state draws = {schedule->seed, 1000};
    uint32_t memory = (uint32_t)draw(&draws, 100, 8000);
    uint32_t threads = (uint32_t)draw(&draws, 0, 40000);
    fl_memory_fail_randomly(is_on ? memory : 0, schedule->seed);
    fl_thread_fail_randomly(is_on ? threads : 0, schedule->seed);
}

static void run_schedule(uint64_t seed)
{
    model_schedule *schedule = calloc(1, sizeof(*schedule));
    CHECK(schedule);
    schedule->seed = seed;
    draw_state draws = {seed, 0};
    draw_rules(schedule, &draws);
    draw_options(schedule, &draws);
    draw_actions(schedule, &draws);
    pthread_mutex_init(&schedule->mutex, NULL);

    model_engine *engine = &schedule->engine;
    model_watch(engine, seed, "test_engine_model");
    model_engine_init(engine, &schedule->model, &schedule->options);
    for (int32_t run = 0; run < schedule->run_count; run++)
        model_engine_add_run(engine, draw(&draws, 0, MAX_BATCHES),
                             (int32_t)draw(&draws, 1, schedule->model.rows));
    if (schedule->has_faults) {
        engine->python_start_chance = (uint32_t)draw(&draws, 0, 40000);
        set_faults(schedule, true);
    }
    run_threads(schedule);
    set_faults(schedule, false);

    check_runs(schedule);
    check_bytes(schedule);
    // Half of the time the user's batches live longer than the engine.
    if (chance(&draws, 50)) {
        release_list(schedule, &schedule->held);
        model_engine_deinit(engine, 0);
    } else {
        int64_t slabs = schedule->held_count *
                        (schedule->model.has_fixed + (schedule->model.late_count > 0));
        model_engine_deinit(engine, slabs);
        release_list(schedule, &schedule->held);
        if (slabs > 0)
            model_engine_check_gone(engine);
    }
    model_unwatch();
    pthread_mutex_destroy(&schedule->mutex);
    free(schedule);
}

int main(int argc, char **argv)
{
    uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    uint64_t count = argc > 2 ? strtoull(argv[2], NULL, 10) : DEFAULT_COUNT;
    for (uint64_t seed = first; seed < first + count; seed++)
        run_schedule(seed);
    return 0;
}
