/* A setup: a model combined with a data set, ready to run. A trainer has a setup, and so has a prediction with a saved
 * model. These are the common declarations of this folder.
 *
 * setup.c      from the host's arrays to a run       outputs.c        from its logits back
 * dataset.c    the host's arrays, checked            update.c         the same when they change
 * graph.c      the graph as the model needs it       update_edges.c   values of its edges that change
 * order.c      the vertices in another order, and receptive fields
 * edge_features.c  rows of features of edges, brought to their entries
 * features.c, sparse.c  the features likewise        ranks_data.c     over ranks: the data set
 * feature_types.c  features of 16 and 8 bits as floats
 * plan.c       the memory budget, before anything is made    ranks_graph.c, ranks_edges.c  over ranks: the graph
 * arrays.c     arrays of the layers for batches, and for evaluations between them
 * by_rows.c    evaluations and predictions in blocks of rows
 * spans.c      space for the profile                 ranks_compare.c  over ranks: comparisons of ranks
 * ranks_memory.c  over ranks: the least memory of a rank
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GR_SETUP_SETUP_H
#define GR_SETUP_SETUP_H

#include "base/scratch.h"
#include "parallel/partition.h"

/** A breadth-first search, level by level, for the vertices on which training depends. */
struct gr_search {
    int32_t *hop;        /* [n] the level of each vertex; n_layers + 1: not found yet */
    int64_t *queue;      /* [n] vertices in the order in which they are found */
    int64_t  begin, end; /* of the current level in the queue */
    int64_t  found;      /* the end of the next level */
};

/** The outputs of a prediction, for all vertices of the host or for a list. Arrays may be NULL. */
struct gr_outputs {
    const int64_t *vertices; /* [n] of the whole graph, which the host has here; they may repeat. NULL: all of them */
    int64_t        n;        /* only used with a list */
    int32_t       *labels;
    const graft_dense *logits, *probabilities;
};

/** An existing model, for predictions. Without it, the options of the context define a model to train. */
struct gr_given_model {
    struct gr_options        options; /* of the context, except for the options of the model */
    const struct gr_model   *model;
    int                      best; /* its best weights, not the last */
    const struct gr_outputs *outputs;
};

/** Outputs of a layer for all vertices, during a pass in blocks of rows. */
struct gr_stored {
    const float      *x; /* [rows x out] in one of these: */
    float            *memory;
    struct gr_scratch file;
};

/** Temporary arrays of the layers in training by minibatch, and in passes by blocks of rows; see arrays.c. */
struct gr_batch_arrays {
    struct gr_budget   budget;
    int64_t            charged[GR_USES]; /* its bytes in the budget of the setup */
    struct gr_capacity most;             /* their capacity; 0: none */
    struct gr_stored   stored[GR_LAYERS_MAX];
    float             *features;      /* of all rows, for an evaluation; NULL: features are read as they are */
    int64_t            sources_bytes; /* in the budget, for the search of the sources of blocks */
};

/** Dense features of the host. */
struct gr_features {
    graft_dense  x;            /* of type F32, F16, BF16 or U8 */
    const float *scale, *zero; /* [columns] of U8, else NULL */
};

/** The data set of the host, checked; over ranks, the rows of the owned vertices. Its arrays are borrowed or copies. */
struct gr_dataset {
    graft_dataset   given; /* the struct of the host */
    struct gr_loans loans;
    graft_csr       graph, sparse_features;
    int64_t        *row_ptr[2]; /* 64-bit copies of 32-bit row pointers of `graph` and `sparse_features`; else NULL */
    struct gr_features features;
    graft_dtype        feature_type;  /* of the host's features; a rank without rows may have another type */
    float             *feature_scale; /* [2 x n_features] copies of scale and zero, or NULL */
    void              *owned;         /* over ranks: the dense features of the owned vertices, unless they are copied */
    graft_dense        float_targets, edge_features;
    graft_graph       *over;             /* the graph over ranks, or NULL */
    int64_t            n;                /* rows of its arrays; over ranks, of the owned vertices */
    int64_t            first;            /* vertex of the first row of the host's arrays, while they are checked */
    int                features_checked; /* all rows are checked; before, batches check the rows that they read */
};

/** The graph as the model needs it: symmetric, with self loops, in an order in which a step needs the first rows. */
struct gr_derived {
    int64_t        n_seen; /* for attention over ranks, n and the vertices of the halo; else n */
    const int64_t *vertex; /* [n] the host's number of vertex v; NULL: v */
    const int64_t *row;    /* [n] row of vertex v in the host's arrays; NULL: v */

    /* Receptive fields: a step needs the first reach[l] rows of the input of layer l, and of the logits the first
     * reach[n_layers]. Labelled training vertices, or vertices to predict, come first, then the vertices from which
     * they gather, and so on. */
    int64_t reach[GR_LAYERS_MAX + 1];
    int64_t reach_of_all[GR_LAYERS_MAX + 1]; /* the same, over all ranks */

    graft_matrix *a, *a_transpose; /* of all rows; NULL if no layer gathers. See gr_block */
    graft_matrix *masked_a[GR_LAYERS_MAX], *masked_transpose[GR_LAYERS_MAX]; /* of a step, if it has fewer rows */
    int           symmetric;
    float        *left, *right;
    uint8_t      *row_kind;
    float        *edge;        /* [entries of a x features] with edge_features=array; else NULL */
    int64_t      *first_entry; /* [n_ranks + 1] over ranks: the number of the first entry of each slice */

    struct gr_block        whole, step[GR_LAYERS_MAX]; /* for evaluation, and for the layers in a step */
    const struct gr_block *whole_of[GR_LAYERS_MAX], *step_of[GR_LAYERS_MAX];
};

struct gr_setup {
    graft_context               *context;
    const struct gr_given_model *given;    /* NULL: the setup trains, and has gradients and transposes */
    const struct gr_options     *options;  /* of the context, or given */
    int64_t                      reported; /* options.changes at the last report of options without effect */
    struct gr_budget             budget;
    struct gr_deferral           deferral; /* of the budget, until gr_ranks_check_memory() */
    struct gr_batch_arrays      *arrays;   /* NULL: the budget has the arrays of the layers */
    struct gr_dataset            data;
    struct gr_derived            derived;
    struct gr_model              model;
    struct gr_run                run;
    struct gr_strategy           serial;
    struct gr_partition          partition; /* where data.over is not NULL */
    int                          by_rows;   /* for a given model: the pass may be, and later is, in blocks of rows */
    int widens_rows; /* rows of another type become floats when they are read; options that decide it may change
                      * later */
};

/** Combine the data set and a model: the given model, borrowed until fini(), or with NULL a model to train. After a
 *  failure, only call gr_setup_fini(). Collective. */
int32_t gr_setup_init(struct gr_setup *setup, graft_context *context, const graft_dataset *dataset,
                      const struct gr_given_model *given, graft_error *error);
void    gr_setup_fini(struct gr_setup *setup);
/** Use the number of threads that the host grants now. */
void    gr_setup_set_threads(struct gr_setup *setup);

/** Rows of the host's arrays. */
static inline int64_t gr_rows_of_host(const struct gr_setup *setup)
{
    return setup->data.over != NULL ? setup->data.over->n_slice : setup->data.n;
}

/** Rows of the outputs. */
int64_t gr_setup_output_rows(const struct gr_setup *setup, const struct gr_outputs *outputs);
/** Check that outputs have the right shapes, and suit the model: no classes if it learns float targets. */
int32_t gr_setup_check_outputs(const struct gr_setup *setup, const struct gr_outputs *outputs, graft_error *error);
/** A forward pass without dropout over all vertices, or the vertices of the list to predict. Its logits are valid until
 *  gr_arrays_fini(). Collective. \return OK; ERR_NOMEM; ERR_FORMAT (features that create() did not read); ERR_IO. */
int32_t gr_setup_forward(struct gr_setup *setup, graft_error *error);
/** From the logits of the last forward pass to the outputs. Collective. */
int32_t gr_setup_give(struct gr_setup *setup, const struct gr_outputs *outputs, graft_error *error);
/** Row `at` of the outputs except labels, from the logits of its vertex. */
void gr_setup_put_row(const struct gr_setup *setup, const struct gr_outputs *outputs, int64_t at, const float *logits);

/** With check=full, check that no array of the data set has changed, except for arrays in `what` (GRAFT_UPDATE_...).
 *  Collective. */
int32_t gr_setup_check_loans(struct gr_setup *setup, uint32_t what, graft_error *error);
struct gr_new_edges;
/** State outside of the setup that depends on arrays which update() replaces. prepare() builds the new state from the
 *  new targets and edges (NULL: unchanged) before anything is replaced. The update may still fail. Collective. */
struct gr_update_dependent {
    int32_t (*prepare)(void *arg, const struct gr_targets *targets, const struct gr_new_edges *edges,
                       graft_error *error);
    void *arg;
};
/** Replace arrays of the data set, as graft_train.update(); `dependent` may be NULL. Collective. */
int32_t gr_setup_update(struct gr_setup *setup, uint32_t what, const graft_dataset *dataset,
                        const struct gr_update_dependent *dependent, graft_error *error);

/** Warn once of each option without effect; over ranks only rank 0 warns. */
void gr_setup_report_options(struct gr_setup *setup);

/** The groups of options (a bit for each) that a setup reads from the context. */
uint32_t gr_setup_groups(const struct gr_setup *setup);
/** Whether the order of the vertices differs, or is certain to differ, from the host's order. */
int      gr_setup_is_ordered(const struct gr_setup *setup);
/** Whether layers read the rows of other ranks, instead of sums over them. */
int      gr_reads_halo(const struct gr_setup *setup);
/** Whether a step, or a prediction, may compute fewer than all rows. */
int      gr_masks_rows(const struct gr_setup *setup);
/** The first layer whose graph may have fewer rows in a step: an input that is aggregated only once is aggregated for
 *  all rows. */
int32_t  gr_first_masked(const struct gr_setup *setup);
/** Forget all spans, and allocate space for the spans of a step on the present number of threads. */
int32_t  gr_spans_reset(struct gr_setup *setup, graft_error *error);
/** Allocate space for the spans of one more step; in an epoch of batches all spans are kept. */
int32_t  gr_spans_reserve(struct gr_setup *setup, graft_error *error);
/** Notify the other ranks of a failure of only this rank while they wait for it. It counts as a collective call. */
int32_t  gr_ranks_fail(struct gr_setup *setup, int32_t rc, graft_error *error);

/* -- gr_setup_init(), in the order in which it calls them --------------------------------------------------------- */

/** Copies of the host's structs, whose arrays are checked and remain the host's. */
int32_t gr_setup_read_dataset(struct gr_setup *setup, graft_error *error);
/** Take digests of arrays that the trainer borrows from the host: values of the graph, dense features, sparse features,
 *  and the targets that `what` names (GRAFT_UPDATE_...). */
void    gr_setup_lend_edge_values(struct gr_setup *setup, const graft_csr *graph);
void    gr_setup_lend_features(struct gr_setup *setup, const graft_dense *features);
void    gr_setup_lend_sparse(struct gr_setup *setup, const graft_csr *sparse);
void    gr_setup_lend_targets(struct gr_setup *setup, uint32_t what, const graft_dataset *dataset,
                              const graft_dense *float_targets);
/** The dense features of a data set; checks their type, scale and zero. */
int32_t gr_features_view(const graft_dataset *data, struct gr_features *features, graft_error *error);
/** Check all values of dense features, and of labels, targets and split. `first` is the vertex of the first row, for
 *  the message. */
int32_t gr_features_check(const graft_dense *features, int64_t first, int threads, graft_error *error);
int32_t gr_targets_check(const struct gr_targets *targets, int64_t first, graft_error *error);
/** Check features of edges; over ranks their rows are counted later, else `rows` rows are expected. */
int32_t gr_edge_features_check(const graft_dense *features, int64_t rows, int threads, graft_error *error);
/** Check the shape of float targets. */
int32_t gr_float_targets_check(const graft_dense *targets, int64_t n, int64_t n_classes, graft_error *error);
/** Check that all ranks have the same options. Collective. */
int32_t gr_ranks_compare_options(const struct gr_setup *setup, graft_error *error);
/** Check that all ranks have a data set of one kind; with loss=auto, choose the loss. Collective. */
int32_t gr_ranks_compare_data(struct gr_setup *setup, graft_error *error);
/** Rows of `bytes` bytes from the slices to `to`, the rows of the owned vertices. Collective. */
int32_t gr_ranks_to_owners(const struct gr_setup *setup, const void *from, int64_t stride, int64_t bytes, void *to,
                           graft_error *error);
/** Dense features over ranks, in the type of the host.
 *  share_scale(): scale and zero of the ranks with rows, [2 x n_features]; the caller frees them, also after a failure.
 *  Collective. \return OK; ERR_ARG (they differ), ERR_NOMEM: the same on all ranks; ERR_PEER.
 *  new_features(): memory for the rows of the owned vertices. \return OK; ERR_NOMEM: on this rank only.
 *  send_features(): from a slice to this memory. Collective. */
int32_t gr_ranks_share_scale(const struct gr_setup *setup, const struct gr_features *given, float **scale,
                             graft_error *error);
int32_t gr_ranks_new_features(struct gr_setup *setup, void **owned, graft_error *error);
void    gr_ranks_drop_features(struct gr_setup *setup, void **owned);
int32_t gr_ranks_send_features(const struct gr_setup *setup, const graft_dense *slice, void *owned, graft_error *error);
/** Redistribute the data set from slices to owners: from now on n is the number of owned vertices. Collective. */
int32_t gr_ranks_take(struct gr_setup *setup, graft_error *error);
/** Plan the budget before any of it is used: all memory except for the parts of graph and features whose size depends
 *  on receptive fields. Refuse a plan that cannot fit. replan() plans the layers again, when graph and features
 *  exist. */
int32_t gr_setup_plan(struct gr_setup *setup, graft_error *error);
int32_t gr_setup_replan(struct gr_setup *setup, graft_error *error);
/** Planned bytes, with or without recompute. */
double  gr_setup_planned(struct gr_setup *setup, int recompute);
/** Whether features are expected to stay sparse; if not, they may be constant. */
void    gr_input_expect(struct gr_setup *setup, int sparse);
/** The known sizes of the arrays of the layers. */
struct gr_capacity gr_capacity_of(const struct gr_setup *setup);
/** The graph: made symmetric, reordered, with self loops and a transpose. Collective. */
int32_t            gr_setup_graph_init(struct gr_setup *setup, graft_error *error);
int32_t            gr_ranks_graph_init(struct gr_setup *setup, graft_error *error);
/** According to options 'order' and 'row_masks': the order of the vertices of this graph (NULL if edges are not used),
 *  labels, targets and split in that order, and reach. Over ranks `graph` is the local matrix. Collective. */
int32_t            gr_setup_order_init(struct gr_setup *setup, const graft_csr *graph, graft_error *error);
/** Continue the current level over ranks: vertices of other ranks from which it gathers get level `hop` there.
 *  Collective. */
int32_t            gr_ranks_search(struct gr_setup *setup, struct gr_search *search, int32_t hop, graft_error *error);
/** Vertex v is found on level `hop`, unless it was before. */
static inline void gr_search_add(struct gr_search *search, int64_t v, int32_t hop)
{
    if (search->hop[v] <= hop) return;
    search->hop[v] = hop;
    search->queue[search->found++] = v;
}
/** The graph of one process during its derivation: the host's graph, or a copy charged to a budget. */
struct gr_graph_copy {
    struct gr_budget *budget;
    const graft_csr  *csr;
    struct gr_csr     copy;
};
/** Derive the graph of the model from graph->csr, of the host: symmetric, with self loops, in the order of the setup.
 *  The order is found the `first` time; new values are derived later by the same steps. */
int32_t gr_setup_graph_derive(struct gr_setup *setup, struct gr_graph_copy *graph, int first, graft_error *error);

/* Features of edges, an array in the order of the host's entries; see edge_features.c. */
/** Give the graph of the host, of one process, the numbers of its entries as values; and take them from the derived
 *  graph, in its order. The caller frees them, and returns their bytes to the budget. */
int32_t  gr_edge_numbers_begin(const struct gr_setup *setup, struct gr_graph_copy *graph, graft_error *error);
int64_t *gr_edge_numbers_take(const struct gr_setup *setup, struct gr_graph_copy *graph);
/** Over ranks: the part of the graph with numbers as values, which `made` owns; the caller frees it, also after a
 *  failure. The number of rows of the features is checked. Collective. Later forget the numbers of the setup. */
int32_t  gr_ranks_edge_numbers(struct gr_setup *setup, struct gr_budget *budget, const graft_dense *features,
                               struct gr_made_part *made, graft_error *error);
void     gr_ranks_edge_numbers_drop(struct gr_setup *setup);
/** Make the features of the setup's edges. Collective. */
int32_t gr_edge_features_init(struct gr_setup *setup, const graft_csr *csr, const int64_t *numbers, graft_error *error);

/** [entries x features] new features for the edges of the setup, which the caller frees, also after a failure, which
 *  changes nothing. Collective. */
int32_t gr_new_edge_features(struct gr_setup *setup, const graft_dense *features, float **made, graft_error *error);
/** Copy new features to their place in the setup. */
void    gr_edge_features_take(struct gr_setup *setup, const float *made);

/** The same over ranks; `made` has the arrays of `part` that do not belong to the graph over ranks. Collective. */
struct gr_part_copy {
    struct gr_budget    *budget;
    struct gr_part      *part;
    struct gr_made_part *made;
};
int32_t gr_ranks_graph_derive(struct gr_setup *setup, struct gr_part_copy *copy, int first, graft_error *error);
/** The block of all rows, and the blocks of the layers in a step, from the matrices of the setup. */
void    gr_setup_blocks(struct gr_setup *setup);
/** New edge values, and the arrays computed from them, before they replace the arrays in use. */
struct gr_new_edges {
    graft_csr             graph;   /* of the host, with: */
    int64_t              *row_ptr; /* of 64 bits, if the host's are shorter */
    struct gr_budget      budget;  /* for memory that exists only during the call; without a limit */
    struct gr_graph_copy  copy;
    int                   symmetric;
    graft_matrix         *a_transpose; /* if values were symmetric, and are not any more */
    struct gr_part        part;        /* over ranks, and: */
    struct gr_made_part   made, group; /* of this rank; of the ranks that share columns with it */
    struct gr_edge_sets  *blocks;      /* if all ranks share columns */
    struct gr_plan_values whole, masked[GR_LAYERS_MAX];
    void                 *turned, *masked_turned[GR_LAYERS_MAX]; /* values of transposes */
    void                 *joined;                                /* values of the matrix of attention over ranks */
};
/** begin() derives all arrays that depend on the values, and end(), which cannot fail, puts them into use. fini() is
 *  always due; NULL is legal. \return OK; ERR_STATE (created without values); ERR_ARG (null, other entries);
 *  ERR_FORMAT; ERR_NOMEM: nothing has changed. Collective. */
int32_t gr_new_edges_begin(struct gr_setup *setup, const graft_dataset *dataset, struct gr_new_edges **edges,
                           graft_error *error);
void    gr_new_edges_end(struct gr_setup *setup, struct gr_new_edges *edges);
void    gr_new_edges_fini(struct gr_setup *setup, struct gr_new_edges *edges);
/** Whether values of edges are used: in sums, in draws with weights, or as edge features of attention. */
int     gr_setup_uses_values(const struct gr_setup *setup);
/** The checks over ranks: the rows of the host are the rows of the slice; and for all ranks together, collective. */
int32_t gr_ranks_edges_check(const struct gr_setup *setup, const struct gr_new_edges *edges, graft_error *error);
int32_t gr_ranks_edges_begin(struct gr_setup *setup, struct gr_new_edges *edges, graft_error *error);
void    gr_ranks_edges_end(struct gr_setup *setup, struct gr_new_edges *edges);
/** The rows of this rank as one matrix, whose columns are the owned vertices and then the vertices of the halo.
 *  \return OK; ERR_UNSUPPORTED (more columns than an int32_t can number); ERR_NOMEM: on this rank only. */
int32_t gr_ranks_join(const struct gr_setup *setup, int with_values, struct gr_csr *joined, graft_error *error);
/** The values of the matrix of attention, whose rows have the local entries first. */
void    gr_ranks_join_values(const struct gr_part *part, void *values);

/** The matrix of the setup with the new values, before end(). */
graft_csr gr_new_edges_graph(const struct gr_setup *setup, const struct gr_new_edges *edges);

/** The value of added loops; `remote`, the edges to other ranks, may be NULL. */
struct gr_loop_value gr_setup_loop_value(const struct gr_setup *setup, const graft_csr *remote);
/** Make left and right from the rows of the graph; `remote`, their edges to other ranks, may be NULL. */
int32_t gr_setup_scales(struct gr_setup *setup, const graft_csr *local, const graft_csr *remote, graft_error *error);
/** Compute the scales `left`, and with them `right`, from new values. */
void    gr_setup_scales_refresh(struct gr_setup *setup, const graft_csr *local, const graft_csr *remote);
/** Make a matrix of a csr that Graft made; the matrix takes its arrays, and the csr becomes empty. */
int32_t gr_matrix_take(graft_context *context, struct gr_csr *csr, graft_matrix **matrix, graft_error *error);
/** The features: reordered, normalised, sparse or dense. Collective. */
int32_t gr_setup_features_init(struct gr_setup *setup, graft_error *error);
/** Make the input of the first layer again from dense features. */
void    gr_setup_features_refresh(struct gr_setup *setup);
/** The rows of sparse features from the slices to their owners. The arrays of `made` stay with the setup, or the caller
 *  frees them, also after a failure. Collective. */
int32_t gr_ranks_take_sparse(struct gr_setup *setup, const graft_csr *slice, int stays, struct gr_csr *made,
                             graft_error *error);
/** New values for the sparse features, of the host's rows. \return OK; ERR_ARG (other entries, if features stay
 *  sparse), ERR_FORMAT, ERR_NOMEM: nothing has changed. Collective. */
int32_t gr_setup_sparse_refresh(struct gr_setup *setup, const graft_csr *given, graft_error *error);
/** Whether the sparse features x stay sparse, by option 'sparse_input'. */
int     gr_setup_sparse_is_better(const struct gr_setup *setup, const graft_csr *x);
/** Keep x, of float values and 32-bit columns, in the order of the setup. Its arrays, charged to the budget, are taken,
 *  and x becomes empty. */
int32_t gr_setup_sparse_init(struct gr_setup *setup, struct gr_csr *x, graft_error *error);
void    gr_setup_sparse_fini(struct gr_setup *setup);
/** Set the input of the run to these n_src rows of the sparse features for a step, whose first n_dst are its
 *  destinations, in memory of `budget`, until fini(). Then the caller restores run.input. */
int32_t gr_setup_sparse_rows(struct gr_setup *setup, struct gr_budget *budget, const int64_t *vertex, int64_t n_src,
                             int64_t n_dst, graft_error *error);
void    gr_setup_sparse_rows_fini(struct gr_setup *setup);
/** The same for evaluations. */
int32_t gr_setup_sparse_block(struct gr_setup *setup, struct gr_budget *budget, const int64_t *vertex, int64_t n_src,
                              int64_t n_dst, graft_error *error);
/** A row as floats, and all rows. */
void    gr_features_widen(const struct gr_features *features, int64_t row, float *to);
void    gr_features_widen_all(const struct gr_features *features, int threads, float *to);
/** The first of `count` elements from this place in the array that is not finite, or count. */
int64_t gr_features_not_finite(const graft_dense *x, int64_t from, int64_t count);
/** The element at this place in an array of another type than GRAFT_U8; and the error for a value that is not finite.
 *  \return ERR_FORMAT. */
float   gr_features_element(const graft_dense *x, int64_t at);
int32_t gr_features_refuse(int64_t vertex, int64_t column, double value, graft_error *error);
/** Whether dense features are read from a copy; else in place, and rows of another type are converted to floats when
 *  they are read. Known before the order is made, except for an order by vertices that training needs. */
int     gr_features_are_copied(const struct gr_setup *setup);
/** to[count x width] = the rows of these vertices in the dense features `from`, checked if create() did not check them.
 *  \return OK; ERR_FORMAT (a value is not finite). */
int32_t gr_setup_take_features(const struct gr_setup *setup, const struct gr_input *from, const int64_t *vertex,
                               int64_t count, float *to, graft_error *error);
/** Whether batches read rows of the host's dense features in place, and check the rows that they read: the array may be
 *  a mapped file that is larger than memory. The first pass over all vertices checks all rows. */
int     gr_setup_reads_rows(const struct gr_setup *setup);
/** Whether the setup trains by minibatch. */
int     gr_setup_has_batches(const struct gr_setup *setup);
/** Whether its batches read rows of earlier batches (option history). */
int     gr_setup_has_history(const struct gr_setup *setup);
/** Allocate the arrays of the layers for an evaluation, instead of the arrays of batches; until fini(). Collective.
 *  \return OK; ERR_NOMEM. */
int32_t gr_arrays_for_all(struct gr_setup *setup, graft_error *error);
/** Allocate arrays of the layers for the blocks of a batch, whose other memory has `used` bytes.
 *  \return OK; ERR_NOMEM: on this rank only, and there are no arrays. */
int32_t gr_arrays_for_batch(struct gr_setup *setup, const struct gr_block *blocks, int64_t used, graft_error *error);
int32_t gr_arrays_for_blocks(struct gr_setup *setup, const struct gr_capacity *capacity, graft_error *error);
void    gr_arrays_fini(struct gr_setup *setup);
/** Bytes for an evaluation of all rows at once. */
double  gr_evaluation_bytes(struct gr_setup *setup);
/** Whether evaluations and predictions may go in blocks of rows; and whether they do, by option eval.blocks. */
int     gr_can_go_by_rows(const struct gr_setup *setup);
int     gr_goes_by_rows(struct gr_setup *setup);
/** Check that a file of the outputs of a layer can be made in the folder of option eval.folder, if it is set and has an
 *  effect. \return OK; ERR_IO. */
int32_t gr_by_rows_check_folder(const struct gr_setup *setup, graft_error *error);
void    gr_stored_fini(struct gr_setup *setup);
/** The parts of the graph that a step needs, and the blocks of all layers. Collective. */
int32_t gr_setup_graph_mask(struct gr_setup *setup, graft_error *error);
int32_t gr_ranks_graph_mask(struct gr_setup *setup, graft_error *error);
void    gr_setup_graph_fini(struct gr_setup *setup);
/** Enforce the limit, which was deferred: refuse a limit that is too low for some rank, with a sentence on what would
 *  fit, before the model has any memory. The features and the graph of the steps exist; if ranks share columns, each
 *  has only its own edges. Collective.
 *  \param[out] streams  Whether the edges of other ranks are received for each sum, by option feature.graph, or because
 *                       they do not fit on some rank.
 *  \return OK; ERR_NOMEM, with the same sentence on all ranks. */
int32_t gr_ranks_check_memory(struct gr_setup *setup, int *streams, graft_error *error);
/** The matrices of the edges inside a group, if ranks share columns. Collective. */
int32_t gr_ranks_blocks_init(struct gr_setup *setup, int streams, graft_error *error);
/** Lay out the slices of columns that transposes store from step to step. This takes a channel, so no failure of only
 *  this rank may precede. Not collective. */
int32_t gr_ranks_stale_init(struct gr_setup *setup, graft_error *error);
/** Elements of the winners that this rank stores for layer l of a model with extrema, if ranks share columns. The first
 *  layer sends no gradient back. */
int64_t gr_ranks_winners(const struct gr_setup *setup, int32_t l);
/** Space for all messages of a step. Not collective. */
int32_t gr_ranks_reserve(struct gr_setup *setup, graft_error *error);
/** Columns of the labels that layer l sums beside its input. */
int64_t gr_ranks_label_columns(const struct gr_setup *setup, int32_t l);
/** The columns of this rank in the messages of each layer, and in the widest message of a plan. */
void    gr_ranks_find_widths(struct gr_setup *setup);
int64_t gr_ranks_widest(const struct gr_setup *setup, const graft_plan *plan);
/** Bytes of the spans of a step; 0 without option 'profile'. */
double  gr_spans_need(const struct gr_setup *setup);
/** Space for the spans of a step on all threads of the run, if option 'profile' asks for them. */
int32_t gr_spans_init(struct gr_setup *setup, graft_error *error);
/** From the logits of the owned vertices to the outputs on all ranks. Collective. */
int32_t gr_ranks_give(struct gr_setup *setup, const float *logits, const struct gr_outputs *outputs,
                      graft_error *error);

#endif
