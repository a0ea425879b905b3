/* Finds out how much memory and how many processors the machine or container has available.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/available.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* Read the beginning of a small system file. The text is empty if there is no such file. */
static void read_text(char text[4096], const char *path)
{
    const int     file = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t length = file >= 0 ? read(file, text, 4095) : 0;

    text[length > 0 ? length : 0] = '\0';
    if (file >= 0) close(file);
}

/* Return the number after `key` in a small system file, or `none` if there is no such file or key. */
static int64_t read_number(const char *path, const char *key, int64_t none)
{
    char        text[4096];
    const char *found;
    char       *end;
    int64_t     number;

    read_text(text, path);
    found = strstr(text, key);
    if (found == NULL) return none;
    number = strtoll(found + strlen(key), &end, 10);
    return end > found + strlen(key) ? number : none;
}

/* As read_number(), for file `file` of a folder. */
static int64_t read_number_in(const char *folder, const char *file, const char *key, int64_t none)
{
    char path[PATH_MAX];

    return snprintf(path, sizeof path, "%s/%s", folder, file) < (int)sizeof path ? read_number(path, key, none) : none;
}

int64_t gr_memory_container(const char *folder)
{
    const int64_t limit = read_number_in(folder, "memory.max", "", INT64_MAX);
    const int64_t old_limit = read_number_in(folder, "memory.limit_in_bytes", "", INT64_MAX);
    int64_t       used;

    if (limit == INT64_MAX && old_limit == INT64_MAX) return INT64_MAX;
    used = read_number_in(folder, limit < INT64_MAX ? "memory.current" : "memory.usage_in_bytes", "", 0);
    used -= read_number_in(folder, "memory.stat", limit < INT64_MAX ? "\ninactive_file " : "\ntotal_inactive_file ", 0);
    if (used < 0) used = 0;
    if (limit == INT64_MAX) return old_limit > used ? old_limit - used : 0;
    return limit > used ? limit - used : 0;
}

int64_t gr_processors_container(const char *folder)
{
    const int64_t quota = read_number_in(folder, "cpu.max", "", 0),
                  old_quota = read_number_in(folder, "cpu.cfs_quota_us", "", 0);
    const int64_t period =
        quota > 0 ? read_number_in(folder, "cpu.max", " ", 0) : read_number_in(folder, "cpu.cfs_period_us", "", 0);
    const int64_t time = quota > 0 ? quota : old_quota;

    return time > 0 && period > 0 ? (time + period - 1) / period : INT64_MAX;
}

/* Whether a list such as "cpu,cpuacct" has a controller. In version 2 of cgroups one hierarchy serves all controllers,
 * and the list is empty. */
static int has_controller(const char *controllers, const char *wanted)
{
    const size_t length = strlen(wanted);

    while (*controllers != '\0') {
        const size_t next = strcspn(controllers, ",");

        if (next == length && strncmp(controllers, wanted, length) == 0) return 1;
        controllers += next + (controllers[next] == ',');
    }
    return 0;
}

/* The least limit of a group and of all groups that contain it, up to the root folder of the controller. */
static int64_t least_around(const char *root, const char *controllers, const char *group,
                            int64_t (*limit)(const char *folder))
{
    char         folder[PATH_MAX];
    const size_t top = strlen(root) + (*controllers != '\0') + strlen(controllers);
    int64_t      least = INT64_MAX;

    if (snprintf(folder, sizeof folder, "%s%s%s%s", root, *controllers != '\0' ? "/" : "", controllers, group) >=
        (int)sizeof folder)
        return INT64_MAX;
    for (;;) {
        const int64_t found = limit(folder);

        if (found < least) least = found;
        if (strlen(folder) <= top) return least;
        *strrchr(folder, '/') = '\0';
    }
}

int64_t gr_available_cgroup_limit(const char *list, const char *root, const char *controller,
                                  int64_t (*limit)(const char *folder))
{
    char    text[4096], *next = text;
    int64_t least = limit(root);

    read_text(text, list);
    while (*next != '\0') {
        char *line = next, *controllers, *group;

        next += strcspn(next, "\n");
        if (*next != '\0') *next++ = '\0';
        controllers = strchr(line, ':');
        group = controllers != NULL ? strchr(controllers + 1, ':') : NULL;
        if (group == NULL) continue;
        controllers++;
        *group++ = '\0';
        if (*controllers == '\0' || has_controller(controllers, controller)) {
            const int64_t found = least_around(root, controllers, group, limit);

            if (found < least) least = found;
        }
    }
    return least;
}

/* A limit of the process minus what it uses, which is the number of kB after `key` in /proc/self/status. */
static int64_t left_of(int resource, const char *key)
{
    struct rlimit limit;
    int64_t       used;

    if (getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur > INT64_MAX)
        return INT64_MAX;
    used = read_number("/proc/self/status", key, 0) * 1024;
    return (int64_t)limit.rlim_cur > used ? (int64_t)limit.rlim_cur - used : 0;
}

int64_t gr_available_address_space(void)
{
    const int64_t all = left_of(RLIMIT_AS, "VmSize:"), data = left_of(RLIMIT_DATA, "VmData:");

    return all < data ? all : data;
}

int64_t gr_memory_available(void)
{
    const int64_t kb = read_number("/proc/meminfo", "MemAvailable:", INT64_MAX);
    const int64_t container =
        gr_available_cgroup_limit("/proc/self/cgroup", "/sys/fs/cgroup", "memory", gr_memory_container);

    return kb < container / 1024 ? kb * 1024 : container;
}

int64_t gr_processors_quota(void)
{
    return gr_available_cgroup_limit("/proc/self/cgroup", "/sys/fs/cgroup", "cpu", gr_processors_container);
}
