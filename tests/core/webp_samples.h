// SPDX-License-Identifier: MIT
// WebPs for tests, made by libwebp's encoder, and libwebp's own whole decode of them.
#ifndef FL_TESTS_WEBP_SAMPLES_H
#define FL_TESTS_WEBP_SAMPLES_H

#include "picture_check.h"

#include <webp/decode.h>
#include <webp/encode.h>

typedef struct webp_sample {
    const char *name;
    bool is_lossless, has_alpha, is_simple_filter, is_animated;
    int quality, filter_strength;
} webp_sample;

static const webp_sample WEBP_SAMPLES[] = {
    {.name = "lossy", .quality = 70, .filter_strength = 60},
    {.name = "coarse", .quality = 0, .filter_strength = 100},
    {.name = "simple-filter",
     .quality = 20,
     .filter_strength = 90,
     .is_simple_filter = true},
    {.name = "unfiltered", .quality = 90},
    {.name = "lossy-alpha", .quality = 60, .filter_strength = 40, .has_alpha = true},
    {.name = "lossless", .is_lossless = true, .quality = 50},
    {.name = "lossless-alpha", .is_lossless = true, .quality = 80, .has_alpha = true},
    {.name = "animated", .quality = 60, .filter_strength = 40, .is_animated = true},
    {.name = "animated-lossless",
     .is_lossless = true,
     .has_alpha = true,
     .is_animated = true},
};
enum {
    WEBP_SAMPLE_COUNT = sizeof(WEBP_SAMPLES) / sizeof(WEBP_SAMPLES[0]),
    // Of an animation: the first frame lies here on the canvas, with black around it.
    WEBP_FRAME_X = 4,
    WEBP_FRAME_Y = 6,
    WEBP_BORDER = 3, // right and below
};

typedef struct webp_file {
    uint8_t *bytes; // to be freed
    size_t size;
    uint8_t *pixels; // RGBX; to be freed
    int width, height;
} webp_file;

static inline uint8_t *webp_sample_put(uint8_t *to, uint32_t value, int bytes)
{
    for (int i = 0; i < bytes; i++)
        *to++ = (uint8_t)(value >> (8 * i));
    return to;
}

static inline void webp_sample_encode(const webp_sample *sample, int width, int height,
                                      WebPMemoryWriter *writer)
{
    WebPConfig config;
    WebPPicture picture;
    CHECK(WebPConfigInit(&config) && WebPPictureInit(&picture));
    config.lossless = sample->is_lossless;
    config.quality = (float)sample->quality;
    config.filter_strength = sample->filter_strength;
    config.filter_type = !sample->is_simple_filter;
    config.method = 2;
    picture.use_argb = 1;
    picture.width = width;
    picture.height = height;
    CHECK(WebPPictureAlloc(&picture));
    uint32_t random = (uint32_t)(width * 31 + height);
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++) {
            uint32_t noise = picture_random(&random), pixel = 0xFFu << 24;
            if (sample->has_alpha)
                pixel = ((uint32_t)(x * 9 + y * 4) & 255) << 24;
            for (int i = 0; i < 3; i++) {
                uint32_t value = (uint32_t)(x * (3 + i) + y * (5 - i)) + (noise & 63);
                pixel |= (value & 255) << (8 * i);
                noise >>= 6;
            }
            picture.argb[y * picture.argb_stride + x] = pixel;
        }
    WebPMemoryWriterInit(writer);
    picture.writer = WebPMemoryWrite;
    picture.custom_ptr = writer;
    CHECK(WebPEncode(&config, &picture));
    WebPPictureFree(&picture);
}

// RIFF's chunks by hand: canvas, animation, one frame of what `still` holds.
static inline uint8_t *webp_sample_animate(const WebPMemoryWriter *still, int width,
                                           int height, size_t *size)
{
    uint8_t *bytes = malloc(still->size + 100), *at = bytes;
    CHECK(bytes);
    size_t picture = still->size - 12;
    at = memcpy(at, "RIFF....WEBPVP8X", 16);
    at = webp_sample_put(at + 16, 10, 4);
    at = webp_sample_put(at, 0x12, 4); // animated, transparent
    at = webp_sample_put(at, (uint32_t)(width + WEBP_FRAME_X + WEBP_BORDER - 1), 3);
    at = webp_sample_put(at, (uint32_t)(height + WEBP_FRAME_Y + WEBP_BORDER - 1), 3);
    at = memcpy(at, "ANIM", 4);
    at = webp_sample_put(at + 4, 6, 4);
    at = webp_sample_put(at, 0xFF20C060, 4); // a background that nobody draws
    at = webp_sample_put(at, 0, 2);
    at = memcpy(at, "ANMF", 4);
    at = webp_sample_put(at + 4, (uint32_t)picture + 16, 4);
    at = webp_sample_put(at, WEBP_FRAME_X / 2, 3);
    at = webp_sample_put(at, WEBP_FRAME_Y / 2, 3);
    at = webp_sample_put(at, (uint32_t)width - 1, 3);
    at = webp_sample_put(at, (uint32_t)height - 1, 3);
    at = webp_sample_put(at, 100, 4);
    memcpy(at, still->mem + 12, picture);
    *size = (size_t)(at - bytes) + picture;
    (void)webp_sample_put(bytes + 4, (uint32_t)*size - 8, 4);
    return bytes;
}

static inline webp_file webp_sample_make(const webp_sample *sample, int width, int height)
{
    WebPMemoryWriter writer;
    webp_sample_encode(sample, width, height, &writer);
    webp_file file = {.size = writer.size, .width = width, .height = height};
    int x = 0, y = 0;
    if (sample->is_animated) {
        file.bytes = webp_sample_animate(&writer, width, height, &file.size);
        x = WEBP_FRAME_X;
        y = WEBP_FRAME_Y;
        file.width += x + WEBP_BORDER;
        file.height += y + WEBP_BORDER;
    } else {
        file.bytes = malloc(file.size);
        CHECK(file.bytes);
        memcpy(file.bytes, writer.mem, file.size);
    }
    file.pixels = calloc((size_t)(file.width * file.height), 4);
    CHECK(file.pixels);
    int stride = file.width * 4;
    size_t first = (size_t)(y * stride + x * 4);
    CHECK(WebPDecodeRGBAInto(writer.mem, writer.size, file.pixels + first,
                             (size_t)(stride * file.height) - first, stride));
    WebPMemoryWriterClear(&writer);
    return file;
}

static inline void webp_file_free(webp_file *file)
{
    free(file->bytes);
    free(file->pixels);
}

#endif
