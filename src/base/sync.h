// SPDX-License-Identifier: MIT
// Mutex and condition variable with a rank each. Locks are taken in rising rank, never
// two of one rank; test builds assert it (docs/threads.md holds the table). No I/O,
// decode, allocation, free or callback runs under a lock. Owned by the struct they stand
// in.
#ifndef FL_BASE_SYNC_H
#define FL_BASE_SYNC_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

// Thread-safety annotations: clang checks functions; `guarded_by` on C struct members
// needs a newer clang with late parsing, so FL_GUARDED_BY is documentation elsewhere.
#if defined(__clang__)
#define FL_CAPABILITY(name) __attribute__((capability(name)))
#define FL_ACQUIRE(...) __attribute__((acquire_capability(__VA_ARGS__)))
#define FL_RELEASE(...) __attribute__((release_capability(__VA_ARGS__)))
#define FL_REQUIRES(...) __attribute__((requires_capability(__VA_ARGS__)))
#define FL_EXCLUDES(...) __attribute__((locks_excluded(__VA_ARGS__)))
#define FL_NO_THREAD_SAFETY_ANALYSIS __attribute__((no_thread_safety_analysis))
#else
#define FL_CAPABILITY(name)
#define FL_ACQUIRE(...)
#define FL_RELEASE(...)
#define FL_REQUIRES(...)
#define FL_EXCLUDES(...)
#define FL_NO_THREAD_SAFETY_ANALYSIS
#endif
#if defined(__clang__) && defined(FL_LATE_PARSED_ATTRIBUTES)
#define FL_GUARDED_BY(lock) __attribute__((guarded_by(lock)))
#else
#define FL_GUARDED_BY(lock)
#endif

typedef enum fl_lock_rank {
    FL_LOCK_ENGINE = 1, // heaps, thread counts, budgets, list of runs
    FL_LOCK_RUN = 2,    // window and batch states of one run
    FL_LOCK_POOL = 3,   // free blocks of one pool
    FL_LOCK_LEAF = 4,   // short-lived helpers (catalog scan); takes nothing below it
} fl_lock_rank;

typedef struct FL_CAPABILITY("mutex") fl_mutex {
    pthread_mutex_t handle;
    fl_lock_rank rank;
} fl_mutex;

typedef struct fl_condition {
    pthread_cond_t handle; // on CLOCK_MONOTONIC
} fl_condition;

void fl_mutex_init(fl_mutex *mutex, fl_lock_rank rank);
void fl_mutex_deinit(fl_mutex *mutex);
void fl_mutex_lock(fl_mutex *mutex) FL_ACQUIRE(mutex);
void fl_mutex_unlock(fl_mutex *mutex) FL_RELEASE(mutex);

void fl_condition_init(fl_condition *condition);
void fl_condition_deinit(fl_condition *condition);
void fl_condition_wait(fl_condition *condition, fl_mutex *mutex) FL_REQUIRES(mutex);
// `deadline_ns` on fl_clock_now's scale. False: the deadline has passed.
bool fl_condition_wait_until(fl_condition *condition, fl_mutex *mutex,
                             int64_t deadline_ns) FL_REQUIRES(mutex);
void fl_condition_signal(fl_condition *condition);
void fl_condition_broadcast(fl_condition *condition);

#ifdef FL_TESTING
// The ranks that this thread holds, one bit each.
uint32_t fl_locks_held(void);
#endif

#endif
