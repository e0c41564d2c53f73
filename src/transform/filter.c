// SPDX-License-Identifier: MIT
// Each formula in the form and the order that Pillow computes it in: any other rounds
// some weights otherwise. sin and cos are the C library's, as Pillow's are.
#include "transform/filter.h"

#include <math.h>

double fl_filter_support(fl_filter filter)
{
    switch (filter) {
    case FL_FILTER_LANCZOS:
        return 3.0;
    case FL_FILTER_BICUBIC:
        return 2.0;
    case FL_FILTER_BILINEAR:
    case FL_FILTER_HAMMING:
        return 1.0;
    case FL_FILTER_BOX:
    case FL_FILTER_NEAREST:
        break;
    }
    return 0.5;
}

static double sinc(double x)
{
    if (x == 0.0)
        return 1.0;
    x = x * M_PI;
    return sin(x) / x;
}

static inline double lanczos(double x)
{
    return x >= -3.0 && x < 3.0 ? sinc(x) * sinc(x / 3) : 0.0;
}

static inline double hamming(double x)
{
    x = x < 0.0 ? -x : x;
    if (x == 0.0)
        return 1.0;
    if (x >= 1.0)
        return 0.0;
    x = x * M_PI;
    // Pillow has these two numbers as floats.
    return sin(x) / x * ((double)0.54f + (double)0.46f * cos(x));
}

static inline double bicubic(double x)
{
    const double a = -0.5;
    x = x < 0.0 ? -x : x;
    if (x < 1.0)
        return ((a + 2.0) * x - (a + 3.0)) * x * x + 1;
    return x < 2.0 ? (((x - 5) * x + 8) * x - 4) * a : 0.0;
}

static inline double bilinear(double x)
{
    x = x < 0.0 ? -x : x;
    return x < 1.0 ? 1.0 - x : 0.0;
}

static inline double box(double x)
{
    return x > -0.5 && x <= 0.5 ? 1.0 : 0.0;
}

// The loop for each filter is one of its own, with the filter inlined.
static inline double weigh(double (*filter)(double), int32_t first, int32_t length,
                           double center, double inverse, double *weights)
{
    double sum = 0.0;
    for (int32_t i = 0; i < length; i++) {
        weights[i] = filter((i + first - center + 0.5) * inverse);
        sum += weights[i];
    }
    return sum;
}

double fl_filter_weigh(fl_filter filter, int32_t first, int32_t length, double center,
                       double inverse, double *weights)
{
    switch (filter) {
    case FL_FILTER_LANCZOS:
        return weigh(lanczos, first, length, center, inverse, weights);
    case FL_FILTER_BICUBIC:
        return weigh(bicubic, first, length, center, inverse, weights);
    case FL_FILTER_BILINEAR:
        return weigh(bilinear, first, length, center, inverse, weights);
    case FL_FILTER_HAMMING:
        return weigh(hamming, first, length, center, inverse, weights);
    case FL_FILTER_BOX:
    case FL_FILTER_NEAREST:
        break;
    }
    return weigh(box, first, length, center, inverse, weights);
}
