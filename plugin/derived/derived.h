/* The graph of the model, derived from the graph of the data set: perhaps made symmetric, with self-loops, and in an
 * order of the vertices in which a step needs only the first rows. This room knows no strategy: over ranks it has the
 * part of this rank, from which strategies create their plans.
 *
 * graph.c   matrices, scales and blocks of a derived graph     derive.c     from the graph of the host
 * order.c   the order of the vertices, and receptive fields    new_edges.c  other values of the edges
 * join.c    over ranks: the edges of a rank as one matrix      edge_features.c  rows of features of edges
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "dataset/dataset.h"
#include "dgraph/part.h"
#include "model/block.h"
#include "model/model.h"

/** What a model and its use require of the graph. */
struct gr_derived_wish {
    struct gr_targets *targets; /* targets, which are put into the order of the vertices */
    const int64_t     *list;    /* [n_list] vertices to predict, which come first; NULL: training vertices come first */
    int64_t            n_list;
    int                predicts;    /* there are only predictions: no transpose is needed for gradients */
    int                has_batches; /* steps are on batches: no transpose of the whole graph is needed */
    int                masks_rows;  /* a step, or a prediction, may compute fewer than all rows */
    int                reads_halo;  /* over ranks: layers read rows of other ranks, instead of sums over them */
    int                uses_values; /* edge values are used: in sums, in weighted draws, or as features of attention */
    int32_t            complete;    /* last layer whose input a step computes in all rows; -1: there is none */
};

/** A graph during its derivation: at first the host's graph, or over ranks the part of this rank; later a copy. */
struct gr_graph_copy {
    struct gr_budget   *budget;
    struct gr_part      part; /* the current graph; in one process without `remote` and `halo` */
    struct gr_made_part made;
    int64_t             charged;
};

/** The matrices of a layer in a step that computes fewer than all rows. */
struct gr_masked_matrix {
    graft_matrix *a, *transpose;
};

struct gr_derived {
    graft_context          *context;
    struct gr_budget       *budget;
    const struct gr_config *config;
    struct gr_dataset      *data;
    int64_t                 n; /* number of vertices, as in the data set */
    struct gr_derived_wish  wish;
    const int64_t          *row; /* [n] row of each vertex in the host's arrays; NULL: row v for vertex v */

    /* Receptive fields: a step needs the first reach[l] rows of the input of layer l, and the first reach[n_layers]
     * rows of the logits. Training vertices with a target, or vertices to predict, come first, then the vertices from
     * which they gather, and so on. */
    int64_t reach[GR_LAYERS_MAX + 1];
    int64_t reach_of_all[GR_LAYERS_MAX + 1]; /* sum of `reach` over all ranks */

    struct gr_graph_copy    graph; /* over ranks, the part of this rank; in one process its matrix is that of `whole` */
    struct gr_share        *share; /* over ranks: [n_ranks] sizes of the parts */
    struct gr_masked_matrix masked[GR_LAYERS_MAX];
    int                     symmetric;
    float                  *left;        /* [n] memory of whole.left, and for some models of whole.right */
    float                  *edge;        /* memory of whole.edge */
    int64_t                *first_entry; /* over ranks: [n_ranks + 1] global index of the first entry of each slice */

    struct gr_block whole, step[GR_LAYERS_MAX]; /* block of all rows, for evaluation; blocks of layers in a step */
    const struct gr_block *whole_of[GR_LAYERS_MAX], *step_of[GR_LAYERS_MAX];
};

/** Derive the graph of derived->data as derived->wish asks, with targets and reach. Always call gr_derived_fini().
 *  Collective. */
int32_t gr_derived_init(struct gr_derived *derived, graft_error *error);
void    gr_derived_fini(struct gr_derived *derived);
/** Make the blocks of all layers in a step; in one process, first the matrices of layers from `first_masked` on, before
 *  which all layers have all rows. */
int32_t gr_derived_mask(struct gr_derived *derived, int32_t first_masked, graft_error *error);
/** The number of entries of the first `rows` rows. */
int64_t gr_derived_entries(const struct gr_derived *derived, int64_t rows);

/* -- steps of init(), and of the derivation of new values --------------------------------------------------------- */

/** Derive the graph of the model in the copy. The `first` time the order of the vertices is found; later calls derive
 *  new values with the same order. Collective. */
int32_t gr_derived_derive(struct gr_derived *derived, struct gr_graph_copy *copy, int first, graft_error *error);
/** Make a matrix from a csr whose arrays Graft has allocated. They are moved to the matrix, and the csr becomes
 * empty. */
int32_t gr_derived_matrix(graft_context *context, struct gr_csr *csr, graft_matrix **matrix, graft_error *error);
/** Update the bytes that the copy charges to its budget. */
void    gr_derived_charge(struct gr_graph_copy *copy);
void    gr_derived_copy_fini(struct gr_graph_copy *copy);
/** Make the transpose of a matrix in `made`, and borrow its bytes from the budget. */
int32_t gr_derived_transpose(struct gr_budget *budget, const graft_csr *csr, struct gr_csr *made, graft_error *error);
/** Find the order of the vertices and `reach` by options 'order' and 'row_masks', and put targets into this order.
 *  `part` is NULL if edges are not used. `links` are those of the halo of the part; they may be empty if neither option
 *  needs them. Collective. */
int32_t gr_derived_order(struct gr_derived *derived, const struct gr_part *part, struct gr_links *links,
                         graft_error *error);
/** Compute the scales of the edges from their values. */
void    gr_derived_scale(struct gr_derived *derived);
/** Make the blocks of the layers in a step from `whole` and from the masked matrices. */
void    gr_derived_blocks(struct gr_derived *derived);

/** Join the rows of this rank to one matrix, whose columns are the owned vertices and then the vertices of the halo.
 *  \return OK; ERR_UNSUPPORTED (more than INT32_MAX columns); ERR_NOMEM: on this rank only. */
int32_t gr_derived_join(const struct gr_derived *derived, int with_values, struct gr_csr *joined, graft_error *error);
/** Write the values of the joined matrix, whose rows have their local entries first. */
void    gr_derived_join_values(const struct gr_part *part, void *values);
/** Make `whole` a block with a halo. If values are indices of entries, *numbers receives them, and the caller frees
 *  them. Collective. */
int32_t gr_derived_read_halo(struct gr_derived *derived, int64_t **numbers, graft_error *error);

/* -- features of edges, an array in the order of the host's entries ----------------------------------------------- */

/** Make a copy of the host's graph whose values are the indices of its entries. `features` has a row for each entry:
 *  over ranks the number of rows is checked. Collective. */
int32_t  gr_derived_number(struct gr_derived *derived, struct gr_graph_copy *copy, const graft_dense *features,
                           graft_error *error);
/** Remove the indices of entries from the copy. \return the indices, which the caller frees. */
int64_t *gr_derived_take_numbers(struct gr_graph_copy *copy);
/** Make derived->edge, the features of the entries of a matrix, whose indices on the host are `numbers`. Collective. */
int32_t  gr_derived_edge_features(struct gr_derived *derived, const graft_csr *csr, const int64_t *numbers,
                                  graft_error *error);
/** Compute *made, [entries x features] new features of the edges, which the caller frees, also after a failure. Nothing
 *  else changes. Collective. */
int32_t  gr_derived_new_edge_features(struct gr_derived *derived, const graft_dense *features, float **made,
                                      graft_error *error);
/** Replace the features in use by new features. */
void     gr_derived_take_edge_features(struct gr_derived *derived, const float *made);

/* -- new values of edges ------------------------------------------------------------------------------------------ */

/** New edge values, and the arrays computed from them, before they replace the arrays in use. */
struct gr_new_edges {
    graft_csr            graph;   /* the host's graph with new values */
    int64_t             *row_ptr; /* row pointers of 64 bits, if the host's have 32 bits */
    struct gr_budget     budget;  /* budget without a limit, for memory that exists only during the call */
    struct gr_graph_copy copy;    /* the derived graph with the new values */
    int                  symmetric;
    graft_matrix        *a_transpose;                           /* transpose, if values are no longer symmetric */
    void                *turned, *masked_turned[GR_LAYERS_MAX]; /* new values of existing transposes */
    void                *joined;                                /* new values of the joined matrix */
};
/** Replace the values of edges: gr_derived_new_edges() computes all arrays that depend on them, and
 *  gr_derived_take_edges(), which cannot fail, puts them into use. Always call gr_derived_new_edges_fini(); its
 *  argument may be NULL. \return OK; ERR_STATE (created without values); ERR_ARG (null, other entries); ERR_FORMAT;
 *  ERR_NOMEM: nothing has changed. Collective. */
int32_t   gr_derived_new_edges(struct gr_derived *derived, const graft_dataset *given, struct gr_new_edges **edges,
                               graft_error *error);
void      gr_derived_take_edges(struct gr_derived *derived, struct gr_new_edges *edges);
void      gr_derived_new_edges_fini(struct gr_derived *derived, struct gr_new_edges *edges);
/** The matrix of all rows with the new values, before gr_derived_take_edges(). */
graft_csr gr_derived_new_graph(const struct gr_derived *derived, const struct gr_new_edges *edges);
