// SPDX-License-Identifier: MIT
// Functions of the module: what this build and machine are, and single pictures, for
// tests and preview.
#include "binding/module.h"

#include "binding/op_list.h"
#include "binding/output.h"
#include "binding/tensor.h"

#include <stdio.h>
#include <unistd.h>
// It relies on stdio's types.
#include <jpeglib.h>
#ifdef FL_HAVE_PNG
#include <png.h>
#endif
#ifdef FL_HAVE_WEBP
#include <webp/decode.h>
#endif

#define TEXT_OF(tokens) #tokens
#define TEXT(macro) TEXT_OF(macro)

enum { MAX_SCANS = 1000 };

// A block of memory in one slab, which its arrays keep; NULL with an exception set.
static fl_slab *make_slab(const fl_module *state, size_t size)
{
    fl_error error = FL_ERROR_INIT;
    fl_slab_pool *pool = NULL;
    fl_slab *slab = NULL;
    if (fl_slab_pool_create(fl_allocator_heap(), 0, &pool, &error) != FL_OK ||
        fl_slab_pool_take(pool, size, &slab, &error) != FL_OK)
        fl_raise(state, &error);
    fl_slab_pool_unref(&pool);
    return slab;
}

// An ndarray over the slab's beginning.
static PyObject *make_array(const fl_module *state, fl_slab *slab, fl_dtype dtype,
                            const fl_row_shape *shape, size_t size)
{
    fl_field_layout field = {.dtype = dtype, .is_late = true};
    fl_part part = {.row = *shape, .size = size};
    fl_array array = fl_array_of_part(slab, &field, &part);
    fl_output output;
    PyObject *made = NULL;
    if (fl_output_init(&output, "numpy") == 0)
        made = fl_output_make(state, &output, &array);
    fl_output_deinit(&output);
    return made;
}

// ---- Chains

static fl_chain *make_chain(const fl_module *state, PyObject *ops, const char *layout)
{
    fl_op_list list = {0};
    fl_pixel_layout pixel_layout;
    fl_chain *chain = NULL;
    fl_error error = FL_ERROR_INIT;
    if (fl_parse_pixel_layout(layout, &pixel_layout) < 0 ||
        fl_op_list_init(&list, ops) < 0)
        return NULL;
    if (fl_chain_create(list.specs, list.count, pixel_layout, &chain, &error) != FL_OK)
        fl_raise(state, &error);
    fl_op_list_deinit(&list);
    return chain;
}

static PyObject *check_ops(PyObject *module, PyObject *args)
{
    PyObject *ops;
    const char *layout;
    if (!PyArg_ParseTuple(args, "Os:check_ops", &ops, &layout))
        return NULL;
    fl_chain *chain = make_chain(fl_module_of(module), ops, layout);
    if (!chain)
        return NULL;
    fl_row_shape row;
    PyObject *shape = fl_chain_fixed_shape(chain, &row)
                          ? fl_int_tuple(row.shape, row.dimensions)
                          : Py_NewRef(Py_None);
    const char *dtype = fl_dtype_name(fl_chain_dtype(chain));
    fl_chain_destroy(chain);
    return Py_BuildValue("(sN)", dtype, shape);
}

// Rows of a box of a picture in memory.
typedef struct picture_rows {
    const uint8_t *pixels;
    size_t stride;
    fl_box box;
    int32_t next;
} picture_rows;

static fl_status read_rows(void *context, uint8_t *rows, size_t stride, int32_t count,
                           fl_error *error)
{
    picture_rows *source = context;
    if (count > source->box.height - source->next)
        return fl_error_set(error, FL_ERROR_ARGUMENT, "a row behind the box was read");
    for (int32_t i = 0; i < count; i++) {
        size_t y = (size_t)(source->box.y + source->next++);
        memcpy(rows + (size_t)i * stride,
               source->pixels + y * source->stride +
                   (size_t)source->box.x * FL_PIXEL_SIZE,
               (size_t)source->box.width * FL_PIXEL_SIZE);
    }
    return FL_OK;
}

static PyObject *apply_draw(const fl_module *state, const fl_chain *chain,
                            const fl_chain_draw *draw, const uint8_t *pixels,
                            int32_t width)
{
    fl_error error = FL_ERROR_INIT;
    fl_scratch scratch;
    picture_rows rows = {
        .pixels = pixels, .stride = (size_t)width * FL_PIXEL_SIZE, .box = draw->region};
    fl_slab *slab = make_slab(state, draw->size);
    if (!slab)
        return NULL;
    fl_scratch_init(&scratch);
    fl_status status = fl_scratch_reserve(&scratch, draw->scratch, &error);
    if (status == FL_OK) {
        fl_row_source source = {.read = read_rows, .context = &rows};
        status = fl_chain_apply(chain, draw, source, &scratch, slab->memory, &error);
    }
    fl_scratch_deinit(&scratch);
    PyObject *array = NULL;
    if (status == FL_OK)
        array = make_array(state, slab, fl_chain_dtype(chain), &draw->shape, draw->size);
    else
        fl_raise(state, &error);
    fl_slab_unref(&slab);
    return array;
}

static PyObject *apply_chain(const fl_module *state, const fl_chain *chain,
                             const uint8_t *pixels, int32_t width, int32_t height,
                             uint64_t key, uint64_t position)
{
    fl_error error = FL_ERROR_INIT;
    fl_chain_draw draw;
    if (fl_chain_make_draw(chain, width, height, key, position, &draw, &error) != FL_OK)
        return fl_raise(state, &error);
    PyObject *array = apply_draw(state, chain, &draw, pixels, width);
    if (!array)
        return NULL;
    return Py_BuildValue("(N(iiii))", array, draw.region.x, draw.region.y,
                         draw.region.width, draw.region.height);
}

static PyObject *apply_ops(PyObject *module, PyObject *args)
{
    PyObject *ops;
    const char *layout, *pixels;
    int width, height;
    Py_ssize_t length;
    unsigned long long seed, epoch, position;
    if (!PyArg_ParseTuple(args, "Osiiy#KKK:apply_ops", &ops, &layout, &width, &height,
                          &pixels, &length, &seed, &epoch, &position))
        return NULL;
    if (width < 1 || height < 1 || length / FL_PIXEL_SIZE / width != height ||
        length % ((Py_ssize_t)width * FL_PIXEL_SIZE) != 0) {
        PyErr_Format(PyExc_ValueError, "%d x %d pixels take 4 bytes each, not %zd in all",
                     width, height, length);
        return NULL;
    }
    const fl_module *state = fl_module_of(module);
    fl_chain *chain = make_chain(state, ops, layout);
    if (!chain)
        return NULL;
    uint64_t key = fl_key_derive(seed, epoch, FL_KEY_SAMPLE, 0);
    PyObject *result =
        apply_chain(state, chain, (const uint8_t *)pixels, width, height, key, position);
    fl_chain_destroy(chain);
    return result;
}

// ---- Pictures

// RGBX to RGB in place.
static void drop_fourth(uint8_t *pixels, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        pixels[3 * i] = pixels[4 * i];
        pixels[3 * i + 1] = pixels[4 * i + 1];
        pixels[3 * i + 2] = pixels[4 * i + 2];
    }
}

static PyObject *decode_box(const fl_module *state, fl_decoder *decoder, fl_box box)
{
    size_t stride = (size_t)box.width * FL_PIXEL_SIZE;
    size_t count = (size_t)box.width * (size_t)box.height;
    fl_error error = FL_ERROR_INIT;
    fl_slab *slab = make_slab(state, count * FL_PIXEL_SIZE);
    if (!slab)
        return NULL;
    PyObject *array = NULL;
    fl_status status = fl_decoder_start(decoder, box, &error);
    if (status == FL_OK) {
        fl_row_source rows = fl_decoder_rows(decoder);
        status = rows.read(rows.context, slab->memory, stride, box.height, &error);
    }
    if (status == FL_OK)
        status = fl_decoder_finish(decoder, &error);
    if (status == FL_OK) {
        drop_fourth(slab->memory, count);
        fl_row_shape shape =
            fl_row_shape_contiguous(3, (int64_t[]){box.height, box.width, 3});
        array = make_array(state, slab, FL_UINT8, &shape, 3 * count);
    } else {
        fl_raise(state, &error);
    }
    fl_slab_unref(&slab);
    return array;
}

// The box that was asked for, or all of the picture; false with ValueError set.
static bool parse_box(PyObject *argument, const fl_picture *picture, fl_box *box)
{
    *box = (fl_box){0, 0, picture->width, picture->height};
    if (argument == Py_None)
        return true;
    if (!PyTuple_Check(argument)) {
        PyErr_Format(PyExc_TypeError, "box must be (x, y, width, height) or None, not %R",
                     argument);
        return false;
    }
    if (!PyArg_ParseTuple(argument, "iiii:box", &box->x, &box->y, &box->width,
                          &box->height))
        return false;
    if (box->x >= 0 && box->y >= 0 && box->width >= 1 && box->height >= 1 &&
        box->width <= picture->width - box->x && box->height <= picture->height - box->y)
        return true;
    PyErr_Format(PyExc_ValueError, "box %R does not lie inside a picture of %d x %d",
                 argument, picture->width, picture->height);
    return false;
}

static PyObject *decode_bytes(const fl_module *state, fl_decoder *decoder,
                              const uint8_t *bytes, size_t size, PyObject *box_argument)
{
    const fl_decode_limits limits = {.max_pixels = INT32_MAX, .max_scans = MAX_SCANS};
    fl_error error = FL_ERROR_INIT;
    fl_picture picture = {0};
    fl_box box;
    fl_status status =
        fl_decoder_open(decoder, bytes, size, &limits, NULL, &picture, &error);
    if (status == FL_NEEDS_PYTHON) {
        fl_error_set(&error, FL_ERROR_UNSUPPORTED,
                     "no decoder of this build reads this format");
        return fl_raise(state, &error);
    }
    PyObject *array = NULL;
    if (status != FL_OK)
        fl_raise(state, &error);
    else if (parse_box(box_argument, &picture, &box))
        array = decode_box(state, decoder, box);
    fl_decoder_close(decoder);
    return array;
}

static PyObject *decode(PyObject *module, PyObject *args)
{
    const fl_module *state = fl_module_of(module);
    Py_buffer bytes;
    PyObject *box;
    if (!PyArg_ParseTuple(args, "y*O:decode", &bytes, &box))
        return NULL;
    fl_error error = FL_ERROR_INIT;
    fl_decoder *decoder = NULL;
    PyObject *array = NULL;
    if (fl_decoder_create(&decoder, &error) == FL_OK)
        array = decode_bytes(state, decoder, bytes.buf, (size_t)bytes.len, box);
    else
        fl_raise(state, &error);
    fl_decoder_destroy(decoder);
    PyBuffer_Release(&bytes);
    return array;
}

// ---- The machine and the build

static PyObject *cpu_count(PyObject *module, PyObject *ignored)
{
    (void)module;
    (void)ignored;
    return PyLong_FromLong(fl_cpu_count());
}

static PyObject *set_cpu_mask(PyObject *module, PyObject *mask)
{
    (void)module;
    unsigned long value = PyLong_AsUnsignedLongMask(mask);
    if (PyErr_Occurred())
        return NULL;
    fl_cpu_set_mask((uint32_t)value);
    Py_RETURN_NONE;
}

static PyObject *cpu_features(void)
{
    PyObject *list = PyList_New(0);
    if (!list || !(fl_cpu_features() & FL_CPU_AVX2))
        return list;
    PyObject *name = PyUnicode_FromString("avx2");
    if (!name || PyList_Append(list, name) < 0)
        Py_CLEAR(list);
    Py_XDECREF(name);
    return list;
}

// The version of the library that decodes a format, or None if this build lacks it.
static PyObject *png_version(void)
{
#ifdef FL_HAVE_PNG
    return PyUnicode_FromString(png_get_libpng_ver(NULL));
#else
    Py_RETURN_NONE;
#endif
}

static PyObject *webp_version(void)
{
#ifdef FL_HAVE_WEBP
    int version = WebPGetDecoderVersion();
    return PyUnicode_FromFormat("%d.%d.%d", version >> 16, version >> 8 & 255,
                                version & 255);
#else
    Py_RETURN_NONE;
#endif
}

static PyObject *environment(PyObject *module, PyObject *ignored)
{
    (void)module;
    (void)ignored;
    PyObject *features = cpu_features();
    PyObject *png = png_version(), *webp = webp_version();
    if (!features || !png || !webp) {
        Py_XDECREF(features);
        Py_XDECREF(png);
        Py_XDECREF(webp);
        return NULL;
    }
    return Py_BuildValue("{s:s,s:s,s:N,s:N,s:i,s:s,s:s,s:i,s:i,s:l,s:N}", "version",
                         FEEDLINE_VERSION, "libjpeg_turbo", TEXT(LIBJPEG_TURBO_VERSION),
                         "libpng", png, "libwebp", webp, "jpeg_lib_version",
                         JPEG_LIB_VERSION, "compiler", __VERSION__, "python_headers",
                         PY_VERSION, "dlpack_major", DLPACK_MAJOR_VERSION, "dlpack_minor",
                         DLPACK_MINOR_VERSION, "page_size", sysconf(_SC_PAGESIZE),
                         "cpu_features", features);
}

static PyMethodDef module_methods[] = {
    {"check_ops", check_ops, METH_VARARGS,
     "check_ops($module, ops, layout, /)\n--\n\n"
     "(dtype, row shape or None) of a chain; ValueError says why it cannot be."},
    {"apply_ops", apply_ops, METH_VARARGS,
     "apply_ops($module, ops, layout, width, height, pixels, seed, epoch, position, "
     "/)\n--\n\n"
     "A chain on one picture of RGBX bytes: (row, box that would have been decoded)."},
    {"decode", decode, METH_VARARGS,
     "decode($module, data, box, /)\n--\n\n"
     "Pixels of a picture, or of the box (x, y, width, height) of it: (height, width, "
     "3)."},
    {"cpu_count", cpu_count, METH_NOARGS,
     "cpu_count($module, /)\n--\n\nCPUs that this process may use."},
    {"set_cpu_mask", set_cpu_mask, METH_O,
     "set_cpu_mask($module, mask, /)\n--\n\nUse only the CPU features in `mask`."},
    {"environment", environment, METH_NOARGS,
     "environment($module, /)\n--\n\nVersions and features of this build and machine."},
    {NULL, NULL, 0, NULL},
};

int fl_bind_functions(PyObject *module, fl_module *state)
{
    (void)state;
    return PyModule_AddFunctions(module, module_methods);
}
