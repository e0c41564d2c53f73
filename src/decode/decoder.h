// SPDX-License-Identifier: MIT
// Decoders of pictures: one const vtable each, in a table, chosen by magic bytes. A
// decoder object belongs to one worker thread and serves one picture after the other.
#ifndef FL_DECODE_DECODER_H
#define FL_DECODE_DECODER_H

#include "base/error.h"
#include "data/cancel.h"
#include "data/image.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// What a picture may claim before anything is allocated for it.
typedef struct fl_decode_limits {
    int64_t max_pixels;
    int32_t max_scans;
} fl_decode_limits;

typedef struct fl_picture {
    const uint8_t *bytes; // borrowed until close
    size_t size;
    int32_t width, height;
    size_t memory; // bytes that decoding any box of it takes beside the rows delivered
} fl_picture;

// `state` is what the decoder's own `create` made.
typedef struct fl_decoder_vtable {
    const char *name;
    bool (*probe)(const uint8_t *bytes, size_t size);
    fl_status (*create)(void **state, fl_error *error);
    void (*destroy)(void *state); // NULL is fine
    // Read the header: `picture` has bytes and size, the rest is filled in.
    // FL_NEEDS_PYTHON: a rare kind, which is left to Pillow.
    fl_status (*open)(void *state, fl_picture *picture, const fl_decode_limits *limits,
                      const fl_cancel *cancel, fl_error *error);
    // Begin to decode `box`, which lies inside the picture and is not empty.
    fl_status (*start)(void *state, fl_box box, fl_error *error);
    fl_status (*read)(void *state, uint8_t *rows, size_t stride, int32_t count,
                      fl_error *error);
    // After the last row: is the file whole (Pillow's strictness)?
    fl_status (*finish)(void *state, fl_error *error);
    // Faults in the picture that were passed over, as Pillow does.
    int64_t (*warnings)(const void *state);
    // Ends the picture, at any point after open, whether it failed or not. Keeps what the
    // next picture can use.
    void (*close)(void *state);
} fl_decoder_vtable;

typedef struct fl_decoder fl_decoder;

// One object with the state of every decoder in the table.
FL_MUST_CHECK fl_status fl_decoder_create(fl_decoder **out, fl_error *error);
void fl_decoder_destroy(fl_decoder *decoder);

// FL_NEEDS_PYTHON if no decoder in the table takes the bytes: the Pillow step may. Else
// the picture is open (also after an error) and must be closed. FL_ERROR_UNSUPPORTED is a
// sound picture of a kind that the decoder does not read (12 bits, lossless, ...).
FL_MUST_CHECK fl_status fl_decoder_open(fl_decoder *decoder, const uint8_t *bytes,
                                        size_t size, const fl_decode_limits *limits,
                                        const fl_cancel *cancel, fl_picture *picture,
                                        fl_error *error);
FL_MUST_CHECK fl_status fl_decoder_start(fl_decoder *decoder, fl_box box,
                                         fl_error *error);
// The rows of the box, for whoever transforms them.
fl_row_source fl_decoder_rows(fl_decoder *decoder);
FL_MUST_CHECK fl_status fl_decoder_finish(fl_decoder *decoder, fl_error *error);
// Of the open picture, so far.
int64_t fl_decoder_warnings(const fl_decoder *decoder);
void fl_decoder_close(fl_decoder *decoder);

#endif
