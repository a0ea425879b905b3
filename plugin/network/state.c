/* The state of a network as items: weights, statistics, moments of the optimiser, progress, and gradients.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/crc.h"
#include "network/network.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *const statistics_names[GR_STATISTICS][3] = {
    { "statistics.node.count", "statistics.node.sum", "statistics.node.squares" },
    { "statistics.edge.count", "statistics.edge.sum", "statistics.edge.squares" },
    { "statistics.output.count", "statistics.output.sum", "statistics.output.squares" },
};

enum { STATISTICS_ITEMS = 3 * GR_STATISTICS };

static void weight_item(const graft_network *n, const void *array, enum gr_network_copy copy, int32_t k,
                        graft_state_item *item)
{
    const struct gr_network_tensor *t = &n->tensors[k];

    *item = (graft_state_item){ .size = sizeof *item, .dtype = n->dtype, .name = t->name[copy], .n_dims = t->n_dims };
    item->shape[0] = t->n_dims == 2 ? t->rows : t->columns;
    item->shape[1] = t->n_dims == 2 ? t->columns : 0;
    item->data = (const char *)array + t->at * (n->dtype == GRAFT_F64 ? 8 : 4);
}

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
    const int32_t                     moments = t->has_moments ? n->n_tensors : 0;
    int32_t                           k = index;

    if (index < 0) return gr_fail(error, GRAFT_ERR_NOT_FOUND, "item is %d, expected 0 or more", index);
    if (is_among(&k, n->n_tensors)) {
        weight_item(n, n->weights, GR_COPY_WEIGHT, k, item);
    } else if (is_among(&k, STATISTICS_ITEMS)) {
        statistics_item(n, k, item);
    } else if (is_among(&k, moments)) {
        weight_item(n, t->m, GR_COPY_M, k, item);
    } else if (is_among(&k, moments)) {
        weight_item(n, t->v, GR_COPY_V, k, item);
    } else if (is_among(&k, 1)) {
        *item = (graft_state_item){ .size = sizeof *item, .dtype = GRAFT_I64, .name = "progress.step", .n_dims = 1 };
        item->shape[0] = 1;
        item->data = &n->steps;
    } else if (is_among(&k, t->has_gradient ? n->n_tensors : 0)) {
        weight_item(n, t->sum, GR_COPY_GRADIENT, k, item);
    } else {
        return gr_fail(error, GRAFT_ERR_NOT_FOUND, "item is %d, expected less than %d", index, index - k);
    }
    return GRAFT_OK;
}

int64_t gr_network_item_count(const graft_state_item *item)
{
    int64_t count = 1;

    for (int32_t d = 0; d < item->n_dims; d++) count *= item->shape[d];
    return count;
}

/* Counting continues from the set value. */
static const double COUNTER_MOST = 0x1p62;

int32_t gr_network_check_values(const graft_state_item *item, graft_error *error)
{
    const int64_t count = gr_network_item_count(item);
    const int     is_count = item->dtype == GRAFT_I64 || strstr(item->name, ".count") != NULL;
    const int from_0 = is_count || strstr(item->name, ".squares") != NULL || strstr(item->name, "optimizer.v.") != NULL;

    for (int64_t i = 0; i < count; i++) {
        const double x = item->dtype == GRAFT_I64   ? (double)((const int64_t *)item->data)[i]
                         : item->dtype == GRAFT_F64 ? ((const double *)item->data)[i]
                                                    : (double)((const float *)item->data)[i];

        if (!isfinite(x) || (from_0 && x < 0) || (item->dtype == GRAFT_I64 && x > COUNTER_MOST))
            return gr_fail(error, GRAFT_ERR_FORMAT, "item '%.64s' has %g at element %lld, expected %s", item->name, x,
                           (long long)i,
                           item->dtype == GRAFT_I64 ? "0 to 2^62"
                           : from_0                 ? "0 or more"
                                                    : "finite values");
    }
    return GRAFT_OK;
}

static void item_text(char text[64], const graft_state_item *item)
{
    const char *type = item->dtype == GRAFT_F32 ? "F32" : item->dtype == GRAFT_F64 ? "F64" : "I64";

    if (item->n_dims == 2)
        snprintf(text, 64, "%s [%lld, %lld]", type, (long long)item->shape[0], (long long)item->shape[1]);
    else snprintf(text, 64, "%s [%lld]", type, (long long)item->shape[0]);
}

static int32_t check_shape(const graft_state_item *ours, const graft_state_item *item, graft_error *error)
{
    char is[64], should[64];

    if (item->dtype == ours->dtype && item->n_dims == ours->n_dims && item->shape[0] == ours->shape[0] &&
        (item->n_dims < 2 || item->shape[1] == ours->shape[1]))
        return GRAFT_OK;
    item_text(is, item);
    item_text(should, ours);
    return gr_fail(error, GRAFT_ERR_FORMAT, "item '%.64s' is %s, expected %s", item->name, is, should);
}

int32_t gr_network_find(graft_network *n, const char *name, graft_state_item *item, graft_error *error)
{
    graft_error end = { .size = sizeof end };

    for (int32_t i = 0; gr_network_state_item(n, i, item, &end) == GRAFT_OK; i++)
        if (strcmp(item->name, name) == 0) return GRAFT_OK;
    return gr_fail(error, GRAFT_ERR_NOT_FOUND, "the network has no item '%.80s'", name);
}

void gr_network_state_changed(graft_network *n)
{
    for (int k = 0; k < GR_STATISTICS; k++) gr_statistics_derive(&n->statistics[k]);
    gr_network_set_edges(n);
    n->training.has_gradient = 0;
}

/* Find the item of the network with this name, and check its new values. Moments are items already. */
static int32_t check_item_set(graft_network *n, const graft_state_item *item, graft_state_item *ours,
                              graft_error *error)
{
    int32_t rc = GRAFT_OK;

    GR_TRY(gr_network_find(n, item->name, ours, error));
    if (strncmp(item->name, "gradient.", 9) == 0)
        return gr_fail(error, GRAFT_ERR_NOT_FOUND, "item '%.64s' can be read, but not set", item->name);
    GR_TRY(check_shape(ours, item, error));
    rc = gr_network_check_values(item, error);
done:
    return rc;
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
        GR_TRY(gr_network_reserve_moments(n, error));
        n->training.has_moments = 1;
    }
    GR_TRY(check_item_set(n, item, &ours, error));
    bytes = (uint64_t)gr_network_item_count(&ours) * (ours.dtype == GRAFT_F32 ? 4 : 8);
    memmove((void *)(uintptr_t)ours.data, item->data, bytes);
    n->digest += gr_crc(gr_crc(0, ours.name, strlen(ours.name)), ours.data, bytes); /* in any order */
    gr_network_state_changed(n);
done:
    if (rc < 0) n->training.has_moments = had_moments;
    return rc;
}
