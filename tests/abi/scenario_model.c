/* The small job that takes a model out of a trainer, saves, loads and applies it.
 * SPDX-License-Identifier: Apache-2.0 */
#include "scenario.h"

#include <unistd.h>

int32_t scenario_use_model(struct subject *s, graft_trainer *trainer, const graft_dataset *data, graft_error *error)
{
    graft_model     *model = NULL, *loaded = NULL;
    graft_model_info info = GRAFT_INIT(graft_model_info);
    graft_state_item item = GRAFT_INIT(graft_state_item);
    const char      *key, *value;
    char             path[64];
    const int64_t    vertices[] = { 1, 0 };
    int32_t          labels[2];
    graft_prediction list = { .size = sizeof list, .dataset = data, .vertices = vertices, .n = 2, .labels = labels };
    int32_t          rc = s->model->create(trainer, GRAFT_MODEL_STATE, &model, error);

    snprintf(path, sizeof path, "/tmp/graft-scenario-%d", (int)getpid());
    if (rc == GRAFT_OK) rc = s->model->info(model, &info, error);
    if (rc == GRAFT_OK) rc = s->model->metadata(model, 0, &key, &value, error);
    if (rc == GRAFT_OK) rc = s->model->item(model, 0, &item, error);
    if (rc == GRAFT_OK) rc = s->model->save(model, path, error);
    if (rc == GRAFT_OK) rc = s->model->load(s->context, NULL, path, &loaded, error);
    if (rc == GRAFT_OK) rc = s->model->apply(loaded, trainer, error);
    if (rc == GRAFT_OK) rc = s->model->predict(loaded, GRAFT_WEIGHTS_BEST, data, NULL, NULL, error);
    if (rc == GRAFT_OK) rc = s->model->predict_vertices(loaded, &list, error);
    s->model->destroy(loaded);
    s->model->destroy(model);
    unlink(path);
    return rc;
}
