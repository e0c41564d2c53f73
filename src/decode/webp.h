// SPDX-License-Identifier: MIT
// WebP by libwebp: the box's part of a still picture or of an animation's first frame,
// with the pixels that Pillow's convert("RGB") gives: transparency is dropped. What lies
// below the box is not decoded, so faults there are not seen. Memory beside the plan: a
// lossless file made to harm can have libwebp take up to about 10 kB for each 4 x 4
// pixels.
#ifndef FL_DECODE_WEBP_H
#define FL_DECODE_WEBP_H

#include "decode/decoder.h"

extern const fl_decoder_vtable fl_webp_decoder;

#endif
