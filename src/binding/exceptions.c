// SPDX-License-Identifier: MIT
// The only place where the core's errors become Python exceptions. Every one names the
// file and the sample's index where they are known.
#include "binding/module.h"

#include "binding/deferred.h"

#include <errno.h>

// DecodeError's text is its message alone: OSError would build "[Errno None] None: ..."
// from the attribute `filename`.
static PyObject *decode_error_str(PyObject *self)
{
    return ((PyTypeObject *)PyExc_BaseException)->tp_str(self);
}

// OSError keeps `filename` outside the instance's dict, so pickle would lose it.
static PyObject *decode_error_reduce(PyObject *self, PyObject *ignored)
{
    (void)ignored;
    PyObject *result = NULL, *state = NULL, *filename = NULL;
    PyObject *args = PyObject_GetAttrString(self, "args");
    PyObject *dict = PyObject_GetAttrString(self, "__dict__");
    if (!args || !dict)
        goto done;
    filename = PyObject_GetAttrString(self, "filename");
    state = PyDict_Copy(dict);
    if (!filename || !state || PyDict_SetItemString(state, "filename", filename) < 0)
        goto done;
    result = PyTuple_Pack(3, (PyObject *)Py_TYPE(self), args, state);
done:
    Py_XDECREF(filename);
    Py_XDECREF(state);
    Py_XDECREF(dict);
    Py_XDECREF(args);
    return result;
}

static PyMethodDef decode_error_methods[] = {
    {"__reduce__", decode_error_reduce, METH_NOARGS, "__reduce__($self, /)\n--\n\n"},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot decode_error_slots[] = {
    {Py_tp_doc, "A file's bytes are not what they claim to be."},
    {Py_tp_str, decode_error_str},
    {Py_tp_methods, decode_error_methods},
    {0, NULL},
};

static PyType_Spec decode_error_spec = {
    .name = "feedline._core.DecodeError",
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .slots = decode_error_slots,
};

static PyType_Slot limit_error_slots[] = {
    {Py_tp_doc, "Something is larger than a limit allows."},
    {0, NULL},
};

static PyType_Spec limit_error_spec = {
    .name = "feedline._core.LimitError",
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .slots = limit_error_slots,
};

static PyType_Slot closed_error_slots[] = {
    {Py_tp_doc, "The loader or the iterator was closed."},
    {0, NULL},
};

static PyType_Spec closed_error_spec = {
    .name = "feedline._core.ClosedError",
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .slots = closed_error_slots,
};

static PyObject *add_exception(PyObject *module, const fl_module *state,
                               PyType_Spec *spec, PyObject *base)
{
    PyObject *bases = PyTuple_Pack(2, state->core_error, base);
    if (!bases)
        return NULL;
    PyObject *type = PyType_FromModuleAndSpec(module, spec, bases);
    Py_DECREF(bases);
    if (type && PyModule_AddType(module, (PyTypeObject *)type) < 0)
        Py_CLEAR(type);
    return type;
}

// What the attributes are where a sample's place is not known.
static int set_defaults(PyObject *type)
{
    PyObject *index = PyLong_FromLong(-1);
    PyObject *empty = PyUnicode_FromString("");
    int result = -1;
    if (index && empty && PyObject_SetAttrString(type, "index", index) == 0 &&
        PyObject_SetAttrString(type, "reason", empty) == 0)
        result = 0;
    // OSError has the attribute by itself, None while unknown.
    if (result == 0 && !PyObject_HasAttrString(type, "filename"))
        result = PyObject_SetAttrString(type, "filename", Py_None);
    Py_XDECREF(index);
    Py_XDECREF(empty);
    return result;
}

int fl_bind_exceptions(PyObject *module, fl_module *state)
{
    state->core_error = PyErr_NewExceptionWithDoc(
        "feedline._core.CoreError",
        "Never raised itself. Base of the core's own exception types.", NULL, NULL);
    if (!state->core_error ||
        PyModule_AddObjectRef(module, "CoreError", state->core_error) < 0)
        return -1;
    state->decode_error = add_exception(module, state, &decode_error_spec, PyExc_OSError);
    if (!state->decode_error || set_defaults(state->decode_error) < 0)
        return -1;
    state->limit_error =
        add_exception(module, state, &limit_error_spec, PyExc_ValueError);
    if (!state->limit_error || set_defaults(state->limit_error) < 0)
        return -1;
    state->closed_error =
        add_exception(module, state, &closed_error_spec, PyExc_RuntimeError);
    return state->closed_error ? 0 : -1;
}

// The parts of an exception as Python objects, all owned.
typedef struct error_parts {
    PyObject *reason;   // the core's message
    PyObject *suffix;   // " (sample 17)", or ""
    PyObject *filename; // the path with surrogates for odd bytes, or None
} error_parts;

static void parts_clear(error_parts *parts)
{
    Py_CLEAR(parts->reason);
    Py_CLEAR(parts->suffix);
    Py_CLEAR(parts->filename);
}

static int parts_make(error_parts *parts, const fl_error *error, const char *path)
{
    const char *place = path ? path : error->place;
    parts->reason = PyUnicode_DecodeUTF8(
        error->message, (Py_ssize_t)strlen(error->message), "backslashreplace");
    parts->suffix = error->index >= 0
                        ? PyUnicode_FromFormat(" (sample %lld)", (long long)error->index)
                        : PyUnicode_FromString("");
    parts->filename = place[0] ? PyUnicode_DecodeFSDefault(place) : Py_NewRef(Py_None);
    return parts->reason && parts->suffix && parts->filename ? 0 : -1;
}

// "cannot decode '/path': reason (sample 17)" with what is known of it.
static PyObject *make_text(const error_parts *parts, const char *verb)
{
    if (parts->filename != Py_None) {
        return PyUnicode_FromFormat("%s%s%R: %U%U", verb, verb[0] ? " " : "",
                                    parts->filename, parts->reason, parts->suffix);
    }
    return PyUnicode_FromFormat("%s%s%U%U", verb, verb[0] ? ": " : "", parts->reason,
                                parts->suffix);
}

// OSError picks the subclass by errno; its text ends with the path by itself.
static PyObject *make_os_error(const fl_error *error, const error_parts *parts)
{
    int code = error->os_error ? error->os_error : EIO;
    PyObject *text = PyUnicode_FromFormat("%U%U", parts->reason, parts->suffix);
    if (!text)
        return NULL;
    PyObject *made =
        parts->filename == Py_None
            ? PyObject_CallFunction(PyExc_OSError, "iO", code, text)
            : PyObject_CallFunction(PyExc_OSError, "iOO", code, text, parts->filename);
    Py_DECREF(text);
    return made;
}

static PyObject *make_exception(PyObject *type, const error_parts *parts,
                                const char *verb)
{
    PyObject *text = make_text(parts, verb);
    if (!text)
        return NULL;
    PyObject *made = PyObject_CallOneArg(type, text);
    Py_DECREF(text);
    return made;
}

// filename, index and reason: what a handler wants to know without parsing the text.
static int add_attributes(PyObject *exception, const fl_error *error,
                          const error_parts *parts)
{
    PyObject *index = PyLong_FromLongLong(error->index);
    int result = -1;
    if (index && PyObject_SetAttrString(exception, "index", index) == 0 &&
        PyObject_SetAttrString(exception, "reason", parts->reason) == 0)
        result = 0;
    Py_XDECREF(index);
    if (result == 0 && parts->filename != Py_None)
        result = PyObject_SetAttrString(exception, "filename", parts->filename);
    return result;
}

static PyObject *make_by_code(const fl_module *state, const fl_error *error,
                              const error_parts *parts, bool *has_attributes)
{
    *has_attributes = false;
    switch (error->code) {
    case FL_ERROR_NO_MEMORY:
        return make_exception(PyExc_MemoryError, parts, "");
    case FL_ERROR_ARGUMENT:
        return make_exception(PyExc_ValueError, parts, "");
    case FL_ERROR_IO:
        *has_attributes = true;
        return make_os_error(error, parts);
    case FL_ERROR_DATA:
    case FL_ERROR_UNSUPPORTED:
        *has_attributes = true;
        return make_exception(state->decode_error, parts, "cannot decode");
    case FL_ERROR_LIMIT:
        *has_attributes = true;
        return make_exception(state->limit_error, parts,
                              parts->filename == Py_None ? "" : "cannot load");
    case FL_ERROR_CANCELLED:
    case FL_ERROR_CLOSED:
        return make_exception(state->closed_error, parts, "");
    case FL_ERROR_TIMEOUT:
        return make_exception(PyExc_TimeoutError, parts, "");
    default:
        return make_exception(PyExc_RuntimeError, parts, "");
    }
}

// An error of the Pillow step that says why (args[0]) and not yet where.
static bool is_without_place(const fl_module *state, PyObject *exception)
{
    if (!PyObject_TypeCheck(exception, (PyTypeObject *)state->decode_error) &&
        !PyObject_TypeCheck(exception, (PyTypeObject *)state->limit_error))
        return false;
    PyObject *filename = PyObject_GetAttrString(exception, "filename");
    bool is_missing = filename == Py_None;
    Py_XDECREF(filename);
    return is_missing;
}

// Gives such an error the text and the attributes that the core's own ones have.
static int add_place(const fl_module *state, PyObject *exception, const fl_error *error,
                     error_parts *parts)
{
    PyObject *reason = PyObject_Str(exception);
    if (!reason)
        return -1;
    Py_SETREF(parts->reason, reason);
    bool is_limit =
        PyObject_TypeCheck(exception, (PyTypeObject *)state->limit_error) != 0;
    PyObject *text = make_text(parts, is_limit ? "cannot load" : "cannot decode");
    PyObject *args = text ? PyTuple_Pack(1, text) : NULL;
    int result = args ? PyObject_SetAttrString(exception, "args", args) : -1;
    Py_XDECREF(args);
    Py_XDECREF(text);
    return result < 0 ? -1 : add_attributes(exception, error, parts);
}

// Where a Python step's own exception comes from, as a note behind its message.
static int add_note(PyObject *exception, const fl_error *error, const error_parts *parts)
{
    if (error->index < 0 && parts->filename == Py_None)
        return 0;
    PyObject *note =
        parts->filename == Py_None
            ? PyUnicode_FromFormat("while loading sample %lld", (long long)error->index)
        : error->index < 0
            ? PyUnicode_FromFormat("while loading %R", parts->filename)
            : PyUnicode_FromFormat("while loading sample %lld: %R",
                                   (long long)error->index, parts->filename);
    if (!note)
        return -1;
    PyObject *result = PyObject_CallMethod(exception, "add_note", "O", note);
    Py_DECREF(note);
    Py_XDECREF(result);
    return result ? 0 : -1;
}

// Takes the reference.
static void set_raised(PyObject *exception)
{
#if PY_VERSION_HEX >= 0x030C0000
    PyErr_SetRaisedException(exception);
#else
    PyErr_Restore(Py_NewRef((PyObject *)Py_TYPE(exception)), exception,
                  PyException_GetTraceback(exception));
#endif
}

// The exception that is set, with its traceback; a new reference.
static PyObject *get_raised(void)
{
#if PY_VERSION_HEX >= 0x030C0000
    return PyErr_GetRaisedException();
#else
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    if (value && traceback)
        PyException_SetTraceback(value, traceback);
    Py_XDECREF(type);
    Py_XDECREF(traceback);
    return value;
#endif
}

static PyObject *take_carried(fl_error *error)
{
    PyObject *exception = fl_held_take(error->exception.object);
    error->exception = (fl_exception){0};
    return exception;
}

PyObject *fl_raise_at(const fl_module *state, fl_error *error, const char *path)
{
    error_parts parts = {0};
    PyObject *exception = NULL;
    bool has_attributes = false;
    if (parts_make(&parts, error, path) < 0)
        goto done;
    if (error->code == FL_ERROR_PYTHON && error->exception.object) {
        exception = take_carried(error);
        int result = is_without_place(state, exception)
                         ? add_place(state, exception, error, &parts)
                         : add_note(exception, error, &parts);
        if (result < 0)
            PyErr_Clear(); // the exception itself matters more than where it was
    } else {
        exception = make_by_code(state, error, &parts, &has_attributes);
        if (exception && has_attributes && add_attributes(exception, error, &parts) < 0)
            Py_CLEAR(exception);
    }
    if (exception)
        set_raised(exception);
done:
    parts_clear(&parts);
    fl_error_clear(error);
    return NULL;
}

PyObject *fl_raise(const fl_module *state, fl_error *error)
{
    return fl_raise_at(state, error, NULL);
}

void fl_error_from_python(fl_error *error)
{
    PyObject *exception = get_raised();
    fl_held *held = exception ? fl_held_create(exception) : NULL;
    if (held) {
        fl_error_set(error, FL_ERROR_PYTHON, "%s", Py_TYPE(exception)->tp_name);
        error->exception = (fl_exception){.object = held, .release = fl_held_release};
    } else {
        PyErr_Clear();
        fl_error_no_memory(error);
    }
    Py_XDECREF(exception);
}
