// SPDX-License-Identifier: MIT
// Is a JPEG whole below the last row that was decoded? Any thread.
#ifndef FL_DECODE_END_MARKER_H
#define FL_DECODE_END_MARKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum fl_jpeg_rest {
    FL_JPEG_REST_WHOLE,     // an end marker follows
    FL_JPEG_REST_TRUNCATED, // the bytes end before one
    FL_JPEG_REST_BROKEN,    // a marker that cannot stand there comes first
} fl_jpeg_rest;

// Follows the markers as libjpeg would, from inside a file's only scan to its end marker.
// `marker` is one that was already taken out of the bytes, or 0. With restart intervals
// libjpeg skips impossible markers inside a scan. `found` is the marker that broke it.
fl_jpeg_rest fl_jpeg_check_rest(const uint8_t *bytes, size_t size, int marker,
                                bool has_restarts, int *found);

#endif
