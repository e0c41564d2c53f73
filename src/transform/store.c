// SPDX-License-Identifier: MIT
#include "transform/store.h"

#include "base/cpu.h"
#include "data/image.h"

#include <string.h>

static uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

uint16_t fl_bfloat16_from(float value)
{
    uint32_t bits = bits_of(value);
    if ((bits & 0x7FFFFFFFu) > 0x7F800000u) // NaN: rounding could make it an infinity
        return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

// The `shift` low bits of `value` are rounded away, to nearest even.
static uint32_t round_off(uint32_t value, uint32_t shift)
{
    uint32_t half = UINT32_C(1) << (shift - 1);
    return (value + half - 1 + (value >> shift & 1)) >> shift;
}

uint16_t fl_float16_from(float value)
{
    uint32_t bits = bits_of(value);
    uint32_t sign = bits >> 16 & 0x8000;
    uint32_t magnitude = bits & 0x7FFFFFFFu;
    if (magnitude > 0x7F800000u) // NaN
        return (uint16_t)(sign | 0x7E00 | (magnitude >> 13 & 0x3FF));
    if (magnitude >= 0x47800000u) // 2^16 and more: infinity
        return (uint16_t)(sign | 0x7C00);
    if (magnitude >= 0x38800000u) // normal; may round up to infinity by itself
        return (uint16_t)(sign | round_off(magnitude - 0x38000000u, 13));
    uint32_t exponent = magnitude >> 23;
    if (exponent < 102) // below half of the smallest subnormal
        return (uint16_t)sign;
    uint32_t mantissa = (magnitude & 0x7FFFFFu) | 0x800000u;
    return (uint16_t)(sign | round_off(mantissa, 126 - exponent));
}

// One value, step by step in float32.
static float compute_value(const fl_store_spec *spec, int32_t channel, int32_t byte)
{
    float value = (float)byte;
    if (spec->scale == FL_SCALE_DIVIDE)
        value = value / 255.0f;
    else if (spec->scale == FL_SCALE_MULTIPLY)
        value = value * (float)(1.0 / 255.0);
    if (spec->has_normalize)
        value = (value - spec->mean[channel]) / spec->std[channel];
    return value;
}

static void fill_table(fl_store *store)
{
    for (int32_t channel = 0; channel < FL_CHANNELS; channel++) {
        for (int32_t byte = 0; byte < 256; byte++) {
            float value = compute_value(&store->spec, channel, byte);
            if (store->spec.dtype == FL_FLOAT32)
                store->table.float32[channel][byte] = value;
            else if (store->spec.dtype == FL_FLOAT16)
                store->table.bits16[channel][byte] = fl_float16_from(value);
            else
                store->table.bits16[channel][byte] = fl_bfloat16_from(value);
        }
    }
}

static void put(const fl_store *store, int32_t channel, uint8_t byte, uint8_t *out)
{
    if (store->spec.dtype == FL_UINT8)
        *out = byte;
    else if (store->spec.dtype == FL_FLOAT32)
        memcpy(out, &store->table.float32[channel][byte], sizeof(float));
    else
        memcpy(out, &store->table.bits16[channel][byte], sizeof(uint16_t));
}

static void put_pixel(const fl_store *store, const uint8_t *pixel, size_t x,
                      uint8_t *const planes[FL_CHANNELS])
{
    for (int32_t channel = 0; channel < FL_CHANNELS; channel++) {
        size_t element = x * FL_CHANNELS + (size_t)channel;
        uint8_t *out = store->is_planar ? planes[channel] + x * store->element_size
                                        : planes[0] + element * store->element_size;
        put(store, channel, pixel[channel], out);
    }
}

void fl_store_scalar(const fl_store *store, const uint8_t *pixels, int32_t width,
                     uint8_t *const planes[FL_CHANNELS])
{
    for (size_t x = 0; x < (size_t)width; x++)
        put_pixel(store, pixels + x * FL_PIXEL_SIZE, x, planes);
}

void fl_store_scalar_flipped(const fl_store *store, const uint8_t *pixels, int32_t width,
                             uint8_t *const planes[FL_CHANNELS])
{
    size_t last = (size_t)width - 1;
    for (size_t x = 0; x <= last; x++)
        put_pixel(store, pixels + (last - x) * FL_PIXEL_SIZE, x, planes);
}

#if defined(__x86_64__)
static void fill_lanes(fl_store *store)
{
    for (int32_t group = 0; group < FL_CHANNELS; group++) {
        for (int32_t i = 0; i < 8; i++) {
            int32_t channel = store->is_planar ? group : (group * 8 + i) % FL_CHANNELS;
            float mean = store->spec.has_normalize ? store->spec.mean[channel] : 0.0f;
            float std = store->spec.has_normalize ? store->spec.std[channel] : 1.0f;
            store->lanes[group].mean[i] = mean;
            store->lanes[group].std[i] = std;
            store->lanes[group].inverse_std[i] = 1.0f / std;
        }
    }
}

// Runs all 256 values of each channel through both: odd numbers (a std of 1e-39) may be
// beyond what the correction of a product to a quotient can do.
static bool is_avx2_exact(const fl_store *store)
{
    uint8_t pixels[256 * FL_PIXEL_SIZE];
    uint8_t want[256 * FL_CHANNELS * sizeof(float)], got[sizeof(want)];
    size_t plane = 256 * store->element_size;
    uint8_t *const wanted[] = {want, want + plane, want + 2 * plane};
    uint8_t *const gotten[] = {got, got + plane, got + 2 * plane};
    for (size_t i = 0; i < sizeof(pixels); i++)
        pixels[i] = (uint8_t)(i / FL_PIXEL_SIZE);
    fl_store_scalar(store, pixels, 256, wanted);
    fl_store_avx2(store, pixels, 256, gotten);
    return memcmp(want, got, plane * FL_CHANNELS) == 0;
}
#endif

void fl_store_init(fl_store *store, const fl_store_spec *spec, bool is_planar)
{
    *store = (fl_store){
        .spec = *spec,
        .is_planar = is_planar,
        .element_size = fl_dtype_size(spec->dtype),
        .plain = fl_store_scalar,
        .flipped = fl_store_scalar_flipped,
    };
    if (spec->dtype != FL_UINT8)
        fill_table(store);
#if defined(__x86_64__)
    fill_lanes(store);
    if ((fl_cpu_features() & FL_CPU_AVX2) && is_avx2_exact(store)) {
        store->plain = fl_store_avx2;
        store->flipped = fl_store_avx2_flipped;
    }
#endif
}

void fl_store_row(const fl_store *store, const uint8_t *pixels, int32_t width,
                  int32_t height, int32_t y, bool is_flipped, uint8_t *out)
{
    size_t row = (size_t)width * store->element_size;
    size_t plane = row * (size_t)height;
    uint8_t *first = out + (size_t)y * row * (store->is_planar ? 1 : FL_CHANNELS);
    uint8_t *const planes[FL_CHANNELS] = {
        first,
        store->is_planar ? first + plane : NULL,
        store->is_planar ? first + 2 * plane : NULL,
    };
    (is_flipped ? store->flipped : store->plain)(store, pixels, width, planes);
}
