// SPDX-License-Identifier: MIT
// NumPy's C API for the files of the binding: one table, imported by module.c. Include it
// behind module.h.
#ifndef FL_BINDING_NUMPY_H
#define FL_BINDING_NUMPY_H

#define PY_ARRAY_UNIQUE_SYMBOL fl_numpy_api
#ifndef FL_NUMPY_IMPORT
#define NO_IMPORT_ARRAY
#endif
#include <numpy/arrayobject.h>

#endif
