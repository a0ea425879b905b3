/* The memory that a container may still take, from control groups that the test makes.
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness/tap.h"

#include "base/available.h"

#include <string.h>
#include <unistd.h>

static char folder[] = "/tmp/graft-available-XXXXXX";

/* Write a file of the group; NULL: it is not there. */
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
    ok(found == expected, "%s: %lld", name, (long long)found);
}

int main(void)
{
    static const char stat[] = "anon 700\nfile 900\nworkingset_refault_anon 0\ninactive_anon 5\ninactive_file 300\n"
                               "active_file 600\n";
    char              longer[2048] = "";
    int64_t           available;

    if (!ok(mkdtemp(folder) != NULL, "there is a folder to write to")) return done();
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
    rmdir(folder);
    available = gr_memory_available();
    ok(available > 1000000 && available < INT64_MAX, "the machine has %.1f MB to give", (double)available * 1e-6);
    return done();
}
