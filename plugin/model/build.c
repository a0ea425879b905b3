/* The arrays of the layers, with the results of the forward pass that the backward pass needs. With option recompute,
 * all layers share one set of the arrays that can be recomputed from the layer's input, which has the size of the
 * largest layer. Without a backward pass layers use two sets of outputs in turn.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/assert.h"
#include "base/parallel.h"
#include "model/labels.h"
#include "model/workers.h"

#include <string.h>

#define ARRAY(field, use, recomputed)                                                                                  \
    { #field, offsetof(struct gr_activations, field), sizeof *((struct gr_activations *)0)->field, use, recomputed }

static const struct {
    const char *name;
    size_t      at; /* of its pointer in gr_activations */
    uint64_t    element_bytes;
    enum gr_use use;
    int         recomputed; /* by option recompute: results of GR_STEP_BEGIN and GR_STEP_Z */
} arrays[GR_ARRAYS] = {
    [GR_ARRAY_GATHERED] = ARRAY(gathered, GR_USE_ACTIVATIONS, 1),
    [GR_ARRAY_WINNER] = ARRAY(winner, GR_USE_ACTIVATIONS, 1),
    [GR_ARRAY_LABEL_SUMS] = ARRAY(label_sums, GR_USE_ACTIVATIONS, 0),
    [GR_ARRAY_INNER] = ARRAY(inner, GR_USE_ACTIVATIONS, 1),
    [GR_ARRAY_INNER_BITS] = ARRAY(inner_bits, GR_USE_MASKS, 1),
    [GR_ARRAY_PROJECTED] = ARRAY(attention.projected, GR_USE_ACTIVATIONS, 1),
    [GR_ARRAY_SOURCE_SCORE] = ARRAY(attention.score[GR_SOURCE], GR_USE_ACTIVATIONS, 1),
    [GR_ARRAY_TARGET_SCORE] = ARRAY(attention.score[GR_TARGET], GR_USE_ACTIVATIONS, 1),
    [GR_ARRAY_EDGE_FACTOR] = ARRAY(attention.edge_factor[0], GR_USE_ACTIVATIONS, 0),
    [GR_ARRAY_EDGE_FACTOR_GRADIENT] = ARRAY(attention.edge_factor[1], GR_USE_GRADIENTS, 0),
    [GR_ARRAY_ALPHA] = ARRAY(attention.alpha, GR_USE_ACTIVATIONS, 1),
    [GR_ARRAY_DROPPED] = ARRAY(attention.dropped, GR_USE_ACTIVATIONS, 1),
    [GR_ARRAY_Z] = ARRAY(z, GR_USE_ACTIVATIONS, 1),
    [GR_ARRAY_H] = ARRAY(h, GR_USE_ACTIVATIONS, 0),
    [GR_ARRAY_OUTPUT] = ARRAY(output, GR_USE_ACTIVATIONS, 0),
    [GR_ARRAY_JOINED] = ARRAY(joined, GR_USE_ACTIVATIONS, 0),
    [GR_ARRAY_MEAN] = ARRAY(mean, GR_USE_ACTIVATIONS, 0),
    [GR_ARRAY_RSTD] = ARRAY(rstd, GR_USE_ACTIVATIONS, 0),
    [GR_ARRAY_BITS] = ARRAY(bits, GR_USE_MASKS, 0),
    [GR_ARRAY_PER_HEAD] = ARRAY(attention.per_head, GR_USE_ACTIVATIONS, 0),
};

/* Whether the layer need not keep this array. H is kept, as the input of the next layer; so are the logits, constant
 * sums over features, and arrays that are small beside H. */
static int is_recomputed(const struct gr_run *run, int32_t l, int which)
{
    if (!gr_run_config(run)->recompute || !arrays[which].recomputed) return 0;
    if (which == GR_ARRAY_Z) return run->layers[l].count[GR_ARRAY_H] > 0;
    return which != GR_ARRAY_GATHERED || l > 0 || !run->input.is_constant;
}

/* Whether only the next layer needs an output. */
static int takes_turns(const struct gr_run *run)
{
    const struct gr_config *config = gr_run_config(run);

    return run->predicts && config->jumping == GR_JUMPING_NONE && config->kind != &gr_kind_appnp;
}

/* The set of layers with which the layer shares this array: 0 all, 1 and 2 every second one; -1: none. */
enum { SETS = 3 };

static int set_of(const struct gr_run *run, int32_t l, int which)
{
    if (is_recomputed(run, l, which)) return 0;
    if (!takes_turns(run)) return -1;
    if (which == GR_ARRAY_BITS || which == GR_ARRAY_PER_HEAD) return 0;
    return which == GR_ARRAY_Z || which == GR_ARRAY_H || which == GR_ARRAY_OUTPUT ? 1 + l % 2 : -1;
}

/* Elements of the array that a set of layers shares; 0 if there is none. */
static int64_t shared_count(const struct gr_run *run, int set, int which)
{
    int64_t most = 0;

    for (int32_t l = 0; l < gr_run_config(run)->n_layers; l++) {
        const int64_t count = run->layers[l].count[which];

        if (set_of(run, l, which) == set && count > most) most = count;
    }
    return most;
}

/* Elements of one array in all layers. */
static double count_elements(const struct gr_run *run, int which)
{
    double count = 0;

    for (int set = 0; set < SETS; set++) count += (double)shared_count(run, set, which);
    for (int32_t l = 0; l < gr_run_config(run)->n_layers; l++)
        count += set_of(run, l, which) >= 0 ? 0 : (double)run->layers[l].count[which];
    return count;
}

/* One of the arrays, for each layer or for several. */
static int32_t make_array(struct gr_run *run, struct gr_budget *budget, int which, graft_error *error)
{
    void *shared[SETS] = { NULL };

    for (int32_t l = 0; l < gr_run_config(run)->n_layers; l++) {
        struct gr_activations *a = &run->layers[l];
        const int              set = set_of(run, l, which);
        const int64_t          count = set >= 0 ? shared_count(run, set, which) : a->count[which];
        void                  *made = set >= 0 ? shared[set] : NULL;

        if (a->count[which] == 0) continue;
        if (made == NULL)
            made =
                gr_budget_new(budget, arrays[which].use, count, arrays[which].element_bytes, arrays[which].name, error);
        if (made == NULL) return GRAFT_ERR_NOMEM;
        if (set >= 0) shared[set] = made;
        if (set == 0 && arrays[which].recomputed) a->shared[which == GR_ARRAY_Z ? GR_STEP_Z : GR_STEP_BEGIN] = 1;
        memcpy((char *)a + arrays[which].at, &made, sizeof made);
    }
    return GRAFT_OK;
}

void gr_run_clear(struct gr_run *run)
{
    for (int32_t l = 0; l < gr_run_config(run)->n_layers; l++) {
        struct gr_activations *a = &run->layers[l];
        void *const            none = NULL;

        for (int which = 0; which < GR_ARRAYS; which++) memcpy((char *)a + arrays[which].at, &none, sizeof none);
        for (int end = 0; end < GR_ENDS; end++) a->attention.score_gradient[end] = NULL;
        a->attention.alpha_gradient = NULL;
        a->gathered_of = NULL;
        memset(a->shared, 0, sizeof a->shared);
    }
    for (int i = 0; i < 2; i++) {
        run->gradient[i] = NULL;
        run->left[i] = NULL;
    }
    run->residual = run->jumped = run->scratch = NULL;
    run->rounded = NULL;
    run->partial = run->column_sums = NULL;
}

/* The arrays that layers of every kind have. */
static void count_common(const struct gr_config *config, struct gr_activations *a, int64_t rows, int64_t seen)
{
    const struct gr_layer *layer = a->layer;

    a->count[GR_ARRAY_Z] = rows * layer->out;
    if (gr_config_jumps(config, a->index)) a->count[GR_ARRAY_JOINED] = seen * layer->in;
    if (!layer->hidden) return;
    a->count[GR_ARRAY_BITS] = rows * ((layer->out + 7) / 8);
    if (layer->adds_input && config->is_elu) a->count[GR_ARRAY_OUTPUT] = rows * layer->out;
    if (layer->gain == NULL) return;
    a->count[GR_ARRAY_H] = rows * layer->out;
    a->count[GR_ARRAY_MEAN] = a->count[GR_ARRAY_RSTD] = config->norm == GR_NORM_BATCH ? layer->out : rows;
}

/* Elements of the work space of the backward pass. */
struct work_space {
    int64_t gradient; /* of each of two */
    int64_t residual, jumped;
    int64_t scratch, rounded, partial, column_sums, chunks;
};

enum { LOSS_SUMS = 4 }; /* of a split, see loss.c */

/* The columns that layer l sums over neighbours as bfloat16. */
static int64_t rounded_columns(const struct gr_run *run, int32_t l)
{
    const struct gr_config *config = gr_run_config(run);
    const int               has_none = config->kind->attends || config->extremum != 0 || l < config->gathers_from;

    if (run->context->options.kernel.model_type != GR_MODEL_BF16 || has_none) return 0;
    return gr_summed_columns(&run->layers[l]);
}

static struct work_space work_of(const struct gr_run *run, const struct gr_capacity *capacity)
{
    const struct gr_config *config = gr_run_config(run);
    const int64_t           chunks = gr_chunk_count(capacity->seen, GR_CHUNK_ROWS);
    const int64_t           measured = gr_chunk_count(capacity->measured, GR_CHUNK_ROWS);
    const int64_t           sums =
        gr_is_regression(config) ? gr_regression_sums(config->width[config->n_layers]) : 0; /* of each split */
    const int exchanges = capacity->reads_history || run->strategy->ops->boundary_begin != NULL;
    int64_t   widest = LOSS_SUMS, scratch = 0, rounded = 0, residual = 0, jumped = 0, partial;

    GR_ASSERT(capacity->rows <= capacity->seen);
    for (int32_t l = 0; l < config->n_layers; l++) {
        const struct gr_layer *layer = &run->model->layers[l];
        const int              scales = config->normalization == GR_NORMALIZE_SYMMETRIC;

        if (layer->wide > widest) widest = layer->wide;
        if (l > 0 && layer->in > widest) widest = layer->in;
        if (gr_config_jumps(config, l)) jumped = layer->in;
        if (layer->adds_input && layer->out > residual) residual = layer->out;
        /* An input that is aggregated first is scaled on both sides, in the scratch memory. */
        if (scales && run->layers[l].aggregate_first && layer->in > scratch) scratch = layer->in;
        /* Over ranks extrema need own rows and rows of the halo there. */
        if (config->extremum != 0 && exchanges && layer->in > scratch) scratch = layer->in;
        if (rounded_columns(run, l) > rounded) rounded = rounded_columns(run, l);
    }
    if (widest > scratch) scratch = widest;
    partial = chunks * (sums > widest ? sums : widest);
    if (measured * (sums > LOSS_SUMS ? sums : LOSS_SUMS) > partial)
        partial = measured * (sums > LOSS_SUMS ? sums : LOSS_SUMS);
    return (struct work_space){ capacity->gradient_rows * widest,
                                capacity->gradient_rows * residual,
                                capacity->gradient_rows * jumped,
                                capacity->seen * scratch,
                                capacity->seen * rounded,
                                GR_PARTIALS * (partial + 2 * sums),
                                config->norm == GR_NORM_BATCH && !capacity->predicts ? 2 * widest + 1 : 0,
                                chunks };
}

static void count_layers(struct gr_run *run, const struct gr_capacity *capacity)
{
    run->predicts = capacity->predicts;
    for (int32_t l = 0; l < gr_run_config(run)->n_layers; l++) {
        struct gr_activations      *a = &run->layers[l];
        const struct gr_layer_size *size = &capacity->layer[l];
        struct gr_capacity          of_layer = *capacity;

        if (size->seen > 0) {
            of_layer.rows = size->rows;
            of_layer.seen = size->seen;
            of_layer.edges = size->edges;
        }
        memset(a->count, 0, sizeof a->count);
        a->index = l;
        a->layer = &run->model->layers[l];
        count_common(gr_run_config(run), a, of_layer.rows, of_layer.seen);
        gr_run_config(run)->kind->count(run, a, &of_layer);
    }
    if (gr_propagates(run) && run->layers[0].count[GR_ARRAY_GATHERED] > 0)
        run->layers[0].count[GR_ARRAY_LABEL_SUMS] = capacity->rows * run->targets.n_classes;
}

void gr_run_plan(struct gr_run *run, struct gr_budget *budget, const struct gr_capacity *capacity)
{
    double            bytes[GR_USES] = { 0 };
    struct work_space work;

    count_layers(run, capacity);
    for (int which = 0; which < GR_ARRAYS; which++)
        bytes[arrays[which].use] += count_elements(run, which) * (double)arrays[which].element_bytes;
    work = work_of(run, capacity);
    bytes[GR_USE_GRADIENTS] +=
        (double)(2 * work.gradient + work.residual + work.jumped + work.scratch) * sizeof(float) +
        (double)work.rounded * sizeof(uint16_t) + (double)(work.partial + work.column_sums) * sizeof(double) +
        2 * (double)work.chunks * sizeof *run->left[0] + gr_loss_bytes(run);
    if (gr_run_config(run)->kind->shared_count != NULL)
        bytes[GR_USE_GRADIENTS] += (double)gr_run_config(run)->kind->shared_count(run, capacity) * sizeof(float);
    if (gr_workers_wanted(run, capacity)) bytes[GR_USE_GRADIENTS] += gr_workers_bytes(run, work.chunks, work.partial);
    if (gr_propagates(run)) {
        bytes[GR_USE_GRADIENTS] += gr_labels_bytes(run);
        bytes[GR_USE_MASKS] += (double)capacity->label_rows;
    }
    gr_budget_plan(budget, GR_USE_ACTIVATIONS, bytes[GR_USE_ACTIVATIONS]);
    gr_budget_plan(budget, GR_USE_MASKS, bytes[GR_USE_MASKS]);
    gr_budget_plan(budget, GR_USE_GRADIENTS, bytes[GR_USE_GRADIENTS]);
}

int32_t gr_run_init(struct gr_run *run, struct gr_budget *budget, const struct gr_capacity *capacity,
                    graft_error *error)
{
    const struct work_space work = work_of(run, capacity);
    int32_t                 rc = GRAFT_OK;

    if (gr_run_config(run)->kind->share != NULL) GR_TRY(gr_run_config(run)->kind->share(run, budget, capacity, error));
    for (int which = 0; which < GR_ARRAYS; which++) GR_TRY(make_array(run, budget, which, error));
    for (int32_t l = 0; l < gr_run_config(run)->n_layers; l++) {
        if (run->layers[l].h == NULL) run->layers[l].h = run->layers[l].z;
        if (run->layers[l].output == NULL) run->layers[l].output = run->layers[l].h;
    }
    for (int i = 0; i < 2; i++) {
        GR_TRY(GR_BUDGET_NEW(budget, GR_USE_GRADIENTS, run->gradient[i], work.gradient, error));
        GR_TRY(GR_BUDGET_NEW(budget, GR_USE_GRADIENTS, run->left[i], work.chunks, error));
    }
    GR_TRY(GR_BUDGET_NEW(budget, GR_USE_GRADIENTS, run->residual, work.residual, error));
    GR_TRY(GR_BUDGET_NEW(budget, GR_USE_GRADIENTS, run->jumped, work.jumped, error));
    GR_TRY(GR_BUDGET_NEW(budget, GR_USE_GRADIENTS, run->scratch, work.scratch, error));
    if (work.rounded > 0) GR_TRY(GR_BUDGET_NEW(budget, GR_USE_GRADIENTS, run->rounded, work.rounded, error));
    GR_TRY(GR_BUDGET_NEW(budget, GR_USE_GRADIENTS, run->partial, work.partial, error));
    run->n_column_sums = work.column_sums;
    GR_TRY(GR_BUDGET_NEW(budget, GR_USE_GRADIENTS, run->column_sums, work.column_sums, error));
    if (gr_workers_wanted(run, capacity)) GR_TRY(gr_workers_init(run, budget, work.chunks, work.partial, error));
    rc = gr_labels_init(run, budget, capacity->label_rows, error);
done:
    return rc;
}
