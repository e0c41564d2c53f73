// SPDX-License-Identifier: MIT
#include "binding/external.h"

#include "binding/deferred.h"

#include <stdatomic.h>

enum { BLOCK_ALIGNMENT = 64 };

struct fl_external {
    _Atomic(PyObject *) function; // borrowed; NULL once its owner is gone
};

fl_external *fl_external_create(PyObject *function)
{
    fl_external *external = fl_alloc_zeroed(sizeof(*external));
    if (!external) {
        PyErr_NoMemory();
        return NULL;
    }
    atomic_init(&external->function, function);
    return external;
}

void fl_external_destroy(fl_external *external)
{
    fl_free(external);
}

void fl_external_forget(fl_external *external)
{
    atomic_store(&external->function, NULL);
}

// The size and address that the block claims; -1 with an exception set.
static int read_block(PyObject *block, size_t *size, void **memory)
{
    PyObject *length = PyObject_GetAttrString(block, "nbytes");
    *size = length ? PyLong_AsSize_t(length) : 0;
    Py_XDECREF(length);
    if (PyErr_Occurred())
        return -1;
    PyObject *address = PyObject_CallMethod(block, "data_ptr", NULL);
    *memory = address ? PyLong_AsVoidPtr(address) : NULL;
    Py_XDECREF(address);
    return PyErr_Occurred() ? -1 : 0;
}

// A block that is fit for a batch, as a record to give back later; NULL with an exception
// set.
static fl_held *call_function(PyObject *function, size_t size, void **memory)
{
    fl_held *held = NULL;
    size_t found = 0;
    PyObject *block = PyObject_CallFunction(function, "n", (Py_ssize_t)size);
    if (!block)
        return NULL;
    if (read_block(block, &found, memory) < 0)
        goto done;
    if (found < size || (uintptr_t)*memory % BLOCK_ALIGNMENT != 0 || !*memory) {
        PyErr_Format(PyExc_ValueError,
                     "allocate(%zu) must return at least that many bytes at a multiple "
                     "of %d, not %zu bytes at %p",
                     size, BLOCK_ALIGNMENT, found, *memory);
        goto done;
    }
    held = fl_held_create(block);
done:
    Py_DECREF(block);
    return held;
}

static fl_status external_allocate(void *context, size_t size, void **memory,
                                   void **handle, fl_error *error)
{
    fl_external *external = context;
    PyObject *function = atomic_load(&external->function);
    if (!function || size > PY_SSIZE_T_MAX)
        return fl_error_set(error, FL_ERROR_CLOSED, "the loader is gone");
    Py_INCREF(function);
    *handle = call_function(function, size, memory);
    Py_DECREF(function);
    if (*handle)
        return FL_OK;
    fl_error own = FL_ERROR_INIT;
    fl_error_from_python(&own);
    fl_status status = own.code;
    fl_error_move(error, &own);
    return status;
}

static void external_give(void *context, void *memory, size_t size, void *handle)
{
    (void)context;
    (void)memory;
    (void)size;
    fl_held_release(handle);
}

static void external_free(void *context)
{
    fl_external_destroy(context);
}

fl_allocator fl_external_allocator(fl_external *external)
{
    return (fl_allocator){.name = "python",
                          .is_plain = false,
                          .is_reusable = false,
                          .allocate = external_allocate,
                          .give = external_give,
                          .destroy = external_free,
                          .context = external};
}
