// SPDX-License-Identifier: MIT
// The way out of libpng, and its memory: its callbacks note what failed and jump to the
// one setjmp here. Warnings say
// nothing that Pillow would act upon.
#ifdef FL_HAVE_PNG
#include "decode/png_state.h"

#include "base/memory.h"

#include <stdio.h>

_Noreturn void fl_png_fail(fl_png *png, fl_status failure, const char *message)
{
    if (png->failure == FL_OK) // no memory was noted before libpng noticed
        png->failure = failure;
    snprintf(png->message, sizeof(png->message), "%s", message);
    longjmp(png->escape, 1);
}

_Noreturn static void on_error(png_structp handle, png_const_charp message)
{
    fl_png_fail(png_get_error_ptr(handle), FL_ERROR_DATA, message);
}

static void on_warning(png_structp handle, png_const_charp message)
{
    (void)handle; // libpng would write to stderr
    (void)message;
}

static png_voidp on_alloc(png_structp handle, png_alloc_size_t size)
{
    fl_png *png = png_get_mem_ptr(handle);
    void *block = fl_alloc(size);
    if (!block)
        png->failure = FL_ERROR_NO_MEMORY;
    return block;
}

static void on_free(png_structp handle, png_voidp block)
{
    (void)handle;
    fl_free(block);
}

void fl_png_make(fl_png *png)
{
    png->png = png_create_read_struct_2(PNG_LIBPNG_VER_STRING, png, on_error, on_warning,
                                        png, on_alloc, on_free);
    if (png->png)
        png->info = png_create_info_struct(png->png);
    if (!png->png || !png->info)
        fl_png_fail(png, FL_ERROR_UNSUPPORTED,
                    "libpng's headers and library are of different versions");
}

fl_status fl_png_try(fl_png *png, void (*work)(fl_png *png), fl_error *error)
{
    png->failure = FL_OK;
    if (setjmp(png->escape) == 0) {
        work(png);
        return FL_OK;
    }
    if (png->failure == FL_ERROR_NO_MEMORY)
        return fl_error_no_memory(error);
    const char *advice = png->failure == FL_ERROR_DATA
                             ? "; write the file again or take it out of the data set"
                             : "";
    return fl_error_set(error, png->failure, "the PNG of %zu bytes: %s%s",
                        png->chunks.size, png->message, advice);
}
#endif
