// SPDX-License-Identifier: MIT
// A crop stops at its last row; whether the rest of the file is there is then only a
// question of its markers (ITU-T T.81, B.1.1). memchr makes this about a hundredth of
// the decode.
#include "decode/end_marker.h"

#include <string.h>

enum {
    TEM = 0x01,
    SOF0 = 0xC0,
    DHT = 0xC4,
    DAC = 0xCC,
    RST0 = 0xD0,
    RST7 = 0xD7,
    EOI = 0xD9,
    DQT = 0xDB,
    DNL = 0xDC,
    DRI = 0xDD,
    APP0 = 0xE0,
    APP15 = 0xEF,
    COM = 0xFE,
};

typedef struct span {
    const uint8_t *at, *end;
} span;

static bool is_restart(int marker)
{
    return marker >= RST0 && marker <= RST7;
}

// The next FF xx with xx neither 00 nor FF, or 0 if there is none.
static int next_marker(span *rest)
{
    while (rest->at < rest->end) {
        const uint8_t *found = memchr(rest->at, 0xFF, (size_t)(rest->end - rest->at));
        if (!found)
            break;
        while (found < rest->end && *found == 0xFF)
            found++;
        if (found == rest->end)
            break;
        rest->at = found + 1;
        if (*found != 0)
            return *found;
    }
    rest->at = rest->end;
    return 0;
}

// Steps over a segment: two bytes of length, which count themselves.
static bool skip_segment(span *rest)
{
    if (rest->end - rest->at < 2)
        return false;
    size_t length = (size_t)rest->at[0] << 8 | rest->at[1];
    if (length < 2)
        length = 2;
    if (length > (size_t)(rest->end - rest->at))
        return false;
    rest->at += length;
    return true;
}

static bool has_segment(int marker)
{
    return (marker >= APP0 && marker <= APP15) || marker == COM || marker == DHT ||
           marker == DQT || marker == DRI || marker == DAC || marker == DNL;
}

fl_jpeg_rest fl_jpeg_check_rest(const uint8_t *bytes, size_t size, int marker,
                                bool has_restarts, int *found)
{
    span rest = {.at = bytes, .end = bytes + size};
    bool in_scan = true;
    for (;;) {
        if (marker == 0)
            marker = next_marker(&rest);
        if (marker == 0)
            return FL_JPEG_REST_TRUNCATED;
        if (marker == EOI)
            return FL_JPEG_REST_WHOLE;
        bool is_passed = is_restart(marker) || marker == TEM;
        if (in_scan && has_restarts && marker < SOF0)
            is_passed = true;
        if (!is_passed) {
            in_scan = false;
            *found = marker;
            if (!has_segment(marker))
                return FL_JPEG_REST_BROKEN;
            if (!skip_segment(&rest))
                return FL_JPEG_REST_TRUNCATED;
        }
        marker = 0;
    }
}
