/* Wraps the table of graft.model/1, see watch.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "watched.h"

static const graft_model_api *models;

static int32_t model_create(graft_trainer *trainer, int32_t what, graft_model **model, graft_error *error)
{
    graft_model *before = model != NULL ? *model : NULL;
    int32_t      rc;

    WATCHED("graft.model/1 create", error, models->create(trainer, what, model, error),
            watch_same(model, &before, sizeof before), 0);
    return rc;
}

static int32_t model_load(graft_context *context, const graft_transport *transport, const char *path,
                          graft_model **model, graft_error *error)
{
    graft_model *before = model != NULL ? *model : NULL;
    int32_t      rc;

    WATCHED("graft.model/1 load", error, models->load(context, transport, path, model, error),
            watch_same(model, &before, sizeof before), 0);
    return rc;
}

static int32_t model_save(graft_model *model, const char *path, graft_error *error)
{
    int32_t rc;

    WATCHED("graft.model/1 save", error, models->save(model, path, error), 1, 0);
    return rc;
}

static int32_t model_apply(graft_model *model, graft_trainer *trainer, graft_error *error)
{
    int32_t rc;

    WATCHED("graft.model/1 apply", error, models->apply(model, trainer, error), 1, 0);
    return rc;
}

static int32_t model_info(graft_model *model, graft_model_info *info, graft_error *error)
{
    graft_model_info before;
    int32_t          rc;

    if (info != NULL) memcpy(&before, info, sizeof before);
    WATCHED("graft.model/1 info", error, models->info(model, info, error), watch_same(info, &before, sizeof before), 0);
    return rc;
}

static int32_t model_metadata(graft_model *model, int32_t index, const char **key, const char **value,
                              graft_error *error)
{
    const char *before[] = { key != NULL ? *key : NULL, value != NULL ? *value : NULL };
    int32_t     rc;

    WATCHED("graft.model/1 metadata", error, models->metadata(model, index, key, value, error),
            watch_same(key, &before[0], sizeof *key) && watch_same(value, &before[1], sizeof *value), 0);
    return rc;
}

static int32_t model_item(graft_model *model, int32_t index, graft_state_item *item, graft_error *error)
{
    graft_state_item before;
    int32_t          rc;

    if (item != NULL) memcpy(&before, item, sizeof before);
    WATCHED("graft.model/1 item", error, models->item(model, index, item, error),
            watch_same(item, &before, sizeof before), 0);
    return rc;
}

static int32_t model_predict(graft_model *model, int32_t weights, const graft_dataset *dataset, int32_t *labels,
                             const graft_dense *logits, graft_error *error)
{
    int32_t before = labels != NULL ? *labels : 0, rc;

    WATCHED("graft.model/1 predict", error, models->predict(model, weights, dataset, labels, logits, error),
            watch_same(labels, &before, sizeof before), MAY_KEEP);
    return rc;
}

static int32_t model_predict_vertices(graft_model *model, const graft_prediction *prediction, graft_error *error)
{
    int32_t *labels = prediction != NULL ? prediction->labels : NULL;
    int32_t  before = labels != NULL ? *labels : 0, rc;

    WATCHED("graft.model/1 predict_vertices", error, models->predict_vertices(model, prediction, error),
            watch_same(labels, &before, sizeof before), MAY_KEEP);
    return rc;
}

static void model_destroy(graft_model *model)
{
    WATCHED_VOID("graft.model/1 destroy", models->destroy(model));
}

static const graft_model_api watched_models = {
    .size = sizeof watched_models,
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

void watch_models(struct subject *subject, const graft_api *api)
{
    models = api->get_interface(api->context, GRAFT_MODEL_ID);
    subject->model = &watched_models;
    watch_check_whole(GRAFT_MODEL_ID, &watched_models, sizeof watched_models);
}
