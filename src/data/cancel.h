// SPDX-License-Identifier: MIT
// A flag that long work polls: set once, by any thread, never taken back.
#ifndef FL_DATA_CANCEL_H
#define FL_DATA_CANCEL_H

#include <stdatomic.h>
#include <stdbool.h>

typedef struct fl_cancel {
    atomic_bool is_set;
} fl_cancel;

// Relaxed: the flag orders nothing, whoever sees it late works a little longer.
static inline void fl_cancel_set(fl_cancel *cancel)
{
    atomic_store_explicit(&cancel->is_set, true, memory_order_relaxed);
}

// False for NULL.
static inline bool fl_cancel_is_set(const fl_cancel *cancel)
{
    return cancel && atomic_load_explicit(&cancel->is_set, memory_order_relaxed);
}

#endif
