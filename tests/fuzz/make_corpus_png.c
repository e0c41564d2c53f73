// SPDX-License-Identifier: MIT
// Writes the seeds of the PNG corpus to a folder: each kind of PNG, small, and chunks
// that mutation finds late.
#include "png_samples.h"

static void write_file(const char *folder, const char *name, const png_file *file)
{
    char path[4096];
    snprintf(path, sizeof(path), "%s/%s.png", folder, name);
    FILE *out = fopen(path, "wb");
    CHECK(out);
    CHECK_INT(fwrite(file->bytes, 1, file->size, out), file->size);
    CHECK_INT(fclose(out), 0);
}

static void write_with(const char *folder, const char *name, const char *chunk,
                       const char *data, size_t size)
{
    static const png_sample grey = {"grey8", 8, 0, false};
    png_file file = png_sample_make(&grey, 9, 7);
    png_file_insert(&file, chunk, (const uint8_t *)data, size);
    write_file(folder, name, &file);
    png_file_free(&file);
}

#define WRITE_WITH(folder, name, chunk, data)                                            \
    write_with(folder, name, chunk, data, sizeof(data) - 1)

int main(int count, char **arguments)
{
    CHECK_INT(count, 2);
    const char *folder = arguments[1];
    for (size_t i = 0; i < PNG_SAMPLE_COUNT; i++) {
        png_file file = png_sample_make(&PNG_SAMPLES[i], 13, 9);
        write_file(folder, PNG_SAMPLES[i].name, &file);
        png_file_free(&file);
    }
    WRITE_WITH(folder, "text", "tEXt", "key\0value");
    WRITE_WITH(folder, "packed-text", "zTXt", "key\0\0\x78\x9c\x03\0\0\0\0\1");
    WRITE_WITH(folder, "international-text", "iTXt",
               "key\0\1\0en\0key\0\x78\x9c\x03\0\0\0\0\1");
    WRITE_WITH(folder, "profile", "iCCP", "name\0\0\x78\x9c\x03\0\0\0\0\1");
    WRITE_WITH(folder, "key", "tRNS", "\0\1");
    WRITE_WITH(folder, "animated", "acTL", "\0\0\0\2\0\0\0\0");
    WRITE_WITH(folder, "frame", "fcTL",
               "\0\0\0\0\0\0\0\x09\0\0\0\7\0\0\0\0\0\0\0\0\0\1\0\x0a\0\0");
    WRITE_WITH(folder, "frame-of-a-part", "fcTL",
               "\0\0\0\0\0\0\0\4\0\0\0\3\0\0\0\1\0\0\0\2\0\1\0\x0a\0\0");
    return 0;
}
