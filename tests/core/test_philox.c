// SPDX-License-Identifier: MIT
// Philox4x32-10 against the known answers that its authors publish with Random123
// (kat_vectors: philox4x32 10).
#include "base/philox.h"

#include "check.h"

static void check_vector(const uint32_t counter[4], const uint32_t key[2],
                         const uint32_t want[4])
{
    uint32_t out[4];
    fl_philox(counter, key, out);
    for (int i = 0; i < 4; i++)
        CHECK_INT(out[i], want[i]);
}

static void check_known_answers(void)
{
    check_vector((uint32_t[]){0, 0, 0, 0}, (uint32_t[]){0, 0},
                 (uint32_t[]){0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
    check_vector((uint32_t[]){~0u, ~0u, ~0u, ~0u}, (uint32_t[]){~0u, ~0u},
                 (uint32_t[]){0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
    check_vector((uint32_t[]){0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
                 (uint32_t[]){0xa4093822, 0x299f31d0},
                 (uint32_t[]){0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

static void check_stream_is_its_blocks(void)
{
    uint64_t key = 0x0123456789abcdefu, position = 0xfedcba9876543210u;
    fl_random random = fl_random_make(key, position, 7);
    for (uint32_t block = 0; block < 3; block++) {
        uint32_t out[4];
        fl_philox((uint32_t[]){0x76543210, 0xfedcba98, 7, block},
                  (uint32_t[]){0x89abcdef, 0x01234567}, out);
        for (int i = 0; i < 4; i++)
            CHECK_INT(fl_random_u32(&random), out[i]);
    }
}

static void check_ranges(void)
{
    fl_random random = fl_random_make(1, 2, 3);
    for (int i = 0; i < 10000; i++) {
        double unit = fl_random_unit(&random);
        CHECK(unit >= 0 && unit < 1);
        CHECK(fl_random_below(&random, 1) == 0);
        CHECK(fl_random_below(&random, 3) < 3);
        CHECK(fl_random_below(&random, UINT64_MAX) < UINT64_MAX);
    }
}

int main(void)
{
    check_known_answers();
    check_stream_is_its_blocks();
    check_ranges();
    return 0;
}
