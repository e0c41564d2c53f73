// SPDX-License-Identifier: MIT
// Compressed chunks of a PNG beside the picture: profiles and texts. Any thread.
#ifndef FL_DECODE_PNG_PACKED_H
#define FL_DECODE_PNG_PACKED_H

#ifdef FL_HAVE_PNG
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <zlib.h>

// False if there is no memory. The caller ends it.
bool fl_png_begin_inflate(z_stream *stream, const uint8_t *bytes, size_t size);

// Does the zlib stream expand to more than Pillow's limit of 1 MiB? `expanded` is how far
// it went, 0 for a broken one. Nothing is kept.
bool fl_png_is_bomb(const uint8_t *bytes, size_t size, size_t *expanded);
#endif

#endif
