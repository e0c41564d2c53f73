// SPDX-License-Identifier: MIT
#include "model_program.h"

#include "base/memory.h"
#include "base/sync.h"
#include "check.h"

#include <sched.h>
#include <time.h>

static _Thread_local bool is_consumer_thread;

void model_set_consumer(bool is_consumer)
{
    is_consumer_thread = is_consumer;
}

// splitmix64's finisher over both words.
uint64_t model_hash(uint64_t a, uint64_t b)
{
    uint64_t z = a * 0x9E3779B97F4A7C15u + b + 0x632BE59BD9B4E019u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

void model_pause(int32_t microseconds)
{
    CHECK(fl_locks_held() == 0);
    if (microseconds < 0)
        sched_yield();
    if (microseconds <= 0)
        return;
    struct timespec time = {.tv_sec = microseconds / 1000000,
                            .tv_nsec = microseconds % 1000000 * 1000L};
    nanosleep(&time, NULL);
}

// ---- Gates.

static void gate_pass(model_context *model, int32_t number)
{
    if (number == 0)
        return;
    model_gate *gate = &model->gates[number - 1];
    pthread_mutex_lock(&gate->mutex);
    gate->inside++;
    pthread_cond_broadcast(&gate->changed);
    while (!gate->is_open)
        pthread_cond_wait(&gate->changed, &gate->mutex);
    gate->inside--;
    pthread_mutex_unlock(&gate->mutex);
}

static void gate_set(model_context *model, int32_t number, bool is_open)
{
    model_gate *gate = &model->gates[number - 1];
    pthread_mutex_lock(&gate->mutex);
    gate->is_open = is_open;
    pthread_cond_broadcast(&gate->changed);
    pthread_mutex_unlock(&gate->mutex);
}

void model_gate_open(model_context *model, int32_t number)
{
    gate_set(model, number, true);
}

void model_gate_close(model_context *model, int32_t number)
{
    gate_set(model, number, false);
}

void model_gate_await(model_context *model, int32_t number, int32_t inside)
{
    model_gate *gate = &model->gates[number - 1];
    pthread_mutex_lock(&gate->mutex);
    while (gate->inside < inside)
        pthread_cond_wait(&gate->changed, &gate->mutex);
    pthread_mutex_unlock(&gate->mutex);
}

int32_t model_gate_inside(model_context *model, int32_t number)
{
    model_gate *gate = &model->gates[number - 1];
    pthread_mutex_lock(&gate->mutex);
    int32_t inside = gate->inside;
    pthread_mutex_unlock(&gate->mutex);
    return inside;
}

// ---- What a sample looks like.

static uint8_t pattern(int64_t index, size_t at)
{
    return (uint8_t)(model_hash((uint64_t)index, 1) + at * 7);
}

static void fill(uint8_t *bytes, size_t size, int64_t index)
{
    for (size_t i = 0; i < size; i++)
        bytes[i] = pattern(index, i);
}

static void check_filled(const uint8_t *bytes, size_t size, int64_t index)
{
    for (size_t i = 0; i < size; i++)
        CHECK_INT(bytes[i], pattern(index, i));
}

// Files may be large without costing time: only their ends are written.
enum { FILE_END = 16 };

static size_t end_size(size_t size)
{
    return size < FILE_END ? size : FILE_END;
}

static void note_bytes(model_context *model, int64_t bytes)
{
    int64_t alive = atomic_fetch_add(&model->bytes_alive, bytes) + bytes;
    int64_t peak = atomic_load(&model->bytes_peak);
    while (alive > peak &&
           !atomic_compare_exchange_weak(&model->bytes_peak, &peak, alive))
        ;
}

static void release_bytes(fl_buffer *buffer)
{
    note_bytes(buffer->owner, -(int64_t)buffer->size);
    fl_free(buffer); // as fl_buffer_create's own: header and bytes are one block
}

static fl_status make_bytes(model_context *model, size_t size, int64_t index,
                            fl_buffer **out, fl_error *error)
{
    fl_status status = fl_buffer_create(size, out, error);
    if (status != FL_OK)
        return status;
    (*out)->size = size;
    (*out)->owner = model;
    (*out)->release = release_bytes;
    note_bytes(model, (int64_t)size);
    fill((*out)->data, end_size(size), index);
    return FL_OK;
}

static void read_rules(const model_context *model, int64_t index, model_sample *out)
{
    *out = (model_sample){0};
    model->behave(model, index / MODEL_RUN_STRIDE, index % MODEL_RUN_STRIDE, out);
}

// The vtable's contexts are const; counting in them is the fake's own business.
static model_context *model_of(const void *context)
{
    return (model_context *)(uintptr_t)context;
}

// ---- The stages.

static fl_status admit(const void *context, void *run_context, int64_t number,
                       int32_t *rows, fl_error *error)
{
    model_run *run = run_context;
    CHECK(run->model == model_of(context));
    CHECK(fl_locks_held() == 0 && is_consumer_thread);
    CHECK(number == run->admitted || number == run->admitted - 1); // again: no memory
    gate_pass(run->model, run->admit_gate);
    if (atomic_fetch_sub(&run->admit_failures, 1) > 0)
        return fl_error_set(error, FL_ERROR_PYTHON, "the sampler failed");
    atomic_store(&run->admit_failures, 0);
    if (number >= run->batches)
        return FL_END;
    *rows = model_run_rows(run, number);
    run->admitted = number + 1;
    return FL_OK;
}

static fl_status plan(const void *context, void *run_context, fl_batch_view *batch,
                      fl_error *error)
{
    model_context *model = model_of(context);
    const model_run *run = run_context;
    CHECK(fl_locks_held() == 0);
    gate_pass(model, model->plan_gate);
    int64_t base = run->id * MODEL_RUN_STRIDE + batch->number * model->rows;
    if (model->plan_fails && model->plan_fails(model, run->id, batch->number)) {
        fl_error_set(error, FL_ERROR_ARGUMENT, "the plan failed");
        error->index = base;
        error->offset = MODEL_PLAN_MARK;
        return FL_ERROR_ARGUMENT;
    }
    for (int32_t row = 0; row < batch->rows; row++) {
        fl_sample *sample = &batch->samples[row];
        CHECK_INT(sample->row, row);
        sample->position = sample->random_position = base + row;
        sample->index = base + row;
        sample->is_valid = true;
    }
    return FL_OK;
}

static fl_status fetch(const void *context, fl_sample *sample, const fl_cancel *cancel,
                       fl_error *error)
{
    model_context *model = model_of(context);
    model_sample rules;
    read_rules(model, sample->index, &rules);
    CHECK(!sample->bytes && cancel && fl_locks_held() == 0);
    model_pause(rules.fetch_pause);
    gate_pass(model, rules.fetch_gate);
    if (rules.fetch_fails)
        return fl_error_set(error, FL_ERROR_IO, "the file cannot be read");
    return make_bytes(model, rules.file_size, sample->index, &sample->bytes, error);
}

static void write_fixed(const model_context *model, fl_batch_view *batch,
                        const fl_sample *sample)
{
    for (int32_t i = 0; i < model->layout.field_count; i++) {
        const fl_field_layout *field = &model->layout.fields[i];
        if (!field->is_late)
            fill(batch->memory + field->offset + field->row_size * (size_t)sample->row,
                 field->row_size, sample->index);
    }
}

static fl_status write_late(const model_context *model, fl_batch_view *batch,
                            const fl_sample *sample, const model_sample *rules,
                            fl_error *error)
{
    for (int32_t slot = 0; slot < model->late_count; slot++) {
        fl_part *part = &batch->parts[sample->row * model->late_count + slot];
        CHECK(!part->data && part->size == 0);
        fl_status status = fl_buffer_create(rules->late_size[slot], &part->data, error);
        if (status != FL_OK)
            return status;
        part->size = part->data->size = rules->late_size[slot];
        fill(part->data->data, part->size, sample->index);
    }
    return FL_OK;
}

static fl_status compute(const void *context, void *run_context, void *worker,
                         fl_batch_view *batch, fl_sample *sample, size_t scratch_limit,
                         const fl_cancel *cancel, fl_error *error)
{
    model_context *model = model_of(context);
    model_run *run = run_context;
    model_sample rules;
    read_rules(model, sample->index, &rules);
    CHECK(cancel && fl_locks_held() == 0);
    CHECK_INT(atomic_exchange((_Atomic int32_t *)worker, 1), 0); // one thread's own
    int64_t step = atomic_fetch_add(&model->trace_count, 1);
    if (step < MODEL_TRACE)
        atomic_store(&model->trace[step], sample->index);
    if (model->has_fetch) {
        CHECK(sample->bytes && sample->bytes->size == rules.file_size);
        check_filled(sample->bytes->data, end_size(rules.file_size), sample->index);
    }
    bool is_oversize = rules.needs_scratch && scratch_limit == SIZE_MAX;
    if (is_oversize)
        CHECK_INT(atomic_fetch_add(&model->oversize_running, 1), 0);
    model_pause(rules.compute_pause);
    gate_pass(model, rules.compute_gate);
    if (is_oversize)
        atomic_fetch_sub(&model->oversize_running, 1);

    fl_status status = FL_OK;
    if (rules.needs_python && !sample->pixels_tried) {
        status = FL_NEEDS_PYTHON;
    } else if (rules.needs_scratch && !is_oversize) {
        sample->scratch_need = 2 * scratch_limit;
        status = FL_NEEDS_SCRATCH;
    } else {
        if (rules.needs_python)
            check_filled(sample->pixels->data, end_size(sample->pixels->size),
                         sample->index);
        status = rules.compute_fails
                     ? fl_error_set(error, FL_ERROR_DATA, "the picture is broken")
                     : write_late(model, batch, sample, &rules, error);
        if (status == FL_OK) {
            write_fixed(model, batch, sample);
            atomic_fetch_add(&run->computed[sample->index % MODEL_RUN_STRIDE], 1);
        }
    }
    atomic_store((_Atomic int32_t *)worker, 0);
    return status;
}

fl_status model_python_step(model_context *model, fl_run *run, model_run *order,
                            fl_sample *sample, fl_error *error)
{
    model_sample rules;
    read_rules(model, sample->index, &rules);
    CHECK(rules.needs_python && !sample->pixels_tried && !sample->pixels);
    model_pause(rules.python_pause);
    gate_pass(model, rules.python_gate);
    if (rules.cancels_run) {
        atomic_store(&order->may_close, true);
        fl_run_cancel(run);
    }
    fl_status status = rules.python_fails
                           ? fl_error_set(error, FL_ERROR_PYTHON, "the callable raised")
                           : make_bytes(model, rules.file_size / 2 + 1, sample->index,
                                        &sample->pixels, error);
    sample->pixel_width = sample->pixel_height = 1;
    return status;
}

static fl_status worker_create(const void *context, void **worker, fl_error *error)
{
    model_context *model = model_of(context);
    CHECK(fl_locks_held() == 0);
    fl_buffer *buffer = NULL; // counted by fl_memory_live, may fail as any allocation
    fl_status status =
        fl_buffer_create(sizeof(fl_buffer *) + 2 * sizeof(int32_t), &buffer, error);
    if (status != FL_OK)
        return status;
    atomic_fetch_add(&model->workers, 1);
    buffer->owner = model;
    *(_Atomic int32_t *)(void *)buffer->data = 0;
    memcpy(buffer->data + 8, &buffer, sizeof(buffer));
    *worker = buffer->data;
    return FL_OK;
}

static void worker_destroy(void *worker)
{
    fl_buffer *buffer;
    memcpy(&buffer, (uint8_t *)worker + 8, sizeof(buffer));
    atomic_fetch_sub(&((model_context *)buffer->owner)->workers, 1);
    fl_buffer_unref(&buffer);
}

static void describe(const void *context, const fl_sample *sample, fl_error *error)
{
    (void)context;
    CHECK(fl_locks_held() == 0);
    fl_error_add_index(error, sample->index);
}

static void run_release(void *run_context)
{
    model_run *run = run_context;
    CHECK(fl_locks_held() == 0);
    CHECK_INT(atomic_fetch_add(&run->releases, 1), 0);
}

static void release(void *context)
{
    CHECK(fl_locks_held() == 0);
    CHECK_INT(atomic_fetch_add(&model_of(context)->releases, 1), 0);
}

static const fl_program_vtable with_fetch = {
    .admit = admit,
    .plan = plan,
    .fetch = fetch,
    .compute = compute,
    .worker_create = worker_create,
    .worker_destroy = worker_destroy,
    .describe = describe,
    .run_release = run_release,
    .release = release,
};

static const fl_program_vtable without_fetch = {
    .admit = admit,
    .plan = plan,
    .compute = compute,
    .worker_create = worker_create,
    .worker_destroy = worker_destroy,
    .describe = describe,
    .run_release = run_release,
    .release = release,
};

fl_program model_program(model_context *model)
{
    return (fl_program){
        .vtable = model->has_fetch ? &with_fetch : &without_fetch,
        .context = model,
        .layout = &model->layout,
        .range_rows = model->range_rows,
        .scratch_plan = 1000,
    };
}

void model_init(model_context *model)
{
    fl_layout *layout = &model->layout;
    layout->rows = model->rows;
    layout->field_count = 0;
    static const char *const late_names[MODEL_MAX_LATE] = {"text", "tokens"};
    if (model->has_fixed) {
        layout->fields[layout->field_count++] = (fl_field_layout){
            .name = "image",
            .dtype = FL_UINT8,
            .row = fl_row_shape_contiguous(2, (const int64_t[]){3, 11})};
        layout->fields[layout->field_count++] = (fl_field_layout){
            .name = "label", .dtype = FL_INT64, .row = fl_row_shape_contiguous(0, NULL)};
    }
    for (int32_t i = 0; i < model->late_count; i++)
        layout->fields[layout->field_count++] =
            (fl_field_layout){.name = late_names[i], .dtype = FL_UINT8, .is_late = true};
    CHECK(fl_layout_plan(layout, NULL) == FL_OK);
    CHECK_INT(layout->late_count, model->late_count);
    for (int32_t i = 0; i < MODEL_GATES; i++) {
        pthread_mutex_init(&model->gates[i].mutex, NULL);
        pthread_cond_init(&model->gates[i].changed, NULL);
    }
}

void model_deinit(model_context *model)
{
    for (int32_t i = 0; i < MODEL_GATES; i++) {
        pthread_mutex_destroy(&model->gates[i].mutex);
        pthread_cond_destroy(&model->gates[i].changed);
    }
}

// ---- Runs and what they must deliver.

void model_run_init(model_run *run, model_context *model, int64_t id, int64_t batches,
                    int32_t last_rows)
{
    *run =
        (model_run){.model = model, .id = id, .batches = batches, .last_rows = last_rows};
    run->computed = calloc((size_t)(batches * model->rows + 1), sizeof(*run->computed));
    run->delivered = calloc((size_t)(batches + 1), sizeof(*run->delivered));
    CHECK(run->computed && run->delivered);
}

void model_run_deinit(model_run *run)
{
    free((void *)(uintptr_t)run->computed);
    free((void *)(uintptr_t)run->delivered);
}

int32_t model_run_rows(const model_run *run, int64_t number)
{
    return number == run->batches - 1 ? run->last_rows : run->model->rows;
}

fl_status model_run_expect(const model_run *run, int64_t number, int64_t *index)
{
    const model_context *model = run->model;
    int64_t base = run->id * MODEL_RUN_STRIDE + number * model->rows;
    *index = base;
    if (model->plan_fails && model->plan_fails(model, run->id, number))
        return FL_ERROR_ARGUMENT;
    for (int32_t row = 0; row < model_run_rows(run, number); row++) {
        model_sample rules;
        *index = base + row;
        read_rules(model, *index, &rules);
        if (model->has_fetch && rules.fetch_fails)
            return FL_ERROR_IO;
        if (rules.needs_python && rules.python_fails)
            return FL_ERROR_PYTHON;
        if (rules.compute_fails)
            return FL_ERROR_DATA;
    }
    *index = -1;
    return FL_OK;
}

static void check_row(const model_context *model, const fl_batch *batch,
                      const fl_sample *sample)
{
    const fl_batch_view *view = fl_batch_read(batch);
    model_sample rules;
    read_rules(model, sample->index, &rules);
    for (int32_t i = 0; i < model->layout.field_count; i++) {
        const fl_field_layout *field = &model->layout.fields[i];
        if (!field->is_late) {
            check_filled(fl_batch_slab(batch)->memory + field->offset +
                             field->row_size * (size_t)sample->row,
                         field->row_size, sample->index);
            continue;
        }
        const fl_part *part =
            &view->parts[sample->row * model->late_count + field->late_slot];
        CHECK(!part->data);
        CHECK_INT(part->size, rules.late_size[field->late_slot]);
        CHECK(part->offset + part->size <= fl_batch_late_slab(batch)->size);
        check_filled(fl_batch_late_slab(batch)->memory + part->offset, part->size,
                     sample->index);
    }
}

static uint64_t sum_slab(const fl_slab *slab, uint64_t sum)
{
    for (size_t i = 0; slab && i < slab->size; i += 8) {
        uint64_t word;
        memcpy(&word, slab->memory + i, 8);
        sum = (sum ^ word) * 0x100000001B3u;
    }
    return sum;
}

uint64_t model_checksum(const fl_batch *batch)
{
    return sum_slab(fl_batch_late_slab(batch), sum_slab(fl_batch_slab(batch), 1));
}

uint64_t model_check_batch(const model_run *run, const fl_batch *batch)
{
    const model_context *model = run->model;
    const fl_batch_view *view = fl_batch_read(batch);
    int64_t number = fl_batch_number(batch), index;
    CHECK(number >= 0 && number < run->batches);
    CHECK_INT(model_run_expect(run, number, &index), FL_OK);
    CHECK_INT(view->rows, model_run_rows(run, number));
    CHECK_INT(fl_batch_slab(batch) != NULL, model->has_fixed);
    CHECK_INT(fl_batch_late_slab(batch) != NULL, model->late_count > 0);
    for (int32_t row = 0; row < view->rows; row++) {
        const fl_sample *sample = &view->samples[row];
        int64_t position = number * model->rows + row;
        CHECK_INT(sample->index, run->id * MODEL_RUN_STRIDE + position);
        CHECK_INT(sample->row, row);
        CHECK(!sample->bytes && !sample->pixels);
        CHECK_INT(run->computed[position], 1);
        check_row(model, batch, sample);
    }
    return model_checksum(batch);
}

// ---- Slabs.

static fl_status allocate(void *context, size_t size, void **memory, void **handle,
                          fl_error *error)
{
    model_memory *source = context;
    CHECK(fl_locks_held() == 0);
    CHECK(source->is_plain || is_consumer_thread);
    model_pause(source->pause);
    gate_pass(source->model, source->gate);
    uint64_t draw = model_hash(atomic_fetch_add(&source->draws, 1), 2) & 0xFFFF;
    bool is_refused = atomic_load(&source->fail_next) > 0 &&
                      atomic_fetch_sub(&source->fail_next, 1) > 0;
    if (is_refused || draw < source->fail_chance) {
        atomic_fetch_add(&source->refused, 1);
        return fl_error_set(error, FL_ERROR_NO_MEMORY, "no memory for a batch");
    }
    *memory = aligned_alloc(64, size);
    CHECK(*memory);
    memset(*memory, 0xA5, size);
    *handle = source;
    atomic_fetch_add(&source->out, 1);
    atomic_fetch_add(&source->made, 1);
    return FL_OK;
}

static void give(void *context, void *memory, size_t size, void *handle)
{
    model_memory *source = context;
    CHECK(fl_locks_held() == 0);
    CHECK(handle == source);
    memset(memory, 0xDD, size);
    free(memory);
    atomic_fetch_sub(&source->out, 1);
}

static void destroy(void *context)
{
    model_memory *source = context;
    CHECK_INT(source->out, 0);
    CHECK_INT(atomic_fetch_add(&source->destroyed, 1), 0);
}

fl_allocator model_allocator(model_memory *memory)
{
    return (fl_allocator){.name = "model",
                          .is_plain = memory->is_plain,
                          .is_reusable = memory->is_reusable,
                          .allocate = allocate,
                          .give = give,
                          .destroy = destroy,
                          .context = memory};
}
