// SPDX-License-Identifier: MIT
// Open, look at what it is, read, compare with what it said it was.
#include "fetch/local.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    CHUNK_BYTES = 4 << 20,       // between two looks at the cancel flag
    SEQUENTIAL_BYTES = 256 << 10 // from here on a larger read-ahead pays for the call
};

#ifdef FL_TESTING
static ssize_t (*read_bytes)(int file, void *bytes, size_t size, off_t offset) = pread;

void fl_local_replace_read(ssize_t (*read)(int file, void *bytes, size_t size,
                                           off_t offset))
{
    read_bytes = read ? read : pread;
}
#else
static ssize_t read_bytes(int file, void *bytes, size_t size, off_t offset)
{
    return pread(file, bytes, size, offset);
}
#endif

static const char *open_advice(int os_error)
{
    switch (os_error) {
    case ENOENT:
    case ENOTDIR:
        return "was it moved or deleted after the files were listed?";
    case EACCES:
    case EPERM:
        return "give this user the right to read it";
    case EMFILE:
    case ENFILE:
        return "raise the limit of open files (ulimit -n)";
    case ELOOP:
        return "its links form a loop: take it out of the data set";
    case ENAMETOOLONG:
        return "shorten its name, or take it out of the data set";
    case ENXIO: // a socket, a device without its driver
        return "it is no regular file: take it out of the data set";
    default:
        return "";
    }
}

static fl_status open_file(const char *path, int *out, fl_error *error)
{
    // O_NONBLOCK: opening a FIFO must not wait for a writer.
    int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
    int file;
    do {
        file = open(path, flags);
    } while (file < 0 && errno == EINTR);
    if (file < 0) {
        int os_error = errno;
        fl_error_set_os(error, os_error, "cannot open the file");
        fl_error_add_advice(error, open_advice(os_error));
        return FL_ERROR_IO;
    }
    *out = file;
    return FL_OK;
}

static const char *kind_name(mode_t mode)
{
    if (S_ISDIR(mode))
        return "a folder";
    if (S_ISFIFO(mode))
        return "a FIFO";
    if (S_ISSOCK(mode))
        return "a socket";
    return "a device";
}

// The file's size, if it is one that can be read whole.
static fl_status check_file(int file, int64_t max_bytes, size_t *size, fl_error *error)
{
    struct stat info;
    if (fstat(file, &info) < 0)
        return fl_error_set_os(error, errno, "cannot look at the file");
    if (!S_ISREG(info.st_mode))
        return fl_error_set(error, FL_ERROR_DATA,
                            "it is %s, not a file; take it out of the data set",
                            kind_name(info.st_mode));
    if (info.st_size > max_bytes)
        return fl_error_set(error, FL_ERROR_LIMIT,
                            "the file has %lld bytes, and one file may have at most "
                            "%lld; make it smaller or take it out of the data set",
                            (long long)info.st_size, (long long)max_bytes);
    *size = (size_t)info.st_size;
    return FL_OK;
}

// Asks for one byte more than the file had: that shows growth without another call.
static fl_status read_whole(int file, size_t size, const fl_cancel *cancel,
                            fl_buffer *buffer, fl_error *error)
{
    size_t done = 0;
    bool is_last = false;
    while (!is_last) {
        if (fl_cancel_is_set(cancel))
            return fl_error_set(error, FL_ERROR_CANCELLED, "reading was cancelled");
        size_t wanted = size + 1 - done;
        if (wanted > CHUNK_BYTES)
            wanted = CHUNK_BYTES;
        ssize_t got = read_bytes(file, buffer->data + done, wanted, (off_t)done);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0) {
            fl_error_set_os(error, errno, "cannot read the file at byte %zu of %zu", done,
                            size);
            fl_error_add_advice(error, "is its disk or network well?");
            return FL_ERROR_IO;
        }
        done += (size_t)got;
        is_last = got == 0 || done > size || (done == size && (size_t)got < wanted);
    }

    if (done != size)
        return fl_error_set(error, FL_ERROR_DATA,
                            "the file %s from %zu bytes while it was read; is "
                            "somebody still writing it?",
                            done < size ? "shrank" : "grew", size);
    buffer->size = size;
    return FL_OK;
}

fl_status fl_local_read(const char *path, int64_t max_bytes, fl_buffer_pool *pool,
                        const fl_cancel *cancel, fl_buffer **out, fl_error *error)
{
    int file = -1;
    size_t size = 0;
    fl_buffer *buffer = NULL;

    fl_status status = open_file(path, &file, error);
    if (status != FL_OK)
        return status;
    status = check_file(file, max_bytes, &size, error);
    if (status != FL_OK)
        goto done;
    // Advice only: a file system that ignores it reads as well.
    if (size >= SEQUENTIAL_BYTES)
        (void)posix_fadvise(file, 0, 0, POSIX_FADV_SEQUENTIAL);
    status = fl_buffer_pool_take(pool, size + 1, &buffer, error);
    if (status != FL_OK)
        goto done;
    status = read_whole(file, size, cancel, buffer, error);
    if (status != FL_OK)
        goto done;

    *out = buffer;
    buffer = NULL;
done:
    fl_buffer_unref(&buffer);
    close(file);
    return status;
}
