// SPDX-License-Identifier: MIT
// What a picture takes: memory, and the columns around a box that its pixels depend on.
#include "decode/jpeg_state.h"

// 3.0 brought this function; a library that lacks it is older. Weak: asking costs nothing
// and works for shared and static libraries alike.
extern JDIMENSION jpeg12_read_scanlines(j_decompress_ptr cinfo, short **rows,
                                        JDIMENSION count) __attribute__((weak));

enum {
    FIXED_MEMORY = 96 << 10, // the object, its tables and the slack of its pools
    MARGIN = 2,              // columns that fancy upsampling takes from its neighbours
    // Narrower ones can have a component of one or two columns, for which libjpeg chooses
    // another upsampling, for all of them.
    MIN_WIDTH = 2 * 4 + 1,
    OLD_MAX_SAMPLING = 2, // larger factors: cropping reads wild memory before 3.0
};

static size_t round_up(size_t value, int step)
{
    size_t unit = (size_t)step;
    return (value + unit - 1) / unit * unit;
}

// Sizes stay far below 2^64: at most 65500 x 65500 samples in 10 components.
size_t fl_jpeg_memory(const fl_jpeg *jpeg)
{
    const struct jpeg_decompress_struct *cinfo = &jpeg->cinfo;
    bool keeps_coefficients =
        cinfo->progressive_mode || cinfo->comps_in_scan < cinfo->num_components;
    size_t width = round_up(cinfo->image_width, cinfo->max_h_samp_factor * DCTSIZE);
    size_t memory = FIXED_MEMORY;
    for (int i = 0; i < cinfo->num_components; i++) {
        const jpeg_component_info *component = &cinfo->comp_info[i];
        size_t columns = round_up(component->width_in_blocks, component->h_samp_factor);
        size_t rows = round_up(component->height_in_blocks, component->v_samp_factor);
        if (keeps_coefficients)
            memory += rows * (columns * sizeof(JBLOCK) + sizeof(JBLOCKROW));
        // Two rows of blocks with context, and the upsampled rows (twice: a crop makes
        // them anew).
        size_t band = (size_t)(component->v_samp_factor * (DCTSIZE + 4));
        memory += columns * DCTSIZE * band;
        memory += 2 * width * (size_t)cinfo->max_v_samp_factor;
    }
    return memory + width * FL_PIXEL_SIZE * FL_JPEG_MAX_ROWS;
}

// Pillow and whole decodes smooth the blocks of a progressive file that lacks scans, from
// neighbours on both sides, which a crop would not see.
static bool may_smooth(const struct jpeg_decompress_struct *cinfo)
{
    if (!cinfo->progressive_mode || !cinfo->coef_bits)
        return false;
    for (int i = 0; i < cinfo->num_components; i++)
        for (int k = 0; k < DCTSIZE2; k++)
            if (cinfo->coef_bits[i][k] != 0)
                return true;
    return false;
}

static bool must_keep_width(const struct jpeg_decompress_struct *cinfo)
{
    if (may_smooth(cinfo))
        return true;
    return !jpeg12_read_scanlines && (cinfo->max_h_samp_factor > OLD_MAX_SAMPLING ||
                                      cinfo->max_v_samp_factor > OLD_MAX_SAMPLING);
}

void fl_jpeg_plan_columns(const fl_jpeg *jpeg, fl_box box, JDIMENSION *x,
                          JDIMENSION *width)
{
    int32_t picture_width = (int32_t)jpeg->cinfo.image_width;
    bool keeps_width = must_keep_width(&jpeg->cinfo);
    int32_t left = keeps_width ? 0 : box.x - MARGIN;
    int32_t right = keeps_width ? picture_width : box.x + box.width + MARGIN;
    if (left < 0)
        left = 0;
    if (right - left < MIN_WIDTH)
        right = left + MIN_WIDTH;
    if (right > picture_width)
        right = picture_width;
    if (right - left < MIN_WIDTH)
        left = right > MIN_WIDTH ? right - MIN_WIDTH : 0;
    *x = (JDIMENSION)left;
    *width = (JDIMENSION)(right - left);
}
