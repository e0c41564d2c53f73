// SPDX-License-Identifier: MIT
// Writes the seeds of the WebP corpus to a folder: each kind of WebP, small.
#include "webp_samples.h"

int main(int count, char **arguments)
{
    CHECK_INT(count, 2);
    for (size_t i = 0; i < WEBP_SAMPLE_COUNT; i++) {
        webp_file file = webp_sample_make(&WEBP_SAMPLES[i], 23, 19);
        char path[4096];
        snprintf(path, sizeof(path), "%s/%s.webp", arguments[1], WEBP_SAMPLES[i].name);
        FILE *out = fopen(path, "wb");
        CHECK(out);
        CHECK_INT(fwrite(file.bytes, 1, file.size, out), file.size);
        CHECK_INT(fclose(out), 0);
        webp_file_free(&file);
    }
    return 0;
}
