// SPDX-License-Identifier: MIT
#include "base/philox.h"

enum { ROUNDS = 10 };

void fl_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4])
{
    uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
    uint32_t k0 = key[0], k1 = key[1];
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t product0 = (uint64_t)0xD2511F53u * c0;
        uint64_t product1 = (uint64_t)0xCD9E8D57u * c2;
        c0 = (uint32_t)(product1 >> 32) ^ c1 ^ k0;
        c2 = (uint32_t)(product0 >> 32) ^ c3 ^ k1;
        c1 = (uint32_t)product1;
        c3 = (uint32_t)product0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}

uint64_t fl_key_derive(uint64_t seed, uint64_t epoch, fl_key_stage stage, uint32_t block)
{
    uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    uint32_t counter[4] = {(uint32_t)epoch, (uint32_t)(epoch >> 32), (uint32_t)stage,
                           block};
    uint32_t out[4];
    fl_philox(counter, key, out);
    return (uint64_t)out[1] << 32 | out[0];
}

fl_random fl_random_make(uint64_t key, uint64_t position, uint32_t op)
{
    return (fl_random){
        .key = {(uint32_t)key, (uint32_t)(key >> 32)},
        .counter = {(uint32_t)position, (uint32_t)(position >> 32), op, 0},
        .used = 4,
    };
}

uint32_t fl_random_u32(fl_random *random)
{
    if (random->used == 4) {
        fl_philox(random->counter, random->key, random->words);
        random->counter[3]++;
        random->used = 0;
    }
    return random->words[random->used++];
}

uint64_t fl_random_u64(fl_random *random)
{
    uint64_t low = fl_random_u32(random);
    uint64_t high = fl_random_u32(random);
    return high << 32 | low;
}

double fl_random_unit(fl_random *random)
{
    return (double)(fl_random_u64(random) >> 11) * 0x1p-53;
}

double fl_random_uniform(fl_random *random, double low, double high)
{
    return low + (high - low) * fl_random_unit(random);
}

uint64_t fl_random_below(fl_random *random, uint64_t bound)
{
    unsigned __int128 product = (unsigned __int128)fl_random_u64(random) * bound;
    if ((uint64_t)product < bound) {
        uint64_t rejected = (0 - bound) % bound; // 2^64 mod bound
        while ((uint64_t)product < rejected)
            product = (unsigned __int128)fl_random_u64(random) * bound;
    }
    return (uint64_t)(product >> 64);
}
