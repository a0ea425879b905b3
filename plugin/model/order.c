/* The vertices in an order in which what is read together lies together. Inside the trainer, vertex v is vertex
 * trainer->vertex[v] of the host; the host never sees the order.
 * SPDX-License-Identifier: Apache-2.0 */
#include "graph/order.h"
#include "model/model.h"

#include <string.h>

/* *array[n] of elements of so many bytes becomes a copy in the order of the trainer. NULL stays NULL. */
static int32_t reorder(graft_trainer *t, const void **array, uint64_t bytes, graft_error *error)
{
    const char *from = *array;
    char       *to;
    int32_t     rc = GRAFT_OK;

    if (from == NULL) return GRAFT_OK;
    GR_TRY(GR_POOL_NEW(t->context, &t->pool, to, t->n * (int64_t)bytes, error));
    for (int64_t v = 0; v < t->n; v++) memcpy(to + (uint64_t)v * bytes, from + (uint64_t)t->vertex[v] * bytes, bytes);
    *array = to;
done:
    return rc;
}

int32_t gr_model_order_init(graft_trainer *t, const graft_csr *graph, graft_error *error)
{
    const void *labels = t->data.labels, *targets = t->data.targets, *split = t->data.split;
    int32_t     rc = GRAFT_OK;

    if (strcmp(t->config.order, "given") == 0) return GRAFT_OK;
    GR_TRY(GR_POOL_NEW(t->context, &t->pool, t->vertex, t->n, error));
    GR_TRY(gr_order_compute(t->context, graph, t->config.order, t->vertex, error));
    GR_TRY(reorder(t, &labels, sizeof *t->data.labels, error));
    GR_TRY(reorder(t, &targets, (uint64_t)t->data.n_classes * sizeof *t->data.targets, error));
    GR_TRY(reorder(t, &split, sizeof *t->data.split, error));
    t->data.labels = labels;
    t->data.targets = targets;
    t->data.split = split;
done:
    return rc;
}
