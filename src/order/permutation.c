// SPDX-License-Identifier: MIT
// Small sets: a table by Fisher and Yates. Large ones: a Feistel network over pairs
// (left, right) with left < a and right < b, a * b just above `count` (Black and Rogaway,
// "Ciphers with Arbitrary Finite Domains", 2002); what falls outside walks on along its
// cycle. Because a * b - count < a, fewer than one look-up in 256 walks at all.
#include "order/permutation.h"

#include "base/memory.h"
#include "base/philox.h"

#include <assert.h>

enum {
    TABLE_LIMIT = 1 << 16, // the largest set whose indices all fit 16 bits
    ROUNDS = 12,           // random by all tests from 6 on (docs/order.md)
};

struct fl_permutation {
    uint64_t count;
    uint16_t *table; // owned; NULL: the network
    uint64_t a, b;   // both below 2^32
    uint64_t keys[ROUNDS];
};

static uint64_t square_root_rounded_up(uint64_t value)
{
    uint64_t root = 0;
    for (uint64_t bit = UINT64_C(1) << 31; bit; bit >>= 1)
        if ((root | bit) * (root | bit) <= value)
            root |= bit;
    return root * root < value ? root + 1 : root;
}

static fl_status make_table(fl_permutation *permutation, uint64_t seed, uint64_t epoch,
                            fl_error *error)
{
    uint64_t count = permutation->count;
    uint16_t *table = fl_alloc(count * sizeof(*table));
    if (!table)
        return fl_error_no_memory(error);
    permutation->table = table;
    for (uint64_t i = 0; i < count; i++)
        table[i] = (uint16_t)i;

    uint64_t key = fl_key_derive(seed, epoch, FL_KEY_PERMUTATION, 0);
    fl_random random = fl_random_make(key, 0, 0);
    for (uint64_t i = count; i > 1; i--) {
        uint64_t j = fl_random_below(&random, i);
        uint16_t last = table[i - 1];
        table[i - 1] = table[j];
        table[j] = last;
    }
    return FL_OK;
}

static void make_network(fl_permutation *permutation, uint64_t seed, uint64_t epoch)
{
    permutation->a = square_root_rounded_up(permutation->count);
    permutation->b = (permutation->count + permutation->a - 1) / permutation->a;
    for (uint32_t i = 0; i < ROUNDS; i++)
        permutation->keys[i] = fl_key_derive(seed, epoch, FL_KEY_PERMUTATION, i);
}

fl_status fl_permutation_create(int64_t count, uint64_t seed, uint64_t epoch,
                                fl_permutation **out, fl_error *error)
{
    if (count < 0)
        return fl_error_set(error, FL_ERROR_ARGUMENT,
                            "a permutation of %lld samples cannot be", (long long)count);
    fl_permutation *permutation = fl_alloc_zeroed(sizeof(*permutation));
    if (!permutation)
        return fl_error_no_memory(error);
    permutation->count = (uint64_t)count;

    fl_status status = FL_OK;
    if (count <= TABLE_LIMIT)
        status = make_table(permutation, seed, epoch, error);
    else
        make_network(permutation, seed, epoch);
    if (status != FL_OK) {
        fl_permutation_destroy(permutation);
        return status;
    }
    *out = permutation;
    return FL_OK;
}

void fl_permutation_destroy(fl_permutation *permutation)
{
    if (!permutation)
        return;
    fl_free(permutation->table);
    fl_free(permutation);
}

// The round function: [0, modulus) from one half. The two multiplications are those of
// splitmix64's finaliser; the product's upper half maps its result to the range.
static uint64_t draw(uint64_t half, uint64_t key, uint64_t modulus)
{
    uint64_t z = half + key;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return (uint64_t)((unsigned __int128)z * modulus >> 64);
}

static uint64_t add_modulo(uint64_t x, uint64_t y, uint64_t modulus)
{
    uint64_t sum = x + y;
    return sum < modulus ? sum : sum - modulus;
}

static uint64_t encrypt(const fl_permutation *permutation, uint64_t value)
{
    const uint64_t *keys = permutation->keys;
    uint64_t a = permutation->a, b = permutation->b;
    uint64_t left = value % a, right = value / a;
    for (int i = 0; i < ROUNDS; i += 2) {
        left = add_modulo(left, draw(right, keys[i], a), a);
        right = add_modulo(right, draw(left, keys[i + 1], b), b);
    }
    return right * a + left;
}

static uint64_t decrypt(const fl_permutation *permutation, uint64_t value)
{
    const uint64_t *keys = permutation->keys;
    uint64_t a = permutation->a, b = permutation->b;
    uint64_t left = value % a, right = value / a;
    for (int i = ROUNDS - 2; i >= 0; i -= 2) {
        right = add_modulo(right, b - draw(left, keys[i + 1], b), b);
        left = add_modulo(left, a - draw(right, keys[i], a), a);
    }
    return right * a + left;
}

int64_t fl_permutation_at(const fl_permutation *permutation, int64_t position)
{
    uint64_t value = (uint64_t)position;
    assert(value < permutation->count);
    if (permutation->table)
        return permutation->table[value];
    do
        value = encrypt(permutation, value);
    while (value >= permutation->count);
    return (int64_t)value;
}

int64_t fl_permutation_find(const fl_permutation *permutation, int64_t index)
{
    uint64_t value = (uint64_t)index;
    assert(value < permutation->count);
    if (permutation->table) {
        uint64_t position = 0;
        while (permutation->table[position] != value)
            position++;
        return (int64_t)position;
    }
    do
        value = decrypt(permutation, value);
    while (value >= permutation->count);
    return (int64_t)value;
}
