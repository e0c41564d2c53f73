// SPDX-License-Identifier: MIT
// Chains: what is refused and why, sizes and shapes, failing memory and failing sources,
// and random geometry by all kernels. The pixels themselves are compared with Pillow and
// NumPy in tests/kernels.
#include "base/cpu.h"
#include "base/memory.h"
#include "base/philox.h"
#include "check.h"
#include "transform/chain.h"
#include "transform/op.h"
#include "transform/taps.h"

#include <stdbool.h>

enum { NEVER = -1 };

#define SPEC(name, ...)                                                                  \
    {                                                                                    \
        name, (const double[]){__VA_ARGS__},                                             \
            (int32_t)(sizeof((const double[]){__VA_ARGS__}) / sizeof(double))            \
    }
#define COUNT(array) ((int32_t)(sizeof(array) / sizeof((array)[0])))

#define IMAGENET 0.485, 0.456, 0.406, 0.229, 0.224, 0.225

static fl_chain *make_chain(const fl_op_spec *ops, int32_t count, fl_pixel_layout layout)
{
    fl_chain *chain = NULL;
    fl_error error = FL_ERROR_INIT;
    fl_status status = fl_chain_create(ops, count, layout, &chain, &error);
    if (status != FL_OK)
        fprintf(stderr, "%s\n", error.message);
    CHECK_INT(status, FL_OK);
    return chain;
}

static void check_refused(const fl_op_spec *ops, int32_t count, const char *part)
{
    fl_chain *chain = NULL;
    fl_error error = FL_ERROR_INIT;
    CHECK_INT(fl_chain_create(ops, count, FL_LAYOUT_NCHW, &chain, &error),
              FL_ERROR_ARGUMENT);
    CHECK(!chain);
    CHECK_CONTAINS(error.message, part);
}

static void check_number_refusals(void)
{
    static const double nan_value = __builtin_nan(""), infinity = __builtin_inf();
    const struct {
        fl_op_spec op;
        const char *part;
    } cases[] = {
        {SPEC("rotate", 1), "there is no operation \"rotate\""},
        {SPEC("center_crop", 1), "CenterCrop takes 2 numbers, not 1"},
        {SPEC("center_crop", 1, 2, 3), "CenterCrop takes 2 numbers, not 3"},
        {SPEC("center_crop", 0, 5), "CenterCrop: height must be a whole number from 1"},
        {SPEC("center_crop", 5, 1.5), "CenterCrop: width must be a whole number from 1"},
        {SPEC("center_crop", 5, nan_value), "width must be a whole number"},
        {SPEC("center_crop", 5, 16777216), "to 16777215, not 1.67772e+07"},
        {SPEC("center_crop", 20000, 20000), "more than the limit of 268435456"},
        {SPEC("random_horizontal_flip", 1.01), "p must be within [0, 1], not 1.01"},
        {SPEC("random_horizontal_flip", nan_value), "p must be within [0, 1]"},
        {SPEC("resize", 0, -1, -1, 2, 0), "Resize: size must be a whole number from 1"},
        {SPEC("resize", 5, 0, -1, 2, 0), "Resize: width must be a whole number from 1"},
        {SPEC("resize", 5, -1, 5, 2, 0), "max_size (5) must be greater than the size"},
        {SPEC("resize", 5, -1, -2, 2, 0),
         "Resize: max_size must be a whole number from 1"},
        {SPEC("resize", 5, 5, 9, 2, 0), "max_size goes with one number"},
        {SPEC("resize", 5, 5, -1, 2, 2),
         "Resize: passes must be a whole number from 0 to 1"},
        {SPEC("resize", 5, 5, -1, 6, 0),
         "Resize: interpolation must be a whole number from 0 to 5, not 6"},
        {SPEC("resize", 5, 5, -1, -1, 0), "Resize: interpolation must be a whole"},
        {SPEC("random_resized_crop", 5, 5, 0.1, 1, 0.5, 2, 2.5, 0),
         "RandomResizedCrop: interpolation must be a whole number from 0 to 5, not 2.5"},
        {SPEC("random_vertical_flip", -0.01), "RandomVerticalFlip: p must be within"},
        {SPEC("pad", 0.5, 0, 0, 0, 0, 0, 0, 0), "Pad: left must be a whole number"},
        {SPEC("pad", 0, 1 << 24, 0, 0, 0, 0, 0, 0), "Pad: top must be a whole number"},
        {SPEC("pad", 0, 0, -(1 << 24), 0, 0, 0, 0, 0), "right must be a whole number"},
        {SPEC("pad", 0, 0, 0, nan_value, 0, 0, 0, 0), "bottom must be a whole number"},
        {SPEC("pad", 0, 0, 0, 0, 4, 0, 0, 0), "padding_mode must be a whole number from"},
        {SPEC("pad", 0, 0, 0, 0, 0, 256, 0, 0), "red must be a whole number from 0 to 2"},
        {SPEC("pad", 0, 0, 0, 0, 0, 0, -1, 0), "green must be a whole number"},
        {SPEC("pad", 0, 0, 0, 0, 0, 0, 0, 0.5), "blue must be a whole number"},
        {SPEC("random_crop", 0, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0), "height must be a whole"},
        {SPEC("random_crop", 5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0), "width must be a whole"},
        {SPEC("random_crop", 5, 5, 2, 0, 0, 0, 0, 0, 0, 0, 0), "pad_if_needed must be"},
        {SPEC("random_crop", 5, 5, 0, 0, 0, 0, 0.5, 0, 0, 0, 0), "bottom must be a"},
        {SPEC("random_resized_crop", 0, 5, 0.1, 1, 0.5, 2, 2, 0),
         "height must be a whole"},
        {SPEC("random_resized_crop", 5, 0, 0.1, 1, 0.5, 2, 2, 0),
         "width must be a whole"},
        {SPEC("random_resized_crop", 5, 5, 0.1, 1, 0.5, 2, 2, 9),
         "passes must be a whole"},
        {SPEC("random_resized_crop", 5, 5, 0.5, 0.1, 0.5, 2, 2, 0), "not (0.5, 0.1)"},
        {SPEC("random_resized_crop", 5, 5, 0, 0, 0.5, 2, 2, 0),
         "scale must be (low, high)"},
        {SPEC("random_resized_crop", 5, 5, -1, 1, 0.5, 2, 2, 0), "scale must be"},
        {SPEC("random_resized_crop", 5, 5, 0, infinity, 0.5, 2, 2, 0), "scale must be"},
        {SPEC("random_resized_crop", 5, 5, 0.1, 1, 0, 2, 2, 0),
         "ratio must be (low, high)"},
        {SPEC("random_resized_crop", 5, 5, 0.1, 1, 3, 2, 2, 0), "ratio must be"},
        {SPEC("random_resized_crop", 5, 5, 0.1, 1, 3, infinity, 2, 0), "ratio must be"},
        {SPEC("normalize", 0, 0, 0, 1, 0, 1), "std[1] must be a finite float32 other"},
        {SPEC("normalize", 0, 0, 0, 1, 1, 1e-60), "std[2] must be a finite float32"},
        {SPEC("normalize", 0, infinity, 0, 1, 1, 1), "mean[1] must be a finite float32"},
        {SPEC("to_dtype", FL_INT64, 0), "uint8, float16, bfloat16 or float32"},
        {SPEC("to_dtype", 77, 0), "not dtype number 77"},
        {SPEC("to_dtype", FL_FLOAT32, 3), "scale must be a whole number from 0 to 2"},
    };
    for (int32_t i = 0; i < COUNT(cases); i++)
        check_refused(&cases[i].op, 1, cases[i].part);
}

static void check_order_refusals(void)
{
    const fl_op_spec after_normalize[] = {SPEC("normalize", IMAGENET),
                                          SPEC("center_crop", 5, 5)};
    const fl_op_spec after_float[] = {SPEC("to_dtype", FL_FLOAT16, 1),
                                      SPEC("resize", 5, 5, -1, 2, 0)};
    const fl_op_spec normalize_half[] = {SPEC("to_dtype", FL_BFLOAT16, 1),
                                         SPEC("normalize", IMAGENET)};
    const fl_op_spec twice[] = {SPEC("normalize", IMAGENET), SPEC("normalize", IMAGENET)};
    const fl_op_spec cast_twice[] = {SPEC("to_dtype", FL_FLOAT16, 1),
                                     SPEC("to_dtype", FL_FLOAT32, 0)};
    const fl_op_spec back[] = {SPEC("normalize", IMAGENET),
                               SPEC("to_dtype", FL_UINT8, 0)};
    const fl_op_spec vanishing[] = {SPEC("center_crop", 1, 1000),
                                    SPEC("resize", 2, -1, 3, 2, 0)};
    fl_op_spec many[FL_MAX_OPS + 1];
    for (int32_t i = 0; i <= FL_MAX_OPS; i++)
        many[i] = (fl_op_spec)SPEC("random_horizontal_flip", 0.5);

    check_refused(after_normalize, 2,
                  "CenterCrop works on 8-bit pixels, but they are "
                  "float32 by then: put it before Normalize");
    check_refused(after_float, 2, "Resize works on 8-bit pixels, but they are float16");
    check_refused(normalize_half, 2, "put ToDtype(bfloat16) behind Normalize");
    check_refused(twice, 2, "use one Normalize");
    check_refused(cast_twice, 2, "the pictures are float16 already; cast once");
    check_refused(back, 2, "the pictures are float32 by then");
    check_refused(vanishing, 2, "Resize would make a picture of 3 x 0 pixels");
    check_refused(many, FL_MAX_OPS + 1, "at most 16 operations, not 17");
}

static void check_shape(const fl_row_shape *shape, const int64_t *sides,
                        const int64_t *strides)
{
    CHECK_INT(shape->dimensions, 3);
    for (int32_t i = 0; i < 3; i++) {
        CHECK_INT(shape->shape[i], sides[i]);
        CHECK_INT(shape->strides[i], strides[i]);
    }
}

static void check_shapes(void)
{
    const fl_op_spec fixed[] = {
        SPEC("center_crop", 4, 6), SPEC("resize", 8, -1, -1, 2, 0),
        SPEC("random_horizontal_flip", 0.5), SPEC("to_dtype", FL_FLOAT16, 1)};
    const fl_op_spec late[] = {SPEC("resize", 8, -1, -1, 2, 0)};
    fl_row_shape shape;
    fl_chain_draw draw;

    fl_chain *chain = make_chain(fixed, COUNT(fixed), FL_LAYOUT_NCHW);
    CHECK(fl_chain_fixed_shape(chain, &shape));
    check_shape(&shape, (int64_t[]){3, 8, 12}, (int64_t[]){96, 12, 1});
    CHECK_INT(fl_chain_dtype(chain), FL_FLOAT16);
    CHECK_INT(fl_chain_make_draw(chain, 100, 50, 1, 2, &draw, NULL), FL_OK);
    check_shape(&draw.shape, (int64_t[]){3, 8, 12}, (int64_t[]){96, 12, 1});
    CHECK_INT(draw.size, 8 * 12 * 3 * 2);
    fl_chain_destroy(chain);

    chain = make_chain(fixed, COUNT(fixed), FL_LAYOUT_NHWC);
    CHECK(fl_chain_fixed_shape(chain, &shape));
    check_shape(&shape, (int64_t[]){8, 12, 3}, (int64_t[]){36, 3, 1});
    fl_chain_destroy(chain);

    chain = make_chain(fixed, COUNT(fixed), FL_LAYOUT_CHANNELS_LAST);
    CHECK(fl_chain_fixed_shape(chain, &shape));
    check_shape(&shape, (int64_t[]){3, 8, 12}, (int64_t[]){1, 36, 3});
    fl_chain_destroy(chain);

    chain = make_chain(late, 1, FL_LAYOUT_NCHW);
    CHECK(!fl_chain_fixed_shape(chain, &shape));
    CHECK_INT(fl_chain_dtype(chain), FL_UINT8);
    CHECK_INT(fl_chain_make_draw(chain, 100, 50, 1, 2, &draw, NULL), FL_OK);
    check_shape(&draw.shape, (int64_t[]){3, 8, 16}, (int64_t[]){128, 16, 1});
    fl_chain_destroy(chain);

    chain = make_chain(NULL, 0, FL_LAYOUT_NHWC);
    CHECK(!fl_chain_fixed_shape(chain, &shape));
    CHECK_INT(fl_chain_make_draw(chain, 7, 5, 1, 2, &draw, NULL), FL_OK);
    check_shape(&draw.shape, (int64_t[]){5, 7, 3}, (int64_t[]){21, 3, 1});
    CHECK_INT(draw.region.width, 7);
    CHECK_INT(draw.region.height, 5);
    fl_chain_destroy(chain);
    fl_chain_destroy(NULL);
}

static void check_draw_refusals(void)
{
    const fl_op_spec upscale[] = {SPEC("resize", 256, -1, -1, 2, 0)};
    const fl_op_spec capped[] = {SPEC("resize", 256, -1, 300, 2, 0)};
    const fl_op_spec cut[] = {SPEC("pad", -3, 0, 4, -5, 2, 0, 0, 0)};
    const fl_op_spec grow[] = {SPEC("pad", 16777215, 0, 16777215, 0, 0, 0, 0, 0)};
    const fl_op_spec crop[] = {SPEC("random_crop", 9, 8, 0, 1, 0, -2, 0, 0, 0, 0, 0)};
    const struct {
        const fl_op_spec *op;
        int32_t width, height;
        const char *part;
    } cases[] = {
        {upscale, 0, 5, "the file would make a picture of 0 x 5"},
        {upscale, 5, -1, "both sides must be from 1 to 16777215"},
        {upscale, 65500, 1, "16768000 x 256 pixels (width x height), more than the"},
        {upscale, 1, 1 << 20, "Resize would make a picture of 256 x 268435456 pixels"},
        {cut, 3, 9,
         "the padding (-3, 0, 4, -5) (left, top, right, bottom) leaves nothing"},
        {cut, 4, 5, "leaves nothing of a picture of 4 x 5 pixels"},
        {grow, 16777215, 1, "Pad would make a picture of 50331645 x 1 pixels"},
        {crop, 20, 8,
         "Required crop size (9, 8) is larger than input image size (8, 19)"},
        {crop, 8, 20,
         "Required crop size (9, 8) is larger than input image size (20, 7)"},
        {crop, 1, 20, "RandomCrop: the padding (1, 0, -2, 0) (left, top, right, bottom)"},
        {capped, 1, 65500, "Resize would make a picture of 0 x 300 pixels"},
    };
    for (int32_t i = 0; i < COUNT(cases); i++) {
        fl_error error = FL_ERROR_INIT;
        fl_chain_draw draw;
        fl_chain *chain = make_chain(cases[i].op, 1, FL_LAYOUT_NCHW);
        CHECK_INT(fl_chain_make_draw(chain, cases[i].width, cases[i].height, 1, 2, &draw,
                                     &error),
                  FL_ERROR_ARGUMENT);
        CHECK_CONTAINS(error.message, cases[i].part);
        fl_chain_destroy(chain);
    }
}

// A picture of noise that fails after `rows_left` rows, or NEVER.
typedef struct noise_rows {
    fl_box box;
    int32_t y, rows_left;
} noise_rows;

static fl_status read_noise(void *context, uint8_t *rows, size_t stride, int32_t count,
                            fl_error *error)
{
    noise_rows *noise = context;
    for (int32_t i = 0; i < count; i++, noise->y++) {
        CHECK(noise->y < noise->box.height);
        if (noise->rows_left != NEVER && noise->rows_left-- == 0)
            return fl_error_set(error, FL_ERROR_DATA, "the picture ends here");
        uint32_t row = (uint32_t)(noise->box.y + noise->y);
        for (int32_t x = 0; x < noise->box.width; x++) {
            uint32_t hash = (row * 65537u + (uint32_t)(noise->box.x + x)) * 2654435761u;
            hash ^= hash >> 15;
            memcpy(rows + (size_t)i * stride + (size_t)x * FL_PIXEL_SIZE, &hash,
                   FL_PIXEL_SIZE);
        }
    }
    return FL_OK;
}

static fl_status apply(const fl_chain *chain, const fl_chain_draw *draw,
                       int32_t rows_left, uint8_t *out, fl_error *error)
{
    noise_rows noise = {.box = draw->region, .rows_left = rows_left};
    fl_scratch scratch;
    fl_scratch_init(&scratch);
    fl_status status = fl_scratch_reserve(&scratch, draw->scratch, error);
    if (status == FL_OK) {
        scratch.size = draw->scratch; // not a byte more than was asked for
        status = fl_chain_apply(chain, draw,
                                (fl_row_source){.read = read_noise, .context = &noise},
                                &scratch, out, error);
    }
    if (status == FL_OK)
        CHECK_INT(noise.y, draw->region.height);
    fl_scratch_deinit(&scratch);
    return status;
}

static const fl_op_spec usual[] = {
    SPEC("random_horizontal_flip", 1),
    SPEC("random_vertical_flip", 1),
    SPEC("random_resized_crop", 24, 17, 0.3, 1, 0.75, 1.33, 1, 0),
    SPEC("center_crop", 30, 13),
    SPEC("pad", 2, -1, 3, 4, 2, 0, 0, 0),
    SPEC("resize", 33, 14, -1, 0, 0),
    SPEC("random_crop", 36, 13, 1, 1, 1, 1, 1, 3, 0, 0, 0),
    SPEC("random_horizontal_flip", 0.5),
    SPEC("normalize", IMAGENET),
    SPEC("to_dtype", FL_BFLOAT16, 0),
};

static void check_failing_memory(void)
{
    int64_t live = fl_memory_live();
    fl_chain *chain = NULL;
    fl_error error = FL_ERROR_INIT;
    fl_memory_fail_at(0);
    CHECK_INT(fl_chain_create(usual, COUNT(usual), FL_LAYOUT_NCHW, &chain, &error),
              FL_ERROR_NO_MEMORY);
    CHECK(!chain);

    chain = make_chain(usual, COUNT(usual), FL_LAYOUT_NCHW);
    CHECK_INT(fl_memory_live(), live + 1);
    fl_chain_draw draw;
    fl_memory_fail_at(0); // nothing is allocated for a draw
    CHECK_INT(fl_chain_make_draw(chain, 60, 50, 1, 2, &draw, NULL), FL_OK);
    CHECK_INT(apply(chain, &draw, NEVER, NULL, &error), FL_ERROR_NO_MEMORY);
    fl_memory_fail_at(-1);
    fl_chain_destroy(chain);
    CHECK_INT(fl_memory_live(), live);
}

// Too little scratch is an error, not a crash, however much is missing. (Alignment may
// turn out to cost less than planned: stay below what the pieces need without it.)
static void check_short_scratch(void)
{
    enum { PIECES = 32, ALIGNMENT = 64 };
    fl_chain *chain = make_chain(usual, COUNT(usual), FL_LAYOUT_NCHW);
    fl_chain_draw draw;
    CHECK_INT(fl_chain_make_draw(chain, 60, 50, 1, 2, &draw, NULL), FL_OK);
    CHECK(draw.scratch > (size_t)2 * PIECES * ALIGNMENT);
    for (size_t size = 0; size < draw.scratch - PIECES * ALIGNMENT; size += 61) {
        noise_rows noise = {.box = draw.region, .rows_left = NEVER};
        fl_error error = FL_ERROR_INIT;
        fl_scratch scratch;
        fl_scratch_init(&scratch);
        CHECK_INT(fl_scratch_reserve(&scratch, size, &error), FL_OK);
        CHECK_INT(fl_chain_apply(chain, &draw,
                                 (fl_row_source){.read = read_noise, .context = &noise},
                                 &scratch, NULL, &error),
                  FL_ERROR_LIMIT);
        CHECK_CONTAINS(error.message, "the scratch memory is less than the");
        CHECK_INT(noise.y, 0);
        fl_scratch_deinit(&scratch);
    }
    fl_chain_destroy(chain);
}

static void check_failing_source(void)
{
    fl_chain *chain = make_chain(usual, COUNT(usual), FL_LAYOUT_NCHW);
    fl_chain_draw draw;
    CHECK_INT(fl_chain_make_draw(chain, 60, 50, 1, 2, &draw, NULL), FL_OK);
    uint8_t *out = fl_alloc(draw.size);
    CHECK(out);
    for (int32_t rows = 0; rows < draw.region.height; rows++) {
        fl_error error = FL_ERROR_INIT;
        CHECK_INT(apply(chain, &draw, rows, out, &error), FL_ERROR_DATA);
        CHECK_CONTAINS(error.message, "the picture ends here");
    }
    CHECK_INT(apply(chain, &draw, NEVER, out, NULL), FL_OK);
    fl_free(out);
    fl_chain_destroy(chain);
}

// Random geometry: up to five ops, an end.
typedef struct random_chain {
    fl_op_spec ops[8];
    double values[8][FL_MAX_OP_VALUES];
    int32_t count;
} random_chain;

static void add_op(random_chain *made, const char *name, const double *values,
                   int32_t count)
{
    double *own = made->values[made->count];
    memcpy(own, values, (size_t)count * sizeof(*values));
    made->ops[made->count++] = (fl_op_spec){name, own, count};
}

static double random_side(fl_random *random)
{
    uint64_t limit = fl_random_below(random, 4) == 0 ? 3 : 300;
    return 1 + (double)fl_random_below(random, limit);
}

static void make_random(random_chain *made, fl_random *random)
{
    made->count = 0;
    for (uint64_t left = fl_random_below(random, 6); left > 0; left--) {
        double height = random_side(random), width = random_side(random);
        double passes = (double)fl_random_below(random, 2);
        double filter = (double)fl_random_below(random, 6);
        double mode = (double)fl_random_below(random, 4);
        double pad = (double)fl_random_below(random, 9);
        switch (fl_random_below(random, 7)) {
        case 0:
            add_op(made, "random_resized_crop",
                   (double[]){height, width, 0.05, 1, 0.3, 3, filter, passes}, 8);
            break;
        case 1:
            add_op(made, "resize", (double[]){height, width, -1, filter, passes}, 5);
            break;
        case 2:
            add_op(made, "center_crop", (double[]){height, width}, 2);
            break;
        case 3:
            add_op(made, "random_vertical_flip", (double[]){0.5}, 1);
            break;
        case 4:
            add_op(made, "pad", (double[]){pad, 0, pad, 2, mode, 9, 8, 7}, 8);
            break;
        case 5:
            add_op(made, "random_crop",
                   (double[]){height, width, 1, 0, pad, 1, 0, mode, 9, 8, 7}, 11);
            break;
        default:
            add_op(made, "random_horizontal_flip", (double[]){0.5}, 1);
        }
    }
    if (fl_random_below(random, 2))
        add_op(made, "normalize", (double[]){IMAGENET}, 6);
    const double dtypes[] = {FL_FLOAT32, FL_FLOAT16, FL_BFLOAT16};
    if (fl_random_below(random, 2))
        add_op(made, "to_dtype", (double[]){dtypes[fl_random_below(random, 3)], 1}, 2);
}

// The row by the kernels that `mask` allows; the caller frees it.
static uint8_t *make_row(const random_chain *made, fl_pixel_layout layout, uint32_t mask,
                         const fl_size *picture, uint64_t key, size_t *size)
{
    fl_cpu_set_mask(mask);
    fl_chain *chain = make_chain(made->ops, made->count, layout);
    fl_cpu_set_mask(UINT32_MAX);
    fl_chain_draw draw;
    CHECK_INT(
        fl_chain_make_draw(chain, picture->width, picture->height, key, 5, &draw, NULL),
        FL_OK);
    uint8_t *row = fl_alloc(draw.size); // exactly: ASan sees a byte beyond
    CHECK(row);
    CHECK_INT(apply(chain, &draw, NEVER, row, NULL), FL_OK);
    *size = draw.size;
    fl_chain_destroy(chain);
    return row;
}

static void check_kernels_agree(void)
{
    fl_random random = fl_random_make(20, 0, 0);
    for (uint64_t round = 0; round < 400; round++) {
        random_chain made;
        size_t size, other_size;
        fl_size picture = {(int32_t)random_side(&random), (int32_t)random_side(&random)};
        fl_pixel_layout layout = (fl_pixel_layout)fl_random_below(&random, 3);
        make_random(&made, &random);
        uint8_t *row = make_row(&made, layout, 0, &picture, round, &size);
        uint8_t *other =
            make_row(&made, layout, UINT32_MAX, &picture, round, &other_size);
        CHECK_INT(size, other_size);
        CHECK(memcmp(row, other, size) == 0);
        fl_free(row);
        fl_free(other);
    }
}

// The fast kernels are not only right, they are chosen.
static void check_kernels_chosen(void)
{
    fl_store store;
    fl_store_spec spec = {
        .dtype = FL_FLOAT32,
        .scale = FL_SCALE_DIVIDE,
        .has_normalize = true,
        .mean = {0.485f, 0.456f, 0.406f},
        .std = {0.229f, 0.224f, 0.225f},
    };
    CHECK(fl_resize_choose_kernels());
    fl_store_init(&store, &spec, true);
#if defined(__x86_64__)
    bool has_avx2 = fl_cpu_features() & FL_CPU_AVX2;
    CHECK((fl_resize_choose_kernels() == &fl_resize_avx2) == has_avx2);
    CHECK((store.plain == fl_store_avx2) == has_avx2);
    // A reciprocal that overflows: only the table is right.
    spec.std[1] = 1e-39f;
    fl_store_init(&store, &spec, true);
    CHECK(store.plain == fl_store_scalar);
    CHECK(store.flipped == fl_store_scalar_flipped);
    fl_cpu_set_mask(0);
    spec.std[1] = 1;
    fl_store_init(&store, &spec, true);
    CHECK(store.plain == fl_store_scalar);
    CHECK(fl_resize_choose_kernels() == &fl_resize_scalar);
    fl_cpu_set_mask(UINT32_MAX);
#endif
}

// What the kernels rely on, for sizes of all relations: an output's weights add up to 1
// but for rounding, their absolute values to less than 2, and the halves are the weights.
static void check_axis(const fl_axis *axis, fl_scratch *scratch)
{
    const int64_t one = 1 << FL_RESIZE_BITS;
    fl_arena measured = {.scratch = NULL}, arena = {.scratch = scratch};
    fl_taps taps;
    fl_taps_take(&taps, axis, axis->out, true, &measured);
    CHECK_INT(fl_scratch_reserve(scratch, measured.size, NULL), FL_OK);
    fl_taps_take(&taps, axis, axis->out, true, &arena);
    CHECK(fl_arena_is_ready(&arena));
    fl_taps_compute(&taps, axis, 0);
    for (int32_t i = 0; i < taps.count; i++) {
        const int32_t *weights = taps.weights + (size_t)i * (size_t)taps.capacity;
        const int16_t *pairs = taps.pairs + (size_t)i * (size_t)taps.capacity * 2;
        int64_t sum = 0, absolute = 0;
        for (int32_t k = 0; k < taps.used; k++) {
            int32_t low = pairs[k / 2 * 4 + k % 2], rest = pairs[k / 2 * 4 + 2 + k % 2];
            CHECK(low >= 0);
            CHECK_INT(rest * (1 << FL_RESIZE_LOW_BITS) + low, weights[k]);
            sum += weights[k];
            absolute += weights[k] < 0 ? -weights[k] : weights[k];
        }
        CHECK(sum >= one - taps.used && sum <= one + taps.used);
        CHECK(absolute < 2 * one - taps.used);
    }
}

static void check_weights(void)
{
    const int32_t long_sides[] = {1000, 4097, 65500};
    fl_scratch scratch;
    fl_scratch_init(&scratch);
    for (fl_filter filter = FL_FILTER_LANCZOS; filter <= FL_FILTER_HAMMING; filter++) {
        for (int32_t in = 1; in <= 64; in++) {
            for (int32_t out = 1; out <= 64; out++)
                check_axis(&(fl_axis){filter, in, out}, &scratch);
        }
        for (int32_t i = 0; i < COUNT(long_sides); i++) {
            for (int32_t side = 1; side <= 30; side += 7) {
                check_axis(&(fl_axis){filter, long_sides[i], side}, &scratch);
                check_axis(&(fl_axis){filter, side, long_sides[i]}, &scratch);
            }
        }
    }
    fl_scratch_deinit(&scratch);
}

// A draw depends on (key, position, op) and on nothing else.
static void check_draws(void)
{
    const fl_op_spec ops[] = {
        SPEC("random_resized_crop", 8, 8, 0.08, 1, 0.75, 1.33, 2, 0),
        SPEC("random_resized_crop", 4, 4, 0.08, 1, 0.75, 1.33, 2, 0)};
    fl_chain *one = make_chain(ops, 1, FL_LAYOUT_NCHW);
    fl_chain *two = make_chain(ops, 2, FL_LAYOUT_NHWC);
    fl_chain_draw a, b, c;
    CHECK_INT(fl_chain_make_draw(one, 5000, 4000, 7, 9, &a, NULL), FL_OK);
    CHECK_INT(fl_chain_make_draw(two, 5000, 4000, 7, 9, &b, NULL), FL_OK);
    CHECK_INT(fl_chain_make_draw(two, 5000, 4000, 7, 10, &c, NULL), FL_OK);
    CHECK(memcmp(a.values[0], b.values[0], sizeof(a.values[0])) == 0);
    CHECK(memcmp(a.values[0], b.values[1], sizeof(a.values[0])) != 0);
    CHECK(memcmp(b.values[0], c.values[0], sizeof(a.values[0])) != 0);
    fl_chain_destroy(one);
    fl_chain_destroy(two);
}

int main(void)
{
    check_number_refusals();
    check_order_refusals();
    check_shapes();
    check_draw_refusals();
    check_failing_memory();
    check_short_scratch();
    check_failing_source();
    check_kernels_agree();
    check_kernels_chosen();
    check_weights();
    check_draws();
    CHECK_INT(fl_memory_live(), 0);
    return 0;
}
