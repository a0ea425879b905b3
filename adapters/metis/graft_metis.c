/* graft-metis runs METIS in a separate process, because METIS may exit, raise signals, print, and crash on invalid
 * graphs. The graph is read from standard input and owners are written to standard output, in the format of
 * abi/draft/graft_partitioner.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "program.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { SEED = 1, GUARD_FILE = 3 };

void metis_die(int code, const char *format, ...)
{
    va_list list;

    va_start(list, format);
    vfprintf(stderr, format, list);
    va_end(list);
    fputs("\n", stderr);
    _exit(code);
}

void *metis_new(int64_t count, size_t bytes)
{
    void *memory = calloc((size_t)count + 1, bytes);

    if (memory == NULL)
        metis_die(GRAFT_PARTITIONER_NO_MEMORY, "out of memory for %" PRId64 " numbers of %zu bytes", count, bytes);
    return memory;
}

/* End this process when the host ends, even if processes that the host has forked keep the guard open. A host that has
 * ended before this call has closed the guard. */
static void end_with_host(void)
{
    struct pollfd guard = { .fd = GUARD_FILE };

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (poll(&guard, 1, 0) > 0 && (guard.revents & POLLHUP)) _exit(GRAFT_PARTITIONER_NO_IO);
}

/* Discard the output of METIS, so that it does not mix with the owners. Returns the descriptor to which owners are
 * written. */
static int take_standard_output(void)
{
    const int output = dup(STDOUT_FILENO);

    if (output < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
        metis_die(GRAFT_PARTITIONER_NO_IO, "standard output cannot be used: %s", strerror(errno));
    return output;
}

static void partition(struct metis_input *input, idx_t *owner)
{
    idx_t              n = (idx_t)input->head.n_vertices, parts = (idx_t)input->head.n_parts, cut = 0;
    idx_t              constraints = (idx_t)input->head.n_weights, options[METIS_NOPTIONS];
    struct metis_graph graph;
    int                rc;

    metis_symmetrize(&graph, input);
    METIS_SetDefaultOptions(options);
    options[METIS_OPTION_NUMBERING] = 0;
    options[METIS_OPTION_SEED] = SEED;
    rc = METIS_PartGraphKway(&n, constraints > 0 ? &constraints : (idx_t[]){ 1 }, graph.begin, graph.neighbour,
                             constraints > 0 ? input->weight : NULL, NULL, NULL, &parts, NULL, NULL, options, &cut,
                             owner);
    if (rc == METIS_ERROR_MEMORY) metis_die(GRAFT_PARTITIONER_NO_MEMORY, "METIS ran out of memory");
    if (rc != METIS_OK) metis_die(GRAFT_PARTITIONER_FAILED, "METIS failed with code %d", rc);
    free(graph.begin);
    free(graph.neighbour);
}

/* Convert indices of METIS to the owners of the answer, in place. */
static void narrow(idx_t *owner, int64_t count)
{
    for (int64_t v = 0; v < count; v++) {
        const int32_t part = (int32_t)owner[v];

        memcpy((char *)owner + v * (int64_t)sizeof part, &part, sizeof part);
    }
}

static void write_bytes(int output, const void *from, int64_t bytes)
{
    for (int64_t done = 0; done < bytes;) {
        const ssize_t more = write(output, (const char *)from + done, (size_t)(bytes - done));

        if (more < 0 && errno != EINTR)
            metis_die(GRAFT_PARTITIONER_NO_IO, "standard output cannot be written: %s", strerror(errno));
        if (more > 0) done += more;
    }
}

/* Describe the program to people who start it by hand. */
static int describe(const char *argument)
{
    static const char usage[] = "usage: graft-metis [--help | --version]\n"
                                "Partitions a graph with METIS, for the Graft library: standard input and output are\n"
                                "binary, see graft/draft/graft_partitioner.h.\n"
                                "  --help     print this text\n"
                                "  --version  print the release\n";

    if (strcmp(argument, "--version") == 0)
        return printf("graft-metis: Graft %s\n", GRAFT_RELEASE) < 0 ? GRAFT_PARTITIONER_NO_IO : GRAFT_PARTITIONER_OK;
    if (strcmp(argument, "--help") != 0) metis_die(GRAFT_PARTITIONER_BAD_INPUT, "unknown argument; %s", usage);
    return fputs(usage, stdout) < 0 ? GRAFT_PARTITIONER_NO_IO : GRAFT_PARTITIONER_OK;
}

int main(int argc, char **argv)
{
    struct metis_input       input = { 0 };
    graft_partitioner_output head = { .magic = GRAFT_PARTITIONER_OUTPUT };
    idx_t                   *owner;
    int                      output;

    if (argc > 1) return describe(argv[1]);
    end_with_host();
    output = take_standard_output();
    metis_read(&input);
    head.n_vertices = input.head.n_vertices;
    if (input.head.reserved & GRAFT_PARTITIONER_ASK) {
        write_bytes(output, &head, sizeof head);
        return GRAFT_PARTITIONER_OK;
    }
    owner = metis_new(head.n_vertices, sizeof *owner);
    /* METIS writes no owners for a single part, and leaves most parts empty if there are too many. */
    if (input.head.n_parts >= head.n_vertices)
        for (int64_t v = 0; v < head.n_vertices; v++) owner[v] = (idx_t)v;
    else if (input.head.n_parts > 1) partition(&input, owner);
    write_bytes(output, &head, sizeof head);
    narrow(owner, head.n_vertices);
    write_bytes(output, owner, head.n_vertices * (int64_t)sizeof(int32_t));
    free(owner);
    free(input.row_ptr);
    free(input.column);
    free(input.weight);
    return GRAFT_PARTITIONER_OK;
}
