/* Splits the edges of a graph.
 * SPDX-License-Identifier: Apache-2.0 */
#include "pairs.h"

enum { VALIDATION_PERCENT = 5, TEST_PERCENT = 10 };

static const int32_t *columns(const graft_csr *graph)
{
    return graph->col_idx;
}

static int has_entry(const graft_csr *graph, int32_t row, int32_t column)
{
    int64_t low = graph->row_ptr[row], high = graph->row_ptr[row + 1];

    while (low < high) {
        const int64_t middle = low + (high - low) / 2;

        if (columns(graph)[middle] < column) low = middle + 1;
        else high = middle;
    }
    return low < graph->row_ptr[row + 1] && columns(graph)[low] == column;
}

int has_pair(const graft_csr *graph, int32_t u, int32_t v)
{
    return has_entry(graph, u, v) || has_entry(graph, v, u);
}

static enum part part_of(const struct host *host, int32_t u, int32_t v)
{
    const uint64_t low = (uint64_t)(u < v ? u : v), high = (uint64_t)(u < v ? v : u);
    const uint64_t percent = draw(host->seed, low, high) % 100;

    return percent < TEST_PERCENT                        ? PART_TEST
           : percent < TEST_PERCENT + VALIDATION_PERCENT ? PART_VALIDATION
                                                         : PART_TRAIN;
}

/* Check that the columns of each row are in ascending order, because two searches need that. */
static int32_t check_graph(struct host *host, const graft_csr *graph)
{
    if (graph->index_type != GRAFT_I32 || graph->n_rows != graph->n_cols)
        return host_fail(host, GRAFT_ERR_FORMAT, "the graph must be square with indices of 32 bits");
    for (int64_t v = 0; v < graph->n_rows; v++)
        for (int64_t e = graph->row_ptr[v] + 1; e < graph->row_ptr[v + 1]; e++)
            if (columns(graph)[e] <= columns(graph)[e - 1])
                return host_fail(host, GRAFT_ERR_FORMAT, "the neighbours of vertex %lld do not ascend", (long long)v);
    return GRAFT_OK;
}

/* Count the pairs and the training edges. With `fill`, also write them. */
static void distribute(const struct host *host, struct split *split, int fill)
{
    const graft_csr *whole = split->whole;
    int64_t          count[PARTS] = { 0 }, edges = 0;

    for (int32_t row = 0; row < split->n; row++) {
        for (int64_t e = whole->row_ptr[row]; e < whole->row_ptr[row + 1]; e++) {
            const int32_t   column = columns(whole)[e];
            const enum part part = part_of(host, row, column);

            if (part == PART_TRAIN || row == column) {
                if (fill) split->col_idx[edges] = column;
                edges++;
            }
        }
        split->row_ptr[row + 1] = edges;
    }
    for (int32_t u = 0; u < split->n; u++) {
        for (int64_t e = whole->row_ptr[u]; e < whole->row_ptr[u + 1]; e++) {
            const int32_t   v = columns(whole)[e];
            const enum part part = part_of(host, u, v);

            if (v == u || (v > u && has_entry(whole, v, u))) continue; /* the pair is counted in the row of v */
            if (fill) split->part[part].target[count[part]] = v;
            count[part]++;
        }
        for (int part = 0; part < PARTS; part++) split->part[part].begin[u + 1] = count[part];
    }
}

int32_t split_create(struct host *host, const graft_csr *whole, struct split *split)
{
    int32_t rc = check_graph(host, whole);

    if (rc < 0) return rc;
    split->whole = whole;
    split->n = whole->n_rows;
    split->row_ptr = host_alloc(host, split->n + 1, sizeof *split->row_ptr);
    for (int part = 0; part < PARTS; part++)
        split->part[part].begin = host_alloc(host, split->n + 1, sizeof *split->part[part].begin);
    if (host->error.code < 0) return host->error.code;
    distribute(host, split, 0);
    split->col_idx = host_alloc(host, split->row_ptr[split->n], sizeof *split->col_idx);
    for (int part = 0; part < PARTS; part++)
        split->part[part].target =
            host_alloc(host, count_pairs(split, (enum part)part), sizeof *split->part[part].target);
    if (host->error.code < 0) return host->error.code;
    distribute(host, split, 1);
    for (int part = 0; part < PARTS; part++)
        if (count_pairs(split, (enum part)part) == 0)
            return host_fail(host, GRAFT_ERR_FORMAT, "the graph has too few edges to train, validate and test");
    split->graph = GRAFT_INIT(graft_csr);
    split->graph.index_type = GRAFT_I32;
    split->graph.n_rows = split->graph.n_cols = split->n;
    split->graph.row_ptr = split->row_ptr;
    split->graph.col_idx = split->col_idx;
    return GRAFT_OK;
}

void split_free(struct split *split)
{
    for (int part = 0; part < PARTS; part++) {
        free(split->part[part].begin);
        free(split->part[part].target);
    }
    free(split->row_ptr);
    free(split->col_idx);
}
