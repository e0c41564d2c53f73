// SPDX-License-Identifier: MIT
// Dispatch alone, without threads: tasks of several runs are pushed, taken and settled by
// hand in random order. A logical clock of dispatches shows that the head of a waiting
// consumer is never starved, that each run keeps its order, and that bytes keep to the
// limit.
#include "check.h"
#include "model_cases.h"
#include "pipeline/dispatch.h"

enum { ROUNDS = 60, STEPS = 1500, RUNS = 3, ROWS = 4, BUSY = 4, MEAN = 131072 };

typedef struct simulation_state {
    model_case *test;
    uint64_t seed, draws;
    fl_task *busy[FL_LANE_COUNT][BUSY]; // taken, not settled
    int32_t busy_count[FL_LANE_COUNT];
    int64_t entered[RUNS];               // batches
    int32_t left[RUNS][STEPS];           // samples of a batch that are not done
    int64_t passed[RUNS][FL_LANE_COUNT]; // dispatches since its waiting head could go
} simulation_state;

static int64_t draw(simulation_state *self, int64_t bound)
{
    return (int64_t)(model_hash(self->seed, self->draws++) % (uint64_t)bound);
}

static fl_engine *engine_of(const simulation_state *self)
{
    return self->test->engine.engine;
}

static fl_run *run_of(const simulation_state *self, int64_t run)
{
    return self->test->engine.runs[run];
}

static int32_t index_of(const simulation_state *self, const fl_run *run)
{
    for (int32_t i = 0; i < RUNS; i++)
        if (run_of(self, i) == run)
            return i;
    CHECK(false);
    return -1;
}

// A batch enters: its fetches are queued, as its plan would do.
static void enter(simulation_state *self, int32_t run)
{
    fl_engine *engine = engine_of(self);
    fl_batch *batch = NULL;
    CHECK(fl_batch_create(run_of(self, run), self->entered[run], ROWS, &batch, NULL) ==
          FL_OK);
    fl_run *mine = run_of(self, run);
    batch->previous = mine->last; // the window frees it
    *(mine->last ? &mine->last->next : &mine->first) = batch;
    mine->last = batch;
    fl_mutex_lock(&engine->lock);
    fl_dispatch_list_run_locked(engine, mine);
    for (int32_t row = 0; row < ROWS; row++) {
        fl_task *task = &batch->tasks[row];
        task->kind = FL_TASK_FETCH;
        task->queue = FL_QUEUE_FETCH;
        task->count = 1;
        fl_dispatch_push_locked(engine, mine, task);
    }
    fl_mutex_unlock(&engine->lock);
    self->left[run][self->entered[run]++] = ROWS;
}

// Could the run's head go on this lane? By the rules, without dispatch's own code.
static bool head_can_go(const simulation_state *self, int32_t run, fl_lane lane)
{
    const fl_engine *engine = engine_of(self);
    const fl_run *mine = run_of(self, run);
    const fl_task *task = mine->queues[FL_QUEUE_FETCH].top;
    if (lane == FL_LANE_COMPUTE) {
        const fl_task *oversize = mine->queues[FL_QUEUE_OVERSIZE].top;
        task = mine->queues[FL_QUEUE_COMPUTE].top;
        if (oversize && !engine->permit_taken && oversize->number == mine->head)
            task = oversize;
    }
    if (mine->waiters == 0 || !task || task->number != mine->head)
        return false;
    return lane == FL_LANE_COMPUTE || task->batch->held == 0 ||
           mine->bytes_used + engine->mean_bytes <=
               engine->options.fetch_bytes / engine->run_count;
}

static void check_clock(simulation_state *self, fl_lane lane, const bool *could_go,
                        const fl_task *task)
{
    int32_t taken = index_of(self, task->batch->run);
    bool is_any_head = false;
    for (int32_t run = 0; run < RUNS; run++) {
        is_any_head |= could_go[run];
        if (could_go[run] && run != taken)
            CHECK(++self->passed[run][lane] < RUNS); // the others once each
        else
            self->passed[run][lane] = 0;
    }
    // While a head waits, nothing but such heads goes.
    CHECK(!is_any_head || (could_go[taken] && task->number == run_of(self, taken)->head));
}

static void take(simulation_state *self, fl_lane lane)
{
    fl_engine *engine = engine_of(self);
    bool could_go[RUNS];
    if (self->busy_count[lane] == BUSY)
        return;
    fl_mutex_lock(&engine->lock);
    bool can_any = false;
    for (int32_t run = 0; run < RUNS; run++)
        can_any |= could_go[run] = head_can_go(self, run, lane);
    fl_task *task = fl_dispatch_take_locked(engine, lane);
    fl_mutex_unlock(&engine->lock);
    CHECK(task || !can_any);
    if (!task)
        return;
    bool is_oversize = task->queue == FL_QUEUE_OVERSIZE;
    check_clock(self, lane, could_go, task);
    for (int32_t i = 0; i < self->busy_count[lane]; i++)
        CHECK(!is_oversize || !self->busy[lane][i]->has_permit);
    self->busy[lane][self->busy_count[lane]++] = task;
}

static void settle(simulation_state *self, fl_lane lane)
{
    fl_engine *engine = engine_of(self);
    if (self->busy_count[lane] == 0)
        return;
    int64_t which = draw(self, self->busy_count[lane]);
    fl_task *task = self->busy[lane][which];
    self->busy[lane][which] = self->busy[lane][--self->busy_count[lane]];
    fl_batch *batch = task->batch;
    fl_run *run = batch->run;
    fl_outcome outcome = {.task = task, .fetched = -1};
    fl_calls calls = {0};
    if (lane == FL_LANE_FETCH) {
        outcome.fetched = draw(self, 2 * MEAN);
        outcome.more_bytes = outcome.fetched - task->charged;
    }
    bool is_oversize = lane == FL_LANE_COMPUTE && !task->has_permit && draw(self, 8) == 0;
    outcome.keeps_charge = lane == FL_LANE_FETCH || is_oversize;
    if (outcome.keeps_charge) {
        task->kind = FL_TASK_COMPUTE;
        task->queue = is_oversize ? FL_QUEUE_OVERSIZE : FL_QUEUE_COMPUTE;
        task->sibling = NULL;
        outcome.pushed = task;
    } else {
        self->left[index_of(self, run)][task->number]--;
    }
    fl_mutex_lock(&engine->lock);
    fl_dispatch_settle_locked(engine, &outcome, &calls);
    fl_mutex_unlock(&engine->lock);
    CHECK(calls.start[FL_LANE_FETCH] == 0); // no thread may be started here
    fl_batch_unref(batch);
    fl_run_unref(&run);
}

// Done batches are popped from the front.
static void pop(simulation_state *self, int32_t run)
{
    fl_engine *engine = engine_of(self);
    fl_run *mine = run_of(self, run);
    fl_mutex_lock(&engine->lock);
    while (mine->head < self->entered[run] && self->left[run][mine->head] == 0)
        mine->head++;
    fl_mutex_unlock(&engine->lock);
}

static void step(simulation_state *self)
{
    int32_t run = (int32_t)draw(self, RUNS);
    fl_engine *engine = engine_of(self);
    switch (draw(self, 8)) {
    case 0:
        if (self->entered[run] - run_of(self, run)->head < 4)
            enter(self, run);
        break;
    case 1:
        fl_mutex_lock(&engine->lock);
        run_of(self, run)->waiters = (int32_t)draw(self, 2);
        fl_mutex_unlock(&engine->lock);
        break;
    case 2:
    case 3:
        pop(self, run);
        settle(self, draw(self, 2) ? FL_LANE_FETCH : FL_LANE_COMPUTE);
        break;
    default:
        take(self, draw(self, 2) ? FL_LANE_FETCH : FL_LANE_COMPUTE);
        break;
    }
    // A file a thread beyond the limit, and a head's of each run.
    int64_t bytes = fl_counter_read(&fl_engine_counters(engine)->block->fetched_bytes);
    CHECK(bytes >= 0 && bytes <= engine->options.fetch_bytes + (BUSY + RUNS) * 2 * MEAN);
}

static bool is_over(const simulation_state *self)
{
    for (int32_t run = 0; run < RUNS; run++)
        if (run_of(self, run)->head < self->entered[run])
            return false;
    return true;
}

static void simulate(uint64_t seed)
{
    simulation_state *self = calloc(1, sizeof(*self));
    CHECK(self);
    self->seed = seed;
    self->test = case_create(__func__);
    fl_engine_options options = model_options();
    options.compute_threads = options.fetch_threads = options.python_threads = 0;
    options.fetch_bytes = draw(self, 2) ? 1 + draw(self, 2 * MEAN) : RUNS * 4 * MEAN;
    case_start(self->test, &options);
    for (int32_t run = 0; run < RUNS; run++)
        model_engine_add_run(&self->test->engine, 0, 1);
    for (int32_t i = 0; i < STEPS; i++)
        step(self);
    // With no new batches all that is left runs down: nothing is stuck behind a budget.
    for (int32_t i = 0; !is_over(self); i++) {
        CHECK(i < 100 * STEPS);
        take(self, i & 1 ? FL_LANE_FETCH : FL_LANE_COMPUTE);
        settle(self, i & 2 ? FL_LANE_FETCH : FL_LANE_COMPUTE);
        pop(self, i % RUNS);
    }
    case_finish(self->test);
    free(self);
}

int main(void)
{
    for (uint64_t seed = 1; seed <= ROUNDS; seed++)
        simulate(seed);
    return 0;
}
