// SPDX-License-Identifier: MIT
// One run over an epoch: which sample is in row r of batch g on this rank. Pure
// arithmetic over the permutation (docs/order.md); immutable once made: any thread.
#ifndef FL_ORDER_CURSOR_H
#define FL_ORDER_CURSOR_H

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

enum { FL_ORDER_VERSION = 1 };

typedef enum fl_uneven {
    FL_UNEVEN_PAD,  // the last round wraps around: torch's rule
    FL_UNEVEN_DROP, // the last, uneven round is left out
    FL_UNEVEN_MASK, // pad to full batches on all ranks; padding is not valid
} fl_uneven;

typedef struct fl_cursor_spec {
    int64_t count; // samples in the data set
    bool shuffle;
    uint64_t seed, epoch;
    int64_t start; // position at which the run begins: 0, or a restored one
    int64_t batch_size;
    int64_t rank, world;
    fl_uneven uneven;
    bool drop_last;
} fl_cursor_spec;

typedef struct fl_cursor fl_cursor;

typedef struct fl_place {
    int64_t position;        // in the epoch's global order, beyond count: padding
    int64_t random_position; // keys the sample's random numbers
    int64_t index;           // in the data set
    bool is_valid;
} fl_place;

FL_MUST_CHECK fl_status fl_cursor_create(const fl_cursor_spec *spec, fl_cursor **out,
                                         fl_error *error);
void fl_cursor_destroy(fl_cursor *cursor);
int64_t fl_cursor_batches(const fl_cursor *cursor);
// Rows of batch `number`: batch_size but for a short last one.
int64_t fl_cursor_rows(const fl_cursor *cursor, int64_t number);
fl_place fl_cursor_place(const fl_cursor *cursor, int64_t number, int64_t row);
// The position after `delivered` batches, for the state: never beyond the end of the
// epoch.
int64_t fl_cursor_position(const fl_cursor *cursor, int64_t delivered);

#endif
