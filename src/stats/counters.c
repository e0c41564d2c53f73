// SPDX-License-Identifier: MIT
#include "stats/counters.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

// Nobody who opens it through /proc may make it shorter, which would be a bus error for
// whoever counts, or (where the kernel knows that seal) write to it; mappings from before
// may.
static bool seal(int fd)
{
    const int size_seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
    return fcntl(fd, F_ADD_SEALS, size_seals | F_SEAL_FUTURE_WRITE) == 0 ||
           fcntl(fd, F_ADD_SEALS, size_seals) == 0;
}

// The block on a memfd; NULL if the system has none to give.
static fl_counters_block *map_shared(int *descriptor)
{
    int fd = memfd_create("feedline-stats", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return NULL;
    if (ftruncate(fd, sizeof(fl_counters_block)) == 0) {
        void *block = mmap(NULL, sizeof(fl_counters_block), PROT_READ | PROT_WRITE,
                           MAP_SHARED, fd, 0);
        if (block != MAP_FAILED && seal(fd)) {
            *descriptor = fd;
            return block;
        }
        if (block != MAP_FAILED)
            munmap(block, sizeof(fl_counters_block));
    }
    close(fd);
    return NULL;
}

static fl_counters_block *map_private(void)
{
    void *block = mmap(NULL, sizeof(fl_counters_block), PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return block == MAP_FAILED ? NULL : block;
}

fl_status fl_counters_init(fl_counters *counters, fl_error *error)
{
    counters->descriptor = -1;
    counters->block = map_shared(&counters->descriptor);
    if (!counters->block)
        counters->block = map_private();
    if (!counters->block)
        return fl_error_no_memory(error);
    counters->block->magic = FL_COUNTERS_MAGIC;
    counters->block->version = FL_COUNTERS_VERSION;
    counters->block->size = sizeof(fl_counters_block);
    return FL_OK;
}

void fl_counters_deinit(fl_counters *counters)
{
    if (!counters->block)
        return;
    munmap(counters->block, sizeof(fl_counters_block));
    counters->block = NULL;
    if (counters->descriptor >= 0)
        close(counters->descriptor);
    counters->descriptor = -1;
}

void fl_counter_add(_Atomic int64_t *counter, int64_t amount)
{
    atomic_fetch_add_explicit(counter, amount, memory_order_relaxed);
}

int64_t fl_counter_read(const _Atomic int64_t *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}
