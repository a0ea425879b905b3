/* Checks how the library finds the memory and the processors that it may still use in a container. The test makes files
 * like those of control groups (cgroup v1 and v2), and compares the answers with the numbers in them.
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness/tap.h"

#include "base/available.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/graft-available-XXXXXX";

/* Write a file of a group, or remove it if `text` is NULL. */
static void available_put(const char *name, const char *text)
{
    char  path[128];
    FILE *file;

    snprintf(path, sizeof path, "%s/%s", folder, name);
    remove(path);
    if (text == NULL) return;
    file = fopen(path, "w");
    if (file == NULL || fputs(text, file) < 0 || fclose(file) != 0) diag("cannot write %s", path);
}

static void available_check(const char *limit, const char *used, const char *stat, int64_t expected, const char *name)
{
    int64_t found;

    available_put("memory.max", limit);
    available_put("memory.current", used);
    available_put("memory.stat", stat);
    found = gr_memory_container(folder);
    ok(found == expected, "available memory or processors, %s: %lld", name, (long long)found);
}

/* Make a folder of the tree of groups, or a file in it. The tree is removed at the end. */
static void available_group(const char *group, const char *file, const char *text)
{
    char path[128];

    snprintf(path, sizeof path, "%s/%s", folder, group);
    mkdir(path, 0777);
    if (file == NULL) return;
    snprintf(path, sizeof path, "%s/%s", group, file);
    available_put(path, text);
}

static int64_t quota_of(const char *groups)
{
    char list[128];

    available_put("list", groups);
    snprintf(list, sizeof list, "%s/list", folder);
    return gr_available_cgroup_limit(list, folder, "cpu", gr_processors_container);
}

/* The groups of a job in which one level has a smaller quota. */
static void test_quotas(void)
{
    static const char *const groups[] = { "job", "job/step", "cpu,cpuacct", "cpu,cpuacct/job", "cpu,cpuacct/job/step" };
    char                     command[64];

    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++) available_group(groups[i], NULL, NULL);
    ok(quota_of("0::/job/step\n") == INT64_MAX, "a control group without a quota of processors has no limit");
    available_group("job/step", "cpu.max", "max 100000\n");
    ok(quota_of("0::/job/step\n") == INT64_MAX, "a control group with the quota \"max\" has no limit");
    available_group("job", "cpu.max", "350000 100000\n");
    ok(quota_of("0::/job/step\n") == 4, "a quota of 3.5 processors in the parent group is rounded up to 4");
    available_group("job/step", "cpu.max", "20000 100000\n");
    ok(quota_of("0::/job/step\n") == 1, "a quota of a fifth of a processor counts as one processor");
    ok(quota_of("0::/job\n") == 4 && quota_of("0::/other/group\n") == INT64_MAX && quota_of("0::/\n") == INT64_MAX,
       "each process has the quotas of its own groups");
    available_put("cpu.max", "600000 200000\n");
    ok(quota_of("0::/job\n") == 3 && quota_of("0::/\n") == 3 && quota_of(NULL) == 3,
       "a container sees its quota in the folder of all groups");
    available_put("cpu.max", NULL);
    available_group("cpu,cpuacct/job/step", "cpu.cfs_quota_us", "-1\n");
    available_group("cpu,cpuacct/job/step", "cpu.cfs_period_us", "100000\n");
    ok(quota_of("4:memory:/job\n3:cpu,cpuacct:/job/step\n0::/\n") == INT64_MAX,
       "in control groups of version 1 without a quota there is no limit");
    available_group("cpu,cpuacct/job", "cpu.cfs_quota_us", "200000\n");
    available_group("cpu,cpuacct/job", "cpu.cfs_period_us", "100000\n");
    ok(quota_of("4:memory:/job\n3:cpu,cpuacct:/job/step\n0::/\n") == 2,
       "in control groups of version 1 a quota of the parent group is found");
    ok(quota_of("3:cpuset:/job/step\n") == INT64_MAX, "the quota of another controller is not used");
    snprintf(command, sizeof command, "rm -r %s/*", folder);
    ok(system(command) == 0, "the tree of control groups is removed");
}

int main(void)
{
    static const char stat[] = "anon 700\nfile 900\nworkingset_refault_anon 0\ninactive_anon 5\ninactive_file 300\n"
                               "active_file 600\n";
    char              longer[2048] = "";
    int64_t           available;

    if (!ok(mkdtemp(folder) != NULL, "a folder for the test is made")) return done();
    while (strlen(longer) < 1500) strcat(longer, "something_else 123456789\n");
    strcat(longer, "inactive_file 300\n");
    available_check("max\n", "1600\n", stat, INT64_MAX, "a container without a limit");
    available_check(NULL, NULL, NULL, INT64_MAX, "no control group");
    available_check("10000\n", "1600\n", stat, 8700, "the limit, less what is used, but for pages of files");
    available_check("10000\n", "1600\n", longer, 8700, "where there is much else in the statistics");
    available_check("10000\n", "1600\n", NULL, 8400, "without statistics, less all that is used");
    available_check("10000\n", NULL, NULL, 10000, "the limit alone, where that is all there is");
    available_check("10000\n", "200\n", stat, 10000, "never more than the limit");
    available_check("1000\n", "1600\n", stat, 0, "nothing, where too much is used");
    available_put("memory.max", NULL);
    available_put("memory.current", NULL);
    available_put("memory.stat", NULL);
    available_put("memory.limit_in_bytes", "10000\n");
    available_put("memory.usage_in_bytes", "1600\n");
    available_check(NULL, NULL, "cache 900\ntotal_inactive_file 300\n", 8700, "version 1");
    test_quotas();
    rmdir(folder);
    available = gr_memory_available();
    ok(available > 1000000 && available < INT64_MAX, "the machine has %.1f MB of available memory",
       (double)available * 1e-6);
    return done();
}
