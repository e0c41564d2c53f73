// SPDX-License-Identifier: MIT
// The keyed permutation behind shuffle=True: position in the epoch -> sample, and back,
// in O(1) time for any seek. docs/order.md defines it exactly. Immutable once made: any
// thread; the creator owns it.
#ifndef FL_ORDER_PERMUTATION_H
#define FL_ORDER_PERMUTATION_H

#include "base/error.h"

#include <stdint.h>

typedef struct fl_permutation fl_permutation;

// Of 0..count-1. Up to 2^16 samples it is a table (2 bytes a sample), beyond that nothing
// but keys.
FL_MUST_CHECK fl_status fl_permutation_create(int64_t count, uint64_t seed,
                                              uint64_t epoch, fl_permutation **out,
                                              fl_error *error);
void fl_permutation_destroy(fl_permutation *permutation);

// `position` in [0, count).
int64_t fl_permutation_at(const fl_permutation *permutation, int64_t position);
// The inverse: the position at which `index` comes. O(count) for a table.
int64_t fl_permutation_find(const fl_permutation *permutation, int64_t index);

#endif
