// SPDX-License-Identifier: MIT
// Pillow's filters for resizing. Pure functions of doubles: any thread.
#ifndef FL_TRANSFORM_FILTER_H
#define FL_TRANSFORM_FILTER_H

#include <stdint.h>

// Pillow's numbers.
typedef enum fl_filter {
    FL_FILTER_NEAREST = 0, // no weights: transform/nearest.h
    FL_FILTER_LANCZOS = 1,
    FL_FILTER_BILINEAR = 2,
    FL_FILTER_BICUBIC = 3,
    FL_FILTER_BOX = 4,
    FL_FILTER_HAMMING = 5,
} fl_filter;

// How far it reaches from its centre, in inputs, where nothing gets smaller.
double fl_filter_support(fl_filter filter);
// The weights of inputs [first, first + length) for an output whose centre lies there,
// before they are made to add up to 1; returns their sum. `inverse` brings distances to
// the filter's scale.
double fl_filter_weigh(fl_filter filter, int32_t first, int32_t length, double center,
                       double inverse, double *weights);

#endif
