// SPDX-License-Identifier: MIT
// JPEGs for tests, made by libjpeg's compressor, and libjpeg's own whole decode of them.
// The caller frees what it receives with free().
#ifndef FL_TESTS_JPEG_SAMPLES_H
#define FL_TESTS_JPEG_SAMPLES_H

#include "check.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <jpeglib.h>

typedef struct jpeg_sample {
    const char *name;
    int components; // 1, 3 or 4
    int h, v;       // sampling factors of the first component; the others have 1
    int quality;
    bool is_progressive, is_arithmetic, is_optimised, is_apart; // apart: a scan each
    unsigned restart; // MCUs between restart markers
    int chroma_h;     // sampling of the second component, 0 = 1
} jpeg_sample;

static const jpeg_sample JPEG_SAMPLES[] = {
    {.name = "444", .components = 3, .h = 1, .v = 1, .quality = 80, .is_optimised = true},
    {.name = "422", .components = 3, .h = 2, .v = 1, .quality = 80},
    {.name = "440", .components = 3, .h = 1, .v = 2, .quality = 80},
    {.name = "420", .components = 3, .h = 2, .v = 2, .quality = 80},
    {.name = "420-coarse", .components = 3, .h = 2, .v = 2, .quality = 5},
    {.name = "411", .components = 3, .h = 4, .v = 1, .quality = 80},
    {.name = "441", .components = 3, .h = 1, .v = 4, .quality = 80},
    {.name = "410", .components = 3, .h = 4, .v = 2, .quality = 80},
    {.name = "mixed", .components = 3, .h = 4, .v = 1, .quality = 80, .chroma_h = 2},
    {.name = "tall", .components = 3, .h = 2, .v = 4, .quality = 80},
    {.name = "420-restarts",
     .components = 3,
     .h = 2,
     .v = 2,
     .quality = 80,
     .restart = 2},
    {.name = "444-restarts",
     .components = 3,
     .h = 1,
     .v = 1,
     .quality = 80,
     .restart = 1},
    {.name = "grey", .components = 1, .h = 1, .v = 1, .quality = 80},
    {.name = "grey-22", .components = 1, .h = 2, .v = 2, .quality = 80},
    {.name = "cmyk", .components = 4, .h = 1, .v = 1, .quality = 80},
    {.name = "cmyk-420", .components = 4, .h = 2, .v = 2, .quality = 80},
    {.name = "420-progressive",
     .components = 3,
     .h = 2,
     .v = 2,
     .quality = 80,
     .is_progressive = true},
    {.name = "444-progressive",
     .components = 3,
     .h = 1,
     .v = 1,
     .quality = 90,
     .is_progressive = true,
     .restart = 3},
    {.name = "grey-progressive",
     .components = 1,
     .h = 1,
     .v = 1,
     .quality = 80,
     .is_progressive = true},
    {.name = "cmyk-progressive",
     .components = 4,
     .h = 2,
     .v = 1,
     .quality = 80,
     .is_progressive = true},
    {.name = "420-scans-apart",
     .components = 3,
     .h = 2,
     .v = 2,
     .quality = 80,
     .is_apart = true},
#ifdef C_ARITH_CODING_SUPPORTED
    {.name = "420-arithmetic",
     .components = 3,
     .h = 2,
     .v = 2,
     .quality = 80,
     .is_arithmetic = true},
    {.name = "422-arithmetic-progressive",
     .components = 3,
     .h = 2,
     .v = 1,
     .quality = 80,
     .is_progressive = true,
     .is_arithmetic = true},
#endif
};
enum { JPEG_SAMPLE_COUNT = sizeof(JPEG_SAMPLES) / sizeof(JPEG_SAMPLES[0]) };

static inline uint32_t jpeg_sample_random(uint32_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 17;
    *state ^= *state << 5;
    return *state;
}

static inline void jpeg_sample_script(struct jpeg_compress_struct *cinfo,
                                      const jpeg_sample *sample)
{
    static const jpeg_scan_info apart[3] = {
        {1, {0}, 0, 63, 0, 0}, {1, {1}, 0, 63, 0, 0}, {1, {2}, 0, 63, 0, 0}};
    if (sample->is_progressive)
        jpeg_simple_progression(cinfo);
    if (sample->is_apart) {
        cinfo->scan_info = apart;
        cinfo->num_scans = 3;
    }
}

// Slopes with noise on them, so that all coefficients get used.
static inline uint8_t *jpeg_sample_make(const jpeg_sample *sample, int width, int height,
                                        size_t *size)
{
    struct jpeg_compress_struct cinfo = {0};
    struct jpeg_error_mgr errors;
    unsigned char *bytes = NULL;
    unsigned long length = 0;
    cinfo.err = jpeg_std_error(&errors);
    jpeg_create_compress(&cinfo);
    jpeg_mem_dest(&cinfo, &bytes, &length);
    cinfo.image_width = (JDIMENSION)width;
    cinfo.image_height = (JDIMENSION)height;
    cinfo.input_components = sample->components;
    cinfo.in_color_space = sample->components == 1   ? JCS_GRAYSCALE
                           : sample->components == 3 ? JCS_RGB
                                                     : JCS_CMYK;
    jpeg_set_defaults(&cinfo);
    if (sample->components == 4)
        jpeg_set_colorspace(&cinfo, sample->h == 1 ? JCS_CMYK : JCS_YCCK);
    jpeg_set_quality(&cinfo, sample->quality, TRUE);
    cinfo.comp_info[0].h_samp_factor = sample->h;
    cinfo.comp_info[0].v_samp_factor = sample->v;
    for (int i = 1; i < sample->components; i++)
        cinfo.comp_info[i].h_samp_factor = cinfo.comp_info[i].v_samp_factor = 1;
    if (sample->chroma_h)
        cinfo.comp_info[1].h_samp_factor = sample->chroma_h;
    if (sample->components == 4) { // black as fine as the first
        cinfo.comp_info[3].h_samp_factor = sample->h;
        cinfo.comp_info[3].v_samp_factor = sample->v;
    }
    cinfo.arith_code = sample->is_arithmetic;
    cinfo.optimize_coding = sample->is_optimised;
    cinfo.restart_interval = sample->restart;
    jpeg_sample_script(&cinfo, sample);
    jpeg_start_compress(&cinfo, TRUE);

    uint32_t random = 12345;
    uint8_t *row = malloc((size_t)(width * sample->components));
    CHECK(row);
    for (int y = 0; y < height; y++) {
        for (int i = 0; i < width * sample->components; i++)
            row[i] = (uint8_t)(i * 3 + y * 5 + (int)(jpeg_sample_random(&random) % 60));
        jpeg_write_scanlines(&cinfo, &row, 1);
    }
    jpeg_finish_compress(&cinfo);
    jpeg_destroy_compress(&cinfo);
    free(row);
    *size = length;
    return bytes;
}

// Every row by the plainest use of libjpeg: RGBX, or CMYK as it stands in the file.
static inline uint8_t *jpeg_sample_decode(const uint8_t *bytes, size_t size, int *width,
                                          int *height)
{
    struct jpeg_decompress_struct cinfo = {0};
    struct jpeg_error_mgr errors;
    cinfo.err = jpeg_std_error(&errors);
    jpeg_create_decompress(&cinfo);
    jpeg_mem_src(&cinfo, bytes, (unsigned long)size);
    CHECK_INT(jpeg_read_header(&cinfo, TRUE), JPEG_HEADER_OK);
    cinfo.out_color_space = cinfo.num_components == 4 ? JCS_CMYK : JCS_EXT_RGBX;
    jpeg_start_decompress(&cinfo);
    size_t stride = cinfo.output_width * (size_t)4;
    uint8_t *pixels = malloc(stride * cinfo.output_height);
    CHECK(pixels);
    while (cinfo.output_scanline < cinfo.output_height) {
        uint8_t *row = pixels + cinfo.output_scanline * stride;
        CHECK_INT(jpeg_read_scanlines(&cinfo, &row, 1), 1);
    }
    *width = (int)cinfo.output_width;
    *height = (int)cinfo.output_height;
    jpeg_finish_decompress(&cinfo);
    CHECK_INT(errors.num_warnings, 0);
    jpeg_destroy_decompress(&cinfo);
    return pixels;
}

#endif
