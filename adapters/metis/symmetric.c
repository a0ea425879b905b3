/* Makes a graph with both directions of every edge, each once, and without loops. METIS silently accepts other graphs
 * and gives wrong results.
 * SPDX-License-Identifier: Apache-2.0 */
#include "program.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Convert the ends of rows in `end` to the beginnings of the following rows. */
static void sum_up(int64_t *end, int64_t n)
{
    for (int64_t row = 0; row < n; row++) end[row + 1] += end[row];
}

/* Store both directions of all edges in any order, possibly repeated. begin[n + 1] receives the beginnings of rows. */
static idx_t *place_both(const struct metis_input *input, int64_t *begin)
{
    const int64_t n = input->head.n_vertices;
    int64_t      *next = metis_new(n + 1, sizeof *next);
    idx_t        *placed;

    for (int64_t row = 0; row < n; row++) {
        for (int64_t e = input->row_ptr[row]; e < input->row_ptr[row + 1]; e++) {
            if (input->column[e] == row) continue;
            begin[row + 1]++;
            begin[input->column[e] + 1]++;
        }
    }
    sum_up(begin, n);
    memcpy(next, begin, (size_t)n * sizeof *next);
    placed = metis_new(begin[n], sizeof *placed);
    for (int64_t row = 0; row < n; row++) {
        for (int64_t e = input->row_ptr[row]; e < input->row_ptr[row + 1]; e++) {
            if (input->column[e] == row) continue;
            placed[next[row]++] = input->column[e];
            placed[next[input->column[e]]++] = (idx_t)row;
        }
    }
    free(next);
    return placed;
}

/* Sort the rows. The stored matrix is symmetric, so its transpose is the same matrix with sorted rows. */
static idx_t *sort_rows(const idx_t *placed, const int64_t *begin, int64_t n)
{
    int64_t *next = metis_new(n + 1, sizeof *next);
    idx_t   *sorted = metis_new(begin[n], sizeof *sorted);

    memcpy(next, begin, (size_t)n * sizeof *next);
    for (int64_t row = 0; row < n; row++)
        for (int64_t e = begin[row]; e < begin[row + 1]; e++) sorted[next[placed[e]]++] = (idx_t)row;
    free(next);
    return sorted;
}

void metis_symmetrize(struct metis_graph *graph, struct metis_input *input)
{
    const int64_t n = input->head.n_vertices;
    int64_t      *begin = metis_new(n + 2, sizeof *begin), to = 0;
    idx_t        *placed = place_both(input, begin), *sorted;

    free(input->row_ptr);
    free(input->column);
    input->row_ptr = NULL;
    input->column = NULL;
    sorted = sort_rows(placed, begin, n);
    free(placed);
    graph->begin = metis_new(n + 1, sizeof *graph->begin);
    for (int64_t row = 0; row < n; row++) {
        const int64_t first = to;

        for (int64_t e = begin[row]; e < begin[row + 1]; e++)
            if (to == first || sorted[to - 1] != sorted[e]) sorted[to++] = sorted[e];
        if (to > metis_most())
            metis_die(GRAFT_PARTITIONER_TOO_LARGE,
                      "both directions of all edges exceed %" PRId64 " entries, the limit of METIS with %d-bit indices",
                      metis_most(), (int)(8 * sizeof(idx_t)));
        graph->begin[row + 1] = (idx_t)to;
    }
    graph->neighbour = sorted;
    free(begin);
}
