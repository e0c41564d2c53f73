// SPDX-License-Identifier: MIT
// What the PNG decoder's files share: the state of one picture and the way out of libpng
// when it fails. One thread.
#ifndef FL_DECODE_PNG_STATE_H
#define FL_DECODE_PNG_STATE_H

#ifdef FL_HAVE_PNG
#include "decode/decoder.h"
#include "decode/png_chunks.h"
#include "decode/png_pixels.h"

#include <setjmp.h>

#include <png.h>

enum {
    FL_PNG_SIGNATURE = 8,
    FL_PNG_HEADER = FL_PNG_CHUNK_HEAD + 13 + FL_PNG_CHUNK_END,
};

typedef struct fl_png {
    png_structp png; // NULL: no picture is being decoded
    png_infop info;
    const fl_cancel *cancel;
    fl_png_chunks chunks;
    fl_png_pixels pixels;

    // What libpng reads: first `head` (signature, header, heads of chunks), then `data`.
    uint8_t head[FL_PNG_SIGNATURE + FL_PNG_HEADER];
    size_t head_at, head_size;
    const uint8_t *data;
    size_t data_left;
    size_t at; // the next chunk in the file

    int64_t rows_left; // that libpng has to unpack, of all passes
    fl_box box;
    int32_t next_row; // of the picture
    uint8_t *rows;    // one row as libpng gives it, or all of an interlaced picture
    size_t rows_size, row_size;

    // Set before the jump out of libpng.
    jmp_buf escape;
    fl_status failure;
    char message[128];
} fl_png;

// --- png_error.c ----------------------------------------------------------------------

// Makes png and info; fails as a running `work` fails.
void fl_png_make(fl_png *png);
// Runs `work`, which calls libpng. Errors of libpng jump back here: `work` and what it
// calls own nothing while they are inside libpng.
FL_MUST_CHECK fl_status fl_png_try(fl_png *png, void (*work)(fl_png *png),
                                   fl_error *error);
// Ends the running `work` with this error.
_Noreturn void fl_png_fail(fl_png *png, fl_status failure, const char *message);

// --- png_source.c ---------------------------------------------------------------------

// From now libpng reads the picture's header and its data, and nothing else of the file.
void fl_png_set_source(fl_png *png);

// --- png_early_end.c ------------------------------------------------------------------

// Does the stream of picture data end behind so many rows, which are not all? zlib gets
// it in blocks of `block` bytes, as Pillow's does. `at` is then the chunk behind the
// stream.
bool fl_png_ends_early(const fl_png_chunks *chunks, int64_t rows, size_t block,
                       size_t *at);
#endif

#endif
