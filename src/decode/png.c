// SPDX-License-Identifier: MIT
// One picture: chunks, limits, rows, end. Rows stream through one buffer, but for an
// interlaced picture, which is unpacked whole when the first row is asked for.
#ifdef FL_HAVE_PNG
#include "decode/png.h"

#include "base/memory.h"
#include "decode/png_state.h"

#include <assert.h>
#include <string.h>

enum {
    // Pillow hands zlib blocks of this size: where a fault stands behind the last row, it
    // is seen only in the block that holds the row's end.
    PILLOW_BLOCK = 65536,
    FIXED_MEMORY = 160 << 10, // libpng's objects, its block of data, zlib's window
};

static bool probe(const uint8_t *bytes, size_t size)
{
    return size >= FL_PNG_SIGNATURE &&
           memcmp(bytes, "\x89PNG\r\n\x1a\n", FL_PNG_SIGNATURE) == 0;
}

static fl_status create(void **state, fl_error *error)
{
    fl_png *png = fl_alloc_zeroed(sizeof(*png));
    if (!png)
        return fl_error_no_memory(error);
    *state = png;
    return FL_OK;
}

static void close_picture(void *state)
{
    fl_png *png = state;
    if (png->png)
        png_destroy_read_struct(&png->png, &png->info, NULL); // sets both to NULL
    if (png->chunks.is_interlaced) { // as large as the picture: not kept
        fl_free(png->rows);
        png->rows = NULL;
        png->rows_size = 0;
    }
    png->chunks = (fl_png_chunks){0};
}

static void destroy(void *state)
{
    fl_png *png = state;
    if (!png)
        return;
    close_picture(png);
    fl_free(png->rows);
    fl_free(png);
}

static void choose_pixels(fl_png *png)
{
    const fl_png_chunks *chunks = &png->chunks;
    switch (chunks->colour) {
    case FL_PNG_PALETTE:
        fl_png_pixels_set_palette(&png->pixels, chunks->palette, chunks->palette_size);
        break;
    case FL_PNG_GREY:
        if (chunks->depth == 16)
            fl_png_pixels_set_kind(&png->pixels, FL_PNG_BYTES_GREY16);
        else
            fl_png_pixels_set_grey(&png->pixels, chunks->depth);
        break;
    case FL_PNG_GREY_ALPHA:
        fl_png_pixels_set_kind(&png->pixels, FL_PNG_BYTES_GREY_ALPHA);
        break;
    case FL_PNG_RGB:
        fl_png_pixels_set_kind(&png->pixels, FL_PNG_BYTES_RGB);
        break;
    default:
        fl_png_pixels_set_kind(&png->pixels, FL_PNG_BYTES_RGBA);
        break;
    }
}

// Bytes that libpng's own rows (two, and one before its transformations) and ours take.
// Sides are below 2^31: no overflow.
static size_t count_memory(const fl_png *png)
{
    const fl_png_chunks *chunks = &png->chunks;
    size_t deepest = png->pixels.size * (chunks->depth == 16 ? 2 : 1);
    size_t row = (size_t)chunks->width * png->pixels.size;
    size_t rows = chunks->is_interlaced ? chunks->height : 1;
    return FIXED_MEMORY + 3 * ((size_t)chunks->width + 16) * deepest + row * rows;
}

static fl_status open_picture(void *state, fl_picture *picture,
                              const fl_decode_limits *limits, const fl_cancel *cancel,
                              fl_error *error)
{
    fl_png *png = state;
    png->cancel = cancel;
    fl_status status =
        fl_png_read_chunks(&png->chunks, picture->bytes, picture->size, cancel, error);
    if (status != FL_OK)
        return status;
    const fl_png_chunks *chunks = &png->chunks;
    if ((int64_t)chunks->width * chunks->height > limits->max_pixels)
        return fl_error_set(error, FL_ERROR_LIMIT,
                            "the PNG of %zu bytes: it claims %u x %u "
                            "pixels, more than the limit of %lld; make it smaller "
                            "or take it out of the data set",
                            chunks->size, chunks->width, chunks->height,
                            (long long)limits->max_pixels);
    choose_pixels(png);
    picture->width = (int32_t)chunks->width;
    picture->height = (int32_t)chunks->height;
    picture->memory = count_memory(png);
    return FL_OK;
}

// libpng calls it for each row that it has unpacked.
static void on_row(png_structp handle, png_row_infop row, png_bytep bytes)
{
    (void)row;
    (void)bytes;
    fl_png *png = png_get_user_transform_ptr(handle);
    png->rows_left--;
    if (fl_cancel_is_set(png->cancel))
        fl_png_fail(png, FL_ERROR_CANCELLED, "decoding was cancelled");
}

static int64_t count_rows(const fl_png_chunks *chunks)
{
    int64_t rows = 0;
    for (int i = 0; i < fl_png_passes(chunks); i++) {
        fl_png_pass pass = fl_png_pass_size(chunks, i);
        rows += pass.columns > 0 ? pass.rows : 0;
    }
    return rows;
}

static void begin(fl_png *png)
{
    fl_png_make(png);
    png_set_crc_action(png->png, PNG_CRC_QUIET_USE, PNG_CRC_QUIET_USE);
    png_set_benign_errors(png->png, 1);
    png_set_user_limits(png->png, INT32_MAX, INT32_MAX);
    png_set_compression_buffer_size(png->png, PILLOW_BLOCK);
    // A stream may use more of zlib's window than it says.
    png_set_option(png->png, PNG_MAXIMUM_INFLATE_WINDOW, PNG_OPTION_ON);
    fl_png_set_source(png);
    png->rows_left = count_rows(&png->chunks);
    png_read_info(png->png, png->info);

    if (png->chunks.depth < 8)
        png_set_packing(png->png); // to a byte each
    if (png->chunks.depth == 16 && png->pixels.kind != FL_PNG_BYTES_GREY16)
        png_set_strip_16(png->png); // the high byte
    png_set_user_transform_info(png->png, png, 0, 0);
    png_set_read_user_transform_fn(png->png, on_row);
    (void)png_set_interlace_handling(png->png);
    png_read_update_info(png->png, png->info);
    assert(png_get_rowbytes(png->png, png->info) == png->row_size);
}

static void unpack_all(fl_png *png)
{
    for (int pass = 0; pass < fl_png_passes(&png->chunks); pass++)
        for (size_t y = 0; y < png->chunks.height; y++)
            png_read_row(png->png, png->rows + y * png->row_size, NULL);
}

static void skip_rows(fl_png *png)
{
    for (int32_t y = 0; y < png->box.y; y++)
        png_read_row(png->png, png->rows, NULL);
}

// What libpng says behind the last row is no error: Pillow does not look there. Nor is a
// stream that ends behind another row: the rest is black.
static fl_status try_rows(fl_png *png, void (*work)(fl_png *png), fl_error *error)
{
    size_t at;
    fl_status status = fl_png_try(png, work, error);
    if (status != FL_ERROR_DATA)
        return status;
    if (png->rows_left > 0) {
        int64_t rows = count_rows(&png->chunks) - png->rows_left;
        if (!fl_png_ends_early(&png->chunks, rows, PILLOW_BLOCK, &at))
            return status;
        png->at = at;
        png->rows_left = 0;
        if (!png->chunks.is_interlaced)
            memset(png->rows, 0, png->row_size);
    }
    fl_error_clear(error);
    return FL_OK;
}

static fl_status start(void *state, fl_box box, fl_error *error)
{
    fl_png *png = state;
    const fl_png_chunks *chunks = &png->chunks;
    assert(box.x >= 0 && box.y >= 0 && box.width > 0 && box.height > 0);
    assert(box.width <= (int32_t)chunks->width - box.x);
    assert(box.height <= (int32_t)chunks->height - box.y);
    png->box = box;
    png->row_size = (size_t)chunks->width * png->pixels.size;
    size_t size = png->row_size;
    if (chunks->is_interlaced && !fl_size_multiply(size, chunks->height, &size))
        return fl_error_no_memory(error);
    if (size > png->rows_size) {
        fl_free(png->rows);
        png->rows_size = 0;
        png->rows = fl_alloc(size);
        if (!png->rows)
            return fl_error_no_memory(error);
        png->rows_size = size;
    }
    if (chunks->is_interlaced)
        memset(png->rows, 0, size);
    fl_status status = fl_png_try(png, begin, error);
    if (status == FL_OK)
        status = try_rows(png, chunks->is_interlaced ? unpack_all : skip_rows, error);
    png->next_row = box.y;
    return status;
}

static void unpack_row(fl_png *png)
{
    png_read_row(png->png, png->rows, NULL);
}

static fl_status read_rows(void *state, uint8_t *rows, size_t stride, int32_t count,
                           fl_error *error)
{
    fl_png *png = state;
    for (int32_t i = 0; i < count; i++) {
        const uint8_t *row = png->rows;
        if (png->chunks.is_interlaced) {
            row += (size_t)png->next_row * png->row_size;
        } else if (png->rows_left > 0) {
            fl_status status = try_rows(png, unpack_row, error);
            if (status != FL_OK)
                return status;
        }
        png->next_row++;
        fl_png_pixels_convert(&png->pixels, row + (size_t)png->box.x * png->pixels.size,
                              rows + (size_t)i * stride, (size_t)png->box.width);
    }
    return FL_OK;
}

static void read_rest(fl_png *png)
{
    while (png->rows_left > 0)
        png_read_row(png->png, png->rows, NULL);
}

// Above the last row only the heads of the chunks that follow are looked at. Where they
// do not lead to the end, the rows decide.
static fl_status finish(void *state, fl_error *error)
{
    fl_png *png = state;
    if (png->rows_left > 0) {
        fl_png_chunks trial = png->chunks;
        if (fl_png_check_tail(&trial, png->at, true, NULL) == FL_OK)
            return FL_OK;
        fl_status status = try_rows(png, read_rest, error);
        if (status != FL_OK)
            return status;
    }
    return fl_png_check_tail(&png->chunks, png->at, false, error);
}

static int64_t warnings(const void *state)
{
    (void)state;
    return 0; // what is passed over cannot be seen in the pixels
}

const fl_decoder_vtable fl_png_decoder = {
    .name = "png",
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
