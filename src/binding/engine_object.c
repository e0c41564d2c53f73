// SPDX-License-Identifier: MIT
#include "binding/engine_object.h"

#include "binding/deferred.h"
#include "binding/engine_options.h"
#include "binding/python_step.h"
#include "binding/tensor.h"

#include <unistd.h>

static const int64_t CLOSE_LIMIT_NS = 2 * FL_SECOND_NS;
enum { HIDDEN_FIELDS = 2 }; // index, valid

static fl_engine_object *engine_of(PyObject *self)
{
    return (fl_engine_object *)self;
}

bool fl_engine_is_foreign(const fl_engine_object *engine)
{
    return engine->process != getpid();
}

PyObject *fl_engine_raise(const fl_engine_object *engine, fl_error *error)
{
    const fl_module *state = engine->module_state;
    fl_catalog *catalog = engine->catalog ? fl_catalog_of_object(engine->catalog) : NULL;
    if (!catalog || !error->place[0] || error->index < 0 ||
        error->index >= fl_catalog_count(catalog))
        return fl_raise(state, error);
    size_t size = fl_catalog_path_length(catalog, error->index) + 1;
    char *path = fl_alloc(size);
    bool is_known = path && fl_catalog_path(catalog, error->index, path, size);
    fl_raise_at(state, error, is_known ? path : NULL);
    fl_free(path);
    return NULL;
}

int fl_engine_start_thread(fl_engine_object *engine)
{
    return engine->step ? fl_python_step_start(engine->step, engine->start_thread) : 0;
}

static int open_loader(fl_engine_object *self, const fl_module *state,
                       const fl_engine_arguments *arguments)
{
    fl_allocator allocator = fl_allocator_heap();
    if (arguments->allocate != Py_None) {
        self->external = fl_external_create(arguments->allocate);
        if (!self->external)
            return -1;
        self->allocate = Py_NewRef(arguments->allocate);
        allocator = fl_external_allocator(self->external);
    }
    fl_error error = FL_ERROR_INIT;
    if (fl_loader_open(&arguments->spec, allocator, &self->loader, &error) != FL_OK) {
        self->external = NULL; // gone with the allocator
        fl_raise(state, &error);
        return -1;
    }
    return 0;
}

static int check_output(const fl_engine_object *self)
{
    const fl_layout *layout = fl_loader_layout(self->loader);
    for (int32_t i = 0; i < layout->field_count; i++) {
        if (fl_output_check(&self->output, layout->fields[i].dtype) < 0)
            return -1;
    }
    return 0;
}

static int make_step(fl_engine_object *self, const fl_module *state,
                     const fl_engine_arguments *arguments)
{
    if (arguments->spec.python_threads == 0)
        return 0;
    self->start_thread = Py_NewRef(arguments->start_thread);
    self->step =
        fl_python_step_make(state, fl_loader_engine(self->loader), arguments->decode);
    return self->step ? 0 : -1;
}

static PyObject *engine_new(PyTypeObject *type, PyObject *args, PyObject *keywords)
{
    const fl_module *state = PyType_GetModuleState(type);
    fl_engine_arguments arguments = {0};
    fl_engine_object *self = NULL;
    if (fl_engine_arguments_init(&arguments, state, args, keywords) < 0)
        return NULL;
    self = (fl_engine_object *)type->tp_alloc(type, 0);
    if (!self)
        goto fail;
    self->module_state = state;
    self->process = getpid();
    self->catalog = Py_NewRef(arguments.catalog);
    if (fl_output_init(&self->output, arguments.output) < 0 ||
        open_loader(self, state, &arguments) < 0 || check_output(self) < 0 ||
        make_step(self, state, &arguments) < 0)
        goto fail;
    fl_engine_arguments_deinit(&arguments);
    return (PyObject *)self;
fail:
    fl_engine_arguments_deinit(&arguments);
    Py_XDECREF(self);
    return NULL;
}

static int engine_traverse(PyObject *self, visitproc visit, void *arg)
{
    fl_engine_object *engine = engine_of(self);
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(engine->output.bfloat16);
    Py_VISIT(engine->output.from_dlpack);
    Py_VISIT(engine->catalog);
    Py_VISIT(engine->allocate);
    Py_VISIT(engine->start_thread);
    Py_VISIT(engine->step);
    return 0;
}

// Drops what could be part of a cycle. Threads are stopped first: a Python thread that
// waits for work then ends, and takes its reference of the step along.
static int engine_clear(PyObject *self)
{
    fl_engine_object *engine = engine_of(self);
    if (engine->loader && !fl_engine_is_foreign(engine))
        fl_engine_stop(fl_loader_engine(engine->loader));
    if (engine->external)
        fl_external_forget(engine->external);
    fl_output_deinit(&engine->output);
    Py_CLEAR(engine->catalog);
    Py_CLEAR(engine->allocate);
    Py_CLEAR(engine->start_thread);
    Py_CLEAR(engine->step);
    return 0;
}

static void engine_dealloc(PyObject *self)
{
    fl_engine_object *engine = engine_of(self);
    PyObject_GC_UnTrack(self);
    engine_clear(self);
    // A child of a fork leaks what it inherited: its locks may have been held.
    if (!fl_engine_is_foreign(engine))
        fl_loader_free(engine->loader);
    fl_free_instance(self);
}

static PyObject *engine_start_run(PyObject *self, PyObject *args, PyObject *keywords)
{
    fl_engine_object *engine = engine_of(self);
    const fl_module *state = fl_module_of_instance(self);
    fl_cursor_spec spec = {0};
    if (fl_run_arguments_parse(&spec, args, keywords) < 0)
        return NULL;
    if (fl_engine_is_foreign(engine) || !engine->catalog) {
        PyErr_SetString(state->closed_error,
                        "this engine was made before fork(); make a new iterator");
        return NULL;
    }
    spec.count = fl_catalog_count(fl_catalog_of_object(engine->catalog));
    spec.batch_size = fl_loader_batch_size(engine->loader);
    return fl_run_object_make(state, engine, &spec);
}

static PyObject *engine_close(PyObject *self, PyObject *ignored)
{
    (void)ignored;
    fl_engine_object *engine = engine_of(self);
    int32_t left = 0;
    if (fl_engine_is_foreign(engine))
        return PyLong_FromLong(0);
    fl_engine *core = fl_loader_engine(engine->loader);
    if (fl_python_step_is_thread_of(core)) {
        fl_engine_stop(core); // nobody waits for itself
        return PyLong_FromLong(0);
    }
    Py_BEGIN_ALLOW_THREADS
    left = fl_engine_close(core, fl_clock_now() + CLOSE_LIMIT_NS);
    fl_slab_pool_close(fl_loader_pool(engine->loader));
    Py_END_ALLOW_THREADS
    fl_deferred_drain();
    return PyLong_FromLong(left);
}

static PyObject *engine_is_closed(PyObject *self, void *ignored)
{
    (void)ignored;
    fl_engine_object *engine = engine_of(self);
    return PyBool_FromLong(fl_engine_is_foreign(engine) ||
                           fl_engine_is_closed(fl_loader_engine(engine->loader)));
}

static PyObject *field_shape(const fl_field_layout *field)
{
    if (field->is_late)
        Py_RETURN_NONE;
    return fl_int_tuple(field->row.shape, field->row.dimensions);
}

static PyObject *engine_fields(PyObject *self, void *ignored)
{
    (void)ignored;
    const fl_layout *layout = fl_loader_layout(engine_of(self)->loader);
    int32_t count = layout->field_count - HIDDEN_FIELDS;
    PyObject *fields = PyList_New(count);
    for (int32_t i = 0; fields && i < count; i++) {
        const fl_field_layout *field = &layout->fields[i];
        PyObject *entry = Py_BuildValue("(ssN)", field->name, fl_dtype_name(field->dtype),
                                        field_shape(field));
        if (entry)
            PyList_SET_ITEM(fields, i, entry);
        else
            Py_CLEAR(fields);
    }
    return fields;
}

static PyMethodDef engine_methods[] = {
    {"start_run", (PyCFunction)(void (*)(void))engine_start_run,
     METH_VARARGS | METH_KEYWORDS,
     "start_run($self, /, *, shuffle, seed, epoch, start, rank, world_size, uneven, "
     "drop_last)\n--\n\n"
     "A run over an epoch; nothing is started before its first next()."},
    {"close", engine_close, METH_NOARGS,
     "close($self, /)\n--\n\n"
     "Stops and waits up to 2 s; the number of threads left behind."},
    {"stats", fl_engine_stats, METH_NOARGS,
     "stats($self, /)\n--\n\nThe counters, at this moment."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef engine_properties[] = {
    {"is_closed", engine_is_closed, NULL, "True after close() and in a forked child.",
     NULL},
    {"fields", engine_fields, NULL,
     "(name, dtype, row shape or None if it varies) of each field.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot engine_slots[] = {
    {Py_tp_doc, "Engine(catalog, *, fields, batch_size, num_threads, io_threads, "
                "prefetch_batches, memory_limit, in_order, output, max_pixels, "
                "allocate=None, decode_fallback=None, start_python_thread=None, "
                "full_batches=False)\n--\n\n"
                "A loader's threads, budgets and memory."},
    {Py_tp_new, engine_new},
    {Py_tp_dealloc, engine_dealloc},
    {Py_tp_traverse, engine_traverse},
    {Py_tp_clear, engine_clear},
    {Py_tp_methods, engine_methods},
    {Py_tp_getset, engine_properties},
    {0, NULL},
};

static PyType_Spec engine_spec = {
    .name = "feedline._core.Engine",
    .basicsize = sizeof(fl_engine_object),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = engine_slots,
};

int fl_bind_engine(PyObject *module, fl_module *state)
{
    state->engine_type = fl_add_type(module, &engine_spec);
    return state->engine_type ? 0 : -1;
}
