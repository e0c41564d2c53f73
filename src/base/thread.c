// SPDX-License-Identifier: MIT
#include "base/thread.h"

#include "base/memory.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>

// What a new thread needs; the thread frees it.
typedef struct fl_thread_entry {
    void (*run)(void *argument);
    void *argument;
    char name[16];
} fl_thread_entry;

#ifdef FL_TESTING
#include <stdatomic.h>

static _Atomic int64_t fail_countdown = -1;
static _Atomic uint32_t fail_chance;
static _Atomic uint32_t fail_state;

void fl_thread_fail_at(int64_t n)
{
    atomic_store(&fail_countdown, n);
}

void fl_thread_fail_randomly(uint32_t chance, uint64_t seed)
{
    atomic_store(&fail_state, (uint32_t)seed | 1);
    atomic_store(&fail_chance, chance);
}

static bool must_fail(void)
{
    uint32_t chance = atomic_load(&fail_chance);
    // The high half of a Weyl sequence is even enough for fault injection.
    if (chance && (atomic_fetch_add(&fail_state, 0x9E3779B9u) >> 16) < chance)
        return true;
    if (atomic_load(&fail_countdown) < 0)
        return false;
    return atomic_fetch_sub(&fail_countdown, 1) == 0;
}
#else
static bool must_fail(void)
{
    return false;
}
#endif

static void *enter(void *argument)
{
    fl_thread_entry entry = *(fl_thread_entry *)argument;
    fl_free(argument);
    pthread_setname_np(pthread_self(), entry.name);
    entry.run(entry.argument);
    return NULL;
}

static int create(pthread_t *handle, int detach_state, fl_thread_entry *entry)
{
    if (must_fail())
        return EAGAIN;

    sigset_t all, before;
    pthread_attr_t attributes;
    sigfillset(&all);
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, detach_state);

    // The new thread inherits the mask, so it never sees a signal, not even at its start.
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int result = pthread_create(handle, &attributes, enter, entry);
    pthread_sigmask(SIG_SETMASK, &before, NULL);

    pthread_attr_destroy(&attributes);
    return result;
}

static fl_status start(pthread_t *handle, int detach_state, const char *name,
                       void (*run)(void *argument), void *argument, fl_error *error)
{
    fl_thread_entry *entry = fl_alloc_zeroed(sizeof(*entry));
    if (!entry)
        return fl_error_no_memory(error);
    entry->run = run;
    entry->argument = argument;
    snprintf(entry->name, sizeof(entry->name), "%s", name);

    int result = create(handle, detach_state, entry);
    if (result == 0)
        return FL_OK;

    fl_free(entry);
    fl_error_set_os(error, result,
                    "cannot start a thread (%s); raise the process limit "
                    "(ulimit -u, cgroup pids.max) or use fewer threads",
                    name);
    if (error)
        error->code = FL_ERROR_THREAD;
    return FL_ERROR_THREAD;
}

fl_status fl_thread_start_detached(const char *name, void (*run)(void *argument),
                                   void *argument, fl_error *error)
{
    pthread_t handle;
    return start(&handle, PTHREAD_CREATE_DETACHED, name, run, argument, error);
}

fl_status fl_thread_start(fl_thread *thread, const char *name,
                          void (*run)(void *argument), void *argument, fl_error *error)
{
    return start(&thread->handle, PTHREAD_CREATE_JOINABLE, name, run, argument, error);
}

void fl_thread_join(fl_thread *thread)
{
    pthread_join(thread->handle, NULL);
}
