// SPDX-License-Identifier: MIT
// Pillow composes an animation's first frame on a transparent black canvas of the file's
// size; a still picture is its only frame. libwebp decodes a box into one buffer, from
// which the rows are copied.
#ifdef FL_HAVE_WEBP
#include "decode/webp.h"

#include "base/memory.h"

#include <assert.h>
#include <string.h>

#include <webp/decode.h>
#include <webp/demux.h>

enum {
    HEAD_SIZE = 16, // "RIFF", size, "WEBP", the first chunk's name
    // Fancy upsampling takes the chroma samples of a neighbour, each two pixels wide, and
    // takes a box's edge for the picture's.
    MARGIN = 2,
    FIXED_MEMORY = 256 << 10, // the decoder's object, Huffman tables
    KEPT = 4 << 20,           // of the buffer, from picture to picture
};

typedef struct fl_webp {
    const fl_cancel *cancel;
    size_t size; // the file's, for messages
    WebPDemuxer *demuxer;
    WebPIterator frame; // the first; borrows the file's bytes
    bool has_frame;

    uint8_t *pixels; // decoded: `part` of the frame, RGBA
    size_t pixels_size;
    fl_box part;      // in the frame
    fl_box box;       // in the picture
    int32_t next_row; // of the picture
} fl_webp;

static bool probe(const uint8_t *bytes, size_t size)
{
    return size >= HEAD_SIZE && memcmp(bytes, "RIFF", 4) == 0 &&
           memcmp(bytes + 8, "WEBPVP8", 7) == 0 &&
           (bytes[15] == ' ' || bytes[15] == 'L' || bytes[15] == 'X');
}

static fl_status create(void **state, fl_error *error)
{
    fl_webp *webp = fl_alloc_zeroed(sizeof(*webp));
    if (!webp)
        return fl_error_no_memory(error);
    *state = webp;
    return FL_OK;
}

static void drop_pixels(fl_webp *webp)
{
    fl_free(webp->pixels);
    webp->pixels = NULL;
    webp->pixels_size = 0;
}

static void close_picture(void *state)
{
    fl_webp *webp = state;
    if (webp->has_frame)
        WebPDemuxReleaseIterator(&webp->frame);
    webp->has_frame = false;
    WebPDemuxDelete(webp->demuxer); // NULL is fine
    webp->demuxer = NULL;
    if (webp->pixels_size > KEPT)
        drop_pixels(webp);
}

static void destroy(void *state)
{
    fl_webp *webp = state;
    if (!webp)
        return;
    close_picture(webp);
    drop_pixels(webp);
    fl_free(webp);
}

static fl_status broken(const fl_webp *webp, const char *what, fl_error *error)
{
    return fl_error_set(error, FL_ERROR_DATA,
                        "the WebP of %zu bytes: %s; write the file again or "
                        "take it out of the data set",
                        webp->size, what);
}

// The output, libwebp's own pixels of a lossless picture or alpha plane, its transforms;
// some rows.
static size_t count_memory(const WebPIterator *frame)
{
    size_t width = (size_t)frame->width, height = (size_t)frame->height;
    size_t area = width * height; // at most 2^28
    return FIXED_MEMORY + area * FL_PIXEL_SIZE * 5 / 2 + width * 256;
}

static fl_status open_picture(void *state, fl_picture *picture,
                              const fl_decode_limits *limits, const fl_cancel *cancel,
                              fl_error *error)
{
    fl_webp *webp = state;
    webp->size = picture->size;
    webp->cancel = cancel;
    const WebPData data = {.bytes = picture->bytes, .size = picture->size};
    webp->demuxer = WebPDemux(&data); // takes whole files only
    if (!webp->demuxer)
        return broken(webp, "it is truncated or its chunks are damaged", error);
    uint32_t width = WebPDemuxGetI(webp->demuxer, WEBP_FF_CANVAS_WIDTH);
    uint32_t height = WebPDemuxGetI(webp->demuxer, WEBP_FF_CANVAS_HEIGHT);
    if (width == 0 || height == 0)
        return broken(webp, "impossible width or height", error);
    if ((int64_t)width * height > limits->max_pixels)
        return fl_error_set(error, FL_ERROR_LIMIT,
                            "the WebP of %zu bytes: it claims %u x %u "
                            "pixels, more than the limit of %lld; make it smaller "
                            "or take it out of the data set",
                            webp->size, width, height, (long long)limits->max_pixels);
    webp->has_frame = WebPDemuxGetFrame(webp->demuxer, 1, &webp->frame) != 0;
    if (!webp->has_frame || webp->frame.width <= 0 || webp->frame.height <= 0)
        return broken(webp, "it has no picture", error);
    picture->width = (int32_t)width;
    picture->height = (int32_t)height;
    picture->memory = count_memory(&webp->frame);
    return FL_OK;
}

static int32_t clamp(int32_t value, int32_t low, int32_t high)
{
    return value < low ? low : value > high ? high : value;
}

// The interval of the frame, `size` long from `offset`, that covers `count` pixels from
// `first` of the picture, with its margin; begins at an even place. Empty: none does.
static void plan_side(int32_t first, int32_t count, int32_t offset, int32_t size,
                      int32_t *start, int32_t *length)
{
    int32_t begin = clamp(first - offset, 0, size);
    int32_t end = clamp(first - offset + count, 0, size);
    *start = 0;
    *length = 0;
    if (begin == end)
        return;
    *start = clamp(begin - MARGIN, 0, size) & ~1;
    *length = clamp(end + MARGIN, 0, size) - *start;
}

static const char *name_of(VP8StatusCode code)
{
    switch (code) {
    case VP8_STATUS_BITSTREAM_ERROR:
        return "damaged picture data";
    case VP8_STATUS_UNSUPPORTED_FEATURE:
        return "an unknown kind of picture data";
    case VP8_STATUS_NOT_ENOUGH_DATA:
    case VP8_STATUS_SUSPENDED:
        return "the file is truncated";
    default:
        return "libwebp refuses it";
    }
}

static fl_status decode_part(fl_webp *webp, fl_error *error)
{
    WebPDecoderConfig config;
    if (!WebPInitDecoderConfig(&config))
        return fl_error_set(error, FL_ERROR_UNSUPPORTED,
                            "libwebp's headers and library are of different versions");
    fl_box part = webp->part;
    config.options.use_cropping =
        part.width < webp->frame.width || part.height < webp->frame.height;
    config.options.crop_left = part.x;
    config.options.crop_top = part.y;
    config.options.crop_width = part.width;
    config.options.crop_height = part.height;
    config.output.colorspace = MODE_RGBA;
    config.output.is_external_memory = 1;
    config.output.u.RGBA.rgba = webp->pixels;
    config.output.u.RGBA.stride = part.width * FL_PIXEL_SIZE;
    config.output.u.RGBA.size = (size_t)part.width * (size_t)part.height * FL_PIXEL_SIZE;
    VP8StatusCode code =
        WebPDecode(webp->frame.fragment.bytes, webp->frame.fragment.size, &config);
    if (code == VP8_STATUS_OUT_OF_MEMORY)
        return fl_error_no_memory(error);
    return code == VP8_STATUS_OK ? FL_OK : broken(webp, name_of(code), error);
}

static fl_status start(void *state, fl_box box, fl_error *error)
{
    fl_webp *webp = state;
    const WebPIterator *frame = &webp->frame;
    assert(box.x >= 0 && box.y >= 0 && box.width > 0 && box.height > 0);
    if (fl_cancel_is_set(webp->cancel))
        return fl_error_set(error, FL_ERROR_CANCELLED, "decoding was cancelled");
    fl_box *part = &webp->part;
    webp->box = box;
    webp->next_row = box.y;
    plan_side(box.x, box.width, frame->x_offset, frame->width, &part->x, &part->width);
    plan_side(box.y, box.height, frame->y_offset, frame->height, &part->y, &part->height);
    if (part->width == 0 || part->height == 0) {
        *part = (fl_box){0};
        return FL_OK;
    }
    size_t size = (size_t)part->width * (size_t)part->height * FL_PIXEL_SIZE;
    if (size > webp->pixels_size) {
        drop_pixels(webp);
        webp->pixels = fl_alloc(size);
        if (!webp->pixels)
            return fl_error_no_memory(error);
        webp->pixels_size = size;
    }
    return decode_part(webp, error);
}

// Pixels of the box's row that the frame covers; black ones around them.
static void copy_row(const fl_webp *webp, uint8_t *to)
{
    const WebPIterator *frame = &webp->frame;
    fl_box part = webp->part, box = webp->box;
    int32_t y = webp->next_row - frame->y_offset;
    int32_t begin = clamp(frame->x_offset - box.x, 0, box.width);
    int32_t end = clamp(frame->x_offset + frame->width - box.x, 0, box.width);
    bool is_outside = y < 0 || y >= frame->height || begin >= end;
    if (is_outside || end - begin < box.width)
        memset(to, 0, (size_t)box.width * FL_PIXEL_SIZE);
    if (is_outside)
        return;
    int32_t x = box.x + begin - frame->x_offset;
    size_t place = (size_t)(y - part.y) * (size_t)part.width + (size_t)(x - part.x);
    memcpy(to + (size_t)begin * FL_PIXEL_SIZE, webp->pixels + place * FL_PIXEL_SIZE,
           (size_t)(end - begin) * FL_PIXEL_SIZE);
}

static fl_status read_rows(void *state, uint8_t *rows, size_t stride, int32_t count,
                           fl_error *error)
{
    fl_webp *webp = state;
    if (fl_cancel_is_set(webp->cancel))
        return fl_error_set(error, FL_ERROR_CANCELLED, "decoding was cancelled");
    for (int32_t i = 0; i < count; i++, webp->next_row++)
        copy_row(webp, rows + (size_t)i * stride);
    return FL_OK;
}

// WebPDemux has seen the file's end, and the box is decoded.
static fl_status finish(void *state, fl_error *error)
{
    (void)state;
    (void)error;
    return FL_OK;
}

static int64_t warnings(const void *state)
{
    (void)state;
    return 0; // libwebp has none
}

const fl_decoder_vtable fl_webp_decoder = {
    .name = "webp",
    .probe = probe,
    .create = create,
    .destroy = destroy,
    .open = open_picture,
    .start = start,
    .read = read_rows,
    .finish = finish,
    .warnings = warnings,
    .close = close_picture,
};
#endif
