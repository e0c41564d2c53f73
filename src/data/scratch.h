// SPDX-License-Identifier: MIT
// A worker's scratch memory: one block, cut into pieces, emptied after each sample. Owned
// by one thread. Hot loops do not allocate: the block grows only when a sample needs more
// than any before it.
#ifndef FL_DATA_SCRATCH_H
#define FL_DATA_SCRATCH_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

typedef struct fl_scratch {
    uint8_t *block;
    size_t size;
    size_t used;
} fl_scratch;

void fl_scratch_init(fl_scratch *scratch);
void fl_scratch_deinit(fl_scratch *scratch);

// Empties the scratch and makes room for `size` bytes in all (each piece costs up to 64
// bytes more). Pieces taken before are gone.
FL_MUST_CHECK fl_status fl_scratch_reserve(fl_scratch *scratch, size_t size,
                                           fl_error *error);
// A piece of `size` bytes, 64-byte aligned, or NULL if the reserve does not hold it.
void *fl_scratch_take(fl_scratch *scratch, size_t size);
// Gives the block back to the system if it is larger than `keep`.
void fl_scratch_trim(fl_scratch *scratch, size_t keep);

#endif
