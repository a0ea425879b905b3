/* Counts memory against a budget.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/budget.h"

#include "base/assert.h"
#include "base/available.h"

#include <stdio.h>

static const struct {
    const char *name, *help;
} uses[GR_USES] = {
    [GR_USE_FEATURES] = { "features", "copies of the features: reordered, sparse, with dropout" },
    [GR_USE_GRAPH] = { "graph", "copies of the graph and the labels: symmetric, reordered, transposed" },
    [GR_USE_WEIGHTS] = { "weights", "weights and their gradients" },
    [GR_USE_OPTIMISER] = { "optimiser", "moments, the best weights so far, and all of the epoch before" },
    [GR_USE_ACTIVATIONS] = { "activations", "results of the forward pass that the backward pass needs" },
    [GR_USE_MASKS] = { "masks", "bits of the elements that ReLU and dropout keep" },
    [GR_USE_GRADIENTS] = { "gradients", "work space of the backward pass; the spans of a profile" },
    [GR_USE_MESSAGES] = { "messages", "over ranks: send lists and message buffers; rows of earlier batches" },
};

void gr_budget_init(struct gr_budget *budget, const graft_context *context, int64_t limit)
{
    *budget = (struct gr_budget){ .context = context, .limit = limit > 0 ? limit : gr_memory_available() };
}

void gr_budget_defer(struct gr_budget *budget, struct gr_deferral *deferral)
{
    const int64_t available = gr_memory_available();

    *deferral = (struct gr_deferral){ .limit = available > budget->limit ? available : budget->limit };
    budget->deferral = deferral;
}

void gr_budget_fini(struct gr_budget *budget)
{
    for (int use = 0; use < GR_USES && budget->context != NULL; use++)
        gr_pool_fini(budget->context, &budget->pool[use]);
}

int64_t gr_budget_bytes(const struct gr_budget *budget, enum gr_use use)
{
    return budget->pool[use].bytes + budget->charged[use];
}

int64_t gr_budget_total(const struct gr_budget *budget)
{
    int64_t bytes = 0;

    for (int use = 0; use < GR_USES; use++) bytes += gr_budget_bytes(budget, (enum gr_use)use);
    return bytes;
}

const char *gr_budget_use_name(enum gr_use use)
{
    return uses[use].name;
}

const char *gr_budget_use_help(enum gr_use use)
{
    return uses[use].help;
}

void gr_budget_charge(struct gr_budget *budget, enum gr_use use, int64_t bytes)
{
    budget->charged[use] += bytes;
    GR_ASSERT(budget->charged[use] >= 0);
}

static double larger_of_plan(const struct gr_budget *budget, int use)
{
    const double bytes = (double)gr_budget_bytes(budget, (enum gr_use)use);

    return bytes > budget->planned[use] ? bytes : budget->planned[use];
}

void gr_budget_text(const struct gr_budget *budget, int planned, char *text, uint64_t capacity)
{
    uint64_t at = 0;

    for (int use = 0; use < GR_USES && at < capacity; use++) {
        const double bytes = planned ? larger_of_plan(budget, use) : (double)gr_budget_bytes(budget, (enum gr_use)use);

        if (planned && bytes < 0.05e6) continue;
        at +=
            (uint64_t)snprintf(text + at, capacity - at, "%s%s %.1f", at > 0 ? ", " : "", uses[use].name, bytes * 1e-6);
    }
    if (at == 0) snprintf(text, capacity, "nothing yet");
}

static double budget_used(const struct gr_budget *budget)
{
    return (double)(gr_budget_total(budget) + budget->borrowed);
}

int gr_budget_fits(const struct gr_budget *budget, double wanted)
{
    return budget_used(budget) + wanted <= (double)budget->limit;
}

int32_t gr_budget_check(const struct gr_budget *budget, double wanted, const char *name, graft_error *error)
{
    struct gr_deferral *const deferral = budget->deferral;
    const int64_t             limit = deferral != NULL ? deferral->limit : budget->limit;
    const double              bytes = budget_used(budget) + wanted;
    char                      text[192];

    if (deferral != NULL && bytes > deferral->most) deferral->most = bytes;
    if (bytes <= (double)limit) return GRAFT_OK;
    gr_budget_text(budget, 1, text, sizeof text);
    return gr_fail(
        error, GRAFT_ERR_NOMEM,
        "%s: %.1f MB more are needed; of %.1f MB that may be used, %.1f are (it will be at least: %s; option "
        "'memory.limit')",
        name, wanted * 1e-6, (double)limit * 1e-6, budget_used(budget) * 1e-6, text);
}

void gr_budget_plan(struct gr_budget *budget, enum gr_use use, double bytes)
{
    budget->planned[use] = bytes;
}

double gr_budget_planned(const struct gr_budget *budget)
{
    double bytes = 0;

    for (int use = 0; use < GR_USES; use++) bytes += larger_of_plan(budget, use);
    return bytes;
}

int32_t gr_budget_check_plan(const struct gr_budget *budget, const char *advice, graft_error *error)
{
    const double needed = gr_budget_planned(budget);
    char         text[192];

    if (needed <= (double)budget->limit) return GRAFT_OK;
    gr_budget_text(budget, 1, text, sizeof text);
    return gr_fail(error, GRAFT_ERR_NOMEM,
                   "%.1f MB at least are needed of %.1f MB that may be used (%s; option 'memory.limit')%s",
                   needed * 1e-6, (double)budget->limit * 1e-6, text, advice);
}

int32_t gr_budget_borrow(struct gr_budget *budget, int64_t bytes, const char *name, graft_error *error)
{
    const int32_t rc = gr_budget_check(budget, (double)bytes, name, error);

    if (rc == GRAFT_OK) budget->borrowed += bytes;
    return rc;
}

void gr_budget_return(struct gr_budget *budget, int64_t bytes)
{
    budget->borrowed -= bytes;
    GR_ASSERT(budget->borrowed >= 0);
}

void *gr_budget_new(struct gr_budget *budget, enum gr_use use, int64_t count, uint64_t element_bytes, const char *name,
                    graft_error *error)
{
    if (gr_budget_check(budget, (double)count * (double)element_bytes, uses[use].name, error) < 0) return NULL;
    return gr_pool_new(budget->context, &budget->pool[use], count, element_bytes, name, error);
}
