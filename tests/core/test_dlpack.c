// SPDX-License-Identifier: MIT
// DLPack exports: what the structs say, who keeps the slab alive, copies, failures,
// deleters on many threads.
#include "base/memory.h"
#include "base/thread.h"
#include "check.h"
#include "deliver/dlpack.h"

#include <stdint.h>

enum { ROWS = 3 };

static fl_layout make_layout(void)
{
    fl_layout layout = {.rows = 4, .field_count = 2};
    layout.fields[0] = (fl_field_layout){
        .name = "image",
        .dtype = FL_FLOAT32,
        .row = {.dimensions = 3, .shape = {3, 4, 5}, .strides = {1, 15, 3}}};
    layout.fields[1] = (fl_field_layout){.name = "label", .dtype = FL_INT64};
    CHECK_INT(fl_layout_plan(&layout, NULL), FL_OK);
    return layout;
}

static fl_slab_pool *make_pool(void)
{
    fl_slab_pool *pool = NULL;
    CHECK_INT(fl_slab_pool_create(fl_allocator_heap(), 2, &pool, NULL), FL_OK);
    return pool;
}

static fl_slab *take(fl_slab_pool *pool, size_t size)
{
    fl_slab *slab = NULL;
    CHECK_INT(fl_slab_pool_take(pool, size, &slab, NULL), FL_OK);
    return slab;
}

static void check_tensor(const DLTensor *tensor, int32_t dimensions, const int64_t *shape,
                         const int64_t *strides)
{
    CHECK_INT(tensor->device.device_type, kDLCPU);
    CHECK_INT(tensor->device.device_id, 0);
    CHECK_INT(tensor->byte_offset, 0);
    CHECK_INT(tensor->dtype.lanes, 1);
    CHECK_INT(tensor->ndim, dimensions);
    for (int32_t i = 0; i < dimensions; i++) {
        CHECK_INT(tensor->shape[i], shape[i]);
        CHECK_INT(tensor->strides[i], strides[i]);
    }
}

static void test_versioned(void)
{
    fl_layout layout = make_layout();
    fl_slab_pool *pool = make_pool();
    fl_slab *slab = take(pool, layout.slab_size);
    fl_array array = fl_array_of_field(slab, &layout.fields[0], ROWS);
    CHECK_INT(array.size, ROWS * 3 * 4 * 5 * 4);
    DLManagedTensorVersioned *tensor = NULL;
    CHECK_INT(fl_array_export(&array, false, &tensor, NULL), FL_OK);
    CHECK_INT(tensor->version.major, 1);
    CHECK_INT(tensor->flags, 0);
    check_tensor(&tensor->dl_tensor, 4, (int64_t[]){ROWS, 3, 4, 5},
                 (int64_t[]){60, 1, 15, 3});
    CHECK_INT(tensor->dl_tensor.dtype.code, kDLFloat);
    CHECK_INT(tensor->dl_tensor.dtype.bits, 32);
    CHECK(tensor->dl_tensor.data == slab->memory);

    fl_slab_unref(&slab);
    fl_slab_pool_unref(&pool); // the export alone keeps the memory
    *(float *)tensor->dl_tensor.data = 1.5f;
    tensor->deleter(tensor);
    CHECK_INT(fl_memory_live(), 0);
}

static void test_legacy(void)
{
    fl_layout layout = make_layout();
    fl_slab_pool *pool = make_pool();
    fl_slab *slab = take(pool, layout.slab_size);
    fl_array array = fl_array_of_field(slab, &layout.fields[1], ROWS);
    DLManagedTensor *tensor = NULL;
    CHECK_INT(fl_array_export_legacy(&array, false, &tensor, NULL), FL_OK);
    check_tensor(&tensor->dl_tensor, 1, (int64_t[]){ROWS}, (int64_t[]){1});
    CHECK_INT(tensor->dl_tensor.dtype.code, kDLInt);
    CHECK_INT(tensor->dl_tensor.dtype.bits, 64);
    CHECK(tensor->dl_tensor.data == slab->memory + layout.fields[1].offset);
    fl_slab_unref(&slab);
    CHECK_INT(fl_slab_pool_read_usage(pool).out_slabs, 1);
    tensor->deleter(tensor);
    CHECK_INT(fl_slab_pool_read_usage(pool).out_slabs, 0);
    fl_slab_pool_unref(&pool);
    CHECK_INT(fl_memory_live(), 0);
}

// A copy has bytes of its own: the slab may go.
static void test_copy(void)
{
    fl_layout layout = make_layout();
    fl_slab_pool *pool = make_pool();
    fl_slab *slab = take(pool, layout.slab_size);
    fl_array array = fl_array_of_field(slab, &layout.fields[1], ROWS);
    for (int64_t i = 0; i < ROWS; i++)
        ((int64_t *)(void *)array.data)[i] = 100 + i;
    DLManagedTensorVersioned *tensor = NULL;
    DLManagedTensor *legacy = NULL;
    CHECK_INT(fl_array_export(&array, true, &tensor, NULL), FL_OK);
    CHECK_INT(fl_array_export_legacy(&array, true, &legacy, NULL), FL_OK);
    CHECK_INT(tensor->flags, DLPACK_FLAG_BITMASK_IS_COPIED);
    fl_slab_unref(&slab);
    CHECK_INT(fl_slab_pool_read_usage(pool).out_slabs, 0);
    CHECK_INT((uintptr_t)tensor->dl_tensor.data % 256, 0);
    for (int64_t i = 0; i < ROWS; i++) {
        CHECK_INT(((int64_t *)tensor->dl_tensor.data)[i], 100 + i);
        CHECK_INT(((int64_t *)legacy->dl_tensor.data)[i], 100 + i);
    }
    tensor->deleter(tensor);
    legacy->deleter(legacy);
    fl_slab_pool_unref(&pool);
    CHECK_INT(fl_memory_live(), 0);
}

static void test_parts(void)
{
    fl_slab_pool *pool = make_pool();
    fl_field_layout field = {.name = "raw", .dtype = FL_UINT8, .is_late = true};
    fl_part parts[2] = {{.row = fl_row_shape_contiguous(1, (int64_t[]){70}), .size = 70},
                        {.row = fl_row_shape_contiguous(1, (int64_t[]){0})}};
    size_t size = 0;
    CHECK_INT(fl_parts_layout(parts, 2, &size, NULL), FL_OK);
    fl_slab *late = take(pool, size);
    fl_array array = fl_array_of_part(late, &field, &parts[0]);
    DLManagedTensorVersioned *tensor = NULL;
    CHECK_INT(fl_array_export(&array, false, &tensor, NULL), FL_OK);
    check_tensor(&tensor->dl_tensor, 1, (int64_t[]){70}, (int64_t[]){1});
    CHECK(tensor->dl_tensor.data == late->memory);
    tensor->deleter(tensor);

    for (int is_copy = 0; is_copy < 2; is_copy++) { // an empty row has no data
        array = fl_array_of_part(is_copy ? NULL : late, &field, &parts[1]);
        CHECK_INT(fl_array_export(&array, is_copy != 0, &tensor, NULL), FL_OK);
        check_tensor(&tensor->dl_tensor, 1, (int64_t[]){0}, (int64_t[]){1});
        CHECK(!tensor->dl_tensor.data);
        tensor->deleter(tensor);
    }
    fl_slab_unref(&late);
    fl_slab_pool_unref(&pool);
    CHECK_INT(fl_memory_live(), 0);
}

static void test_dtypes(void)
{
    const struct {
        fl_dtype dtype;
        int code, bits;
    } table[] = {{FL_UINT8, 1, 8},     {FL_INT64, 0, 64},   {FL_FLOAT16, 2, 16},
                 {FL_BFLOAT16, 4, 16}, {FL_FLOAT32, 2, 32}, {FL_BOOL, 6, 8}};
    for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
        DLDataType dtype = fl_dlpack_dtype(table[i].dtype);
        CHECK_INT(dtype.code, table[i].code);
        CHECK_INT(dtype.bits, table[i].bits);
        CHECK_INT(dtype.lanes, 1);
    }
}

static void test_failures(void)
{
    fl_layout layout = make_layout();
    fl_slab_pool *pool = make_pool();
    fl_slab *slab = take(pool, layout.slab_size);
    fl_array array = fl_array_of_field(slab, &layout.fields[0], ROWS);
    fl_error error = FL_ERROR_INIT;
    DLManagedTensorVersioned *tensor = NULL;
    DLManagedTensor *legacy = NULL;
    for (int is_copy = 0; is_copy < 2; is_copy++) {
        fl_memory_fail_at(0);
        CHECK_INT(fl_array_export(&array, is_copy != 0, &tensor, &error),
                  FL_ERROR_NO_MEMORY);
        fl_memory_fail_at(0);
        CHECK_INT(fl_array_export_legacy(&array, is_copy != 0, &legacy, &error),
                  FL_ERROR_NO_MEMORY);
        fl_memory_fail_at(-1);
        CHECK(!tensor && !legacy);
    }
    fl_slab_unref(&slab);
    CHECK_INT(fl_slab_pool_read_usage(pool).out_slabs, 0);
    fl_slab_pool_unref(&pool);
    CHECK_INT(fl_memory_live(), 0);
}

enum { THREADS = 4, EXPORTS = 500 };

// Each thread exports one shared array and deletes it again, as consumers do.
static void export_run(void *argument)
{
    const fl_array *array = argument;
    for (int i = 0; i < EXPORTS; i++) {
        DLManagedTensorVersioned *tensor = NULL;
        DLManagedTensor *legacy = NULL;
        CHECK_INT(fl_array_export(array, i % 7 == 0, &tensor, NULL), FL_OK);
        CHECK_INT(fl_array_export_legacy(array, false, &legacy, NULL), FL_OK);
        CHECK_INT(((const int64_t *)tensor->dl_tensor.data)[0], 11);
        tensor->deleter(tensor);
        CHECK_INT(((const int64_t *)legacy->dl_tensor.data)[0], 11);
        legacy->deleter(legacy);
    }
    fl_slab *mine = array->slab;
    fl_slab_unref(&mine);
}

static void test_threads(void)
{
    fl_layout layout = make_layout();
    fl_slab_pool *pool = make_pool();
    fl_slab *slab = take(pool, layout.slab_size);
    fl_array array = fl_array_of_field(slab, &layout.fields[1], ROWS);
    ((int64_t *)(void *)array.data)[0] = 11;
    fl_thread threads[THREADS];
    for (int i = 1; i < THREADS; i++)
        fl_slab_ref(slab);
    for (int i = 0; i < THREADS; i++)
        CHECK_INT(fl_thread_start(&threads[i], "test", export_run, &array, NULL), FL_OK);
    for (int i = 0; i < THREADS; i++)
        fl_thread_join(&threads[i]);
    CHECK_INT(fl_slab_pool_read_usage(pool).out_slabs, 0);
    fl_slab_pool_unref(&pool);
    CHECK_INT(fl_memory_live(), 0);
}

int main(void)
{
    test_versioned();
    test_legacy();
    test_copy();
    test_parts();
    test_dtypes();
    test_failures();
    test_threads();
    return 0;
}
