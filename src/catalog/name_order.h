// SPDX-License-Identifier: MIT
// The order of file names: Python's order of the same names as str (UTF-8 with
// surrogateescape). Any thread.
#ifndef FL_CATALOG_NAME_ORDER_H
#define FL_CATALOG_NAME_ORDER_H

#include "catalog/catalog.h"

// Negative, zero or positive, as memcmp.
int fl_name_compare(fl_text x, fl_text y);

#endif
