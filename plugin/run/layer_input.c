/* Makes the input of the layers: features with dropout, dense or sparse, and outputs of layers below.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/assert.h"
#include "base/dropout.h"
#include "edge/rows.h"
#include "graph/csr.h"
#include "run/pass.h"

void gr_run_fill_sparse_transpose(const struct gr_run *run, const struct gr_sparse_part *part)
{
    const float  *from = part->x->csr.values;
    const int64_t entries = gr_csr_entries(&part->x->csr);
    const int     threads = gr_threads_worth(run->threads, entries);

    GR_ASSERT(part->transpose != NULL && part->entry != NULL);
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
    for (int64_t e = 0; e < entries; e++) part->transpose_values[e] = from[part->entry[e]];
}

struct drop {
    const struct gr_run *run;
    uint64_t             key;
    uint32_t             threshold;
};

/* Apply dropout to entries of sparse features, with the draws of gr_nn_rows_dropout(). One block of draws serves eight
 * columns, so with ascending columns each block is drawn once. */
static void drop_rows(void *arg, int64_t row, int64_t row_end)
{
    const struct drop      *drop = arg;
    const struct gr_sparse *sparse = &drop->run->input.sparse;
    const int64_t *const    vertex = drop->run->layers[0].block->vertex;
    const graft_csr        *csr = &sparse->whole.x->csr;
    const float             scale = (float)gr_dropout_scale(drop->threshold);
    const float            *from = csr->values;

    for (; row < row_end; row++) {
        int64_t  block = -1;
        unsigned kept = 0;

        for (int64_t e = csr->row_ptr[row]; e < csr->row_ptr[row + 1]; e++) {
            const int64_t column = gr_csr_column(csr, e);

            if (column / 8 != block) {
                block = column / 8;
                kept = gr_dropout_kept(drop->key, gr_vertex(vertex, row), block, drop->threshold);
            }
            sparse->dropped[e] = kept >> column % 8 & 1 ? from[e] * scale : 0;
        }
    }
}

static void drop_sparse(struct gr_run *run, uint64_t key, uint32_t threshold)
{
    const struct gr_sparse *sparse = &run->input.sparse;
    const graft_csr        *csr = &sparse->step[0].x->csr;
    struct drop             drop = { run, key, threshold };

    gr_edge_parallel_rows(gr_run_team(run), 8 * gr_csr_entries(csr), csr, NULL, drop_rows, &drop);
    for (int i = 0; i < 2; i++) {
        const struct gr_sparse_part *part = &sparse->step[i];

        if (part->x == NULL) continue;
        gr_run_fill_sparse_transpose(run, part);
        gr_matrix_unprepare(part->x);
        gr_matrix_unprepare(part->transpose);
    }
}

/* The features as an operand: with dropout in training. */
static struct gr_operand features_of(const struct gr_run *run, int64_t rows)
{
    const struct gr_input *input = &run->input;

    if (input->x == NULL)
        return (struct gr_operand){ .rows = rows,
                                    .sparse = gr_is_training(run) || input->sparse.whole.x == NULL
                                                  ? input->sparse.step
                                                  : &input->sparse.whole };
    if (gr_is_training(run) && input->dropped != NULL)
        return gr_dense_operand(input->dropped, gr_run_config(run)->width[0], rows);
    GR_ASSERT(input->type == GRAFT_F32);
    return gr_dense_operand(input->x, input->stride, rows);
}

struct gr_operand gr_run_input(const struct gr_run *run, int32_t l)
{
    const int64_t     rows = run->layers[l].block->n_src;
    struct gr_operand x;

    if (gr_model_config_jumps(gr_run_config(run), l))
        return gr_dense_operand(run->layers[l].joined, run->layers[l].layer->in, rows);
    if (l > 0) return gr_dense_operand(run->layers[l - 1].output, run->layers[l - 1].layer->out, rows);
    x = features_of(run, rows);
    x.labels = gr_propagates(run) ? GR_LABELS_OWN : GR_LABELS_NONE;
    return x;
}

void gr_run_drop_input(struct gr_run *run, const struct gr_block *block)
{
    const struct gr_config *config = gr_run_config(run);
    const struct gr_input  *input = &run->input;
    const double            begin = gr_profile_begin(&run->profile);
    struct gr_rows_drop     rows = { .n = block->n_src,
                                     .width = config->width[0],
                                     .x_stride = input->stride,
                                     .team = gr_run_team(run),
                                     .x = input->x,
                                     .out = input->dropped,
                                     .key = gr_random_key(config->seed, GR_RANDOM_DROPOUT, (uint64_t)run->epoch, 0),
                                     .threshold = gr_dropout_threshold(config->input_dropout),
                                     .isa = run->isa,
                                     .vertex = block->vertex };

    if (input->x == NULL) drop_sparse(run, rows.key, rows.threshold);
    else gr_nn_rows_dropout(&rows);
    gr_profile_end(&run->profile, "rows", begin, 0, 0);
}
