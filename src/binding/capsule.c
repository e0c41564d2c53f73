// SPDX-License-Identifier: MIT
// __dlpack__ and __dlpack_device__: capsules around the core's exports. A capsule that
// nobody consumed deletes its export; a consumer renames it and calls the deleter itself,
// on whatever thread and at whatever time.
#include "binding/tensor.h"

static const char *const legacy_name = "dltensor";
static const char *const versioned_name = "dltensor_versioned";

static void drop_legacy(PyObject *capsule)
{
    if (!PyCapsule_IsValid(capsule, legacy_name))
        return;
    DLManagedTensor *tensor = PyCapsule_GetPointer(capsule, legacy_name);
    tensor->deleter(tensor);
}

static void drop_versioned(PyObject *capsule)
{
    if (!PyCapsule_IsValid(capsule, versioned_name))
        return;
    DLManagedTensorVersioned *tensor = PyCapsule_GetPointer(capsule, versioned_name);
    tensor->deleter(tensor);
}

static PyObject *make_legacy(const fl_module *state, const fl_array *array, bool is_copy)
{
    fl_error error = FL_ERROR_INIT;
    DLManagedTensor *tensor;
    if (fl_array_export_legacy(array, is_copy, &tensor, &error) != FL_OK)
        return fl_raise(state, &error);
    PyObject *capsule = PyCapsule_New(tensor, legacy_name, drop_legacy);
    if (!capsule)
        tensor->deleter(tensor);
    return capsule;
}

static PyObject *make_versioned(const fl_module *state, const fl_array *array,
                                bool is_copy)
{
    fl_error error = FL_ERROR_INIT;
    DLManagedTensorVersioned *tensor;
    if (fl_array_export(array, is_copy, &tensor, &error) != FL_OK)
        return fl_raise(state, &error);
    PyObject *capsule = PyCapsule_New(tensor, versioned_name, drop_versioned);
    if (!capsule)
        tensor->deleter(tensor);
    return capsule;
}

// A tuple of two integers; false with an exception set.
static bool parse_pair(PyObject *value, const char *name, long pair[2])
{
    if (!PyTuple_Check(value) || PyTuple_GET_SIZE(value) != 2) {
        PyErr_Format(PyExc_TypeError,
                     "%s must be a tuple of two integers or None, not %R", name, value);
        return false;
    }
    for (Py_ssize_t i = 0; i < 2; i++) {
        pair[i] = PyLong_AsLong(PyTuple_GET_ITEM(value, i));
        if (pair[i] == -1 && PyErr_Occurred())
            return false;
    }
    return true;
}

static bool check_device(PyObject *device)
{
    long pair[2];
    if (device == Py_None)
        return true;
    if (!parse_pair(device, "dl_device", pair))
        return false;
    if (pair[0] == kDLCPU && pair[1] == 0)
        return true;
    PyErr_Format(PyExc_BufferError,
                 "a batch lies in the memory of the CPU, device (1, 0), and cannot be "
                 "exported to device (%ld, %ld)",
                 pair[0], pair[1]);
    return false;
}

PyObject *fl_tensor_dlpack(PyObject *self, PyObject *args, PyObject *keywords)
{
    static const char *const names[] = {"stream", "max_version", "dl_device", "copy",
                                        NULL};
    char *list[sizeof(names) / sizeof(names[0])];
    memcpy(list, names, sizeof(list)); // the parser's prototype lacks a const
    PyObject *stream = Py_None, *max_version = Py_None, *device = Py_None;
    PyObject *copy = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "|$OOOO:__dlpack__", list, &stream,
                                     &max_version, &device, &copy))
        return NULL;
    if (stream != Py_None) {
        PyErr_SetString(PyExc_BufferError,
                        "stream must be None: a batch lies in the memory of the CPU");
        return NULL;
    }
    if (!check_device(device))
        return NULL;
    int is_copy = copy == Py_None ? 0 : PyObject_IsTrue(copy);
    if (is_copy < 0)
        return NULL;
    long version[2] = {0, 0};
    if (max_version != Py_None && !parse_pair(max_version, "max_version", version))
        return NULL;

    const fl_module *state = fl_module_of_instance(self);
    const fl_array *array = &((fl_tensor *)self)->array;
    return version[0] >= 1 ? make_versioned(state, array, is_copy != 0)
                           : make_legacy(state, array, is_copy != 0);
}

PyObject *fl_tensor_dlpack_device(PyObject *self, PyObject *ignored)
{
    (void)self;
    (void)ignored;
    return Py_BuildValue("(ii)", kDLCPU, 0);
}
