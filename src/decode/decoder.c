// SPDX-License-Identifier: MIT
// The table of decoders. A new one is a file with a vtable and a line here.
#include "decode/decoder.h"

#include "base/memory.h"
#include "decode/jpeg.h"
#include "decode/png.h"
#include "decode/webp.h"

#include <assert.h>

static const fl_decoder_vtable *const DECODERS[] = {
    &fl_jpeg_decoder,
#ifdef FL_HAVE_PNG
    &fl_png_decoder,
#endif
#ifdef FL_HAVE_WEBP
    &fl_webp_decoder,
#endif
};
enum { DECODER_COUNT = sizeof(DECODERS) / sizeof(DECODERS[0]) };

struct fl_decoder {
    void *states[DECODER_COUNT];
    const fl_decoder_vtable *active; // of the open picture, else NULL
    void *state;                     // the active decoder's
};

fl_status fl_decoder_create(fl_decoder **out, fl_error *error)
{
    fl_status status = FL_OK;
    fl_decoder *decoder = fl_alloc_zeroed(sizeof(*decoder));
    if (!decoder)
        return fl_error_no_memory(error);
    for (int i = 0; i < DECODER_COUNT && status == FL_OK; i++)
        status = DECODERS[i]->create(&decoder->states[i], error);
    if (status != FL_OK) {
        fl_decoder_destroy(decoder);
        return status;
    }
    *out = decoder;
    return FL_OK;
}

void fl_decoder_destroy(fl_decoder *decoder)
{
    if (!decoder)
        return;
    fl_decoder_close(decoder);
    for (int i = 0; i < DECODER_COUNT; i++)
        DECODERS[i]->destroy(decoder->states[i]);
    fl_free(decoder);
}

fl_status fl_decoder_open(fl_decoder *decoder, const uint8_t *bytes, size_t size,
                          const fl_decode_limits *limits, const fl_cancel *cancel,
                          fl_picture *picture, fl_error *error)
{
    assert(!decoder->active);
    if (size == 0)
        return fl_error_set(error, FL_ERROR_DATA,
                            "the file is empty; write it again or take it out of the "
                            "data set");
    for (int i = 0; i < DECODER_COUNT; i++) {
        if (!DECODERS[i]->probe(bytes, size))
            continue;
        decoder->active = DECODERS[i];
        decoder->state = decoder->states[i];
        *picture = (fl_picture){.bytes = bytes, .size = size};
        fl_status status =
            decoder->active->open(decoder->state, picture, limits, cancel, error);
        if (status == FL_NEEDS_PYTHON)
            fl_decoder_close(decoder);
        return status;
    }
    return FL_NEEDS_PYTHON;
}

fl_status fl_decoder_start(fl_decoder *decoder, fl_box box, fl_error *error)
{
    return decoder->active->start(decoder->state, box, error);
}

static fl_status read_rows(void *context, uint8_t *rows, size_t stride, int32_t count,
                           fl_error *error)
{
    fl_decoder *decoder = context;
    return decoder->active->read(decoder->state, rows, stride, count, error);
}

fl_row_source fl_decoder_rows(fl_decoder *decoder)
{
    return (fl_row_source){.read = read_rows, .context = decoder};
}

fl_status fl_decoder_finish(fl_decoder *decoder, fl_error *error)
{
    return decoder->active->finish(decoder->state, error);
}

int64_t fl_decoder_warnings(const fl_decoder *decoder)
{
    return decoder->active ? decoder->active->warnings(decoder->state) : 0;
}

void fl_decoder_close(fl_decoder *decoder)
{
    if (!decoder->active)
        return;
    decoder->active->close(decoder->state);
    decoder->active = NULL;
    decoder->state = NULL;
}
