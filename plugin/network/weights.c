/* The weights under the names of a PyTorch module, and their initial values.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/assert.h"
#include "base/random.h"
#include "network/network.h"

#include <math.h>
#include <stdio.h>

static const char *const prefixes[GR_COPIES] = { "", "optimizer.m.", "optimizer.v.", "gradient." };

static void add(graft_network *n, const char *mlp, const char *text, const struct gr_network_tensor *shape)
{
    struct gr_network_tensor *t = &n->tensors[n->n_tensors++];

    *t = *shape;
    for (int copy = 0; copy < GR_COPIES; copy++)
        snprintf(t->name[copy], sizeof t->name[copy], "%s%s%s", prefixes[copy], mlp, text);
}

static void add_mlp(graft_network *n, const char *name, const struct gr_mlp *mlp)
{
    char text[24];

    for (int32_t k = 0; k < mlp->linear; k++) {
        const int64_t in = k == 0 ? mlp->in : mlp->width, out = k + 1 == mlp->linear ? mlp->out : mlp->width;
        const double  bound = 1 / sqrt((double)in);

        snprintf(text, sizeof text, "%d.weight", k);
        add(n, name, text,
            &(struct gr_network_tensor){
                .at = mlp->weight[k], .n_dims = 2, .rows = out, .columns = in, .bound = bound });
        snprintf(text, sizeof text, "%d.bias", k);
        add(n, name, text,
            &(struct gr_network_tensor){ .at = mlp->bias[k], .n_dims = 1, .rows = 1, .columns = out, .bound = bound });
    }
    if (!mlp->has_norm) return;
    add(n, name, "norm.weight",
        &(struct gr_network_tensor){ .at = mlp->gain, .n_dims = 1, .rows = 1, .columns = mlp->out, .first = 1 });
    add(n, name, "norm.bias",
        &(struct gr_network_tensor){ .at = mlp->shift, .n_dims = 1, .rows = 1, .columns = mlp->out });
}

int32_t gr_network_name_weights(graft_network *n, graft_error *error)
{
    const struct gr_mgn_shape *shape = &n->shape;
    const int64_t              layers = shape->options.layers, of_mlp = 2 * shape->options.linear + 2;
    char                       name[32];
    int32_t                    rc = GRAFT_OK;

    GR_TRY(GR_BUDGET_NEW(&n->budget, GR_USE_WEIGHTS, n->tensors, (2 * layers + 3) * of_mlp, error));
    add_mlp(n, "node_encoder.", &shape->node_encoder);
    add_mlp(n, "edge_encoder.", &shape->edge_encoder);
    for (int64_t l = 0; l < layers; l++) {
        snprintf(name, sizeof name, "layers.%d.edge.", (int)l);
        add_mlp(n, name, &shape->edge[l]);
        snprintf(name, sizeof name, "layers.%d.node.", (int)l);
        add_mlp(n, name, &shape->node[l]);
    }
    add_mlp(n, "decoder.", &shape->decoder);
    GR_ASSERT(n->n_tensors <= (2 * layers + 3) * of_mlp);
done:
    return rc;
}

/* As torch.nn.Linear: weights and biases lie within 1 / sqrt(inputs). LayerNorm begins with gain 1 and shift 0. */
static void set_first(graft_network *n, const struct gr_network_tensor *t, int32_t number)
{
    const uint64_t key = gr_random_key((uint64_t)n->seed, GR_RANDOM_INIT, 0, (uint64_t)number);
    uint32_t       bits[4];

    for (int64_t i = 0; i < t->rows; i++) {
        for (int64_t j = 0; j < t->columns; j++) {
            if (j % 4 == 0) gr_random_block(key, (uint64_t)i, (uint64_t)j / 4, bits);
            gr_network_put(n, n->weights, t->at + i * t->columns + j,
                           t->first + t->bound * (2 * ((double)bits[j % 4] + 0.5) / 4294967296.0 - 1));
        }
    }
}

void gr_network_first_weights(graft_network *n)
{
    for (int32_t k = 0; k < n->n_tensors; k++) set_first(n, &n->tensors[k], k);
}
