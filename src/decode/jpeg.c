// SPDX-License-Identifier: MIT
// One picture: header, limits, crop and skip, rows, end. A fresh decompressor for each
// (3 us of about 1000): a reused one had bugs up to libjpeg-turbo 3.1.2.
#include "decode/jpeg.h"

#include "base/memory.h"
#include "decode/cmyk.h"
#include "decode/end_marker.h"
#include "decode/jpeg_state.h"

#include <assert.h>
#include <string.h>

// Pillow feeds libjpeg in blocks of this size and looks for faults below the last row
// only in the block that it has reached.
enum { PILLOW_BLOCK = 65536 };

// libjpeg-turbo's SIMD code stores past the cache (movntdq) where a row is aligned, and
// whoever reads the row then waits for memory: a tenth of the whole decode. So rows start
// off by this.
enum { UNALIGNED = 8 };

static bool probe(const uint8_t *bytes, size_t size)
{
    return size >= 3 && bytes[0] == 0xFF && bytes[1] == 0xD8 && bytes[2] == 0xFF;
}

static fl_status create(void **state, fl_error *error)
{
    fl_jpeg *jpeg = fl_alloc_zeroed(sizeof(*jpeg));
    if (!jpeg)
        return fl_error_no_memory(error);
    *state = jpeg;
    return FL_OK;
}

static void close_picture(void *state)
{
    fl_jpeg *jpeg = state;
    if (jpeg->is_created)
        jpeg_destroy_decompress(&jpeg->cinfo); // cannot fail
    jpeg->is_created = false;
}

static void destroy(void *state)
{
    fl_jpeg *jpeg = state;
    if (!jpeg)
        return;
    close_picture(jpeg);
    fl_free(jpeg->rows);
    fl_free(jpeg);
}

static void read_header(fl_jpeg *jpeg)
{
    struct jpeg_decompress_struct *cinfo = &jpeg->cinfo;
    fl_jpeg_set_errors(jpeg);
    jpeg->is_created = true; // also a half-made one is to be destroyed
    jpeg_create_decompress(cinfo);
    fl_jpeg_set_source(jpeg);
    fl_jpeg_set_monitor(jpeg);

    // Streams that hold only tables may come first, as in Pillow.
    while (jpeg_read_header(cinfo, FALSE) == JPEG_HEADER_TABLES_ONLY)
        continue;
    if (cinfo->data_precision != 8)
        fl_jpeg_fail(jpeg, FL_ERROR_UNSUPPORTED, "%d bits a sample",
                     cinfo->data_precision);
    int components = cinfo->num_components;
    if (components != 1 && components != 3 && components != 4)
        fl_jpeg_fail(jpeg, FL_ERROR_UNSUPPORTED, "%d components", components);
    cinfo->out_color_space = components == 4 ? JCS_CMYK : JCS_EXT_RGBX;
    cinfo->dct_method = JDCT_ISLOW; // the one whose results do not depend on the CPU

    int64_t pixels = (int64_t)cinfo->image_width * cinfo->image_height;
    if (pixels > jpeg->limits.max_pixels)
        fl_jpeg_fail(
            jpeg, FL_ERROR_LIMIT, "it claims %u x %u pixels, more than the limit of %lld",
            cinfo->image_width, cinfo->image_height, (long long)jpeg->limits.max_pixels);
}

static fl_status open_picture(void *state, fl_picture *picture,
                              const fl_decode_limits *limits, const fl_cancel *cancel,
                              fl_error *error)
{
    fl_jpeg *jpeg = state;
    jpeg->bytes = picture->bytes;
    jpeg->size = picture->size;
    jpeg->limits = *limits;
    jpeg->cancel = cancel;
    jpeg->warnings = 0;
    jpeg->is_last = false;
    fl_status status = fl_jpeg_try(jpeg, read_header, error);
    if (status != FL_OK)
        return status;
    picture->width = (int32_t)jpeg->cinfo.image_width;
    picture->height = (int32_t)jpeg->cinfo.image_height;
    picture->memory = fl_jpeg_memory(jpeg);
    // libjpeg looks at it before it takes the coefficients' memory.
    jpeg->cinfo.mem->max_memory_to_use = (long)picture->memory;
    return FL_OK;
}

static void start_rows(fl_jpeg *jpeg)
{
    struct jpeg_decompress_struct *cinfo = &jpeg->cinfo;
    fl_box box = jpeg->box;
    jpeg_start_decompress(cinfo);

    JDIMENSION x, width;
    fl_jpeg_plan_columns(jpeg, box, &x, &width);
    if (width < cinfo->output_width)
        jpeg_crop_scanline(cinfo, &x, &width); // moves x left, to a block
    jpeg->drop = (size_t)box.x - x;
    jpeg->decoded = cinfo->output_width;
    if (box.y > 0)
        (void)jpeg_skip_scanlines(cinfo, (JDIMENSION)box.y);
}

static fl_status start(void *state, fl_box box, fl_error *error)
{
    fl_jpeg *jpeg = state;
    assert(box.x >= 0 && box.y >= 0 && box.width > 0 && box.height > 0);
    assert(box.width <= (int32_t)jpeg->cinfo.image_width - box.x);
    assert(box.height <= (int32_t)jpeg->cinfo.image_height - box.y);
    jpeg->box = box;
    fl_status status = fl_jpeg_try(jpeg, start_rows, error);
    if (status != FL_OK)
        return status;

    jpeg->row_stride = fl_size_align(jpeg->decoded * FL_PIXEL_SIZE + UNALIGNED, 64);
    size_t size = jpeg->row_stride * FL_JPEG_MAX_ROWS;
    if (size > jpeg->rows_size) {
        fl_free(jpeg->rows);
        jpeg->rows_size = 0;
        jpeg->rows = fl_alloc_aligned(64, size);
        if (!jpeg->rows)
            return fl_error_no_memory(error);
        jpeg->rows_size = size;
    }
    return FL_OK;
}

static int32_t next_count(const fl_jpeg *jpeg)
{
    return jpeg->wanted < FL_JPEG_MAX_ROWS ? jpeg->wanted : FL_JPEG_MAX_ROWS;
}

// At least one row, or it does not return.
static JDIMENSION read_some(fl_jpeg *jpeg, uint8_t *rows[FL_JPEG_MAX_ROWS])
{
    JDIMENSION count = (JDIMENSION)next_count(jpeg);
    JDIMENSION got = jpeg_read_scanlines(&jpeg->cinfo, rows, count);
    if (got == 0)
        fl_jpeg_fail(jpeg, FL_ERROR_DATA, "no more rows");
    jpeg->wanted -= (int32_t)got;
    return got;
}

// By way of our own rows: those decoded are wider than the box, or CMYK. Where they fit,
// the copy is still cheaper than libjpeg's stores past the cache.
static void read_wanted(fl_jpeg *jpeg)
{
    uint8_t *rows[FL_JPEG_MAX_ROWS];
    for (size_t i = 0; i < FL_JPEG_MAX_ROWS; i++)
        rows[i] = jpeg->rows + i * jpeg->row_stride + UNALIGNED;
    bool is_cmyk = jpeg->cinfo.out_color_space == JCS_CMYK;
    size_t width = (size_t)jpeg->box.width;
    while (jpeg->wanted > 0) {
        JDIMENSION got = read_some(jpeg, rows);
        for (JDIMENSION i = 0; i < got; i++) {
            const uint8_t *from = rows[i] + jpeg->drop * FL_PIXEL_SIZE;
            if (is_cmyk)
                fl_cmyk_to_rgbx(from, jpeg->target, width);
            else
                memcpy(jpeg->target, from, width * FL_PIXEL_SIZE);
            jpeg->target += jpeg->stride;
        }
    }
}

static fl_status read_rows(void *state, uint8_t *rows, size_t stride, int32_t count,
                           fl_error *error)
{
    fl_jpeg *jpeg = state;
    jpeg->target = rows;
    jpeg->stride = stride;
    jpeg->wanted = count;
    return fl_jpeg_try(jpeg, read_wanted, error);
}

static void finish_whole(fl_jpeg *jpeg)
{
    size_t done = jpeg->size - jpeg->source.bytes_in_buffer;
    size_t seen = fl_size_align(done, PILLOW_BLOCK);
    if (seen < jpeg->size)
        jpeg->source.bytes_in_buffer = seen - done;
    jpeg->is_last = true;
    (void)jpeg_finish_decompress(&jpeg->cinfo);
}

static void finish_early(fl_jpeg *jpeg)
{
    struct jpeg_decompress_struct *cinfo = &jpeg->cinfo;
    if (jpeg_input_complete(cinfo)) // several scans: all were read at the start
        return;
    int found = 0;
    switch (fl_jpeg_check_rest(jpeg->source.next_input_byte, jpeg->source.bytes_in_buffer,
                               cinfo->unread_marker, cinfo->restart_interval > 0,
                               &found)) {
    case FL_JPEG_REST_WHOLE:
        return;
    case FL_JPEG_REST_TRUNCATED:
        fl_jpeg_fail(jpeg, FL_ERROR_DATA, "the file is truncated");
    case FL_JPEG_REST_BROKEN:
        fl_jpeg_fail(jpeg, FL_ERROR_DATA, "impossible marker 0x%02x in the picture",
                     found);
    }
}

static fl_status finish(void *state, fl_error *error)
{
    fl_jpeg *jpeg = state;
    bool is_whole = jpeg->cinfo.output_scanline == jpeg->cinfo.output_height;
    return fl_jpeg_try(jpeg, is_whole ? finish_whole : finish_early, error);
}

static int64_t warnings(const void *state)
{
    const fl_jpeg *jpeg = state;
    return jpeg->warnings;
}

const fl_decoder_vtable fl_jpeg_decoder = {
    .name = "jpeg",
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
