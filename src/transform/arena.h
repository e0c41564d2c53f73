// SPDX-License-Identifier: MIT
// Pieces of scratch memory, measured or taken by the same code: what is opened for a
// picture asks for its pieces once to learn how much they are, and once to have them.
// Owned by the caller's stack frame.
#ifndef FL_TRANSFORM_ARENA_H
#define FL_TRANSFORM_ARENA_H

#include "data/scratch.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct fl_arena {
    fl_scratch *scratch; // NULL: only measure
    size_t size;         // bytes asked for so far, with what alignment may cost
    bool has_overflowed; // `size` is not to be trusted
    bool is_short;       // the scratch did not hold a piece
} fl_arena;

// 64-byte aligned; NULL when the arena is not ready.
void *fl_arena_take(fl_arena *arena, size_t count, size_t size);
// All pieces so far are there.
bool fl_arena_is_ready(const fl_arena *arena);

#endif
