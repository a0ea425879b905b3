/* "graft.train/1": reads the host's structs, and calls train/.
 * SPDX-License-Identifier: Apache-2.0 */
#include "entry/entry.h"

#include "train/train.h"

static int32_t train_create(graft_context *context, const graft_dataset *dataset, graft_trainer **trainer,
                            graft_error *error)
{
    struct gr_call call;
    int32_t        rc = gr_call_begin(&call, context, GRAFT_TRAIN_ID " create", error);

    GR_TRY_DONE(rc);
    if (trainer == NULL) rc = gr_fail(&call.error, GRAFT_ERR_ARG, "trainer is null");
    rc = gr_trainer_create(context, rc, dataset, trainer, &call.error);
    if (rc == GRAFT_OK) gr_handle_init(*trainer, GR_HANDLE_TRAINER, context);
done:
    return gr_call_end(&call, rc);
}

static int32_t train_epoch(graft_trainer *trainer, graft_epoch *epoch, graft_error *error)
{
    struct gr_call call;
    graft_epoch    ours = { .size = sizeof ours };
    int32_t        rc = gr_call_begin_on(&call, trainer, GR_HANDLE_TRAINER, GRAFT_TRAIN_ID " epoch", error);

    GR_TRY_DONE(rc);
    rc = gr_struct_check_out(epoch, "epoch", &call.error);
    rc = gr_trainer_epoch(trainer, rc, &ours, &call.error);
    if (rc == GRAFT_OK) rc = gr_struct_write(epoch, &ours, sizeof ours, "epoch", &call.error);
done:
    return gr_call_end(&call, rc);
}

static int32_t train_evaluate(graft_trainer *trainer, int32_t weights, graft_metrics *metrics, graft_error *error)
{
    struct gr_call call;
    graft_metrics  ours = { .size = sizeof ours };
    int32_t        rc = gr_call_begin_on(&call, trainer, GR_HANDLE_TRAINER, GRAFT_TRAIN_ID " evaluate", error);

    GR_TRY_DONE(rc);
    rc = gr_struct_check_out(metrics, "metrics", &call.error);
    rc = gr_trainer_evaluate(trainer, rc, weights, &ours, &call.error);
    if (rc == GRAFT_OK) rc = gr_struct_write(metrics, &ours, sizeof ours, "metrics", &call.error);
done:
    return gr_call_end(&call, rc);
}

static int32_t train_predict(graft_trainer *trainer, int32_t weights, int32_t *labels, const graft_dense *logits,
                             graft_error *error)
{
    struct gr_call call;
    graft_dense    ours;
    int32_t        rc = gr_call_begin_on(&call, trainer, GR_HANDLE_TRAINER, GRAFT_TRAIN_ID " predict", error);

    GR_TRY_DONE(rc);
    if (logits != NULL) rc = gr_struct_read(&ours, sizeof ours, logits, "logits", &call.error);
    rc = gr_trainer_predict(trainer, rc, weights, labels, logits != NULL ? &ours : NULL, &call.error);
done:
    return gr_call_end(&call, rc);
}

static int32_t train_state_item(graft_trainer *trainer, int32_t index, graft_state_item *item, graft_error *error)
{
    struct gr_call   call;
    graft_state_item ours = { .size = sizeof ours };
    int32_t          rc = gr_call_begin_on(&call, trainer, GR_HANDLE_TRAINER, GRAFT_TRAIN_ID " state_item", error);

    if (rc == GRAFT_OK) rc = gr_trainer_state_item(trainer, index, &ours, &call.error);
    if (rc == GRAFT_OK) rc = gr_struct_write(item, &ours, sizeof ours, "item", &call.error);
    return gr_call_end(&call, rc);
}

static int32_t train_state_set(graft_trainer *trainer, const graft_state_item *item, graft_error *error)
{
    struct gr_call   call;
    graft_state_item ours;
    int32_t          rc = gr_call_begin_on(&call, trainer, GR_HANDLE_TRAINER, GRAFT_TRAIN_ID " state_set", error);

    if (rc == GRAFT_OK) rc = gr_struct_read(&ours, sizeof ours, item, "item", &call.error);
    if (rc == GRAFT_OK) rc = gr_trainer_state_set(trainer, &ours, &call.error);
    return gr_call_end(&call, rc);
}

static int32_t train_explain(graft_trainer *trainer, char *text, uint64_t capacity, graft_error *error)
{
    struct gr_call call;
    int32_t        rc = gr_call_begin_on(&call, trainer, GR_HANDLE_TRAINER, GRAFT_TRAIN_ID " explain", error);

    if (rc == GRAFT_OK) rc = gr_text_check(text, capacity, &call.error);
    if (rc == GRAFT_OK) rc = gr_trainer_explain(trainer, text, capacity, &call.error);
    return gr_call_end(&call, rc);
}

static int32_t train_update(graft_trainer *trainer, uint32_t what, const graft_dataset *dataset, graft_error *error)
{
    struct gr_call call;
    graft_dataset  ours;
    int32_t        rc = gr_call_begin_on(&call, trainer, GR_HANDLE_TRAINER, GRAFT_TRAIN_ID " update", error);

    GR_TRY_DONE(rc);
    rc = gr_struct_read(&ours, sizeof ours, dataset, "dataset", &call.error);
    rc = gr_trainer_update(trainer, rc, what, &ours, &call.error);
done:
    return gr_call_end(&call, rc);
}

GR_ENTRY_DESTROY(train_destroy, graft_trainer, TRAINER, GRAFT_TRAIN_ID " destroy", gr_trainer_destroy)

const graft_train_api gr_interface_train = {
    .size = sizeof(graft_train_api),
    .create = train_create,
    .epoch = train_epoch,
    .evaluate = train_evaluate,
    .predict = train_predict,
    .state_item = train_state_item,
    .state_set = train_state_set,
    .explain = train_explain,
    .destroy = train_destroy,
    .update = train_update,
};
