/* Method stream: vertices one after the other.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/assert.h"
#include "partition/loads.h"

/* The first pass does not know the neighbours that follow: alone it cuts 1.7 times as many edges of the Debian graph.
 * More passes than this gain little. */
enum { PASSES = 5 };

/* Assign one vertex, given the owners of the others; -1: not assigned yet. */
static void assign_vertex(struct gr_loads *loads, const struct gr_slice *slice, int64_t row, int32_t *mine)
{
    int64_t weight[GR_SHARES];
    int32_t part;

    gr_slice_weigh(slice, row, weight);
    part = gr_loads_nearest(loads, slice, row, weight, mine);
    if (part < 0) part = gr_loads_least(loads, weight);
    GR_ASSERT(part >= 0 && part < loads->parts);
    gr_loads_add(loads, part, weight, 1);
    mine[row] = part;
}

/* Vertices one after the other, each to the part with the most of its neighbours, weighted by the space left there:
 * linear deterministic greedy (Stanton and Kliot, KDD 2012) with the maximum over the quantities as the load. Further
 * passes begin with empty parts, and use the previous owners of vertices that have no new one (Nishimura and Ugander,
 * KDD 2013). A vertex that fits nowhere goes to the part that it overfills least; at the end overfull parts are
 * relieved as in gr_partition_repair(). A part then has at most GR_PARTITION_LIMIT times the mean of each quantity, or
 * one vertex more where vertices are few or heavy.
 *
 * Each slice balances its own vertices, so all slices together are balanced too. Only rows are followed, so the
 * matrix should be symmetric. O(entries + n_rows log parts), O(parts) for a vertex that fits nowhere; at most 60 bytes
 * per part. */
int32_t gr_partition_stream(const struct gr_partition_input *input, int32_t *mine, graft_error *error)
{
    const struct gr_slice *slice = input->slice;
    const int64_t          n_rows = slice->rows->n_rows;
    int64_t                total[GR_SHARES];
    struct gr_loads        loads;
    int32_t                rc;

    gr_slice_total(slice, total);
    rc = gr_loads_init(input->context, &loads, total, input->parts, error);
    if (rc < 0) return rc;
    for (int64_t row = 0; row < n_rows; row++) mine[row] = -1;
    for (int pass = 0; pass < PASSES; pass++) {
        gr_loads_clear(&loads);
        for (int64_t row = 0; row < n_rows; row++) assign_vertex(&loads, slice, row, mine);
    }
    gr_loads_relieve(&loads, slice, mine);
    gr_loads_fini(input->context, &loads);
    return GRAFT_OK;
}
