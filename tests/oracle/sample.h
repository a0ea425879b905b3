/* Samples for tests: numbers from a seed, sparse matrices with critical rows, and small data sets.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SAMPLE_H
#define SAMPLE_H

#include "graft_data.h"

/** A stream of pseudo-random numbers; `state` is the seed. */
struct sample {
    uint64_t state;
};

uint64_t sample_bits(struct sample *sample);
int64_t  sample_below(struct sample *sample, int64_t bound); /* 0 .. bound-1 */
double   sample_real(struct sample *sample, double low, double high);

/** A small multiple of 1/step, |x| <= limit/step: sums and products of these numbers have no rounding errors, in float
 *  too. */
double sample_exact(struct sample *sample, int64_t limit, int64_t step);

/** Store a number, or an index, in an array of this type. */
void sample_put(void *data, graft_dtype dtype, int64_t at, double value);

/** The number at an index of an array. */
double sample_at(const void *data, graft_dtype dtype, int64_t at);

/** Bytes of an element. */
uint64_t sample_bytes(graft_dtype dtype);

/** A sparse matrix that owns its arrays. */
struct sample_csr {
    graft_csr csr;
    int64_t  *row_ptr;
    void     *col_idx, *values;
};

/** The parameters of a random sparse matrix. */
struct sample_csr_shape {
    int64_t     n_rows, n_cols;
    graft_dtype index_type, value_type; /* value_type 0: no values */
    int         repeats;                /* 1: columns may come more than once in a row */
    int         exact;                  /* 1: values without rounding errors */
};

/** Rows of 0 to 6 entries in no order; every fifth row is empty, row 1 and the last row are hubs with all columns once,
 *  or with twice as many entries as columns if columns may repeat. */
void sample_csr_init_shape(struct sample_csr *sparse, struct sample *sample, const struct sample_csr_shape *shape);

/** The same, with repeated columns. */
void sample_csr_init(struct sample_csr *sparse, struct sample *sample, int64_t n_rows, int64_t n_cols,
                     graft_dtype index_type, graft_dtype value_type, int exact);
void sample_csr_fini(struct sample_csr *sparse);

/** Make the transpose, by looking for each column in every row. */
void sample_csr_transpose(struct sample_csr *transpose, const struct sample_csr *original);

/** A data set that owns its arrays: a directed graph without repeated edges, in which vertex 0 gathers from all
 *  vertices, some vertices gather from none, and all others gather from vertex 1. */
struct sample_dataset {
    graft_dataset     dataset;
    graft_dense       features, float_targets, edge_features;
    struct sample_csr graph, sparse;
    int32_t          *labels;
    uint8_t          *targets, *split;
};

/** `several`: targets of several classes, else labels, some of them -1. `sparse`: features as CSR with empty rows, else
 *  dense. Edges have SAMPLE_EDGE_FEATURES features from -1 to 1, rows with gaps between them. */
enum { SAMPLE_EDGE_FEATURES = 3 };
void sample_dataset_init(struct sample_dataset *set, struct sample *sample, int64_t n, int64_t d, int64_t classes,
                         int several, int sparse);
void sample_dataset_fini(struct sample_dataset *set);

/** Give it float targets instead of labels: rows with gaps between them, elements from -2 to 2; some elements and whole
 *  rows are unknown. */
void sample_dataset_regress(struct sample_dataset *set, struct sample *sample);

#endif
