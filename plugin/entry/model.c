/* "graft.model/1": reads the host's structs, and calls snapshot/.
 * SPDX-License-Identifier: Apache-2.0 */
#include "entry/entry.h"

#include "snapshot/snapshot.h"

static int32_t model_create(graft_trainer *trainer, int32_t what, graft_model **model, graft_error *error)
{
    struct gr_call call;
    int32_t        rc = gr_call_begin_on(&call, trainer, GR_HANDLE_TRAINER, GRAFT_MODEL_ID " create", error);

    if (rc == GRAFT_OK && model == NULL) rc = gr_fail(&call.error, GRAFT_ERR_ARG, "model is null");
    if (rc == GRAFT_OK) rc = gr_snapshot_create(trainer, what, model, &call.error);
    if (rc == GRAFT_OK) gr_handle_init(*model, GR_HANDLE_MODEL, trainer->setup.context);
    return gr_call_end(&call, rc);
}

static int32_t model_load(graft_context *context, const graft_transport *transport, const char *path,
                          graft_model **model, graft_error *error)
{
    struct gr_call call;
    int32_t        rc = gr_call_begin(&call, context, GRAFT_MODEL_ID " load", error);

    if (rc == GRAFT_OK) rc = gr_snapshot_load(context, transport, path, model, &call.error);
    if (rc == GRAFT_OK) gr_handle_init(*model, GR_HANDLE_MODEL, context);
    return gr_call_end(&call, rc);
}

static int32_t model_save(graft_model *model, const char *path, graft_error *error)
{
    struct gr_call call;
    int32_t        rc = gr_call_begin_on(&call, model, GR_HANDLE_MODEL, GRAFT_MODEL_ID " save", error);

    if (rc == GRAFT_OK && path == NULL) rc = gr_fail(&call.error, GRAFT_ERR_ARG, "path is null");
    if (rc == GRAFT_OK) rc = gr_snapshot_save(model, path, &call.error);
    return gr_call_end(&call, rc);
}

static int32_t model_apply(graft_model *model, graft_trainer *trainer, graft_error *error)
{
    struct gr_call call;
    int32_t        rc = gr_call_begin_on(&call, model, GR_HANDLE_MODEL, GRAFT_MODEL_ID " apply", error);

    if (rc == GRAFT_OK) rc = gr_handle_check(model->context, trainer, GR_HANDLE_TRAINER, "trainer", &call.error);
    if (rc == GRAFT_OK) rc = gr_snapshot_apply(model, trainer, &call.error);
    return gr_call_end(&call, rc);
}

static int32_t model_info(graft_model *model, graft_model_info *info, graft_error *error)
{
    struct gr_call   call;
    graft_model_info ours = { .size = sizeof ours };
    int32_t          rc = gr_call_begin_on(&call, model, GR_HANDLE_MODEL, GRAFT_MODEL_ID " info", error);

    if (rc == GRAFT_OK) gr_snapshot_info(model, &ours);
    if (rc == GRAFT_OK) rc = gr_struct_write(info, &ours, sizeof ours, "info", &call.error);
    return gr_call_end(&call, rc);
}

static int32_t model_metadata(graft_model *model, int32_t index, const char **key, const char **value,
                              graft_error *error)
{
    struct gr_call call;
    int32_t        rc = gr_call_begin_on(&call, model, GR_HANDLE_MODEL, GRAFT_MODEL_ID " metadata", error);

    if (rc == GRAFT_OK && (key == NULL || value == NULL))
        rc = gr_fail(&call.error, GRAFT_ERR_ARG, "%s is null", key == NULL ? "key" : "value");
    if (rc == GRAFT_OK) rc = gr_snapshot_metadata(model, index, key, value, &call.error);
    return gr_call_end(&call, rc);
}

static int32_t model_item(graft_model *model, int32_t index, graft_state_item *item, graft_error *error)
{
    struct gr_call   call;
    graft_state_item ours = { .size = sizeof ours };
    struct gr_state  state;
    int32_t          rc = gr_call_begin_on(&call, model, GR_HANDLE_MODEL, GRAFT_MODEL_ID " item", error);

    if (rc == GRAFT_OK) {
        state = gr_snapshot_state(model);
        rc = gr_train_state_item(&state, index, &ours, &call.error);
    }
    if (rc == GRAFT_OK) rc = gr_struct_write(item, &ours, sizeof ours, "item", &call.error);
    return gr_call_end(&call, rc);
}

/* Copy the host's struct *dense, unless it is NULL, and point *dense to the copy. */
static int32_t read_output(graft_dense *ours, const graft_dense **dense, const char *name, graft_error *error)
{
    const graft_dense *theirs = *dense;

    *dense = theirs != NULL ? ours : NULL;
    return theirs != NULL ? gr_struct_read(ours, sizeof *ours, theirs, name, error) : GRAFT_OK;
}

/* Read the structs of the prediction, and predict. The ranks of the data set agree on the status `found`. */
static int32_t predict_with(graft_model *model, int32_t found, graft_prediction *p, graft_error *error)
{
    graft_dense logits, probabilities;

    if (found == GRAFT_OK) found = read_output(&logits, &p->logits, "logits", error);
    if (found == GRAFT_OK) found = read_output(&probabilities, &p->probabilities, "probabilities", error);
    return gr_snapshot_predict(model, found, p, error);
}

static int32_t model_predict(graft_model *model, int32_t weights, const graft_dataset *dataset, int32_t *labels,
                             const graft_dense *logits, graft_error *error)
{
    struct gr_call   call;
    graft_prediction ours = { .size = sizeof ours,
                              .weights = weights,
                              .dataset = dataset,
                              .n = GR_ALL_VERTICES,
                              .labels = labels,
                              .logits = logits };
    int32_t          rc = gr_call_begin_on(&call, model, GR_HANDLE_MODEL, GRAFT_MODEL_ID " predict", error);

    if (rc == GRAFT_OK) rc = predict_with(model, GRAFT_OK, &ours, &call.error);
    return gr_call_end(&call, rc);
}

static int32_t model_predict_vertices(graft_model *model, const graft_prediction *prediction, graft_error *error)
{
    struct gr_call   call;
    graft_prediction ours;
    int32_t          rc = gr_call_begin_on(&call, model, GR_HANDLE_MODEL, GRAFT_MODEL_ID " predict_vertices", error);

    if (rc == GRAFT_OK) rc = gr_struct_read(&ours, sizeof ours, prediction, "prediction", &call.error);
    GR_TRY_DONE(rc);
    if (ours.n < 0) rc = gr_fail(&call.error, GRAFT_ERR_ARG, "n is %lld, expected 0 or more", (long long)ours.n);
    rc = predict_with(model, rc, &ours, &call.error);
done:
    return gr_call_end(&call, rc);
}

GR_ENTRY_DESTROY(model_destroy, graft_model, MODEL, GRAFT_MODEL_ID " destroy", gr_snapshot_destroy)

const graft_model_api gr_interface_model = {
    .size = sizeof(graft_model_api),
    .create = model_create,
    .load = model_load,
    .save = model_save,
    .apply = model_apply,
    .info = model_info,
    .metadata = model_metadata,
    .item = model_item,
    .predict = model_predict,
    .destroy = model_destroy,
    .predict_vertices = model_predict_vertices,
};
