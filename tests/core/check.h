// SPDX-License-Identifier: MIT
// Assertions of the C tests: a failure prints file, line and values and ends the program.
#ifndef FL_TESTS_CHECK_H
#define FL_TESTS_CHECK_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                                 \
    ((condition)                                                                         \
         ? (void)0                                                                       \
         : (fprintf(stderr, "%s:%d: failed: %s\n", __FILE__, __LINE__, #condition),      \
            abort()))

#define CHECK_INT(got, want)                                                             \
    check_int(__FILE__, __LINE__, #got, (long long)(got), (long long)(want))

static inline void check_int(const char *file, int line, const char *text, long long got,
                             long long want)
{
    if (got == want)
        return;
    fprintf(stderr, "%s:%d: %s is %lld, not %lld\n", file, line, text, got, want);
    abort();
}

#define CHECK_CONTAINS(text, part) check_contains(__FILE__, __LINE__, text, part)

static inline void check_contains(const char *file, int line, const char *text,
                                  const char *part)
{
    if (strstr(text, part))
        return;
    fprintf(stderr, "%s:%d: \"%s\" does not contain \"%s\"\n", file, line, text, part);
    abort();
}

#endif
