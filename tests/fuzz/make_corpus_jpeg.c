// SPDX-License-Identifier: MIT
// Writes the seeds of the JPEG corpus to a folder: each kind of JPEG, small, and the
// kinds of damage that mutation finds late.
#include "jpeg_samples.h"

static void write_file(const char *folder, const char *name, const char *suffix,
                       const uint8_t *bytes, size_t size)
{
    char path[4096];
    snprintf(path, sizeof(path), "%s/%s%s.jpg", folder, name, suffix);
    FILE *file = fopen(path, "wb");
    CHECK(file);
    CHECK_INT(fwrite(bytes, 1, size, file), size);
    CHECK_INT(fclose(file), 0);
}

static void write_damaged(const char *folder, const char *name, uint8_t *bytes,
                          size_t size)
{
    write_file(folder, name, "-cut", bytes, size * 4 / 5);
    write_file(folder, name, "-no-end", bytes, size - 2);
    bytes[size - 40] = 0xFF; // a stray marker in the picture
    bytes[size - 39] = 0xD3;
    write_file(folder, name, "-restart", bytes, size);
    bytes[size - 39] = 0xAE;
    write_file(folder, name, "-marker", bytes, size);
}

int main(int count, char **arguments)
{
    CHECK_INT(count, 2);
    for (size_t i = 0; i < JPEG_SAMPLE_COUNT; i++) {
        const jpeg_sample *sample = &JPEG_SAMPLES[i];
        size_t size;
        uint8_t *bytes = jpeg_sample_make(sample, 43, 19, &size);
        write_file(arguments[1], sample->name, "", bytes, size);
        if (i % 4 == 3)
            write_damaged(arguments[1], sample->name, bytes, size);
        free(bytes);
    }
    return 0;
}
