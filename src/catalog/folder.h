// SPDX-License-Identifier: MIT
// One folder of a tree that is being listed: its path, its files and its sub-folders. A
// folder belongs to the thread that lists it; once listed it is immutable until it is
// destroyed.
#ifndef FL_CATALOG_FOLDER_H
#define FL_CATALOG_FOLDER_H

#include "catalog/catalog.h"

#include <sys/types.h>

typedef struct fl_folder {
    struct fl_folder *next;         // in the list that it is in
    const struct fl_folder *parent; // NULL: the root
    int32_t label;                  // of the class, -1 for the root
    dev_t device;
    ino_t inode;
    char *files; // sorted names, each NUL-terminated; owned
    int64_t file_count;
    size_t file_bytes;  // without the terminators
    size_t path_length; // relative to the root
    char path[];        // NUL-terminated
} fl_folder;

// What to look for; borrowed, immutable during a scan.
typedef struct fl_folder_rules {
    fl_text prefix; // the root with its '/'
    const fl_text *extensions;
    int32_t extension_count;
} fl_folder_rules;

// `parent` NULL: the root, path "". NULL: out of memory.
fl_folder *fl_folder_create(const fl_folder *parent, const char *name);
void fl_folder_destroy(fl_folder *folder);
fl_text fl_folder_path(const fl_folder *folder);

// Reads the folder: `children` becomes the list of its sub-folders (the caller's, also on
// failure), `files` the names with one of the extensions; the root's files are left out.
// Links are followed; a folder that is its own ancestor is empty. The error has the path.
FL_MUST_CHECK fl_status fl_folder_list(fl_folder *folder, const fl_folder_rules *rules,
                                       fl_folder **children, fl_error *error);

#endif
