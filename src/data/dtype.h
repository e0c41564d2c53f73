// SPDX-License-Identifier: MIT
// Element types of arrays, named as DLPack and NumPy name them. Plain values.
#ifndef FL_DATA_DTYPE_H
#define FL_DATA_DTYPE_H

#include <stddef.h>

typedef enum fl_dtype {
    FL_UINT8,
    FL_INT64,
    FL_FLOAT16,
    FL_BFLOAT16,
    FL_FLOAT32,
    FL_BOOL,
} fl_dtype;

size_t fl_dtype_size(fl_dtype dtype); // bytes an element
const char *fl_dtype_name(fl_dtype dtype);

#endif
