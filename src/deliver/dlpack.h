// SPDX-License-Identifier: MIT
// Arrays over a slab's memory, and their export by DLPack. An export holds one reference
// of the slab in one allocation together with shape and strides; its deleter is pure C
// and runs on any thread, at any time, also after the interpreter is gone. The device is
// always kDLCPU, for pinned memory too; exports are writable, as each batch owns its
// slab until the last of them dies. All functions: any thread.
#ifndef FL_DELIVER_DLPACK_H
#define FL_DELIVER_DLPACK_H

#include "base/error.h"
#include "batch/layout.h"
#include "batch/slab.h"
#include "third_party/dlpack.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FL_ARRAY_MAX_DIMENSIONS = FL_MAX_ROW_DIMENSIONS + 1 };

// A dense view of a slab. Plain data: `slab` is borrowed from whoever holds the array.
typedef struct fl_array {
    fl_slab *slab;
    uint8_t *data;
    size_t size; // bytes
    fl_dtype dtype;
    int32_t dimensions;
    int64_t shape[FL_ARRAY_MAX_DIMENSIONS];
    int64_t strides[FL_ARRAY_MAX_DIMENSIONS]; // in elements
} fl_array;

// The first `rows` rows of a FIXED field.
fl_array fl_array_of_field(fl_slab *slab, const fl_field_layout *field, int32_t rows);
// One row of a LATE field. `late` may be NULL if the row is empty.
fl_array fl_array_of_part(fl_slab *late, const fl_field_layout *field,
                          const fl_part *part);

DLDataType fl_dlpack_dtype(fl_dtype dtype);

// Each holds a reference of the slab until its deleter is called; with `is_copy`, bytes
// of its own instead (and the flag IS_COPIED, in the versioned form).
FL_MUST_CHECK fl_status fl_array_export(const fl_array *array, bool is_copy,
                                        DLManagedTensorVersioned **out, fl_error *error);
// The form before DLPack 1.0, which JAX and TensorFlow ask for.
FL_MUST_CHECK fl_status fl_array_export_legacy(const fl_array *array, bool is_copy,
                                               DLManagedTensor **out, fl_error *error);

#endif
