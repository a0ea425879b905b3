/* Items of a state, and checks of their types, shapes and values.
 * SPDX-License-Identifier: Apache-2.0 */
#include "nn/parameter.h"

#include <float.h>
#include <stdio.h>

void gr_nn_item(const struct gr_parameters *all, int32_t i, enum gr_copy copy, graft_state_item *item)
{
    const struct gr_parameter *p = &all->list[i];

    *item = (graft_state_item){
        .size = sizeof *item, .dtype = all->dtype, .name = gr_nn_name(p, copy), .n_dims = p->n_dims
    };
    item->shape[0] = p->n_dims == 2 ? p->rows : p->cols;
    item->shape[1] = p->n_dims == 2 ? p->cols : 0;
    item->data = p->copy[copy];
}

static int64_t item_elements(const graft_state_item *item)
{
    int64_t count = 1;

    for (int32_t d = 0; d < item->n_dims; d++) count *= item->shape[d];
    return count;
}

int64_t gr_nn_item_bytes(const graft_state_item *item)
{
    return item_elements(item) * (item->dtype == GRAFT_F32 ? 4 : 8);
}

/* Write type and shape of an item as text, such as "F32 [128, 64]". */
static void describe_item(const graft_state_item *item, char text[64])
{
    static const char *const types[] = { "?", "F32", "F64", "I32", "I64", "U8" };
    const int                known = item->dtype >= GRAFT_F32 && item->dtype <= GRAFT_U8;
    int                      used = snprintf(text, 64, "%s [", types[known ? item->dtype : 0]);

    for (int i = 0; i < item->n_dims && i < 2; i++)
        used += snprintf(text + used, 64 - (size_t)used, "%s%lld", i > 0 ? ", " : "", (long long)item->shape[i]);
    snprintf(text + used, 64 - (size_t)used, "%s]", item->n_dims > 2 ? ", ..." : "");
}

int32_t gr_nn_check_form(const graft_state_item *item, const graft_state_item *ours, graft_error *error)
{
    char found[64], expected[64];

    if (item->dtype == ours->dtype && item->n_dims == ours->n_dims && item->shape[0] == ours->shape[0] &&
        (item->n_dims < 2 || item->shape[1] == ours->shape[1]))
        return GRAFT_OK;
    describe_item(item, found);
    describe_item(ours, expected);
    return gr_fail(error, GRAFT_ERR_FORMAT, "state item '%s' is %s, expected %s", ours->name, found, expected);
}

static const struct {
    double      least, most;
    const char *words;
} ranges[] = {
    [GR_NN_FINITE] = { -DBL_MAX, DBL_MAX, "finite values" },
    [GR_NN_NOT_NEGATIVE] = { 0, DBL_MAX, "0 or more" },
    [GR_NN_COUNTER] = { 0, 0x1p62, "0 to 2^62" },
};

static double value_at(const graft_state_item *item, int64_t i)
{
    return item->dtype == GRAFT_I64 ? (double)((const int64_t *)item->data)[i] : gr_nn_at(item->dtype, item->data, i);
}

/* Whether an item has type F32 and all values in range: a fast check, without a branch for each value. */
static int are_floats_within(const graft_state_item *item, float least)
{
    const float  *values = item->data;
    const int64_t count = item->dtype == GRAFT_F32 ? item_elements(item) : 0;
    int           bad = item->dtype != GRAFT_F32;

    for (int64_t i = 0; i < count; i++) bad |= !(values[i] >= least && values[i] <= FLT_MAX);
    return !bad;
}

int32_t gr_nn_check_values(const graft_state_item *item, enum gr_nn_values legal, graft_error *error)
{
    const int64_t count = item_elements(item);

    if (are_floats_within(item, legal == GR_NN_FINITE ? -FLT_MAX : 0)) return GRAFT_OK;
    for (int64_t i = 0; i < count; i++) {
        const double x = value_at(item, i);

        if (x >= ranges[legal].least && x <= ranges[legal].most) continue;
        return gr_fail(error, GRAFT_ERR_FORMAT, "state item '%.80s' has %g at element %lld, expected %s", item->name, x,
                       (long long)i, ranges[legal].words);
    }
    return GRAFT_OK;
}
