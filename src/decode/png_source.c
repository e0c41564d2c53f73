// SPDX-License-Identifier: MIT
// What libpng gets to see: the signature, a header and the picture data, whose chunks are
// cut to what is there. Checksums are zeros, nobody looks at them.
#ifdef FL_HAVE_PNG
#include "decode/png_state.h"

#include <string.h>

enum { HEADER_NAME = 0x49484452, DATA_NAME = 0x49444154 }; // "IHDR", "IDAT"

static void write_u32(uint8_t *to, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        to[i] = (uint8_t)(value >> (24 - 8 * i));
}

// Colours of a palette are looked up here: to libpng they are grey values.
static void write_header(fl_png *png)
{
    static const uint8_t signature[FL_PNG_SIGNATURE] = {0x89, 'P',  'N',  'G',
                                                        '\r', '\n', 0x1A, '\n'};
    const fl_png_chunks *chunks = &png->chunks;
    uint8_t *header = png->head + FL_PNG_SIGNATURE;
    memset(png->head, 0, sizeof(png->head));
    memcpy(png->head, signature, sizeof(signature));
    write_u32(header, 13);
    write_u32(header + 4, HEADER_NAME);
    write_u32(header + 8, chunks->width);
    write_u32(header + 12, chunks->height);
    header[16] = chunks->depth;
    header[17] = chunks->colour == FL_PNG_PALETTE ? FL_PNG_GREY : chunks->colour;
    header[20] = chunks->is_interlaced;
    png->head_at = 0;
    png->head_size = FL_PNG_SIGNATURE + FL_PNG_HEADER;
}

// The end of the chunk before, and the head of the next one.
static void next_chunk(fl_png *png, bool is_first)
{
    size_t size;
    if (png->rows_left == 0)
        fl_png_fail(png, FL_ERROR_DATA, "all rows are there");
    if (!fl_png_find_data(&png->chunks, png->at, &size, &png->at))
        fl_png_fail(png, FL_ERROR_DATA, "the file is truncated");
    size_t gap = is_first ? 0 : FL_PNG_CHUNK_END;
    png->data = png->chunks.bytes + png->at - FL_PNG_CHUNK_END - size;
    png->data_left = size;
    write_u32(png->head, 0);
    write_u32(png->head + gap, (uint32_t)size);
    write_u32(png->head + gap + 4, DATA_NAME);
    png->head_at = 0;
    png->head_size = gap + FL_PNG_CHUNK_HEAD;
}

static void read_source(png_structp handle, png_bytep to, size_t count)
{
    fl_png *png = png_get_io_ptr(handle);
    bool is_first = png->data == NULL;
    while (count > 0) {
        size_t part;
        if (png->head_at < png->head_size) {
            part = png->head_size - png->head_at;
            part = part < count ? part : count;
            memcpy(to, png->head + png->head_at, part);
            png->head_at += part;
        } else if (png->data_left > 0) {
            part = png->data_left < count ? png->data_left : count;
            memcpy(to, png->data, part);
            png->data += part;
            png->data_left -= part;
        } else {
            if (fl_cancel_is_set(png->cancel))
                fl_png_fail(png, FL_ERROR_CANCELLED, "decoding was cancelled");
            next_chunk(png, is_first);
            is_first = false;
            continue;
        }
        to += part;
        count -= part;
    }
}

void fl_png_set_source(fl_png *png)
{
    write_header(png);
    png->data = NULL;
    png->data_left = 0;
    png->at = png->chunks.data_at;
    png_set_read_fn(png->png, png, read_source);
}
#endif
