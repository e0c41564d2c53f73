// SPDX-License-Identifier: MIT
// The kernels of resize.c for AVX2, with the same results. A weight of up to 22 bits is
// split into its low 11 bits and the rest; two taps of one channel are multiplied and
// added by one pmaddwd each, and the two sums are joined at the end. That is exact: the
// rest fits int16 as long as a weight is below 16 (taps.h), and if a sum of very many low
// parts, which are never negative, wraps around, the joined one is right again, since it
// fits.
#include "transform/resize.h"

#if defined(__x86_64__)
#include <immintrin.h>
#include <string.h>

#define TARGET __attribute__((target("avx2,fma,f16c")))

enum { VECTOR = 32, PAIR_VALUES = 4 };

// The sums of a few pixels, four channels of 32 bits each.
typedef struct sums {
    __m256i low, rest;
} sums;

TARGET static inline sums start_sums(void)
{
    return (sums){
        .low = _mm256_set1_epi32(1 << (FL_RESIZE_BITS - 1)),
        .rest = _mm256_setzero_si256(),
    };
}

TARGET static inline void add_products(sums *to, __m256i pixels, __m256i low,
                                       __m256i rest)
{
    to->low = _mm256_add_epi32(to->low, _mm256_madd_epi16(pixels, low));
    to->rest = _mm256_add_epi32(to->rest, _mm256_madd_epi16(pixels, rest));
}

TARGET static inline __m256i finish_sums(const sums *from)
{
    __m256i rest = _mm256_slli_epi32(from->rest, FL_RESIZE_LOW_BITS);
    return _mm256_srai_epi32(_mm256_add_epi32(from->low, rest), FL_RESIZE_BITS);
}

TARGET static inline __m256i load_rows16(const uint8_t *a, const uint8_t *b)
{
    __m128i low = _mm_loadu_si128((const __m128i *)(const void *)a);
    return _mm256_inserti128_si256(_mm256_castsi128_si256(low),
                                   _mm_loadu_si128((const __m128i *)(const void *)b), 1);
}

TARGET static inline __m256i load_rows8(const uint8_t *a, const uint8_t *b)
{
    __m128i low = _mm_loadl_epi64((const __m128i *)(const void *)a);
    return _mm256_inserti128_si256(_mm256_castsi128_si256(low),
                                   _mm_loadl_epi64((const __m128i *)(const void *)b), 1);
}

TARGET static inline __m256i broadcast_pair(const int16_t *weights)
{
    int32_t both;
    memcpy(&both, weights, sizeof(both));
    return _mm256_set1_epi32(both);
}

// Two neighbouring pixels as [r0 r1 g0 g1 b0 b1 x0 x1] of 16 bits, from the first or the
// second half of 16 bytes.
TARGET static inline __m256i first_pair(__m256i pixels)
{
    const __m256i order =
        _mm256_setr_epi8(0, -1, 4, -1, 1, -1, 5, -1, 2, -1, 6, -1, 3, -1, 7, -1, 0, -1, 4,
                         -1, 1, -1, 5, -1, 2, -1, 6, -1, 3, -1, 7, -1);
    return _mm256_shuffle_epi8(pixels, order);
}

TARGET static inline __m256i second_pair(__m256i pixels)
{
    const __m256i order =
        _mm256_setr_epi8(8, -1, 12, -1, 9, -1, 13, -1, 10, -1, 14, -1, 11, -1, 15, -1, 8,
                         -1, 12, -1, 9, -1, 13, -1, 10, -1, 14, -1, 11, -1, 15, -1);
    return _mm256_shuffle_epi8(pixels, order);
}

TARGET static inline void write_pixel(uint8_t *out, int32_t pixel)
{
    memcpy(out, &pixel, sizeof(pixel));
}

// One output pixel of four rows: a and b in one register, c and d in the other.
TARGET static inline __m256i resize_pixel(const uint8_t *const in[FL_RESIZE_ROWS],
                                          size_t offset, const int16_t *weights,
                                          int32_t taps)
{
    sums ab = start_sums(), cd = start_sums();
    const uint8_t *a = in[0] + offset, *b = in[1] + offset;
    const uint8_t *c = in[2] + offset, *d = in[3] + offset;
    int32_t tap = 0;
    for (; tap + 4 <= taps; tap += 4, weights += 2 * PAIR_VALUES) {
        size_t at = (size_t)tap * FL_PIXEL_SIZE;
        __m256i rows_ab = load_rows16(a + at, b + at);
        __m256i rows_cd = load_rows16(c + at, d + at);
        __m256i low = broadcast_pair(weights), rest = broadcast_pair(weights + 2);
        add_products(&ab, first_pair(rows_ab), low, rest);
        add_products(&cd, first_pair(rows_cd), low, rest);
        low = broadcast_pair(weights + PAIR_VALUES);
        rest = broadcast_pair(weights + PAIR_VALUES + 2);
        add_products(&ab, second_pair(rows_ab), low, rest);
        add_products(&cd, second_pair(rows_cd), low, rest);
    }
    if (tap < taps) {
        size_t at = (size_t)tap * FL_PIXEL_SIZE;
        __m256i low = broadcast_pair(weights), rest = broadcast_pair(weights + 2);
        add_products(&ab, first_pair(load_rows8(a + at, b + at)), low, rest);
        add_products(&cd, first_pair(load_rows8(c + at, d + at)), low, rest);
    }
    __m256i words = _mm256_packs_epi32(finish_sums(&ab), finish_sums(&cd));
    return _mm256_packus_epi16(words, words); // a c .. | b d ..
}

TARGET static inline void resize_rows(const fl_taps *taps,
                                      const uint8_t *const from[FL_RESIZE_ROWS],
                                      uint8_t *const to[FL_RESIZE_ROWS], int32_t used)
{
    const int16_t *weights = taps->pairs;
    const int32_t *first = taps->first;
    size_t step = (size_t)taps->capacity / 2 * PAIR_VALUES;
    size_t count = (size_t)taps->count;
    for (size_t x = 0; x < count; x++, weights += step) {
        size_t offset = (size_t)first[x] * FL_PIXEL_SIZE;
        __m256i bytes = resize_pixel(from, offset, weights, used);
        __m128i ac = _mm256_castsi256_si128(bytes);
        __m128i bd = _mm256_extracti128_si256(bytes, 1);
        write_pixel(to[0] + x * FL_PIXEL_SIZE, _mm_cvtsi128_si32(ac));
        write_pixel(to[1] + x * FL_PIXEL_SIZE, _mm_cvtsi128_si32(bd));
        write_pixel(to[2] + x * FL_PIXEL_SIZE, _mm_extract_epi32(ac, 1));
        write_pixel(to[3] + x * FL_PIXEL_SIZE, _mm_extract_epi32(bd, 1));
    }
}

TARGET static void resize_horizontal_avx2(const fl_taps *taps, const uint8_t *const *in,
                                          uint8_t *const *out, int32_t rows)
{
    const uint8_t *from[FL_RESIZE_ROWS];
    uint8_t *to[FL_RESIZE_ROWS];
    // Rows that are not there are the first one again: computed and written twice.
    for (int32_t i = 0; i < FL_RESIZE_ROWS; i++) {
        from[i] = in[i < rows ? i : 0];
        to[i] = out[i < rows ? i : 0];
    }
    // Four taps are the mean crop of a photo; a loop of known length is unrolled.
    if (taps->used == 4)
        resize_rows(taps, from, to, 4);
    else if (taps->used == 6)
        resize_rows(taps, from, to, 6);
    else
        resize_rows(taps, from, to, taps->used);
}

TARGET static inline __m256i load_vector(const uint8_t *bytes)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)bytes);
}

// Two numbers that fit int16, side by side.
TARGET static inline __m256i broadcast_both(int32_t a, int32_t b)
{
    uint32_t both = (uint32_t)(uint16_t)a | (uint32_t)b << 16;
    return _mm256_set1_epi32((int32_t)both);
}

// 32 bytes of one output row: eight pixels, two input rows a step.
TARGET static inline __m256i resize_column(const uint8_t *const *in, size_t offset,
                                           const int32_t *weights, int32_t taps)
{
    const __m256i zero = _mm256_setzero_si256();
    const int32_t low_mask = (1 << FL_RESIZE_LOW_BITS) - 1;
    sums sums0 = start_sums(), sums1 = start_sums();
    sums sums2 = start_sums(), sums3 = start_sums();
    for (int32_t k = 0; k < taps; k += 2) {
        int32_t a = weights[k], b = weights[k + 1];
        __m256i low = broadcast_both(a & low_mask, b & low_mask);
        __m256i rest = broadcast_both(a >> FL_RESIZE_LOW_BITS, b >> FL_RESIZE_LOW_BITS);
        __m256i row_a = load_vector(in[k] + offset);
        __m256i row_b = load_vector(in[k + 1] + offset);
        __m256i left = _mm256_unpacklo_epi8(row_a, row_b);
        __m256i right = _mm256_unpackhi_epi8(row_a, row_b);
        add_products(&sums0, _mm256_unpacklo_epi8(left, zero), low, rest);
        add_products(&sums1, _mm256_unpackhi_epi8(left, zero), low, rest);
        add_products(&sums2, _mm256_unpacklo_epi8(right, zero), low, rest);
        add_products(&sums3, _mm256_unpackhi_epi8(right, zero), low, rest);
    }
    __m256i left = _mm256_packs_epi32(finish_sums(&sums0), finish_sums(&sums1));
    __m256i right = _mm256_packs_epi32(finish_sums(&sums2), finish_sums(&sums3));
    return _mm256_packus_epi16(left, right);
}

TARGET static inline void resize_columns(const uint8_t *const *in, const int32_t *weights,
                                         int32_t taps, uint8_t *out, int32_t width)
{
    size_t bytes = (size_t)width * FL_PIXEL_SIZE;
    for (size_t i = 0; i < bytes; i += VECTOR) {
        __m256i pixels = resize_column(in, i, weights, taps);
        _mm256_storeu_si256((__m256i *)(void *)(out + i), pixels);
    }
}

TARGET static void resize_vertical_avx2(const uint8_t *const *in, const int32_t *weights,
                                        int32_t taps, uint8_t *out, int32_t width)
{
    if (taps == 2 || taps == 4) {
        // Copies, which the output cannot alias: they stay in registers.
        const uint8_t *const rows[] = {in[0], in[1], in[taps - 2], in[taps - 1]};
        const int32_t kept[] = {weights[0], weights[1], weights[taps - 2],
                                weights[taps - 1]};
        if (taps == 2)
            resize_columns(rows, kept, 2, out, width);
        else
            resize_columns(rows, kept, 4, out, width);
    } else {
        resize_columns(in, weights, taps, out, width);
    }
}

const fl_resize_kernels fl_resize_avx2 = {
    .horizontal = resize_horizontal_avx2,
    .vertical = resize_vertical_avx2,
};
#endif
