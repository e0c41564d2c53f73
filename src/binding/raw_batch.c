// SPDX-License-Identifier: MIT
#include "binding/raw_batch.h"

enum { HIDDEN_FIELDS = 2 }; // index, valid

typedef struct raw_batch {
    PyObject_HEAD
    PyObject *values;
    int64_t number;
    fl_slab *slab; // counted; of the two hidden fields
    fl_array index, valid;
} raw_batch;

static raw_batch *raw_batch_of(PyObject *self)
{
    return (raw_batch *)self;
}

// One array a row, as each has its own shape.
static PyObject *make_rows(const fl_module *state, const fl_output *output,
                           const fl_layout *layout, const fl_field_layout *field,
                           const fl_batch *batch)
{
    const fl_batch_view *view = fl_batch_read(batch);
    PyObject *rows = PyList_New(view->rows);
    for (int32_t row = 0; rows && row < view->rows; row++) {
        const fl_part *part = &view->parts[row * layout->late_count + field->late_slot];
        fl_array array = fl_array_of_part(fl_batch_late_slab(batch), field, part);
        PyObject *value = fl_output_make(state, output, &array);
        if (value)
            PyList_SET_ITEM(rows, row, value);
        else
            Py_CLEAR(rows);
    }
    return rows;
}

static PyObject *make_value(const fl_module *state, const fl_output *output,
                            const fl_layout *layout, const fl_field_layout *field,
                            const fl_batch *batch)
{
    if (field->is_late)
        return make_rows(state, output, layout, field, batch);
    fl_array array =
        fl_array_of_field(fl_batch_slab(batch), field, fl_batch_read(batch)->rows);
    return fl_output_make(state, output, &array);
}

static PyObject *make_values(const fl_module *state, const fl_output *output,
                             const fl_layout *layout, const fl_batch *batch)
{
    int32_t count = layout->field_count - HIDDEN_FIELDS;
    PyObject *values = PyTuple_New(count);
    for (int32_t i = 0; values && i < count; i++) {
        PyObject *value = make_value(state, output, layout, &layout->fields[i], batch);
        if (value)
            PyTuple_SET_ITEM(values, i, value);
        else
            Py_CLEAR(values);
    }
    return values;
}

PyObject *fl_raw_batch_make(const fl_module *state, const fl_output *output,
                            const fl_layout *layout, const fl_batch *batch)
{
    PyObject *values = make_values(state, output, layout, batch);
    if (!values)
        return NULL;
    raw_batch *self = PyObject_GC_New(raw_batch, state->raw_batch_type);
    if (!self) {
        Py_DECREF(values);
        return NULL;
    }
    int32_t rows = fl_batch_read(batch)->rows, count = layout->field_count;
    self->values = values;
    self->number = fl_batch_number(batch);
    self->slab = fl_slab_ref(fl_batch_slab(batch));
    self->index = fl_array_of_field(self->slab, &layout->fields[count - 2], rows);
    self->valid = fl_array_of_field(self->slab, &layout->fields[count - 1], rows);
    PyObject_GC_Track(self);
    return (PyObject *)self;
}

static int raw_batch_traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(raw_batch_of(self)->values);
    return 0;
}

static int raw_batch_clear(PyObject *self)
{
    Py_CLEAR(raw_batch_of(self)->values);
    return 0;
}

static void raw_batch_dealloc(PyObject *self)
{
    PyObject_GC_UnTrack(self);
    raw_batch_clear(self);
    fl_slab_unref(&raw_batch_of(self)->slab);
    fl_free_instance(self);
}

static PyObject *raw_batch_values(PyObject *self, void *ignored)
{
    (void)ignored;
    PyObject *values = raw_batch_of(self)->values;
    return values ? Py_NewRef(values) : PyTuple_New(0);
}

static PyObject *raw_batch_number(PyObject *self, void *ignored)
{
    (void)ignored;
    return PyLong_FromLongLong(raw_batch_of(self)->number);
}

static PyObject *raw_batch_index(PyObject *self, void *ignored)
{
    (void)ignored;
    return fl_numpy_make(fl_module_of_instance(self), &raw_batch_of(self)->index);
}

static PyObject *raw_batch_valid(PyObject *self, void *ignored)
{
    (void)ignored;
    return fl_numpy_make(fl_module_of_instance(self), &raw_batch_of(self)->valid);
}

static PyGetSetDef raw_batch_properties[] = {
    {"values", raw_batch_values, NULL, "One value a field, in the fields' order.", NULL},
    {"number", raw_batch_number, NULL, "Number of the batch in its run.", NULL},
    {"index", raw_batch_index, NULL, "Which sample is in each row; int64.", NULL},
    {"valid", raw_batch_valid, NULL, "False in rows that are padding; bool.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot raw_batch_slots[] = {
    {Py_tp_doc, "What Run.next returns."}, {Py_tp_dealloc, raw_batch_dealloc},
    {Py_tp_traverse, raw_batch_traverse},  {Py_tp_clear, raw_batch_clear},
    {Py_tp_getset, raw_batch_properties},  {0, NULL},
};

static PyType_Spec raw_batch_spec = {
    .name = "feedline._core.RawBatch",
    .basicsize = sizeof(raw_batch),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION |
             Py_TPFLAGS_IMMUTABLETYPE,
    .slots = raw_batch_slots,
};

int fl_bind_raw_batch(PyObject *module, fl_module *state)
{
    state->raw_batch_type = fl_add_type(module, &raw_batch_spec);
    return state->raw_batch_type ? 0 : -1;
}
