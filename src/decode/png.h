// SPDX-License-Identifier: MIT
// PNG by libpng: rows down to the box's bottom, with the pixels that Pillow's
// convert("RGB") gives and its strictness. One difference: faults in the picture data
// below a box's last row are not seen.
#ifndef FL_DECODE_PNG_H
#define FL_DECODE_PNG_H

#include "decode/decoder.h"

extern const fl_decoder_vtable fl_png_decoder;

#endif
