// SPDX-License-Identifier: MIT
// Reading local files: short and interrupted reads, files that vanish, shrink, grow, are
// no files or too large, cancellation, failing allocations, no descriptor left behind.
#include "base/memory.h"
#include "fetch/local.h"

#include "check.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static char folder[] = "/tmp/feedline-fetch-XXXXXX";
static char path[PATH_MAX];
static fl_buffer_pool *pool;

static void write_file(size_t size)
{
    FILE *file = fopen(path, "wb");
    CHECK(file);
    for (size_t i = 0; i < size; i++)
        fputc((int)(i * 7 % 251), file);
    CHECK_INT(fclose(file), 0);
}

static fl_status read_file(fl_buffer **out, fl_error *error)
{
    return fl_local_read(path, INT64_MAX, pool, NULL, out, error);
}

static void check_content(size_t size)
{
    fl_buffer *buffer = NULL;
    CHECK_INT(read_file(&buffer, NULL), FL_OK);
    CHECK_INT(buffer->size, size);
    for (size_t i = 0; i < size; i++)
        CHECK(buffer->data[i] == i * 7 % 251);
    fl_buffer_unref(&buffer);
}

static void check_error(fl_status want, int os_error, const char *text)
{
    fl_buffer *buffer = NULL;
    fl_error error = FL_ERROR_INIT;
    CHECK_INT(read_file(&buffer, &error), want);
    CHECK(buffer == NULL);
    CHECK_INT(error.code, want);
    CHECK_INT(error.os_error, os_error);
    CHECK_CONTAINS(error.message, text);
}

static int call; // of the replaced reads

static ssize_t read_a_little(int file, void *bytes, size_t size, off_t offset)
{
    if (call++ % 3 == 0) {
        errno = EINTR;
        return -1;
    }
    return pread(file, bytes, size < 7 ? size : 7, offset);
}

static ssize_t read_fails(int file, void *bytes, size_t size, off_t offset)
{
    if (offset == 0)
        return pread(file, bytes, size < 100 ? size : 100, offset);
    errno = EIO;
    return -1;
}

static ssize_t read_of_shrinking(int file, void *bytes, size_t size, off_t offset)
{
    if (offset > 0)
        CHECK_INT(truncate(path, 500), 0);
    return pread(file, bytes, size < 300 ? size : 300, offset);
}

static ssize_t read_of_growing(int file, void *bytes, size_t size, off_t offset)
{
    int writer = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
    CHECK_INT(write(writer, "more", 4), 4);
    close(writer);
    return pread(file, bytes, size, offset);
}

static void check_sizes(void)
{
    static const size_t sizes[] = {0, 1, 63, 4095, 4096, 100000, 4 << 20, (4 << 20) + 1};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        write_file(sizes[i]);
        check_content(sizes[i]);
    }
}

static void check_odd_reads(void)
{
    write_file(1000);
    fl_local_replace_read(read_a_little);
    check_content(1000);
    fl_local_replace_read(read_fails);
    check_error(FL_ERROR_IO, EIO, "cannot read the file at byte 100 of 1000");
    fl_local_replace_read(read_of_shrinking);
    check_error(FL_ERROR_DATA, 0, "shrank from 1000 bytes");
    write_file(1000);
    fl_local_replace_read(read_of_growing);
    check_error(FL_ERROR_DATA, 0, "grew from 1000 bytes");
    write_file(4 << 20); // exactly one chunk
    check_error(FL_ERROR_DATA, 0, "grew from 4194304 bytes");
    fl_local_replace_read(NULL);
}

static void check_what_is_no_file(void)
{
    CHECK_INT(unlink(path), 0);
    check_error(FL_ERROR_IO, ENOENT, "moved or deleted");
    CHECK_INT(mkdir(path, 0700), 0);
    check_error(FL_ERROR_DATA, 0, "is a folder");
    CHECK_INT(rmdir(path), 0);
    CHECK_INT(mkfifo(path, 0600), 0);
    check_error(FL_ERROR_DATA, 0, "is a FIFO"); // and does not wait for a writer
    CHECK_INT(unlink(path), 0);
    CHECK_INT(symlink("/dev/zero", path), 0);
    check_error(FL_ERROR_DATA, 0, "is a device");
    CHECK_INT(unlink(path), 0);
    CHECK_INT(symlink(path, path), 0);
    check_error(FL_ERROR_IO, ELOOP, "loop");
    CHECK_INT(unlink(path), 0);

    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof(address.sun_path), "%s/f", folder);
    int listener = socket(AF_UNIX, SOCK_STREAM, 0);
    CHECK_INT(bind(listener, (struct sockaddr *)&address, sizeof(address)), 0);
    check_error(FL_ERROR_IO, ENXIO, "cannot open");
    close(listener);
    CHECK_INT(unlink(path), 0);
    write_file(10);
    if (geteuid() != 0) { // root reads everything
        CHECK_INT(chmod(path, 0), 0);
        check_error(FL_ERROR_IO, EACCES, "the right to read");
    }
}

static void check_limit_and_cancel(void)
{
    fl_buffer *buffer = NULL;
    fl_error error = FL_ERROR_INIT;
    write_file(1001);
    CHECK_INT(fl_local_read(path, 1000, pool, NULL, &buffer, &error), FL_ERROR_LIMIT);
    CHECK_CONTAINS(error.message, "1001 bytes");
    CHECK_INT(fl_local_read(path, 1001, pool, NULL, &buffer, &error), FL_OK);
    fl_buffer_unref(&buffer);

    fl_cancel cancel = {0};
    CHECK_INT(fl_local_read(path, 1001, pool, &cancel, &buffer, &error), FL_OK);
    fl_buffer_unref(&buffer);
    fl_cancel_set(&cancel);
    CHECK_INT(fl_local_read(path, 1001, pool, &cancel, &buffer, &error),
              FL_ERROR_CANCELLED);
    CHECK(buffer == NULL);

    fl_buffer_pool *empty = NULL;
    CHECK_INT(fl_buffer_pool_create(0, &empty, NULL), FL_OK);
    fl_memory_fail_at(0);
    CHECK_INT(fl_local_read(path, 1001, empty, NULL, &buffer, &error),
              FL_ERROR_NO_MEMORY);
    fl_buffer_pool_unref(&empty);
}

int main(void)
{
    CHECK(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/f", folder);
    CHECK_INT(fl_buffer_pool_create(1 << 20, &pool, NULL), FL_OK);
    int before = dup(0);
    CHECK(before >= 0);
    close(before);

    check_sizes();
    check_odd_reads();
    check_what_is_no_file();
    check_limit_and_cancel();

    int after = dup(0); // the lowest free number: nothing was left open
    CHECK_INT(after, before);
    fl_buffer_pool_unref(&pool);
    CHECK_INT(fl_memory_live(), 0);
    CHECK_INT(unlink(path), 0);
    CHECK_INT(rmdir(folder), 0);
    return 0;
}
