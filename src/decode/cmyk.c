// SPDX-License-Identifier: MIT
// Pillow takes all CMYK JPEGs as inverted, turns them round and then computes, with
// ink = 255 - K: channel = ink - round(C * ink / 255). Inverted K already is that `ink`.
#include "decode/cmyk.h"

// round(a * b / 255), exact for bytes.
static int multiply_div_255(int a, int b)
{
    int t = a * b + 128;
    return ((t >> 8) + t) >> 8;
}

void fl_cmyk_to_rgbx(const uint8_t *from, uint8_t *to, size_t count)
{
    for (size_t i = 0; i < count; i++, from += 4, to += 4) {
        int ink = from[3];
        for (int channel = 0; channel < 3; channel++)
            to[channel] = (uint8_t)(ink - multiply_div_255(255 - from[channel], ink));
        to[3] = 255;
    }
}
