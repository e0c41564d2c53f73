// SPDX-License-Identifier: MIT
// What this CPU can do, and how many of them this process may use. Any thread.
#ifndef FL_BASE_CPU_H
#define FL_BASE_CPU_H

#include <stdint.h>

typedef enum fl_cpu_feature {
    FL_CPU_AVX2 = 1 << 0, // with FMA and F16C, which every AVX2 CPU of note has
} fl_cpu_feature;

// The features found, less those that the mask takes away.
uint32_t fl_cpu_features(void);
// Tests and FEEDLINE_CPU_MASK: only features in `mask` are used from now on. Call it
// before any kernel is chosen.
void fl_cpu_set_mask(uint32_t mask);

// min(affinity, cgroup quota rounded up), at least 1.
int fl_cpu_count(void);

#endif
