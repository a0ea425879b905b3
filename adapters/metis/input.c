/* Reads a graph from standard input and checks it completely.
 * SPDX-License-Identifier: Apache-2.0 */
#include "program.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BUFFER = 1 << 16, MOST_WEIGHTS = 16 };

/* Read exactly `bytes` bytes. */
static void read_bytes(void *to, int64_t bytes, const char *what)
{
    for (int64_t have = 0; have < bytes;) {
        const ssize_t more = read(STDIN_FILENO, (char *)to + have, (size_t)(bytes - have));

        if (more < 0 && errno == EINTR) continue;
        if (more < 0) metis_die(GRAFT_PARTITIONER_NO_IO, "standard input cannot be read: %s", strerror(errno));
        if (more == 0)
            metis_die(GRAFT_PARTITIONER_BAD_INPUT, "standard input ends %" PRId64 " bytes too early, in the %s",
                      bytes - have, what);
        have += more;
    }
}

/* Read 64-bit numbers in the given range, and store them as indices of METIS. */
static void read_numbers(idx_t *to, int64_t count, int64_t high, const char *what)
{
    static int64_t buffer[BUFFER];

    for (int64_t at = 0; at < count;) {
        const int64_t some = count - at < BUFFER ? count - at : BUFFER;

        read_bytes(buffer, some * 8, what);
        for (int64_t i = 0; i < some; i++, at++) {
            if (buffer[i] < 0 || buffer[i] > high)
                metis_die(GRAFT_PARTITIONER_BAD_INPUT,
                          "number %" PRId64 " of the %s is %" PRId64 ", expected 0 to %" PRId64, at, what, buffer[i],
                          high);
            to[at] = (idx_t)buffer[i];
        }
    }
}

static void read_head(graft_partitioner_input *head)
{
    read_bytes(head, sizeof *head, "head");
    if (head->magic != GRAFT_PARTITIONER_INPUT)
        metis_die(GRAFT_PARTITIONER_BAD_INPUT,
                  "standard input begins with %016" PRIx64 ", expected %016" PRIx64
                  ": this program is started by libgraft.so, see abi/draft/graft_partitioner.h",
                  head->magic, GRAFT_PARTITIONER_INPUT);
    if ((head->reserved & ~GRAFT_PARTITIONER_ASK) != 0 || head->n_weights > MOST_WEIGHTS || head->n_parts < 1 ||
        head->n_vertices < 0 || head->n_edges < 0)
        metis_die(GRAFT_PARTITIONER_BAD_INPUT,
                  "%" PRId64 " parts of %" PRId64 " vertices with %" PRId64 " entries and %u weights each "
                  "(at most %d), reserved %u: not a valid graph",
                  head->n_parts, head->n_vertices, head->n_edges, head->n_weights, MOST_WEIGHTS, head->reserved);
    if (head->n_vertices >= metis_most() || head->n_edges > metis_most())
        metis_die(GRAFT_PARTITIONER_TOO_LARGE,
                  "%" PRId64 " vertices and %" PRId64
                  " entries: METIS is built with %d-bit indices and accepts at most %" PRId64 " vertices and %" PRId64
                  " entries",
                  head->n_vertices, head->n_edges, (int)(8 * sizeof(idx_t)), metis_most() - 1, metis_most());
    if (head->n_parts > INT32_MAX)
        metis_die(GRAFT_PARTITIONER_TOO_LARGE, "%" PRId64 " parts, expected at most %d", head->n_parts, INT32_MAX);
}

static void read_rows(struct metis_input *input)
{
    const graft_partitioner_input *head = &input->head;

    read_bytes(input->row_ptr, (head->n_vertices + 1) * 8, "row pointers");
    for (int64_t row = 0; row < head->n_vertices; row++)
        if (input->row_ptr[row + 1] < input->row_ptr[row])
            metis_die(GRAFT_PARTITIONER_BAD_INPUT, "row pointers decrease at row %" PRId64, row);
    if (input->row_ptr[0] != 0 || input->row_ptr[head->n_vertices] != head->n_edges)
        metis_die(GRAFT_PARTITIONER_BAD_INPUT,
                  "row pointers go from %" PRId64 " to %" PRId64 ", expected 0 to %" PRId64, input->row_ptr[0],
                  input->row_ptr[head->n_vertices], head->n_edges);
}

/* METIS divides by sums of weights, and stores these sums in an index. */
static void keep_weights_with_a_sum(struct metis_input *input)
{
    const int64_t n = input->head.n_vertices, had = input->head.n_weights;
    int64_t       sum[MOST_WEIGHTS] = { 0 }, to = 0;
    uint32_t      kept = 0;

    for (int64_t i = 0; i < n * had; i++) {
        if (input->weight[i] > metis_most() - sum[i % had])
            metis_die(GRAFT_PARTITIONER_TOO_LARGE,
                      "weights number %" PRId64 " have a larger sum than %" PRId64 ", the limit of METIS", i % had,
                      metis_most());
        sum[i % had] += input->weight[i];
    }
    for (int64_t k = 0; k < had; k++) kept += sum[k] > 0;
    for (int64_t i = 0; i < n * had; i++)
        if (sum[i % had] > 0) input->weight[to++] = input->weight[i];
    input->head.n_weights = kept;
}

void metis_read(struct metis_input *input)
{
    const graft_partitioner_input *head = &input->head;
    char                           more;

    read_head(&input->head);
    if (head->reserved & GRAFT_PARTITIONER_ASK) return;
    input->row_ptr = metis_new(head->n_vertices + 1, sizeof *input->row_ptr);
    input->column = metis_new(head->n_edges, sizeof *input->column);
    input->weight = metis_new(head->n_vertices * head->n_weights, sizeof *input->weight);
    read_rows(input);
    read_numbers(input->column, head->n_edges, head->n_vertices - 1, "columns");
    read_numbers(input->weight, head->n_vertices * head->n_weights, metis_most(), "weights");
    if (read(STDIN_FILENO, &more, 1) != 0)
        metis_die(GRAFT_PARTITIONER_BAD_INPUT, "standard input continues after the last weight");
    keep_weights_with_a_sum(input);
}
