// SPDX-License-Identifier: MIT
// How a catalog comes to be: sizes first, then its entries in order, then sealed. Between
// make and seal it belongs to one thread.
#ifndef FL_CATALOG_BUILD_H
#define FL_CATALOG_BUILD_H

#include "catalog/catalog.h"

typedef struct fl_catalog_sizes {
    fl_text prefix; // stands before every name: "" or ends in '/'; copied
    int64_t count;
    size_t name_bytes;                // of all names together, without the prefix
    bool has_labels, has_wide_labels; // wide: some do not fit 32 bits
    int32_t class_count;
    size_t class_bytes;
} fl_catalog_sizes;

FL_MUST_CHECK fl_status fl_catalog_make(const fl_catalog_sizes *sizes, fl_catalog **out,
                                        fl_error *error);
// Adds an entry named by the parts one after another.
void fl_catalog_add(fl_catalog *catalog, const fl_text *parts, int32_t part_count,
                    int64_t label);
void fl_catalog_add_class(fl_catalog *catalog, fl_text name);
// Call it when all that `sizes` announced has been added.
void fl_catalog_seal(fl_catalog *catalog);

#endif
