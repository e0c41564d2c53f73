// SPDX-License-Identifier: MIT
// CMYK to RGB as Pillow converts it. Any thread.
#ifndef FL_DECODE_CMYK_H
#define FL_DECODE_CMYK_H

#include <stddef.h>
#include <stdint.h>

// `count` pixels of 4 bytes: CMYK as it stands in the file (inverted, by Adobe's custom)
// to RGBX. `to` may be `from`.
void fl_cmyk_to_rgbx(const uint8_t *from, uint8_t *to, size_t count);

#endif
