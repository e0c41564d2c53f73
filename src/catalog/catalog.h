// SPDX-License-Identifier: MIT
// Which samples exist: one arena of path bytes with offsets, labels and class names; no
// object a sample. Counted and immutable once made: any thread. At most 32 bytes an entry
// beyond the path's own bytes.
#ifndef FL_CATALOG_CATALOG_H
#define FL_CATALOG_CATALOG_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct fl_catalog fl_catalog;

typedef struct fl_text {
    const char *data; // not terminated; any bytes but NUL
    size_t length;
} fl_text;

// Lists root/<class>/**/<file> with torchvision's rules: classes are the sorted folders,
// files are sorted within a class as os.walk with sorted directories would give them,
// extensions compare without case. Threads list in parallel; links to folders are
// followed, loops end. Blocks.
FL_MUST_CHECK fl_status fl_catalog_scan_folder(const char *root,
                                               const fl_text *extensions,
                                               int32_t extension_count, bool allow_empty,
                                               int32_t threads, fl_catalog **out,
                                               fl_error *error);
// Copies paths and labels. `labels` may be NULL: all are -1 then, and has_labels is
// false.
FL_MUST_CHECK fl_status fl_catalog_from_paths(const fl_text *paths, const int64_t *labels,
                                              int64_t count, fl_catalog **out,
                                              fl_error *error);
fl_catalog *fl_catalog_ref(fl_catalog *catalog);
void fl_catalog_unref(fl_catalog **catalog);

int64_t fl_catalog_count(const fl_catalog *catalog);
bool fl_catalog_has_labels(const fl_catalog *catalog);
int64_t fl_catalog_label(const fl_catalog *catalog, int64_t index);
// The path, NUL-terminated, in `buffer`; false if it does not fit. `size` of PATH_MAX
// always fits what the scan found.
bool fl_catalog_path(const fl_catalog *catalog, int64_t index, char *buffer, size_t size);
size_t fl_catalog_path_length(const fl_catalog *catalog, int64_t index);
int32_t fl_catalog_class_count(const fl_catalog *catalog);
fl_text fl_catalog_class_name(const fl_catalog *catalog, int32_t label);
// A 64-bit hash over the names relative to the root, labels and class names, in order.
uint64_t fl_catalog_fingerprint(const fl_catalog *catalog);
size_t fl_catalog_memory(const fl_catalog *catalog); // bytes held

#endif
