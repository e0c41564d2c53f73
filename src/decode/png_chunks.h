// SPDX-License-Identifier: MIT
// The chunks of a PNG, read and judged as Pillow does: libpng itself sees nothing but the
// compressed rows. Plain data over borrowed bytes: one thread.
#ifndef FL_DECODE_PNG_CHUNKS_H
#define FL_DECODE_PNG_CHUNKS_H

#include "base/error.h"
#include "data/cancel.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    FL_PNG_GREY = 0, // PNG's own numbers of colour types
    FL_PNG_RGB = 2,
    FL_PNG_PALETTE = 3,
    FL_PNG_GREY_ALPHA = 4,
    FL_PNG_RGB_ALPHA = 6,
};

enum { FL_PNG_CHUNK_HEAD = 8, FL_PNG_CHUNK_END = 4 }; // length and name; checksum

typedef struct fl_png_chunks {
    const uint8_t *bytes; // the file's, borrowed
    size_t size;
    const fl_cancel *cancel;

    uint32_t width, height;
    uint8_t depth, colour;
    bool has_header, is_interlaced;
    const uint8_t *palette; // three bytes an entry; NULL if there is none
    size_t palette_size;    // bytes
    size_t data_at;         // where the first IDAT begins, with its head

    // Of animations: frames that acTL promises, 0 without one; the last number of fcTL
    // and fdAT, -1 before the first.
    uint32_t frames;
    int64_t sequence;
    bool has_frame_box, is_whole_box;
    bool is_animated;
    uint64_t text_size; // characters of text so far
} fl_png_chunks;

// Reads what stands before the first IDAT. FL_NEEDS_PYTHON: sound, but so odd that only
// Pillow knows what it means. The caller has seen the signature.
FL_MUST_CHECK fl_status fl_png_read_chunks(fl_png_chunks *chunks, const uint8_t *bytes,
                                           size_t size, const fl_cancel *cancel,
                                           fl_error *error);

// Bytes of data that the chunk at `at` really has, of those that it claims, if it is a
// chunk of picture data; false otherwise. `next` is where the chunk behind it begins.
bool fl_png_find_data(const fl_png_chunks *chunks, size_t at, size_t *data_size,
                      size_t *next);

typedef struct fl_png_pass {
    uint32_t columns, rows;
} fl_png_pass;

// Passes in which the picture comes: 7 of an interlaced one, some of them empty, else 1.
int fl_png_passes(const fl_png_chunks *chunks);
fl_png_pass fl_png_pass_size(const fl_png_chunks *chunks, int pass);
// Bytes of so many pixels in the stream.
size_t fl_png_row_bytes(const fl_png_chunks *chunks, uint32_t columns);

// Judges the chunks from `at` to the end of the picture. With `must_end`, running out of
// bytes before the end chunk is an error; Pillow passes it over once all rows are there.
FL_MUST_CHECK fl_status fl_png_check_tail(fl_png_chunks *chunks, size_t at, bool must_end,
                                          fl_error *error);

#endif
