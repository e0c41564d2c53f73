// SPDX-License-Identifier: MIT
#include "binding/engine_options.h"

// Of the keywords of Engine(), in the order of the list there.
enum { REQUIRED_OPTIONS = 9 };

typedef struct choice {
    const char *name;
    int value;
} choice;

// 0, or -1 with a ValueError that lists the choices.
static int parse_choice(const char *what, const char *name, const choice *choices,
                        size_t count, int *out)
{
    char list[128] = "";
    size_t used = 0;
    for (size_t i = 0; i < count; i++) {
        if (strcmp(name, choices[i].name) == 0) {
            *out = choices[i].value;
            return 0;
        }
        int written = snprintf(list + used, sizeof(list) - used, "%s'%s'",
                               i == 0 ? "" : ", ", choices[i].name);
        used += (size_t)written;
    }
    PyErr_Format(PyExc_ValueError, "%s must be one of %s, not '%s'", what, list, name);
    return -1;
}

// The parser has no keywords that are both required and without a position. 0, or -1 with
// TypeError set if one of the `count` names is missing.
static int require(const char *function, PyObject *keywords, const char *const *names,
                   size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (keywords && PyDict_GetItemString(keywords, names[i]))
            continue;
        PyErr_Format(PyExc_TypeError, "%s() needs the keyword argument '%s'", function,
                     names[i]);
        return -1;
    }
    return 0;
}

static int parse_field(fl_field_spec *spec, fl_op_list *ops, PyObject *field)
{
    static const choice sources[] = {{"file", FL_SOURCE_FILE},
                                     {"label", FL_SOURCE_LABEL}};
    static const choice decodes[] = {{"image", FL_DECODE_IMAGE},
                                     {"bytes", FL_DECODE_BYTES},
                                     {"int64", FL_DECODE_INT64}};
    const char *source, *decode, *layout;
    PyObject *op_sequence;
    int chosen_source, chosen_decode;
    if (!PyTuple_Check(field)) {
        PyErr_Format(PyExc_TypeError,
                     "a field is a tuple (name, source, decode, ops, layout), not %R",
                     field);
        return -1;
    }
    if (!PyArg_ParseTuple(field, "sssOs:field", &spec->name, &source, &decode,
                          &op_sequence, &layout))
        return -1;
    if (parse_choice("a field's source", source, sources, Py_ARRAY_LENGTH(sources),
                     &chosen_source) < 0 ||
        parse_choice("a field's decode", decode, decodes, Py_ARRAY_LENGTH(decodes),
                     &chosen_decode) < 0 ||
        fl_parse_pixel_layout(layout, &spec->layout) < 0 ||
        fl_op_list_init(ops, op_sequence) < 0)
        return -1;
    spec->source = (fl_field_source)chosen_source;
    spec->decode = (fl_field_decode)chosen_decode;
    spec->ops = ops->specs;
    spec->op_count = ops->count;
    return 0;
}

static int parse_fields(fl_engine_arguments *arguments, PyObject *fields)
{
    arguments->fields = PySequence_Tuple(fields);
    if (!arguments->fields)
        return -1;
    Py_ssize_t count = PyTuple_GET_SIZE(arguments->fields);
    if (count < 1 || count > FL_MAX_FIELDS - 2) {
        PyErr_Format(PyExc_ValueError, "a batch has 1 to %d fields, not %zd",
                     FL_MAX_FIELDS - 2, count);
        return -1;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        if (parse_field(&arguments->field_specs[i], &arguments->op_lists[i],
                        PyTuple_GET_ITEM(arguments->fields, i)) < 0)
            return -1;
    }
    arguments->spec.fields = arguments->field_specs;
    arguments->spec.field_count = (int32_t)count;
    return 0;
}

static int check_callable(const char *name, PyObject *value)
{
    if (value == Py_None || PyCallable_Check(value))
        return 0;
    PyErr_Format(PyExc_TypeError, "%s must be callable or None, not %R", name, value);
    return -1;
}

static int check_callables(fl_engine_arguments *arguments)
{
    if (check_callable("allocate", arguments->allocate) < 0 ||
        check_callable("decode_fallback", arguments->decode) < 0 ||
        check_callable("start_python_thread", arguments->start_thread) < 0)
        return -1;
    if (arguments->decode == Py_None)
        return 0;
    if (arguments->start_thread == Py_None) {
        PyErr_SetString(PyExc_ValueError,
                        "decode_fallback needs start_python_thread: its threads are "
                        "made by Python");
        return -1;
    }
    // As many as decode natively: Pillow lets go of the GIL where the time goes.
    arguments->spec.python_threads = arguments->spec.compute_threads;
    return 0;
}

int fl_engine_arguments_init(fl_engine_arguments *arguments, const fl_module *state,
                             PyObject *args, PyObject *keywords)
{
    static const char *const names[] = {"catalog",
                                        "fields",
                                        "batch_size",
                                        "num_threads",
                                        "io_threads",
                                        "prefetch_batches",
                                        "memory_limit",
                                        "in_order",
                                        "output",
                                        "max_pixels",
                                        "allocate",
                                        "decode_fallback",
                                        "start_python_thread",
                                        "full_batches",
                                        NULL};
    char *list[sizeof(names) / sizeof(names[0])];
    memcpy(list, names, sizeof(list)); // the parser's prototype lacks a const
    fl_loader_spec *spec = &arguments->spec;
    PyObject *fields;
    int in_order, full_batches = 0;
    long long memory_limit, max_pixels;
    arguments->allocate = arguments->decode = arguments->start_thread = Py_None;
    if (require("Engine", keywords, names + 1, REQUIRED_OPTIONS) < 0 ||
        !PyArg_ParseTupleAndKeywords(
            args, keywords, "O!|$OiiiiLpsLOOOp:Engine", list, state->catalog_type,
            &arguments->catalog, &fields, &spec->batch_size, &spec->compute_threads,
            &spec->fetch_threads, &spec->prefetch_batches, &memory_limit, &in_order,
            &arguments->output, &max_pixels, &arguments->allocate, &arguments->decode,
            &arguments->start_thread, &full_batches))
        return -1;
    spec->catalog = fl_catalog_of_object(arguments->catalog);
    spec->memory_limit = memory_limit;
    spec->max_pixels = max_pixels;
    spec->in_order = in_order != 0;
    spec->full_batches = full_batches != 0;
    if (check_callables(arguments) < 0 || parse_fields(arguments, fields) < 0) {
        fl_engine_arguments_deinit(arguments);
        return -1;
    }
    return 0;
}

void fl_engine_arguments_deinit(fl_engine_arguments *arguments)
{
    for (int32_t i = 0; i < FL_MAX_FIELDS; i++)
        fl_op_list_deinit(&arguments->op_lists[i]);
    Py_CLEAR(arguments->fields);
}

static int parse_unsigned(const char *name, PyObject *value, uint64_t *out)
{
    *out = PyLong_AsUnsignedLongLong(value);
    if (!PyErr_Occurred())
        return 0;
    if (PyErr_ExceptionMatches(PyExc_OverflowError)) {
        PyErr_Clear();
        PyErr_Format(PyExc_ValueError, "%s must be from 0 to 2**64 - 1, not %R", name,
                     value);
    }
    return -1;
}

int fl_run_arguments_parse(fl_cursor_spec *spec, PyObject *args, PyObject *keywords)
{
    static const char *const names[] = {"shuffle", "seed",      "epoch",
                                        "start",   "rank",      "world_size",
                                        "uneven",  "drop_last", NULL};
    static const choice unevens[] = {
        {"pad", FL_UNEVEN_PAD}, {"drop", FL_UNEVEN_DROP}, {"mask", FL_UNEVEN_MASK}};
    char *list[sizeof(names) / sizeof(names[0])];
    memcpy(list, names, sizeof(list)); // the parser's prototype lacks a const
    PyObject *seed, *epoch;
    const char *uneven;
    int shuffle, drop_last, chosen;
    long long start, rank, world;
    if (require("start_run", keywords, names, Py_ARRAY_LENGTH(names) - 1) < 0 ||
        !PyArg_ParseTupleAndKeywords(args, keywords, "|$pOOLLLsp:start_run", list,
                                     &shuffle, &seed, &epoch, &start, &rank, &world,
                                     &uneven, &drop_last) ||
        parse_unsigned("seed", seed, &spec->seed) < 0 ||
        parse_unsigned("epoch", epoch, &spec->epoch) < 0 ||
        parse_choice("uneven", uneven, unevens, Py_ARRAY_LENGTH(unevens), &chosen) < 0)
        return -1;
    spec->shuffle = shuffle != 0;
    spec->start = start;
    spec->rank = rank;
    spec->world = world;
    spec->uneven = (fl_uneven)chosen;
    spec->drop_last = drop_last != 0;
    return 0;
}
