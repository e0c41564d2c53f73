// SPDX-License-Identifier: MIT
#define FL_NUMPY_IMPORT
#include "binding/module.h"

#include "binding/numpy.h"

PyMODINIT_FUNC PyInit__core(void);

typedef int (*bind_function)(PyObject *module, fl_module *state);

// The files of the binding, in the order in which they need each other.
static const bind_function bind_functions[] = {
    fl_bind_exceptions, fl_bind_catalog,   fl_bind_order,
    fl_bind_tensor,     fl_bind_raw_batch, fl_bind_python_step,
    fl_bind_run,        fl_bind_engine,    fl_bind_functions,
};

fl_module *fl_module_of(PyObject *module)
{
    return PyModule_GetState(module);
}

fl_module *fl_module_of_instance(PyObject *self)
{
    return PyType_GetModuleState(Py_TYPE(self));
}

fl_module *fl_module_of_type(PyObject *type)
{
    return PyType_GetModuleState((PyTypeObject *)type);
}

PyTypeObject *fl_add_type(PyObject *module, PyType_Spec *spec)
{
    PyTypeObject *type = (PyTypeObject *)PyType_FromModuleAndSpec(module, spec, NULL);
    if (type && PyModule_AddType(module, type) < 0)
        Py_CLEAR(type);
    return type;
}

void fl_free_instance(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    type->tp_free(self);
    Py_DECREF(type);
}

static int module_exec(PyObject *module)
{
    fl_module *state = fl_module_of(module);
    if (PyArray_ImportNumPyAPI() < 0)
        return -1;
    if (PyModule_AddStringConstant(module, "__version__", FEEDLINE_VERSION) < 0)
        return -1;
    for (size_t i = 0; i < Py_ARRAY_LENGTH(bind_functions); i++) {
        if (bind_functions[i](module, state) < 0)
            return -1;
    }
    return 0;
}

static int module_traverse(PyObject *module, visitproc visit, void *arg)
{
    const fl_module *state = fl_module_of(module);
    Py_VISIT(state->core_error);
    Py_VISIT(state->decode_error);
    Py_VISIT(state->limit_error);
    Py_VISIT(state->closed_error);
    Py_VISIT(state->catalog_type);
    Py_VISIT(state->cursor_type);
    Py_VISIT(state->tensor_type);
    Py_VISIT(state->raw_batch_type);
    Py_VISIT(state->run_type);
    Py_VISIT(state->engine_type);
    Py_VISIT(state->file_bytes_type);
    return 0;
}

static int module_clear(PyObject *module)
{
    fl_module *state = fl_module_of(module);
    Py_CLEAR(state->core_error);
    Py_CLEAR(state->decode_error);
    Py_CLEAR(state->limit_error);
    Py_CLEAR(state->closed_error);
    Py_CLEAR(state->catalog_type);
    Py_CLEAR(state->cursor_type);
    Py_CLEAR(state->tensor_type);
    Py_CLEAR(state->raw_batch_type);
    Py_CLEAR(state->run_type);
    Py_CLEAR(state->engine_type);
    Py_CLEAR(state->file_bytes_type);
    return 0;
}

static void module_free(void *module)
{
    module_clear(module);
}

static PyModuleDef_Slot module_slots[] = {
    {Py_mod_exec, module_exec},
#if PY_VERSION_HEX >= 0x030C0000
    {Py_mod_multiple_interpreters, Py_MOD_MULTIPLE_INTERPRETERS_NOT_SUPPORTED},
#endif
#if PY_VERSION_HEX >= 0x030D0000
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
#endif
    {0, NULL},
};

static struct PyModuleDef module_definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "feedline._core",
    .m_doc = "The C core as Python sees it. Private: feedline's Python modules are the "
             "public face.",
    .m_size = sizeof(fl_module),
    .m_slots = module_slots,
    .m_traverse = module_traverse,
    .m_clear = module_clear,
    .m_free = module_free,
};

PyMODINIT_FUNC PyInit__core(void)
{
    return PyModuleDef_Init(&module_definition);
}
