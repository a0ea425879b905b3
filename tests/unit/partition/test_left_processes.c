/* Checks that no process of a partitioning program is left when the call returns, or when the host is killed:
 * test_left_processes PARTITIONER.
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness/graphs.h"
#include "harness/strict_host.h"
#include "harness/tap.h"

#include "base/clock.h"
#include "partition/metis.h"

#include <dirent.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static struct strict_host        host;
static graft_context            *context;
static struct graph              graph;
static struct gr_partition_input input;

static void left_choose(const char *program, const char *timeout, const char *behaviour)
{
    graft_error error = GRAFT_INIT(graft_error);
    char        partition[32];

    snprintf(partition, sizeof partition, "metis:0:%s", timeout);
    if (context->api->set(context, "partition.program", program, &error) < 0 ||
        context->api->set(context, "partition", partition, &error) < 0)
        abort();
    setenv("GRAFT_TEST_BEHAVIOUR", behaviour, 1);
}

/* How many processes have the mark in their environment. */
static int marked_processes(const char *mark)
{
    DIR *list = opendir("/proc");
    int  count = 0;

    for (const struct dirent *entry; (entry = readdir(list)) != NULL;) {
        char   path[300], environment[1 << 15];
        FILE  *file;
        size_t length;

        snprintf(path, sizeof path, "/proc/%s/environ", entry->d_name);
        file = entry->d_name[0] >= '1' && entry->d_name[0] <= '9' ? fopen(path, "re") : NULL;
        if (file == NULL) continue;
        length = fread(environment, 1, sizeof environment, file);
        count += memmem(environment, length, mark, strlen(mark)) != NULL;
        fclose(file);
    }
    closedir(list);
    return count;
}

/* Wait until there are so many processes. The result is the last number seen. */
static int wait_for_processes(const char *mark, int count, double timeout)
{
    const double end = gr_seconds() + timeout;

    while (marked_processes(mark) != count && gr_seconds() < end) usleep(20000);
    return marked_processes(mark);
}

/* Write a script whose last line runs the program, after the lines in `first`. */
static void make_script(const char *path, const char *first, const char *program)
{
    FILE *file = fopen(path, "w");

    if (file == NULL || fprintf(file, "#!/bin/sh\n%s\n\"%s\"\n", first, program) < 0 || fclose(file) != 0 ||
        chmod(path, 0755) != 0)
        abort();
}

/* Kill a host while its program runs. The thread that started the program lives until then. */
static void test_killed_host(const char *program, const char *behaviour, int processes, const char *mark,
                             const char *name)
{
    graft_error error = GRAFT_INIT(graft_error);
    int32_t    *owner = oracle_new(graph.rows.n_rows, sizeof *owner);
    pid_t       pid;
    int         ran, left;

    left_choose(program, "60", behaviour);
    pid = fork();
    if (pid == 0) _exit(gr_partition_metis(&input, owner, &error) == GRAFT_OK);
    ran = wait_for_processes(mark, processes, 20);
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    left = wait_for_processes(mark, 0, 2);
    if (!ok(ran == processes && left == 0, "when a host is killed, its process ends too: %s", name))
        diag("of %d, %d left", ran, left);
    free(owner);
}

static void test_left_processes(const char *program)
{
    static const char children[] = "sleep 100 &\n(sleep 100; true) &\n";
    static const char silent[] = "sleep 100 < /dev/null > /dev/null 2>&1 &\n";
    graft_error       error = GRAFT_INIT(graft_error);
    int32_t          *owner = oracle_new(graph.rows.n_rows, sizeof *owner);
    char              folder[] = "/tmp/graft-script-XXXXXX", script[64], mark[32];

    if (mkdtemp(folder) == NULL) abort();
    snprintf(script, sizeof script, "%s/script", folder);
    snprintf(mark, sizeof mark, "%d", (int)getpid());
    setenv("GRAFT_TEST_MARK", mark, 1);
    snprintf(mark, sizeof mark, "GRAFT_TEST_MARK=%d", (int)getpid());
    test_killed_host(program, "asleep", 1, mark, "a program that does not read");
    test_killed_host(program, "sleeps", 1, mark, "a program that has read");
    test_killed_host(program, "closes", 1, mark, "a program without files");
    make_script(script, children, program);
    test_killed_host(script, "sleeps", 5, mark, "a script with its children");
    left_choose(script, "1", "sleeps");
    ok(gr_partition_metis(&input, owner, &error) == GRAFT_ERR_MODULE && wait_for_processes(mark, 0, 2) == 0,
       "a script that takes too long is ended with its children");
    make_script(script, silent, program);
    left_choose(script, "60", "good");
    ok(gr_partition_metis(&input, owner, &error) == GRAFT_OK && wait_for_processes(mark, 0, 2) == 0,
       "a script that ends leaves no child processes");
    unsetenv("GRAFT_TEST_MARK");
    unlink(script);
    rmdir(folder);
    free(owner);
}

int main(int argc, char **argv)
{
    const graft_api *api = NULL;
    graft_error      error = GRAFT_INIT(graft_error);

    if (argc < 2) return 2;
    strict_host_init(&host);
    if (graft_open(GRAFT_ABI_VERSION, GRAFT_ABI_VERSION, &host.table, &api, &error) < 0) return 2;
    context = api->context;
    graph_init(&graph, 5);
    input = (struct gr_partition_input){ .context = context, .slice = &graph.slice, .parts = 8 };
    test_left_processes(argv[1]);
    graph_fini(&graph);
    api->close(context);
    return done();
}
