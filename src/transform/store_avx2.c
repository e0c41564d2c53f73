// SPDX-License-Identifier: MIT
// The store for AVX2, eight pixels at a time. A quotient is a product with the reciprocal
// and Markstein's correction by two fused multiply-adds, which rounds as the division
// does; fl_store_init has compared all 256 values before it is used.
#include "transform/store.h"

#include "data/image.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define TARGET __attribute__((target("avx2,fma,f16c")))

enum { LANES = 8 };

// Eight pixels as 32-bit lanes, reversed if the row is flipped.
TARGET static inline __m256i load_pixels(const uint8_t *pixels, int32_t width, int32_t x,
                                         bool is_flipped)
{
    int32_t from = is_flipped ? width - LANES - x : x;
    const uint8_t *start = pixels + (size_t)from * FL_PIXEL_SIZE;
    __m256i eight = _mm256_loadu_si256((const __m256i *)(const void *)start);
    if (is_flipped)
        eight =
            _mm256_permutevar8x32_epi32(eight, _mm256_setr_epi32(7, 6, 5, 4, 3, 2, 1, 0));
    return eight;
}

TARGET static inline __m256 divide(__m256 x, __m256 divisor, __m256 inverse)
{
    __m256 quotient = _mm256_mul_ps(x, inverse);
    __m256 error = _mm256_fnmadd_ps(quotient, divisor, x);
    return _mm256_fmadd_ps(error, inverse, quotient);
}

// Eight values (0 to 255) of one channel, or of a third of 24 interleaved ones.
TARGET static inline __m256 compute(const fl_store *store, int32_t group, __m256i values)
{
    const fl_store_lanes *lanes = &store->lanes[group];
    __m256 x = _mm256_cvtepi32_ps(values);
    if (store->spec.scale == FL_SCALE_DIVIDE)
        x = divide(x, _mm256_set1_ps(255.0f), _mm256_set1_ps(1.0f / 255.0f));
    else if (store->spec.scale == FL_SCALE_MULTIPLY)
        x = _mm256_mul_ps(x, _mm256_set1_ps((float)(1.0 / 255.0)));
    if (store->spec.has_normalize) {
        x = _mm256_sub_ps(x, _mm256_loadu_ps(lanes->mean));
        x = divide(x, _mm256_loadu_ps(lanes->std), _mm256_loadu_ps(lanes->inverse_std));
    }
    return x;
}

TARGET static inline __m128i round_bfloat16(__m256 x)
{
    __m256i bits = _mm256_castps_si256(x);
    __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    bits = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7FFF)));
    bits = _mm256_srli_epi32(bits, 16);
    return _mm_packus_epi32(_mm256_castsi256_si128(bits),
                            _mm256_extracti128_si256(bits, 1));
}

// Writes eight elements; `out` may have any alignment.
TARGET static inline void write_values(const fl_store *store, __m256 x, uint8_t *out)
{
    if (store->spec.dtype == FL_FLOAT32) {
        _mm256_storeu_ps((float *)(void *)out, x);
    } else {
        __m128i half = store->spec.dtype == FL_FLOAT16
                           ? _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT)
                           : round_bfloat16(x);
        _mm_storeu_si128((__m128i *)(void *)out, half);
    }
}

// [r0..r7 g0..g7 | b0..b7 x0..x7] of eight pixels.
TARGET static inline __m256i separate(__m256i eight)
{
    const __m256i order =
        _mm256_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15, 0, 4, 8,
                         12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    return _mm256_permutevar8x32_epi32(_mm256_shuffle_epi8(eight, order),
                                       _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}

TARGET static inline void write_bytes(uint8_t *out, __m128i eight)
{
    _mm_storel_epi64((__m128i *)(void *)out, eight);
}

TARGET static inline void store_planar(const fl_store *store, __m256i eight, size_t x,
                                       uint8_t *const planes[FL_CHANNELS])
{
    const __m256i mask = _mm256_set1_epi32(255);
    if (store->spec.dtype == FL_UINT8) {
        __m256i separated = separate(eight);
        __m128i red_green = _mm256_castsi256_si128(separated);
        write_bytes(planes[0] + x, red_green);
        write_bytes(planes[1] + x, _mm_unpackhi_epi64(red_green, red_green));
        write_bytes(planes[2] + x, _mm256_extracti128_si256(separated, 1));
        return;
    }
    size_t offset = x * store->element_size;
    __m256i red = _mm256_and_si256(eight, mask);
    __m256i green = _mm256_and_si256(_mm256_srli_epi32(eight, 8), mask);
    __m256i blue = _mm256_and_si256(_mm256_srli_epi32(eight, 16), mask);
    write_values(store, compute(store, 0, red), planes[0] + offset);
    write_values(store, compute(store, 1, green), planes[1] + offset);
    write_values(store, compute(store, 2, blue), planes[2] + offset);
}

// The first 16 of the 24 bytes of eight pixels without X, and the last 8.
TARGET static inline void drop_fourth(__m256i eight, __m128i *first, __m128i *last)
{
    const __m256i order =
        _mm256_setr_epi8(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1, 0, 1, 2,
                         4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1);
    // 12 bytes in each half: bring the six words together.
    __m256i packed = _mm256_permutevar8x32_epi32(
        _mm256_shuffle_epi8(eight, order), _mm256_setr_epi32(0, 1, 2, 4, 5, 6, 3, 7));
    *first = _mm256_castsi256_si128(packed);
    *last = _mm256_extracti128_si256(packed, 1);
}

TARGET static inline void store_interleaved(const fl_store *store, __m256i eight,
                                            size_t x, uint8_t *out)
{
    __m128i first, last;
    uint8_t *start = out + x * FL_CHANNELS * store->element_size;
    size_t step = LANES * store->element_size;
    drop_fourth(eight, &first, &last);
    if (store->spec.dtype == FL_UINT8) {
        _mm_storeu_si128((__m128i *)(void *)start, first);
        write_bytes(start + 16, last);
        return;
    }
    __m128i second = _mm_unpackhi_epi64(first, first);
    write_values(store, compute(store, 0, _mm256_cvtepu8_epi32(first)), start);
    write_values(store, compute(store, 1, _mm256_cvtepu8_epi32(second)), start + step);
    write_values(store, compute(store, 2, _mm256_cvtepu8_epi32(last)), start + 2 * step);
}

TARGET static inline void store_eight(const fl_store *store, const uint8_t *pixels,
                                      int32_t width, int32_t x, bool is_flipped,
                                      uint8_t *const planes[FL_CHANNELS])
{
    __m256i eight = load_pixels(pixels, width, x, is_flipped);
    if (store->is_planar)
        store_planar(store, eight, (size_t)x, planes);
    else
        store_interleaved(store, eight, (size_t)x, planes[0]);
}

// What lies behind the row belongs to others: the last eight pixels overlap those before.
TARGET static inline void store_row(const fl_store *store, const uint8_t *pixels,
                                    int32_t width, bool is_flipped,
                                    uint8_t *const planes[FL_CHANNELS])
{
    for (int32_t x = 0; x + LANES <= width; x += LANES)
        store_eight(store, pixels, width, x, is_flipped, planes);
    if (width % LANES)
        store_eight(store, pixels, width, width - LANES, is_flipped, planes);
}

TARGET void fl_store_avx2(const fl_store *store, const uint8_t *pixels, int32_t width,
                          uint8_t *const planes[FL_CHANNELS])
{
    if (width < LANES)
        fl_store_scalar(store, pixels, width, planes);
    else
        store_row(store, pixels, width, false, planes);
}

TARGET void fl_store_avx2_flipped(const fl_store *store, const uint8_t *pixels,
                                  int32_t width, uint8_t *const planes[FL_CHANNELS])
{
    if (width < LANES)
        fl_store_scalar_flipped(store, pixels, width, planes);
    else
        store_row(store, pixels, width, true, planes);
}
#endif
