// SPDX-License-Identifier: MIT
#include "binding/output.h"

#include "binding/numpy.h"
#include "binding/tensor.h"

static int import_bfloat16(fl_output *output)
{
    PyObject *module = PyImport_ImportModule("ml_dtypes");
    if (!module) {
        if (!PyErr_ExceptionMatches(PyExc_ImportError))
            return -1;
        PyErr_Clear();
        return 0;
    }
    PyObject *type = PyObject_GetAttrString(module, "bfloat16");
    Py_DECREF(module);
    PyArray_Descr *descriptor = NULL;
    if (type && PyArray_DescrConverter(type, &descriptor))
        output->bfloat16 = (PyObject *)descriptor;
    Py_XDECREF(type);
    return output->bfloat16 ? 0 : -1;
}

// The table of torch's functions in C, if this torch has one that we understand.
static const DLPackExchangeAPI *find_exchange(PyObject *tensor_type)
{
    PyObject *capsule = PyObject_GetAttrString(tensor_type, "__dlpack_c_exchange_api__");
    const DLPackExchangeAPIHeader *header = NULL;
    if (capsule && PyCapsule_IsValid(capsule, "dlpack_exchange_api"))
        header = PyCapsule_GetPointer(capsule, "dlpack_exchange_api");
    Py_XDECREF(capsule);
    PyErr_Clear();
    while (header && header->version.major != DLPACK_MAJOR_VERSION)
        header = header->prev_api;
    return (const DLPackExchangeAPI *)header; // its first member
}

static int import_torch(fl_output *output)
{
    PyObject *torch = PyImport_ImportModule("torch");
    if (!torch) {
        if (PyErr_ExceptionMatches(PyExc_ModuleNotFoundError)) {
            PyErr_Clear();
            PyErr_SetString(PyExc_ImportError,
                            "torch tensors were asked for, and torch is not installed: "
                            "pip install torch");
        }
        return -1;
    }
    PyObject *type = PyObject_GetAttrString(torch, "Tensor");
    if (type)
        output->exchange = find_exchange(type);
    if (type && !output->exchange)
        output->from_dlpack = PyObject_GetAttrString(torch, "from_dlpack");
    Py_XDECREF(type);
    Py_DECREF(torch);
    return output->exchange || output->from_dlpack ? 0 : -1;
}

int fl_output_init(fl_output *output, const char *name)
{
    *output = (fl_output){0};
    if (strcmp(name, "dlpack") == 0) {
        output->kind = FL_OUTPUT_DLPACK;
        return 0;
    }
    if (strcmp(name, "numpy") == 0) {
        output->kind = FL_OUTPUT_NUMPY;
        return import_bfloat16(output);
    }
    if (strcmp(name, "torch") == 0) {
        output->kind = FL_OUTPUT_TORCH;
        return import_torch(output);
    }
    PyErr_Format(PyExc_ValueError,
                 "output must be 'dlpack', 'numpy' or 'torch', not '%s'", name);
    return -1;
}

void fl_output_deinit(fl_output *output)
{
    Py_CLEAR(output->bfloat16);
    Py_CLEAR(output->from_dlpack);
}

int fl_output_check(const fl_output *output, fl_dtype dtype)
{
    if (output->kind != FL_OUTPUT_NUMPY || dtype != FL_BFLOAT16 || output->bfloat16)
        return 0;
    PyErr_SetString(PyExc_TypeError,
                    "NumPy has no bfloat16 by itself: pip install ml_dtypes, or take "
                    "torch tensors (output='torch', .torch())");
    return -1;
}

// A new reference; NULL with an exception set.
static PyArray_Descr *find_descriptor(const fl_output *output, fl_dtype dtype)
{
    switch (dtype) {
    case FL_UINT8:
        return PyArray_DescrFromType(NPY_UINT8);
    case FL_INT64:
        return PyArray_DescrFromType(NPY_INT64);
    case FL_FLOAT16:
        return PyArray_DescrFromType(NPY_FLOAT16);
    case FL_FLOAT32:
        return PyArray_DescrFromType(NPY_FLOAT32);
    case FL_BOOL:
        return PyArray_DescrFromType(NPY_BOOL);
    case FL_BFLOAT16:
        if (fl_output_check(output, dtype) == 0)
            return (PyArray_Descr *)Py_NewRef(output->bfloat16);
        break;
    }
    return NULL;
}

// Its base is a Tensor, which holds the slab.
static PyObject *make_ndarray(const fl_module *state, const fl_output *output,
                              const fl_array *array)
{
    PyArray_Descr *descriptor = find_descriptor(output, array->dtype);
    if (!descriptor)
        return NULL;
    PyObject *base = fl_tensor_make(state, array);
    if (!base) {
        Py_DECREF(descriptor);
        return NULL;
    }
    fl_tensor *tensor = (fl_tensor *)base;
    // An empty array has no memory: NumPy makes some of its own.
    void *data = array->size > 0 ? array->data : NULL;
    PyObject *made = PyArray_NewFromDescr(
        &PyArray_Type, descriptor, array->dimensions, tensor->array.shape,
        data ? tensor->byte_strides : NULL, data, NPY_ARRAY_WRITEABLE, NULL);
    if (!made || !data) {
        Py_DECREF(base);
        return made;
    }
    if (PyArray_SetBaseObject((PyArrayObject *)made, base) < 0) // takes base, always
        Py_CLEAR(made);
    return made;
}

static PyObject *make_torch(const fl_module *state, const fl_output *output,
                            const fl_array *array)
{
    if (!output->exchange) {
        PyObject *tensor = fl_tensor_make(state, array);
        if (!tensor)
            return NULL;
        PyObject *made = PyObject_CallOneArg(output->from_dlpack, tensor);
        Py_DECREF(tensor);
        return made;
    }
    fl_error error = FL_ERROR_INIT;
    DLManagedTensorVersioned *managed;
    if (fl_array_export(array, false, &managed, &error) != FL_OK)
        return fl_raise(state, &error);
    void *made = NULL;
    // Takes the export, also when it fails.
    if (output->exchange->managed_tensor_to_py_object_no_sync(managed, &made) != 0)
        return NULL;
    return made;
}

PyObject *fl_output_make(const fl_module *state, const fl_output *output,
                         const fl_array *array)
{
    switch (output->kind) {
    case FL_OUTPUT_DLPACK:
        return fl_tensor_make(state, array);
    case FL_OUTPUT_NUMPY:
        return make_ndarray(state, output, array);
    case FL_OUTPUT_TORCH:
        return make_torch(state, output, array);
    }
    return NULL;
}

PyObject *fl_numpy_make(const fl_module *state, const fl_array *array)
{
    static const fl_output numpy = {.kind = FL_OUTPUT_NUMPY};
    return make_ndarray(state, &numpy, array);
}
