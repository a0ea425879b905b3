/* A run: a model that runs on blocks, with a strategy. Layers access nothing else.
 *
 * build.c  the arrays of the layers         layer.c    all layers, forward and backward
 * conv.c, gin.c, gat.c, sgc.c, appnp.c  kinds of layers
 * product.c  the products of layers
 * jumping.c  the input of the last layer from all hidden layers      batch_norm.c  statistics over all vertices
 * workers.c  sums and dense products in a pipeline
 * labels.c  labels as input                 sparse.c   sparse features     extrema.c  extrema over neighbours
 * loss.c  losses and metrics of classes     regression.c  the same for float targets
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GR_MODEL_RUN_H
#define GR_MODEL_RUN_H

#include "base/profile.h"
#include "model/model.h"
#include "model/strategy.h"
#include "model/targets.h"
#include "nn/rows.h"

#include <math.h>

enum { GR_SOURCE, GR_TARGET, GR_ENDS };

/** The additional arrays of attention: Z = H W of all heads; for every vertex and head a score as the source and one as
 *  the target of edges; and alpha, the softmax over the edges of a vertex. */
struct gr_attention {
    float *projected;      /* [n_seen x wide] Z */
    float *per_head;       /* [n_dst x wide] results of heads that are averaged, else NULL */
    float *score[GR_ENDS]; /* [n_seen x heads] */
    float *edge_factor[2]; /* [features of an edge x heads] products of both weights, and the gradient; or NULL */
    float *alpha;          /* [edges x heads] */
    float *dropped;        /* [edges x heads] alpha after its dropout in a step; NULL: no dropout */
    float *score_gradient[GR_ENDS]; /* shared by all layers, like the next array */
    float *alpha_gradient;
    int    awaits_halo; /* rows of the halo are in transit, or have not been used yet */
};

/** The forward pass of a layer has two steps: first the arrays that the backward pass needs beside input and Z, then Z
 *  with its bias. */
enum gr_step { GR_STEP_BEGIN, GR_STEP_Z, GR_STEPS };

/** The arrays of gr_activations by number; build.c makes them. */
enum gr_array {
    GR_ARRAY_GATHERED,
    GR_ARRAY_WINNER,
    GR_ARRAY_LABEL_SUMS,
    GR_ARRAY_INNER,
    GR_ARRAY_INNER_BITS,
    GR_ARRAY_PROJECTED,
    GR_ARRAY_SOURCE_SCORE,
    GR_ARRAY_TARGET_SCORE,
    GR_ARRAY_EDGE_FACTOR,
    GR_ARRAY_EDGE_FACTOR_GRADIENT,
    GR_ARRAY_ALPHA,
    GR_ARRAY_DROPPED,
    GR_ARRAY_Z,
    GR_ARRAY_H,
    GR_ARRAY_OUTPUT,
    GR_ARRAY_JOINED,
    GR_ARRAY_MEAN,
    GR_ARRAY_RSTD,
    GR_ARRAY_BITS,
    GR_ARRAY_PER_HEAD,
    GR_ARRAYS
};

/** The state of one layer on a block: results of its forward pass for the backward pass. */
struct gr_activations {
    int32_t                index;
    const struct gr_layer *layer;
    const struct gr_block *block;            /* of the current pass */
    int64_t                count[GR_ARRAYS]; /* elements of each array; 0: there is none */
    int                    shared[GR_STEPS]; /* arrays of the step are shared with other layers: option recompute */
    int                    aggregate_first;  /* (A H) W rather than A (H W): the same result at another cost */
    float                 *gathered;         /* [n_dst x in] input after aggregation, if the layer aggregates first */
    const float           *gathered_of;      /* the constant input of this aggregation, or NULL */
    int32_t               *winner; /* [n_dst x in] neighbours that gave the extrema, of the index type of the edges */
    float                 *label_sums;        /* [n_dst x classes] labels after aggregation, in the first layer */
    int                    has_label_sums;    /* of the current pass */
    float                 *inner;             /* [n_dst x out] of the kind; gin: ReLU of the first product */
    float                 *z;                 /* [n_dst x out] before norm */
    float                 *mean, *rstd;       /* [n_dst] of rows; BatchNorm: [out] of columns */
    uint8_t               *bits, *inner_bits; /* [n_dst x (out+7)/8] elements that ReLU and dropout keep */
    float                 *h;      /* [n_dst x out] after norm, activation and dropout; z itself without norm */
    float                 *output; /* [n_dst x out] input of the next layer: h, or with a residual ELU another array */
    float                 *joined; /* [n_src x in] read by the layer instead of one output: jumping.c */
    struct gr_attention    attention;
};

/** Columns of the sums of a layer over neighbours. */
static inline int64_t gr_summed_columns(const struct gr_activations *a)
{
    return a->aggregate_first ? a->layer->in : a->layer->out;
}

/** Sparse features: their first rows. */
struct gr_sparse_part {
    int64_t        rows;
    graft_matrix  *x;         /* [rows x in] */
    graft_matrix  *transpose; /* for the gradient of the other factor; NULL in evaluation */
    float         *transpose_values;
    const int64_t *entry; /* for each entry of the transpose, its entry in x */
};

/** A step of training multiplies the first n_src rows, from which the first layer gathers, and, for kinds with
 *  `own_rows`, the first n_dst rows too. */
struct gr_sparse {
    struct gr_sparse_part whole;   /* of evaluation; x NULL: features are dense, or features of a block are in `step` */
    struct gr_sparse_part step[2]; /* the second has x NULL if the first serves for both */
    float                *dropped; /* values of a step with dropout, or NULL */
};

/** The input of the first layer. */
struct gr_input {
    const void            *x;    /* NULL: sparse */
    graft_dtype            type; /* GRAFT_F32; other types if batches and blocks of rows convert them to floats */
    int64_t                stride;
    float                 *dropped; /* [n_src x width] space for dropout, or NULL */
    struct gr_sparse       sparse;
    int                    is_sparse;   /* they stay sparse, or are expected to stay sparse */
    int                    is_constant; /* x is dense and changes only in update(); its sums are kept, over: */
    const struct gr_block *whole;       /* the block of evaluation */
};

/** Labels that are part of the input of the first layer: of the vertex itself, or after aggregation. */
enum gr_label_input { GR_LABELS_NONE, GR_LABELS_OWN, GR_LABELS_GATHERED };

/** The first rows of a matrix as an operand: dense, or sparse features; with labels, their product with the embedding
 *  is added. */
struct gr_operand {
    const void                  *data; /* floats, unless x_type of gr_sparse_product has another type */
    int64_t                      stride;
    int64_t                      rows;
    const struct gr_sparse_part *sparse; /* whole or step of gr_sparse; NULL: dense */
    enum gr_label_input          labels;
};

static inline struct gr_operand gr_dense_operand(const void *data, int64_t stride, int64_t rows)
{
    return (struct gr_operand){ .data = data, .stride = stride, .rows = rows };
}

/** Label propagation: the labels of some training vertices, or in evaluation of all, are input of the first layer. */
struct gr_labels {
    int64_t  rows;    /* vertices whose labels may be input are among the first ones */
    uint8_t *taken;   /* [rows] the label of the vertex is input of the current pass */
    float   *product; /* [classes x wide of the first layer] embedding times weights, and its gradient */
    double  *sums;    /* the same */
};

/** The required sizes of the arrays of a run. */
struct gr_capacity {
    int64_t rows;          /* destinations of a layer */
    int64_t seen;          /* columns of the edges: sources and halo */
    int     predicts;      /* no pass goes backward */
    int     reads_history; /* blocks of batches have rows of earlier batches behind their own */
    int64_t edges;         /* for attention */
    int64_t winner_words;  /* of 32 bits in an index of the edges; 0: the strategy keeps the winners */
    int64_t gradient_rows; /* rows of a step that have gradients */
    int64_t label_rows;    /* gr_labels.rows */
    int64_t measured;      /* vertices whose outputs are measured, if more than `seen` */
    struct gr_layer_size {
        int64_t rows, seen, edges;
    } layer[GR_LAYERS_MAX]; /* for the blocks of a batch, which differ in size; all 0: as above */
};

struct gr_run {
    graft_context          *context;
    struct gr_model        *model;
    struct gr_strategy     *strategy;
    struct gr_profile       profile;
    const struct gr_module *dense;
    graft_dtype             dense_type; /* that dense products multiply */
    int                     threads;
    enum gr_isa             isa;
    struct gr_input         input;
    struct gr_targets       targets;
    struct gr_labels        labels;

    struct gr_activations layers[GR_LAYERS_MAX];
    int                   predicts;         /* the arrays are for passes without a backward pass */
    int32_t               holder[GR_STEPS]; /* the layer whose values are in the arrays that layers share */
    float                *gradient[2];      /* [gradient_rows x widest] of z and of h, alternating */
    float                *residual;         /* [gradient_rows x widest] of the output of a layer that adds its input */
    float                *jumped;           /* [gradient_rows x in] of `joined` */
    float                *scratch;          /* [seen x widest] */
    uint16_t             *rounded;          /* [seen x widest] rows that a sum reads, as bfloat16; NULL: as floats */
    double               *partial;          /* sums over chunks of rows */
    double               *column_sums;      /* [n_column_sums] of BatchNorm, over all ranks */
    int64_t               n_column_sums;

    struct gr_workers *workers; /* NULL: there are none */

    _Atomic int64_t *left[2]; /* [chunks of rows] of gr_rows_backward: after a layer, and inside it */

    /* The current pass: */
    struct gr_epilogue *below; /* the pass over rows of the layer below, for the last product that writes dx; or NULL */
    int32_t             pass;  /* GRAFT_PASS_... */
    int32_t             layer; /* -1: none */
    int64_t             epoch; /* steps of training before it */
};

static inline const struct gr_config *gr_run_config(const struct gr_run *run)
{
    return &run->model->config;
}

/** Whether the pass belongs to a step, so that there is dropout. */
static inline int gr_is_training(const struct gr_run *run)
{
    return run->pass != GRAFT_PASS_EVALUATION;
}

/** Whether BatchNorm follows the layer. */
static inline int gr_has_batch_norm(const struct gr_run *run, const struct gr_layer *layer)
{
    return layer->hidden && gr_run_config(run)->norm == GR_NORM_BATCH;
}

/** Mean and deviation of the columns of Z over all its rows on all ranks, and the pass over rows that needs them.
 *  Collective. */
int32_t gr_batch_norm_forward(struct gr_run *run, const struct gr_activations *a, struct gr_rows *rows,
                              graft_error *error);
/** Use the running statistics instead, for evaluation. */
void    gr_batch_norm_take_running(const struct gr_activations *a);
/** After gr_rows_backward_end(), through the pass and the statistics to the gradient of Z. Collective. */
int32_t gr_batch_norm_backward(struct gr_run *run, struct gr_rows_backward *pass, graft_error *error);

/** Fill `joined` of the layer that reads all hidden layers, of which config.jumping is not NONE. */
void gr_jumping_join(struct gr_run *run);
/** Write the part of run->jumped that belongs to the output of layer l to `gradient`, or add it, in the rows of
 *  `joined`. */
void gr_jumping_gradient(struct gr_run *run, int32_t l, int add, float *gradient);

/** Whether labels are input. */
static inline int gr_propagates(const struct gr_run *run)
{
    return run->model->config.label_rate > 0;
}

/** All threads of the run, with their times if a profile is recorded; while they work, messages move. */
struct gr_team gr_run_team(const struct gr_run *run);

/** Count the elements of all arrays for blocks of this capacity, and plan their bytes. */
void         gr_run_plan(struct gr_run *run, struct gr_budget *budget, const struct gr_capacity *capacity);
/** Allocate the planned arrays. */
int32_t      gr_run_init(struct gr_run *run, struct gr_budget *budget, const struct gr_capacity *capacity,
                         graft_error *error);
/** Forget arrays whose budget was freed. */
void         gr_run_clear(struct gr_run *run);
/** Run all layers over blocks[n_layers], blocks[0] for the first layer. GRAFT_PASS_FORWARD: a step of training, with
 *  dropout; GRAFT_PASS_EVALUATION: without. The logits are then z of the last layer. */
int32_t      gr_run_forward(struct gr_run *run, int32_t pass, const struct gr_block *const *blocks, graft_error *error);
/** Only layer l, of an evaluation over this block. The caller has put the outputs that the layer reads into the layers
 *  below, or the features of the block into run->input. */
int32_t      gr_run_layer(struct gr_run *run, int32_t l, const struct gr_block *block, graft_error *error);
/** From the gradient of the logits in run->gradient[0], [n_dst of the last layer x classes], to the gradients of all
 *  parameters. After a forward pass of training over the same blocks. */
int32_t      gr_run_backward(struct gr_run *run, graft_error *error);
/** One step up to the gradients: forward, loss and backward. \param[out] loss The part of this rank. */
int32_t      gr_run_step(struct gr_run *run, const struct gr_block *const *blocks, double *loss, graft_error *error);
const float *gr_run_logits(const struct gr_run *run);

/* -- functions for kinds of layers -------------------------------------------------------------------------------- */

/** After a product: the epilogue, unless the product or an earlier call has done it. NULL is legal. */
void gr_epilogue_end(struct gr_run *run, struct gr_epilogue *epilogue);

/** out[x.rows x w->cols] = diag(scale) (x w + beta out), for beta 0 or 1; scale NULL: 1. x may be sparse features, also
 *  in the functions below. */
int32_t gr_product(struct gr_run *run, struct gr_operand x, const struct gr_parameter *w, float beta,
                   const float *scale, float *out, graft_error *error);
/** rows->z[x.rows x w->cols] = x w + beta z, and then the pass over rows, block by block in the caches if possible. */
int32_t gr_product_rows(struct gr_run *run, struct gr_operand x, const struct gr_parameter *w, float beta,
                        struct gr_rows *rows, graft_error *error);
/** The gradient of w: x^T g, added to the present gradient if beta is 1, not if 0. With labels, the gradient of their
 *  embedding is added too. */
int32_t gr_product_weight_gradient(struct gr_run *run, struct gr_operand x, const float *g, float beta,
                                   struct gr_parameter *w, graft_error *error);
/** The gradient of x: out[rows x w->rows] = diag(scale) (g w^T + beta out). */
int32_t gr_product_input_gradient(struct gr_run *run, const float *g, int64_t rows, const struct gr_parameter *w,
                                  float beta, const float *scale, float *out, graft_error *error);
/** out = g w^T + beta out, with the epilogue, which may be NULL; run->below for the last product that writes dx. */
int32_t gr_product_input_gradient_with(struct gr_run *run, const float *g, int64_t rows, const struct gr_parameter *w,
                                       float beta, float *out, struct gr_epilogue *epilogue, graft_error *error);

/** out[rows of a x width] = diag(scale) a x, or added to it, as a graft.mxm product in phase `phase` of the profile. */
struct gr_sparse_product {
    const char         *phase;
    graft_matrix       *a;
    const float        *scale; /* NULL: 1 */
    struct gr_operand   x;
    graft_dtype         x_type; /* 0: GRAFT_F32 */
    int64_t             width;
    int                 add;
    int                 in_blocks; /* a sum over neighbours that sparse workers may compute in blocks of rows */
    float              *out;
    struct gr_epilogue *epilogue; /* NULL: none */
};
int32_t gr_product_sparse(struct gr_run *run, const struct gr_sparse_product *product, graft_error *error);

/** out[rows of a x width] = for each column the extremum over the rows of x for which a row of a has entries, 0 if
 *  none.
 *  \param[out] winner  The row of x with the extremum, -1 if none, of the index type of a; or NULL. */
int32_t gr_product_extrema(struct gr_run *run, graft_matrix *a, struct gr_operand x, int64_t width, void *winner,
                           float *out, graft_error *error);

/** A sum over neighbours: begin and end of the strategy. With option model.type=bf16 it reads rounded rows. */
int32_t       gr_aggregate(struct gr_run *run, const struct gr_sum *wanted, graft_error *error);
/** The same with the scales of the block: sum->out = diag(left) A diag(right) x + own x. With a right scale,
 *  run->scratch is overwritten; x may be in it. */
int32_t       gr_aggregate_scaled(struct gr_run *run, double own, struct gr_sum sum, graft_error *error);
/** The arguments of a sum over the block of a layer, of rows without gaps. */
struct gr_sum gr_sum_of(const struct gr_activations *a, enum gr_direction direction, const float *scale, const float *x,
                        int64_t width, int add, float *out);

/** a->gathered = diag(left) A diag(right) x + own x, unless it is already computed: features that do not change in
 *  training are aggregated once. Labels of x are summed into a->label_sums likewise, once in a pass. */
int32_t gr_layer_gather(struct gr_run *run, struct gr_activations *a, struct gr_operand x, double own,
                        graft_error *error);
/** The same for extrema over neighbours, 0 if there are none. */
int32_t gr_layer_gather_extrema(struct gr_run *run, struct gr_activations *a, struct gr_operand x, graft_error *error);
/** dx[n_src x in] = run->scratch[n_dst x in], each element added to the source of its extremum. */
int32_t gr_layer_scatter_extrema(struct gr_run *run, const struct gr_activations *a, float *dx, graft_error *error);

/** The neighbours with the extrema: [n_dst x width] numbers of rows, or -1. */
struct gr_winners {
    const void *winner;
    graft_dtype type; /* of the numbers */
    int64_t     n_dst, n_src, n_seen, width;
    int         adds; /* to the present dx and halo */
};

/** dx[n_src x width] = the sum of the elements of g[n_dst x width] whose extremum is in this element; rows n_src to
 *  n_seen - 1 likewise, in `halo` at the same rows. */
void gr_scatter_extrema(struct gr_run *run, const struct gr_winners *from, const float *g, float *dx, float *halo);
/** The aggregated input as an operand. */
struct gr_operand gr_layer_gathered(const struct gr_activations *a);
/** Whether the layer computes (A H) W rather than A (H W). */
int               gr_layer_aggregates_first(const struct gr_run *run, int32_t l);

/** x[n_src x width]: set the rows after the first n_dst to zero. */
void gr_layer_clear_rest(struct gr_run *run, const struct gr_block *block, float *x, int64_t width);
/** out[x.rows x width] = diag(scale) x, or factor * x if scale is NULL, under phase "rows". x may be out. */
void gr_layer_scale(struct gr_run *run, struct gr_operand x, const float *scale, float factor, float *out,
                    int64_t width);
/** y = by x + beta y; for elements begin to end - 1, and for `count` elements under phase "rows". */
struct gr_mix {
    const float *x;
    float       *y;
    float        by, beta;
};
void               gr_mix_part(const struct gr_mix *mix, int64_t begin, int64_t end);
void               gr_layer_mix(struct gr_run *run, int64_t count, float by, const float *x, float beta, float *y);
/** A pass over rows of a layer, under phase "rows". */
void               gr_layer_rows_forward(struct gr_run *run, struct gr_rows *rows);
/** The same pass as the epilogue of the product that makes Z. */
struct gr_epilogue gr_layer_rows_epilogue(struct gr_rows *rows);
void               gr_layer_rows_backward(struct gr_run *run, struct gr_rows_backward *pass);

/** The values of a step: dropout with the same draws as for dense features. */
void gr_sparse_dropout(struct gr_run *run, uint64_t key, uint32_t threshold);
/** The values of the transpose, from the values of x. */
void gr_sparse_fill_transpose(const struct gr_run *run, const struct gr_sparse_part *part);

/** Check that options of the softmax loss suit the targets, and allocate the array of class weights, without values.
 *  \return OK; ERR_OPTION; ERR_NOMEM. */
int32_t gr_loss_init(struct gr_run *run, struct gr_budget *budget, graft_error *error);
/** Bytes that it allocates. */
double  gr_loss_bytes(const struct gr_run *run);
/** Find n_train, loss_weight and class_weight over all ranks. Collective. */
int32_t gr_targets_count(struct gr_targets *targets, struct gr_strategy *strategy, graft_error *error);
/** Mean loss over the vertices in the loss and, in gradient, its gradient by the logits, both [rows x classes]; over
 *  ranks, the contribution of this rank to the mean. */
double  gr_loss_gradient(const struct gr_run *run, int64_t rows, const float *logits, float *gradient);
/** Loss and accuracy, or RMSE and R^2, of all splits, for all targets. Metrics that are not measured become NaN. */
int32_t gr_loss_measure(struct gr_run *run, const float *logits, graft_metrics *metrics, int *is_finite,
                        graft_error *error);
void    gr_metrics_clear(graft_metrics *metrics);
/** The sum of the losses of the known float targets of vertex v, and factor times its gradient by the outputs x. */
double  gr_regression_loss(const struct gr_run *run, const float *x, int64_t v, float factor, float *gradient);
int32_t gr_regression_measure(struct gr_run *run, const float *outputs, graft_metrics *metrics, int *is_finite,
                              graft_error *error);
/** Sums that gr_regression_measure() makes for each split, in each chunk of rows and in total. */
int64_t gr_regression_sums(int64_t columns);
int64_t gr_argmax(const float *row, int64_t n);

#endif
