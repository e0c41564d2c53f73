// SPDX-License-Identifier: MIT
// JPEG by libjpeg-turbo's libjpeg API, 2.1 and 3.x: only the box's rows and columns are
// decoded, with the pixels that Pillow gives and its strictness: warnings are passed
// over, a file without its end is an error. Two differences: below a box's last row only
// markers are looked at; and of the files that lack nothing but the end marker, Pillow
// (and a whole decode here) takes the few whose last bits happen to be read already, a
// box none.
#ifndef FL_DECODE_JPEG_H
#define FL_DECODE_JPEG_H

#include "decode/decoder.h"

extern const fl_decoder_vtable fl_jpeg_decoder;

#endif
