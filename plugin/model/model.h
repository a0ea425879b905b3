/* Models and their training: what the files of this folder share.
 *
 * config.c     options of a trainer                layer.c       all layers, forward and backward
 * graph.c      the graph as the model wants it     conv.c        layers of sage, gcn and mlp
 * features.c   the features as the model wants it  gin.c, gat.c  layers of these
 * parameter.c  weights by name, their first values product.c     the products that layers are made of
 * build.c      the arrays between the passes       rows.c        bias, norm, ReLU, dropout: passes over rows
 * trainer.c    create, epoch, evaluate, predict    loss.c        cross-entropy and accuracy
 * state.c      the state as named arrays           optimizer.c   Adam and SGD
 * ranks.c, ranks.h: over ranks: sums, messages     ranks_data.c  over ranks: the data set
 * traffic.c, traffic.h: over ranks: what is sent   ranks_graph.c over ranks: the graph
 * order.c      the vertices in another order       explain.c     what a trainer is, in a few lines
 * ledger.c     what memory is used for             profile.c     where the time goes
 * sparse.c     features that stay sparse           plan.c        what memory will be used for, before any is
 * labels.c, labels.h: labels as input              explain_traffic.c  over ranks: what is sent, in tables
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GR_MODEL_MODEL_H
#define GR_MODEL_MODEL_H

#include "base/context.h"
#include "base/memory.h"
#include "base/processor.h"
#include "base/team.h"
#include "dense/rows.h"
#include "dgraph/part.h"
#include "graft_train.h"
#include "halo/halo.h"
#include "kernel/kernel.h"
#include "spmm/plan.h"

enum { GR_LAYERS_MAX = 64, GR_STATE_COPIES = 4 };

enum gr_model_kind { GR_MODEL_SAGE, GR_MODEL_GCN, GR_MODEL_GAT, GR_MODEL_GIN, GR_MODEL_MLP, GR_MODEL_KINDS };

/** What an option of "auto|yes|no" says. */
enum gr_choice { GR_NO, GR_YES, GR_AUTO };

struct gr_config {
    enum gr_model_kind kind;
    int32_t            n_layers;
    int64_t            width[GR_LAYERS_MAX + 1]; /* width[l] enters layer l; width[n_layers] is the number of classes */
    int64_t            epochs, eval_every, heads;
    double             lr, dropout, input_dropout, label_rate, weight_decay, momentum, gin_eps;
    int norm, decay_first_only, adam, sigmoid, symmetrize, self_loops, normalize_features, reuse_input, row_masks;
    int recompute;
    enum gr_choice sparse_input;
    uint64_t       seed;
    char           order[16];
};

/** One trained array: [rows x cols], rows 1 for vectors. */
struct gr_parameter {
    char    name[GR_STATE_COPIES][64]; /* of the value, the best value and the two moments, as in the state */
    int32_t n_dims;
    int     decayed; /* the weight decay applies */
    int64_t rows, cols;
    float  *value, *gradient, *best, *m, *v;
};

enum { GR_SOURCE, GR_TARGET, GR_ENDS };

/** What gat has beside a layer of the others: Z = H W of all heads; of every vertex and head, a score as the source and
 *  one as the target of entries; and alpha, the softmax of what these give for each entry. */
struct gr_attention {
    struct gr_parameter *vector[GR_ENDS];         /* [heads x columns of a head] */
    float               *projected;               /* [n x wide] Z */
    float               *per_head;                /* [n x wide] what each of averaged heads gives, else NULL */
    float               *score[GR_ENDS];          /* [n x heads] */
    float               *alpha;                   /* [entries x heads] */
    float               *score_gradient[GR_ENDS]; /* these and the next one are shared by all layers */
    float               *alpha_gradient;
};

/** The forward pass of a layer has two steps: what the backward pass wants beside input and Z, and Z with its bias. */
enum gr_step { GR_STEP_BEGIN, GR_STEP_Z, GR_STEPS };

/** The arrays of a layer by number; see gr_layer and build.c, which makes them. */
enum gr_array {
    GR_ARRAY_GATHERED,
    GR_ARRAY_LABEL_SUMS,
    GR_ARRAY_INNER,
    GR_ARRAY_INNER_BITS,
    GR_ARRAY_PROJECTED,
    GR_ARRAY_SOURCE_SCORE,
    GR_ARRAY_TARGET_SCORE,
    GR_ARRAY_ALPHA,
    GR_ARRAY_Z,
    GR_ARRAY_H,
    GR_ARRAY_MEAN,
    GR_ARRAY_RSTD,
    GR_ARRAY_BITS,
    GR_ARRAY_PER_HEAD,
    GR_ARRAYS
};

/** One layer, its weights and what its forward pass leaves for the backward pass. n rows each. */
struct gr_layer {
    int64_t              count[GR_ARRAYS]; /* elements of its arrays; 0: it has none */
    int                  shares[GR_STEPS]; /* whether arrays of the step are those of other layers too: recompute */
    int64_t              in, out;
    int64_t              wide;            /* columns of what W gives: those of all heads of gat, else out */
    int                  hidden;          /* followed by norm, ReLU and dropout */
    int                  aggregate_first; /* (A H) W rather than A (H W): the same, at another price */
    struct gr_parameter *self, *neigh;    /* sage has both, mlp self only, gcn and gat neigh only; gin: its first */
    struct gr_parameter *bias, *inner_bias, *outer, *gain, *shift;
    float               *gathered;   /* [in] input after aggregation, if that comes first */
    int64_t       rows_in, rows_out; /* of the pass in work: the first of its input and of its output, see reach */
    graft_matrix *a, *a_transpose;   /* of the pass in work, [rows_out x rows_in] and its transpose */
    graft_matrix *masked_a, *masked_transpose; /* those of training, where it has less rows than evaluation */
    graft_plan   *plan, *masked_plan;          /* over ranks, in place of these and those */
    const float  *gathered_of;                 /* the constant input that it is the aggregate of, or NULL */
    float        *label_sums;                  /* [classes] labels after aggregation, in the first layer */
    int           has_label_sums;              /* of the pass in work */
    float        *inner;                       /* [out] gin: ReLU of the first product */
    float        *z;                           /* [out] before norm */
    float        *mean, *rstd;
    uint8_t      *bits, *inner_bits; /* [(out+7)/8] which outputs ReLU and dropout let through */
    float        *h;                 /* [out] what the next layer sees; z itself where there is no norm */
    struct gr_attention attention;
};

/** The first rows of sparse features. */
struct gr_sparse_part {
    int64_t        rows;
    graft_matrix  *x;         /* [rows x in] */
    graft_matrix  *transpose; /* of it, for the gradient of what it is multiplied by; NULL in evaluation */
    float         *transpose_values;
    const int64_t *entry; /* of x, which each of the transpose is */
};

/** Features that stay sparse. A step multiplies the first reach[0] rows, those that the first layer gathers from, and
 *  in sage the first reach[1] ones too, those of the vertices themselves. */
struct gr_sparse {
    struct gr_sparse_part whole;   /* of evaluation; x NULL: the features are dense */
    struct gr_sparse_part step[2]; /* of a step; the second has x NULL where the first one serves */
    float                *dropped; /* values of a step with dropout, or NULL */
};

/** Labels that are part of the input of the first layer: those of each vertex, or the same after aggregation. */
enum gr_label_input { GR_LABELS_NONE, GR_LABELS_OWN, GR_LABELS_GATHERED };

/** The first rows of a matrix as an operand: of a dense one, or of sparse features; with labels, these times their
 *  embedding are added to it. */
struct gr_operand {
    const float                 *data;
    int64_t                      stride;
    int64_t                      rows;
    const struct gr_sparse_part *sparse; /* whole or step of gr_sparse; NULL: dense */
    enum gr_label_input          labels;
};

static inline struct gr_operand gr_dense_operand(const float *data, int64_t stride, int64_t rows)
{
    return (struct gr_operand){ .data = data, .stride = stride, .rows = rows };
}

/** What sets the layers of one kind of model apart. */
struct gr_layer_kind {
    const char *name;       /* as in option "model" */
    int         self_loops; /* what "auto" is for it */

    /** Find the weights of layer l and count the elements of the arrays that are not common to all kinds. */
    int32_t (*init)(graft_trainer *trainer, int32_t l, graft_error *error);
    /** GR_STEP_BEGIN: from x to what the backward pass wants beside x and z. */
    int32_t (*begin)(graft_trainer *trainer, struct gr_layer *layer, struct gr_operand x, graft_error *error);
    /** GR_STEP_Z: from x and that to layer->z, and through the pass over rows behind it. */
    int32_t (*forward)(graft_trainer *trainer, struct gr_layer *layer, struct gr_operand x, struct gr_rows *rows,
                       graft_error *error);
    /** From g, the gradient of z, which it may spoil, to the gradients of the weights and, unless NULL, dx of x. */
    int32_t (*backward)(graft_trainer *trainer, struct gr_layer *layer, struct gr_operand x, float *g, float *dx,
                        graft_error *error);
};
extern const struct gr_layer_kind gr_layer_kinds[GR_MODEL_KINDS];

/** Label propagation: the labels of some training vertices, in evaluation of all, are input of the first layer. */
struct gr_labels {
    struct gr_parameter *embedding; /* [classes x features], or NULL: there is none of this */
    uint8_t             *taken;     /* [reach[n_layers]] whether the label of the vertex is input of the pass in work */
    float               *product;   /* [classes x wide of the first layer] embedding times weights; gradients by it */
    double              *sums;      /* the same */
};

/** What memory is used for; ledger.c says it in words. */
enum gr_use {
    GR_USE_FEATURES,
    GR_USE_GRAPH,
    GR_USE_WEIGHTS,
    GR_USE_OPTIMISER,
    GR_USE_ACTIVATIONS,
    GR_USE_MASKS,
    GR_USE_GRADIENTS,
    GR_USE_MESSAGES,
    GR_USES
};

/** Bits of the rows that gat sees over ranks: those that gather from other ranks, and those of other ranks. */
enum gr_row_kind { GR_ROW_BOUNDARY = 1, GR_ROW_HALO = 2 };

/** Numbers of bits that an element of a row may have: 2^0 to 2^5. */
enum { GR_BITS = 6 };

/** What a layer exchanged in one direction in the last step. */
struct gr_sent {
    const struct gr_flow       *flow; /* [n_ranks] of one exchange, forward; NULL: there was none */
    int64_t                     exchanges;
    int64_t                     alike[GR_BITS]; /* of these, those whose rows all had 2^i bits, and: */
    int64_t                     row_bytes;      /* what one row had in all of them together */
    const struct gr_halo_layer *adapted;        /* whose adaptive widths the rows of the other exchanges had */
    int32_t code, rounding; /* of the last that went in 8 bits or fewer, be it in a step before; else 0 */
};

/** The rows that a layer does in a step, over ranks. */
struct gr_masked_rows {
    struct gr_made_part part;
    graft_plan         *plan; /* NULL: it does all of them, or those that the layer before it does */
};

/** What a trainer over ranks has besides. */
struct gr_ranks {
    graft_plan           *plan;      /* of all rows */
    struct gr_part        part;      /* that the plan is for */
    struct gr_made_part   made;      /* what it has that the graph over ranks has not */
    struct gr_share      *share;     /* [n_ranks] what all have of the graph, made symmetric or not */
    struct gr_links       links;     /* of the halo, while create() is at work */
    struct gr_halo_rows   halo_rows; /* gat has this in place of a plan, and: */
    uint8_t              *kind;      /* [n_seen] of each row of its matrix and of the transpose: enum gr_row_kind */
    struct gr_sent       *sent;      /* [layers x GR_DIRECTIONS], and one of features that are gathered once */
    struct gr_send_stats *pairs;     /* [layers x GR_DIRECTIONS x n_ranks] of this rank to each other, in the last
                                        step; what was lost: since the trainer was made */
    struct gr_masked_rows masked[GR_LAYERS_MAX];
    int                   is_async;    /* what options say of it, and: */
    int64_t               sync_every;  /* 0: no step but the first waits for that */
    double                drift_limit; /* likewise */
    int                   waits;       /* the step in work has its own rows, asynchronous or not */
    double                drift;       /* of rows of the last step, |new - old| / |new| */
    int                   has_waited;  /* the last step had its own rows, asynchronous; and: */
    int64_t               waited;      /* how many did since the trainer was made */
    double                polled;      /* when gr_ranks_poll() did something */
    int64_t               adapt_every; /* of adaptive bits; 0: once */
    int64_t               traced;      /* steps since they were decided on, and: */
    int                   is_adapted;  /* they were */
};

/** A search for what training depends on, breadth first and level by level. */
struct gr_search {
    int32_t *hop;        /* [n] the level of each vertex; n_layers + 1: none so far */
    int64_t *queue;      /* [n] vertices as they are found */
    int64_t  begin, end; /* of the level in it that is followed */
    int64_t  found;      /* the end of the next one */
};

struct gr_progress {
    int64_t epoch, best_epoch;
    double  best_accuracy, best_loss;
};

struct graft_trainer {
    graft_context          *context;
    struct gr_config        config;
    const struct gr_module *dense;
    graft_dtype             dense_type; /* what it multiplies */
    struct gr_pool          pool[GR_USES];
    int64_t                 memory_limit;     /* bytes that the ledger may come to */
    double                  planned[GR_USES]; /* bytes that each use will come to at least */
    int64_t                 borrowed;         /* bytes of what create() works with, see gr_ledger_borrow() */

    graft_dataset   data; /* arrays borrowed from the host */
    graft_csr       graph, sparse_features;
    graft_dense     features;
    graft_graph    *over; /* the graph over ranks, or NULL; then n, and all arrays, are of what this rank owns */
    struct gr_ranks ranks;
    int64_t         n;
    int64_t        n_seen; /* of gat over ranks, n and the vertices of others that its layers see behind them; else n */
    int64_t        first;  /* vertex of the first row of the host's arrays, while they are looked at */
    int64_t        n_train; /* training vertices that have a label, of all ranks */
    int64_t        n_loss;  /* of these, those that are in the loss of the step */
    const int64_t *vertex;  /* [n] what the host calls vertex v; NULL: v */
    const int64_t *row;     /* [n] row of the host's arrays that vertex v has; NULL: v */
    /* A step of training needs the first reach[l] rows of the input of layer l, and of the logits the first
     * reach[n_layers]: those of labelled training vertices come first, then what they gather from, and so on. */
    int64_t        reach[GR_LAYERS_MAX + 1];
    int64_t        reach_of_all[GR_LAYERS_MAX + 1]; /* the same, over all ranks */

    /* a_transpose is a if the graph is symmetric, and NULL for gat, which maps the entries of a; both NULL for mlp. */
    graft_matrix    *a, *a_transpose;
    int              symmetric;
    float           *left, *right; /* aggregation is diag(left) A diag(right); NULL: 1 */
    const float     *x;            /* [n x width[0]] features */
    int64_t          x_stride;
    float           *x_dropped; /* the same with dropout, or NULL */
    struct gr_sparse sparse;    /* the features in place of x, if they stay sparse */
    int              keeps_sparse;
    struct gr_labels labels;

    struct gr_layer      layers[GR_LAYERS_MAX];
    int32_t              holder[GR_STEPS]; /* the layer whose values are in the arrays that layers share */
    struct gr_parameter *parameters;
    int32_t              n_parameters;
    float               *gradients; /* [n_weights] those of all parameters, one behind the other */
    int64_t              n_weights;
    float               *gradient[2]; /* [rows of a step x the widest] of z and of h, taking turns */
    float               *scratch;     /* [n x the widest] */
    double              *partial;     /* sums over chunks of rows */
    struct gr_progress   progress;
    int                  state_is_set; /* over ranks: since all had the same */
    struct gr_profile   *profile;      /* NULL: nothing is recorded */
    int32_t              layer_now;    /* what a span is recorded under */
    int32_t              pass_now;
    int                  threads;
    enum gr_isa          isa; /* that the loops over rows use */
};

/** Columns of what the weights of layer l give: of all heads of gat, which the last layer averages; else its output. */
static inline int64_t gr_config_wide(const struct gr_config *config, int32_t l)
{
    const int averaged = config->kind == GR_MODEL_GAT && l + 1 == config->n_layers;

    return config->width[l + 1] * (averaged ? config->heads : 1);
}

/** Whether vertex v, in the order of data.labels, has something to learn from; and whether training does. */
static inline int gr_has_target(const graft_trainer *trainer, int64_t v)
{
    return trainer->data.targets != NULL || (trainer->data.labels != NULL && trainer->data.labels[v] >= 0);
}

static inline int gr_is_trained(const graft_trainer *trainer, int64_t v)
{
    return trainer->data.split != NULL && trainer->data.split[v] == GRAFT_SPLIT_TRAIN && gr_has_target(trainer, v);
}

/** Whether labels are input. */
static inline int gr_propagates(const graft_trainer *trainer)
{
    return trainer->config.label_rate > 0;
}

/** Whether a step may do fewer rows than there are. */
static inline int gr_masks_rows(const graft_trainer *trainer)
{
    return trainer->config.row_masks && trainer->config.kind != GR_MODEL_GAT && trainer->n_train > 0;
}

/** Whether what the first layer gathers of the features is made once and kept: if they are dense, and enter every pass
 *  as they are. */
static inline int gr_gathers_once(const graft_trainer *trainer)
{
    return trainer->config.reuse_input && trainer->config.input_dropout == 0 && !trainer->keeps_sparse;
}

/** The first layer whose graph a step may do fewer rows of: what is gathered once is gathered for all rows. */
static inline int32_t gr_first_masked(const graft_trainer *trainer)
{
    return gr_gathers_once(trainer) && !gr_propagates(trainer);
}

/** As GR_NEW, for memory of the trainer. ERR_NOMEM with the ledger in the message if it would be more than may be. */
#define GR_LEDGER_NEW(trainer, use, ptr, count, error)                                                                 \
    (((ptr) = gr_ledger_new((trainer), (use), (count), sizeof *(ptr), #ptr, (error))) != NULL ? GRAFT_OK               \
                                                                                              : GRAFT_ERR_NOMEM)

void   *gr_ledger_new(graft_trainer *trainer, enum gr_use use, int64_t count, uint64_t element_bytes, const char *name,
                      graft_error *error);
/** ERR_NOMEM with the ledger if so many bytes more are too many. */
int32_t gr_ledger_check(const graft_trainer *trainer, double wanted, const char *name, graft_error *error);
/** Room for what create() works with and lets go of again: it is in no item, but held against the limit with them.
 *  Refused as above. A create() that fails need not return it. */
int32_t gr_ledger_borrow(graft_trainer *trainer, int64_t bytes, const char *name, graft_error *error);
void    gr_ledger_return(graft_trainer *trainer, int64_t bytes);
/** Say what a use will come to at least, all that it has already included; messages tell it beside what is taken. */
void    gr_ledger_plan(graft_trainer *trainer, enum gr_use use, double bytes);
/** Bytes that all uses will come to at least; and ERR_NOMEM with them if that is too much, `advice` at the end. */
double  gr_ledger_planned(const graft_trainer *trainer);
int32_t gr_ledger_check_plan(const graft_trainer *trainer, const char *advice, graft_error *error);
int     gr_ledger_has_room(const graft_trainer *trainer, double wanted);
void    gr_ledger_init(graft_trainer *trainer);
int64_t gr_ledger_bytes(const graft_trainer *trainer, enum gr_use use);
int64_t gr_ledger_total(const graft_trainer *trainer);
int32_t gr_ledger_item(const graft_trainer *trainer, int32_t index, graft_ledger_item *item, graft_error *error);
/** "features 1.0, graph 2.0, ...", in MB; what is planned, where that is more, if `planned`. */
void    gr_ledger_text(const graft_trainer *trainer, int planned, char *text, uint64_t capacity);

/** Tell the ledger what create() will take at least, as far as it is known before any of it is: all but the parts of
 *  graph and features whose size the vertices in reach of training decide. Refuse what cannot fit. */
int32_t gr_model_plan(graft_trainer *trainer, graft_error *error);
/** The same once more for the layers, when graph and features are there. */
int32_t gr_model_replan(graft_trainer *trainer, graft_error *error);

/** Spans of time: those between begin and end, under the layer and the pass of the trainer, and in them those of each
 *  thread that took part. Phases do not overlap, and what runs as gr_profile_team() does so inside of one. */
int32_t gr_profile_init(graft_trainer *trainer, graft_error *error);
double  gr_profile_begin(const graft_trainer *trainer);
void    gr_profile_end(const graft_trainer *trainer, const char *phase, double begin, double bytes, double flops);
/** A part of the phase that ends next, of which it is the last if `end` is 0: it lasts as long then. With `waits`, all
 *  of it was waiting for other ranks. */
void    gr_profile_part(const graft_trainer *trainer, const char *name, double begin, double end, int waits);
/** The same for what the caller's thread did by itself. */
void    gr_profile_end_alone(const graft_trainer *trainer, const char *phase, double begin);
/** All threads of the trainer, with their times if a profile is recorded. */
struct gr_team gr_profile_team(const graft_trainer *trainer);
/** Forget all spans, and have room for those of a step on as many threads as the trainer has now. */
int32_t        gr_profile_reset(graft_trainer *trainer, graft_error *error);
int32_t        gr_profile_span(const graft_trainer *trainer, int64_t index, graft_span *span, graft_error *error);

int32_t gr_config_read(graft_context *context, const graft_dataset *data, struct gr_config *config, graft_error *error);

/** By options 'order' and 'row_masks', the vertices of this graph, NULL if it is of no matter, data.labels, targets and
 *  split in their order, and reach. Over ranks, where the graph is the local one, collective. */
int32_t            gr_model_order_init(graft_trainer *trainer, const graft_csr *graph, graft_error *error);
/** Vertex v is found on level `hop`, unless it was before. */
static inline void gr_search_add(struct gr_search *search, int64_t v, int32_t hop)
{
    if (search->hop[v] <= hop) return;
    search->hop[v] = hop;
    search->queue[search->found++] = v;
}
int32_t gr_model_graph_init(graft_trainer *trainer, graft_error *error);
/** Make left and right from the rows of the graph; `remote`, their entries at other ranks, may be NULL. */
int32_t gr_model_scales(graft_trainer *trainer, const graft_csr *local, const graft_csr *remote, graft_error *error);
/** The parts of the graph that a step needs, layer by layer; to be made when it is known how the first one works. Over
 *  ranks collective. */
int32_t gr_model_graph_mask(graft_trainer *trainer, graft_error *error);
void    gr_model_graph_fini(graft_trainer *trainer);
/** Whether dense features are what they should be. */
int32_t gr_model_features_check(const graft_trainer *trainer, graft_error *error);
/** Collective, of trainers over ranks: they agree on what fails in it. */
int32_t gr_model_features_init(graft_trainer *trainer, graft_error *error);

struct gr_csr;
/** Wrap a csr that Graft made; the matrix takes its arrays, and leaves it empty. */
int32_t gr_model_wrap(graft_context *context, struct gr_csr *csr, graft_matrix **matrix, graft_error *error);
/** By option 'sparse_input', whether the sparse features x stay so. */
int     gr_sparse_is_better(const graft_trainer *trainer, const graft_csr *x);
/** Keep x, of float values and 32-bit columns, in the order of the trainer. Its arrays, borrowed of the
 *  ledger, are taken; it is left empty. */
int32_t gr_sparse_init(graft_trainer *trainer, struct gr_csr *x, graft_error *error);
void    gr_sparse_fini(graft_trainer *trainer);
/** The values of a step: dropout with the draws that the same features would have if they were dense. */
void    gr_sparse_dropout(graft_trainer *trainer, uint64_t key, uint32_t threshold);
int64_t gr_sparse_bytes(const graft_trainer *trainer);

/** Their names and shapes, without their values. */
int32_t              gr_parameters_describe(graft_trainer *trainer, graft_error *error);
int32_t              gr_parameters_init(graft_trainer *trainer, graft_error *error);
struct gr_parameter *gr_parameter_find(graft_trainer *trainer, int32_t layer, const char *name);

/** Find the weights of all layers and count the elements of their arrays, and plan what these come to. It is done once
 *  before graph and features are made, on what is certain then, and again by gr_layers_init(). */
int32_t gr_layers_plan(graft_trainer *trainer, graft_error *error);
int32_t gr_layers_init(graft_trainer *trainer, graft_error *error);
/** Entries of the graph; those of the host's, before it is made. */
int64_t gr_model_entries(const graft_trainer *trainer);
/** Elements of what all layers of gat share. */
int64_t gr_gat_shared_count(const graft_trainer *trainer);
/** Make that. */
int32_t gr_gat_share(graft_trainer *trainer, graft_error *error);
/** Whether layer l computes (A H) W rather than A (H W). */
int     gr_layer_aggregates_first(const graft_trainer *trainer, int32_t l);

/* The members of gr_layer_kinds. */
int32_t gr_conv_init(graft_trainer *trainer, int32_t l, graft_error *error);
int32_t gr_conv_begin(graft_trainer *trainer, struct gr_layer *layer, struct gr_operand x, graft_error *error);
int32_t gr_conv_forward(graft_trainer *trainer, struct gr_layer *layer, struct gr_operand x, struct gr_rows *rows,
                        graft_error *error);
int32_t gr_conv_backward(graft_trainer *trainer, struct gr_layer *layer, struct gr_operand x, float *g, float *dx,
                         graft_error *error);
int32_t gr_gin_init(graft_trainer *trainer, int32_t l, graft_error *error);
int32_t gr_gin_begin(graft_trainer *trainer, struct gr_layer *layer, struct gr_operand x, graft_error *error);
int32_t gr_gin_forward(graft_trainer *trainer, struct gr_layer *layer, struct gr_operand x, struct gr_rows *rows,
                       graft_error *error);
int32_t gr_gin_backward(graft_trainer *trainer, struct gr_layer *layer, struct gr_operand x, float *g, float *dx,
                        graft_error *error);
int32_t gr_gat_init(graft_trainer *trainer, int32_t l, graft_error *error);
int32_t gr_gat_begin(graft_trainer *trainer, struct gr_layer *layer, struct gr_operand x, graft_error *error);
int32_t gr_gat_forward(graft_trainer *trainer, struct gr_layer *layer, struct gr_operand x, struct gr_rows *rows,
                       graft_error *error);
int32_t gr_gat_backward(graft_trainer *trainer, struct gr_layer *layer, struct gr_operand x, float *g, float *dx,
                        graft_error *error);

/** out[x.rows x w->cols] = diag(scale) (x w + beta out), for beta 0 or 1; scale NULL: 1. x may be sparse features here
 *  and in those with x below. */
int32_t gr_product(const graft_trainer *trainer, struct gr_operand x, const struct gr_parameter *w, float beta,
                   const float *scale, float *out, graft_error *error);
/** rows->z[x.rows x w->cols] = x w + beta z, and then the pass over rows, block by block in the caches if it can be. */
int32_t gr_product_rows(const graft_trainer *trainer, struct gr_operand x, const struct gr_parameter *w, float beta,
                        struct gr_rows *rows, graft_error *error);
/** The gradient of w in it: x^T g, added to what is there if beta is 1, not 0. With labels the gradient of their
 *  embedding is added to that too. */
int32_t gr_product_weight_gradient(const graft_trainer *trainer, struct gr_operand x, const float *g, float beta,
                                   struct gr_parameter *w, graft_error *error);
/** The gradient of x in it: out[rows x w->rows] = diag(scale) (g w^T + beta out). */
int32_t gr_product_input_gradient(const graft_trainer *trainer, const float *g, int64_t rows,
                                  const struct gr_parameter *w, float beta, const float *scale, float *out,
                                  graft_error *error);
/** Along which matrix: that of a layer and pass, for its input or for labels beside it, that of all rows, or the
 *  transpose of that of the layer. */
enum gr_way { GR_GATHER, GR_GATHER_LABELS, GR_GATHER_ALL, GR_SCATTER };
/** out[rows x width] = diag(scale) a x, added to out if `add`; over ranks with the rows of others. */
struct gr_sum {
    enum gr_way       way;
    const float      *scale;
    struct gr_operand x;
    int64_t           width;
    int               add;
    float            *out;
};
int32_t gr_product_gather(const graft_trainer *trainer, const struct gr_layer *layer, const struct gr_sum *sum,
                          graft_error *error);

/** layer->gathered = diag(scale) A x, or for gin (1 + eps) x + A x, unless it is that already: features that do not
 *  change are aggregated once. Labels of x go to layer->label_sums likewise, once in a pass. */
int32_t gr_layer_gather(const graft_trainer *trainer, struct gr_layer *layer, struct gr_operand x, graft_error *error);

/** What it made of the input, as an operand. */
struct gr_operand gr_layer_gathered(const struct gr_layer *layer);

/** Of x, with as many rows as the input, zero those behind the rows that the output has. */
void gr_layer_clear_rest(const graft_trainer *trainer, const struct gr_layer *layer, float *x, int64_t width);
/** out[x.rows x width] = diag(scale) x, or factor * x where scale is NULL, under phase "rows". x may be out. */
void gr_layer_scale(const graft_trainer *trainer, struct gr_operand x, const float *scale, float factor, float *out,
                    int64_t width);

/** A pass over rows of a layer, under phase "rows". */
void gr_layer_rows_forward(const graft_trainer *trainer, const struct gr_rows *rows);
void gr_layer_rows_backward(const graft_trainer *trainer, const struct gr_rows *rows,
                            const struct gr_rows_gradient *gradient);

/** Run all layers; with `training`, with dropout. The logits are z of the last layer. */
int32_t gr_layers_forward(graft_trainer *trainer, int training, graft_error *error);
/** From the gradient of the logits in trainer->gradient[0] to those of all parameters. */
int32_t gr_layers_backward(graft_trainer *trainer, graft_error *error);

/** Mean loss over the vertices that are in it and, in gradient, its gradient by the logits; over ranks, the part that
 *  this rank has in the mean. */
double  gr_loss_gradient(const graft_trainer *trainer, const float *logits, float *gradient);
/** Loss and accuracy of all splits. */
int32_t gr_loss_measure(const graft_trainer *trainer, const float *logits, graft_metrics *metrics, graft_error *error);
int64_t gr_argmax(const float *row, int64_t n);

void gr_optimizer_step(graft_trainer *trainer);

int32_t gr_trainer_create(graft_context *context, const graft_dataset *dataset, graft_trainer **trainer,
                          graft_error *error);
void    gr_trainer_destroy(graft_trainer *trainer);
int32_t gr_trainer_epoch(graft_trainer *trainer, graft_epoch *epoch, graft_error *error);
int32_t gr_trainer_evaluate(graft_trainer *trainer, int32_t weights, graft_metrics *metrics, graft_error *error);
int32_t gr_trainer_predict(graft_trainer *trainer, int32_t weights, int32_t *labels, const graft_dense *logits,
                           graft_error *error);
int32_t gr_trainer_state_item(graft_trainer *trainer, int32_t index, graft_state_item *item, graft_error *error);
int32_t gr_trainer_state_set(graft_trainer *trainer, const graft_state_item *item, graft_error *error);
int32_t gr_trainer_traffic(const graft_trainer *trainer, int32_t rank, graft_traffic *traffic, graft_error *error);
int32_t gr_trainer_traffic_item(const graft_trainer *trainer, int32_t rank, int32_t index, graft_traffic_item *item,
                                graft_error *error);
int32_t gr_trainer_traffic_pair(const graft_trainer *trainer, int32_t peer, int32_t index, graft_traffic_pair *pair,
                                graft_error *error);
int32_t gr_trainer_explain(graft_trainer *trainer, char *text, uint64_t capacity, graft_error *error);

#include "parallel/ranks.h"
#include "train/traffic.h"

#endif
