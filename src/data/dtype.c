// SPDX-License-Identifier: MIT
#include "data/dtype.h"

#include <assert.h>

size_t fl_dtype_size(fl_dtype dtype)
{
    switch (dtype) {
    case FL_UINT8:
    case FL_BOOL:
        return 1;
    case FL_FLOAT16:
    case FL_BFLOAT16:
        return 2;
    case FL_FLOAT32:
        return 4;
    case FL_INT64:
        return 8;
    }
    assert(0 && "dtype");
    return 0;
}

const char *fl_dtype_name(fl_dtype dtype)
{
    switch (dtype) {
    case FL_UINT8:
        return "uint8";
    case FL_INT64:
        return "int64";
    case FL_FLOAT16:
        return "float16";
    case FL_BFLOAT16:
        return "bfloat16";
    case FL_FLOAT32:
        return "float32";
    case FL_BOOL:
        return "bool";
    }
    return "unknown";
}
