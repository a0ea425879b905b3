/* A partitioning program that takes the place of graft-metis. Variable GRAFT_TEST_BEHAVIOUR selects how it misbehaves:
 * a wrong answer, a crash, a hang, or too much output.
 * SPDX-License-Identifier: Apache-2.0 */
#include "draft/graft_partitioner.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static graft_partitioner_input head;

static int is(const char *behaviour)
{
    const char *wanted = getenv("GRAFT_TEST_BEHAVIOUR");

    return wanted != NULL && strcmp(wanted, behaviour) == 0;
}

static void read_rest(void)
{
    char buffer[5000];

    while (read(STDIN_FILENO, buffer, sizeof buffer) > 0) continue;
}

static void write_all(const void *from, size_t bytes)
{
    for (ssize_t more; bytes > 0; bytes -= (size_t)more, from = (const char *)from + more) {
        more = write(STDOUT_FILENO, from, bytes);
        if (more <= 0) _exit(77);
    }
}

/* Whether this process has inherited files that it should not have: all above standard error, except for the guard. */
static int inherited_files(void)
{
    DIR           *list = opendir("/proc/self/fd");
    struct dirent *entry;
    int            count = 0;

    while ((entry = readdir(list)) != NULL) count += atoi(entry->d_name) > 2 && atoi(entry->d_name) != dirfd(list);
    closedir(list);
    return count;
}

static void answer(void)
{
    const graft_partitioner_output out = { is("magic") ? 7 : GRAFT_PARTITIONER_OUTPUT,
                                           head.n_vertices + is("vertices") };
    int32_t *owner = calloc((size_t)head.n_vertices + 1, sizeof *owner);

    for (int64_t v = 0; v < head.n_vertices; v++) owner[v] = (int32_t)(v % head.n_parts);
    if (is("range")) owner[head.n_vertices / 2] = (int32_t)head.n_parts;
    if (is("negative")) owner[0] = -1;
    if (is("one part")) memset(owner, 0, (size_t)head.n_vertices * sizeof *owner);
    write_all(&out, sizeof out);
    write_all(owner, (size_t)head.n_vertices * sizeof *owner - is("short") + is("long"));
    free(owner);
}

int main(void)
{
    if (is("deaf")) return 5;
    if (is("asleep")) sleep(100);
    if (read(STDIN_FILENO, &head, sizeof head) != (ssize_t)sizeof head) return 78;
    if (is("files") && inherited_files() != 1) return 79;
    if (head.reserved & GRAFT_PARTITIONER_ASK) {
        const graft_partitioner_output out = { GRAFT_PARTITIONER_OUTPUT, head.n_vertices };

        if (is("wide")) write_all(&out, sizeof out);
        else fprintf(stderr, "at most 2147483647 entries");
        return is("wide") ? 0 : GRAFT_PARTITIONER_TOO_LARGE;
    }
    if (is("early")) answer();
    if (is("stops reading")) return 0;
    read_rest();
    if (is("talks"))
        for (int i = 0; i < 20000; i++) fprintf(stderr, "step %d of many\n", i);
    if (is("dies")) raise(SIGKILL);
    if (is("fails")) fprintf(stderr, "metis: out of\tluck\n");
    if (is("fails")) return 4;
    if (is("sleeps")) sleep(100);
    if (is("slow")) sleep(3);
    if (is("closes")) close(STDIN_FILENO);
    if (is("closes")) close(STDOUT_FILENO);
    if (is("closes")) close(STDERR_FILENO);
    if (is("closes")) sleep(100);
    if (!is("early") && !is("silent")) answer();
    return is("answers and fails") ? 3 : 0;
}
