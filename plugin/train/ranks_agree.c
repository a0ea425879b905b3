/* Over ranks: what must be the same on all of them, and failures of one of them.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/assert.h"
#include "base/crc.h"
#include "comm/compare_options.h"
#include "train/train.h"

int32_t gr_ranks_fail(graft_trainer *t, int32_t rc, graft_error *error)
{
    if (t->over == NULL || rc >= 0 || rc == GRAFT_ERR_PEER) return rc;
    return gr_comm_fail(t->over->comm, error);
}

static uint64_t digest_of(graft_trainer *t)
{
    graft_error      error = { .size = sizeof error };
    graft_state_item item = { .size = sizeof item };
    uint32_t         crc = 0;

    for (int32_t i = 0; gr_trainer_state_item(t, i, &item, &error) == GRAFT_OK; i++) {
        const int64_t elements = item.shape[0] * (item.n_dims == 2 ? item.shape[1] : 1);

        crc = gr_crc(crc, item.data, (uint64_t)elements * (item.dtype == GRAFT_F32 ? 4 : 8));
    }
    return crc;
}

int32_t gr_ranks_compare_state(graft_trainer *t, int trains, graft_error *error)
{
    static const char *const    names[] = { "the number of completed epochs", "whether state_set() was called",
                                            "the state (by its CRC32C) after state_set()", "whether this is epoch()",
                                            "an option that epoch() reads (lr, epochs, schedule, ...; their CRC32C)" };
    const struct gr_live_config live = gr_live_config_of(t->context);
    const uint64_t              values[] = { (uint64_t)t->progress.epoch, (uint64_t)t->state_is_set,
                                t->state_is_set ? digest_of(t) : 0, (uint64_t)trains,
                                trains ? gr_crc(0, &live, sizeof live) : 0 };
    int32_t                     rc = GRAFT_OK;

    if (t->over == NULL || t->over->comm->n_ranks == 1) return GRAFT_OK;
    GR_TRY(gr_comm_compare(t->over->comm, names, values, 5, error));
    if (t->state_is_set) gr_strategy_forget(t->run.strategy);
    t->state_is_set = 0;
done:
    return rc;
}

/* What must be the same for ranks to train one model, beside the options. */
static int32_t compare_data(const graft_trainer *t, graft_error *error)
{
    static const char *const names[] = { "the number of features", "the number of classes", "the loss" };
    const int                sigmoid = t->model.config.sigmoid;
    const char *const        texts[] = { NULL, NULL, sigmoid ? "sigmoid" : "softmax" };
    const uint64_t values[] = { (uint64_t)t->data.n_features, (uint64_t)t->data.n_classes, (uint64_t)sigmoid };

    GR_ASSERT(t->over != NULL);
    return gr_comm_compare_texts(t->over->comm, names, values, texts, 3, error);
}

/* With loss "auto", targets make it a sigmoid; a rank that has no rows to give goes by those that have. */
static int32_t settle_loss(graft_trainer *t, graft_error *error)
{
    const int has_rows = t->over->n_slice > 0;
    int       sigmoid = has_rows && t->model.config.sigmoid;
    int32_t   rc = GRAFT_OK;

    GR_TRY(gr_strategy_any(t->run.strategy, &sigmoid, error));
    if (!has_rows && t->context->options.train.loss == GR_LOSS_AUTO) t->model.config.sigmoid = sigmoid;
done:
    return rc;
}

/* The partition was compared when the graph was made. */
static const uint32_t COMPARED_GROUPS = ~(1u << GR_GROUP_PARTITION);

int32_t gr_ranks_compare_options(const graft_trainer *t, graft_error *error)
{
    return t->over != NULL ? gr_options_compare(t->context, t->over->comm, COMPARED_GROUPS, error) : GRAFT_OK;
}

int32_t gr_ranks_compare_data(graft_trainer *t, graft_error *error)
{
    int32_t rc = GRAFT_OK;

    if (t->over == NULL) return GRAFT_OK;
    GR_TRY(settle_loss(t, error));
    rc = compare_data(t, error);
done:
    return rc;
}
