/* The data set of the host: its arrays after checks; over ranks, the rows of the owned vertices. This room knows no
 * model and no graph other than the host's.
 *
 * read.c   reading of the host's structs, loans of their arrays   check.c   checks of values
 * types.c  conversion of features of 16 and 8 bits to floats      ranks.c   exchange of rows, slices to owners and back
 * update.c replacement of arrays
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/budget.h"
#include "base/loan.h"
#include "comm/agreement.h"
#include "comm/collective.h"
#include "dgraph/graph.h"
#include "graft_train.h"
#include "model/targets.h"

/** Dense features of the host. */
struct gr_features {
    graft_dense  x;            /* values of type F32, F16, BF16 or U8 */
    const float *scale, *zero; /* [columns] scale and zero of type U8; NULL for other types */
};

/** A data set. Its arrays are borrowed from the host, or copies whose bytes the budget counts. */
struct gr_dataset {
    graft_context     *context;
    struct gr_budget  *budget;
    int                threads;
    graft_dataset      given; /* the struct of the host */
    struct gr_loans    loans;
    graft_csr          graph, sparse_features;
    int64_t           *row_ptr[2]; /* copies of row pointers of `graph`, `sparse_features`; NULL: they have 64 bits */
    struct gr_features features;
    graft_dtype        feature_type; /* type of the host's features; on a rank without rows it may differ from others */
    float             *feature_scale; /* [2 x n_features] copies of scale and zero, or NULL */
    void              *owned; /* over ranks: dense features of the owned vertices, unless the model has a copy */
    graft_dense        edge_features;
    graft_graph       *over;             /* the graph over ranks; NULL: one process */
    int64_t            n;                /* number of rows of arrays; over ranks, of owned vertices */
    int                features_checked; /* all rows have been checked; else batches check the rows that they read */
    int                regresses;        /* the model learns float targets instead of classes */
};

/** The arrays of gr_targets by index. Strides are in bytes. */
enum { GR_TARGET_LABELS, GR_TARGET_CLASSES, GR_TARGET_VALUES, GR_TARGET_SPLIT, GR_TARGET_ARRAYS };
struct gr_target_array {
    const char *name;
    uint32_t    what; /* its bit in updates: GRAFT_UPDATE_... */
    const void *data; /* the array; NULL: not given */
    int64_t     bytes, stride;
};
struct gr_target_array gr_dataset_target_array(const struct gr_targets *targets, int array);
void gr_dataset_set_target_array(struct gr_targets *targets, int array, const void *data, int64_t stride);

/** The number of rows of the host's arrays on this rank; and the vertex of the first row. */
static inline int64_t gr_dataset_host_rows(const struct gr_dataset *data)
{
    return data->over != NULL ? data->over->n_slice : data->n;
}

static inline int64_t gr_dataset_first(const struct gr_dataset *data)
{
    return data->over != NULL ? data->over->first[data->over->comm->rank] : 0;
}

/** Agree with the other ranks, if any, on a status. Collective. */
static inline int32_t gr_dataset_agree(const struct gr_dataset *data, int32_t rc, graft_error *error)
{
    return data->over != NULL ? gr_comm_agree(data->over->comm, rc, error) : rc;
}

/** Sum values over all ranks, if any, in place. Collective. */
static inline int32_t gr_dataset_sum(const struct gr_dataset *data, double *values, int64_t count, graft_error *error)
{
    return data->over != NULL ? gr_comm_sum_f64(data->over->comm, values, count, error) : GRAFT_OK;
}

/* -- create: read() and then, over ranks, distribute() ------------------------------------------------------------ */

/** Read the targets of the host. Arrays of a rank without rows count as not given. \return OK; ERR_ARG. */
int32_t gr_dataset_read_targets(const struct gr_dataset *data, const graft_dataset *given, struct gr_targets *targets,
                                graft_error *error);
/** Read the structs in data->given, and check all arrays except the values of dense features. `uses_edges`: the model
 *  needs features of edges. */
int32_t gr_dataset_read(struct gr_dataset *data, int uses_edges, struct gr_targets *targets, graft_error *error);
/** Redistribute the data set over ranks from slices to owners; then data->n is the number of owned vertices.
 * Collective. */
int32_t gr_dataset_distribute(struct gr_dataset *data, struct gr_targets *targets, graft_error *error);
void    gr_dataset_fini(struct gr_dataset *data);

/** Store digests of arrays that are borrowed from the host, to detect later changes: values of the graph, dense
 *  features, sparse features, and the targets that `what` names (GRAFT_UPDATE_...). */
void gr_dataset_lend_edge_values(struct gr_dataset *data, const graft_csr *graph);
void gr_dataset_lend_features(struct gr_dataset *data, const graft_dense *features);
void gr_dataset_lend_sparse(struct gr_dataset *data, const graft_csr *sparse);
void gr_dataset_lend_targets(struct gr_dataset *data, uint32_t what, const struct gr_targets *given);

/** Read the dense features of the host, and check their type, scale and zero. */
int32_t gr_dataset_view_features(const graft_dataset *given, struct gr_features *features, graft_error *error);
/** Check all values of dense features; or of labels, targets and split. `first` is the vertex of the first row, for the
 *  message of an error. */
int32_t gr_dataset_check_features(const graft_dense *features, int64_t first, int threads, graft_error *error);
int32_t gr_dataset_check_targets(const struct gr_targets *targets, int64_t first, graft_error *error);
/** Check features of edges: their type, values, and number of rows. `rows` is negative over ranks, where the number is
 *  checked later. */
int32_t gr_dataset_check_edge_features(const graft_dense *features, int64_t rows, int threads, graft_error *error);

/* -- types of dense features -------------------------------------------------------------------------------------- */

/** Convert rows row[0] to row[count - 1], or with `row` NULL the first `count` rows, to floats in to[count x columns].
 *  With `normalizes` each row is divided by its sum. */
void    gr_dataset_widen(const struct gr_features *features, const int64_t *row, int64_t count, int normalizes,
                         int threads, float *to);
/** Divide x[count] by its sum, unless the sum is 0. */
void    gr_dataset_normalize(float *x, int64_t count);
/** Find the first element that is not finite, of `count` elements from index `from` on. \return its index minus `from`;
 *  count: all are finite. */
int64_t gr_dataset_first_not_finite(const graft_dense *x, int64_t from, int64_t count);
/** Read the element at this index, in an array of any type except GRAFT_U8. */
float   gr_dataset_element(const graft_dense *x, int64_t at);
int32_t gr_dataset_refuse(int64_t vertex, int64_t column, double value, graft_error *error);

/* -- over ranks --------------------------------------------------------------------------------------------------- */

/** Send rows of `bytes` bytes from the slices to `to`, the rows of the owned vertices; or back to the slices, where
 *  both arrays must be memory of the library. Collective. */
int32_t gr_dataset_send_rows(const struct gr_dataset *data, const void *from, int64_t stride, int64_t bytes, void *to,
                             graft_error *error);
int32_t gr_dataset_return_rows(const struct gr_dataset *data, const void *from, int64_t bytes, void *to,
                               graft_error *error);
/** Functions for dense features over ranks, in the type of the host.
 *  share_scale() gets scale and zero, [2 x n_features], from the ranks with rows; the caller frees them, also after a
 *  failure. Collective. \return OK; ERR_ARG (they differ), ERR_NOMEM: the same on all ranks; ERR_PEER.
 *  new_features() allocates memory for the rows of the owned vertices. \return OK; ERR_NOMEM: on this rank only.
 *  drop_features() frees it. send_features() sends the rows of the slices to this memory of their owners.
 *  Collective. */
int32_t gr_dataset_share_scale(const struct gr_dataset *data, const struct gr_features *given, float **scale,
                               graft_error *error);
int32_t gr_dataset_new_features(struct gr_dataset *data, void **owned, graft_error *error);
void    gr_dataset_drop_features(struct gr_dataset *data, void **owned);
int32_t gr_dataset_send_features(const struct gr_dataset *data, const graft_dense *slice, void *owned,
                                 graft_error *error);
/** Send the rows of sparse features from the slices to their owners, into `made`. With `stays` its arrays are part of
 *  the budget of the data set; else the caller frees them, also after a failure. Collective. */
int32_t gr_dataset_send_sparse(struct gr_dataset *data, const graft_csr *slice, int stays, struct gr_csr *made,
                               graft_error *error);

/* -- new arrays, as graft_train_api.update() ----------------------------------------------------------------------- */

/** New arrays of the host. */
struct gr_new_data {
    uint32_t           what;  /* GRAFT_UPDATE_... */
    graft_dataset      given; /* the struct of the host */
    struct gr_features features;
    graft_dense        edge_features;
    struct gr_targets  targets;                /* targets of the host; arrays that are not replaced are NULL */
    graft_csr          sparse, lent_sparse;    /* sparse features with row pointers of 64 bits; as the host gave them */
    int64_t           *row_ptr;                /* row pointers of 64 bits, if the host's have 32 bits */
    void              *made[GR_TARGET_ARRAYS]; /* new targets in the order of the vertices, until they are in use */
    void              *owned; /* over ranks: features of owned vertices, if the model reads a copy of them */
    float             *scale; /* over ranks: scale and zero of features, or NULL */
};

/** Do the checks that need no other rank, of the arrays in new->given that new->what names. `now` are the targets in
 *  use. Always call gr_dataset_new_fini(). */
int32_t gr_dataset_check_new(const struct gr_dataset *data, const struct gr_targets *now, struct gr_new_data *new,
                             graft_error *error);
/** Do everything that can fail before dense features are sent to their owners, over ranks. `copied`: the model reads a
 *  copy of the features. Collective. */
int32_t gr_dataset_prepare_new(struct gr_dataset *data, int copied, struct gr_new_data *new, graft_error *error);
/** Replace arrays in `next`, a copy of the targets in use, by new arrays in the order of the vertices: vertex v has row
 *  row[v]; NULL: row v. Collective. */
int32_t gr_dataset_arrange_new(const struct gr_dataset *data, const int64_t *row, struct gr_new_data *new,
                               struct gr_targets *next, graft_error *error);
/** Put new arrays into use. take_features() is collective over ranks; the others cannot fail. */
int32_t gr_dataset_take_features(struct gr_dataset *data, struct gr_new_data *new, graft_error *error);
void    gr_dataset_take_sparse(struct gr_dataset *data, struct gr_new_data *new);
void    gr_dataset_take_targets(struct gr_dataset *data, const struct gr_new_data *new, struct gr_targets *now);
void    gr_dataset_new_fini(struct gr_dataset *data, struct gr_new_data *new);
