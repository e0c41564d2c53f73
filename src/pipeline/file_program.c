// SPDX-License-Identifier: MIT
#include "pipeline/file_program.h"

#include "base/memory.h"
#include "base/philox.h"
#include "data/buffer_pool.h"
#include "data/scratch.h"
#include "decode/decoder.h"
#include "fetch/local.h"
#include "stats/counters.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

enum {
    MAX_SCANS = 500,            // libjpeg-turbo's own tools refuse more
    FREE_FILE_BYTES = 32 << 20, // of fetched files, kept for the next ones
    LABEL_RANGE_ROWS = 64,      // rows a task when there is nothing to read
    NAME_SIZE = 64,
    HIDDEN_FIELDS = 2,
};

typedef struct file_field {
    char name[NAME_SIZE];
    fl_field_decode decode;
    fl_chain *chain; // IMAGE only
} file_field;

typedef struct file_program {
    fl_catalog *catalog; // counted
    fl_layout layout;
    file_field fields[FL_MAX_FIELDS];
    int32_t field_count; // without the hidden ones
    fl_buffer_pool *buffers;
    fl_decode_limits limits;
    int64_t max_file_size;
    size_t scratch_plan;
    bool has_fallback;
    _Atomic int64_t *warnings; // borrowed from the engine's counters
} file_program;

typedef struct file_run {
    fl_cursor *cursor;
    uint64_t sample_key; // of (seed, epoch): keys the augmentation of samples
} file_run;

typedef struct file_worker {
    fl_decoder *decoder;
    fl_scratch scratch;
} file_worker;

// ---- Positions.

static fl_status admit(const void *context, void *run_context, int64_t number,
                       int32_t *rows, fl_error *error)
{
    (void)context;
    (void)error;
    const file_run *run = run_context;
    if (number >= fl_cursor_batches(run->cursor))
        return FL_END;
    *rows = (int32_t)fl_cursor_rows(run->cursor, number);
    return FL_OK;
}

static fl_status plan(const void *context, void *run_context, fl_batch_view *batch,
                      fl_error *error)
{
    (void)context;
    (void)error;
    const file_run *run = run_context;
    for (int32_t row = 0; row < batch->rows; row++) {
        fl_place place = fl_cursor_place(run->cursor, batch->number, row);
        fl_sample *sample = &batch->samples[row];
        sample->position = place.position;
        sample->random_position = place.random_position;
        sample->index = place.index;
        sample->is_valid = place.is_valid;
    }
    return FL_OK;
}

// ---- Bytes.

static fl_status fetch(const void *context, fl_sample *sample, const fl_cancel *cancel,
                       fl_error *error)
{
    const file_program *program = context;
    char path[PATH_MAX];
    if (!fl_catalog_path(program->catalog, sample->index, path, sizeof(path)))
        return fl_error_set(error, FL_ERROR_ARGUMENT, "the path is longer than %d bytes",
                            PATH_MAX - 1);
    return fl_local_read(path, program->max_file_size, program->buffers, cancel,
                         &sample->bytes, error);
}

static void describe(const void *context, const fl_sample *sample, fl_error *error)
{
    const file_program *program = context;
    char path[PATH_MAX];
    if (fl_catalog_path(program->catalog, sample->index, path, sizeof(path)))
        fl_error_add_path(error, path);
    fl_error_add_index(error, sample->index);
}

// ---- Pixels.

// Rows of a box of a picture that lies in memory: what a Python step decoded.
typedef struct memory_rows {
    const uint8_t *next; // the box's next row
    size_t stride;
    size_t row_size;
} memory_rows;

static fl_status read_memory(void *context, uint8_t *rows, size_t stride, int32_t count,
                             fl_error *error)
{
    (void)error;
    memory_rows *source = context;
    for (int32_t i = 0; i < count; i++) {
        memcpy(rows + (size_t)i * stride, source->next, source->row_size);
        source->next += source->stride;
    }
    return FL_OK;
}

static memory_rows cut_box(const fl_sample *sample, fl_box box)
{
    size_t stride = (size_t)sample->pixel_width * FL_PIXEL_SIZE;
    size_t offset = (size_t)box.y * stride + (size_t)box.x * FL_PIXEL_SIZE;
    return (memory_rows){.next = sample->pixels->data + offset,
                         .stride = stride,
                         .row_size = (size_t)box.width * FL_PIXEL_SIZE};
}

// Where a picture's row goes: a FIXED field's place in the slab, or a part of its own.
static fl_status place_row(const fl_field_layout *field, fl_batch_view *batch,
                           int32_t row, int32_t late_count, const fl_chain_draw *draw,
                           uint8_t **out, fl_error *error)
{
    if (!field->is_late) {
        *out = batch->memory + field->offset + (size_t)row * field->row_size;
        return FL_OK;
    }
    fl_part *part = &batch->parts[row * late_count + field->late_slot];
    fl_status status = fl_buffer_create(draw->size, &part->data, error);
    if (status != FL_OK)
        return status;
    part->data->size = part->size = draw->size;
    part->row = draw->shape;
    *out = part->data->data;
    return FL_OK;
}

// What one call of compute works on.
typedef struct file_job {
    const file_program *program;
    const file_run *run;
    file_worker *worker;
    fl_batch_view *batch;
    fl_sample *sample;
    size_t scratch_limit;
    const fl_cancel *cancel;
} file_job;

static fl_status draw_and_place(const file_job *job, int32_t field, int32_t width,
                                int32_t height, size_t decoder_memory,
                                fl_chain_draw *draw, uint8_t **out, fl_error *error)
{
    const file_program *program = job->program;
    fl_status status = fl_chain_make_draw(
        program->fields[field].chain, width, height, job->run->sample_key,
        (uint64_t)job->sample->random_position, draw, error);
    if (status != FL_OK)
        return status;

    size_t need = 0;
    if (!fl_size_add(decoder_memory, draw->scratch, &need) ||
        (program->layout.fields[field].is_late && !fl_size_add(need, draw->size, &need)))
        return fl_error_set(
            error, FL_ERROR_LIMIT,
            "the picture does not fit in memory; make it smaller or take it out of the "
            "data set");
    if (need > job->scratch_limit) {
        job->sample->scratch_need = need;
        return FL_NEEDS_SCRATCH;
    }
    status = fl_scratch_reserve(&job->worker->scratch, draw->scratch, error);
    if (status != FL_OK)
        return status;
    return place_row(&program->layout.fields[field], job->batch, job->sample->row,
                     program->layout.late_count, draw, out, error);
}

static fl_status store_pixels(const file_job *job, int32_t field, fl_error *error)
{
    fl_chain_draw draw;
    uint8_t *out = NULL; // gcc does not see that FL_OK means it was written
    const fl_sample *sample = job->sample;
    fl_status status = draw_and_place(job, field, sample->pixel_width,
                                      sample->pixel_height, 0, &draw, &out, error);
    if (status != FL_OK)
        return status;
    memory_rows rows = cut_box(sample, draw.region);
    return fl_chain_apply(job->program->fields[field].chain, &draw,
                          (fl_row_source){.read = read_memory, .context = &rows},
                          &job->worker->scratch, out, error);
}

static fl_status decode_opened(const file_job *job, int32_t field,
                               const fl_picture *picture, fl_error *error)
{
    fl_chain_draw draw;
    uint8_t *out = NULL; // gcc does not see that FL_OK means it was written
    fl_decoder *decoder = job->worker->decoder;
    fl_status status = draw_and_place(job, field, picture->width, picture->height,
                                      picture->memory, &draw, &out, error);
    if (status == FL_OK)
        status = fl_decoder_start(decoder, draw.region, error);
    if (status == FL_OK)
        status =
            fl_chain_apply(job->program->fields[field].chain, &draw,
                           fl_decoder_rows(decoder), &job->worker->scratch, out, error);
    if (status == FL_OK)
        status = fl_decoder_finish(decoder, error);
    return status;
}

static fl_status store_image(const file_job *job, int32_t field, fl_error *error)
{
    fl_sample *sample = job->sample;
    const file_program *program = job->program;
    fl_decoder *decoder = job->worker->decoder;
    fl_picture picture;
    if (sample->pixels)
        return store_pixels(job, field, error);

    fl_status status = fl_decoder_open(decoder, sample->bytes->data, sample->bytes->size,
                                       &program->limits, job->cancel, &picture, error);
    if (status == FL_NEEDS_PYTHON)
        return program->has_fallback
                   ? status
                   : fl_error_set(error, FL_ERROR_UNSUPPORTED,
                                  "it is not a JPEG, PNG or WebP that this build reads; "
                                  "others are read by Pillow, which is not installed: "
                                  "pip install pillow");
    if (status == FL_OK)
        status = decode_opened(job, field, &picture, error);
    int64_t warnings = fl_decoder_warnings(decoder);
    if (warnings && status != FL_NEEDS_SCRATCH)
        fl_counter_add(program->warnings, warnings);
    fl_decoder_close(decoder);
    return status;
}

// ---- Rows.

static void store_bytes(const file_job *job, int32_t field)
{
    const fl_layout *layout = &job->program->layout;
    int32_t slot = layout->fields[field].late_slot;
    fl_part *part = &job->batch->parts[job->sample->row * layout->late_count + slot];
    int64_t size = (int64_t)job->sample->bytes->size;
    part->data = fl_buffer_ref(job->sample->bytes);
    part->size = job->sample->bytes->size;
    part->row = fl_row_shape_contiguous(1, &size);
}

static void store_value(const file_job *job, int32_t field, const void *value,
                        size_t size)
{
    const fl_field_layout *layout = &job->program->layout.fields[field];
    memcpy(job->batch->memory + layout->offset +
               (size_t)job->sample->row * layout->row_size,
           value, size);
}

static fl_status store_field(const file_job *job, int32_t field, fl_error *error)
{
    switch (job->program->fields[field].decode) {
    case FL_DECODE_IMAGE:
        return store_image(job, field, error);
    case FL_DECODE_BYTES:
        store_bytes(job, field);
        return FL_OK;
    case FL_DECODE_INT64:
        break;
    }
    int64_t label = fl_catalog_label(job->program->catalog, job->sample->index);
    store_value(job, field, &label, sizeof(label));
    return FL_OK;
}

static fl_status compute(const void *context, void *run_context, void *worker,
                         fl_batch_view *batch, fl_sample *sample, size_t scratch_limit,
                         const fl_cancel *cancel, fl_error *error)
{
    const file_program *program = context;
    file_job job = {.program = program,
                    .run = run_context,
                    .worker = worker,
                    .batch = batch,
                    .sample = sample,
                    .scratch_limit = scratch_limit,
                    .cancel = cancel};
    fl_status status = FL_OK;
    for (int32_t field = 0; field < program->field_count && status == FL_OK; field++)
        status = store_field(&job, field, error);
    fl_scratch_trim(&job.worker->scratch, program->scratch_plan);
    if (status != FL_OK)
        return status;
    store_value(&job, program->field_count, &sample->index, sizeof(sample->index));
    store_value(&job, program->field_count + 1, &sample->is_valid,
                sizeof(sample->is_valid));
    return FL_OK;
}

// ---- Life.

static void worker_destroy(void *worker)
{
    file_worker *own = worker;
    fl_decoder_destroy(own->decoder);
    fl_scratch_deinit(&own->scratch);
    fl_free(own);
}

static fl_status worker_create(const void *context, void **worker, fl_error *error)
{
    (void)context;
    file_worker *own = fl_alloc_zeroed(sizeof(*own));
    if (!own)
        return fl_error_no_memory(error);
    fl_status status = fl_decoder_create(&own->decoder, error);
    if (status != FL_OK) {
        worker_destroy(own);
        return status;
    }
    *worker = own;
    return FL_OK;
}

void fl_file_program_run_free(void *run_context)
{
    file_run *run = run_context;
    fl_cursor_destroy(run->cursor);
    fl_free(run);
}

static void release(void *context)
{
    file_program *program = context;
    if (!program)
        return;
    for (int32_t field = 0; field < program->field_count; field++)
        fl_chain_destroy(program->fields[field].chain);
    fl_buffer_pool_unref(&program->buffers);
    fl_catalog_unref(&program->catalog);
    fl_free(program);
}

static const fl_program_vtable reading_vtable = {
    .admit = admit,
    .plan = plan,
    .fetch = fetch,
    .compute = compute,
    .worker_create = worker_create,
    .worker_destroy = worker_destroy,
    .describe = describe,
    .run_release = fl_file_program_run_free,
    .release = release,
};

// Labels only: no file is opened.
static const fl_program_vtable label_vtable = {
    .admit = admit,
    .plan = plan,
    .compute = compute,
    .worker_create = worker_create,
    .worker_destroy = worker_destroy,
    .describe = describe,
    .run_release = fl_file_program_run_free,
    .release = release,
};

static fl_status add_field(file_program *program, const fl_field_spec *spec,
                           fl_error *error)
{
    fl_status status;
    file_field *field = &program->fields[program->field_count];
    fl_field_layout *layout = &program->layout.fields[program->field_count];
    bool is_label = spec->decode == FL_DECODE_INT64;
    if (is_label != (spec->source == FL_SOURCE_LABEL))
        return fl_error_set(
            error, FL_ERROR_ARGUMENT,
            "field '%s': a label decodes as int64, a file as image or bytes", spec->name);
    if (is_label && !fl_catalog_has_labels(program->catalog))
        return fl_error_set(error, FL_ERROR_ARGUMENT,
                            "field '%s': the data set has no labels", spec->name);

    field->decode = spec->decode;
    snprintf(field->name, sizeof(field->name), "%s", spec->name);
    layout->name = field->name;
    layout->dtype = is_label ? FL_INT64 : FL_UINT8;
    layout->is_late = spec->decode == FL_DECODE_BYTES;
    if (spec->decode == FL_DECODE_IMAGE) {
        status = fl_chain_create(spec->ops, spec->op_count, spec->layout, &field->chain,
                                 error);
        if (status != FL_OK)
            return status;
        layout->dtype = fl_chain_dtype(field->chain);
        layout->is_late = !fl_chain_fixed_shape(field->chain, &layout->row);
    }
    program->field_count++;
    program->layout.field_count++;
    return FL_OK;
}

static void add_hidden_field(file_program *program, const char *name, fl_dtype dtype)
{
    program->layout.fields[program->layout.field_count++] =
        (fl_field_layout){.name = name, .dtype = dtype};
}

static bool reads_files(const fl_file_program_spec *spec)
{
    for (int32_t i = 0; i < spec->field_count; i++)
        if (spec->fields[i].source == FL_SOURCE_FILE)
            return true;
    return false;
}

fl_status fl_file_program_create(const fl_file_program_spec *spec, fl_program *out,
                                 fl_error *error)
{
    fl_status status;
    if (spec->field_count < 1 || spec->field_count > FL_MAX_FIELDS - HIDDEN_FIELDS)
        return fl_error_set(error, FL_ERROR_ARGUMENT,
                            "a data set has 1 to %d fields, not %d",
                            FL_MAX_FIELDS - HIDDEN_FIELDS, spec->field_count);
    file_program *program = fl_alloc_zeroed(sizeof(*program));
    if (!program)
        return fl_error_no_memory(error);
    program->catalog = fl_catalog_ref(spec->catalog);
    program->limits = (fl_decode_limits){spec->max_pixels, MAX_SCANS};
    program->max_file_size = spec->max_file_size;
    program->scratch_plan = spec->scratch_plan;
    program->has_fallback = spec->has_fallback;
    program->layout.rows = spec->batch_size;
    status = fl_buffer_pool_create(FREE_FILE_BYTES, &program->buffers, error);
    for (int32_t i = 0; i < spec->field_count && status == FL_OK; i++)
        status = add_field(program, &spec->fields[i], error);
    if (status != FL_OK)
        goto fail;
    add_hidden_field(program, "index", FL_INT64);
    add_hidden_field(program, "valid", FL_BOOL);
    status = fl_layout_plan(&program->layout, error);
    if (status != FL_OK)
        goto fail;

    bool has_files = reads_files(spec);
    *out = (fl_program){.vtable = has_files ? &reading_vtable : &label_vtable,
                        .context = program,
                        .layout = &program->layout,
                        .range_rows = has_files ? 1 : LABEL_RANGE_ROWS,
                        .scratch_plan = spec->scratch_plan};
    return FL_OK;
fail:
    release(program);
    return status;
}

void fl_file_program_count_warnings(fl_program program, _Atomic int64_t *counter)
{
    ((file_program *)program.context)->warnings = counter;
}

fl_status fl_file_program_run(fl_cursor *cursor, uint64_t seed, uint64_t epoch,
                              void **out, fl_error *error)
{
    file_run *run = fl_alloc_zeroed(sizeof(*run));
    if (!run) {
        fl_cursor_destroy(cursor);
        return fl_error_no_memory(error);
    }
    run->cursor = cursor;
    run->sample_key = fl_key_derive(seed, epoch, FL_KEY_SAMPLE, 0);
    *out = run;
    return FL_OK;
}
