// SPDX-License-Identifier: MIT
// Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011):
// random numbers without state, as a function of a key and a counter. docs/order.md says
// how keys and counters are made. Plain values: a stream belongs to one thread.
#ifndef FL_BASE_PHILOX_H
#define FL_BASE_PHILOX_H

#include <stdint.h>

// What a derived key is for: two uses never share one.
typedef enum fl_key_stage {
    FL_KEY_PERMUTATION = 1, // Feistel round keys, or the table's shuffle
    FL_KEY_SAMPLE = 2,      // augmentation of samples
    FL_KEY_EPOCH = 3,       // whatever is drawn once an epoch
} fl_key_stage;

void fl_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);

// The 64-bit key of (seed, epoch, stage, block): the first two words of
// philox(counter = {epoch low, epoch high, stage, block}, key = {seed low, seed high}),
// the first one low.
uint64_t fl_key_derive(uint64_t seed, uint64_t epoch, fl_key_stage stage, uint32_t block);

// A stream of draws for one (key, position, op): block b of four words is
// philox(counter = {position low, position high, op, b}, key).
typedef struct fl_random {
    uint32_t key[2];
    uint32_t counter[4];
    uint32_t words[4];
    uint32_t used; // words taken; 4 = make the next block
} fl_random;

fl_random fl_random_make(uint64_t key, uint64_t position, uint32_t op);
uint32_t fl_random_u32(fl_random *random);
uint64_t fl_random_u64(fl_random *random); // two words, the first one low
double fl_random_unit(fl_random *random);  // [0, 1): the top 53 bits of a u64
double fl_random_uniform(fl_random *random, double low, double high);
// [0, bound), without bias (Lemire's method on 64 bits); `bound` > 0.
uint64_t fl_random_below(fl_random *random, uint64_t bound);

#endif
