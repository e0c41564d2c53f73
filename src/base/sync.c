// SPDX-License-Identifier: MIT
#include "base/sync.h"

#include <assert.h>
#include <errno.h>
#include <time.h>

#ifdef FL_TESTING
static _Thread_local uint32_t held;

uint32_t fl_locks_held(void)
{
    return held;
}

static void note_locked(fl_lock_rank rank)
{
    assert((held >> rank) == 0 && "lock order");
    held |= 1u << rank;
}

static void note_unlocked(fl_lock_rank rank)
{
    assert(held & (1u << rank));
    held &= ~(1u << rank);
}
#else
static void note_locked(fl_lock_rank rank)
{
    (void)rank;
}

static void note_unlocked(fl_lock_rank rank)
{
    (void)rank;
}
#endif

void fl_mutex_init(fl_mutex *mutex, fl_lock_rank rank)
{
    // A default mutex cannot fail to initialise on Linux.
    pthread_mutex_init(&mutex->handle, NULL);
    mutex->rank = rank;
}

void fl_mutex_deinit(fl_mutex *mutex)
{
    pthread_mutex_destroy(&mutex->handle);
}

void fl_mutex_lock(fl_mutex *mutex) FL_NO_THREAD_SAFETY_ANALYSIS
{
    note_locked(mutex->rank);
    pthread_mutex_lock(&mutex->handle);
}

void fl_mutex_unlock(fl_mutex *mutex) FL_NO_THREAD_SAFETY_ANALYSIS
{
    pthread_mutex_unlock(&mutex->handle);
    note_unlocked(mutex->rank);
}

void fl_condition_init(fl_condition *condition)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&condition->handle, &attributes);
    pthread_condattr_destroy(&attributes);
}

void fl_condition_deinit(fl_condition *condition)
{
    pthread_cond_destroy(&condition->handle);
}

void fl_condition_wait(fl_condition *condition, fl_mutex *mutex)
{
    note_unlocked(mutex->rank);
    pthread_cond_wait(&condition->handle, &mutex->handle);
    note_locked(mutex->rank);
}

bool fl_condition_wait_until(fl_condition *condition, fl_mutex *mutex,
                             int64_t deadline_ns)
{
    struct timespec deadline = {.tv_sec = deadline_ns / 1000000000,
                                .tv_nsec = deadline_ns % 1000000000};
    note_unlocked(mutex->rank);
    int result = pthread_cond_timedwait(&condition->handle, &mutex->handle, &deadline);
    note_locked(mutex->rank);
    return result != ETIMEDOUT;
}

void fl_condition_signal(fl_condition *condition)
{
    pthread_cond_signal(&condition->handle);
}

void fl_condition_broadcast(fl_condition *condition)
{
    pthread_cond_broadcast(&condition->handle);
}
