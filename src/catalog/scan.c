// SPDX-License-Identifier: MIT
// Lists a tree of class folders. Threads take folders from one list and give back the
// sub-folders they find; each keeps its files sorted. When nothing is left, the folders
// are sorted and joined, so the result does not depend on who listed what when.
#include "base/memory.h"
#include "base/sync.h"
#include "base/thread.h"
#include "catalog/build.h"
#include "catalog/catalog.h"
#include "catalog/folder.h"
#include "catalog/name_order.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_THREADS = 64 };

typedef struct fl_scan {
    fl_folder_rules rules; // immutable
    fl_mutex lock;
    fl_condition changed; // waiters: threads that found no folder to list
    fl_folder *waiting FL_GUARDED_BY(lock); // to be listed
    fl_folder *listed FL_GUARDED_BY(lock);
    int32_t busy FL_GUARDED_BY(lock); // threads that list a folder now
    // The first failure in the order of paths, so that it is the same one each time.
    const fl_folder *failed FL_GUARDED_BY(lock);
    fl_error error FL_GUARDED_BY(lock);
} fl_scan;

// The folders in their final order, owned by the list.
typedef struct fl_folder_set {
    fl_folder **folders;
    int64_t count;
} fl_folder_set;

static int compare_folders(const void *x, const void *y)
{
    const fl_folder *left = *(fl_folder *const *)x, *right = *(fl_folder *const *)y;
    if (left->label != right->label)
        return left->label < right->label ? -1 : 1;
    return fl_name_compare(fl_folder_path(left), fl_folder_path(right));
}

static void destroy_all(fl_folder *folder)
{
    while (folder) {
        fl_folder *next = folder->next;
        fl_folder_destroy(folder);
        folder = next;
    }
}

// Waits for a folder; NULL: the scan is over.
static fl_folder *take_folder(fl_scan *scan)
{
    fl_mutex_lock(&scan->lock);
    while (!scan->waiting && scan->busy > 0)
        fl_condition_wait(&scan->changed, &scan->lock);
    fl_folder *folder = scan->waiting;
    if (folder) {
        scan->waiting = folder->next;
        scan->busy++;
    }
    fl_mutex_unlock(&scan->lock);
    return folder;
}

static void note_failure_locked(fl_scan *scan, const fl_folder *folder, fl_error *error)
    FL_REQUIRES(&scan->lock)
{
    if (scan->failed && compare_folders(&scan->failed, &folder) <= 0)
        return;
    scan->failed = folder;
    scan->error = *error; // a listing's error carries no exception
}

static void give_folder(fl_scan *scan, fl_folder *folder, fl_folder *children,
                        fl_error *error)
{
    fl_folder *last = children;
    while (last && last->next)
        last = last->next;
    fl_mutex_lock(&scan->lock);
    if (last) {
        last->next = scan->waiting;
        scan->waiting = children;
    }
    folder->next = scan->listed;
    scan->listed = folder;
    scan->busy--;
    if (error->code != FL_OK)
        note_failure_locked(scan, folder, error);
    if (children || scan->busy == 0)
        fl_condition_broadcast(&scan->changed);
    fl_mutex_unlock(&scan->lock);
}

static void work(void *argument)
{
    fl_scan *scan = argument;
    fl_folder *folder;
    while ((folder = take_folder(scan)) != NULL) {
        fl_folder *children;
        fl_error error = FL_ERROR_INIT;
        fl_status status = fl_folder_list(folder, &scan->rules, &children, &error);
        error.code = status;
        give_folder(scan, folder, children, &error);
    }
}

// Lists all that waits, with up to `threads` threads, this one included. Fewer do too.
static void work_in_parallel(fl_scan *scan, int32_t threads)
{
    fl_thread helpers[MAX_THREADS];
    int32_t limit = threads < MAX_THREADS ? threads : MAX_THREADS, started = 0;
    while (started < limit - 1 &&
           fl_thread_start(&helpers[started], "fl-scan", work, scan, NULL) == FL_OK)
        started++;
    work(scan);
    for (int32_t i = 0; i < started; i++)
        fl_thread_join(&helpers[i]);
}

static void free_folders(fl_folder_set *list)
{
    for (int64_t i = 0; i < list->count; i++)
        fl_folder_destroy(list->folders[i]);
    fl_free(list->folders);
}

// Moves a linked list into a sorted array; on failure it stays where it was.
static fl_status sort_folders(fl_folder **head, fl_folder_set *out, fl_error *error)
{
    size_t count = 0;
    for (const fl_folder *folder = *head; folder; folder = folder->next)
        count++;
    out->folders = fl_alloc_array(count, sizeof(fl_folder *));
    if (!out->folders)
        return fl_error_no_memory(error);
    for (fl_folder *folder = *head; folder; folder = folder->next)
        out->folders[out->count++] = folder;
    *head = NULL;
    qsort(out->folders, count, sizeof(fl_folder *), compare_folders);
    return FL_OK;
}

static fl_status no_such_file(fl_error *error, const char *message)
{
    fl_error_set(error, FL_ERROR_IO, "%s", message);
    if (error)
        error->os_error = ENOENT;
    return FL_ERROR_IO;
}

// Lists the root, numbers its classes in their order and lets them wait to be listed.
static fl_status find_classes(fl_scan *scan, fl_folder *root, const char *root_path,
                              int32_t *count, fl_error *error)
{
    fl_folder *children = NULL;
    fl_folder_set classes = {0};
    fl_status status = fl_folder_list(root, &scan->rules, &children, error);
    if (status == FL_OK)
        status = sort_folders(&children, &classes, error);
    if (status == FL_OK && classes.count == 0) {
        char message[sizeof(error->message)];
        snprintf(message, sizeof(message), "Couldn't find any class folder in %s.",
                 root_path);
        status = no_such_file(error, message);
    }
    if (status == FL_OK && classes.count > INT32_MAX)
        status =
            fl_error_set(error, FL_ERROR_LIMIT, "there are too many class folders: %lld",
                         (long long)classes.count);
    if (status != FL_OK)
        goto done;

    for (int64_t i = classes.count - 1; i >= 0; i--) {
        fl_folder *folder = classes.folders[i];
        folder->label = (int32_t)i;
        folder->next = children;
        children = folder;
    }
    // No other thread is there yet.
    scan->waiting = children;
    children = NULL;
    *count = (int32_t)classes.count;
    classes.count = 0;
done:
    destroy_all(children);
    free_folders(&classes);
    return status;
}

// Appends to a message of fixed size; false: it did not fit and nothing was added.
static bool append(char *message, size_t size, fl_text text)
{
    size_t used = strlen(message);
    if (text.length >= size - used)
        return false;
    memcpy(message + used, text.data, text.length);
    message[used + text.length] = 0;
    return true;
}

// torchvision's text, with as many of the classes as leave room for the extensions.
static fl_status report_empty(const fl_folder_rules *rules, const fl_text *empty,
                              int32_t count, fl_error *error)
{
    enum { CLASSES_SIZE = 160, ROOM_FOR_COUNT = 24 };
    char message[sizeof(error->message)] = "Found no valid file for the classes ";
    int32_t named = 0;
    for (; named < count; named++) {
        size_t size = CLASSES_SIZE - (named < count - 1 ? ROOM_FOR_COUNT : 0);
        if (strlen(message) + empty[named].length + 2 >= size)
            break;
        if (named > 0)
            append(message, size, (fl_text){", ", 2});
        append(message, size, empty[named]);
    }
    if (named < count) {
        char more[48];
        int length = snprintf(more, sizeof(more), "%s%d%s", named > 0 ? " and " : "",
                              count - named, named > 0 ? " more" : " with long names");
        append(message, sizeof(message), (fl_text){more, (size_t)length});
    }
    append(message, sizeof(message), (fl_text){". Supported extensions are: ", 28});
    for (int32_t i = 0; i < rules->extension_count; i++) {
        if (i > 0)
            append(message, sizeof(message), (fl_text){", ", 2});
        if (!append(message, sizeof(message), rules->extensions[i]))
            break;
    }
    return no_such_file(error, message);
}

static fl_status check_empty(const fl_folder_rules *rules, const fl_folder_set *list,
                             int32_t class_count, fl_error *error)
{
    fl_text *empty = fl_alloc_array((size_t)class_count, sizeof(*empty));
    if (!empty)
        return fl_error_no_memory(error);
    int32_t count = 0;
    for (int64_t i = 0, end; i < list->count; i = end) {
        // The class's own folder comes first, then what lies below it.
        bool is_empty = true;
        int32_t label = list->folders[i]->label;
        for (end = i; end < list->count && list->folders[end]->label == label; end++)
            is_empty = is_empty && list->folders[end]->file_count == 0;
        if (is_empty)
            empty[count++] = fl_folder_path(list->folders[i]);
    }
    fl_status status = count > 0 ? report_empty(rules, empty, count, error) : FL_OK;
    fl_free(empty);
    return status;
}

static void add_files(fl_catalog *catalog, const fl_folder *folder)
{
    const char *name = folder->files;
    for (int64_t i = 0; i < folder->file_count; i++) {
        fl_text parts[] = {fl_folder_path(folder), {"/", 1}, {name, strlen(name)}};
        fl_catalog_add(catalog, parts, 3, folder->label);
        name += parts[2].length + 1;
    }
}

static fl_status join_folders(const fl_folder_rules *rules, const fl_folder_set *list,
                              int32_t class_count, fl_catalog **out, fl_error *error)
{
    fl_catalog_sizes sizes = {
        .prefix = rules->prefix, .has_labels = true, .class_count = class_count};
    int32_t last_label = -1;
    for (int64_t i = 0; i < list->count; i++) {
        const fl_folder *folder = list->folders[i];
        sizes.count += folder->file_count;
        // Paths are shorter than PATH_MAX and there are fewer than 2^48 of them.
        sizes.name_bytes +=
            folder->file_bytes + (size_t)folder->file_count * (folder->path_length + 1);
        if (folder->label != last_label)
            sizes.class_bytes += folder->path_length;
        last_label = folder->label;
    }
    fl_catalog *catalog;
    fl_status status = fl_catalog_make(&sizes, &catalog, error);
    if (status != FL_OK)
        return status;
    last_label = -1;
    for (int64_t i = 0; i < list->count; i++) {
        const fl_folder *folder = list->folders[i];
        if (folder->label != last_label)
            fl_catalog_add_class(catalog, fl_folder_path(folder));
        last_label = folder->label;
        add_files(catalog, folder);
    }
    fl_catalog_seal(catalog);
    *out = catalog;
    return FL_OK;
}

// Everything between the listing of the root and the finished catalog.
static fl_status scan_classes(fl_scan *scan, int32_t class_count, bool allow_empty,
                              int32_t threads, fl_catalog **out, fl_error *error)
{
    fl_folder_set list = {0};
    work_in_parallel(scan, threads);
    // The helpers are joined: this thread is alone again.
    fl_status status = scan->error.code;
    if (status != FL_OK)
        fl_error_move(error, &scan->error);
    else
        status = sort_folders(&scan->listed, &list, error);
    if (status == FL_OK && !allow_empty)
        status = check_empty(&scan->rules, &list, class_count, error);
    if (status == FL_OK)
        status = join_folders(&scan->rules, &list, class_count, out, error);
    free_folders(&list);
    return status;
}

// The root with one '/' behind it, as os.path.join would put it before a name.
static fl_status make_prefix(const char *root, char **out, fl_error *error)
{
    size_t length = strlen(root);
    if (length == 0 || length + 2 > PATH_MAX) {
        fl_status status = fl_error_set_os(error, length ? ENAMETOOLONG : ENOENT,
                                           "cannot list the data set's folder");
        fl_error_add_path(error, root);
        return status;
    }
    char *prefix = fl_alloc(length + 2);
    if (!prefix)
        return fl_error_no_memory(error);
    memcpy(prefix, root, length);
    if (prefix[length - 1] != '/')
        prefix[length++] = '/';
    prefix[length] = 0;
    *out = prefix;
    return FL_OK;
}

fl_status fl_catalog_scan_folder(const char *root, const fl_text *extensions,
                                 int32_t extension_count, bool allow_empty,
                                 int32_t threads, fl_catalog **out, fl_error *error)
{
    if (threads < 1)
        return fl_error_set(error, FL_ERROR_ARGUMENT,
                            "the number of threads must be at least 1, it is %d",
                            threads);
    char *prefix = NULL;
    fl_status status = make_prefix(root, &prefix, error);
    if (status != FL_OK)
        return status;

    int32_t class_count = 0;
    fl_scan scan = {
        .rules = {{prefix, strlen(prefix)}, extensions, extension_count},
        .error = FL_ERROR_INIT,
    };
    fl_mutex_init(&scan.lock, FL_LOCK_LEAF);
    fl_condition_init(&scan.changed);
    fl_folder *root_folder = fl_folder_create(NULL, "");
    status = root_folder ? find_classes(&scan, root_folder, root, &class_count, error)
                         : fl_error_no_memory(error);
    if (status == FL_OK)
        status = scan_classes(&scan, class_count, allow_empty, threads, out, error);

    destroy_all(scan.listed);
    fl_folder_destroy(root_folder);
    fl_condition_deinit(&scan.changed);
    fl_mutex_deinit(&scan.lock);
    fl_free(prefix);
    return status;
}
