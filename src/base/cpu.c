// SPDX-License-Identifier: MIT
#include "base/cpu.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <cpuid.h>

// clang 14's __builtin_cpu_supports does not know f16c: CPUID leaf 1, ECX bit 29.
static int has_f16c(void)
{
    unsigned a, b, c, d;
    return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
}
#endif

static _Atomic uint32_t allowed = UINT32_MAX;

uint32_t fl_cpu_features(void)
{
    uint32_t found = 0;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c())
        found |= FL_CPU_AVX2;
#endif
    return found & atomic_load(&allowed);
}

void fl_cpu_set_mask(uint32_t mask)
{
    atomic_store(&allowed, mask);
}

static int count_affinity(void)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    // Fails beyond 1,024 CPUs; the number online is right there.
    if (sched_getaffinity(0, sizeof(set), &set) == 0)
        return CPU_COUNT(&set);
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 ? (int)online : 1;
}

// The quota of one cgroup v2 directory in CPUs, rounded up; 0 = none.
static int read_quota(const char *directory)
{
    char path[512];
    long quota = 0, period = 0;
    snprintf(path, sizeof(path), "%s/cpu.max", directory);
    FILE *file = fopen(path, "re");
    if (file) {
        if (fscanf(file, "%ld %ld", &quota, &period) != 2) // "max 100000" has no number
            quota = 0;
        fclose(file);
    }
    if (quota <= 0 || period <= 0)
        return 0;
    return (int)((quota + period - 1) / period);
}

// The tightest quota from this process's own cgroup up to the root (v2), else v1's.
static int count_quota(void)
{
    char line[400], directory[448];
    int tightest = 0;
    FILE *file = fopen("/proc/self/cgroup", "re");
    if (!file)
        return 0;
    while (fgets(line, sizeof(line), file)) {
        if (strncmp(line, "0::", 3) != 0)
            continue;
        line[strcspn(line, "\n")] = 0;
        snprintf(directory, sizeof(directory), "/sys/fs/cgroup%s", line + 3);
        for (char *end; (end = strrchr(directory, '/')) != NULL; *end = 0) {
            int quota = read_quota(directory);
            if (quota && (!tightest || quota < tightest))
                tightest = quota;
            if (strcmp(directory, "/sys/fs/cgroup") == 0)
                break;
        }
    }
    fclose(file);
    return tightest;
}

int fl_cpu_count(void)
{
    int count = count_affinity();
    int quota = count_quota();
    if (quota && quota < count)
        count = quota;
    return count > 0 ? count : 1;
}
