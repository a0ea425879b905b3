/* A forward pass in blocks of rows, layer by layer: no row is computed twice, and only the outputs of layers that later
 * layers read are larger than a block. These outputs are in memory, or with eval.blocks=FOLDER in a file. A block has
 * some rows of the graph, and copies of the rows of the layer below from which they gather. The entries of a row are
 * summed in their order, so results are bitwise those of a pass over all rows at once.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/assert.h"
#include "base/dense_view.h"
#include "base/limits.h"
#include "base/sort.h"
#include "edge/edge.h"
#include "model/options.h"
#include "run/input.h"
#include "run/memory.h"
#include "run/pass.h"
#include "sample/sample.h"

#include <string.h>

/* -- decision, and sizes of blocks -------------------------------------------------------------------------------- */

int gr_setup_goes_by_rows(struct gr_setup *s)
{
    const char *blocks = gr_resource_options(s->context)->eval_blocks;
    double      bytes;

    if (!gr_setup_can_go_by_rows(s)) return 0;
    /* Features of another type have no array of all rows as floats; or the option is "yes", or a folder. */
    if ((s->run.input.type != GRAFT_F32 && s->run.input.x != NULL) || strcmp(blocks, "auto") != 0) return 1;
    bytes = gr_setup_evaluation_bytes(s);
    return bytes > GR_EVALUATION_WHOLE_BYTES || !gr_budget_fits(&s->budget, bytes);
}

/* The folder for files with outputs of layers; NULL: outputs are in memory. */
static const char *folder_of(const struct gr_setup *s)
{
    const char *blocks = gr_resource_options(s->context)->eval_blocks;

    return strchr(blocks, '/') != NULL ? blocks : NULL;
}

/* The block with all rows of layer l and, if it gathers, all its edges. */
static const struct gr_block *whole_block(const struct gr_setup *s, int32_t l)
{
    return s->given != NULL ? s->derived.step_of[l] : s->derived.whole_of[l];
}

static int has_edges(const struct gr_setup *s, int32_t l)
{
    return whole_block(s, l)->a != NULL && l >= s->model.config.gathers_from;
}

static int64_t edges_between(const struct gr_setup *s, int32_t l, int64_t begin, int64_t end)
{
    const int64_t *row_ptr;

    if (!has_edges(s, l)) return 0;
    row_ptr = whole_block(s, l)->a->csr.row_ptr;
    return row_ptr[end] - row_ptr[begin];
}

/* The sizes of blocks. A row with more edges than the limit is a block of its own. */
struct sizes {
    int64_t limit;                /* most rows plus edges of a block, and thereby most sources */
    int64_t rows, edges, sources; /* the largest number of rows, edges and sources in any block */
};

static int64_t end_of_block(const struct gr_setup *s, int64_t limit, int32_t l, int64_t begin)
{
    const int64_t n = whole_block(s, l)->n_dst;
    int64_t       end = begin + 1;

    while (end < n && end - begin < limit / 4 && edges_between(s, l, begin, end + 1) + end + 1 - begin <= limit) end++;
    return end;
}

static struct sizes find_sizes(const struct gr_setup *s)
{
    const struct gr_config *config = &s->model.config;
    struct sizes            sizes = { .rows = 1, .sources = 1 };
    int64_t                 widest = config->width[0];

    for (int32_t l = 0; l < config->n_layers; l++)
        widest = gr_larger(widest, gr_larger(s->model.layers[l].in, s->model.layers[l].wide));
    sizes.limit = gr_larger(GR_EVALUATION_BYTES / (4 * widest), GR_EVALUATION_SOURCES_LEAST);
    for (int32_t l = 0; l < config->n_layers; l++) {
        for (int64_t begin = 0, end; begin < whole_block(s, l)->n_dst; begin = end) {
            end = end_of_block(s, sizes.limit, l, begin);
            sizes.rows = gr_larger(sizes.rows, end - begin);
            sizes.edges = gr_larger(sizes.edges, edges_between(s, l, begin, end));
            sizes.sources = gr_larger(sizes.sources, end - begin + edges_between(s, l, begin, end));
        }
    }
    if (sizes.sources > s->data.n && s->data.n > 0) sizes.sources = s->data.n;
    return sizes;
}

/* -- outputs of layers -------------------------------------------------------------------------------------------- */

static int is_read_after(const struct gr_config *config, int32_t l, int32_t k)
{
    for (int32_t next = l + 1; next < config->n_layers; next++)
        if (gr_model_config_reads(config, next, k)) return 1;
    return k == config->n_layers - 1;
}

static int64_t stored_bytes(const struct gr_setup *s, int32_t l)
{
    return whole_block(s, l)->n_dst * s->model.layers[l].out * (int64_t)sizeof(float);
}

int32_t gr_setup_by_rows_check_folder(const struct gr_setup *s, graft_error *error)
{
    const char       *folder = folder_of(s);
    struct gr_scratch file;
    int64_t           bytes = 0;
    int32_t           rc;

    if (folder == NULL || !gr_setup_can_go_by_rows(s)) return GRAFT_OK;
    for (int32_t l = 0; l < s->model.config.n_layers; l++) bytes = gr_larger(bytes, stored_bytes(s, l));
    rc = gr_scratch_init(&file, folder, bytes, error);
    if (rc == GRAFT_OK) gr_scratch_fini(&file);
    return rc;
}

static int32_t new_stored(struct gr_setup *s, int32_t l, graft_error *error)
{
    struct gr_stored *stored = &s->arrays->stored[l];
    const char       *folder = folder_of(s);
    const int64_t     count = whole_block(s, l)->n_dst * s->model.layers[l].out;

    if (folder != NULL) {
        GR_TRY(gr_scratch_init(&stored->file, folder, stored_bytes(s, l), error));
        stored->x = stored->file.data;
        return GRAFT_OK;
    }
    GR_TRY(gr_budget_check(&s->arrays->budget, (double)gr_memory_block_bytes(count, sizeof(float)),
                           "outputs of a layer", error));
    GR_TRY(GR_NEW(s->context, stored->memory, count, error));
    gr_budget_charge(&s->arrays->budget, GR_USE_ACTIVATIONS, gr_memory_bytes(stored->memory));
    stored->x = stored->memory;
    return GRAFT_OK;
}

static int32_t keep_block(const struct gr_stored *stored, int64_t first, const float *x, int64_t count,
                          graft_error *error)
{
    if (stored->memory == NULL)
        return gr_scratch_write(&stored->file, first * (int64_t)sizeof *x, x, count * (int64_t)sizeof *x, error);
    memcpy(stored->memory + first, x, (uint64_t)count * sizeof *x);
    return GRAFT_OK;
}

/* -- a block ------------------------------------------------------------------------------------------------------ */

struct pass {
    struct gr_setup      *s;
    struct sizes          sizes;
    struct gr_sample_work work;
    struct gr_batch       batch;               /* sources and edges of the current block */
    struct gr_budget      of_layer, of_block;  /* budgets whose memory ends with the current layer or block */
    struct gr_input       input;               /* input of the run, with the features of all rows */
    float                *rows[GR_LAYERS_MAX]; /* [sources x out] rows of layer k that the current layer reads */
    float                *features;            /* [sources x in] copies of features, for the first layer */
    int64_t              *seeds;               /* [rows] indices of the rows in the block */
    const int64_t        *vertex;              /* indices of the sources of the block */
};

/* Find the sources of the rows in `seeds`: these rows, then the rows from which they gather. */
static int32_t find_sources(struct pass *p, int32_t l, int64_t rows, graft_error *error)
{
    const int32_t rc =
        gr_sample_all(p->s->context, &p->batch, &p->work, &whole_block(p->s, l)->a->csr, p->seeds, rows, error);
    int64_t bytes;

    p->vertex = p->batch.vertex;
    bytes = gr_sample_work_bytes(&p->work) + gr_sample_batch_bytes(&p->batch);
    gr_budget_charge(&p->s->arrays->budget, GR_USE_GRAPH, bytes - p->s->arrays->sources_bytes);
    p->s->arrays->sources_bytes = bytes;
    return rc;
}

/* Fill the block of rows begin .. end-1 with its edges. */
static int32_t give_edges(struct pass *p, int32_t l, int64_t begin, struct gr_block *block, graft_error *error)
{
    const struct gr_block        *whole = whole_block(p->s, l);
    const struct gr_sampled_layer layer = gr_sample_batch_layer(&p->batch, 0);
    const int64_t                 first = whole->a->csr.row_ptr[begin];
    graft_csr                     csr = { .size = sizeof csr, .index_type = GRAFT_I32 };
    float                        *right;

    csr.n_rows = block->n_dst;
    csr.n_cols = block->n_src = block->n_seen = layer.n_src;
    csr.row_ptr = layer.row_ptr;
    csr.col_idx = layer.col;
    if (whole->a->csr.values != NULL) {
        GR_ASSERT(whole->a->csr.value_type == GRAFT_F32);
        csr.values = (const float *)whole->a->csr.values + first;
        csr.value_type = GRAFT_F32;
    }
    if (whole->left != NULL) block->left = whole->left + begin;
    if (whole->edge != NULL) block->edge = whole->edge + first * p->s->model.config.attention.edge_features;
    if (whole->right != NULL) {
        GR_TRY(GR_BUDGET_NEW(&p->of_block, GR_USE_GRAPH, right, block->n_src, error));
        for (int64_t i = 0; i < block->n_src; i++) right[i] = whole->right[p->vertex[i]];
        block->right = right;
    }
    return gr_matrix_create(p->s->context, &csr, &block->a, error);
}

/* Make the first layer read the features of the sources. */
static int32_t give_features(struct pass *p, const struct gr_block *block, graft_error *error)
{
    struct gr_input *input = &p->s->run.input;

    if (p->input.x == NULL)
        return gr_setup_sparse_block(p->s, &p->of_block, p->vertex, block->n_src, block->n_dst, error);
    GR_TRY(gr_setup_take_features(p->s, &p->input, p->vertex, block->n_src, p->features, error));
    input->x = p->features;
    input->type = GRAFT_F32;
    input->stride = p->s->model.config.width[0];
    return GRAFT_OK;
}

/* Make layer l read the outputs of layer k in the rows of the sources. */
static void give_outputs(struct pass *p, const struct gr_block *block, int64_t begin, int32_t k)
{
    struct gr_setup        *s = p->s;
    struct gr_activations  *a = &s->run.layers[k];
    const struct gr_stored *from = &s->arrays->stored[k];
    const int64_t           width = a->layer->out;
    const graft_index       index = {
              .size = sizeof index, .index_type = GRAFT_I64, .count = block->n_src, .data = p->vertex
    };
    const graft_dense x = gr_dense_view(from->x, GRAFT_F32, whole_block(s, k)->n_dst, width, width);
    const graft_dense rows = gr_dense_view(p->rows[k], GRAFT_F32, block->n_src, width, width);

    a->z = (float *)(uintptr_t)from->x + begin * width; /* the same rows of layer k, for the teleport of appnp */
    a->output = a->z;
    if (block->a == NULL) return;
    gr_edge_gather_rows(&x, &index, &rows, s->run.threads);
    a->output = p->rows[k];
}

static int32_t run_block(struct pass *p, int32_t l, int64_t begin, int64_t end, graft_error *error)
{
    struct gr_setup             *s = p->s;
    const struct gr_activations *a = &s->run.layers[l];
    struct gr_block              block = { .n_dst = end - begin, .n_src = end - begin, .n_seen = end - begin };
    const double                 start = gr_profile_begin(&s->run.profile);
    int32_t                      rc = GRAFT_OK;

    for (int64_t v = begin; v < end; v++) p->seeds[v - begin] = v;
    p->vertex = p->seeds;
    if (has_edges(s, l)) GR_TRY_DONE(find_sources(p, l, end - begin, error));
    if (has_edges(s, l)) GR_TRY_DONE(give_edges(p, l, begin, &block, error));
    if (l == 0) GR_TRY_DONE(give_features(p, &block, error));
    for (int32_t k = 0; k < l; k++)
        if (gr_model_config_reads(&s->model.config, l, k)) give_outputs(p, &block, begin, k);
    gr_profile_end_alone(&s->run.profile, "gather", start);
    GR_TRY_DONE(gr_run_layer(&s->run, l, &block, error));
    rc = keep_block(&s->arrays->stored[l], begin * a->layer->out, l + 1 < s->model.config.n_layers ? a->output : a->z,
                    block.n_dst * a->layer->out, error);
done:
    gr_matrix_destroy(block.a);
    return rc;
}

static void put_input_back(struct pass *p)
{
    if (p->s->run.input.sparse.whole.x != p->input.sparse.whole.x) gr_setup_sparse_fini(p->s);
    p->s->run.input = p->input;
}

/* -- all blocks --------------------------------------------------------------------------------------------------- */

static void begin_budget(const struct pass *p, struct gr_budget *budget, const struct gr_budget *inside)
{
    gr_budget_init(budget, p->s->context, 0);
    budget->limit = inside->limit - gr_budget_total(inside);
}

/* Allocate copies of the rows that layer l reads, and its outputs. */
static int32_t begin_layer(struct pass *p, int32_t l, graft_error *error)
{
    struct gr_setup *s = p->s;
    const int64_t    width = s->model.config.width[0];

    GR_TRY(new_stored(s, l, error));
    begin_budget(p, &p->of_layer, &s->arrays->budget);
    if (l == 0 && p->input.x != NULL)
        GR_TRY(GR_BUDGET_NEW(&p->of_layer, GR_USE_FEATURES, p->features, p->sizes.sources * width, error));
    for (int32_t k = 0; k < l && has_edges(s, l); k++)
        if (gr_model_config_reads(&s->model.config, l, k))
            GR_TRY(GR_BUDGET_NEW(&p->of_layer, GR_USE_ACTIVATIONS, p->rows[k],
                                 p->sizes.sources * s->model.layers[k].out, error));
    return GRAFT_OK;
}

static int32_t run_layer(struct pass *p, int32_t l, graft_error *error)
{
    struct gr_setup *s = p->s;
    const int64_t    n = whole_block(s, l)->n_dst;
    int32_t          rc = begin_layer(p, l, error);

    for (int64_t begin = 0, end; begin < n && rc == GRAFT_OK; begin = end) {
        end = end_of_block(s, p->sizes.limit, l, begin);
        begin_budget(p, &p->of_block, &p->of_layer);
        rc = gr_setup_spans_reserve(s, error);
        if (rc == GRAFT_OK) rc = run_block(p, l, begin, end, error);
        put_input_back(p);
        gr_budget_fini(&p->of_block);
    }
    gr_budget_fini(&p->of_layer);
    for (int32_t k = 0; k < l; k++)
        if (!is_read_after(&s->model.config, l, k)) gr_setup_arrays_drop_stored(s, k);
    return rc;
}

static int32_t run_layers(struct pass *p, graft_error *error)
{
    struct gr_setup   *s = p->s;
    struct gr_capacity capacity = gr_setup_capacity(s);
    const int32_t      last = s->model.config.n_layers - 1;

    capacity.rows = p->sizes.rows;
    capacity.seen = p->sizes.sources;
    if (capacity.edges > p->sizes.edges) capacity.edges = p->sizes.edges;
    capacity.measured = s->data.n;
    GR_TRY(gr_setup_arrays_for_blocks(s, &capacity, error));
    GR_TRY(gr_sample_work_init(s->context, &p->work, s->data.n, s->run.threads, error));
    GR_TRY(GR_NEW(s->context, p->seeds, p->sizes.rows, error));
    p->input.is_constant = s->run.input.is_constant = 0; /* the order of products is decided; sums belong to a block */
    for (int32_t l = 0; l <= last; l++) GR_TRY(run_layer(p, l, error));
    s->run.layers[last].z = (float *)(uintptr_t)s->arrays->stored[last].x;
    s->data.features_checked = 1;
    return GRAFT_OK;
}

/* The struct is allocated, because it is too large for the stack of a thread of the host. */
int32_t gr_setup_by_rows_forward(struct gr_setup *s, graft_error *error)
{
    const struct gr_input input = s->run.input;
    struct pass          *p = NULL;
    int32_t               rc = GRAFT_OK;

    GR_TRY_DONE(GR_NEW(s->context, p, 1, error));
    p->s = s;
    p->input = input;
    p->sizes = find_sizes(s);
    rc = run_layers(p, error);
    s->run.input = input;
    gr_sample_work_fini(s->context, &p->work);
    gr_sample_batch_fini(s->context, &p->batch);
    gr_free(s->context, p->seeds);
    gr_free(s->context, p);
done:
    if (rc < 0) gr_setup_arrays_fini(s);
    return rc;
}
