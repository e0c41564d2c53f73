// SPDX-License-Identifier: MIT
// Any bytes through the decoders. Aborts when something is wrong.
#ifndef FL_FUZZ_PICTURE_H
#define FL_FUZZ_PICTURE_H

#include <stddef.h>
#include <stdint.h>

void fuzz_picture(const uint8_t *data, size_t size);

#endif
