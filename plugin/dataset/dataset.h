/* The data set of the host: its arrays, checked; over ranks, the rows of the owned vertices. This room knows no model
 * and no graph other than the host's.
 *
 * read.c   the structs of the host, and loans of their arrays     check.c   values of arrays
 * types.c  features of 16 and 8 bits as floats                    ranks.c   from slices to owners, and back
 * update.c new arrays
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
    graft_dense  x;            /* of type F32, F16, BF16 or U8 */
    const float *scale, *zero; /* [columns] of U8, else NULL */
};

/** A data set. Its arrays are borrowed from the host, or copies whose bytes the budget counts. */
struct gr_dataset {
    graft_context     *context;
    struct gr_budget  *budget;
    int                threads;
    graft_dataset      given; /* the struct of the host */
    struct gr_loans    loans;
    graft_csr          graph, sparse_features;
    int64_t           *row_ptr[2]; /* 64-bit copies of 32-bit row pointers of these two; else NULL */
    struct gr_features features;
    graft_dtype        feature_type;  /* of the host's features; a rank without rows may have another type */
    float             *feature_scale; /* [2 x n_features] copies of scale and zero, or NULL */
    void              *owned;         /* over ranks: the dense features of the owned vertices, unless they are copied */
    graft_dense        edge_features;
    graft_graph       *over;             /* the graph over ranks, or NULL */
    int64_t            n;                /* rows of its arrays; over ranks, of the owned vertices */
    int                features_checked; /* all rows are checked; before, batches check the rows that they read */
    int                regresses;        /* the model learns float targets, instead of classes */
};

/** The arrays of gr_targets by number. Strides are in bytes. */
enum { GR_TARGET_LABELS, GR_TARGET_CLASSES, GR_TARGET_VALUES, GR_TARGET_SPLIT, GR_TARGET_ARRAYS };
struct gr_target_array {
    const char *name;
    uint32_t    what; /* GRAFT_UPDATE_... */
    const void *data; /* NULL: not given */
    int64_t     bytes, stride;
};
struct gr_target_array gr_dataset_target_array(const struct gr_targets *targets, int array);
void gr_dataset_set_target_array(struct gr_targets *targets, int array, const void *data, int64_t stride);

/** Rows of the host's arrays, and the vertex of the first. */
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

/** Sum over all ranks, in place. Collective. */
static inline int32_t gr_dataset_sum(const struct gr_dataset *data, double *values, int64_t count, graft_error *error)
{
    return data->over != NULL ? gr_comm_sum_f64(data->over->comm, values, count, error) : GRAFT_OK;
}

/* -- create: read() and then, over ranks, distribute() ------------------------------------------------------------ */

/** Targets in the structs of the host, of which arrays without rows count as not given. */
int32_t gr_dataset_read_targets(const struct gr_dataset *data, const graft_dataset *given, struct gr_targets *targets,
                                graft_error *error);
/** Read the structs in data->given, and check all arrays but dense features. `uses_edges`: the model needs features of
 *  edges. */
int32_t gr_dataset_read(struct gr_dataset *data, int uses_edges, struct gr_targets *targets, graft_error *error);
/** Over ranks, redistribute it from slices to owners: from now on n is the number of owned vertices. Collective. */
int32_t gr_dataset_distribute(struct gr_dataset *data, struct gr_targets *targets, graft_error *error);
void    gr_dataset_fini(struct gr_dataset *data);

/** Take digests of arrays that are borrowed from the host: values of the graph, dense features, sparse features, and
 *  the targets that `what` names (GRAFT_UPDATE_...). */
void gr_dataset_lend_edge_values(struct gr_dataset *data, const graft_csr *graph);
void gr_dataset_lend_features(struct gr_dataset *data, const graft_dense *features);
void gr_dataset_lend_sparse(struct gr_dataset *data, const graft_csr *sparse);
void gr_dataset_lend_targets(struct gr_dataset *data, uint32_t what, const struct gr_targets *given);

/** The dense features of a data set; checks their type, scale and zero. */
int32_t gr_dataset_view_features(const graft_dataset *given, struct gr_features *features, graft_error *error);
/** Check all values of dense features, and of labels, targets and split. `first` is the vertex of the first row, for
 *  the message. */
int32_t gr_dataset_check_features(const graft_dense *features, int64_t first, int threads, graft_error *error);
int32_t gr_dataset_check_targets(const struct gr_targets *targets, int64_t first, graft_error *error);
/** Check features of edges; over ranks their rows are counted later, else `rows` rows are expected. */
int32_t gr_dataset_check_edge_features(const graft_dense *features, int64_t rows, int threads, graft_error *error);

/* -- types of dense features -------------------------------------------------------------------------------------- */

/** to[count x columns] = these rows as floats, or with NULL the first rows; each divided by its sum if `normalizes`. */
void    gr_dataset_widen(const struct gr_features *features, const int64_t *row, int64_t count, int normalizes,
                         int threads, float *to);
/** x[count] divided by its sum, unless this is 0. */
void    gr_dataset_normalize(float *x, int64_t count);
/** The first of `count` elements from this place in the array that is not finite, or count. */
int64_t gr_dataset_first_not_finite(const graft_dense *x, int64_t from, int64_t count);
/** The element at this place in an array of another type than GRAFT_U8; and the error for a value that is not finite.
 *  \return ERR_FORMAT. */
float   gr_dataset_element(const graft_dense *x, int64_t at);
int32_t gr_dataset_refuse(int64_t vertex, int64_t column, double value, graft_error *error);

/* -- over ranks --------------------------------------------------------------------------------------------------- */

/** Rows of `bytes` bytes from the slices to `to`, the rows of the owned vertices; and back, where both arrays belong to
 *  the library. Collective. */
int32_t gr_dataset_send_rows(const struct gr_dataset *data, const void *from, int64_t stride, int64_t bytes, void *to,
                             graft_error *error);
int32_t gr_dataset_return_rows(const struct gr_dataset *data, const void *from, int64_t bytes, void *to,
                               graft_error *error);
/** Dense features over ranks, in the type of the host.
 *  share_scale(): scale and zero of the ranks with rows, [2 x n_features]; the caller frees them, also after a failure.
 *  Collective. \return OK; ERR_ARG (they differ), ERR_NOMEM: the same on all ranks; ERR_PEER.
 *  new_features(): memory for the rows of the owned vertices. \return OK; ERR_NOMEM: on this rank only.
 *  send_features(): from a slice to this memory. Collective. */
int32_t gr_dataset_share_scale(const struct gr_dataset *data, const struct gr_features *given, float **scale,
                               graft_error *error);
int32_t gr_dataset_new_features(struct gr_dataset *data, void **owned, graft_error *error);
void    gr_dataset_drop_features(struct gr_dataset *data, void **owned);
int32_t gr_dataset_send_features(const struct gr_dataset *data, const graft_dense *slice, void *owned,
                                 graft_error *error);
/** The rows of sparse features from the slices to their owners. The arrays of `made` stay with the data set, or the
 *  caller frees them, also after a failure. Collective. */
int32_t gr_dataset_send_sparse(struct gr_dataset *data, const graft_csr *slice, int stays, struct gr_csr *made,
                               graft_error *error);

/* -- new arrays, as graft_train_api.update()
 * -------------------------------------------------------------------------- */

/** New arrays of the host. */
struct gr_new_data {
    uint32_t           what;  /* GRAFT_UPDATE_... */
    graft_dataset      given; /* of the host, like the next two */
    struct gr_features features;
    graft_dense        edge_features;
    struct gr_targets  targets;                /* arrays of the host; NULL: not replaced */
    graft_csr          sparse, lent_sparse;    /* with row pointers of 64 bits; as given by the host */
    int64_t           *row_ptr;                /* of 64 bits, if the host's are shorter */
    void              *made[GR_TARGET_ARRAYS]; /* targets in the order of the vertices, until they are taken */
    void              *owned; /* features over ranks, if the input of the model is a copy of them in another form */
    float             *scale; /* and their scale and zero, or NULL */
};

/** The checks of this rank, of arrays in new->given that `what` names. `now` are the targets in use. fini() is always
 *  due. */
int32_t gr_dataset_check_new(const struct gr_dataset *data, const struct gr_targets *now, struct gr_new_data *new,
                             graft_error *error);
/** Over ranks: all that can fail before dense features are sent to their owners. `copied`: the model reads a copy of
 *  the features. Collective. */
int32_t gr_dataset_prepare_new(struct gr_dataset *data, int copied, struct gr_new_data *new, graft_error *error);
/** next has the targets in use, and gets new arrays in the order of the vertices, whose rows are `row`. Collective. */
int32_t gr_dataset_arrange_new(const struct gr_dataset *data, const int64_t *row, struct gr_new_data *new,
                               struct gr_targets *next, graft_error *error);
/** Use new features, which are collective, and targets, which cannot fail. */
int32_t gr_dataset_take_features(struct gr_dataset *data, struct gr_new_data *new, graft_error *error);
void    gr_dataset_take_sparse(struct gr_dataset *data, struct gr_new_data *new);
void    gr_dataset_take_targets(struct gr_dataset *data, const struct gr_new_data *new, struct gr_targets *now);
void    gr_dataset_new_fini(struct gr_dataset *data, struct gr_new_data *new);
