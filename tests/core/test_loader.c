// SPDX-License-Identifier: MIT
// The C API end to end, without Python: a folder of small JPEGs to batches, the same on
// any number of threads; fields without a fixed size; files that fail; allocations that
// fail in turn.
#include "feedline.h"

#include "check.h"
#include "jpeg_samples.h"

#include <sys/stat.h>
#include <unistd.h>

enum { FILES = 23, BATCH = 4, SIZE = 16 };

static char folder[64];

static void write_file(const char *name, const void *bytes, size_t size)
{
    char path[128];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *file = fopen(path, "wb");
    CHECK(file && fwrite(bytes, 1, size, file) == size && fclose(file) == 0);
}

static void make_folder(void)
{
    snprintf(folder, sizeof(folder), "/tmp/feedline-loader-XXXXXX");
    CHECK(mkdtemp(folder));
    for (int i = 0; i < FILES; i++) {
        char name[32];
        size_t size;
        uint8_t *bytes = jpeg_sample_make(&JPEG_SAMPLES[i % JPEG_SAMPLE_COUNT],
                                          30 + 3 * i, 70 - 2 * i, &size);
        snprintf(name, sizeof(name), "%02d.jpg", i);
        write_file(name, bytes, size);
        free(bytes);
    }
    write_file("broken.jpg", "\xff\xd8\xff\xe0 is no picture", 18);
    write_file("text.txt", "not a picture", 13);
}

static void remove_folder(void)
{
    char command[128];
    snprintf(command, sizeof(command), "rm -r %s", folder);
    CHECK(system(command) == 0);
}

// A catalog of the pictures, with `extra` (or NULL) in the middle.
static fl_status make_catalog(const char *extra, fl_catalog **out, fl_error *error)
{
    static char names[FILES + 1][128];
    fl_text paths[FILES + 1];
    int64_t labels[FILES + 1];
    int64_t count = 0;
    for (int i = 0; i < FILES; i++) {
        if (i == FILES / 2 && extra)
            snprintf(names[count++], sizeof(names[0]), "%s/%s", folder, extra);
        snprintf(names[count++], sizeof(names[0]), "%s/%02d.jpg", folder, i);
    }
    for (int64_t i = 0; i < count; i++) {
        paths[i] = (fl_text){names[i], strlen(names[i])};
        labels[i] = 100 + i;
    }
    return fl_catalog_from_paths(paths, labels, count, out, error);
}

static const double CROP[] = {SIZE, SIZE, 0.08, 1.0, 0.75, 1.3333333333333333, 2, 0};
static const double FLIP[] = {0.5};
static const double NORMAL[] = {0.485, 0.456, 0.406, 0.229, 0.224, 0.225};
static const fl_op_spec CHAIN[] = {{"random_resized_crop", CROP, 8},
                                   {"random_horizontal_flip", FLIP, 1},
                                   {"normalize", NORMAL, 6}};

static const fl_field_spec USUAL[] = {
    {.name = "image",
     .source = FL_SOURCE_FILE,
     .decode = FL_DECODE_IMAGE,
     .ops = CHAIN,
     .op_count = 3},
    {.name = "label", .source = FL_SOURCE_LABEL, .decode = FL_DECODE_INT64},
};
static const fl_field_spec LATE[] = {
    {.name = "file", .source = FL_SOURCE_FILE, .decode = FL_DECODE_BYTES},
    {.name = "image",
     .source = FL_SOURCE_FILE,
     .decode = FL_DECODE_IMAGE,
     .layout = FL_LAYOUT_NHWC},
    {.name = "label", .source = FL_SOURCE_LABEL, .decode = FL_DECODE_INT64},
};
static const fl_field_spec LABELS[] = {
    {.name = "label", .source = FL_SOURCE_LABEL, .decode = FL_DECODE_INT64},
};

static fl_status open_loader(const fl_field_spec *fields, int32_t count, int32_t threads,
                             const char *extra, fl_loader **out, fl_error *error)
{
    fl_catalog *catalog = NULL;
    fl_status status = make_catalog(extra, &catalog, error);
    if (status != FL_OK)
        return status;
    fl_loader_spec spec = {.catalog = catalog,
                           .fields = fields,
                           .field_count = count,
                           .batch_size = BATCH,
                           .compute_threads = threads,
                           .fetch_threads = threads,
                           .prefetch_batches = 3,
                           .memory_limit = 64 << 20,
                           .in_order = true,
                           .max_pixels = 1 << 20};
    status = fl_loader_open(&spec, fl_allocator_heap(), out, error);
    fl_catalog_unref(&catalog);
    return status;
}

// One next(): what the binding does. FL_OK, FL_END or an error.
static fl_status next(fl_run *run, fl_batch **out, fl_error *error)
{
    for (;;) {
        fl_status status = fl_run_pop(run, out, error);
        if (status == FL_OK)
            return fl_run_supply(run, NULL) == FL_ERROR_CLOSED ? FL_ERROR_CLOSED : FL_OK;
        if (status != FL_BUSY)
            return status;
        status = fl_run_supply(run, error);
        if (status != FL_OK)
            return status;
        status = fl_run_wait(run, fl_clock_now() + 20 * FL_SECOND_NS, error);
        if (status != FL_OK)
            return status;
    }
}

static uint64_t mix(uint64_t hash, const void *data, size_t size)
{
    const uint8_t *bytes = data;
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ bytes[i]) * 0x100000001b3u;
    return hash;
}

// A hash of all that a batch shows, its padding bytes left out.
static uint64_t hash_batch(const fl_layout *layout, const fl_batch *batch, uint64_t hash)
{
    const fl_batch_view *view = fl_batch_read(batch);
    for (int32_t row = 0; row < view->rows; row++) {
        for (int32_t i = 0; i < layout->field_count; i++) {
            const fl_field_layout *field = &layout->fields[i];
            if (field->is_late) {
                const fl_part *part =
                    &view->parts[row * layout->late_count + field->late_slot];
                hash = mix(hash, fl_batch_late_slab(batch)->memory + part->offset,
                           part->size);
            } else {
                size_t offset = field->offset + (size_t)row * field->row_size;
                hash = mix(hash, fl_batch_slab(batch)->memory + offset, field->row_size);
            }
        }
    }
    return hash;
}

static void close_loader(fl_loader *loader, fl_run *run)
{
    if (run)
        fl_run_cancel(run);
    CHECK_INT(
        fl_engine_close(fl_loader_engine(loader), fl_clock_now() + 20 * FL_SECOND_NS), 0);
    if (run)
        fl_run_unref(&run);
    fl_loader_free(loader);
}

// Threads free their last things after close() has counted them out.
static void wait_for_memory(int64_t live)
{
    int64_t deadline = fl_clock_now() + 20 * FL_SECOND_NS;
    while (fl_memory_live() != live && fl_clock_now() < deadline)
        usleep(1000);
    CHECK_INT(fl_memory_live(), live);
}

static const fl_cursor_spec SHUFFLED = {
    .shuffle = true, .seed = 5, .epoch = 3, .world = 1};

static uint64_t run_epoch(const fl_field_spec *fields, int32_t count, int32_t threads)
{
    fl_error error = FL_ERROR_INIT;
    fl_loader *loader;
    fl_run *run;
    fl_batch *batch;
    CHECK(open_loader(fields, count, threads, NULL, &loader, &error) == FL_OK);
    CHECK(fl_loader_start_run(loader, &SHUFFLED, &run, &error) == FL_OK);
    uint64_t hash = 0xcbf29ce484222325u;
    int32_t rows = 0;
    fl_status status;
    while ((status = next(run, &batch, &error)) == FL_OK) {
        rows += fl_batch_read(batch)->rows;
        hash = hash_batch(fl_loader_layout(loader), batch, hash);
        fl_batch_free(batch);
    }
    if (status != FL_END)
        fprintf(stderr, "%s: %s\n", error.place, error.message);
    CHECK_INT(status, FL_END);
    CHECK_INT(rows, FILES);
    close_loader(loader, run);
    return hash;
}

static void check_threads_do_not_matter(void)
{
    int64_t live = fl_memory_live();
    struct {
        const fl_field_spec *fields;
        int32_t count;
    } cases[] = {{USUAL, 2}, {LATE, 3}, {LABELS, 1}};
    for (int i = 0; i < 3; i++) {
        uint64_t one = run_epoch(cases[i].fields, cases[i].count, 1);
        for (int32_t threads = 2; threads <= 16; threads *= 2)
            CHECK(run_epoch(cases[i].fields, cases[i].count, threads) == one);
    }
    wait_for_memory(live);
}

// The file's error belongs to its batch; the batches around it come whole.
static void check_failing_file(const char *extra, const char *message)
{
    int64_t live = fl_memory_live();
    fl_error error = FL_ERROR_INIT;
    fl_loader *loader;
    fl_run *run;
    fl_batch *batch;
    CHECK(open_loader(USUAL, 2, 3, extra, &loader, &error) == FL_OK);
    fl_cursor_spec spec = {.world = 1};
    CHECK(fl_loader_start_run(loader, &spec, &run, &error) == FL_OK);
    int64_t index = FILES / 2;
    for (int64_t number = 0; number < (FILES + BATCH) / BATCH; number++) {
        fl_status status = next(run, &batch, &error);
        if (number != index / BATCH) {
            CHECK_INT(status, FL_OK);
            CHECK_INT(fl_batch_number(batch), number);
            fl_batch_free(batch);
            continue;
        }
        CHECK(status < 0);
        CHECK_CONTAINS(error.message, message);
        CHECK_CONTAINS(error.place, extra);
        CHECK_INT(error.index, index);
        fl_error_clear(&error);
    }
    CHECK_INT(next(run, &batch, &error), FL_END);
    close_loader(loader, run);
    wait_for_memory(live);
}

// Every allocation fails once: an error somewhere, or a batch less, but no crash and no
// leak.
static void check_failing_allocations(void)
{
    int64_t live = fl_memory_live();
    int failed = 1;
    for (int64_t n = 0; failed; n++) {
        fl_error error = FL_ERROR_INIT;
        fl_loader *loader = NULL;
        fl_run *run = NULL;
        fl_batch *batch;
        failed = 0;
        fl_memory_fail_at(n);
        if (open_loader(LATE, 3, 2, NULL, &loader, &error) != FL_OK ||
            fl_loader_start_run(loader, &SHUFFLED, &run, &error) != FL_OK) {
            CHECK_INT(error.code, FL_ERROR_NO_MEMORY);
            failed = 1;
        }
        for (fl_status status = FL_OK; run && status != FL_END;) {
            status = next(run, &batch, &error);
            if (status == FL_OK)
                fl_batch_free(batch);
            else if (status != FL_END) {
                CHECK_INT(status, FL_ERROR_NO_MEMORY);
                failed = 1;
            }
        }
        // One that was swallowed (a shorter window, a thread less) shows in the countdown
        // only.
        failed |= fl_memory_fail_pending() < 0;
        fl_memory_fail_at(-1);
        fl_error_clear(&error);
        if (loader)
            close_loader(loader, run);
        wait_for_memory(live);
    }
}

static void check_refusals(void)
{
    fl_error error = FL_ERROR_INIT;
    fl_loader *loader;
    static const fl_field_spec wrong[] = {
        {.name = "x", .source = FL_SOURCE_LABEL, .decode = FL_DECODE_IMAGE}};
    CHECK_INT(open_loader(wrong, 1, 1, NULL, &loader, &error), FL_ERROR_ARGUMENT);
    CHECK_CONTAINS(error.message, "'x'");
    CHECK_INT(open_loader(USUAL, 0, 1, NULL, &loader, &error), FL_ERROR_ARGUMENT);
    CHECK_INT(open_loader(USUAL, 2, 0, NULL, &loader, &error), FL_ERROR_ARGUMENT);
    fl_error_clear(&error);
}

int main(void)
{
    make_folder();
    check_threads_do_not_matter();
    check_failing_file("missing.jpg", "No such file");
    check_failing_file("broken.jpg", "");
    check_failing_file("text.txt", "not a JPEG");
    check_failing_allocations();
    check_refusals();
    remove_folder();
    return 0;
}
