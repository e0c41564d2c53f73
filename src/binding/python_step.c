// SPDX-License-Identifier: MIT
// The step is a tuple (capsule of the engine, decode, type of the bytes) and what a
// thread runs a C function bound to (step, place), so that the collector sees through
// both. The bytes go to Python as a memoryview of an object that holds them: whoever
// keeps the view keeps the bytes.
#include "binding/python_step.h"

#include <stdatomic.h>
#include <unistd.h>

static const char *const capsule_name = "feedline.engine";
static const char *const place_name = "feedline.place";

// ---- The bytes of a file, for the time that Python looks at them.

typedef struct file_bytes {
    PyObject_HEAD
    fl_buffer *buffer; // counted
} file_bytes;

static int file_bytes_getbuffer(PyObject *self, Py_buffer *view, int flags)
{
    fl_buffer *buffer = ((file_bytes *)self)->buffer;
    return PyBuffer_FillInfo(view, self, buffer->data, (Py_ssize_t)buffer->size, 1,
                             flags);
}

static void file_bytes_dealloc(PyObject *self)
{
    fl_buffer_unref(&((file_bytes *)self)->buffer);
    fl_free_instance(self);
}

static PyType_Slot file_bytes_slots[] = {
    {Py_tp_dealloc, file_bytes_dealloc},
    {Py_bf_getbuffer, file_bytes_getbuffer},
    {0, NULL},
};

static PyType_Spec file_bytes_spec = {
    .name = "feedline._core.FileBytes",
    .basicsize = sizeof(file_bytes),
    .flags =
        Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = file_bytes_slots,
};

static PyObject *make_view(PyTypeObject *type, fl_buffer *buffer)
{
    file_bytes *bytes = PyObject_New(file_bytes, type);
    if (!bytes)
        return NULL;
    bytes->buffer = fl_buffer_ref(buffer);
    PyObject *view = PyMemoryView_FromObject((PyObject *)bytes);
    Py_DECREF(bytes);
    return view;
}

// Lets the bytes go, unless the function has kept views of the view.
static void release_view(PyObject *view)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyObject *result = PyObject_CallMethod(view, "release", NULL);
    if (!result)
        PyErr_Clear();
    Py_XDECREF(result);
    Py_DECREF(view);
    PyErr_Restore(type, value, traceback);
}

// ---- One sample.

// Copies what the function returned into the sample; -1 with an exception set.
static int store_pixels(fl_sample *sample, PyObject *result)
{
    int width, height;
    const char *pixels;
    Py_ssize_t length;
    if (!PyTuple_Check(result) ||
        !PyArg_ParseTuple(result, "iiy#", &width, &height, &pixels, &length)) {
        PyErr_Clear();
        PyErr_SetString(PyExc_TypeError,
                        "decode_fallback must return (width, height, bytes)");
        return -1;
    }
    size_t expected;
    if (width < 1 || height < 1 ||
        !fl_size_multiply((size_t)width * 4, (size_t)height, &expected) ||
        (size_t)length != expected) {
        PyErr_Format(PyExc_ValueError,
                     "decode_fallback returned %zd bytes for %d x %d pixels, not 4 a "
                     "pixel",
                     length, width, height);
        return -1;
    }
    fl_buffer *buffer = NULL;
    if (fl_buffer_create((size_t)length, &buffer, NULL) != FL_OK) {
        PyErr_NoMemory();
        return -1;
    }
    memcpy(buffer->data, pixels, (size_t)length);
    buffer->size = (size_t)length;
    fl_buffer_unref(&sample->pixels);
    sample->pixels = buffer;
    sample->pixel_width = width;
    sample->pixel_height = height;
    return 0;
}

static fl_status decode_sample(PyObject *decode, PyTypeObject *bytes_type,
                               fl_sample *sample, fl_error *error)
{
    int result = -1;
    PyObject *returned = NULL;
    PyObject *view = make_view(bytes_type, sample->bytes);
    if (view) {
        returned = PyObject_CallOneArg(decode, view);
        release_view(view);
    }
    if (returned)
        result = store_pixels(sample, returned);
    Py_XDECREF(returned);
    if (result == 0)
        return FL_OK;
    fl_error_from_python(error);
    return error->code;
}

// ---- A thread's place in the engine.

// Taken before the thread is started, and given back once: by the thread, or without it.
// A signal handler that raises inside Thread.start() leaves open whether there is a
// thread.
typedef struct thread_place {
    fl_engine *engine; // counted
    pid_t process;     // that took it
    atomic_bool is_settled;
} thread_place;

// True for the first who asks: giving the place back is his.
static bool settle_place(PyObject *capsule)
{
    thread_place *mine = PyCapsule_GetPointer(capsule, place_name);
    return !atomic_exchange(&mine->is_settled, true);
}

static void drop_place(PyObject *capsule)
{
    thread_place *mine = PyCapsule_GetPointer(capsule, place_name);
    if (settle_place(capsule) && mine->process == getpid())
        fl_engine_python_exit(mine->engine);
    fl_engine_unref(&mine->engine);
    fl_free(mine);
}

// Gives the place back itself if it fails: NULL with an exception set.
static PyObject *make_place(fl_engine *engine)
{
    PyObject *capsule = NULL;
    thread_place *made = fl_alloc_zeroed(sizeof(*made));
    if (!made)
        PyErr_NoMemory();
    else
        capsule = PyCapsule_New(made, place_name, drop_place);
    if (!capsule) {
        fl_engine_python_exit(engine);
        fl_free(made);
        return NULL;
    }
    made->engine = fl_engine_ref(engine);
    made->process = getpid();
    return capsule;
}

// ---- The thread.

// The engine that this thread serves: closing it from here must not wait for itself.
static _Thread_local const fl_engine *served;

bool fl_python_step_is_thread_of(const fl_engine *engine)
{
    return served == engine;
}

static void serve(fl_engine *engine, PyObject *decode, PyTypeObject *bytes_type)
{
    for (;;) {
        fl_status status;
        fl_python_task task;
        Py_BEGIN_ALLOW_THREADS
        status = fl_engine_python_take(engine, &task);
        Py_END_ALLOW_THREADS
        if (status != FL_OK)
            return;
        fl_error error = FL_ERROR_INIT;
        status = decode_sample(decode, bytes_type, task.sample, &error);
        fl_engine_python_finish(engine, &task, status, &error);
        fl_error_clear(&error);
    }
}

static PyObject *step_run(PyObject *self, PyObject *ignored)
{
    (void)ignored;
    PyObject *step = PyTuple_GET_ITEM(self, 0);
    fl_engine *engine = PyCapsule_GetPointer(PyTuple_GET_ITEM(step, 0), capsule_name);
    if (!engine)
        return NULL;
    if (!settle_place(PyTuple_GET_ITEM(self, 1)))
        Py_RETURN_NONE;
    const fl_engine *outer = served;
    served = engine;
    serve(engine, PyTuple_GET_ITEM(step, 1), (PyTypeObject *)PyTuple_GET_ITEM(step, 2));
    served = outer;
    fl_engine_python_exit(engine);
    Py_RETURN_NONE;
}

static PyMethodDef step_definition = {
    "feedline_python_step", step_run, METH_NOARGS,
    "feedline_python_step()\n--\n\nServes one engine until it is not needed any more."};

int fl_python_step_start(PyObject *step, PyObject *start_thread)
{
    fl_engine *engine = PyCapsule_GetPointer(PyTuple_GET_ITEM(step, 0), capsule_name);
    if (!engine)
        return -1;
    if (!fl_engine_python_enter(engine))
        return 0;
    PyObject *place = make_place(engine);
    PyObject *bound = place ? PyTuple_Pack(2, step, place) : NULL;
    PyObject *target = bound ? PyCFunction_New(&step_definition, bound) : NULL;
    PyObject *result = target ? PyObject_CallOneArg(start_thread, target) : NULL;
    // A traceback may keep the target, so its place is not left to the capsule's end.
    if (!result && place && settle_place(place))
        fl_engine_python_exit(engine);
    Py_XDECREF(target);
    Py_XDECREF(bound);
    Py_XDECREF(place);
    Py_XDECREF(result);
    return result ? 0 : -1;
}

static void drop_engine(PyObject *capsule)
{
    fl_engine *engine = PyCapsule_GetPointer(capsule, capsule_name);
    fl_engine_unref(&engine);
}

PyObject *fl_python_step_make(const fl_module *state, fl_engine *engine, PyObject *decode)
{
    fl_engine *mine = fl_engine_ref(engine);
    PyObject *capsule = PyCapsule_New(mine, capsule_name, drop_engine);
    if (!capsule) {
        fl_engine_unref(&mine);
        return NULL;
    }
    PyObject *step = PyTuple_Pack(3, capsule, decode, (PyObject *)state->file_bytes_type);
    Py_DECREF(capsule);
    return step;
}

int fl_bind_python_step(PyObject *module, fl_module *state)
{
    state->file_bytes_type =
        (PyTypeObject *)PyType_FromModuleAndSpec(module, &file_bytes_spec, NULL);
    return state->file_bytes_type ? 0 : -1;
}
