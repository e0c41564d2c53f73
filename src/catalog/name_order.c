// SPDX-License-Identifier: MIT
// Valid UTF-8 sorts bytewise like its code points. A byte that is not part of valid UTF-8
// becomes the lone surrogate U+DC00 + byte in Python, which sorts below U+E000 and above
// all before the surrogates: only such names need decoding.
#include "catalog/name_order.h"

#include <string.h>

static bool is_continuation(unsigned char byte)
{
    return (byte & 0xC0) == 0x80;
}

// Length of the valid sequence at `bytes` (Unicode, table 3-7), 0 if there is none.
static size_t sequence_length(const unsigned char *bytes, size_t left)
{
    unsigned char lead = bytes[0];
    if (lead < 0x80)
        return 1;
    size_t length = lead < 0xC2   ? 0
                    : lead < 0xE0 ? 2
                    : lead < 0xF0 ? 3
                    : lead < 0xF5 ? 4
                                  : 0;
    if (length == 0 || length > left)
        return 0;
    for (size_t i = 1; i < length; i++)
        if (!is_continuation(bytes[i]))
            return 0;
    bool is_overlong =
        (lead == 0xE0 && bytes[1] < 0xA0) || (lead == 0xF0 && bytes[1] < 0x90);
    bool is_surrogate = lead == 0xED && bytes[1] >= 0xA0;
    bool is_beyond = lead == 0xF4 && bytes[1] >= 0x90;
    return is_overlong || is_surrogate || is_beyond ? 0 : length;
}

// The code point at `*at`, -1 at the end; moves `*at` behind it.
static int32_t next_code_point(fl_text text, size_t *at)
{
    if (*at == text.length)
        return -1;
    const unsigned char *bytes = (const unsigned char *)text.data + *at;
    size_t length = sequence_length(bytes, text.length - *at);
    if (length == 0) {
        (*at)++;
        return 0xDC00 + bytes[0];
    }
    *at += length;
    if (length == 1)
        return bytes[0];
    int32_t value = bytes[0] & (0xFF >> (length + 1));
    for (size_t i = 1; i < length; i++)
        value = value << 6 | (bytes[i] & 0x3F);
    return value;
}

int fl_name_compare(fl_text x, fl_text y)
{
    const unsigned char *a = (const unsigned char *)x.data;
    const unsigned char *b = (const unsigned char *)y.data;
    size_t shorter = x.length < y.length ? x.length : y.length;
    size_t at = 0;
    while (at < shorter && a[at] == b[at])
        at++;
    if (at == x.length && at == y.length)
        return 0;
    // Both decode alike up to the last ASCII byte before the difference.
    while (at > 0 && a[at - 1] >= 0x80)
        at--;
    size_t at_x = at, at_y = at;
    for (;;) {
        int32_t left = next_code_point(x, &at_x), right = next_code_point(y, &at_y);
        if (left != right)
            return left < right ? -1 : 1;
        if (left < 0)
            return 0;
    }
}
