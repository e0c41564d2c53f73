// SPDX-License-Identifier: MIT
// Any bytes through the PNG decoder; and once more with right checksums, which a fuzzer
// hardly finds.
#include "fuzz_picture.h"

#include "png_samples.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_picture(data, size);
    uint8_t *copy = malloc(size ? size : 1);
    if (!copy)
        return 0;
    memcpy(copy, data, size);
    png_sample_repair(copy, size);
    if (memcmp(copy, data, size) != 0)
        fuzz_picture(copy, size);
    free(copy);
    return 0;
}
