/* What a trainer uses memory for, and its refusal before there is no more.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/available.h"
#include "model/model.h"

#include <stdio.h>

static const struct {
    const char *name, *help;
} uses[GR_USES] = {
    [GR_USE_FEATURES] = { "features", "copies of the features: in order, sparse, with dropout" },
    [GR_USE_GRAPH] = { "graph", "copies of the graph and the labels: symmetric, in order, transposed" },
    [GR_USE_WEIGHTS] = { "weights", "weights and their gradients" },
    [GR_USE_OPTIMISER] = { "optimiser", "moments, and the best weights so far" },
    [GR_USE_ACTIVATIONS] = { "activations", "what the forward pass leaves for the backward pass" },
    [GR_USE_MASKS] = { "masks", "bits of what ReLU and dropout let through" },
    [GR_USE_GRADIENTS] = { "gradients", "what the backward pass works with; the spans of a profile" },
    [GR_USE_MESSAGES] = { "messages", "over ranks: which rows go, and those on their way" },
};

int64_t gr_ledger_bytes(const graft_trainer *t, enum gr_use use)
{
    int64_t bytes = t->pool[use].bytes;

    if (use == GR_USE_FEATURES) bytes += gr_sparse_bytes(t);
    if (use == GR_USE_MESSAGES) bytes += gr_ranks_message_bytes(t);
    if (use != GR_USE_GRAPH) return bytes;
    bytes += gr_ranks_graph_bytes(t);
    bytes += gr_matrix_own_bytes(t->a) + (t->a_transpose != t->a ? gr_matrix_own_bytes(t->a_transpose) : 0);
    for (int32_t l = 0; l < t->config.n_layers; l++) bytes += gr_matrix_own_bytes(t->layers[l].masked_transpose);
    return bytes;
}

int64_t gr_ledger_total(const graft_trainer *t)
{
    int64_t bytes = 0;

    for (int use = 0; use < GR_USES; use++) bytes += gr_ledger_bytes(t, (enum gr_use)use);
    return bytes;
}

int32_t gr_ledger_item(const graft_trainer *t, int32_t index, graft_ledger_item *item, graft_error *error)
{
    if (index < 0 || index >= GR_USES)
        return gr_fail(error, GRAFT_ERR_NOT_FOUND, "there is no ledger item %d, there are %d", index, GR_USES);
    item->name = uses[index].name;
    item->help = uses[index].help;
    item->bytes = gr_ledger_bytes(t, (enum gr_use)index);
    return GRAFT_OK;
}

/* What it is, or will be. */
static double most_of(const graft_trainer *t, int use)
{
    const double bytes = (double)gr_ledger_bytes(t, (enum gr_use)use);

    return bytes > t->planned[use] ? bytes : t->planned[use];
}

void gr_ledger_text(const graft_trainer *t, int planned, char *text, uint64_t capacity)
{
    uint64_t at = 0;

    for (int use = 0; use < GR_USES && at < capacity; use++) {
        at += (uint64_t)snprintf(text + at, capacity - at, "%s%s %.1f", use > 0 ? ", " : "", uses[use].name,
                                 (planned ? most_of(t, use) : (double)gr_ledger_bytes(t, (enum gr_use)use)) * 1e-6);
    }
}

void gr_ledger_init(graft_trainer *t)
{
    const int64_t asked = gr_option_integer(t->context, GR_OPTION_MEMORY_LIMIT);

    t->memory_limit = asked > 0 ? asked * 1000000 : gr_memory_available();
}

int gr_ledger_has_room(const graft_trainer *t, double wanted)
{
    return (double)(gr_ledger_total(t) + t->borrowed) + wanted <= (double)t->memory_limit;
}

int32_t gr_ledger_check(const graft_trainer *t, double wanted, const char *name, graft_error *error)
{
    const double used = (double)(gr_ledger_total(t) + t->borrowed);
    char         text[192];

    if (gr_ledger_has_room(t, wanted)) return GRAFT_OK;
    gr_ledger_text(t, 1, text, sizeof text);
    return gr_fail(
        error, GRAFT_ERR_NOMEM,
        "%s: %.1f MB more are needed; of %.1f MB that may be used, %.1f are (it will be at least: %s; option "
        "'memory.limit')",
        name, wanted * 1e-6, (double)t->memory_limit * 1e-6, used * 1e-6, text);
}

void gr_ledger_plan(graft_trainer *t, enum gr_use use, double bytes)
{
    t->planned[use] = bytes;
}

double gr_ledger_planned(const graft_trainer *t)
{
    double bytes = 0;

    for (int use = 0; use < GR_USES; use++) bytes += most_of(t, use);
    return bytes;
}

int32_t gr_ledger_check_plan(const graft_trainer *t, const char *advice, graft_error *error)
{
    const double needed = gr_ledger_planned(t);
    char         text[192];

    if (needed <= (double)t->memory_limit) return GRAFT_OK;
    gr_ledger_text(t, 1, text, sizeof text);
    return gr_fail(error, GRAFT_ERR_NOMEM,
                   "%.1f MB at least are needed of %.1f MB that may be used (%s; option 'memory.limit')%s",
                   needed * 1e-6, (double)t->memory_limit * 1e-6, text, advice);
}

int32_t gr_ledger_borrow(graft_trainer *t, int64_t bytes, const char *name, graft_error *error)
{
    const int32_t rc = gr_ledger_check(t, (double)bytes, name, error);

    if (rc == GRAFT_OK) t->borrowed += bytes;
    return rc;
}

void gr_ledger_return(graft_trainer *t, int64_t bytes)
{
    t->borrowed -= bytes;
}

void *gr_ledger_new(graft_trainer *t, enum gr_use use, int64_t count, uint64_t element_bytes, const char *name,
                    graft_error *error)
{
    if (gr_ledger_check(t, (double)count * (double)element_bytes, uses[use].name, error) < 0) return NULL;
    return gr_pool_new(t->context, &t->pool[use], count, element_bytes, name, error);
}
