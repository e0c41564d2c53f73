// SPDX-License-Identifier: MIT
// JPEG by libjpeg-turbo's libjpeg API, 2.1 and 3.x: only the box's rows and columns are
// decoded, with the pixels that Pillow gives.
#ifndef FL_DECODE_JPEG_H
#define FL_DECODE_JPEG_H

#include "decode/decoder.h"

extern const fl_decoder_vtable fl_jpeg_decoder;

#endif
