// SPDX-License-Identifier: MIT
#include "binding/tensor.h"

#include "binding/output.h"

#include <stddef.h>
#include <structmember.h>

// Shapes go to Python, NumPy and the buffer protocol as they are.
_Static_assert(sizeof(Py_ssize_t) == sizeof(int64_t), "feedline needs a 64-bit system");

static fl_tensor *tensor_of(PyObject *self)
{
    return (fl_tensor *)self;
}

PyObject *fl_int_tuple(const int64_t *values, int32_t count)
{
    PyObject *tuple = PyTuple_New(count);
    for (int32_t i = 0; tuple && i < count; i++) {
        PyObject *value = PyLong_FromLongLong(values[i]);
        if (value)
            PyTuple_SET_ITEM(tuple, i, value);
        else
            Py_CLEAR(tuple);
    }
    return tuple;
}

PyObject *fl_tensor_make(const fl_module *state, const fl_array *array)
{
    fl_tensor *self = PyObject_New(fl_tensor, state->tensor_type);
    if (!self)
        return NULL;
    self->weak_references = NULL;
    self->array = *array;
    if (array->slab)
        fl_slab_ref(array->slab);
    Py_ssize_t item = (Py_ssize_t)fl_dtype_size(array->dtype);
    for (int32_t i = 0; i < array->dimensions; i++)
        self->byte_strides[i] = array->strides[i] * item;
    return (PyObject *)self;
}

static void tensor_dealloc(PyObject *self)
{
    fl_tensor *tensor = tensor_of(self);
    // Without a look at the list first: another thread may be taking itself off it.
    PyObject_ClearWeakRefs(self);
    fl_slab_unref(&tensor->array.slab);
    fl_free_instance(self);
}

static PyObject *tensor_shape(PyObject *self, void *ignored)
{
    (void)ignored;
    return fl_int_tuple(tensor_of(self)->array.shape, tensor_of(self)->array.dimensions);
}

static PyObject *tensor_strides(PyObject *self, void *ignored)
{
    (void)ignored;
    return fl_int_tuple(tensor_of(self)->array.strides,
                        tensor_of(self)->array.dimensions);
}

static PyObject *tensor_dtype(PyObject *self, void *ignored)
{
    (void)ignored;
    return PyUnicode_FromString(fl_dtype_name(tensor_of(self)->array.dtype));
}

static PyObject *tensor_ndim(PyObject *self, void *ignored)
{
    (void)ignored;
    return PyLong_FromLong(tensor_of(self)->array.dimensions);
}

static PyObject *tensor_nbytes(PyObject *self, void *ignored)
{
    (void)ignored;
    return PyLong_FromSize_t(tensor_of(self)->array.size);
}

static Py_ssize_t tensor_length(PyObject *self)
{
    const fl_array *array = &tensor_of(self)->array;
    if (array->dimensions > 0)
        return array->shape[0];
    PyErr_SetString(PyExc_TypeError, "a tensor without dimensions has no len()");
    return -1;
}

static PyObject *tensor_repr(PyObject *self)
{
    PyObject *shape = tensor_shape(self, NULL);
    if (!shape)
        return NULL;
    PyObject *text = PyUnicode_FromFormat("<feedline.Tensor shape=%R dtype=%s>", shape,
                                          fl_dtype_name(tensor_of(self)->array.dtype));
    Py_DECREF(shape);
    return text;
}

// Are the elements in memory in the order of the indices, the last one (or, for Fortran,
// the first one) running fastest?
static bool is_contiguous(const fl_array *array, bool is_fortran)
{
    int64_t expected = 1;
    if (array->size == 0)
        return true;
    for (int32_t i = 0; i < array->dimensions; i++) {
        int32_t axis = is_fortran ? i : array->dimensions - 1 - i;
        if (array->shape[axis] == 1)
            continue;
        if (array->strides[axis] != expected)
            return false;
        expected *= array->shape[axis];
    }
    return true;
}

// The struct module's code of the element type; NULL: it has none. Not const, as the
// buffer protocol is not; nobody writes there.
static char *buffer_format(fl_dtype dtype)
{
    switch (dtype) {
    case FL_UINT8:
        return "B";
    case FL_INT64:
        return sizeof(long) == sizeof(int64_t) ? "l" : "q";
    case FL_FLOAT16:
        return "e";
    case FL_FLOAT32:
        return "f";
    case FL_BOOL:
        return "?";
    case FL_BFLOAT16:
        break;
    }
    return NULL;
}

static bool has_flags(int flags, int wanted)
{
    return (flags & wanted) == wanted;
}

// Why a request cannot be met, or NULL.
static const char *buffer_obstacle(const fl_array *array, int flags)
{
    if (!buffer_format(array->dtype))
        return "the buffer protocol has no bfloat16; use .torch(), .numpy() or DLPack";
    bool is_c = is_contiguous(array, false), is_fortran = is_contiguous(array, true);
    if (has_flags(flags, PyBUF_C_CONTIGUOUS) && !is_c)
        return "the tensor is not C-contiguous";
    if (has_flags(flags, PyBUF_F_CONTIGUOUS) && !is_fortran)
        return "the tensor is not Fortran-contiguous";
    if (has_flags(flags, PyBUF_ANY_CONTIGUOUS) && !is_c && !is_fortran)
        return "the tensor is not contiguous";
    if (!has_flags(flags, PyBUF_STRIDES) && !is_c)
        return "the tensor is not C-contiguous; ask for strides";
    return NULL;
}

static int tensor_getbuffer(PyObject *self, Py_buffer *view, int flags)
{
    fl_tensor *tensor = tensor_of(self);
    const fl_array *array = &tensor->array;
    const char *obstacle = buffer_obstacle(array, flags);
    view->obj = NULL;
    if (obstacle) {
        PyErr_SetString(PyExc_BufferError, obstacle);
        return -1;
    }
    // An empty tensor has no memory; some address is asked for all the same.
    view->buf = array->size > 0 ? (void *)array->data : (void *)self;
    view->len = (Py_ssize_t)array->size;
    view->readonly = 0;
    view->itemsize = (Py_ssize_t)fl_dtype_size(array->dtype);
    view->format = has_flags(flags, PyBUF_FORMAT) ? buffer_format(array->dtype) : NULL;
    // Who does not ask for a shape sees bytes in a row, as memoryview has it.
    view->ndim = has_flags(flags, PyBUF_ND) ? array->dimensions : 1;
    view->shape = has_flags(flags, PyBUF_ND) ? (Py_ssize_t *)tensor->array.shape : NULL;
    view->strides = has_flags(flags, PyBUF_STRIDES) ? tensor->byte_strides : NULL;
    view->suboffsets = NULL;
    view->internal = NULL;
    view->obj = Py_NewRef(self);
    return 0;
}

static PyObject *convert(PyObject *self, const char *name)
{
    fl_output output;
    if (fl_output_init(&output, name) < 0)
        return NULL;
    PyObject *made =
        fl_output_make(fl_module_of_instance(self), &output, &tensor_of(self)->array);
    fl_output_deinit(&output);
    return made;
}

static PyObject *tensor_numpy(PyObject *self, PyObject *ignored)
{
    (void)ignored;
    return convert(self, "numpy");
}

static PyObject *tensor_torch(PyObject *self, PyObject *ignored)
{
    (void)ignored;
    return convert(self, "torch");
}

#if PY_VERSION_HEX < 0x030C0000
// Later versions make it from the buffer protocol by themselves.
static PyObject *tensor_buffer(PyObject *self, PyObject *argument)
{
    long flags = PyLong_AsLong(argument);
    if (flags == -1 && PyErr_Occurred())
        return NULL;
    const char *obstacle = buffer_obstacle(&tensor_of(self)->array, (int)flags);
    if (!obstacle)
        return PyMemoryView_FromObject(self);
    PyErr_SetString(PyExc_BufferError, obstacle);
    return NULL;
}
#endif

static PyMethodDef tensor_methods[] = {
#if PY_VERSION_HEX < 0x030C0000
    {"__buffer__", tensor_buffer, METH_O,
     "__buffer__($self, flags, /)\n--\n\nA memoryview of the same memory."},
#endif
    {"__dlpack__", (PyCFunction)(void (*)(void))fl_tensor_dlpack,
     METH_VARARGS | METH_KEYWORDS,
     "__dlpack__($self, /, *, stream=None, max_version=None, dl_device=None, "
     "copy=None)\n--\n\n"
     "A DLPack capsule: the versioned form if max_version says 1.0 or later."},
    {"__dlpack_device__", fl_tensor_dlpack_device, METH_NOARGS,
     "__dlpack_device__($self, /)\n--\n\n(1, 0): memory of the CPU, pinned or not."},
    {"numpy", tensor_numpy, METH_NOARGS,
     "numpy($self, /)\n--\n\nA writable ndarray of the same memory."},
    {"torch", tensor_torch, METH_NOARGS,
     "torch($self, /)\n--\n\nA torch.Tensor of the same memory."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef tensor_properties[] = {
    {"shape", tensor_shape, NULL, "Length of each dimension.", NULL},
    {"strides", tensor_strides, NULL, "Steps between elements, in elements.", NULL},
    {"dtype", tensor_dtype, NULL, "Name of the element type.", NULL},
    {"ndim", tensor_ndim, NULL, "Number of dimensions.", NULL},
    {"nbytes", tensor_nbytes, NULL, "Bytes of all elements.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMemberDef tensor_members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(fl_tensor, weak_references), READONLY,
     NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot tensor_slots[] = {
    {Py_tp_doc, "A typed view of a batch's memory, which lives as long as any view of "
                "it."},
    {Py_tp_dealloc, tensor_dealloc},
    {Py_tp_repr, tensor_repr},
    {Py_tp_methods, tensor_methods},
    {Py_tp_getset, tensor_properties},
    {Py_tp_members, tensor_members},
    {Py_sq_length, tensor_length},
    {Py_bf_getbuffer, tensor_getbuffer},
    {0, NULL},
};

static PyType_Spec tensor_spec = {
    .name = "feedline._core.Tensor",
    .basicsize = sizeof(fl_tensor),
    .flags =
        Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = tensor_slots,
};

int fl_bind_tensor(PyObject *module, fl_module *state)
{
    state->tensor_type = fl_add_type(module, &tensor_spec);
    return state->tensor_type ? 0 : -1;
}
