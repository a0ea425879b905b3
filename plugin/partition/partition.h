/* Partitions: computes the owner of each vertex by one of several methods, predicts the cost of a partition, and
 * repairs partitions.
 *
 * A process may have only the rows of a slice of the vertices. Then it assigns its own vertices. Methods block and hash
 * do so alone; stream together with the ranks that have the other slices.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "graph/csr.h"
#include "partition/options.h"

/** The quantities that a partition balances; gr_partition_slice_weigh() gives the quantities of a vertex. */
enum { GR_SHARE_VERTICES, GR_SHARE_ENTRIES, GR_SHARE_TRAINED, GR_SHARES };

/** The largest allowed amount of any quantity in a part, relative to the mean; METIS calls this the load imbalance. A
 *  part may always have the mean rounded up, which matters for few vertices. */
#define GR_PARTITION_LIMIT 1.05

/** Rows of a graph: row i belongs to vertex first + i, and its columns are among all n_cols vertices. */
struct gr_slice {
    const graft_csr *rows; /* rows that have been checked */
    int64_t          first;
    const uint8_t   *train_mask; /* [n_rows] nonzero for training vertices; NULL: there are none */
};

/** Compute the quantities of one vertex of the slice. */
static inline void gr_partition_slice_weigh(const struct gr_slice *slice, int64_t row, int64_t weight[GR_SHARES])
{
    weight[GR_SHARE_VERTICES] = 1;
    weight[GR_SHARE_ENTRIES] = slice->rows->row_ptr[row + 1] - slice->rows->row_ptr[row];
    weight[GR_SHARE_TRAINED] = slice->train_mask != NULL && slice->train_mask[row] != 0;
}

/** Compute the sums of the quantities over all vertices of the slice. */
void gr_partition_slice_total(const struct gr_slice *slice, int64_t total[GR_SHARES]);

/** Compute the fingerprint of a slice: each entry (row, column) adds a number, so the sum over all slices, modulo 2^64,
 *  does not depend on the slices. Repeated entries count, values do not. */
uint64_t gr_partition_slice_fingerprint(const struct gr_slice *slice);

struct gr_comm;
struct gr_meanwhile;

/** The input of a partition method. */
struct gr_partition_input {
    const graft_context   *context;
    const struct gr_slice *slice;
    int32_t                parts;
    const int64_t *before; /* [GR_SHARES] gr_partition_slice_total() of the slices before this one; NULL: no slices */
    const int64_t *total;  /* [GR_SHARES] gr_partition_slice_total() of all slices; NULL: this slice has all
                                             vertices */
    const struct gr_meanwhile *meanwhile; /* called while a method waits; or NULL */
    struct gr_comm            *comm;      /* the ranks that have the slices; NULL: this slice has all vertices */
    const int64_t             *first;     /* [n_ranks + 1] the first vertex of each slice, if there is a comm */
};

#define GR_PARTITION_PROTOTYPE(constant, word, whole)                                                                  \
    int32_t gr_partition_##word(const struct gr_partition_input *input, int32_t *mine, graft_error *error);

/** Fill mine[n_rows], the owners of the vertices of the slice. \return OK; ERR_NOMEM; errors of the method. Owners are
 *  unchanged on failure. */
GR_PARTITION_MAP(GR_PARTITION_PROTOTYPE)
#undef GR_PARTITION_PROTOTYPE

/** The word of option partition for a method, AUTO and GIVEN included. */
const char *gr_partition_name(enum gr_partition_method method);

/** Whether a method needs the whole graph on one process; AUTO does. */
int gr_partition_needs_whole(enum gr_partition_method method);

/** Partition with a given method, which is not AUTO or GIVEN. \return as the functions of the methods above */
int32_t gr_partition_run(enum gr_partition_method method, const struct gr_partition_input *input, int32_t *mine,
                         graft_error *error);

/** Repair a partition made by a program. Vertices with an owner out of range get an owner; each empty part gets a
 *  vertex, if there are as many vertices as parts; and vertices leave parts that have more than GR_PARTITION_LIMIT
 *  times the mean of a quantity, while this reduces the total excess. They move to the part with most of their
 *  neighbours if they fit there. The slice must have all vertices.
 * \param[in,out] mine   [n_rows] The owners of the vertices: any numbers.
 * \param[out]    moved  The number of vertices with a new owner.
 * \return OK; ERR_NOMEM, and owners are unchanged. A few passes over the entries; 4 bytes per row and at most 60 per
 *         part. */
int32_t gr_partition_repair(const graft_context *context, const struct gr_slice *slice, int32_t parts, int32_t *mine,
                            int64_t *moved, graft_error *error);

/** Which rows are sent for the cut edges of a pair of parts, as option halo.cover says. */
enum gr_rows {
    GR_ROWS_LEAST, /* the smaller of the two below; the hybrid cover never has more */
    GR_ROWS_POST,  /* one row for each distinct source */
    GR_ROWS_PRE,   /* one row for each distinct target */
    GR_ROWS_KINDS
};

/** The measure of one part. A row that two parts need from a third counts twice. */
struct gr_part_measure {
    int64_t has[GR_SHARES];
    int64_t cut; /* entries whose column has another owner */
    int64_t sent[GR_ROWS_KINDS], received[GR_ROWS_KINDS];
};

/** The measure of a partition. */
struct gr_partition_measure {
    int32_t parts;
    int64_t cut;
    int64_t rows[GR_ROWS_KINDS];   /* sum over all pairs of parts */
    double  imbalance[GR_SHARES];  /* the maximum over the parts divided by the mean; 1 if the total is 0 */
    struct gr_part_measure *part;  /* [parts] measure of each part */
    int64_t *post_rows, *pre_rows; /* [parts x parts] at receiver * parts + sender: distinct sources, targets of cut
                                      edges */
};

/** Measure a partition. The slice must have all rows of each part to be measured.
 *  \param[in] owner [n_cols] The part of each vertex, 0 to parts-1.
 *  \return OK; ERR_NOMEM. O(entries + parts^2). gr_partition_measure_fini() frees it. */
int32_t gr_partition_measure_init(const graft_context *context, struct gr_partition_measure *measure,
                                  const struct gr_slice *slice, int32_t parts, const int32_t *owner,
                                  graft_error *error);
void    gr_partition_measure_fini(const graft_context *context, struct gr_partition_measure *measure);

/** The seconds of an epoch for one entry, one vertex and one row sent, each over all layers and both directions. With
 *  layers of width w, e seconds for an element of a sum over neighbours, m floating-point operations per second, r bits
 *  per element and a bandwidth of b bytes per second, they are entry = 2 w e, vertex = 6 w^2 / m, row = 2 r / 8 w / b,
 *  each times the number of layers. */
struct gr_partition_cost {
    double       entry, vertex, row;
    enum gr_rows rows;
};

/** The predicted seconds of an epoch: the maximum over the parts of entries + vertices + the larger of the rows sent
 *  and received, because both directions of the network work at once. */
double gr_partition_seconds(const struct gr_partition_measure *measure, const struct gr_partition_cost *cost);
