// SPDX-License-Identifier: MIT
// What a field of a Python object that can change is read and written under: the object's
// own lock in an interpreter without a GIL, nothing with one. Do not jump or return out
// of it, and call nothing in it that may run Python code: that may let go of the lock.
// docs/free-threading.md lists what is guarded so.
#ifndef FL_BINDING_CRITICAL_SECTION_H
#define FL_BINDING_CRITICAL_SECTION_H

#include "binding/module.h"

#if PY_VERSION_HEX >= 0x030D0000
#define FL_BEGIN_CRITICAL_SECTION(object) Py_BEGIN_CRITICAL_SECTION(object)
#define FL_END_CRITICAL_SECTION() Py_END_CRITICAL_SECTION()
#else
#define FL_BEGIN_CRITICAL_SECTION(object) {
#define FL_END_CRITICAL_SECTION() }
#endif

#endif
