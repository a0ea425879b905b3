/* Compares the state of a trainer on all ranks, and the options that an epoch reads.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/crc.h"
#include "base/options.h"
#include "comm/compare_options.h"
#include "halo/options.h"
#include "nn/options.h"
#include "train/train.h"

static uint64_t digest_of(graft_trainer *t)
{
    graft_error      error = { .size = sizeof error };
    graft_state_item item = { .size = sizeof item };
    uint32_t         crc = 0;

    for (int32_t i = 0; gr_trainer_state_item(t, i, &item, &error) == GRAFT_OK; i++)
        if (!gr_train_state_is_table(&item)) crc = gr_crc(crc, item.data, (uint64_t)gr_nn_item_bytes(&item));
    return crc;
}

/* Use the state that the host has set. If all ranks have set all caches, they are used; otherwise all ranks begin with
 * empty ones. */
static int32_t use_state(graft_trainer *t, graft_error *error)
{
    int64_t missing = t->batches == NULL || !gr_train_batch_tables_hold(t->batches, 1);

    gr_strategy_forget(t->setup.run.strategy, 0);
    gr_train_minibatches_settle(t); /* the ages of cached rows depend on the number of the next batch */
    if (t->batches == NULL) return GRAFT_OK;
    GR_TRY(gr_comm_max(t->setup.data.over->comm, &missing, 1, error));
    if (missing) gr_train_minibatches_forget(t);
    else gr_train_batch_tables_take(t->batches, gr_train_minibatch_number(&t->progress));
    return GRAFT_OK;
}

int32_t gr_trainer_compare_states(graft_trainer *t, int trains, int32_t rc, graft_error *error)
{
    static const char *const names[] = { "the status of this call",
                                         "the number of completed epochs",
                                         "whether state_set() was called",
                                         "the state (by its CRC32C) after state_set()",
                                         "whether this is epoch()",
                                         "option 'check'",
                                         "an option that epoch() reads (lr, epochs, halo.codec, ...; their CRC32C)" };
    const graft_context     *context = t->setup.context;
    const uint32_t           live = /* the tables of options that an epoch reads */
        gr_options_bit(context, &gr_training_option_table) | gr_options_bit(context, &gr_halo_option_table);
    const uint64_t values[] = {
        (uint64_t)(int64_t)rc,
        (uint64_t)t->progress.epoch,
        (uint64_t)t->state_is_set,
        t->state_is_set ? digest_of(t) : 0,
        (uint64_t)trains,
        (uint64_t)gr_base_options(context)->check,
        trains ? gr_comm_digest_live_options(context, live) : 0,
    };
    graft_error differs = { .size = sizeof differs };
    int32_t     same;

    if (t->setup.data.over->comm->n_ranks == 1) return rc;
    same = gr_comm_compare(t->setup.data.over->comm, names, values, 7, &differs);
    if (same == GRAFT_OK) GR_TRY(rc); /* all ranks have the same failure */
    if (same < 0 && same != GRAFT_ERR_PEER) GR_TRY(gr_comm_agree_on(t->setup.data.over->comm, rc, error));
    if (same < 0) {
        *error = differs;
        return same;
    }
    if (t->state_is_set) GR_TRY(use_state(t, error));
    t->state_is_set = 0;
    return rc;
}
