/* A trainer: a data set, a model, and the run of one over the other; what the files of this folder share.
 *
 * trainer.c    create, epoch, evaluate, predict      order.c          the vertices in another order, receptive fields
 * dataset.c    the host's arrays, checked            update.c         the same when they change
 * state.c      the state as named arrays             ranks_data.c     over ranks: the data set
 * graph.c      the graph as the model needs it       ranks_graph.c    over ranks: the graph
 * features.c, sparse.c  the features likewise        ranks_agree.c    over ranks: what must be the same on all
 * plan.c       the memory budget, before anything is made      report.c         memory and spans as tables
 * explain.c    a trainer in a few lines              explain_traffic.c  over ranks: what is sent, in tables
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GR_TRAIN_TRAIN_H
#define GR_TRAIN_TRAIN_H

#include "parallel/partition.h"

/** A breadth-first search, level by level, for the vertices that training depends on. */
struct gr_search {
    int32_t *hop;        /* [n] the level of each vertex; n_layers + 1: not found yet */
    int64_t *queue;      /* [n] vertices in the order in which they are found */
    int64_t  begin, end; /* of the current level in it */
    int64_t  found;      /* the end of the next one */
};

struct gr_progress {
    int64_t epoch, best_epoch;
    double  best_accuracy, best_loss;
};

struct graft_trainer {
    graft_context      *context;
    struct gr_budget    budget;
    struct gr_model     model;
    struct gr_run       run;
    struct gr_strategy  serial;
    struct gr_partition partition; /* where `over` is not NULL */

    graft_dataset  data; /* arrays borrowed from the host */
    graft_csr      graph, sparse_features;
    graft_dense    features;
    graft_graph   *over; /* the graph over ranks, or NULL; then n, and all arrays, are of what this rank owns */
    int64_t        n;
    int64_t        n_seen; /* of attention over ranks, n and the vertices of the halo behind them; else n */
    int64_t        first;  /* vertex of the first row of the host's arrays, while they are checked */
    const int64_t *vertex; /* [n] what the host calls vertex v; NULL: v */
    const int64_t *row;    /* [n] row of the host's arrays that vertex v has; NULL: v */

    /* Receptive fields: a step needs the first reach[l] rows of the input of layer l, and of the logits the first
     * reach[n_layers]. Labelled training vertices come first, then what these gather from, and so on. */
    int64_t reach[GR_LAYERS_MAX + 1];
    int64_t reach_of_all[GR_LAYERS_MAX + 1]; /* the same, over all ranks */

    graft_matrix *a, *a_transpose; /* of all rows; NULL where no layer gathers. See gr_block */
    graft_matrix *masked_a[GR_LAYERS_MAX], *masked_transpose[GR_LAYERS_MAX]; /* of a step, where it has fewer rows */
    int           symmetric;
    float        *left, *right;
    uint8_t      *row_kind;

    struct gr_block        whole, step[GR_LAYERS_MAX]; /* of evaluation, and of the layers in a step */
    const struct gr_block *whole_of[GR_LAYERS_MAX], *step_of[GR_LAYERS_MAX];

    struct gr_progress progress;
    int                state_is_set; /* over ranks: since all had the same */
};

/** Whether a step may compute fewer rows than there are. */
int     gr_masks_rows(const graft_trainer *trainer);
/** The first layer whose graph may have fewer rows in a step: what is aggregated once is aggregated for all rows. */
int32_t gr_first_masked(const graft_trainer *trainer);

/* -- create(), in the order in which it calls them ---------------------------------------------------------------- */

/** Our copies of the host's structs, whose arrays are checked and remain those of the host. */
int32_t gr_trainer_read_dataset(graft_trainer *trainer, graft_error *error);
/** Whether all values of dense features, and of labels, targets and split, are legal. `first` is the vertex of the
 *  first row, for the message. */
int32_t gr_features_check(const graft_dense *features, int64_t first, int threads, graft_error *error);
int32_t gr_targets_check(const struct gr_targets *targets, int64_t first, graft_error *error);
/** Whether all ranks have the same options. Collective. */
int32_t gr_ranks_compare_options(const graft_trainer *trainer, graft_error *error);
/** Whether all ranks have a data set of one kind; with loss=auto, choose the loss. Collective. */
int32_t gr_ranks_compare_data(graft_trainer *trainer, graft_error *error);
/** Rows of so many bytes from the slices to `to`, those of the owned vertices. Collective. */
int32_t gr_ranks_to_owners(const graft_trainer *trainer, const void *from, int64_t stride, int64_t bytes, void *to,
                           graft_error *error);
/** Redistribute the data set from slices to owners: n is that of this rank from now on. Collective. */
int32_t gr_ranks_take(graft_trainer *trainer, graft_error *error);
/** Plan the budget as far as it is known before any of it is used: all but the parts of graph and features whose size
 *  depends on receptive fields. Refuse what cannot fit. replan() does it once more for the layers, when graph and
 *  features are there. */
int32_t gr_trainer_plan(graft_trainer *trainer, graft_error *error);
int32_t gr_trainer_replan(graft_trainer *trainer, graft_error *error);
/** Whether features are expected to stay sparse; if not, they may be constant. */
void    gr_input_expect(graft_trainer *trainer, int sparse);
/** How large the arrays of the layers are, as far as it is known. */
struct gr_capacity gr_capacity_of(const graft_trainer *trainer);
/** The graph: made symmetric, reordered, with self loops and a transpose. Collective. */
int32_t            gr_trainer_graph_init(graft_trainer *trainer, graft_error *error);
int32_t            gr_ranks_graph_init(graft_trainer *trainer, graft_error *error);
/** According to options 'order' and 'row_masks': the order of the vertices of this graph (NULL if edges are not used),
 *  labels, targets and split in that order, and reach. Over ranks `graph` is the local one. Collective. */
int32_t            gr_trainer_order_init(graft_trainer *trainer, const graft_csr *graph, graft_error *error);
/** Continue the current level over ranks: what it gathers from other ranks gets level `hop` there. Collective. */
int32_t            gr_ranks_search(graft_trainer *trainer, struct gr_search *search, int32_t hop, graft_error *error);
/** Vertex v is found on level `hop`, unless it was before. */
static inline void gr_search_add(struct gr_search *search, int64_t v, int32_t hop)
{
    if (search->hop[v] <= hop) return;
    search->hop[v] = hop;
    search->queue[search->found++] = v;
}
/** Make left and right from the rows of the graph; `remote`, their edges to other ranks, may be NULL. */
int32_t gr_trainer_scales(graft_trainer *trainer, const graft_csr *local, const graft_csr *remote, graft_error *error);
/** Make a matrix of a csr that Graft made; the matrix takes its arrays, and leaves it empty. */
struct gr_csr;
int32_t gr_matrix_take(graft_context *context, struct gr_csr *csr, graft_matrix **matrix, graft_error *error);
/** The features: reordered, normalised, sparse or dense. Collective. */
int32_t gr_trainer_features_init(graft_trainer *trainer, graft_error *error);
/** Make the input of the first layer once more from dense features. */
void    gr_trainer_features_refresh(graft_trainer *trainer);
/** According to option 'sparse_input', whether the sparse features x stay sparse. */
int     gr_trainer_sparse_is_better(const graft_trainer *trainer, const graft_csr *x);
/** Keep x, of float values and 32-bit columns, in the order of the trainer. Its arrays, borrowed from the budget, are
 *  taken; it is left empty. */
int32_t gr_trainer_sparse_init(graft_trainer *trainer, struct gr_csr *x, graft_error *error);
void    gr_trainer_sparse_fini(graft_trainer *trainer);
/** The parts of the graph that a step needs, and the blocks of all layers. Collective. */
int32_t gr_trainer_graph_mask(graft_trainer *trainer, graft_error *error);
int32_t gr_ranks_graph_mask(graft_trainer *trainer, graft_error *error);
void    gr_trainer_graph_fini(graft_trainer *trainer);
/** Space for all messages of a step. Not collective. */
int32_t gr_ranks_reserve(graft_trainer *trainer, graft_error *error);
/** Space for the spans of a step on as many threads as the run has, if option 'profile' asks for them. */
int32_t gr_spans_init(graft_trainer *trainer, graft_error *error);

/* -- afterwards --------------------------------------------------------------------------------------------------- */

/** Forget all spans, and have space for those of a step on as many threads as the run has now. */
int32_t gr_spans_reset(graft_trainer *trainer, graft_error *error);
/** Notify the others of a failure that this rank has alone while they wait for it. It counts as a collective
 *  call. */
int32_t gr_ranks_fail(graft_trainer *trainer, int32_t rc, graft_error *error);
/** Whether all ranks have completed as many epochs, and have the state that state_set() may have given them since, and,
 *  before an epoch (`trains`), the same options that it reads. */
int32_t gr_ranks_compare_state(graft_trainer *trainer, int trains, graft_error *error);
/** Logits of the owned vertices, and their classes, to the slices of all ranks. Outputs may be NULL. Collective. */
int32_t gr_ranks_give(graft_trainer *trainer, const float *logits, int32_t *labels, const graft_dense *out,
                      graft_error *error);
/** Bytes of the rows of labels that a rank, or with -1 all, receives in a step. */
int64_t gr_trainer_label_bytes(const graft_trainer *trainer, int32_t rank);
/** Tables of what a step makes each rank receive, layer by layer, and of what the last step sent. */
struct gr_text;
void gr_trainer_explain_traffic(const graft_trainer *trainer, struct gr_text *text);

/* -- graft.train/1 ------------------------------------------------------------------------------------------------ */

int32_t gr_trainer_create(graft_context *context, const graft_dataset *dataset, graft_trainer **trainer,
                          graft_error *error);
void    gr_trainer_destroy(graft_trainer *trainer);
int32_t gr_trainer_epoch(graft_trainer *trainer, graft_epoch *epoch, graft_error *error);
int32_t gr_trainer_update(graft_trainer *trainer, uint32_t what, const graft_dataset *dataset, graft_error *error);
int32_t gr_trainer_evaluate(graft_trainer *trainer, int32_t weights, graft_metrics *metrics, graft_error *error);
int32_t gr_trainer_predict(graft_trainer *trainer, int32_t weights, int32_t *labels, const graft_dense *logits,
                           graft_error *error);
int32_t gr_trainer_state_item(graft_trainer *trainer, int32_t index, graft_state_item *item, graft_error *error);
int32_t gr_trainer_state_set(graft_trainer *trainer, const graft_state_item *item, graft_error *error);
int32_t gr_trainer_memory_item(const graft_trainer *trainer, int32_t index, graft_memory_item *item,
                               graft_error *error);
int32_t gr_trainer_span(const graft_trainer *trainer, int64_t index, graft_span *span, graft_error *error);
int32_t gr_trainer_traffic(const graft_trainer *trainer, int32_t rank, graft_traffic *traffic, graft_error *error);
int32_t gr_trainer_traffic_item(const graft_trainer *trainer, int32_t rank, int32_t index, graft_traffic_item *item,
                                graft_error *error);
int32_t gr_trainer_traffic_pair(const graft_trainer *trainer, int32_t peer, int32_t index, graft_traffic_pair *pair,
                                graft_error *error);
int32_t gr_trainer_explain(graft_trainer *trainer, char *text, uint64_t capacity, graft_error *error);

#endif
