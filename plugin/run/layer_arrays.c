/* Allocates the arrays of the layers: results of the forward pass that the backward pass needs. With option recompute,
 * all layers share one set of the arrays that can be recomputed from the layer's input, which has the size of the
 * largest layer. Without a backward pass layers use two sets of outputs in turn.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/assert.h"
#include "base/parallel.h"
#include "base/sort.h"
#include "model/kind.h"
#include "model/labels.h"
#include "model/workers.h"
#include "run/loss.h"
#include "run/pass.h"

#include <string.h>

#define ARRAY(field, use, life)                                                                                        \
    { { #field, sizeof *((struct gr_activations *)0)->field, use, life }, offsetof(struct gr_activations, field) }

static const struct {
    struct gr_array_shape shape;
    size_t                at; /* offset of its pointer in gr_activations */
} common[GR_ARRAYS] = {
    [GR_ARRAY_GATHERED] = ARRAY(gathered, GR_USE_ACTIVATIONS, GR_LIFE_RECOMPUTED),
    [GR_ARRAY_Z] = ARRAY(z, GR_USE_ACTIVATIONS, GR_LIFE_RECOMPUTED),
    [GR_ARRAY_H] = ARRAY(h, GR_USE_ACTIVATIONS, GR_LIFE_KEPT),
    [GR_ARRAY_OUTPUT] = ARRAY(output, GR_USE_ACTIVATIONS, GR_LIFE_KEPT),
    [GR_ARRAY_JOINED] = ARRAY(joined, GR_USE_ACTIVATIONS, GR_LIFE_KEPT),
    [GR_ARRAY_MEAN] = ARRAY(mean, GR_USE_ACTIVATIONS, GR_LIFE_KEPT),
    [GR_ARRAY_RSTD] = ARRAY(rstd, GR_USE_ACTIVATIONS, GR_LIFE_KEPT),
    [GR_ARRAY_BITS] = ARRAY(bits, GR_USE_MASKS, GR_LIFE_KEPT),
};

/* The shape of array `which`: common arrays come first, then those of the kind of model. NULL: there are no more. */
static const struct gr_array_shape *shape_of(const struct gr_run *run, int which)
{
    const struct gr_array_shape *own = gr_run_config(run)->kind->arrays;

    if (which < GR_ARRAYS) return &common[which].shape;
    GR_ASSERT(which <= GR_ARRAYS + GR_OWN_ARRAYS);
    return own != NULL && own[which - GR_ARRAYS].name != NULL ? &own[which - GR_ARRAYS] : NULL;
}

static int64_t count_of(const struct gr_activations *a, int which)
{
    return which < GR_ARRAYS ? a->count[which] : a->own_count[which - GR_ARRAYS];
}

static void set_array(struct gr_activations *a, int which, void *array)
{
    if (which < GR_ARRAYS) memcpy((char *)a + common[which].at, &array, sizeof array);
    else a->own[which - GR_ARRAYS] = array;
}

/* Whether the array of layer l is recomputed, so that layers share it. Not recomputed are H, which is the input of the
 * next layer, the logits, constant sums over features, and arrays that are much smaller than H. */
static int is_recomputed(const struct gr_run *run, int32_t l, int which)
{
    if (!gr_run_config(run)->recompute || shape_of(run, which)->life != GR_LIFE_RECOMPUTED) return 0;
    if (which == GR_ARRAY_Z) return run->layers[l].count[GR_ARRAY_H] > 0;
    return which != GR_ARRAY_GATHERED || l > 0 || !run->input.is_constant;
}

/* Whether outputs are read only by the next layer, so that layers alternate between two arrays. */
static int takes_turns(const struct gr_run *run)
{
    const struct gr_config *config = gr_run_config(run);

    return run->predicts && config->hidden.jumping == GR_JUMPING_NONE && !config->kind->teleports;
}

/* The sets of layers that share an array: 0 has all layers, 1 and 2 have every second layer. A layer with -1 has its
 * own. */
enum { SETS = 3 };

static int set_of(const struct gr_run *run, int32_t l, int which)
{
    if (shape_of(run, which)->life == GR_LIFE_SHARED || is_recomputed(run, l, which)) return 0;
    if (!takes_turns(run)) return -1;
    if (which == GR_ARRAY_BITS) return 0;
    return which == GR_ARRAY_Z || which == GR_ARRAY_H || which == GR_ARRAY_OUTPUT ? 1 + l % 2 : -1;
}

/* The size of the array that a set of layers shares; 0: there is none. */
static int64_t shared_count(const struct gr_run *run, int set, int which)
{
    int64_t most = 0;

    for (int32_t l = 0; l < gr_run_config(run)->n_layers; l++)
        if (set_of(run, l, which) == set) most = gr_larger(most, count_of(&run->layers[l], which));
    return most;
}

/* The bytes of an array in all layers. */
static double bytes_of(const struct gr_run *run, int which)
{
    double count = 0;

    for (int set = 0; set < SETS; set++) count += (double)shared_count(run, set, which);
    for (int32_t l = 0; l < gr_run_config(run)->n_layers; l++)
        count += set_of(run, l, which) >= 0 ? 0 : (double)count_of(&run->layers[l], which);
    return count * (double)shape_of(run, which)->element_bytes;
}

/* Allocate an array for each layer, or for each set of layers that share it. */
static int32_t make_array(struct gr_run *run, struct gr_budget *budget, int which, graft_error *error)
{
    const struct gr_array_shape *shape = shape_of(run, which);
    void                        *shared[SETS] = { NULL };

    for (int32_t l = 0; l < gr_run_config(run)->n_layers; l++) {
        struct gr_activations *a = &run->layers[l];
        const int              set = set_of(run, l, which);
        const int64_t          count = set >= 0 ? shared_count(run, set, which) : count_of(a, which);
        void                  *made = set >= 0 ? shared[set] : NULL;

        if (count_of(a, which) == 0) continue;
        if (made == NULL) made = gr_budget_new(budget, shape->use, count, shape->element_bytes, shape->name, error);
        if (made == NULL) return GRAFT_ERR_NOMEM;
        if (set >= 0) shared[set] = made;
        if (is_recomputed(run, l, which)) a->shared[which == GR_ARRAY_Z ? GR_STEP_Z : GR_STEP_BEGIN] = 1;
        set_array(a, which, made);
    }
    return GRAFT_OK;
}

void gr_run_clear(struct gr_run *run)
{
    for (int32_t l = 0; l < gr_run_config(run)->n_layers; l++) {
        struct gr_activations *a = &run->layers[l];

        for (int which = 0; which < GR_ARRAYS + GR_OWN_ARRAYS; which++) set_array(a, which, NULL);
        a->gathered_of = NULL;
        memset(a->shared, 0, sizeof a->shared);
    }
    memset(&run->space, 0, sizeof run->space);
    memset(&run->labels, 0, sizeof run->labels);
}

/* Count the elements of the arrays that layers of every kind of model have. */
static void count_common(const struct gr_config *config, struct gr_activations *a, int64_t rows, int64_t seen)
{
    const struct gr_layer *layer = a->layer;

    a->count[GR_ARRAY_Z] = rows * layer->out;
    if (gr_model_config_jumps(config, a->index)) a->count[GR_ARRAY_JOINED] = seen * layer->in;
    if (!layer->hidden) return;
    a->count[GR_ARRAY_BITS] = rows * ((layer->out + 7) / 8);
    if (layer->adds_input && config->hidden.is_elu) a->count[GR_ARRAY_OUTPUT] = rows * layer->out;
    if (layer->gain == NULL) return;
    a->count[GR_ARRAY_H] = rows * layer->out;
    a->count[GR_ARRAY_MEAN] = a->count[GR_ARRAY_RSTD] = config->hidden.norm == GR_NORM_BATCH ? layer->out : rows;
}

/* The numbers of elements in the work space of the backward pass. */
struct work_space {
    int64_t gradient; /* of each of the two arrays `gradient` */
    int64_t residual, jumped;
    int64_t scratch, rounded, partial, column_sums, chunks;
};

enum { LOSS_SUMS = 4 }; /* sums of each split in loss.c */

/* The number of columns that layer l sums over neighbours as bfloat16. */
static int64_t rounded_columns(const struct gr_run *run, int32_t l)
{
    const struct gr_config *config = gr_run_config(run);
    const int               has_none = config->kind->attends || config->extremum != 0 || l < config->gathers_from;

    if (gr_shape_options(run->context)->model_type != GR_MODEL_BF16 || has_none) return 0;
    return gr_summed_columns(&run->layers[l]);
}

static struct work_space work_of(const struct gr_run *run, const struct gr_capacity *capacity)
{
    const struct gr_config *config = gr_run_config(run);
    const int64_t           chunks = gr_chunk_count(capacity->seen, GR_CHUNK_ROWS);
    const int64_t           measured = gr_chunk_count(capacity->measured, GR_CHUNK_ROWS);
    const int64_t           sums =
        gr_is_regression(config) ? gr_run_regression_sums(config->width[config->n_layers]) : 0; /* for each split */
    const int exchanges = capacity->reads_history || run->strategy->ops->boundary_begin != NULL;
    int64_t   widest = LOSS_SUMS, scratch = 0, rounded = 0, residual = 0, jumped = 0;

    GR_ASSERT(capacity->rows <= capacity->seen);
    for (int32_t l = 0; l < config->n_layers; l++) {
        const struct gr_layer *layer = &run->model->layers[l];
        const int              scales = config->normalization == GR_NORMALIZE_SYMMETRIC;

        widest = gr_larger(widest, gr_larger(layer->wide, l > 0 ? layer->in : 0));
        if (gr_model_config_jumps(config, l)) jumped = layer->in;
        if (layer->adds_input) residual = gr_larger(residual, layer->out);
        /* An input that is aggregated before it is transformed is scaled on both sides, in the scratch memory. */
        if (scales && run->layers[l].aggregate_first) scratch = gr_larger(scratch, layer->in);
        /* For extrema over ranks, the scratch memory has the rows of this rank and of the halo. */
        if (config->extremum != 0 && exchanges) scratch = gr_larger(scratch, layer->in);
        rounded = gr_larger(rounded, rounded_columns(run, l));
    }
    return (struct work_space){
        .gradient = capacity->gradient_rows * widest,
        .residual = capacity->gradient_rows * residual,
        .jumped = capacity->gradient_rows * jumped,
        .scratch = capacity->seen * gr_larger(scratch, widest),
        .rounded = capacity->seen * rounded,
        .partial = GR_PARTIALS *
                   (gr_larger(chunks * gr_larger(sums, widest), measured * gr_larger(sums, LOSS_SUMS)) + 2 * sums),
        .column_sums = config->hidden.norm == GR_NORM_BATCH && !capacity->predicts ? 2 * widest + 1 : 0,
        .chunks = chunks
    };
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
        memset(a->own_count, 0, sizeof a->own_count);
        a->index = l;
        a->layer = &run->model->layers[l];
        a->aggregate_first = 0;
        count_common(gr_run_config(run), a, of_layer.rows, of_layer.seen);
        if (gr_run_config(run)->kind->count != NULL) gr_run_config(run)->kind->count(run, a, &of_layer);
    }
}

void gr_run_plan(struct gr_run *run, struct gr_budget *budget, const struct gr_capacity *capacity)
{
    double            bytes[GR_USES] = { 0 };
    struct work_space work;

    count_layers(run, capacity);
    for (int which = 0; shape_of(run, which) != NULL; which++) bytes[shape_of(run, which)->use] += bytes_of(run, which);
    work = work_of(run, capacity);
    bytes[GR_USE_GRADIENTS] +=
        (double)(2 * work.gradient + work.residual + work.jumped + work.scratch) * sizeof(float) +
        (double)work.rounded * sizeof(uint16_t) + (double)(work.partial + work.column_sums) * sizeof(double) +
        2 * (double)work.chunks * sizeof *run->space.left[0] + gr_run_loss_bytes(run);
    if (gr_model_workers_wanted(run, capacity))
        bytes[GR_USE_GRADIENTS] += gr_model_workers_bytes(run, work.chunks, work.partial);
    gr_model_labels_plan(run, capacity, bytes);
    gr_budget_plan(budget, GR_USE_ACTIVATIONS, bytes[GR_USE_ACTIVATIONS]);
    gr_budget_plan(budget, GR_USE_MASKS, bytes[GR_USE_MASKS]);
    gr_budget_plan(budget, GR_USE_GRADIENTS, bytes[GR_USE_GRADIENTS]);
}

int32_t gr_run_init(struct gr_run *run, struct gr_budget *budget, const struct gr_capacity *capacity,
                    graft_error *error)
{
    const struct work_space work = work_of(run, capacity);
    struct gr_space        *space = &run->space;

    for (int which = 0; shape_of(run, which) != NULL; which++) GR_TRY(make_array(run, budget, which, error));
    for (int32_t l = 0; l < gr_run_config(run)->n_layers; l++) {
        if (run->layers[l].h == NULL) run->layers[l].h = run->layers[l].z;
        if (run->layers[l].output == NULL) run->layers[l].output = run->layers[l].h;
    }
    for (int i = 0; i < 2; i++) {
        GR_TRY(GR_BUDGET_NEW(budget, GR_USE_GRADIENTS, space->gradient[i], work.gradient, error));
        GR_TRY(GR_BUDGET_NEW(budget, GR_USE_GRADIENTS, space->left[i], work.chunks, error));
    }
    GR_TRY(GR_BUDGET_NEW(budget, GR_USE_GRADIENTS, space->residual, work.residual, error));
    GR_TRY(GR_BUDGET_NEW(budget, GR_USE_GRADIENTS, space->jumped, work.jumped, error));
    GR_TRY(GR_BUDGET_NEW(budget, GR_USE_GRADIENTS, space->scratch, work.scratch, error));
    if (work.rounded > 0) GR_TRY(GR_BUDGET_NEW(budget, GR_USE_GRADIENTS, space->rounded, work.rounded, error));
    GR_TRY(GR_BUDGET_NEW(budget, GR_USE_GRADIENTS, space->partial, work.partial, error));
    space->n_column_sums = work.column_sums;
    GR_TRY(GR_BUDGET_NEW(budget, GR_USE_GRADIENTS, space->column_sums, work.column_sums, error));
    if (gr_model_workers_wanted(run, capacity))
        GR_TRY(gr_model_workers_init(run, budget, work.chunks, work.partial, error));
    return gr_model_labels_init(run, budget, capacity, error);
}
