/* The available memory of the machine or container.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/available.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* The number after `key` in a small system file; `none` if there is no such file or key. */
static int64_t read_number(const char *path, const char *key, int64_t none)
{
    char        text[4096] = "";
    const char *found;
    char       *end;
    const int   file = open(path, O_RDONLY | O_CLOEXEC);
    int64_t     number;

    if (file < 0) return none;
    if (read(file, text, sizeof text - 1) < 0) text[0] = '\0';
    close(file);
    found = strstr(text, key);
    if (found == NULL) return none;
    number = strtoll(found + strlen(key), &end, 10);
    return end > found + strlen(key) ? number : none;
}

int64_t gr_memory_container(const char *folder)
{
    char    path[256];
    int64_t limit, used;

    snprintf(path, sizeof path, "%s/memory.max", folder);
    limit = read_number(path, "", INT64_MAX);
    if (limit == INT64_MAX) return limit;
    snprintf(path, sizeof path, "%s/memory.current", folder);
    used = read_number(path, "", 0);
    snprintf(path, sizeof path, "%s/memory.stat", folder);
    used -= read_number(path, "\ninactive_file ", 0);
    if (used < 0) used = 0;
    return limit > used ? limit - used : 0;
}

/* A limit minus the used kB in a line of /proc/self/status. */
static int64_t left_of(int resource, const char *key)
{
    struct rlimit limit;
    int64_t       used;

    if (getrlimit((__rlimit_resource_t)resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
        limit.rlim_cur > INT64_MAX)
        return INT64_MAX;
    used = read_number("/proc/self/status", key, 0) * 1024;
    return (int64_t)limit.rlim_cur > used ? (int64_t)limit.rlim_cur - used : 0;
}

int64_t gr_address_space_left(void)
{
    const int64_t all = left_of(RLIMIT_AS, "VmSize:"), data = left_of(RLIMIT_DATA, "VmData:");

    return all < data ? all : data;
}

int64_t gr_memory_available(void)
{
    const int64_t kb = read_number("/proc/meminfo", "MemAvailable:", INT64_MAX);
    const int64_t container = gr_memory_container("/sys/fs/cgroup");

    return kb < container / 1024 ? kb * 1024 : container;
}
