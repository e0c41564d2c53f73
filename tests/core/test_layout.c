// SPDX-License-Identifier: MIT
// Where fields and late rows lie in a slab; sizes that overflow.
#include "base/memory.h"
#include "batch/layout.h"
#include "check.h"

#include <stdint.h>

static fl_row_shape shape3(int64_t a, int64_t b, int64_t c)
{
    return fl_row_shape_contiguous(3, (int64_t[]){a, b, c});
}

static void test_row_shape(void)
{
    fl_row_shape row = shape3(3, 5, 7);
    CHECK_INT(row.dimensions, 3);
    CHECK_INT(row.strides[0], 35);
    CHECK_INT(row.strides[1], 7);
    CHECK_INT(row.strides[2], 1);
    size_t size = 0;
    CHECK(fl_row_shape_size(&row, FL_FLOAT32, &size));
    CHECK_INT(size, 3 * 5 * 7 * 4);
    CHECK(fl_row_shape_size(&row, FL_BFLOAT16, &size));
    CHECK_INT(size, 3 * 5 * 7 * 2);

    fl_row_shape scalar = fl_row_shape_contiguous(0, NULL);
    CHECK(fl_row_shape_size(&scalar, FL_INT64, &size));
    CHECK_INT(size, 8);

    fl_row_shape empty = shape3(3, 0, 7);
    CHECK(fl_row_shape_size(&empty, FL_UINT8, &size));
    CHECK_INT(size, 0);

    size = 77;
    fl_row_shape large = shape3(INT64_MAX, 2, 2);
    CHECK(!fl_row_shape_size(&large, FL_UINT8, &size));
    fl_row_shape negative = shape3(3, -1, 2);
    CHECK(!fl_row_shape_size(&negative, FL_UINT8, &size));
    CHECK_INT(size, 77);
}

static void test_plan(void)
{
    fl_layout layout = {.rows = 10, .field_count = 5};
    layout.fields[0] =
        (fl_field_layout){.name = "image", .dtype = FL_UINT8, .row = shape3(3, 5, 7)};
    layout.fields[1] =
        (fl_field_layout){.name = "raw", .dtype = FL_UINT8, .is_late = true};
    layout.fields[2] = (fl_field_layout){.name = "label", .dtype = FL_INT64};
    layout.fields[3] =
        (fl_field_layout){.name = "text", .dtype = FL_UINT8, .is_late = true};
    layout.fields[4] = (fl_field_layout){.name = "valid", .dtype = FL_BOOL};
    CHECK_INT(fl_layout_plan(&layout, NULL), FL_OK);
    CHECK_INT(layout.late_count, 2);
    CHECK_INT(layout.fields[0].offset, 0);
    CHECK_INT(layout.fields[0].row_size, 105);
    CHECK_INT(layout.fields[0].late_slot, -1);
    CHECK_INT(layout.fields[1].late_slot, 0);
    CHECK_INT(layout.fields[2].offset, 1280); // 1050 bytes, then up to 256
    CHECK_INT(layout.fields[2].row_size, 8);
    CHECK_INT(layout.fields[3].late_slot, 1);
    CHECK_INT(layout.fields[4].offset, 1536); // 1280 + 80, then up to 256
    CHECK_INT(layout.slab_size, 1546);
    CHECK_INT(fl_layout_plan(&layout, NULL), FL_OK); // again: the same
    CHECK_INT(layout.late_count, 2);
    CHECK_INT(layout.slab_size, 1546);
}

static void test_plan_overflow(void)
{
    fl_error error = FL_ERROR_INIT;
    fl_layout layout = {.rows = INT32_MAX, .field_count = 1};
    layout.fields[0] = (fl_field_layout){
        .name = "image", .dtype = FL_FLOAT32, .row = shape3(3, 1 << 20, 1 << 20)};
    CHECK_INT(fl_layout_plan(&layout, &error), FL_ERROR_LIMIT);
    CHECK_CONTAINS(error.message, "'image'");
    CHECK_CONTAINS(error.message, "batch size");
    layout.rows = 1;
    layout.fields[0].row = shape3(INT64_MAX, INT64_MAX, 1);
    CHECK_INT(fl_layout_plan(&layout, &error), FL_ERROR_LIMIT);
    fl_error_clear(&error);
}

static fl_part make_part(const char *text)
{
    size_t size = strlen(text);
    fl_part part = {.size = size};
    CHECK_INT(fl_buffer_create(size, &part.data, NULL), FL_OK);
    memcpy(part.data->data, text, size);
    part.data->size = size;
    return part;
}

static void test_parts(void)
{
    char hundred[101] = {0};
    memset(hundred, 'x', 100);
    fl_part parts[4] = {make_part("first"), make_part(hundred), {0}, make_part("last")};
    size_t size = 0;
    CHECK_INT(fl_parts_layout(parts, 4, &size, NULL), FL_OK);
    CHECK_INT(parts[0].offset, 0);
    CHECK_INT(parts[1].offset, 64);
    CHECK_INT(parts[2].offset, 192); // 164, then up to 64; empty
    CHECK_INT(parts[3].offset, 192);
    CHECK_INT(size, 196);
    uint8_t *memory = fl_alloc_zeroed(size);
    CHECK(memory);
    fl_parts_copy(parts, 4, memory);
    CHECK(memcmp(memory, "first", 6) == 0);
    CHECK(memcmp(memory + 64, hundred, 100) == 0);
    CHECK_INT(memory[164], 0);
    CHECK(memcmp(memory + 192, "last", 4) == 0);
    for (int i = 0; i < 4; i++)
        CHECK(!parts[i].data);
    fl_free(memory);

    fl_part dropped[2] = {make_part("a"), make_part("b")};
    fl_parts_drop(dropped, 2);
    fl_parts_drop(dropped, 2);
    CHECK_INT(fl_memory_live(), 0);
}

static void test_parts_overflow(void)
{
    fl_error error = FL_ERROR_INIT;
    size_t size = 5;
    fl_part parts[2] = {{.size = SIZE_MAX - 32}, {.size = 1}};
    CHECK_INT(fl_parts_layout(parts, 2, &size, &error), FL_ERROR_LIMIT);
    CHECK_INT(size, 5);
    parts[0].size = SIZE_MAX / 2 + 1;
    parts[1].size = SIZE_MAX / 2 + 1;
    CHECK_INT(fl_parts_layout(parts, 2, &size, &error), FL_ERROR_LIMIT);
    CHECK_CONTAINS(error.message, "batch size");
    fl_error_clear(&error);
}

int main(void)
{
    test_row_shape();
    test_plan();
    test_plan_overflow();
    test_parts();
    test_parts_overflow();
    return 0;
}
