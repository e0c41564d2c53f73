// SPDX-License-Identifier: MIT
// Run: one pass over an order. next() takes what is ready without letting go of the GIL;
// a real wait is detached, in slices, between which signals are looked at.
#include "binding/critical_section.h"
#include "binding/deferred.h"
#include "binding/engine_object.h"
#include "binding/raw_batch.h"

#include <math.h>

static const int64_t SLICE_NS = 50 * FL_MILLISECOND_NS;
static const int64_t FOREVER = INT64_MAX;

// Attached to one engine; all but `successor` is immutable, and the core's run has locks
// of its own.
typedef struct run_object {
    PyObject_HEAD
    fl_engine_object *engine; // counted
    fl_run *run;
    fl_cursor *cursor;
    uint64_t epoch;
    PyObject *successor; // a Run to feed once this one is admitted, or NULL; read and
                         // written in critical sections
} run_object;

static run_object *run_of(PyObject *self)
{
    return (run_object *)self;
}

PyObject *fl_run_object_make(const fl_module *state, fl_engine_object *engine,
                             const fl_cursor_spec *spec)
{
    fl_error error = FL_ERROR_INIT;
    run_object *self = (run_object *)state->run_type->tp_alloc(state->run_type, 0);
    if (!self)
        return NULL;
    self->engine = (fl_engine_object *)Py_NewRef((PyObject *)engine);
    self->epoch = spec->epoch;
    // Beside the one that the core's run owns: positions are asked for after its end too.
    if (fl_cursor_create(spec, &self->cursor, &error) != FL_OK ||
        fl_loader_start_run(engine->loader, spec, &self->run, &error) != FL_OK) {
        fl_raise(state, &error);
        Py_CLEAR(self);
    }
    return (PyObject *)self;
}

static int run_traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT((PyObject *)run_of(self)->engine);
    Py_VISIT(run_of(self)->successor);
    return 0;
}

// The engine stays until dealloc: other methods rely on it.
static int run_clear(PyObject *self)
{
    Py_CLEAR(run_of(self)->successor);
    return 0;
}

static void run_dealloc(PyObject *self)
{
    run_object *run = run_of(self);
    PyObject_GC_UnTrack(self);
    // A child of a fork leaks what it inherited: its locks may have been held.
    if (run->run && !fl_engine_is_foreign(run->engine)) {
        fl_run_cancel(run->run);
        fl_run_unref(&run->run);
    }
    fl_cursor_destroy(run->cursor);
    Py_CLEAR(run->successor);
    Py_CLEAR(run->engine);
    fl_free_instance(self);
}

// False with ClosedError set: the run belongs to the parent of this process.
static bool check_process(PyObject *self)
{
    if (!fl_engine_is_foreign(run_of(self)->engine))
        return true;
    PyErr_SetString(fl_module_of_instance(self)->closed_error,
                    "this iterator was made before fork() and its threads are not here; "
                    "call iter() again in this process");
    return false;
}

// ---- next()

// When to give up, on the clock's scale; -1 with an exception set.
static int64_t parse_timeout(PyObject *argument)
{
    double seconds = PyFloat_AsDouble(argument);
    if (seconds == -1.0 && PyErr_Occurred())
        return -1;
    if (isnan(seconds) || seconds < 0) {
        PyErr_Format(PyExc_ValueError, "timeout must be 0 (none) or more seconds, not %R",
                     argument);
        return -1;
    }
    if (seconds == 0 || seconds > 1e9)
        return FOREVER;
    return fl_clock_now() + (int64_t)(seconds * (double)FL_SECOND_NS);
}

// Lets an error go that is nobody's now; what it stands for is tried again by the next
// call. An interrupt is not lost: it is raised when signals are looked at next.
static void ignore_error(fl_error *error)
{
    if (error->code == FL_ERROR_PYTHON && error->exception.object &&
        PyObject_TypeCheck(fl_held_object(error->exception.object),
                           (PyTypeObject *)PyExc_KeyboardInterrupt))
        PyErr_SetInterrupt();
    fl_error_clear(error);
}

static void feed_successor(PyObject *self)
{
    PyObject *successor = NULL;
    FL_BEGIN_CRITICAL_SECTION(self);
    successor = Py_XNewRef(run_of(self)->successor);
    FL_END_CRITICAL_SECTION();
    fl_error error = FL_ERROR_INIT;
    if (successor && fl_run_is_admitted(run_of(self)->run) &&
        fl_run_feed(run_of(successor)->run, &error) < 0)
        ignore_error(&error);
    Py_XDECREF(successor);
}

// Lets new batches enter in place of those that were taken.
static void refill(PyObject *self)
{
    fl_error error = FL_ERROR_INIT;
    if (fl_run_supply(run_of(self)->run, &error) < 0)
        ignore_error(&error);
    feed_successor(self);
}

// Pops; if nothing is ready, supplies and looks again.
static fl_status take_batch(fl_run *run, fl_batch **out, fl_error *error)
{
    fl_status status = fl_run_pop(run, out, error);
    if (status != FL_BUSY)
        return status;
    status = fl_run_supply(run, error);
    return status < 0 ? status : fl_run_pop(run, out, error);
}

static PyObject *deliver(PyObject *self, fl_batch *batch)
{
    const fl_engine_object *engine = run_of(self)->engine;
    refill(self);
    PyObject *made = fl_raw_batch_make(fl_module_of_instance(self), &engine->output,
                                       fl_loader_layout(engine->loader), batch);
    fl_batch_free(batch);
    return made;
}

static PyObject *raise_timeout(PyObject *self, PyObject *timeout)
{
    PyErr_Format(PyExc_TimeoutError,
                 "batch %lld was not ready within timeout=%S seconds; it is still being "
                 "made and can be asked for again. stats() shows what it waits for",
                 (long long)fl_run_delivered(run_of(self)->run), timeout);
    return NULL;
}

// Waits detached for a slice. 0: look again; -1 with an exception set.
static int wait_slice(PyObject *self, int64_t deadline)
{
    run_object *run = run_of(self);
    fl_error error = FL_ERROR_INIT;
    fl_status status;
    int64_t slice = fl_clock_now() + SLICE_NS;
    if (fl_engine_start_thread(run->engine) < 0)
        return -1;
    Py_BEGIN_ALLOW_THREADS
    status = fl_run_wait(run->run, slice < deadline ? slice : deadline, &error);
    Py_END_ALLOW_THREADS
    if (status < 0 && status != FL_ERROR_TIMEOUT) {
        fl_engine_raise(run->engine, &error);
        return -1;
    }
    fl_error_clear(&error);
    fl_deferred_drain();
    return PyErr_CheckSignals();
}

static PyObject *run_next(PyObject *self, PyObject *argument)
{
    run_object *run = run_of(self);
    bool is_late = false;
    int64_t deadline = parse_timeout(argument);
    if (deadline < 0 || !check_process(self))
        return NULL;
    fl_deferred_drain();
    for (;;) {
        fl_error error = FL_ERROR_INIT;
        fl_batch *batch = NULL;
        fl_status status = take_batch(run->run, &batch, &error);
        if (status == FL_OK)
            return deliver(self, batch);
        if (status == FL_END) {
            feed_successor(self);
            PyErr_SetNone(PyExc_StopIteration);
            return NULL;
        }
        if (status != FL_BUSY) {
            fl_run_leave(run->run);
            refill(self);
            return fl_engine_raise(run->engine, &error);
        }
        if (is_late) {
            fl_run_leave(run->run);
            return raise_timeout(self, argument);
        }
        if (wait_slice(self, deadline) < 0) {
            fl_run_leave(run->run);
            return NULL;
        }
        // The window first, then the clock: one more look above.
        is_late = fl_clock_now() >= deadline;
    }
}

// ---- The rest

static PyObject *run_cancel(PyObject *self, PyObject *ignored)
{
    (void)ignored;
    if (!fl_engine_is_foreign(run_of(self)->engine))
        fl_run_cancel(run_of(self)->run);
    Py_RETURN_NONE;
}

static PyObject *run_prestart(PyObject *self, PyObject *successor)
{
    if (!Py_IS_TYPE(successor, Py_TYPE(self)) || successor == self) {
        PyErr_Format(PyExc_TypeError, "prestart() takes another Run, not %R", successor);
        return NULL;
    }
    PyObject *old = NULL;
    FL_BEGIN_CRITICAL_SECTION(self);
    old = run_of(self)->successor;
    run_of(self)->successor = Py_NewRef(successor);
    FL_END_CRITICAL_SECTION();
    Py_XDECREF(old);
    Py_RETURN_NONE;
}

static PyObject *run_position_after(PyObject *self, PyObject *argument)
{
    long long number = PyLong_AsLongLong(argument);
    if (number == -1 && PyErr_Occurred())
        return NULL;
    const fl_cursor *cursor = run_of(self)->cursor;
    int64_t batches = fl_cursor_batches(cursor);
    if (number < 0 || number >= batches) {
        PyErr_Format(PyExc_ValueError, "the run has batches 0 to %lld, not %lld",
                     (long long)batches - 1, number);
        return NULL;
    }
    return PyLong_FromLongLong(fl_cursor_position(cursor, number + 1));
}

static PyObject *run_batches(PyObject *self, void *ignored)
{
    (void)ignored;
    return PyLong_FromLongLong(fl_cursor_batches(run_of(self)->cursor));
}

static PyObject *run_delivered(PyObject *self, void *ignored)
{
    (void)ignored;
    if (!check_process(self))
        return NULL;
    return PyLong_FromLongLong(fl_run_delivered(run_of(self)->run));
}

static PyObject *run_position(PyObject *self, void *ignored)
{
    (void)ignored;
    if (!check_process(self))
        return NULL;
    int64_t delivered = fl_run_delivered(run_of(self)->run);
    return PyLong_FromLongLong(fl_cursor_position(run_of(self)->cursor, delivered));
}

static PyObject *run_epoch(PyObject *self, void *ignored)
{
    (void)ignored;
    return PyLong_FromUnsignedLongLong(run_of(self)->epoch);
}

static PyObject *run_is_admitted(PyObject *self, void *ignored)
{
    (void)ignored;
    if (!check_process(self))
        return NULL;
    return PyBool_FromLong(fl_run_is_admitted(run_of(self)->run));
}

static PyMethodDef run_methods[] = {
    {"next", run_next, METH_O,
     "next($self, timeout, /)\n--\n\n"
     "The next batch, waiting at most `timeout` seconds (0: as long as it takes)."},
    {"cancel", run_cancel, METH_NOARGS,
     "cancel($self, /)\n--\n\nDrops what is queued; next() raises ClosedError."},
    {"prestart", run_prestart, METH_O,
     "prestart($self, successor, /)\n--\n\n"
     "Feed `successor` once all batches of this run are on their way."},
    {"position_after", run_position_after, METH_O,
     "position_after($self, number, /)\n--\n\n"
     "The position as if batch `number` were the last one received."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef run_properties[] = {
    {"batches", run_batches, NULL, "Batches of this run in all.", NULL},
    {"delivered", run_delivered, NULL, "Batches received, failed ones included.", NULL},
    {"position", run_position, NULL, "Position in the epoch after `delivered`.", NULL},
    {"epoch", run_epoch, NULL, "The epoch that the run goes over.", NULL},
    {"is_admitted", run_is_admitted, NULL, "All batches are on their way.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot run_slots[] = {
    {Py_tp_doc, "One pass over an order. Of several threads that call next(), each gets "
                "batches of its own."},
    {Py_tp_dealloc, run_dealloc},
    {Py_tp_traverse, run_traverse},
    {Py_tp_clear, run_clear},
    {Py_tp_methods, run_methods},
    {Py_tp_getset, run_properties},
    {0, NULL},
};

static PyType_Spec run_spec = {
    .name = "feedline._core.Run",
    .basicsize = sizeof(run_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION |
             Py_TPFLAGS_IMMUTABLETYPE,
    .slots = run_slots,
};

int fl_bind_run(PyObject *module, fl_module *state)
{
    state->run_type = fl_add_type(module, &run_spec);
    return state->run_type ? 0 : -1;
}
