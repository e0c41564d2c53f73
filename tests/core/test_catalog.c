// SPDX-License-Identifier: MIT
// Catalogs from lists of paths and from trees of folders: torchvision's order and errors,
// awkward names, links and loops, many threads, failing memory and threads.
#include "catalog/catalog.h"

#include "base/memory.h"
#include "base/thread.h"
#include "catalog/name_order.h"

#include "check.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#define TEXT(literal)                                                                    \
    (fl_text)                                                                            \
    {                                                                                    \
        literal, sizeof(literal) - 1                                                     \
    }

static const fl_text EXTENSIONS[] = {{".jpg", 4}, {".PNG", 4}};

static char root[] = "/tmp/feedline-catalog-XXXXXX";

static const char *under_root(const char *name)
{
    static char path[PATH_MAX];
    snprintf(path, sizeof(path), "%s/%s", root, name);
    return path;
}

static void make_file(const char *name)
{
    int file = open(under_root(name), O_CREAT | O_WRONLY, 0600);
    CHECK(file >= 0);
    close(file);
}

static void make_folder(const char *name)
{
    CHECK(mkdir(under_root(name), 0700) == 0);
}

static void make_link(const char *target, const char *name)
{
    CHECK(symlink(target, under_root(name)) == 0);
}

static int remove_entry(const char *path, const struct stat *info, int kind,
                        struct FTW *where)
{
    (void)info;
    (void)kind;
    (void)where;
    return remove(path);
}

static void start_tree(void)
{
    strcpy(root + strlen(root) - 6, "XXXXXX");
    CHECK(mkdtemp(root));
}

static void end_tree(void)
{
    CHECK(nftw(root, remove_entry, 16, FTW_DEPTH | FTW_PHYS) == 0);
}

static fl_status scan(bool allow_empty, int32_t threads, fl_catalog **out,
                      fl_error *error)
{
    *out = NULL;
    return fl_catalog_scan_folder(root, EXTENSIONS, 2, allow_empty, threads, out, error);
}

static void check_entry(const fl_catalog *catalog, int64_t index, const char *name,
                        int64_t label)
{
    char path[PATH_MAX];
    CHECK(fl_catalog_path(catalog, index, path, sizeof(path)));
    const char *want = under_root(name);
    if (strcmp(path, want) != 0) {
        fprintf(stderr, "entry %d is %s, not %s\n", (int)index, path, want);
        abort();
    }
    CHECK_INT(fl_catalog_path_length(catalog, index), strlen(want));
    CHECK(!fl_catalog_path(catalog, index, path, strlen(want)));
    CHECK(fl_catalog_path(catalog, index, path, strlen(want) + 1));
    CHECK_INT(fl_catalog_label(catalog, index), label);
}

static void check_class(const fl_catalog *catalog, int32_t label, const char *name)
{
    fl_text text = fl_catalog_class_name(catalog, label);
    CHECK_INT(text.length, strlen(name));
    CHECK(memcmp(text.data, name, text.length) == 0);
}

static void make_usual_tree(void)
{
    start_tree();
    make_file("at-the-top.jpg");
    make_folder("b");
    make_folder("a");
    make_folder("a/sub");
    make_folder("a/sub-1");
    make_folder("a/sub/deep.jpg"); // a folder in spite of its name
    make_file("a/z.jpg");
    make_file("a/Z.JPG");
    make_file("a/notes.txt");
    make_file("a/.png");
    make_file("a/sub/1.png");
    make_file("a/sub-1/1.jpg");
    make_file("a/sub/deep.jpg/0.jpg");
    make_file("b/\xff.jpg");
    make_file("b/\xee\x80\x80.jpg"); // U+E000, above the lone surrogates
    make_file("b/\xe2\x82\xac.jpg"); // U+20AC, below them
    make_file("b/\xe2\x82.jpg");
}

// Written down from os.walk, sorted, and Python's order of str.
static void check_usual_entries(const fl_catalog *catalog)
{
    const char *const names[] = {
        "a/.png",
        "a/Z.JPG",
        "a/z.jpg",
        "a/sub/1.png",
        "a/sub-1/1.jpg",
        "a/sub/deep.jpg/0.jpg",
        "b/\xe2\x82\xac.jpg",
        "b/\xe2\x82.jpg",
        "b/\xff.jpg",
        "b/\xee\x80\x80.jpg",
    };
    // "a/sub" is a prefix of "a/sub-1", and '-' sorts before '/'.
    CHECK_INT(fl_catalog_count(catalog), 10);
    for (int i = 0; i < 10; i++)
        check_entry(catalog, i, names[i], i < 6 ? 0 : 1);
    CHECK(fl_catalog_has_labels(catalog));
    CHECK_INT(fl_catalog_class_count(catalog), 2);
    check_class(catalog, 0, "a");
    check_class(catalog, 1, "b");
}

static void check_tree(void)
{
    make_usual_tree();
    uint64_t fingerprint = 0;
    for (int32_t threads = 1; threads <= 8; threads++) {
        fl_catalog *catalog;
        CHECK_INT(scan(false, threads, &catalog, NULL), FL_OK);
        check_usual_entries(catalog);
        if (threads > 1)
            CHECK(fl_catalog_fingerprint(catalog) == fingerprint);
        fingerprint = fl_catalog_fingerprint(catalog);
        fl_catalog_unref(&catalog);
        CHECK(!catalog);
    }
    // The root's own name, and a '/' behind it, are not part of the fingerprint.
    fl_catalog *catalog;
    char with_slash[PATH_MAX];
    snprintf(with_slash, sizeof(with_slash), "%s/", root);
    CHECK_INT(fl_catalog_scan_folder(with_slash, EXTENSIONS, 2, false, 1, &catalog, NULL),
              FL_OK);
    check_usual_entries(catalog);
    CHECK(fl_catalog_fingerprint(catalog) == fingerprint);
    fl_catalog_unref(&catalog);
    make_file("b/zz.jpg");
    CHECK_INT(scan(false, 2, &catalog, NULL), FL_OK);
    CHECK(fl_catalog_fingerprint(catalog) != fingerprint);
    fl_catalog_unref(&catalog);
    end_tree();
}

static void check_links(void)
{
    start_tree();
    make_folder("a");
    make_folder("a/inner");
    make_file("a/inner/1.jpg");
    make_link("..", "a/inner/up");     // to a class: its own ancestor
    make_link("../..", "a/inner/top"); // to the root
    make_link(".", "a/self");
    make_link("round", "a/round");        // leads nowhere, and is not named as a picture
    make_link("nowhere", "a/broken.jpg"); // counts by its name; opening it will fail
    make_link("inner/1.jpg", "a/alias.jpg");
    make_link("a", "b"); // a class that is a link
    for (int32_t threads = 1; threads <= 4; threads += 3) {
        fl_catalog *catalog;
        CHECK_INT(scan(false, threads, &catalog, NULL), FL_OK);
        const char *const names[] = {"a/alias.jpg", "a/broken.jpg", "a/inner/1.jpg",
                                     "b/alias.jpg", "b/broken.jpg", "b/inner/1.jpg"};
        CHECK_INT(fl_catalog_count(catalog), 6);
        for (int i = 0; i < 6; i++)
            check_entry(catalog, i, names[i], i / 3);
        fl_catalog_unref(&catalog);
    }
    end_tree();
}

static void check_deep_tree(void)
{
    start_tree();
    char name[PATH_MAX] = "c";
    make_folder(name);
    size_t limit = PATH_MAX - strlen(root) - 16;
    while (strlen(name) < limit) {
        strcat(name, "/d");
        make_folder(name);
    }
    strcat(name, "/1.jpg");
    make_file(name);
    fl_catalog *catalog;
    CHECK_INT(scan(false, 3, &catalog, NULL), FL_OK);
    CHECK_INT(fl_catalog_count(catalog), 1);
    check_entry(catalog, 0, name, 0);
    fl_catalog_unref(&catalog);

    // One more level leaves no room for the terminator.
    int folder = open(under_root(name), O_PATH | O_NOFOLLOW);
    CHECK(folder >= 0);
    close(folder);
    *strrchr(name, '/') = 0;
    folder = open(under_root(name), O_PATH | O_DIRECTORY);
    CHECK(folder >= 0);
    int file = openat(folder, "a-name-too-long.jpg", O_CREAT | O_WRONLY, 0600);
    CHECK(file >= 0);
    close(file);
    fl_error error = FL_ERROR_INIT;
    CHECK_INT(scan(false, 3, &catalog, &error), FL_ERROR_IO);
    CHECK_INT(error.os_error, ENAMETOOLONG);
    CHECK_CONTAINS(error.place, "/d/d/d");
    CHECK(unlinkat(folder, "a-name-too-long.jpg", 0) == 0);
    close(folder);
    end_tree();
}

static char last_place[sizeof(((fl_error *)0)->place)];

static void check_scan_fails(int os_error, const char *message, const char *place)
{
    for (int32_t threads = 1; threads <= 4; threads++) {
        fl_catalog *catalog;
        fl_error error = FL_ERROR_INIT;
        CHECK_INT(scan(false, threads, &catalog, &error), FL_ERROR_IO);
        CHECK(!catalog);
        CHECK_INT(error.os_error, os_error);
        CHECK_CONTAINS(error.message, message);
        CHECK_CONTAINS(error.place, place);
        memcpy(last_place, error.place, sizeof(last_place));
        CHECK_INT(scan(false, threads, &catalog, NULL), FL_ERROR_IO);
    }
}

static void check_errors(void)
{
    start_tree();
    make_file("1.jpg");
    char message[PATH_MAX + 64];
    snprintf(message, sizeof(message), "Couldn't find any class folder in %s.", root);
    check_scan_fails(ENOENT, message, "");
    make_folder("full");
    make_file("full/1.jpg");
    make_folder("hollow");
    make_folder("hollow/inner");
    make_file("hollow/inner/1.txt");
    make_folder("bare");
    check_scan_fails(ENOENT,
                     "Found no valid file for the classes bare, hollow. Supported "
                     "extensions are: .jpg, .PNG",
                     "");
    fl_catalog *catalog;
    CHECK_INT(scan(true, 2, &catalog, NULL), FL_OK);
    CHECK_INT(fl_catalog_count(catalog), 1);
    CHECK_INT(fl_catalog_class_count(catalog), 3);
    check_entry(catalog, 0, "full/1.jpg", 1);
    fl_catalog_unref(&catalog);
    for (int i = 0; i < 40; i++) {
        char name[32];
        snprintf(name, sizeof(name), "empty-%02d", i);
        make_folder(name);
    }
    check_scan_fails(ENOENT, "classes bare, empty-00, empty-01, ", "");
    check_scan_fails(ENOENT, " more. Supported extensions are: .jpg, .PNG", "");
    fl_error error = FL_ERROR_INIT;
    CHECK_INT(fl_catalog_scan_folder(root, EXTENSIONS, 2, false, 0, &catalog, &error),
              FL_ERROR_ARGUMENT);
    CHECK_CONTAINS(error.message, "threads must be at least 1, it is 0");
    end_tree();
    check_scan_fails(ENOENT, "No such file", root);
    CHECK_INT(strlen(last_place), strlen(root)); // without the '/' behind it
    fl_error_clear(&error);
    CHECK_INT(fl_catalog_scan_folder("", EXTENSIONS, 2, false, 1, &catalog, &error),
              FL_ERROR_IO);
    CHECK_INT(error.os_error, ENOENT);
    CHECK_INT(
        fl_catalog_scan_folder("/dev/null", EXTENSIONS, 2, false, 1, &catalog, &error),
        FL_ERROR_IO);
    CHECK_INT(error.os_error, ENOTDIR);
}

// Root may read everything, so this one needs another user.
static void check_unreadable(void)
{
    start_tree();
    make_folder("a");
    make_folder("b");
    make_folder("c");
    make_file("a/1.jpg");
    if (geteuid() == 0) {
        CHECK(chmod(root, 0755) == 0);
        CHECK(chmod(under_root("a"), 0755) == 0);
    }
    CHECK(chmod(under_root("b"), 0) == 0);
    CHECK(chmod(under_root("c"), 0) == 0);
    uid_t user = geteuid();
    if (user == 0)
        CHECK(seteuid(65534) == 0);
    check_scan_fails(EACCES, "cannot list this folder of the data set: Permission denied",
                     under_root("b"));
    CHECK(seteuid(user) == 0);
    CHECK(chmod(under_root("b"), 0700) == 0);
    CHECK(chmod(under_root("c"), 0700) == 0);
    end_tree();
}

static void check_failures(void)
{
    make_usual_tree();
    int64_t live = fl_memory_live();
    for (int32_t threads = 1; threads <= 3; threads += 2) {
        fl_status status = FL_ERROR_NO_MEMORY;
        for (int64_t n = 0; status != FL_OK; n++) {
            fl_catalog *catalog;
            fl_error error = FL_ERROR_INIT;
            fl_memory_fail_at(n);
            status = scan(false, threads, &catalog, &error);
            bool has_failed = n > 200; // all allocations were made
            fl_memory_fail_at(-1);
            CHECK(!has_failed);
            CHECK(status == FL_OK || status == FL_ERROR_NO_MEMORY);
            CHECK_INT(error.code, status);
            // A failed thread start costs nothing: go on until nothing was left to fail.
            if (status == FL_OK) {
                check_usual_entries(catalog);
                if (threads > 1 && n < 60)
                    status = FL_ERROR_NO_MEMORY;
            }
            fl_catalog_unref(&catalog);
            CHECK_INT(fl_memory_live(), live);
        }
    }
    for (int64_t n = 0; n < 3; n++) {
        fl_catalog *catalog;
        fl_thread_fail_at(n);
        CHECK_INT(scan(false, 4, &catalog, NULL), FL_OK);
        fl_thread_fail_at(-1);
        check_usual_entries(catalog);
        fl_catalog_unref(&catalog);
    }
    end_tree();
}

static void check_paths(void)
{
    const fl_text paths[] = {TEXT("/data/x/1.jpg"), TEXT("/data/y/\xff"), TEXT("/data/"),
                             TEXT("/data/x/1.jpg")};
    const int64_t labels[] = {3, -1, INT64_MAX, INT64_MIN};
    fl_catalog *catalog;
    CHECK_INT(fl_catalog_from_paths(paths, labels, 4, &catalog, NULL), FL_OK);
    CHECK_INT(fl_catalog_count(catalog), 4);
    CHECK_INT(fl_catalog_class_count(catalog), 0);
    for (int i = 0; i < 4; i++) {
        char path[32];
        CHECK_INT(fl_catalog_path_length(catalog, i), paths[i].length);
        CHECK(fl_catalog_path(catalog, i, path, paths[i].length + 1));
        CHECK(memcmp(path, paths[i].data, paths[i].length + 1) == 0);
        CHECK(!fl_catalog_path(catalog, i, path, paths[i].length));
        CHECK(fl_catalog_label(catalog, i) == labels[i]);
    }
    fl_catalog *again = fl_catalog_ref(catalog);
    fl_catalog_unref(&catalog);
    CHECK(!catalog);
    CHECK_INT(fl_catalog_count(again), 4);
    fl_catalog_unref(&again);
    fl_catalog_unref(&again);

    CHECK_INT(fl_catalog_from_paths(paths, NULL, 1, &catalog, NULL), FL_OK);
    CHECK(!fl_catalog_has_labels(catalog));
    CHECK_INT(fl_catalog_label(catalog, 0), -1);
    fl_catalog_unref(&catalog);
    CHECK_INT(fl_catalog_from_paths(NULL, NULL, 0, &catalog, NULL), FL_OK);
    CHECK_INT(fl_catalog_count(catalog), 0);
    fl_catalog_unref(&catalog);
}

static uint64_t fingerprint_of(const fl_text *paths, const int64_t *labels, int64_t count)
{
    fl_catalog *catalog;
    CHECK_INT(fl_catalog_from_paths(paths, labels, count, &catalog, NULL), FL_OK);
    uint64_t fingerprint = fl_catalog_fingerprint(catalog);
    fl_catalog_unref(&catalog);
    return fingerprint;
}

static void check_fingerprints(void)
{
    const fl_text here[] = {TEXT("/a/b/1"), TEXT("/a/c/2")};
    const fl_text moved[] = {TEXT("/d/b/1"), TEXT("/d/c/2")};
    const fl_text other[] = {TEXT("/d/b/1"), TEXT("/d/c/3")};
    const fl_text swapped[] = {TEXT("/a/c/2"), TEXT("/a/b/1")};
    const int64_t labels[] = {0, 1}, wide[] = {0, INT64_MAX};
    uint64_t plain = fingerprint_of(here, NULL, 2);
    CHECK(fingerprint_of(moved, NULL, 2) == plain);
    CHECK(fingerprint_of(other, NULL, 2) != plain);
    CHECK(fingerprint_of(swapped, NULL, 2) != plain);
    CHECK(fingerprint_of(here, labels, 2) != plain);
    CHECK(fingerprint_of(here, wide, 2) != fingerprint_of(here, labels, 2));
}

static void check_bad_paths(void)
{
    const fl_text paths[] = {TEXT("good"), TEXT("bad\0name")};
    fl_catalog *catalog = NULL;
    fl_error error = FL_ERROR_INIT;
    CHECK_INT(fl_catalog_from_paths(paths, NULL, 2, &catalog, &error), FL_ERROR_ARGUMENT);
    CHECK_CONTAINS(error.message, "a path contains a NUL byte");
    CHECK_INT(error.index, 1);
    CHECK_INT(fl_catalog_from_paths(paths, NULL, -1, &catalog, &error),
              FL_ERROR_ARGUMENT);
    int64_t live = fl_memory_live(), labels[] = {1};
    fl_status status = FL_ERROR_NO_MEMORY;
    for (int64_t n = 0; status != FL_OK; n++) {
        fl_memory_fail_at(n);
        status = fl_catalog_from_paths(paths, labels, 1, &catalog, NULL);
        fl_memory_fail_at(-1);
        CHECK(status == FL_OK || status == FL_ERROR_NO_MEMORY);
        CHECK(status == FL_OK || fl_memory_live() == live);
    }
    fl_catalog_unref(&catalog);
    CHECK_INT(fl_memory_live(), live);
}

static int sign(int value)
{
    return (value > 0) - (value < 0);
}

static void check_name_order(void)
{
    // In rising order of Python's str(os.fsdecode(...)).
    const fl_text names[] = {
        TEXT(""),
        TEXT("A"),
        TEXT("a"),
        TEXT("a\xc3\xa9"), // e with acute
        TEXT("a\xe2\x82\xac"),
        TEXT("a\xed\x9f\xbf"), // U+D7FF, the last before surrogates
        TEXT("a\x80"),
        TEXT("a\xc3"),
        TEXT("a\xc3z"),
        TEXT("a\xe2\x82"),
        TEXT("a\xed\xa0\x80"), // an encoded surrogate is not UTF-8
        TEXT("a\xf5"),
        TEXT("a\xee\x80\x80"),
        TEXT("a\xef\xbf\xbf"),
        TEXT("a\xf0\x9f\x98\x80"),
        TEXT("b"),
    };
    int count = sizeof(names) / sizeof(names[0]);
    for (int i = 0; i < count; i++)
        for (int j = 0; j < count; j++)
            CHECK_INT(sign(fl_name_compare(names[i], names[j])), sign(i - j));
}

int main(void)
{
    check_name_order();
    check_paths();
    check_fingerprints();
    check_bad_paths();
    check_tree();
    check_links();
    check_deep_tree();
    check_errors();
    check_unreadable();
    check_failures();
    CHECK_INT(fl_memory_live(), 0);
    return 0;
}
