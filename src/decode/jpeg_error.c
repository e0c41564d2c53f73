// SPDX-License-Identifier: MIT
// The way out of libjpeg: its callbacks note what failed and jump to the one setjmp here.
// Warnings are counted and never formatted: a small file can give 10^5 of them.
#include "decode/jpeg_state.h"

#include <stdarg.h>
#include <string.h>

#include <jerror.h>

_Noreturn void fl_jpeg_fail(fl_jpeg *jpeg, fl_status failure, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(jpeg->message, sizeof(jpeg->message), format, arguments);
    va_end(arguments);
    jpeg->failure = failure;
    longjmp(jpeg->escape, 1);
}

// What kind of error a message of libjpeg is.
static fl_status status_of(int code)
{
    switch (code) {
    case JERR_OUT_OF_MEMORY:
        return FL_ERROR_NO_MEMORY;
    case JERR_NO_BACKING_STORE: // max_memory_to_use was reached
    case JERR_IMAGE_TOO_BIG:
    case JERR_WIDTH_OVERFLOW:
        return FL_ERROR_LIMIT;
    case JERR_BAD_PRECISION:
    case JERR_SOF_UNSUPPORTED:
    case JERR_NOT_COMPILED:
    case JERR_CCIR601_NOTIMPL:
    case JERR_CONVERSION_NOTIMPL:
    case JERR_FRACT_SAMPLE_NOTIMPL:
        return FL_ERROR_UNSUPPORTED;
    default:
        return FL_ERROR_DATA;
    }
}

_Noreturn static void on_error(j_common_ptr cinfo)
{
    fl_jpeg *jpeg = cinfo->client_data;
    cinfo->err->format_message(cinfo, jpeg->message);
    jpeg->failure = status_of(cinfo->err->msg_code);
    longjmp(jpeg->escape, 1);
}

static void on_message(j_common_ptr cinfo, int level)
{
    fl_jpeg *jpeg = cinfo->client_data;
    if (level < 0)
        jpeg->warnings++;
}

static void on_output(j_common_ptr cinfo)
{
    (void)cinfo; // libjpeg would write to stderr
}

void fl_jpeg_set_errors(fl_jpeg *jpeg)
{
    jpeg->cinfo.err = jpeg_std_error(&jpeg->errors);
    jpeg->cinfo.client_data = jpeg;
    jpeg->errors.error_exit = on_error;
    jpeg->errors.emit_message = on_message;
    jpeg->errors.output_message = on_output;
}

// Called for each row of blocks of each scan, and for each row read.
static void on_progress(j_common_ptr common)
{
    fl_jpeg *jpeg = common->client_data;
    if (fl_cancel_is_set(jpeg->cancel))
        fl_jpeg_fail(jpeg, FL_ERROR_CANCELLED, "decoding was cancelled");
    if (jpeg->cinfo.input_scan_number > jpeg->limits.max_scans)
        fl_jpeg_fail(jpeg, FL_ERROR_LIMIT, "more than %d scans", jpeg->limits.max_scans);
}

void fl_jpeg_set_monitor(fl_jpeg *jpeg)
{
    jpeg->progress.progress_monitor = on_progress;
    jpeg->cinfo.progress = &jpeg->progress;
}

static void on_source_event(j_decompress_ptr cinfo)
{
    (void)cinfo;
}

// libjpeg's own memory source makes up an end marker here and the rest is grey. Pillow's
// source waits for more and then calls the file truncated, unless all rows are there.
static boolean on_source_end(j_decompress_ptr cinfo)
{
    fl_jpeg *jpeg = cinfo->client_data;
    if (!jpeg->is_last)
        fl_jpeg_fail(jpeg, FL_ERROR_DATA, "the file is truncated");
    return FALSE;
}

static void on_source_skip(j_decompress_ptr cinfo, long count)
{
    struct jpeg_source_mgr *source = cinfo->src;
    if (count <= 0)
        return;
    size_t skipped = (size_t)count;
    if (skipped > source->bytes_in_buffer) {
        (void)on_source_end(cinfo);
        skipped = source->bytes_in_buffer;
    }
    source->next_input_byte += skipped;
    source->bytes_in_buffer -= skipped;
}

void fl_jpeg_set_source(fl_jpeg *jpeg)
{
    jpeg->source = (struct jpeg_source_mgr){
        .next_input_byte = jpeg->bytes,
        .bytes_in_buffer = jpeg->size,
        .init_source = on_source_event,
        .fill_input_buffer = on_source_end,
        .skip_input_data = on_source_skip,
        .resync_to_restart = jpeg_resync_to_restart,
        .term_source = on_source_event,
    };
    jpeg->cinfo.src = &jpeg->source;
}

static const char *advice(fl_status failure)
{
    switch (failure) {
    case FL_ERROR_UNSUPPORTED:
        return "; convert it to a baseline or progressive JPEG of 8 bits";
    case FL_ERROR_DATA:
        return "; write the file again or take it out of the data set";
    case FL_ERROR_LIMIT:
        return "; make it smaller or take it out of the data set";
    default:
        return "";
    }
}

fl_status fl_jpeg_try(fl_jpeg *jpeg, void (*work)(fl_jpeg *jpeg), fl_error *error)
{
    if (setjmp(jpeg->escape) == 0) {
        work(jpeg);
        return FL_OK;
    }
    if (jpeg->failure == FL_ERROR_NO_MEMORY)
        return fl_error_no_memory(error);
    return fl_error_set(error, jpeg->failure, "the JPEG of %zu bytes: %s%s", jpeg->size,
                        jpeg->message, advice(jpeg->failure));
}
