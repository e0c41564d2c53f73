// SPDX-License-Identifier: MIT
#include "binding/op_list.h"

// One op's (name, numbers), both counted.
static int split_op(PyObject *op, PyObject **name, PyObject **numbers)
{
    PyObject *values;
    if (!PyTuple_Check(op) || !PyArg_ParseTuple(op, "UO", name, &values)) {
        PyErr_Clear();
        PyErr_Format(PyExc_TypeError, "an op is a tuple (name, numbers), not %R", op);
        return -1;
    }
    *numbers = PySequence_Tuple(values);
    return *numbers ? 0 : -1;
}

// Appends the numbers to `values`, which holds `used` of them.
static int append_values(fl_op_list *list, size_t *used, PyObject *numbers)
{
    Py_ssize_t count = PyTuple_GET_SIZE(numbers);
    double *larger =
        fl_realloc(list->values, (*used + (size_t)count) * sizeof(*list->values));
    if (!larger) {
        PyErr_NoMemory();
        return -1;
    }
    list->values = larger;
    for (Py_ssize_t i = 0; i < count; i++) {
        double value = PyFloat_AsDouble(PyTuple_GET_ITEM(numbers, i));
        if (value == -1.0 && PyErr_Occurred())
            return -1;
        list->values[(*used)++] = value;
    }
    list->specs[list->count].count = (int32_t)count;
    return 0;
}

static int append_op(fl_op_list *list, size_t *used, PyObject *op)
{
    PyObject *name, *numbers;
    if (split_op(op, &name, &numbers) < 0)
        return -1;
    int result = append_values(list, used, numbers);
    Py_DECREF(numbers);
    if (result < 0 || PyList_Append(list->names, name) < 0)
        return -1;
    list->specs[list->count].name = PyUnicode_AsUTF8(name);
    if (!list->specs[list->count].name)
        return -1;
    list->count++;
    return 0;
}

int fl_op_list_init(fl_op_list *list, PyObject *ops)
{
    size_t used = 0;
    PyObject *items = PySequence_Tuple(ops);
    list->names = PyList_New(0);
    if (!items || !list->names)
        goto fail;
    if (PyTuple_GET_SIZE(items) > FL_MAX_OPS) {
        PyErr_Format(PyExc_ValueError, "a chain has at most %d operations, not %zd",
                     FL_MAX_OPS, PyTuple_GET_SIZE(items));
        goto fail;
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(items); i++) {
        if (append_op(list, &used, PyTuple_GET_ITEM(items, i)) < 0)
            goto fail;
    }
    // Only now: the block of numbers may have moved.
    used = 0;
    for (int32_t i = 0; i < list->count; i++) {
        list->specs[i].values = list->values + used;
        used += (size_t)list->specs[i].count;
    }
    Py_DECREF(items);
    return 0;
fail:
    Py_XDECREF(items);
    fl_op_list_deinit(list);
    return -1;
}

void fl_op_list_deinit(fl_op_list *list)
{
    fl_free(list->values);
    Py_XDECREF(list->names);
    *list = (fl_op_list){0};
}

int fl_parse_pixel_layout(const char *name, fl_pixel_layout *out)
{
    static const struct {
        const char *name;
        fl_pixel_layout layout;
    } layouts[] = {
        {"NCHW", FL_LAYOUT_NCHW},
        {"NHWC", FL_LAYOUT_NHWC},
        {"channels_last", FL_LAYOUT_CHANNELS_LAST},
    };
    for (size_t i = 0; i < Py_ARRAY_LENGTH(layouts); i++) {
        if (strcmp(name, layouts[i].name) == 0) {
            *out = layouts[i].layout;
            return 0;
        }
    }
    PyErr_Format(PyExc_ValueError,
                 "layout must be 'NCHW', 'NHWC' or 'channels_last', not '%s'", name);
    return -1;
}
