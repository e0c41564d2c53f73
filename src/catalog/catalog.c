// SPDX-License-Identifier: MIT
// Names lie one after another in one block without terminators; offsets[i] to
// offsets[i + 1] is name i. With 32-bit labels that is 12 bytes an entry beyond its name.
#include "catalog/catalog.h"

#include "base/memory.h"
#include "catalog/build.h"

#include <assert.h>
#include <stdatomic.h>
#include <string.h>

struct fl_catalog {
    _Atomic int64_t references;
    fl_catalog_sizes sizes; // sizes.prefix is `prefix`
    int64_t added;
    int32_t classes_added;
    uint64_t fingerprint;
    char *prefix;
    char *names;
    uint64_t *offsets;    // count + 1
    int32_t *labels;      // NULL if there are none or they are wide
    int64_t *wide_labels; // NULL if they are not wide
    char *class_names;
    uint64_t *class_offsets; // class_count + 1
};

static void catalog_destroy(fl_catalog *catalog)
{
    fl_free(catalog->prefix);
    fl_free(catalog->names);
    fl_free(catalog->offsets);
    fl_free(catalog->labels);
    fl_free(catalog->wide_labels);
    fl_free(catalog->class_names);
    fl_free(catalog->class_offsets);
    fl_free(catalog);
}

// Takes the memory that `sizes` asks for; false if there is not enough.
static bool take_memory(fl_catalog *catalog, const fl_catalog_sizes *sizes)
{
    size_t count = (size_t)sizes->count, classes = (size_t)sizes->class_count;
    catalog->prefix = fl_alloc(sizes->prefix.length);
    catalog->sizes.prefix.data = catalog->prefix;
    catalog->names = fl_alloc(sizes->name_bytes);
    catalog->offsets = fl_alloc_array(count + 1, sizeof(*catalog->offsets));
    catalog->class_names = fl_alloc(sizes->class_bytes);
    catalog->class_offsets = fl_alloc_array(classes + 1, sizeof(*catalog->class_offsets));
    bool is_complete = catalog->prefix && catalog->names && catalog->offsets &&
                       catalog->class_names && catalog->class_offsets;
    if (sizes->has_labels && sizes->has_wide_labels) {
        catalog->wide_labels = fl_alloc_array(count, sizeof(*catalog->wide_labels));
        is_complete = is_complete && catalog->wide_labels;
    } else if (sizes->has_labels) {
        catalog->labels = fl_alloc_array(count, sizeof(*catalog->labels));
        is_complete = is_complete && catalog->labels;
    }
    if (is_complete && sizes->prefix.length > 0)
        memcpy(catalog->prefix, sizes->prefix.data, sizes->prefix.length);
    return is_complete;
}

fl_status fl_catalog_make(const fl_catalog_sizes *sizes, fl_catalog **out,
                          fl_error *error)
{
    fl_catalog *catalog = fl_alloc_zeroed(sizeof(*catalog));
    if (!catalog)
        return fl_error_no_memory(error);
    atomic_init(&catalog->references, 1);
    catalog->sizes = *sizes;
    if (!take_memory(catalog, sizes)) {
        catalog_destroy(catalog);
        return fl_error_no_memory(error);
    }
    *out = catalog;
    return FL_OK;
}

void fl_catalog_add(fl_catalog *catalog, const fl_text *parts, int32_t part_count,
                    int64_t label)
{
    int64_t index = catalog->added++;
    assert(index < catalog->sizes.count);
    uint64_t end = catalog->offsets[index];
    for (int32_t i = 0; i < part_count; i++) {
        assert(parts[i].length <= catalog->sizes.name_bytes - end);
        if (parts[i].length > 0)
            memcpy(catalog->names + end, parts[i].data, parts[i].length);
        end += parts[i].length;
    }
    catalog->offsets[index + 1] = end;
    if (catalog->labels)
        catalog->labels[index] = (int32_t)label;
    else if (catalog->wide_labels)
        catalog->wide_labels[index] = label;
}

void fl_catalog_add_class(fl_catalog *catalog, fl_text name)
{
    int32_t label = catalog->classes_added++;
    assert(label < catalog->sizes.class_count);
    uint64_t start = catalog->class_offsets[label];
    assert(name.length <= catalog->sizes.class_bytes - start);
    memcpy(catalog->class_names + start, name.data, name.length);
    catalog->class_offsets[label + 1] = start + name.length;
}

static uint64_t absorb(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * 0x9E3779B97F4A7C15u;
    return hash ^ hash >> 32;
}

// The length, then the bytes as little-endian words, the last one filled up with zeros.
static uint64_t absorb_text(uint64_t hash, fl_text text)
{
    hash = absorb(hash, text.length);
    for (size_t at = 0; at < text.length; at += 8) {
        unsigned char bytes[8] = {0};
        size_t left = text.length - at;
        memcpy(bytes, text.data + at, left < 8 ? left : 8);
        uint64_t word = 0;
        for (int i = 7; i >= 0; i--)
            word = word << 8 | bytes[i];
        hash = absorb(hash, word);
    }
    return hash;
}

static fl_text name_of(const fl_catalog *catalog, int64_t index)
{
    assert(index >= 0 && index < catalog->sizes.count);
    uint64_t start = catalog->offsets[index];
    return (fl_text){catalog->names + start, catalog->offsets[index + 1] - start};
}

void fl_catalog_seal(fl_catalog *catalog)
{
    const fl_catalog_sizes *sizes = &catalog->sizes;
    assert(catalog->added == sizes->count);
    assert(catalog->classes_added == sizes->class_count);
    uint64_t hash = absorb(0, (uint64_t)sizes->count);
    for (int64_t i = 0; i < sizes->count; i++) {
        hash = absorb_text(hash, name_of(catalog, i));
        hash = absorb(hash, (uint64_t)fl_catalog_label(catalog, i));
    }
    hash = absorb(hash, (uint64_t)sizes->class_count);
    for (int32_t label = 0; label < sizes->class_count; label++)
        hash = absorb_text(hash, fl_catalog_class_name(catalog, label));
    catalog->fingerprint = hash;
}

// The folder that all paths share, with its '/': what stands before the names. Moving a
// data set as a whole then leaves the fingerprint as it was.
static fl_text common_folder(const fl_text *paths, int64_t count)
{
    if (count == 0)
        return (fl_text){"", 0};
    size_t length = paths[0].length;
    for (int64_t i = 0; i < count; i++) {
        size_t limit = paths[i].length < length ? paths[i].length : length;
        length = 0;
        while (length < limit && paths[i].data[length] == paths[0].data[length])
            length++;
    }
    while (length > 0 && paths[0].data[length - 1] != '/')
        length--;
    return (fl_text){paths[0].data, length};
}

fl_status fl_catalog_from_paths(const fl_text *paths, const int64_t *labels,
                                int64_t count, fl_catalog **out, fl_error *error)
{
    if (count < 0)
        return fl_error_set(error, FL_ERROR_ARGUMENT,
                            "the number of paths must not be negative, it is %lld",
                            (long long)count);
    fl_text prefix = common_folder(paths, count);
    fl_catalog_sizes sizes = {
        .prefix = prefix, .count = count, .has_labels = labels != NULL};
    for (int64_t i = 0; i < count; i++) {
        if (paths[i].length > 0 && memchr(paths[i].data, 0, paths[i].length)) {
            fl_error_set(error, FL_ERROR_ARGUMENT,
                         "a path contains a NUL byte, which no file name can");
            fl_error_add_index(error, i);
            return FL_ERROR_ARGUMENT;
        }
        // The texts lie in memory, so their lengths cannot overflow a sum.
        sizes.name_bytes += paths[i].length - prefix.length;
        if (labels && labels[i] != (int32_t)labels[i])
            sizes.has_wide_labels = true;
    }

    fl_catalog *catalog;
    fl_status status = fl_catalog_make(&sizes, &catalog, error);
    if (status != FL_OK)
        return status;
    for (int64_t i = 0; i < count; i++) {
        fl_text name = {paths[i].data + prefix.length, paths[i].length - prefix.length};
        fl_catalog_add(catalog, &name, 1, labels ? labels[i] : -1);
    }
    fl_catalog_seal(catalog);
    *out = catalog;
    return FL_OK;
}

fl_catalog *fl_catalog_ref(fl_catalog *catalog)
{
    // Relaxed: whoever has a reference to copy keeps the object alive meanwhile.
    atomic_fetch_add_explicit(&catalog->references, 1, memory_order_relaxed);
    return catalog;
}

void fl_catalog_unref(fl_catalog **catalog)
{
    fl_catalog *old = *catalog;
    *catalog = NULL;
    if (old && atomic_fetch_sub(&old->references, 1) == 1)
        catalog_destroy(old);
}

int64_t fl_catalog_count(const fl_catalog *catalog)
{
    return catalog->sizes.count;
}

bool fl_catalog_has_labels(const fl_catalog *catalog)
{
    return catalog->sizes.has_labels;
}

int64_t fl_catalog_label(const fl_catalog *catalog, int64_t index)
{
    assert(index >= 0 && index < catalog->sizes.count);
    if (catalog->labels)
        return catalog->labels[index];
    return catalog->wide_labels ? catalog->wide_labels[index] : -1;
}

bool fl_catalog_path(const fl_catalog *catalog, int64_t index, char *buffer, size_t size)
{
    fl_text prefix = catalog->sizes.prefix, name = name_of(catalog, index);
    if (prefix.length + name.length >= size)
        return false;
    memcpy(buffer, prefix.data, prefix.length);
    memcpy(buffer + prefix.length, name.data, name.length);
    buffer[prefix.length + name.length] = 0;
    return true;
}

size_t fl_catalog_path_length(const fl_catalog *catalog, int64_t index)
{
    return catalog->sizes.prefix.length + name_of(catalog, index).length;
}

int32_t fl_catalog_class_count(const fl_catalog *catalog)
{
    return catalog->sizes.class_count;
}

fl_text fl_catalog_class_name(const fl_catalog *catalog, int32_t label)
{
    assert(label >= 0 && label < catalog->sizes.class_count);
    uint64_t start = catalog->class_offsets[label];
    return (fl_text){catalog->class_names + start,
                     catalog->class_offsets[label + 1] - start};
}

uint64_t fl_catalog_fingerprint(const fl_catalog *catalog)
{
    return catalog->fingerprint;
}

size_t fl_catalog_memory(const fl_catalog *catalog)
{
    const fl_catalog_sizes *sizes = &catalog->sizes;
    size_t count = (size_t)sizes->count, classes = (size_t)sizes->class_count;
    size_t bytes = sizeof(*catalog) + sizes->prefix.length + sizes->name_bytes;
    bytes += (count + 1) * sizeof(*catalog->offsets);
    bytes += sizes->class_bytes + (classes + 1) * sizeof(*catalog->class_offsets);
    if (catalog->labels)
        bytes += count * sizeof(*catalog->labels);
    if (catalog->wide_labels)
        bytes += count * sizeof(*catalog->wide_labels);
    return bytes;
}
