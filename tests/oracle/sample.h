/* Makes inputs for tests from a seed: numbers, sparse matrices with critical rows, and small data sets.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef SAMPLE_H
#define SAMPLE_H

#include "graft_data.h"

/** A stream of pseudo-random numbers. Its initial state is the seed. */
struct sample {
    uint64_t state;
};

uint64_t sample_bits(struct sample *sample);
int64_t  sample_below(struct sample *sample, int64_t bound); /* an integer from 0 to bound-1 */
double   sample_real(struct sample *sample, double low, double high);

/** A small multiple of 1/step with |x| <= limit/step. Sums and products of such numbers have no rounding errors, also
 *  in float. */
double sample_exact(struct sample *sample, int64_t limit, int64_t step);

/** Store a number, or an index, in an array of this type. */
void sample_put(void *data, graft_dtype dtype, int64_t at, double value);

/** The number at an index of an array of this type. */
double sample_at(const void *data, graft_dtype dtype, int64_t at);

/** The size of an element in bytes. */
uint64_t sample_bytes(graft_dtype dtype);

/** A CSR matrix that owns its arrays. */
struct sample_csr {
    graft_csr csr;
    int64_t  *row_ptr;
    void     *col_idx, *values;
};

/** The parameters of a random sparse matrix. */
struct sample_csr_shape {
    int64_t     n_rows, n_cols;
    graft_dtype index_type, value_type; /* types of indices and values; value_type is 0 for a matrix without values */
    int         repeats;                /* whether a column may occur more than once in a row */
    int         exact;                  /* whether values are such that their sums have no rounding errors */
};

/** Make rows of 0 to 6 entries in random order. Every fifth row is empty. Row 1 and the last row are hubs: they have
 * all columns once or, if columns may repeat, twice as many entries as there are columns. */
void sample_csr_init_shape(struct sample_csr *sparse, struct sample *sample, const struct sample_csr_shape *shape);

/** The same matrix with repeated columns. */
void sample_csr_init(struct sample_csr *sparse, struct sample *sample, int64_t n_rows, int64_t n_cols,
                     graft_dtype index_type, graft_dtype value_type, int exact);
void sample_csr_fini(struct sample_csr *sparse);

/** Make the transpose by searching every row for each column. */
void sample_csr_transpose(struct sample_csr *transpose, const struct sample_csr *original);

/** A data set that owns its arrays. Its graph is directed and has no repeated edges. Vertex 0 gathers from all
 * vertices, some vertices gather from none, and all others gather from vertex 1. */
struct sample_dataset {
    graft_dataset     dataset;
    graft_dense       features, float_targets, edge_features;
    struct sample_csr graph, sparse;
    int32_t          *labels;
    uint8_t          *targets, *split;
};

/** Make a data set. With `several` each vertex has several classes; otherwise it has one label, which is -1 for some
 * vertices. With `sparse` the features are in CSR and have empty rows; otherwise they are dense. Edges have
 * SAMPLE_EDGE_FEATURES features between -1 and 1, in rows with gaps. */
enum { SAMPLE_EDGE_FEATURES = 3 };
void sample_dataset_init(struct sample_dataset *set, struct sample *sample, int64_t n, int64_t d, int64_t classes,
                         int several, int sparse);
void sample_dataset_fini(struct sample_dataset *set);

/** Replace the labels by float targets between -2 and 2, in rows with gaps. Some elements and some whole rows are
 * unknown. */
void sample_dataset_regress(struct sample_dataset *set, struct sample *sample);

#endif
