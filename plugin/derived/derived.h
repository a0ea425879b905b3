/* The graph that is trained on, derived from the data set: symmetric, with self loops, in an order in which a step
 * needs the first rows. This room knows no strategy: over ranks it has the part of this rank, from which strategies
 * make their plans.
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

/** What the model, and its use, ask of the graph. */
struct gr_derived_wish {
    struct gr_targets *targets; /* put into the order of the vertices */
    const int64_t     *list;    /* [n_list] vertices to predict, which come first; NULL: training vertices do */
    int64_t            n_list;
    int                predicts;    /* no gradient goes back along edges */
    int                has_batches; /* steps are of batches, so no gradient goes back along all edges */
    int                masks_rows;  /* a step, or a prediction, may compute fewer than all rows */
    int                reads_halo;  /* over ranks: layers read rows of other ranks, instead of sums over them */
    int                uses_values; /* of edges: in sums, in draws with weights, or as edge features of attention */
    int32_t            complete;    /* up to this layer a step computes all rows of the input; -1: none */
};

/** A graph during its derivation: the host's graph, or over ranks the part of this rank, or a copy in `made` whose
 *  bytes the budget has. */
struct gr_graph_copy {
    struct gr_budget   *budget;
    struct gr_part      part; /* in one process without `remote` and `halo` */
    struct gr_made_part made;
    int64_t             charged;
};

/** The matrices of a layer in a step, if it has fewer rows. */
struct gr_masked_matrix {
    graft_matrix *a, *transpose;
};

struct gr_derived {
    graft_context          *context;
    struct gr_budget       *budget;
    const struct gr_config *config;
    struct gr_dataset      *data;
    int64_t                 n; /* vertices, as in the data set */
    struct gr_derived_wish  wish;
    const int64_t          *row; /* [n] row of vertex v in the host's arrays; NULL: v */

    /* Receptive fields: a step needs the first reach[l] rows of the input of layer l, and of the logits the first
     * reach[n_layers]. Labelled training vertices, or vertices to predict, come first, then the vertices from which
     * they gather, and so on. */
    int64_t reach[GR_LAYERS_MAX + 1];
    int64_t reach_of_all[GR_LAYERS_MAX + 1]; /* the same, over all ranks */

    struct gr_graph_copy    graph; /* over ranks, the part of this rank; in one process its matrix is that of `whole` */
    struct gr_share        *share; /* over ranks: [n_ranks] the sizes of the parts */
    struct gr_masked_matrix masked[GR_LAYERS_MAX];
    int                     symmetric;
    float                  *left;        /* whole.left, and of some models whole.right */
    float                  *edge;        /* whole.edge */
    int64_t                *first_entry; /* [n_ranks + 1] over ranks: the number of the first entry of each slice */

    struct gr_block        whole, step[GR_LAYERS_MAX]; /* for evaluation, and for the layers in a step */
    const struct gr_block *whole_of[GR_LAYERS_MAX], *step_of[GR_LAYERS_MAX];
};

/** Derive the graph of derived->data as derived->wish asks, with targets and reach. Always call fini(). Collective.
 */
int32_t gr_derived_init(struct gr_derived *derived, graft_error *error);
void    gr_derived_fini(struct gr_derived *derived);
/** In one process, the matrices of the layers in a step from layer `first_masked` on, an earlier layer has all rows;
 *  and the blocks of all layers. */
int32_t gr_derived_mask(struct gr_derived *derived, int32_t first_masked, graft_error *error);
/** Entries of the first `rows` rows. */
int64_t gr_derived_entries(const struct gr_derived *derived, int64_t rows);

/* -- steps of init(), and of the derivation of new values --------------------------------------------------------- */

/** Derive the graph of the model from the copy. The order is found the `first` time; new values are derived later by
 *  the same steps. Collective. */
int32_t gr_derived_derive(struct gr_derived *derived, struct gr_graph_copy *copy, int first, graft_error *error);
/** Make a matrix of a csr that Graft made; the matrix takes its arrays, and the csr becomes empty. */
int32_t gr_derived_matrix(graft_context *context, struct gr_csr *csr, graft_matrix **matrix, graft_error *error);
/** Charge the budget of the copy with its present bytes; and free the copy. */
void    gr_derived_charge(struct gr_graph_copy *copy);
void    gr_derived_copy_fini(struct gr_graph_copy *copy);
/** A transpose of a matrix in `made`, whose bytes are borrowed from the budget. */
int32_t gr_derived_transpose(struct gr_budget *budget, const graft_csr *csr, struct gr_csr *made, graft_error *error);
/** According to options 'order' and 'row_masks': the order of the vertices of this part (NULL if edges are not used),
 *  targets in that order, and reach. `links` belongs to the halo of the part, or is empty if no order is searched.
 *  Collective. */
int32_t gr_derived_order(struct gr_derived *derived, const struct gr_part *part, struct gr_links *links,
                         graft_error *error);
/** Compute the scales of the edges from their values. */
void    gr_derived_scale(struct gr_derived *derived);
/** The blocks of the layers in a step, from `whole` and from the masked matrices. */
void    gr_derived_blocks(struct gr_derived *derived);

/** The rows of this rank as one matrix, whose columns are the owned vertices and then the vertices of the halo.
 *  \return OK; ERR_UNSUPPORTED (more columns than an int32_t can number); ERR_NOMEM: on this rank only. */
int32_t gr_derived_join(const struct gr_derived *derived, int with_values, struct gr_csr *joined, graft_error *error);
/** The values of this matrix, whose rows have the local entries first. */
void    gr_derived_join_values(const struct gr_part *part, void *values);
/** Make `whole` a block with a halo. If values are numbers of entries, they are the caller's. Collective. */
int32_t gr_derived_read_halo(struct gr_derived *derived, int64_t **numbers, graft_error *error);

/* -- features of edges, an array in the order of the host's entries ----------------------------------------------- */

/** Give the graph of the host the numbers of its entries as values, in the copy. `features` has a row for each entry:
 *  over ranks their number is checked. Collective. */
int32_t  gr_derived_number(struct gr_derived *derived, struct gr_graph_copy *copy, const graft_dense *features,
                           graft_error *error);
/** Take the numbers out of the copy; the caller frees them. */
int64_t *gr_derived_take_numbers(struct gr_graph_copy *copy);
/** Make the features of the entries of a matrix. Collective. */
int32_t  gr_derived_edge_features(struct gr_derived *derived, const graft_csr *csr, const int64_t *numbers,
                                  graft_error *error);
/** [entries x features] new features for the edges, which the caller frees, also after a failure, which changes
 *  nothing. Collective. */
int32_t  gr_derived_new_edge_features(struct gr_derived *derived, const graft_dense *features, float **made,
                                      graft_error *error);
/** Use new features. */
void     gr_derived_take_edge_features(struct gr_derived *derived, const float *made);

/* -- new values of edges ------------------------------------------------------------------------------------------ */

/** New edge values, and the arrays computed from them, before they replace the arrays in use. */
struct gr_new_edges {
    graft_csr            graph;   /* of the host */
    int64_t             *row_ptr; /* of 64 bits, if the host's are shorter */
    struct gr_budget     budget;  /* for memory that exists only during the call; without a limit */
    struct gr_graph_copy copy;    /* derived, with the new values */
    int                  symmetric;
    graft_matrix        *a_transpose;                           /* if values were symmetric, and are not any more */
    void                *turned, *masked_turned[GR_LAYERS_MAX]; /* values of transposes */
    void                *joined;                                /* values of the joined matrix */
};
/** begin() derives all arrays that depend on the values, and end(), which cannot fail, puts them into use. fini() is
 *  always due; NULL is legal. \return OK; ERR_STATE (created without values); ERR_ARG (null, other entries);
 *  ERR_FORMAT; ERR_NOMEM: nothing has changed. Collective. */
int32_t   gr_derived_new_edges(struct gr_derived *derived, const graft_dataset *given, struct gr_new_edges **edges,
                               graft_error *error);
void      gr_derived_take_edges(struct gr_derived *derived, struct gr_new_edges *edges);
void      gr_derived_new_edges_fini(struct gr_derived *derived, struct gr_new_edges *edges);
/** The matrix of all rows with the new values, before they are taken. */
graft_csr gr_derived_new_graph(const struct gr_derived *derived, const struct gr_new_edges *edges);
