// SPDX-License-Identifier: MIT
// What the core costs on one thread, without Python and without an engine: read, decode
// the crop, resize, normalise into a batch; beside libjpeg-turbo decoding the whole of
// the same pictures. Thread CPU time, page cache warm, jobs in turn in each round,
// medians.
#include "bench_jobs.h"

#include "base/clock.h"
#include "base/cpu.h"
#include "base/memory.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include <jpeglib.h>

enum { SEED = 20260101, MAX_ROUNDS = 99 };

typedef struct job {
    const char *key, *title;
    void (*run)(bench *bench, const char *path, uint64_t position);
    double times[MAX_ROUNDS]; // ms a picture
    double median;
} job;

enum { CORE, BARE, READ, DECODE, RESIZE, BOTH, JOBS };

typedef struct options {
    const char *folder, *json, *boxes;
    int rounds, first_epoch;
} options;

// nftw passes nothing through to its callback.
static char **files;
static size_t file_count, file_room;

static int add_file(const char *path, const struct stat *info, int kind, struct FTW *at)
{
    (void)info;
    (void)at;
    const char *dot = strrchr(path, '.');
    if (kind != FTW_F || !dot || (strcasecmp(dot, ".jpg") && strcasecmp(dot, ".jpeg")))
        return 0;
    if (file_count == file_room) {
        file_room = file_room ? file_room * 2 : 256;
        files = fl_realloc(files, file_room * sizeof(*files));
    }
    char *copy = fl_alloc(strlen(path) + 1);
    if (!files || !copy)
        exit(1);
    memcpy(copy, path, strlen(path) + 1);
    files[file_count++] = copy;
    return 0;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

// Keeps the files that can be decoded; says how many cannot. Warms the page cache.
static double list_files(bench *bench, const char *folder)
{
    double pixels = 0;
    size_t kept = 0;
    if (nftw(folder, add_file, 16, FTW_PHYS) != 0) {
        perror(folder);
        exit(1);
    }
    if (file_count > 0)
        qsort(files, file_count, sizeof(*files), compare_names);
    for (size_t i = 0; i < file_count; i++) {
        fl_picture picture;
        if (!bench_probe(bench, files[i], &picture)) {
            fl_free(files[i]);
            continue;
        }
        pixels += (double)picture.width * picture.height;
        files[kept++] = files[i];
    }
    if (kept < file_count)
        fprintf(stderr, "%zu files left out: they cannot be decoded\n",
                file_count - kept);
    file_count = kept;
    if (kept == 0) {
        fprintf(stderr, "bench_core: no JPEGs in %s\n", folder);
        exit(1);
    }
    return pixels / (double)kept;
}

// Runs the jobs in `chosen` on every picture, the reading and decoding that they stand on
// outside the clock, and adds the times up.
static void run_pictures(bench *bench, job *jobs, const int *chosen, int count, int round)
{
    int64_t spent[JOBS] = {0};
    for (size_t i = 0; i < file_count; i++) {
        for (int k = 0; k < count; k++) {
            int64_t start = fl_clock_thread_cpu();
            jobs[chosen[k]].run(bench, files[i], i);
            spent[chosen[k]] += fl_clock_thread_cpu() - start;
        }
    }
    for (int k = 0; k < count; k++)
        jobs[chosen[k]].times[round] =
            (double)spent[chosen[k]] * 1e-6 / (double)file_count;
}

static void run_round(bench *bench, job *jobs, int round)
{
    static const int whole[] = {CORE};
    static const int bare[] = {READ, BARE};
    static const int steps[] = {READ, DECODE, RESIZE, BOTH};
    for (int turn = 0; turn < 3; turn++) { // another one first each time
        switch ((round + turn) % 3) {
        case 0:
            run_pictures(bench, jobs, whole, 1, round);
            break;
        case 1:
            run_pictures(bench, jobs, bare, 2, round);
            break;
        default:
            run_pictures(bench, jobs, steps, 4, round);
        }
    }
}

static int compare_times(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median_of(const double *times, int count)
{
    double sorted[MAX_ROUNDS];
    memcpy(sorted, times, (size_t)count * sizeof(*sorted));
    qsort(sorted, (size_t)count, sizeof(*sorted), compare_times);
    return count % 2 ? sorted[count / 2]
                     : (sorted[count / 2 - 1] + sorted[count / 2]) / 2;
}

// The crops of an epoch, for peers that do the same work.
static void write_boxes(bench *bench, const options *options)
{
    FILE *out = fopen(options->boxes, "w");
    if (!out) {
        perror(options->boxes);
        exit(1);
    }
    for (int round = 0; round < options->rounds; round++) {
        int epoch = options->first_epoch + round;
        bench_set_epoch(bench, SEED, (uint64_t)epoch);
        for (size_t i = 0; i < file_count; i++) {
            bench_read(bench, files[i], i);
            bench_decode(bench, files[i], i);
            fl_box box = bench->draw.region;
            fprintf(out, "%d\t%d\t%d\t%d\t%d\t%d\t%s\n", epoch, box.x, box.y, box.width,
                    box.height, bench->draw.values[1][0], files[i]);
        }
    }
    fclose(out);
}

static void print_line(const char *title, double time, double bare)
{
    printf("%-46s %8.3f %8.0f %8.2f\n", title, time, 1000 / time, bare / time);
}

static void print_table(const job *jobs, double pixels, int rounds)
{
    double bare = jobs[BARE].median;
    printf("%zu pictures of %.0f kpx on average, %d rounds, medians\n\n", file_count,
           pixels / 1000, rounds);
    printf("%-46s %8s %8s %8s\n", "one thread's CPU time, a picture", "ms", "a second",
           "x bare");
    print_line(jobs[CORE].title, jobs[CORE].median, bare);
    print_line(jobs[BARE].title, bare, bare);
    printf("\nthe steps of the first line, timed apart\n");
    print_line(jobs[READ].title, jobs[READ].median, bare);
    print_line(jobs[DECODE].title, jobs[DECODE].median, bare);
    print_line(jobs[RESIZE].title, jobs[RESIZE].median, bare);
    print_line(jobs[BOTH].title, jobs[BOTH].median, bare);
}

static void read_model(char *model, size_t size)
{
    char line[256];
    snprintf(model, size, "unknown");
    FILE *info = fopen("/proc/cpuinfo", "r");
    while (info && fgets(line, sizeof(line), info))
        if (strncmp(line, "model name", 10) == 0 && strchr(line, ':')) {
            snprintf(model, size, "%s", strchr(line, ':') + 2);
            model[strcspn(model, "\n\"\\")] = 0;
            break;
        }
    if (info)
        fclose(info);
}

static void write_json(const job *jobs, const options *options, double pixels)
{
    char model[256], date[32];
    time_t now = time(NULL);
    struct tm calendar;
    read_model(model, sizeof(model));
    strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &calendar));
    FILE *out = strcmp(options->json, "-") ? fopen(options->json, "w") : stdout;
    if (!out) {
        perror(options->json);
        exit(1);
    }
    fprintf(out,
            "{\"command\": \"bench_core --rounds %d\", \"date\": \"%s\", \"cpu\": "
            "\"%s\", \"cpus\": %d, \"libjpeg_turbo\": %d, \"compiler\": \"%s\", "
            "\"pictures\": %zu, \"kilopixels\": %.1f, \"ms\": {",
            options->rounds, date, model, fl_cpu_count(), LIBJPEG_TURBO_VERSION_NUMBER,
            __VERSION__, file_count, pixels / 1000);
    for (int i = 0; i < JOBS; i++)
        fprintf(out, "%s\"%s\": %.4f", i ? ", " : "", jobs[i].key, jobs[i].median);
    fprintf(out, "}, \"bare_by_core\": %.3f}\n", jobs[BARE].median / jobs[CORE].median);
    if (out != stdout)
        fclose(out);
}

static bool parse(int count, char **arguments, options *options)
{
    *options = (struct options){.rounds = 7};
    for (int i = 1; i < count; i++) {
        const char *name = arguments[i], *value = i + 1 < count ? arguments[i + 1] : NULL;
        if (name[0] != '-') {
            options->folder = name;
            continue;
        }
        if (!value)
            return false;
        i++;
        if (strcmp(name, "--rounds") == 0)
            options->rounds = (int)strtol(value, NULL, 10);
        else if (strcmp(name, "--first-epoch") == 0)
            options->first_epoch = (int)strtol(value, NULL, 10);
        else if (strcmp(name, "--json") == 0)
            options->json = value;
        else if (strcmp(name, "--boxes") == 0)
            options->boxes = value;
        else
            return false;
    }
    return options->folder && options->rounds >= 1 && options->rounds <= MAX_ROUNDS;
}

int main(int count, char **arguments)
{
    static job jobs[JOBS] = {
        [CORE] = {"core", "the core: read, crop decode, resize, normalise",
                  .run = bench_run_core},
        [BARE] = {"bare", "libjpeg-turbo, whole pictures, nothing else",
                  .run = bench_run_bare},
        [READ] = {"read", "  read (page cache)", .run = bench_read},
        [DECODE] = {"decode", "  decode the crop, look for the end", .run = bench_decode},
        [RESIZE] = {"resize", "  resize, flip, store uint8", .run = bench_resize},
        [BOTH] = {"resize_normalize", "  or: resize, flip, normalise, store float32",
                  .run = bench_resize_normalize},
    };
    options options;
    bench bench;
    if (!parse(count, arguments, &options)) {
        fprintf(stderr,
                "usage: bench_core [--rounds 1..%d] [--first-epoch N] "
                "[--json FILE|-] [--boxes FILE] FOLDER\n",
                MAX_ROUNDS);
        return 2;
    }
    bench_init(&bench);
    double pixels = list_files(&bench, options.folder);
    if (options.boxes) {
        write_boxes(&bench, &options);
    } else {
        for (int round = 0; round < options.rounds; round++) {
            bench_set_epoch(&bench, SEED, (uint64_t)(options.first_epoch + round));
            run_round(&bench, jobs, round);
        }
        for (int i = 0; i < JOBS; i++)
            jobs[i].median = median_of(jobs[i].times, options.rounds);
        if (!options.json || strcmp(options.json, "-"))
            print_table(jobs, pixels, options.rounds);
        if (options.json)
            write_json(jobs, &options, pixels);
    }
    for (size_t i = 0; i < file_count; i++)
        fl_free(files[i]);
    fl_free(files);
    bench_deinit(&bench);
    return 0;
}
