// SPDX-License-Identifier: MIT
// Pillow reads chunks in Python and is strict in its own way: before the first IDAT every
// checksum counts, behind it none does; known chunks may not be too short, texts not too
// long; what is unknown is passed over. Only so do both take and refuse the same files.
// PNG's specification: https://www.w3.org/TR/png-3/
#ifdef FL_HAVE_PNG
#include "decode/png_chunks.h"

#include "decode/png_packed.h"

#include <stdio.h>
#include <string.h>
#include <zlib.h>

enum {
    SIGNATURE = 8,
    MAX_PALETTE = 768,
    HEADER_SIZE = 13,
    FRAME_SIZE = 26,
    // A profile can only expand to more than 1 MiB from more than this: deflate's best is
    // 1032 to 1.
    HARMLESS_SIZE = 1000,
};

static const uint64_t MAX_TEXT = 64 << 20; // characters of a file

#define NAME(a, b, c, d)                                                                 \
    ((uint32_t)(a) << 24 | (uint32_t)(b) << 16 | (uint32_t)(c) << 8 | (uint32_t)(d))

typedef struct chunk {
    uint32_t name;
    const uint8_t *data;
    size_t size;
} chunk;

static uint32_t read_u32(const uint8_t *at)
{
    return NAME(at[0], at[1], at[2], at[3]);
}

static fl_status broken(fl_error *error, const char *what)
{
    return fl_error_set(error, FL_ERROR_DATA,
                        "the PNG: %s; write the file again or take it out "
                        "of the data set",
                        what);
}

static fl_status truncated(fl_error *error)
{
    return broken(error, "the file is truncated");
}

static fl_status too_short(fl_error *error, const chunk *part)
{
    char text[64];
    snprintf(text, sizeof(text), "chunk %c%c%c%c is too short", part->name >> 24,
             part->name >> 16 & 255, part->name >> 8 & 255, part->name & 255);
    return broken(error, text);
}

// ---- What single chunks say.

static fl_status read_header(fl_png_chunks *chunks, const chunk *part, fl_error *error)
{
    if (part->size < HEADER_SIZE)
        return too_short(error, part);
    if (part->data[11] != 0)
        return broken(error, "unknown filter method");
    if (chunks->data_at) // behind the picture: changes nothing any more
        return FL_OK;
    if (chunks->has_header)
        return FL_NEEDS_PYTHON;
    chunks->has_header = true;
    chunks->width = read_u32(part->data);
    chunks->height = read_u32(part->data + 4);
    chunks->depth = part->data[8];
    chunks->colour = part->data[9];
    chunks->is_interlaced = part->data[12] != 0;
    return FL_OK;
}

static fl_status read_palette(fl_png_chunks *chunks, const chunk *part, fl_error *error)
{
    if (!chunks->has_header || chunks->colour != FL_PNG_PALETTE || chunks->data_at)
        return FL_OK;
    if (part->size > MAX_PALETTE)
        return broken(error, "the palette has more than 256 entries");
    chunks->palette = part->data;
    chunks->palette_size = part->size;
    return FL_OK;
}

static fl_status check_transparency(const fl_png_chunks *chunks, const chunk *part,
                                    fl_error *error)
{
    size_t least = 0;
    if (chunks->colour == FL_PNG_GREY)
        least = 2;
    else if (chunks->colour == FL_PNG_RGB)
        least = 6;
    return chunks->has_header && part->size < least ? too_short(error, part) : FL_OK;
}

static fl_status read_animation(fl_png_chunks *chunks, const chunk *part, fl_error *error)
{
    if (part->size < 8)
        return too_short(error, part);
    uint32_t frames = read_u32(part->data);
    if (chunks->frames)
        chunks->frames = 0; // a second one makes both void
    else if (frames <= 0x80000000u)
        chunks->frames = frames;
    return FL_OK;
}

static fl_status read_frame(fl_png_chunks *chunks, const chunk *part, fl_error *error)
{
    if (part->size < FRAME_SIZE)
        return too_short(error, part);
    uint32_t number = read_u32(part->data);
    if (number != (uint64_t)(chunks->sequence + 1))
        return broken(error, "the animation's frames are out of order");
    chunks->sequence = number;
    uint64_t width = read_u32(part->data + 4), height = read_u32(part->data + 8);
    uint32_t x = read_u32(part->data + 12), y = read_u32(part->data + 16);
    if (x + width > chunks->width || y + height > chunks->height)
        return broken(error, "a frame of the animation reaches outside the picture");
    chunks->has_frame_box = true;
    chunks->is_whole_box = chunks->has_header && x == 0 && y == 0 &&
                           width == chunks->width && height == chunks->height;
    return FL_OK;
}

static fl_status check_frame_data(fl_png_chunks *chunks, const chunk *part,
                                  fl_error *error)
{
    if (!chunks->data_at)
        return FL_NEEDS_PYTHON; // frames, and no picture before them
    if (part->size < 4)
        return too_short(error, part);
    uint32_t number = read_u32(part->data);
    if (chunks->sequence < 0 || number != (uint64_t)(chunks->sequence + 1))
        return broken(error, "the animation's frames are out of order");
    chunks->sequence = number;
    return FL_OK;
}

// ---- Profiles and texts.

static fl_status too_large(fl_error *error)
{
    return fl_error_set(error, FL_ERROR_LIMIT,
                        "the PNG: its texts or its profile expand to more "
                        "than Pillow's limit; write the file again without them");
}

static fl_status add_text(fl_png_chunks *chunks, size_t length, fl_error *error)
{
    chunks->text_size += length;
    return chunks->text_size > MAX_TEXT ? too_large(error) : FL_OK;
}

static fl_status check_profile(const chunk *part, fl_error *error)
{
    const uint8_t *end = part->size ? memchr(part->data, 0, part->size) : NULL;
    size_t method = end ? (size_t)(end - part->data) + 1 : 0;
    size_t expanded;
    if (method >= part->size)
        return too_short(error, part);
    if (part->data[method] != 0)
        return broken(error, "the colour profile has an unknown compression");
    method++;
    if (part->size - method > HARMLESS_SIZE &&
        fl_png_is_bomb(part->data + method, part->size - method, &expanded))
        return too_large(error);
    return FL_OK;
}

static fl_status check_plain_text(fl_png_chunks *chunks, const chunk *part,
                                  fl_error *error)
{
    const uint8_t *end = part->size ? memchr(part->data, 0, part->size) : NULL;
    size_t key = end ? (size_t)(end - part->data) : part->size;
    if (key == 0 || !end)
        return FL_OK;
    return add_text(chunks, part->size - key - 1, error);
}

static fl_status check_packed_text(fl_png_chunks *chunks, const chunk *part,
                                   fl_error *error)
{
    const uint8_t *end = part->size ? memchr(part->data, 0, part->size) : NULL;
    size_t at = end ? (size_t)(end - part->data) + 1 : part->size;
    size_t expanded;
    if (at == part->size)
        return FL_OK;
    if (part->data[at] != 0)
        return broken(error, "a text has an unknown compression");
    at++;
    if (fl_png_is_bomb(part->data + at, part->size - at, &expanded))
        return too_large(error);
    return at > 2 ? add_text(chunks, expanded, error) : FL_OK;
}

// Keyword, 0, is it compressed, how, language, 0, translated keyword, 0, text.
static fl_status check_international_text(fl_png_chunks *chunks, const chunk *part,
                                          fl_error *error)
{
    const uint8_t *last = part->data + part->size;
    const uint8_t *at = part->size ? memchr(part->data, 0, part->size) : NULL;
    if (!at || last - at < 3)
        return FL_OK;
    bool is_packed = at[1] != 0, is_known = at[2] == 0;
    at += 3;
    for (int i = 0; i < 2; i++) {
        at = at < last ? memchr(at, 0, (size_t)(last - at)) : NULL;
        if (!at)
            return FL_OK;
        at++;
    }
    size_t length = (size_t)(last - at);
    if (is_packed && !is_known)
        return FL_OK;
    if (is_packed && fl_png_is_bomb(at, length, &length))
        return too_large(error);
    return add_text(chunks, length, error);
}

static fl_status check_size(const chunk *part, size_t least, fl_error *error)
{
    return part->size < least ? too_short(error, part) : FL_OK;
}

static fl_status read_chunk(fl_png_chunks *chunks, const chunk *part, fl_error *error)
{
    switch (part->name) {
    case NAME('I', 'H', 'D', 'R'):
        return read_header(chunks, part, error);
    case NAME('P', 'L', 'T', 'E'):
        return read_palette(chunks, part, error);
    case NAME('t', 'R', 'N', 'S'):
        return check_transparency(chunks, part, error);
    case NAME('g', 'A', 'M', 'A'):
        return check_size(part, 4, error);
    case NAME('c', 'H', 'R', 'M'):
        return check_size(part, 32, error);
    case NAME('s', 'R', 'G', 'B'):
        return check_size(part, 1, error);
    case NAME('p', 'H', 'Y', 's'):
        return check_size(part, 9, error);
    case NAME('i', 'C', 'C', 'P'):
        return check_profile(part, error);
    case NAME('t', 'E', 'X', 't'):
        return check_plain_text(chunks, part, error);
    case NAME('z', 'T', 'X', 't'):
        return check_packed_text(chunks, part, error);
    case NAME('i', 'T', 'X', 't'):
        return check_international_text(chunks, part, error);
    case NAME('a', 'c', 'T', 'L'):
        return read_animation(chunks, part, error);
    case NAME('f', 'c', 'T', 'L'):
        return read_frame(chunks, part, error);
    case NAME('f', 'd', 'A', 'T'):
        return check_frame_data(chunks, part, error);
    default:
        return FL_OK;
    }
}

// ---- The walk.

// Letters, digits and underscores: what Pillow takes for a name.
static bool is_name(const uint8_t *at)
{
    for (int i = 0; i < 4; i++) {
        uint8_t letter = at[i] | 0x20;
        bool is_word = (letter >= 'a' && letter <= 'z') ||
                       (at[i] >= '0' && at[i] <= '9') || at[i] == '_';
        if (!is_word)
            return false;
    }
    return true;
}

// The head of the chunk at `at`; false if there is none. `data` may have fewer bytes.
static bool read_head(const fl_png_chunks *chunks, size_t at, chunk *out)
{
    if (at > chunks->size || chunks->size - at < FL_PNG_CHUNK_HEAD ||
        !is_name(chunks->bytes + at + 4))
        return false;
    out->size = read_u32(chunks->bytes + at);
    out->name = read_u32(chunks->bytes + at + 4);
    out->data = chunks->bytes + at + FL_PNG_CHUNK_HEAD;
    return true;
}

static size_t available(const fl_png_chunks *chunks, const chunk *part)
{
    return chunks->size - (size_t)(part->data - chunks->bytes);
}

static fl_status check_sum(const fl_png_chunks *chunks, const chunk *part,
                           fl_error *error)
{
    if (available(chunks, part) < part->size ||
        available(chunks, part) - part->size < FL_PNG_CHUNK_END)
        return truncated(error);
    uLong sum = crc32(0, part->data - 4, (uInt)(part->size + 4));
    if (sum != read_u32(part->data + part->size))
        return broken(error, "a checksum is wrong");
    return FL_OK;
}

static bool is_kind(const fl_png_chunks *chunks)
{
    switch (chunks->colour) {
    case FL_PNG_GREY:
        return chunks->depth == 1 || chunks->depth == 2 || chunks->depth == 4 ||
               chunks->depth == 8 || chunks->depth == 16;
    case FL_PNG_PALETTE:
        return chunks->depth == 1 || chunks->depth == 2 || chunks->depth == 4 ||
               chunks->depth == 8;
    case FL_PNG_RGB:
    case FL_PNG_GREY_ALPHA:
    case FL_PNG_RGB_ALPHA:
        return chunks->depth == 8 || chunks->depth == 16;
    default:
        return false;
    }
}

// At the first IDAT: is there enough to decode it?
static fl_status begin_data(fl_png_chunks *chunks, size_t at, fl_error *error)
{
    if (!chunks->has_header)
        return broken(error, "the header is missing");
    if (!is_kind(chunks))
        return broken(error, "impossible depth or colour type");
    if (chunks->width == 0 || chunks->height == 0 || chunks->width > INT32_MAX ||
        chunks->height > INT32_MAX)
        return broken(error, "impossible width or height");
    if (chunks->colour == FL_PNG_PALETTE && !chunks->palette)
        return FL_NEEDS_PYTHON;
    if (chunks->has_frame_box && !chunks->is_whole_box)
        return FL_NEEDS_PYTHON; // the first frame covers a part of the picture
    // Without a frame before it, IDAT is one picture more.
    chunks->is_animated = chunks->frames > (chunks->has_frame_box ? 1u : 0u);
    chunks->data_at = at;
    return FL_OK;
}

fl_status fl_png_read_chunks(fl_png_chunks *chunks, const uint8_t *bytes, size_t size,
                             const fl_cancel *cancel, fl_error *error)
{
    *chunks =
        (fl_png_chunks){.bytes = bytes, .size = size, .cancel = cancel, .sequence = -1};
    size_t at = SIGNATURE;
    for (;;) {
        chunk part;
        if (fl_cancel_is_set(cancel))
            return fl_error_set(error, FL_ERROR_CANCELLED, "decoding was cancelled");
        if (!read_head(chunks, at, &part))
            return size - at < FL_PNG_CHUNK_HEAD
                       ? truncated(error)
                       : broken(error, "impossible name of a chunk");
        if (part.name == NAME('I', 'D', 'A', 'T'))
            return begin_data(chunks, at, error);
        if (part.name == NAME('I', 'E', 'N', 'D'))
            return broken(error, "it ends without a picture");
        fl_status status = check_sum(chunks, &part, error);
        if (status == FL_OK)
            status = read_chunk(chunks, &part, error);
        if (status != FL_OK)
            return status;
        at += FL_PNG_CHUNK_HEAD + part.size + FL_PNG_CHUNK_END;
    }
}

bool fl_png_find_data(const fl_png_chunks *chunks, size_t at, size_t *data_size,
                      size_t *next)
{
    chunk part;
    if (!read_head(chunks, at, &part) ||
        (part.name != NAME('I', 'D', 'A', 'T') && part.name != NAME('D', 'D', 'A', 'T')))
        return false;
    size_t there = available(chunks, &part);
    *data_size = part.size < there ? part.size : there;
    *next = at + FL_PNG_CHUNK_HEAD + *data_size + FL_PNG_CHUNK_END;
    return true;
}

// https://www.w3.org/TR/png-3/#8Interlace: the first pixel, and the steps between pixels.
static const struct {
    uint8_t x, y, width, height;
} PASSES[] = {{0, 0, 8, 8}, {4, 0, 8, 8}, {0, 4, 4, 8}, {2, 0, 4, 4},
              {0, 2, 2, 4}, {1, 0, 2, 2}, {0, 1, 1, 2}};

int fl_png_passes(const fl_png_chunks *chunks)
{
    return chunks->is_interlaced ? (int)(sizeof(PASSES) / sizeof(PASSES[0])) : 1;
}

// How many of first, first + step, ... lie below `size`.
static uint32_t count_steps(uint32_t size, uint32_t first, uint32_t step)
{
    return size > first ? (size - first - 1) / step + 1 : 0;
}

fl_png_pass fl_png_pass_size(const fl_png_chunks *chunks, int pass)
{
    if (!chunks->is_interlaced)
        return (fl_png_pass){chunks->width, chunks->height};
    return (fl_png_pass){
        count_steps(chunks->width, PASSES[pass].x, PASSES[pass].width),
        count_steps(chunks->height, PASSES[pass].y, PASSES[pass].height)};
}

size_t fl_png_row_bytes(const fl_png_chunks *chunks, uint32_t columns)
{
    static const uint8_t channels[] = {[FL_PNG_GREY] = 1,
                                       [FL_PNG_RGB] = 3,
                                       [FL_PNG_PALETTE] = 1,
                                       [FL_PNG_GREY_ALPHA] = 2,
                                       [FL_PNG_RGB_ALPHA] = 4};
    return ((size_t)columns * channels[chunks->colour] * chunks->depth + 7) / 8;
}

fl_status fl_png_check_tail(fl_png_chunks *chunks, size_t at, bool must_end,
                            fl_error *error)
{
    chunk part;
    while (read_head(chunks, at, &part)) {
        if (part.name == NAME('I', 'E', 'N', 'D') ||
            (part.name == NAME('f', 'c', 'T', 'L') && chunks->is_animated))
            return FL_OK;
        if (available(chunks, &part) < part.size)
            return truncated(error);
        fl_status status = read_chunk(chunks, &part, error);
        if (status != FL_OK)
            return status;
        if (fl_cancel_is_set(chunks->cancel))
            return fl_error_set(error, FL_ERROR_CANCELLED, "decoding was cancelled");
        at += FL_PNG_CHUNK_HEAD + part.size + FL_PNG_CHUNK_END;
    }
    return must_end ? truncated(error) : FL_OK;
}
#endif
