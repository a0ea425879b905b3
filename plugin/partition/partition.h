/* Partitions: which of several parts owns each vertex, by four methods; what a partition costs; and making a bad one
 * good. All of it on one process, on rows and arrays that are there.
 *
 * A process may have the rows of a slice of the vertices only. Then it deals out its own vertices, and neighbours in
 * other slices count as if they had no owner.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GR_PARTITION_PARTITION_H
#define GR_PARTITION_PARTITION_H

#include "graph/csr.h"

/** What a partition shall share out evenly: each vertex has one of each. */
enum { GR_SHARE_VERTICES, GR_SHARE_ENTRIES, GR_SHARE_TRAINED, GR_SHARES };

/** The most that a part should have of anything, of the mean: what METIS calls the load imbalance. Of few vertices a
 *  part may have the mean rounded up, whatever this says. */
#define GR_PARTITION_LIMIT 1.05

/** Rows of a graph: row i is that of vertex first + i, and holds the vertices it gathers from, of all n_cols. */
struct gr_slice {
    const graft_csr *rows; /* trusted: checked before */
    int64_t          first;
    const uint8_t   *trained; /* [n_rows] not 0 for vertices to train on; or NULL, if there are none */
};

/** What a vertex of the slice has of everything. */
static inline void gr_slice_weigh(const struct gr_slice *slice, int64_t row, int64_t weight[GR_SHARES])
{
    weight[GR_SHARE_VERTICES] = 1;
    weight[GR_SHARE_ENTRIES] = slice->rows->row_ptr[row + 1] - slice->rows->row_ptr[row];
    weight[GR_SHARE_TRAINED] = slice->trained != NULL && slice->trained[row] != 0;
}

/** What all vertices of the slice have. */
void gr_slice_total(const struct gr_slice *slice, int64_t total[GR_SHARES]);

/** What a graph is known by: each entry (row, column) adds a number, so the sum is the same however the rows are
 *  sliced; add those of all slices, modulo 2^64. Values do not count, repeated entries do. */
uint64_t gr_slice_fingerprint(const struct gr_slice *slice);

/** Contiguous ranges, equal by vertices and entries together: a vertex goes to part floor(parts * s), where s is the
 *  mean of the shares of vertices and of entries that lie before the middle of it.
 * \param[in]  before  What the slices before this one have (gr_slice_total(), summed); zeros for the first.
 * \param[in]  total   What all slices have. Owners do not depend on how the graph is sliced.
 * \param[out] mine    [n_rows] The owners of the vertices of this slice. Training vertices are not looked at: those
 *                     that lie together a range cannot part. */
void gr_partition_block(const struct gr_slice *slice, const int64_t before[GR_SHARES], const int64_t total[GR_SHARES],
                        int32_t parts, int32_t *mine);

/** By a hash of the vertex: no part has more of anything than chance gives it, and most entries are cut. */
void gr_partition_hash(int64_t first, int64_t count, int32_t parts, int32_t *mine);

/** Vertices one after the other, each to the part with the most of its neighbours, weighed by the room there: linear
 *  deterministic greedy (Stanton and Kliot, KDD 2012) with the fullest of vertices, entries and training vertices as
 *  the load; then some times again from empty parts, with the owners of the time before where the new ones are not
 *  known yet (Nishimura and Ugander, KDD 2013). Where a vertex fits nowhere it goes to the part that it overfills
 *  least, and in the end parts with too much are relieved as by gr_partition_repair(): a part has at most
 *  GR_PARTITION_LIMIT times the mean of anything, and in graphs of few or heavy vertices up to one vertex more.
 *
 *  The mean is that of this slice, so every slice deals its own vertices evenly, and all together are even too. Only
 *  rows are followed, so the matrix should be symmetric.
 *
 * \param[out] mine  [n_rows] The owners of the vertices of this slice.
 * \return OK; ERR_NOMEM, and owners are as they were. O(entries + n_rows log parts), and O(parts) for a
 *          vertex that fits nowhere; at most 60 bytes per part. */
int32_t gr_partition_stream(const graft_context *context, const struct gr_slice *slice, int32_t parts, int32_t *mine,
                            graft_error *error);

/** Make a partition good that came from elsewhere: vertices whose owner is out of range get one, parts without a vertex
 *  get one if there are as many vertices in the slice as parts, and vertices leave parts that have more than
 *  GR_PARTITION_LIMIT times the mean of anything, as long as that makes what parts have over it less in all. They go to
 *  where most of their neighbours are if they fit there.
 * \param[in,out] mine   [n_rows] The owners of the vertices of this slice: any numbers.
 * \param[out]    moved  How many vertices have another owner now.
 * \return OK; ERR_NOMEM, and owners are as they were. A few passes over the entries; 4 bytes per row and
 *          at most 60 per part. */
int32_t gr_partition_repair(const graft_context *context, const struct gr_slice *slice, int32_t parts, int32_t *mine,
                            int64_t *moved, graft_error *error);

/** Which rows serve the cut entries of a pair of parts, as option halo.cover has it. */
enum gr_rows {
    GR_ROWS_LEAST, /* post or pre, whichever are fewer; the hybrid cover never has more */
    GR_ROWS_POST,  /* distinct sources */
    GR_ROWS_PRE,   /* distinct targets */
    GR_ROWS_KINDS
};

/** Of one part of a partition. A row that two parts want from a third counts twice. */
struct gr_part_measure {
    int64_t has[GR_SHARES];
    int64_t cut; /* entries whose column is owned by another */
    int64_t sent[GR_ROWS_KINDS], received[GR_ROWS_KINDS];
};

/** Of a partition. */
struct gr_partition_measure {
    int32_t                 parts;
    int64_t                 cut;
    int64_t                 rows[GR_ROWS_KINDS];  /* in all */
    double                  imbalance[GR_SHARES]; /* the most that a part has, of the mean; 1 if there is nothing */
    struct gr_part_measure *part;                 /* [parts] */
    int64_t                *post_rows, *pre_rows; /* [parts x parts] at receiver * parts + sender: distinct sources of
                                                     the cut entries, distinct targets */
};

/** Measure a partition. The slice has all rows of each part that is to be measured; the whole graph, for instance.
 * \param[in] owner  [n_cols] 0 to parts-1.
 * \return OK; ERR_NOMEM. O(entries + parts^2). Free with gr_partition_measure_fini(). */
int32_t gr_partition_measure_init(const graft_context *context, struct gr_partition_measure *measure,
                                  const struct gr_slice *slice, int32_t parts, const int32_t *owner,
                                  graft_error *error);
void    gr_partition_measure_fini(const graft_context *context, struct gr_partition_measure *measure);

/** Seconds of an epoch: what one entry costs, one vertex, and one row that is sent, each over all layers and both
 *  directions. For layers of width w that take time e for an element of a sum over neighbours, with m floating-point
 *  operations per second and a network of b bytes per second:  entry = 2 w e,  vertex = 6 w^2 / m,  row = 8 w / b, each
 *  times the number of layers; with r bits for an element both ways row = 2 r / 8 w / b. */
struct gr_partition_cost {
    double       entry, vertex, row;
    enum gr_rows rows;
};

/** The predicted time of an epoch: that of the part with most to do, entries + vertices + the more of the rows that it
 *  sends and receives, for both go at once. */
double gr_partition_seconds(const struct gr_partition_measure *measure, const struct gr_partition_cost *cost);

#endif
