// SPDX-License-Identifier: MIT
#include "binding/deferred.h"

#include <stdatomic.h>
#include <unistd.h>

struct fl_held {
    fl_held *next;
    PyObject *object; // counted
    pid_t process;    // that made it
};

// Process-wide on purpose: an object may be let go when its module, engine and pool are
// gone. A stack that is only ever taken whole, so that no node is compared twice.
static _Atomic(fl_held *) deferred;

fl_held *fl_held_create(PyObject *object)
{
    fl_held *held = fl_alloc_zeroed(sizeof(*held));
    if (!held) {
        PyErr_NoMemory();
        return NULL;
    }
    held->object = Py_NewRef(object);
    held->process = getpid();
    return held;
}

PyObject *fl_held_object(const fl_held *held)
{
    return held->object;
}

PyObject *fl_held_take(fl_held *held)
{
    PyObject *object = held->object;
    fl_free(held);
    return object;
}

void fl_held_release(void *held)
{
    fl_held *mine = held;
    mine->next = atomic_load_explicit(&deferred, memory_order_relaxed);
    // Release: the drain sees the node whole; its partner is the exchange below.
    while (!atomic_compare_exchange_weak_explicit(
        &deferred, &mine->next, mine, memory_order_release, memory_order_relaxed)) {
    }
}

void fl_deferred_drain(void)
{
    if (!atomic_load_explicit(&deferred, memory_order_relaxed))
        return;
    fl_held *list = atomic_exchange_explicit(&deferred, NULL, memory_order_acquire);
    pid_t process = getpid();
    while (list) {
        fl_held *held = list;
        list = held->next;
        if (held->process == process)
            Py_DECREF(held->object);
        fl_free(held);
    }
}
