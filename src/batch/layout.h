// SPDX-License-Identifier: MIT
// Where things lie in a batch's slabs. FIXED fields have a place that is known before the
// batch exists; LATE fields (pictures of their own sizes, bytes) are laid out by the
// batch's last sample into a second slab. A layout is offsets only, so another process or
// a device can fill a slab. Immutable after creation: any thread.
#ifndef FL_BATCH_LAYOUT_H
#define FL_BATCH_LAYOUT_H

#include "base/error.h"
#include "data/buffer.h"
#include "data/dtype.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FL_MAX_ROW_DIMENSIONS = 3, FL_FIELD_ALIGNMENT = 256, FL_MAX_FIELDS = 16 };

// One row of a field: `shape` and `strides` in elements, outermost first, as the user
// sees them (channels_last has the shape of CHW and the strides of HWC).
typedef struct fl_row_shape {
    int32_t dimensions;
    int64_t shape[FL_MAX_ROW_DIMENSIONS];
    int64_t strides[FL_MAX_ROW_DIMENSIONS];
} fl_row_shape;

typedef struct fl_field_layout {
    const char *name; // borrowed from whoever owns the layout
    fl_dtype dtype;
    bool is_late;
    fl_row_shape row;  // FIXED only
    size_t row_size;   // FIXED only: bytes between rows
    size_t offset;     // FIXED: bytes into the slab
    int32_t late_slot; // LATE: which of the batch's late fields; else -1
} fl_field_layout;

typedef struct fl_layout {
    int32_t rows; // of a full batch
    int32_t field_count, late_count;
    fl_field_layout fields[FL_MAX_FIELDS];
    size_t slab_size; // bytes of the FIXED slab of a full batch
} fl_layout;

// Fills in offsets, row sizes, late slots and the slab's size from names, dtypes and row
// shapes. FL_ERROR_LIMIT if the slab would overflow.
FL_MUST_CHECK fl_status fl_layout_plan(fl_layout *layout, fl_error *error);
// Bytes a row of this shape takes, without gaps; false on overflow.
bool fl_row_shape_size(const fl_row_shape *row, fl_dtype dtype, size_t *out);
fl_row_shape fl_row_shape_contiguous(int32_t dimensions, const int64_t *shape);

// One row of a LATE field: first in a buffer of its own, then at an offset of the late
// slab.
typedef struct fl_part {
    fl_buffer *data; // owned; gone once copied
    fl_row_shape row;
    size_t size;   // bytes
    size_t offset; // into the late slab
} fl_part;

// Gives each part its offset (64-byte aligned) and returns the bytes of the late slab.
// FL_ERROR_LIMIT on overflow.
FL_MUST_CHECK fl_status fl_parts_layout(fl_part *parts, int32_t count, size_t *out_size,
                                        fl_error *error);
// Copies each part to its place and drops its buffer.
void fl_parts_copy(fl_part *parts, int32_t count, uint8_t *memory);
void fl_parts_drop(fl_part *parts, int32_t count);

#endif
