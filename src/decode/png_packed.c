// SPDX-License-Identifier: MIT
#ifdef FL_HAVE_PNG
#include "decode/png_packed.h"

#include "base/memory.h"

enum { MAX_EXPANDED = 1 << 20, WINDOW = 16384 };

static void *zlib_alloc(void *context, unsigned count, unsigned size)
{
    (void)context;
    return fl_alloc_array(count, size);
}

static void zlib_free(void *context, void *block)
{
    (void)context;
    fl_free(block);
}

// zlib's types have no const, and no more than 4 GiB; a chunk has less.
bool fl_png_begin_inflate(z_stream *stream, const uint8_t *bytes, size_t size)
{
    *stream = (z_stream){.zalloc = zlib_alloc,
                         .zfree = zlib_free,
                         .next_in = (Bytef *)(uintptr_t)bytes,
                         .avail_in = (uInt)size};
    return inflateInit(stream) == Z_OK;
}

bool fl_png_is_bomb(const uint8_t *bytes, size_t size, size_t *expanded)
{
    uint8_t window[WINDOW];
    z_stream stream;
    *expanded = 0;
    if (!fl_png_begin_inflate(&stream, bytes, size)) // not to be trusted
        return true;
    int result = Z_OK;
    while (result == Z_OK && stream.total_out < MAX_EXPANDED) {
        stream.next_out = window;
        stream.avail_out = WINDOW;
        result = inflate(&stream, Z_NO_FLUSH);
    }
    bool is_bomb = result == Z_OK && stream.avail_in > 0;
    if (result == Z_OK || result == Z_STREAM_END || result == Z_BUF_ERROR)
        *expanded = stream.total_out;
    (void)inflateEnd(&stream);
    return is_bomb;
}
#endif
