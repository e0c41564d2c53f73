// SPDX-License-Identifier: MIT
// The counters' block: found by its descriptor, and there without one.
#include "base/thread.h"
#include "check.h"
#include "stats/counters.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

static void check_head(const fl_counters_block *block)
{
    CHECK_INT(block->magic, FL_COUNTERS_MAGIC);
    CHECK_INT(block->version, FL_COUNTERS_VERSION);
    CHECK_INT(block->size, sizeof(fl_counters_block));
}

// Another mapping of the descriptor, as another process makes it, sees what is counted.
static void test_shared(void)
{
    fl_counters counters;
    CHECK_INT(fl_counters_init(&counters, NULL), FL_OK);
    check_head(counters.block);
    CHECK(counters.descriptor >= 0);
    CHECK(fcntl(counters.descriptor, F_GETFD) & FD_CLOEXEC);
    char name[64], target[128] = {0};
    snprintf(name, sizeof(name), "/proc/self/fd/%d", counters.descriptor);
    CHECK(readlink(name, target, sizeof(target) - 1) > 0);
    CHECK_CONTAINS(target, "feedline-stats");

    int descriptor = open(name, O_RDONLY | O_CLOEXEC);
    CHECK(descriptor >= 0);
    const fl_counters_block *seen =
        mmap(NULL, sizeof(*seen), PROT_READ, MAP_SHARED, descriptor, 0);
    CHECK(seen != MAP_FAILED);
    check_head(seen);
    fl_counter_add(&counters.block->stages[FL_STAGE_FETCH].bytes, 1000);
    fl_counter_add(&counters.block->stages[FL_STAGE_FETCH].bytes, -1);
    CHECK_INT(fl_counter_read(&seen->stages[FL_STAGE_FETCH].bytes), 999);
    CHECK_INT(fl_counter_read(&seen->stages[FL_STAGE_FETCH].items), 0);

    fl_counters_deinit(&counters);
    CHECK(!counters.block);
    CHECK_INT(fl_counter_read(&seen->stages[FL_STAGE_FETCH].bytes), 999);
    fl_counters_deinit(&counters); // again is fine
    munmap((void *)(uintptr_t)seen, sizeof(*seen));
    close(descriptor);
}

// Whoever finds the block cannot cut it off under the threads that count.
static void test_sealed(void)
{
    fl_counters counters;
    char name[64];
    CHECK_INT(fl_counters_init(&counters, NULL), FL_OK);
    snprintf(name, sizeof(name), "/proc/self/fd/%d", counters.descriptor);
    int descriptor = open(name, O_RDWR | O_CLOEXEC);
    CHECK(descriptor >= 0);
    errno = 0;
    CHECK_INT(ftruncate(descriptor, 0), -1);
    CHECK_INT(errno, EPERM);
    CHECK_INT(ftruncate(descriptor, 1 << 20), -1);
    close(descriptor);
    fl_counter_add(&counters.block->batches_delivered, 1);
    CHECK_INT(atomic_load(&counters.block->batches_delivered), 1);
    fl_counters_deinit(&counters);
}

// No descriptor is left in this process: the block is private memory then.
static void test_without_descriptor(void)
{
    struct rlimit old, none;
    CHECK_INT(getrlimit(RLIMIT_NOFILE, &old), 0);
    none = old;
    none.rlim_cur = 0;
    CHECK_INT(setrlimit(RLIMIT_NOFILE, &none), 0);
    fl_counters counters;
    CHECK_INT(fl_counters_init(&counters, NULL), FL_OK);
    CHECK_INT(setrlimit(RLIMIT_NOFILE, &old), 0);
    CHECK_INT(counters.descriptor, -1);
    check_head(counters.block);
    fl_counter_add(&counters.block->batches_ready, 3);
    CHECK_INT(fl_counter_read(&counters.block->batches_ready), 3);
    fl_counters_deinit(&counters);
}

enum { THREADS = 4, ROUNDS = 10000 };

static void count_run(void *argument)
{
    fl_counters_block *block = argument;
    for (int i = 0; i < ROUNDS; i++) {
        fl_counter_add(&block->samples_delivered, 2);
        CHECK(fl_counter_read(&block->samples_delivered) >= 2);
    }
}

static void test_threads(void)
{
    fl_counters counters;
    CHECK_INT(fl_counters_init(&counters, NULL), FL_OK);
    fl_thread threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        CHECK_INT(fl_thread_start(&threads[i], "test", count_run, counters.block, NULL),
                  FL_OK);
    }
    for (int i = 0; i < THREADS; i++)
        fl_thread_join(&threads[i]);
    CHECK_INT(fl_counter_read(&counters.block->samples_delivered), 2 * THREADS * ROUNDS);
    fl_counters_deinit(&counters);
}

int main(void)
{
    test_shared();
    test_sealed();
    test_without_descriptor();
    test_threads();
    return 0;
}
