// SPDX-License-Identifier: MIT
// Pillow takes a picture whose stream ends, sound, behind one of its rows, and leaves the
// rest black. libpng does not say so: after its error the stream is gone through again.
#ifdef FL_HAVE_PNG
#include "decode/png_state.h"

#include "decode/png_packed.h"

#include <zlib.h>

enum { WINDOW = 16384 };

typedef struct row_counter {
    const fl_png_chunks *chunks;
    int pass; // of an interlaced picture
    uint32_t row, rows;
    int64_t done;    // rows of all passes
    size_t row_size; // with its filter's byte
    size_t missing;  // of the row that is being unpacked
} row_counter;

// The next pass that has pixels; false behind the last one.
static bool next_pass(row_counter *counter)
{
    fl_png_pass pass = {0, 0};
    while (pass.columns == 0 || pass.rows == 0) {
        if (counter->pass == fl_png_passes(counter->chunks))
            return false;
        pass = fl_png_pass_size(counter->chunks, counter->pass++);
    }
    counter->row = 0;
    counter->rows = pass.rows;
    counter->row_size = 1 + fl_png_row_bytes(counter->chunks, pass.columns);
    counter->missing = counter->row_size;
    return true;
}

// A row is whole; false if it was the last one.
static bool next_row(row_counter *counter)
{
    counter->missing = counter->row_size;
    counter->done++;
    return ++counter->row < counter->rows || next_pass(counter);
}

// True if the stream ended behind a row; `result` is zlib's last answer.
static bool unpack_block(z_stream *stream, row_counter *counter, int *result)
{
    uint8_t window[WINDOW];
    while (stream->avail_in > 0) {
        size_t room = counter->missing < WINDOW ? counter->missing : WINDOW;
        stream->next_out = window;
        stream->avail_out = (uInt)room;
        *result = inflate(stream, Z_NO_FLUSH);
        if (*result < 0)
            return false;
        counter->missing -= room - stream->avail_out;
        if (counter->missing > 0 && stream->avail_out > 0)
            return false; // more input first
        if (counter->missing > 0)
            continue;
        if (!next_row(counter))
            *result = Z_DATA_ERROR; // all are there: not this fault
        if (*result != Z_OK)
            return *result == Z_STREAM_END;
    }
    return false;
}

bool fl_png_ends_early(const fl_png_chunks *chunks, int64_t rows, size_t block,
                       size_t *at)
{
    row_counter counter = {.chunks = chunks};
    z_stream stream;
    if (!next_pass(&counter) || !fl_png_begin_inflate(&stream, NULL, 0))
        return false;
    size_t size, next;
    int result = Z_OK;
    bool is_early = false;
    *at = chunks->data_at;
    while (!is_early && result >= 0 && !fl_cancel_is_set(chunks->cancel) &&
           fl_png_find_data(chunks, *at, &size, &next)) {
        // zlib's type has no const.
        stream.next_in = (Bytef *)(uintptr_t)chunks->bytes + *at + FL_PNG_CHUNK_HEAD;
        *at = next;
        for (; size > 0 && !is_early && result >= 0;) {
            size_t part = size < block ? size : block;
            stream.avail_in = (uInt)part;
            size -= part;
            is_early = unpack_block(&stream, &counter, &result);
            stream.next_in += stream.avail_in;
        }
    }
    (void)inflateEnd(&stream);
    return is_early && counter.done == rows;
}
#endif
