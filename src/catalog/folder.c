// SPDX-License-Identifier: MIT
#include "catalog/folder.h"

#include "base/memory.h"
#include "catalog/name_order.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

// Names as they are read, each NUL-terminated.
typedef struct fl_name_list {
    char *bytes;
    size_t used, size;
    int64_t count;
} fl_name_list;

// One listing under way.
typedef struct fl_listing {
    fl_folder *folder;
    const fl_folder_rules *rules;
    DIR *directory;
    fl_folder **children;
    fl_name_list names;
    char path[PATH_MAX]; // of the folder, or of the entry that failed
} fl_listing;

fl_folder *fl_folder_create(const fl_folder *parent, const char *name)
{
    size_t length = strlen(name);
    size_t before = parent && parent->path_length ? parent->path_length + 1 : 0;
    fl_folder *folder = fl_alloc_zeroed(sizeof(*folder) + before + length + 1);
    if (!folder)
        return NULL;
    folder->parent = parent;
    folder->label = parent ? parent->label : -1;
    if (before > 0) {
        memcpy(folder->path, parent->path, before - 1);
        folder->path[before - 1] = '/';
    }
    memcpy(folder->path + before, name, length);
    folder->path_length = before + length;
    return folder;
}

void fl_folder_destroy(fl_folder *folder)
{
    if (!folder)
        return;
    fl_free(folder->files);
    fl_free(folder);
}

fl_text fl_folder_path(const fl_folder *folder)
{
    return (fl_text){folder->path, folder->path_length};
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c;
}

static bool has_extension(const fl_folder_rules *rules, const char *name, size_t length)
{
    for (int32_t i = 0; i < rules->extension_count; i++) {
        fl_text extension = rules->extensions[i];
        if (extension.length > length)
            continue;
        const char *tail = name + length - extension.length;
        size_t same = 0;
        while (same < extension.length &&
               lower(tail[same]) == lower(extension.data[same]))
            same++;
        if (same == extension.length)
            return true;
    }
    return false;
}

static bool is_own_ancestor(const fl_folder *folder)
{
    for (const fl_folder *up = folder->parent; up; up = up->parent)
        if (up->device == folder->device && up->inode == folder->inode)
            return true;
    return false;
}

// Appends `name` to the folder's path, for opening or for an error message.
static bool extend_path(fl_listing *listing, const char *name)
{
    size_t length = strlen(name), used = strlen(listing->path);
    bool needs_slash = used > 0 && listing->path[used - 1] != '/' && length > 0;
    if (used + (needs_slash ? 1 : 0) + length >= sizeof(listing->path))
        return false;
    if (needs_slash)
        listing->path[used++] = '/';
    memcpy(listing->path + used, name, length + 1);
    return true;
}

static const char *listing_advice(int os_error)
{
    switch (os_error) {
    case EACCES:
        return "give this user the right to read it";
    case ENOENT:
        return "is the path right, and the disk mounted?";
    case ENOTDIR:
        return "a folder is wanted here";
    case EMFILE:
    case ENFILE:
        return "raise the limit of open files (ulimit -n)";
    case ENAMETOOLONG:
        return "shorten its names";
    default:
        return "";
    }
}

static fl_status fail(fl_listing *listing, const char *name, int os_error,
                      const char *message, fl_error *error)
{
    extend_path(listing, name); // what does not fit stays out of the message
    size_t length = strlen(listing->path);
    if (length > 1 && listing->path[length - 1] == '/')
        listing->path[length - 1] = 0; // the root as the caller wrote it
    fl_status status = fl_error_set_os(error, os_error, "%s", message);
    fl_error_add_advice(error, listing_advice(os_error));
    fl_error_add_path(error, listing->path);
    return status;
}

static fl_status append_name(fl_name_list *names, const char *name, size_t length,
                             fl_error *error)
{
    if (names->size - names->used < length + 1) {
        size_t size = names->size * 2 + length + 1024;
        char *bytes = fl_realloc(names->bytes, size);
        if (!bytes)
            return fl_error_no_memory(error);
        names->bytes = bytes;
        names->size = size;
    }
    memcpy(names->bytes + names->used, name, length + 1);
    names->used += length + 1;
    names->count++;
    return FL_OK;
}

// Whether an entry is a folder, links followed. A link that leads nowhere counts as a
// file, as for os.walk; what cannot be looked at is an error, not a silent loss.
static fl_status is_folder(fl_listing *listing, const struct dirent *entry, bool *out,
                           fl_error *error)
{
    *out = entry->d_type == DT_DIR;
    if (entry->d_type != DT_LNK && entry->d_type != DT_UNKNOWN)
        return FL_OK;
    struct stat info;
    if (fstatat(dirfd(listing->directory), entry->d_name, &info, 0) == 0) {
        *out = S_ISDIR(info.st_mode);
        return FL_OK;
    }
    if (errno == ENOENT || errno == ENOTDIR || errno == ELOOP)
        return FL_OK;
    return fail(listing, entry->d_name, errno,
                "cannot look at this entry of the data set", error);
}

static fl_status add_entry(fl_listing *listing, const struct dirent *entry,
                           fl_error *error)
{
    const char *name = entry->d_name;
    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return FL_OK;
    bool is_directory;
    fl_status status = is_folder(listing, entry, &is_directory, error);
    if (status != FL_OK)
        return status;
    size_t length = strlen(name);
    bool is_root = !listing->folder->parent;
    if (!is_directory && (is_root || !has_extension(listing->rules, name, length)))
        return FL_OK;

    // Whoever opens it joins it to the path: it has to fit, with '/' and the terminator.
    size_t whole = listing->rules->prefix.length + listing->folder->path_length + length;
    if (whole + 2 > PATH_MAX)
        return fail(listing, "", ENAMETOOLONG,
                    "the path of a file or folder in here is longer than the system "
                    "allows",
                    error);
    if (!is_directory)
        return append_name(&listing->names, name, length, error);
    fl_folder *child = fl_folder_create(listing->folder, name);
    if (!child)
        return fl_error_no_memory(error);
    child->next = *listing->children;
    *listing->children = child;
    return FL_OK;
}

static fl_status read_entries(fl_listing *listing, fl_error *error)
{
    for (;;) {
        errno = 0;
        const struct dirent *entry = readdir(listing->directory);
        if (!entry && errno != 0)
            return fail(listing, "", errno, "cannot list this folder of the data set",
                        error);
        if (!entry)
            return FL_OK;
        fl_status status = add_entry(listing, entry, error);
        if (status != FL_OK)
            return status;
    }
}

static int compare_names(const void *x, const void *y)
{
    return fl_name_compare(*(const fl_text *)x, *(const fl_text *)y);
}

// Sorts `names` into one block that is not larger than need be.
static fl_status keep_sorted(fl_folder *folder, const fl_name_list *names,
                             fl_error *error)
{
    if (names->count == 0)
        return FL_OK;
    size_t count = (size_t)names->count;
    fl_text *sorted = fl_alloc_array(count, sizeof(*sorted));
    char *files = fl_alloc(names->used);
    if (!sorted || !files) {
        fl_free(sorted);
        fl_free(files);
        return fl_error_no_memory(error);
    }
    const char *name = names->bytes;
    for (size_t i = 0; i < count; i++) {
        sorted[i] = (fl_text){name, strlen(name)};
        name += sorted[i].length + 1;
    }
    qsort(sorted, count, sizeof(*sorted), compare_names);

    size_t used = 0;
    for (size_t i = 0; i < count; i++) {
        memcpy(files + used, sorted[i].data, sorted[i].length + 1);
        used += sorted[i].length + 1;
    }
    fl_free(sorted);
    folder->files = files;
    folder->file_count = names->count;
    folder->file_bytes = used - count;
    return FL_OK;
}

static fl_status list_open_folder(fl_listing *listing, fl_error *error)
{
    fl_folder *folder = listing->folder;
    struct stat info;
    if (fstat(dirfd(listing->directory), &info) != 0)
        return fail(listing, "", errno, "cannot look at this folder of the data set",
                    error);
    folder->device = info.st_dev;
    folder->inode = info.st_ino;
    if (is_own_ancestor(folder))
        return FL_OK;
    fl_status status = read_entries(listing, error);
    return status == FL_OK ? keep_sorted(folder, &listing->names, error) : status;
}

fl_status fl_folder_list(fl_folder *folder, const fl_folder_rules *rules,
                         fl_folder **children, fl_error *error)
{
    fl_listing listing = {.folder = folder, .rules = rules, .children = children};
    *children = NULL;
    memcpy(listing.path, rules->prefix.data, rules->prefix.length);
    extend_path(&listing, folder->path); // add_entry made sure that it fits
    listing.directory = opendir(listing.path);
    if (!listing.directory)
        return fail(&listing, "", errno, "cannot list this folder of the data set",
                    error);
    fl_status status = list_open_folder(&listing, error);
    closedir(listing.directory);
    fl_free(listing.names.bytes);
    return status;
}
