// SPDX-License-Identifier: MIT
// The type Cursor and the functions permutation and philox: the order as tests and
// Python's iterators see it. Immutable, so nothing needs a lock.
#include "binding/module.h"

#include "binding/numpy.h"

typedef struct cursor_object {
    PyObject_HEAD
    fl_cursor *cursor; // owned
} cursor_object;

// A converter for "O&": an integer in [0, 2^64).
static int parse_u64(PyObject *object, void *out)
{
    PyObject *number = PyNumber_Index(object);
    if (!number)
        return 0;
    unsigned long long value = PyLong_AsUnsignedLongLong(number);
    if (value == (unsigned long long)-1 && PyErr_ExceptionMatches(PyExc_OverflowError))
        PyErr_Format(PyExc_ValueError, "seed and epoch must be in [0, 2**64 - 1], not %S",
                     number);
    Py_DECREF(number);
    if (PyErr_Occurred())
        return 0;
    *(uint64_t *)out = value;
    return 1;
}

// The same for [0, 2^32).
static int parse_u32(PyObject *object, void *out)
{
    PyObject *number = PyNumber_Index(object);
    if (!number)
        return 0;
    int overflow;
    long long value = PyLong_AsLongLongAndOverflow(number, &overflow);
    bool is_good = !overflow && value >= 0 && value <= UINT32_MAX;
    if (!is_good)
        PyErr_Format(PyExc_ValueError, "a word must be in [0, 2**32 - 1], not %S",
                     number);
    Py_DECREF(number);
    if (!is_good)
        return 0;
    *(uint32_t *)out = (uint32_t)value;
    return 1;
}

static int parse_uneven(PyObject *object, void *out)
{
    static const char *const names[] = {
        [FL_UNEVEN_PAD] = "pad", [FL_UNEVEN_DROP] = "drop", [FL_UNEVEN_MASK] = "mask"};
    for (int i = 0; PyUnicode_Check(object) && i < (int)Py_ARRAY_LENGTH(names); i++) {
        if (PyUnicode_CompareWithASCIIString(object, names[i]) == 0) {
            *(fl_uneven *)out = (fl_uneven)i;
            return 1;
        }
    }
    PyErr_Format(PyExc_ValueError, "uneven must be \"pad\", \"drop\" or \"mask\", not %R",
                 object);
    return 0;
}

static PyObject *cursor_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    static const char *const names[] = {"count",  "shuffle",    "seed", "epoch",
                                        "start",  "batch_size", "rank", "world_size",
                                        "uneven", "drop_last",  NULL};
    char *list[sizeof(names) / sizeof(names[0])];
    memcpy(list, names, sizeof(list)); // the parser's prototype lacks a const
    long long count, start, batch_size, rank, world;
    int shuffle, drop_last;
    fl_cursor_spec spec = {0};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "$LpO&O&LLLLO&p:Cursor", list, &count,
                                     &shuffle, parse_u64, &spec.seed, parse_u64,
                                     &spec.epoch, &start, &batch_size, &rank, &world,
                                     parse_uneven, &spec.uneven, &drop_last))
        return NULL;
    spec.count = count;
    spec.shuffle = shuffle != 0;
    spec.start = start;
    spec.batch_size = batch_size;
    spec.rank = rank;
    spec.world = world;
    spec.drop_last = drop_last != 0;

    cursor_object *self = (cursor_object *)type->tp_alloc(type, 0);
    if (!self)
        return NULL;
    fl_error error = FL_ERROR_INIT;
    if (fl_cursor_create(&spec, &self->cursor, &error) != FL_OK) {
        Py_DECREF(self);
        return fl_raise(fl_module_of_type((PyObject *)type), &error);
    }
    return (PyObject *)self;
}

static const fl_cursor *cursor_of(PyObject *self)
{
    return ((cursor_object *)self)->cursor;
}

// A number of batches in [0, limit], -1 with IndexError set.
static Py_ssize_t parse_number(PyObject *self, PyObject *object, bool is_count)
{
    Py_ssize_t number = PyNumber_AsSsize_t(object, PyExc_IndexError);
    if (number == -1 && PyErr_Occurred())
        return -1;
    Py_ssize_t batches = fl_cursor_batches(cursor_of(self));
    if (number >= 0 && number < batches + (is_count ? 1 : 0))
        return number;
    PyErr_Format(PyExc_IndexError, "%s %zd is out of range: the run has %zd batches",
                 is_count ? "a count of" : "batch", number, batches);
    return -1;
}

static PyObject *cursor_rows(PyObject *self, PyObject *object)
{
    Py_ssize_t number = parse_number(self, object, false);
    if (number < 0)
        return NULL;
    return PyLong_FromLongLong(fl_cursor_rows(cursor_of(self), number));
}

static PyObject *cursor_batch(PyObject *self, PyObject *object)
{
    enum { COLUMNS = 4 };
    Py_ssize_t number = parse_number(self, object, false);
    if (number < 0)
        return NULL;
    const fl_cursor *cursor = cursor_of(self);
    npy_intp shape[] = {fl_cursor_rows(cursor, number), COLUMNS};
    PyObject *array = PyArray_SimpleNew(2, shape, NPY_INT64);
    if (!array)
        return NULL;
    int64_t *values = PyArray_DATA((PyArrayObject *)array);
    Py_BEGIN_ALLOW_THREADS
    for (npy_intp row = 0; row < shape[0]; row++, values += COLUMNS) {
        fl_place place = fl_cursor_place(cursor, number, row);
        values[0] = place.position;
        values[1] = place.random_position;
        values[2] = place.index;
        values[3] = place.is_valid;
    }
    Py_END_ALLOW_THREADS
    return array;
}

static PyObject *cursor_position(PyObject *self, PyObject *object)
{
    Py_ssize_t delivered = parse_number(self, object, true);
    if (delivered < 0)
        return NULL;
    return PyLong_FromLongLong(fl_cursor_position(cursor_of(self), delivered));
}

static PyObject *cursor_batches(PyObject *self, void *ignored)
{
    (void)ignored;
    return PyLong_FromLongLong(fl_cursor_batches(cursor_of(self)));
}

static void cursor_dealloc(PyObject *self)
{
    fl_cursor_destroy(((cursor_object *)self)->cursor);
    fl_free_instance(self);
}

static PyMethodDef cursor_methods[] = {
    {"rows", cursor_rows, METH_O, "rows($self, number, /)\n--\n\n"},
    {"batch", cursor_batch, METH_O,
     "batch($self, number, /)\n--\n\n"
     "int64 (rows, 4): position, random position, index, valid."},
    {"position", cursor_position, METH_O,
     "position($self, delivered, /)\n--\n\nThe position for the state."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef cursor_properties[] = {
    {"batches", cursor_batches, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot cursor_slots[] = {
    {Py_tp_doc,
     "Cursor(*, count, shuffle, seed, epoch, start, batch_size, rank, world_size, "
     "uneven, "
     "drop_last)\n--\n\n"
     "One run over an epoch: which sample is in row r of batch g on this rank."},
    {Py_tp_new, cursor_new},
    {Py_tp_dealloc, cursor_dealloc},
    {Py_tp_methods, cursor_methods},
    {Py_tp_getset, cursor_properties},
    {0, NULL},
};

static PyType_Spec cursor_spec = {
    .name = "feedline._core.Cursor",
    .basicsize = sizeof(cursor_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = cursor_slots,
};

static PyObject *permutation(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static const char *const names[] = {"count", "seed", "epoch", "start", "stop", NULL};
    char *list[sizeof(names) / sizeof(names[0])];
    memcpy(list, names, sizeof(list)); // the parser's prototype lacks a const
    long long count, start, stop;
    uint64_t seed, epoch;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "LO&O&LL:permutation", list, &count,
                                     parse_u64, &seed, parse_u64, &epoch, &start, &stop))
        return NULL;
    if (start < 0 || start > stop || stop > count)
        return PyErr_Format(
            PyExc_ValueError,
            "start and stop must be 0 <= start <= stop <= count, not %lld "
            "and %lld for a count of %lld",
            start, stop, count);
    fl_permutation *order = NULL;
    fl_error error = FL_ERROR_INIT;
    if (fl_permutation_create(count, seed, epoch, &order, &error) != FL_OK)
        return fl_raise(fl_module_of(module), &error);
    npy_intp length = (npy_intp)(stop - start);
    PyObject *array = PyArray_SimpleNew(1, &length, NPY_INT64);
    if (array) {
        int64_t *values = PyArray_DATA((PyArrayObject *)array);
        Py_BEGIN_ALLOW_THREADS
        for (npy_intp i = 0; i < length; i++)
            values[i] = fl_permutation_at(order, start + i);
        Py_END_ALLOW_THREADS
    }
    fl_permutation_destroy(order);
    return array;
}

static PyObject *philox(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static const char *const names[] = {"counter", "key", NULL};
    char *list[sizeof(names) / sizeof(names[0])];
    memcpy(list, names, sizeof(list)); // the parser's prototype lacks a const
    (void)module;
    uint32_t c[4], k[2], out[4];
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "(O&O&O&O&)(O&O&):philox", list,
                                     parse_u32, &c[0], parse_u32, &c[1], parse_u32, &c[2],
                                     parse_u32, &c[3], parse_u32, &k[0], parse_u32,
                                     &k[1]))
        return NULL;
    fl_philox(c, k, out);
    return Py_BuildValue("(kkkk)", (unsigned long)out[0], (unsigned long)out[1],
                         (unsigned long)out[2], (unsigned long)out[3]);
}

static PyMethodDef order_methods[] = {
    {"permutation", (PyCFunction)(void (*)(void))permutation,
     METH_VARARGS | METH_KEYWORDS,
     "permutation($module, count, seed, epoch, start, stop)\n--\n\n"
     "The samples at positions start to stop of a shuffled epoch."},
    {"philox", (PyCFunction)(void (*)(void))philox, METH_VARARGS | METH_KEYWORDS,
     "philox($module, counter, key)\n--\n\nOne block of Philox4x32-10."},
    {NULL, NULL, 0, NULL},
};

int fl_bind_order(PyObject *module, fl_module *state)
{
    state->cursor_type = fl_add_type(module, &cursor_spec);
    if (!state->cursor_type)
        return -1;
    return PyModule_AddFunctions(module, order_methods);
}
