// SPDX-License-Identifier: MIT
#include "batch/layout.h"

#include "base/memory.h"

#include <assert.h>
#include <string.h>

enum { PART_ALIGNMENT = 64 };

// Aligns up; false if that overflows.
static bool align_checked(size_t size, size_t alignment, size_t *out)
{
    size_t padded;
    if (!fl_size_add(size, alignment - 1, &padded))
        return false;
    *out = padded & ~(alignment - 1);
    return true;
}

bool fl_row_shape_size(const fl_row_shape *row, fl_dtype dtype, size_t *out)
{
    size_t size = fl_dtype_size(dtype);
    for (int32_t i = 0; i < row->dimensions; i++) {
        if (row->shape[i] < 0 || !fl_size_multiply(size, (size_t)row->shape[i], &size))
            return false;
    }
    *out = size;
    return true;
}

fl_row_shape fl_row_shape_contiguous(int32_t dimensions, const int64_t *shape)
{
    assert(dimensions >= 0 && dimensions <= FL_MAX_ROW_DIMENSIONS);
    fl_row_shape row = {.dimensions = dimensions};
    int64_t stride = 1;
    for (int32_t i = dimensions - 1; i >= 0; i--) {
        row.shape[i] = shape[i];
        row.strides[i] = stride;
        // A shape whose elements cannot be counted has no memory either: its size is
        // refused by fl_row_shape_size before a stride is used.
        if (__builtin_mul_overflow(stride, shape[i], &stride))
            stride = 0;
    }
    return row;
}

// Places one FIXED field behind `end` and moves `end` behind it; false on overflow.
static bool place_field(fl_field_layout *field, int32_t rows, size_t *end)
{
    size_t size;
    return fl_row_shape_size(&field->row, field->dtype, &field->row_size) &&
           fl_size_multiply(field->row_size, (size_t)rows, &size) &&
           align_checked(*end, FL_FIELD_ALIGNMENT, &field->offset) &&
           fl_size_add(field->offset, size, end);
}

fl_status fl_layout_plan(fl_layout *layout, fl_error *error)
{
    assert(layout->rows > 0);
    assert(layout->field_count >= 0 && layout->field_count <= FL_MAX_FIELDS);
    size_t end = 0;
    layout->late_count = 0;
    for (int32_t i = 0; i < layout->field_count; i++) {
        fl_field_layout *field = &layout->fields[i];
        field->late_slot = field->is_late ? layout->late_count++ : -1;
        if (!field->is_late && !place_field(field, layout->rows, &end)) {
            return fl_error_set(error, FL_ERROR_LIMIT,
                                "a batch of %d rows of field '%s' is larger than memory "
                                "can be addressed; use a smaller batch size or shape",
                                layout->rows, field->name);
        }
    }
    layout->slab_size = end;
    return FL_OK;
}

fl_status fl_parts_layout(fl_part *parts, int32_t count, size_t *out_size,
                          fl_error *error)
{
    size_t end = 0;
    for (int32_t i = 0; i < count; i++) {
        if (!align_checked(end, PART_ALIGNMENT, &parts[i].offset) ||
            !fl_size_add(parts[i].offset, parts[i].size, &end)) {
            return fl_error_set(error, FL_ERROR_LIMIT,
                                "the rows of this batch are larger together than memory "
                                "can be addressed; use a smaller batch size");
        }
    }
    *out_size = end;
    return FL_OK;
}

void fl_parts_copy(fl_part *parts, int32_t count, uint8_t *memory)
{
    for (int32_t i = 0; i < count; i++) {
        if (parts[i].data && parts[i].size > 0)
            memcpy(memory + parts[i].offset, parts[i].data->data, parts[i].size);
    }
    fl_parts_drop(parts, count);
}

void fl_parts_drop(fl_part *parts, int32_t count)
{
    for (int32_t i = 0; i < count; i++)
        fl_buffer_unref(&parts[i].data);
}
