// SPDX-License-Identifier: MIT
#include "transform/arena.h"

#include "base/memory.h"

enum { ALIGNMENT = 64 };

void *fl_arena_take(fl_arena *arena, size_t count, size_t size)
{
    size_t bytes, total;
    if (!fl_size_multiply(count, size, &bytes) ||
        !fl_size_add(arena->size, bytes, &total) ||
        !fl_size_add(total, ALIGNMENT, &total)) {
        arena->has_overflowed = true;
        return NULL;
    }
    arena->size = total;
    if (!arena->scratch || arena->is_short)
        return NULL;
    void *piece = fl_scratch_take(arena->scratch, bytes);
    if (!piece)
        arena->is_short = true;
    return piece;
}

bool fl_arena_is_ready(const fl_arena *arena)
{
    return arena->scratch && !arena->is_short && !arena->has_overflowed;
}
