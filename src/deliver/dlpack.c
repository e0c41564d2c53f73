// SPDX-License-Identifier: MIT
#include "deliver/dlpack.h"

#include "base/memory.h"

#include <assert.h>
#include <string.h>

// One allocation an export; a copy's bytes lie behind it in the same block.
typedef struct fl_export {
    union {
        DLManagedTensorVersioned versioned;
        DLManagedTensor legacy;
    } tensor;
    fl_slab *slab; // counted; NULL for a copy
    int64_t shape[FL_ARRAY_MAX_DIMENSIONS];
    int64_t strides[FL_ARRAY_MAX_DIMENSIONS];
} fl_export;

fl_array fl_array_of_field(fl_slab *slab, const fl_field_layout *field, int32_t rows)
{
    assert(!field->is_late);
    fl_array array = {.slab = slab,
                      .data = slab->memory + field->offset,
                      .size = field->row_size * (size_t)rows,
                      .dtype = field->dtype,
                      .dimensions = field->row.dimensions + 1};
    array.shape[0] = rows;
    array.strides[0] = (int64_t)(field->row_size / fl_dtype_size(field->dtype));
    for (int32_t i = 0; i < field->row.dimensions; i++) {
        array.shape[i + 1] = field->row.shape[i];
        array.strides[i + 1] = field->row.strides[i];
    }
    return array;
}

fl_array fl_array_of_part(fl_slab *late, const fl_field_layout *field,
                          const fl_part *part)
{
    assert(late || part->size == 0);
    fl_array array = {.slab = late,
                      .data = late ? late->memory + part->offset : NULL,
                      .size = part->size,
                      .dtype = field->dtype,
                      .dimensions = part->row.dimensions};
    memcpy(array.shape, part->row.shape, sizeof(part->row.shape));
    memcpy(array.strides, part->row.strides, sizeof(part->row.strides));
    return array;
}

DLDataType fl_dlpack_dtype(fl_dtype dtype)
{
    uint8_t code = kDLUInt;
    switch (dtype) {
    case FL_UINT8:
        code = kDLUInt;
        break;
    case FL_INT64:
        code = kDLInt;
        break;
    case FL_FLOAT16:
    case FL_FLOAT32:
        code = kDLFloat;
        break;
    case FL_BFLOAT16:
        code = kDLBfloat;
        break;
    case FL_BOOL:
        code = kDLBool;
        break;
    }
    return (DLDataType){
        .code = code, .bits = (uint8_t)(8 * fl_dtype_size(dtype)), .lanes = 1};
}

static void export_free(fl_export *export)
{
    fl_slab_unref(&export->slab);
    fl_free(export);
}

static void delete_versioned(DLManagedTensorVersioned *tensor)
{
    if (tensor)
        export_free(tensor->manager_ctx);
}

static void delete_legacy(DLManagedTensor *tensor)
{
    if (tensor)
        export_free(tensor->manager_ctx);
}

// An export with its own reference or its own bytes, and the address of these.
static fl_export *export_make(const fl_array *array, bool is_copy, void **data)
{
    size_t head = fl_size_align(sizeof(fl_export), FL_FIELD_ALIGNMENT);
    size_t size = head;
    if (is_copy && !fl_size_add(head, array->size, &size))
        return NULL;
    fl_export *export =
        is_copy ? fl_alloc_aligned(FL_FIELD_ALIGNMENT, size) : fl_alloc(sizeof(*export));
    if (!export)
        return NULL;
    memset(export, 0, sizeof(*export));
    *data = array->data;
    if (is_copy) {
        *data = (uint8_t *)export + head;
        if (array->size > 0) // dense: the copy keeps the strides
            memcpy(*data, array->data, array->size);
    } else if (array->slab) {
        export->slab = fl_slab_ref(array->slab);
    }
    memcpy(export->shape, array->shape, sizeof(export->shape));
    memcpy(export->strides, array->strides, sizeof(export->strides));
    return export;
}

static void fill_tensor(DLTensor *tensor, fl_export *export, const fl_array *array,
                        void *data)
{
    *tensor = (DLTensor){.data = array->size > 0 ? data : NULL,
                         .device = {.device_type = kDLCPU, .device_id = 0},
                         .ndim = array->dimensions,
                         .dtype = fl_dlpack_dtype(array->dtype),
                         .shape = export->shape,
                         .strides = export->strides,
                         .byte_offset = 0};
}

fl_status fl_array_export(const fl_array *array, bool is_copy,
                          DLManagedTensorVersioned **out, fl_error *error)
{
    void *data;
    fl_export *export = export_make(array, is_copy, &data);
    if (!export)
        return fl_error_no_memory(error);
    DLManagedTensorVersioned *tensor = &export->tensor.versioned;
    tensor->version =
        (DLPackVersion){.major = DLPACK_MAJOR_VERSION, .minor = DLPACK_MINOR_VERSION};
    tensor->manager_ctx = export;
    tensor->deleter = delete_versioned;
    tensor->flags = is_copy ? DLPACK_FLAG_BITMASK_IS_COPIED : 0;
    fill_tensor(&tensor->dl_tensor, export, array, data);
    *out = tensor;
    return FL_OK;
}

fl_status fl_array_export_legacy(const fl_array *array, bool is_copy,
                                 DLManagedTensor **out, fl_error *error)
{
    void *data;
    fl_export *export = export_make(array, is_copy, &data);
    if (!export)
        return fl_error_no_memory(error);
    DLManagedTensor *tensor = &export->tensor.legacy;
    tensor->manager_ctx = export;
    tensor->deleter = delete_legacy;
    fill_tensor(&tensor->dl_tensor, export, array, data);
    *out = tensor;
    return FL_OK;
}
