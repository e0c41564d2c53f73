// SPDX-License-Identifier: MIT
// The type Catalog. Paths come and go as bytes. Immutable, so nothing needs a lock.
#include "binding/module.h"

#include "binding/numpy.h"

typedef struct catalog_object {
    PyObject_HEAD
    fl_catalog *catalog; // a reference of its own
} catalog_object;

// Bytes objects seen by the core: `texts` points into those that `owner` holds.
typedef struct text_list {
    PyObject *owner; // a tuple
    fl_text *texts;
    Py_ssize_t count;
} text_list;

fl_catalog *fl_catalog_of_object(PyObject *catalog)
{
    return ((catalog_object *)catalog)->catalog;
}

static void text_list_clear(text_list *list)
{
    fl_free(list->texts);
    Py_CLEAR(list->owner);
}

// The tuple keeps the bytes alive and in place while the GIL is released, whatever
// happens to the sequence that the caller gave.
static int text_list_make(text_list *list, PyObject *sequence, const char *name)
{
    *list = (text_list){.owner = PySequence_Tuple(sequence)};
    if (!list->owner)
        return -1;
    list->count = PyTuple_GET_SIZE(list->owner);
    list->texts = fl_alloc_array((size_t)list->count, sizeof(*list->texts));
    if (!list->texts) {
        PyErr_NoMemory();
        text_list_clear(list);
        return -1;
    }
    for (Py_ssize_t i = 0; i < list->count; i++) {
        PyObject *item = PyTuple_GET_ITEM(list->owner, i);
        if (!PyBytes_Check(item)) {
            PyErr_Format(PyExc_TypeError, "%s[%zd] must be bytes, not %s", name, i,
                         Py_TYPE(item)->tp_name);
            text_list_clear(list);
            return -1;
        }
        list->texts[i] =
            (fl_text){PyBytes_AS_STRING(item), (size_t)PyBytes_GET_SIZE(item)};
    }
    return 0;
}

// Takes the reference, also on failure.
static PyObject *make_object(const fl_module *state, fl_catalog *catalog)
{
    PyTypeObject *type = state->catalog_type;
    catalog_object *self = (catalog_object *)type->tp_alloc(type, 0);
    if (self)
        self->catalog = catalog;
    else
        fl_catalog_unref(&catalog);
    return (PyObject *)self;
}

static PyObject *catalog_scan_folder(PyObject *type, PyObject *args, PyObject *kwargs)
{
    static const char *const names[] = {"root", "extensions", "allow_empty", "threads",
                                        NULL};
    char *keywords[sizeof(names) / sizeof(names[0])];
    memcpy(keywords, names, sizeof(keywords)); // the parser's prototype lacks a const
    const fl_module *state = fl_module_of_type(type);
    const char *root;
    PyObject *extensions;
    int allow_empty, threads;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "yOpi:scan_folder", keywords, &root,
                                     &extensions, &allow_empty, &threads))
        return NULL;
    text_list list;
    if (text_list_make(&list, extensions, "extensions") < 0)
        return NULL;
    if (list.count > INT32_MAX) {
        text_list_clear(&list);
        return PyErr_Format(PyExc_ValueError, "there are too many extensions");
    }

    fl_catalog *catalog = NULL;
    fl_error error = FL_ERROR_INIT;
    fl_status status;
    Py_BEGIN_ALLOW_THREADS
    status = fl_catalog_scan_folder(root, list.texts, (int32_t)list.count,
                                    allow_empty != 0, threads, &catalog, &error);
    Py_END_ALLOW_THREADS
    text_list_clear(&list);
    return status == FL_OK ? make_object(state, catalog) : fl_raise(state, &error);
}

// An own copy of the labels, so that no other thread changes them meanwhile. `out` stays
// NULL for None.
static int copy_labels(PyObject *labels, Py_ssize_t count, PyArrayObject **out)
{
    if (labels == Py_None)
        return 0;
    PyArrayObject *array =
        (PyArrayObject *)PyArray_FromAny(labels, PyArray_DescrFromType(NPY_INT64), 1, 1,
                                         NPY_ARRAY_CARRAY | NPY_ARRAY_ENSURECOPY, NULL);
    if (!array)
        return -1;
    if (PyArray_DIM(array, 0) != count) {
        PyErr_Format(PyExc_ValueError, "there are %zd paths, but %zd labels", count,
                     (Py_ssize_t)PyArray_DIM(array, 0));
        Py_DECREF(array);
        return -1;
    }
    *out = array;
    return 0;
}

static PyObject *catalog_from_paths(PyObject *type, PyObject *args, PyObject *kwargs)
{
    static const char *const names[] = {"paths", "labels", NULL};
    char *keywords[sizeof(names) / sizeof(names[0])];
    memcpy(keywords, names, sizeof(keywords)); // the parser's prototype lacks a const
    const fl_module *state = fl_module_of_type(type);
    PyObject *paths, *labels;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO:from_paths", keywords, &paths,
                                     &labels))
        return NULL;
    text_list list;
    PyArrayObject *copied = NULL;
    if (text_list_make(&list, paths, "paths") < 0)
        return NULL;
    if (copy_labels(labels, list.count, &copied) < 0) {
        text_list_clear(&list);
        return NULL;
    }

    fl_catalog *catalog = NULL;
    fl_error error = FL_ERROR_INIT;
    fl_status status;
    const int64_t *values = copied ? PyArray_DATA(copied) : NULL;
    Py_BEGIN_ALLOW_THREADS
    status = fl_catalog_from_paths(list.texts, values, list.count, &catalog, &error);
    Py_END_ALLOW_THREADS
    text_list_clear(&list);
    Py_XDECREF(copied);
    return status == FL_OK ? make_object(state, catalog) : fl_raise(state, &error);
}

static Py_ssize_t catalog_length(PyObject *self)
{
    return (Py_ssize_t)fl_catalog_count(fl_catalog_of_object(self));
}

// -1 with IndexError set if there is no such entry.
static Py_ssize_t parse_index(PyObject *self, PyObject *object)
{
    Py_ssize_t index = PyNumber_AsSsize_t(object, PyExc_IndexError);
    if (index == -1 && PyErr_Occurred())
        return -1;
    Py_ssize_t count = catalog_length(self);
    if (index >= 0 && index < count)
        return index;
    PyErr_Format(PyExc_IndexError,
                 "index %zd is out of range: the catalog has %zd entries", index, count);
    return -1;
}

static PyObject *catalog_path(PyObject *self, PyObject *object)
{
    Py_ssize_t index = parse_index(self, object);
    if (index < 0)
        return NULL;
    const fl_catalog *catalog = fl_catalog_of_object(self);
    size_t length = fl_catalog_path_length(catalog, index);
    PyObject *path = PyBytes_FromStringAndSize(NULL, (Py_ssize_t)length);
    // A bytes object has room for a terminator.
    if (path)
        fl_catalog_path(catalog, index, PyBytes_AS_STRING(path), length + 1);
    return path;
}

static PyObject *catalog_label(PyObject *self, PyObject *object)
{
    Py_ssize_t index = parse_index(self, object);
    if (index < 0)
        return NULL;
    return PyLong_FromLongLong(fl_catalog_label(fl_catalog_of_object(self), index));
}

static PyObject *catalog_labels(PyObject *self, PyObject *ignored)
{
    (void)ignored;
    npy_intp count = catalog_length(self);
    PyObject *array = PyArray_SimpleNew(1, &count, NPY_INT64);
    if (!array)
        return NULL;
    const fl_catalog *catalog = fl_catalog_of_object(self);
    int64_t *values = PyArray_DATA((PyArrayObject *)array);
    Py_BEGIN_ALLOW_THREADS
    for (npy_intp i = 0; i < count; i++)
        values[i] = fl_catalog_label(catalog, i);
    Py_END_ALLOW_THREADS
    return array;
}

static PyObject *catalog_has_labels(PyObject *self, void *ignored)
{
    (void)ignored;
    return PyBool_FromLong(fl_catalog_has_labels(fl_catalog_of_object(self)));
}

static PyObject *catalog_class_names(PyObject *self, void *ignored)
{
    (void)ignored;
    const fl_catalog *catalog = fl_catalog_of_object(self);
    int32_t count = fl_catalog_class_count(catalog);
    PyObject *names = PyList_New(count);
    for (int32_t label = 0; names && label < count; label++) {
        fl_text text = fl_catalog_class_name(catalog, label);
        PyObject *name = PyBytes_FromStringAndSize(text.data, (Py_ssize_t)text.length);
        if (name)
            PyList_SET_ITEM(names, label, name);
        else
            Py_CLEAR(names);
    }
    return names;
}

static PyObject *catalog_fingerprint(PyObject *self, void *ignored)
{
    (void)ignored;
    return PyLong_FromUnsignedLongLong(
        fl_catalog_fingerprint(fl_catalog_of_object(self)));
}

static PyObject *catalog_memory(PyObject *self, void *ignored)
{
    (void)ignored;
    return PyLong_FromSize_t(fl_catalog_memory(fl_catalog_of_object(self)));
}

static void catalog_dealloc(PyObject *self)
{
    fl_catalog_unref(&((catalog_object *)self)->catalog);
    fl_free_instance(self);
}

static PyMethodDef catalog_methods[] = {
    {"scan_folder", (PyCFunction)(void (*)(void))catalog_scan_folder,
     METH_CLASS | METH_VARARGS | METH_KEYWORDS,
     "scan_folder($type, root, extensions, allow_empty, threads)\n--\n\n"
     "Lists root/<class>/**/<file> as torchvision's ImageFolder does."},
    {"from_paths", (PyCFunction)(void (*)(void))catalog_from_paths,
     METH_CLASS | METH_VARARGS | METH_KEYWORDS,
     "from_paths($type, paths, labels)\n--\n\nCopies paths and labels."},
    {"path", catalog_path, METH_O, "path($self, index, /)\n--\n\n"},
    {"label", catalog_label, METH_O, "label($self, index, /)\n--\n\n-1 without labels."},
    {"labels", catalog_labels, METH_NOARGS, "labels($self, /)\n--\n\n"},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef catalog_properties[] = {
    {"has_labels", catalog_has_labels, NULL, NULL, NULL},
    {"class_names", catalog_class_names, NULL, NULL, NULL},
    {"fingerprint", catalog_fingerprint, NULL,
     "A hash over the names relative to the root, labels and class names.", NULL},
    {"memory", catalog_memory, NULL, "Bytes held.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot catalog_slots[] = {
    {Py_tp_doc, "Places and labels of samples; immutable, no Python object a sample."},
    {Py_tp_dealloc, catalog_dealloc},
    {Py_tp_methods, catalog_methods},
    {Py_tp_getset, catalog_properties},
    {Py_sq_length, catalog_length},
    {0, NULL},
};

static PyType_Spec catalog_spec = {
    .name = "feedline._core.Catalog",
    .basicsize = sizeof(catalog_object),
    .flags =
        Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = catalog_slots,
};

int fl_bind_catalog(PyObject *module, fl_module *state)
{
    state->catalog_type = fl_add_type(module, &catalog_spec);
    return state->catalog_type ? 0 : -1;
}
