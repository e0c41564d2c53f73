// SPDX-License-Identifier: MIT
// What the JPEG decoder's files share: the state of one picture, the way out of libjpeg
// when it fails, the plan of what a box takes. One thread.
#ifndef FL_DECODE_JPEG_STATE_H
#define FL_DECODE_JPEG_STATE_H

#include "decode/decoder.h"

#include <setjmp.h>
#include <stdio.h> // jpeglib.h needs FILE and size_t

#include <jpeglib.h>

enum { FL_JPEG_MAX_ROWS = 4 }; // that libjpeg gives at once: the largest sampling factor

typedef struct fl_jpeg {
    struct jpeg_decompress_struct cinfo; // its client_data is this object
    struct jpeg_error_mgr errors;
    struct jpeg_source_mgr source;
    struct jpeg_progress_mgr progress;
    bool is_created; // cinfo has to be destroyed

    const uint8_t *bytes; // the file's, borrowed
    size_t size;
    fl_decode_limits limits;
    const fl_cancel *cancel;
    int64_t warnings;

    fl_box box;
    size_t drop;    // decoded pixels left of the box
    size_t decoded; // pixels of a decoded row

    uint8_t *target; // where the next rows of the box go
    size_t stride;
    int32_t wanted; // rows that are still to come there
    bool is_last;   // every row was read: running out of bytes is no error any more

    uint8_t *rows; // FL_JPEG_MAX_ROWS decoded rows; kept from picture to picture
    size_t rows_size, row_stride;

    // Set before the jump out of libjpeg.
    jmp_buf escape;
    fl_status failure;
    char message[JMSG_LENGTH_MAX];
} fl_jpeg;

// --- jpeg_error.c ---------------------------------------------------------------------

// Puts the error manager, the progress monitor and the source in place. Before
// jpeg_create_decompress: the error manager; the others after it.
void fl_jpeg_set_errors(fl_jpeg *jpeg);
void fl_jpeg_set_monitor(fl_jpeg *jpeg);
void fl_jpeg_set_source(fl_jpeg *jpeg);
// Runs `work`, which calls libjpeg. Errors of libjpeg jump back here: `work` and what it
// calls own nothing while they are inside libjpeg.
FL_MUST_CHECK fl_status fl_jpeg_try(fl_jpeg *jpeg, void (*work)(fl_jpeg *jpeg),
                                    fl_error *error);
// Ends the running `work` with this error.
_Noreturn void fl_jpeg_fail(fl_jpeg *jpeg, fl_status failure, const char *format, ...)
    FL_PRINTF(3, 4);

// --- jpeg_plan.c ----------------------------------------------------------------------

// Bytes that libjpeg and this decoder take for the picture whose header was read.
size_t fl_jpeg_memory(const fl_jpeg *jpeg);
// The columns to decode so that those of the box come out as in a whole decode.
void fl_jpeg_plan_columns(const fl_jpeg *jpeg, fl_box box, JDIMENSION *x,
                          JDIMENSION *width);

#endif
