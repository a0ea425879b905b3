/* The state of a network as items: weights, statistics, moments of the optimiser, progress, and gradients.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/crc.h"
#include "network/network.h"

#include <string.h>

static const char *const statistics_names[GR_STATISTICS][3] = {
    { "statistics.node.count", "statistics.node.sum", "statistics.node.squares" },
    { "statistics.edge.count", "statistics.edge.sum", "statistics.edge.squares" },
    { "statistics.output.count", "statistics.output.sum", "statistics.output.squares" },
};

enum { STATISTICS_ITEMS = 3 * GR_STATISTICS };

static void statistics_item(const graft_network *n, int32_t k, graft_state_item *item)
{
    const struct gr_statistics *s = &n->statistics[k / 3];
    const double *const         arrays[] = { s->count, s->sum, s->squares };

    *item = (graft_state_item){ .size = sizeof *item, .dtype = GRAFT_F64, .name = statistics_names[k / 3][k % 3] };
    item->n_dims = 1;
    item->shape[0] = k % 3 == 0 ? 1 : s->columns;
    item->data = arrays[k % 3];
}

/* Whether item *k is among the next `count` items; if not, subtract `count` from *k. */
static int is_among(int32_t *k, int32_t count)
{
    if (*k < count) return 1;
    *k -= count;
    return 0;
}

int32_t gr_network_state_item(graft_network *n, int32_t index, graft_state_item *item, graft_error *error)
{
    const struct gr_network_training *t = &n->training;
    const int32_t                     moments = t->has_moments ? n->parameters.count : 0;
    int32_t                           k = index;

    if (index < 0) return gr_fail(error, GRAFT_ERR_NOT_FOUND, "item is %d, expected 0 or more", index);
    if (is_among(&k, n->parameters.count)) {
        gr_nn_item(&n->parameters, k, GR_COPY_VALUE, item);
    } else if (is_among(&k, STATISTICS_ITEMS)) {
        statistics_item(n, k, item);
    } else if (is_among(&k, moments)) {
        gr_nn_item(&n->parameters, k, GR_COPY_M, item);
    } else if (is_among(&k, moments)) {
        gr_nn_item(&n->parameters, k, GR_COPY_V, item);
    } else if (is_among(&k, 1)) {
        *item = (graft_state_item){ .size = sizeof *item, .dtype = GRAFT_I64, .name = "progress.step", .n_dims = 1 };
        item->shape[0] = 1;
        item->data = &n->progress.steps;
    } else if (is_among(&k, t->has_gradient ? n->parameters.count : 0)) {
        gr_nn_item(&n->parameters, k, GR_COPY_GRADIENT, item);
    } else {
        return gr_fail(error, GRAFT_ERR_NOT_FOUND, "item is %d, expected less than %d", index, index - k);
    }
    return GRAFT_OK;
}

int32_t gr_network_check_values(const graft_state_item *item, graft_error *error)
{
    static const char *const not_negative[] = { ".count", ".squares", "optimizer.v." };
    enum gr_nn_values        legal = item->dtype == GRAFT_I64 ? GR_NN_COUNTER : GR_NN_FINITE;

    for (size_t k = 0; k < sizeof not_negative / sizeof *not_negative; k++)
        if (strstr(item->name, not_negative[k]) != NULL) legal = GR_NN_NOT_NEGATIVE;
    return gr_nn_check_values(item, legal, error);
}

/* Find an item by its name. Returns OK; ERR_NOT_FOUND. */
static int32_t find_item(graft_network *n, const char *name, graft_state_item *item, graft_error *error)
{
    graft_error end = { .size = sizeof end };

    for (int32_t i = 0; gr_network_state_item(n, i, item, &end) == GRAFT_OK; i++)
        if (strcmp(item->name, name) == 0) return GRAFT_OK;
    return gr_fail(error, GRAFT_ERR_NOT_FOUND, "the network has no item '%.80s'", name);
}

void gr_network_state_changed(graft_network *n)
{
    for (int k = 0; k < GR_STATISTICS; k++) gr_nn_statistics_derive(&n->statistics[k]);
    gr_network_set_edges(n);
    n->training.has_gradient = 0;
}

/* Find the item of the network with this name, and check its new values. Moments must already be items. */
static int32_t check_item_set(graft_network *n, const graft_state_item *item, graft_state_item *ours,
                              graft_error *error)
{
    GR_TRY(find_item(n, item->name, ours, error));
    if (strncmp(item->name, "gradient.", 9) == 0)
        return gr_fail(error, GRAFT_ERR_NOT_FOUND, "item '%.64s' can be read, but not set", item->name);
    GR_TRY(gr_nn_check_form(item, ours, error));
    return gr_network_check_values(item, error);
}

int32_t gr_network_state_set(graft_network *n, const graft_state_item *item, graft_error *error)
{
    const int32_t    had_moments = n->training.has_moments;
    graft_state_item ours;
    uint64_t         bytes;
    int32_t          rc = GRAFT_OK;

    if (item->name == NULL || item->data == NULL)
        return gr_fail(error, GRAFT_ERR_ARG, "item.%s is null", item->name == NULL ? "name" : "data");
    if (item->n_dims < 0 || item->n_dims > 4)
        return gr_fail(error, GRAFT_ERR_FORMAT, "item '%.64s' has %d dimensions", item->name, item->n_dims);
    if (strncmp(item->name, "optimizer.", 10) == 0) {
        GR_TRY_DONE(gr_network_reserve_moments(n, error));
        n->training.has_moments = 1;
    }
    GR_TRY_DONE(check_item_set(n, item, &ours, error));
    bytes = (uint64_t)gr_nn_item_bytes(&ours);
    memmove((void *)(uintptr_t)ours.data, item->data, bytes);
    n->progress.digest += gr_crc(gr_crc(0, ours.name, strlen(ours.name)), ours.data, bytes); /* in any order */
    gr_network_state_changed(n);
done:
    if (rc < 0) n->training.has_moments = had_moments;
    return rc;
}
