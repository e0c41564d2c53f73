// SPDX-License-Identifier: MIT
#include "data/scratch.h"

#include "base/memory.h"

enum { ALIGNMENT = 64 };

void fl_scratch_init(fl_scratch *scratch)
{
    *scratch = (fl_scratch){0};
}

void fl_scratch_deinit(fl_scratch *scratch)
{
    fl_free(scratch->block);
    *scratch = (fl_scratch){0};
}

fl_status fl_scratch_reserve(fl_scratch *scratch, size_t size, fl_error *error)
{
    scratch->used = 0;
    if (size <= scratch->size)
        return FL_OK;

    // The old content is not needed: free first, so that the peak is one block.
    fl_scratch_deinit(scratch);
    scratch->block = fl_alloc_aligned(ALIGNMENT, size);
    if (!scratch->block)
        return fl_error_no_memory(error);
    scratch->size = size;
    return FL_OK;
}

void *fl_scratch_take(fl_scratch *scratch, size_t size)
{
    size_t start = fl_size_align(scratch->used, ALIGNMENT);
    if (start > scratch->size || size > scratch->size - start)
        return NULL;
    scratch->used = start + size;
    return scratch->block + start;
}

void fl_scratch_trim(fl_scratch *scratch, size_t keep)
{
    if (scratch->size > keep)
        fl_scratch_deinit(scratch);
}
