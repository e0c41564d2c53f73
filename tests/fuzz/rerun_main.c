// SPDX-License-Identifier: MIT
// A plain main for the fuzzers: each argument is a corpus file or a folder of them, run
// once. So the corpus is a test that needs no fuzzer.
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void fail(const char *what, const char *path)
{
    fprintf(stderr, "cannot %s %s\n", what, path);
    exit(1);
}

static void run_file(const char *path, size_t size)
{
    FILE *file = fopen(path, "rb");
    uint8_t *data = malloc(size ? size : 1); // exact: reads behind the end are seen
    if (!file || !data || fread(data, 1, size, file) != size)
        fail("read", path);
    fclose(file);
    LLVMFuzzerTestOneInput(data, size);
    free(data);
}

static int run_path(const char *path);

static int run_folder(const char *path)
{
    int count = 0;
    DIR *folder = opendir(path);
    if (!folder)
        fail("list", path);
    for (struct dirent *entry = readdir(folder); entry; entry = readdir(folder)) {
        char inner[4096];
        if (entry->d_name[0] == '.')
            continue;
        snprintf(inner, sizeof(inner), "%s/%s", path, entry->d_name);
        count += run_path(inner);
    }
    closedir(folder);
    return count;
}

static int run_path(const char *path)
{
    struct stat info;
    if (stat(path, &info) < 0)
        fail("find", path);
    if (S_ISDIR(info.st_mode))
        return run_folder(path);
    run_file(path, (size_t)info.st_size);
    return 1;
}

int main(int count, char **paths)
{
    int done = 0;
    for (int i = 1; i < count; i++)
        done += run_path(paths[i]);
    printf("%d inputs\n", done);
    return done ? 0 : 1;
}
