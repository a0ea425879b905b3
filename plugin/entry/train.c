/* "graft.data/1" and "graft.train/1": reads the host's structs, and calls io/ and train/.
 * SPDX-License-Identifier: Apache-2.0 */
#include "entry/entry.h"

#include "io/data.h"
#include "sample/options.h"
#include "train/train.h"

/* Batches read few rows at a time. */
static int maps_features(const graft_context *context)
{
    return gr_sample_options(context)->batch_size > 0;
}

static int32_t data_open(graft_context *context, const char *path, graft_data **data, graft_error *error)
{
    struct gr_call call;
    int32_t        rc = gr_call_begin(&call, context, GRAFT_DATA_ID " open", error);

    if (rc == GRAFT_OK) rc = gr_data_open(context, path, maps_features(context), data, &call.error);
    if (rc == GRAFT_OK) gr_handle_init(*data, GR_HANDLE_DATA, context);
    return gr_call_end(&call, rc);
}

static int32_t data_open_slice(graft_context *context, const graft_transport *transport, const char *path,
                               graft_data **data, graft_error *error)
{
    struct gr_call call;
    int32_t        rc = gr_call_begin(&call, context, GRAFT_DATA_ID " open_slice", error);

    if (rc == GRAFT_OK) rc = gr_data_open_slice(context, transport, path, maps_features(context), data, &call.error);
    if (rc == GRAFT_OK) gr_handle_init(*data, GR_HANDLE_DATA, context);
    return gr_call_end(&call, rc);
}

static const graft_dataset *data_view(const graft_data *data)
{
    return gr_handle_is(data, GR_HANDLE_DATA) ? gr_data_view(data) : NULL;
}

static void destroy_data(void *data)
{
    gr_data_close(((struct gr_handle *)data)->context, data);
}

static void data_close(graft_context *context, graft_data *data)
{
    gr_handle_destroy(context, data, GR_HANDLE_DATA, GRAFT_DATA_ID " close", destroy_data);
}

const graft_data_interface gr_interface_data = {
    .size = sizeof(graft_data_interface),
    .open = data_open,
    .view = data_view,
    .close = data_close,
    .open_slice = data_open_slice,
};

static int32_t train_create(graft_context *context, const graft_dataset *dataset, graft_trainer **trainer,
                            graft_error *error)
{
    struct gr_call call;
    int32_t        rc = gr_call_begin(&call, context, GRAFT_TRAIN_ID " create", error);

    GR_TRY(rc);
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

    GR_TRY(rc);
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

    GR_TRY(rc);
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

    GR_TRY(rc);
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

static int32_t train_span(graft_trainer *trainer, int64_t index, graft_span *span, graft_error *error)
{
    struct gr_call call;
    graft_span     ours = { .size = sizeof ours };
    int32_t        rc = gr_call_begin_on(&call, trainer, GR_HANDLE_TRAINER, GRAFT_TRAIN_ID " span", error);

    if (rc == GRAFT_OK) rc = gr_trainer_span(trainer, index, &ours, &call.error);
    if (rc == GRAFT_OK) rc = gr_struct_write(span, &ours, sizeof ours, "span", &call.error);
    return gr_call_end(&call, rc);
}

static int32_t train_memory_item(graft_trainer *trainer, int32_t index, graft_memory_item *item, graft_error *error)
{
    struct gr_call    call;
    graft_memory_item ours = { .size = sizeof ours };
    int32_t           rc = gr_call_begin_on(&call, trainer, GR_HANDLE_TRAINER, GRAFT_TRAIN_ID " memory_item", error);

    if (rc == GRAFT_OK) rc = gr_trainer_memory_item(trainer, index, &ours, &call.error);
    if (rc == GRAFT_OK) rc = gr_struct_write(item, &ours, sizeof ours, "item", &call.error);
    return gr_call_end(&call, rc);
}

static int32_t train_traffic(graft_trainer *trainer, int32_t rank, graft_traffic *traffic, graft_error *error)
{
    struct gr_call call;
    graft_traffic  ours = { .size = sizeof ours };
    int32_t        rc = gr_call_begin_on(&call, trainer, GR_HANDLE_TRAINER, GRAFT_TRAIN_ID " traffic", error);

    if (rc == GRAFT_OK) rc = gr_struct_check_out(traffic, "traffic", &call.error);
    if (rc == GRAFT_OK) rc = gr_trainer_traffic(trainer, rank, &ours, &call.error);
    if (rc == GRAFT_OK) rc = gr_struct_write(traffic, &ours, sizeof ours, "traffic", &call.error);
    return gr_call_end(&call, rc);
}

static int32_t train_traffic_item(graft_trainer *trainer, int32_t rank, int32_t index, graft_traffic_item *item,
                                  graft_error *error)
{
    struct gr_call     call;
    graft_traffic_item ours = { .size = sizeof ours };
    int32_t            rc = gr_call_begin_on(&call, trainer, GR_HANDLE_TRAINER, GRAFT_TRAIN_ID " traffic_item", error);

    if (rc == GRAFT_OK) rc = gr_struct_check_out(item, "item", &call.error);
    if (rc == GRAFT_OK) rc = gr_trainer_traffic_item(trainer, rank, index, &ours, &call.error);
    if (rc == GRAFT_OK) rc = gr_struct_write(item, &ours, sizeof ours, "item", &call.error);
    return gr_call_end(&call, rc);
}

static int32_t train_traffic_pair(graft_trainer *trainer, int32_t peer, int32_t index, graft_traffic_pair *pair,
                                  graft_error *error)
{
    struct gr_call     call;
    graft_traffic_pair ours = { .size = sizeof ours };
    int32_t            rc = gr_call_begin_on(&call, trainer, GR_HANDLE_TRAINER, GRAFT_TRAIN_ID " traffic_pair", error);

    if (rc == GRAFT_OK) rc = gr_struct_check_out(pair, "pair", &call.error);
    if (rc == GRAFT_OK) rc = gr_trainer_traffic_pair(trainer, peer, index, &ours, &call.error);
    if (rc == GRAFT_OK) rc = gr_struct_write(pair, &ours, sizeof ours, "pair", &call.error);
    return gr_call_end(&call, rc);
}

static int32_t train_update(graft_trainer *trainer, uint32_t what, const graft_dataset *dataset, graft_error *error)
{
    struct gr_call call;
    graft_dataset  ours;
    int32_t        rc = gr_call_begin_on(&call, trainer, GR_HANDLE_TRAINER, GRAFT_TRAIN_ID " update", error);

    GR_TRY(rc);
    rc = gr_struct_read(&ours, sizeof ours, dataset, "dataset", &call.error);
    rc = gr_trainer_update(trainer, rc, what, &ours, &call.error);
done:
    return gr_call_end(&call, rc);
}

static int32_t train_cache_item(graft_trainer *trainer, int32_t rank, int32_t index, graft_cache_item *item,
                                graft_error *error)
{
    struct gr_call   call;
    graft_cache_item ours = { .size = sizeof ours };
    int32_t          rc = gr_call_begin_on(&call, trainer, GR_HANDLE_TRAINER, GRAFT_TRAIN_ID " cache_item", error);

    if (rc == GRAFT_OK) rc = gr_struct_check_out(item, "item", &call.error);
    if (rc == GRAFT_OK) rc = gr_trainer_cache_item(trainer, rank, index, &ours, &call.error);
    if (rc == GRAFT_OK) rc = gr_struct_write(item, &ours, sizeof ours, "item", &call.error);
    return gr_call_end(&call, rc);
}

static void destroy_trainer(void *trainer)
{
    gr_trainer_destroy(trainer);
}

static void train_destroy(graft_trainer *trainer)
{
    gr_handle_destroy(NULL, trainer, GR_HANDLE_TRAINER, GRAFT_TRAIN_ID " destroy", destroy_trainer);
}

const graft_train gr_interface_train = {
    .size = sizeof(graft_train),
    .create = train_create,
    .epoch = train_epoch,
    .evaluate = train_evaluate,
    .predict = train_predict,
    .state_item = train_state_item,
    .state_set = train_state_set,
    .explain = train_explain,
    .destroy = train_destroy,
    .span = train_span,
    .memory_item = train_memory_item,
    .traffic = train_traffic,
    .traffic_item = train_traffic_item,
    .traffic_pair = train_traffic_pair,
    .update = train_update,
    .cache_item = train_cache_item,
};
