/* Jumping knowledge (Xu et al. 2018): the last layer with weights reads J, the outputs of all hidden layers side by
 * side, or their maximum in each element. J has the rows that this layer reads, which every hidden layer makes.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/assert.h"
#include "base/parallel.h"
#include "run/pass.h"

#include <string.h>

struct jump {
    const struct gr_run *run;
    int32_t              last; /* the layer that reads J */
    int32_t              from; /* of a gradient: whose output */
    int                  add;
    float               *gradient;
};

static struct jump jump_of(const struct gr_run *run)
{
    return (struct jump){ .run = run, .last = gr_run_config(run)->n_weighted - 1 };
}

static const float *output_row(const struct jump *jump, int32_t l, int64_t row)
{
    const struct gr_activations *a = &jump->run->layers[l];

    return a->output + row * a->layer->out;
}

/* Of equal elements the first is taken; a NaN stays, so that it appears in the loss. */
static void join_largest(const struct jump *jump, int64_t row, int64_t width, float *to)
{
    memcpy(to, output_row(jump, 0, row), (uint64_t)width * sizeof *to);
    for (int32_t l = 1; l < jump->last; l++) {
        const float *h = output_row(jump, l, row);

        for (int64_t j = 0; j < width; j++) to[j] = h[j] > to[j] || h[j] != h[j] ? h[j] : to[j];
    }
}

static void join_rows(void *arg, int64_t begin, int64_t end)
{
    const struct jump           *jump = arg;
    const struct gr_activations *a = &jump->run->layers[jump->last];

    for (int64_t row = begin; row < end; row++) {
        float *to = a->joined + row * a->layer->in;

        if (gr_run_config(jump->run)->hidden.jumping == GR_JUMPING_MAX) {
            join_largest(jump, row, a->layer->in, to);
            continue;
        }
        for (int32_t l = 0; l < jump->last; l++) {
            const int64_t width = jump->run->layers[l].layer->out;

            memcpy(to, output_row(jump, l, row), (uint64_t)width * sizeof *to);
            to += width;
        }
    }
}

static void over_rows(struct gr_run *run, struct jump *jump, gr_rows_fn body)
{
    const struct gr_activations *a = &run->layers[jump->last];
    const int64_t                rows = a->block->n_src, elements = rows * a->layer->in;
    const double                 begin = gr_profile_begin(&run->profile);

    gr_parallel_rows(gr_run_team(run), elements, rows, GR_CHUNK_ROWS, body, jump);
    gr_profile_end(&run->profile, "rows", begin, 8 * (double)elements, 0);
}

void gr_run_jumping_join(struct gr_run *run)
{
    struct jump jump = jump_of(run);

    over_rows(run, &jump, join_rows);
}

/* Whether element (row, j) of J comes from layer jump->from. */
static int gives_largest(const struct jump *jump, int64_t row, int64_t j, float joined)
{
    for (int32_t l = 0; l < jump->from; l++)
        if (output_row(jump, l, row)[j] == joined) return 0;
    return output_row(jump, jump->from, row)[j] == joined;
}

static void part_rows(void *arg, int64_t begin, int64_t end)
{
    const struct jump           *jump = arg;
    const struct gr_run         *run = jump->run;
    const struct gr_activations *a = &run->layers[jump->last];
    const int64_t                width = run->layers[jump->from].layer->out, in = a->layer->in;
    const int                    largest = gr_run_config(run)->hidden.jumping == GR_JUMPING_MAX;
    int64_t                      first = 0; /* column of J */

    for (int32_t l = 0; l < jump->from && !largest; l++) first += run->layers[l].layer->out;
    for (int64_t row = begin; row < end; row++) {
        const float *from = run->space.jumped + row * in + first;
        float       *g = jump->gradient + row * width;

        for (int64_t j = 0; j < width; j++) {
            const float part = !largest || gives_largest(jump, row, j, a->joined[row * in + j]) ? from[j] : 0;

            g[j] = jump->add ? g[j] + part : part;
        }
    }
}

void gr_run_jumping_gradient(struct gr_run *run, int32_t l, int add, float *gradient)
{
    struct jump jump = jump_of(run);

    GR_ASSERT(l < jump.last);
    jump.from = l;
    jump.add = add;
    jump.gradient = gradient;
    over_rows(run, &jump, part_rows);
}
