// SPDX-License-Identifier: MIT
// Native threads. All signals are blocked in them: a Ctrl-C belongs to the main thread.
// They never attach to Python.
#ifndef FL_BASE_THREAD_H
#define FL_BASE_THREAD_H

#include "base/error.h"

#include <pthread.h>

typedef struct fl_thread {
    pthread_t handle;
} fl_thread;

// Starts `run(argument)`, detached; the thread frees what it owns by itself. `name` is
// shown by top and gdb (15 bytes). On failure (FL_ERROR_THREAD) `run` is never called.
FL_MUST_CHECK fl_status fl_thread_start_detached(const char *name,
                                                 void (*run)(void *argument),
                                                 void *argument, fl_error *error);

// The same, to be joined exactly once.
FL_MUST_CHECK fl_status fl_thread_start(fl_thread *thread, const char *name,
                                        void (*run)(void *argument), void *argument,
                                        fl_error *error);
void fl_thread_join(fl_thread *thread);

#ifdef FL_TESTING
// Test builds: the n-th start from now fails (0 = the next); negative: none does.
void fl_thread_fail_at(int64_t n);
void fl_thread_fail_randomly(uint32_t chance,
                             uint64_t seed); // as fl_memory_fail_randomly
#endif

#endif
