// SPDX-License-Identifier: MIT
// Any bytes through the WebP decoder; and once more with RIFF's size right, which says
// else that the file is truncated.
#include "fuzz_picture.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_picture(data, size);
    if (size < 12)
        return 0;
    uint8_t *copy = malloc(size);
    if (!copy)
        return 0;
    memcpy(copy, data, size);
    for (size_t i = 0; i < 4; i++)
        copy[4 + i] = (uint8_t)((size - 8) >> (8 * i));
    if (memcmp(copy, data, size) != 0)
        fuzz_picture(copy, size);
    free(copy);
    return 0;
}
