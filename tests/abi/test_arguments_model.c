/* Checks what graft.model/1 must refuse. Each call gets arguments that it cannot use, and must return the status that
 * the header documents.
 * SPDX-License-Identifier: Apache-2.0 */
#include "arguments.h"

#include <unistd.h>

static graft_trainer *trainer_of(const graft_dataset *data)
{
    graft_trainer *trainer = NULL;

    REFUSED(GRAFT_OK, s.train->create(s.context, data, &trainer, &error));
    return trainer;
}

static const char *model_create_calls(const void *arg)
{
    graft_trainer *trainer = trainer_of(&set.dataset);
    graft_model   *model = NULL;

    (void)arg;
    REFUSED(GRAFT_ERR_ARG, s.model->create(NULL, GRAFT_MODEL_LAST, &model, &error));
    REFUSED(GRAFT_ERR_ARG, s.model->create(trainer, GRAFT_MODEL_LAST, NULL, &error));
    REFUSED(GRAFT_ERR_ARG, s.model->create(trainer, -1, &model, &error));
    REFUSED(GRAFT_ERR_ARG, s.model->create(trainer, 3, &model, &error));
    s.model->destroy(NULL);
    s.train->destroy(trainer);
    return end_of_group();
}

static const char *file_calls(const void *arg)
{
    graft_transport odd = { .size = 4 };
    graft_trainer  *trainer = trainer_of(&set.dataset);
    graft_model    *model = NULL, *loaded = NULL;
    char            path[] = "/tmp/graft-arguments-XXXXXX", file[64];

    (void)arg;
    if (mkdtemp(path) == NULL) return "no folder for files";
    snprintf(file, sizeof file, "%s/m", path);
    REFUSED(GRAFT_OK, s.model->create(trainer, GRAFT_MODEL_STATE, &model, &error));
    REFUSED(GRAFT_ERR_ARG, s.model->save(NULL, file, &error));
    REFUSED(GRAFT_ERR_ARG, s.model->save(model, NULL, &error));
    REFUSED(GRAFT_ERR_IO, s.model->save(model, "", &error));
    REFUSED(GRAFT_ERR_IO, s.model->save(model, path, &error));
    REFUSED(GRAFT_ERR_IO, s.model->save(model, "/dev/full", &error));
    REFUSED(GRAFT_ERR_IO, s.model->save(model, "/nowhere/model", &error));
    REFUSED(GRAFT_OK, s.model->save(model, file, &error));
    REFUSED(GRAFT_ERR_ARG, s.model->load(NULL, NULL, file, &loaded, &error));
    REFUSED(GRAFT_ERR_ARG, s.model->load(s.context, NULL, NULL, &loaded, &error));
    REFUSED(GRAFT_ERR_ARG, s.model->load(s.context, NULL, file, NULL, &error));
    REFUSED(GRAFT_ERR_ARG, s.model->load(s.context, &odd, file, &loaded, &error));
    REFUSED(GRAFT_ERR_NOT_FOUND, s.model->load(s.context, NULL, "", &loaded, &error));
    REFUSED(GRAFT_ERR_NOT_FOUND, s.model->load(s.context, NULL, "/nowhere/model", &loaded, &error));
    REFUSED(GRAFT_ERR_FORMAT, s.model->load(s.context, NULL, "/dev/null", &loaded, &error));
    REFUSED(GRAFT_ERR_FORMAT, s.model->load(s.context, NULL, path, &loaded, &error));
    REFUSED(GRAFT_OK, s.model->load(s.context, NULL, file, &loaded, &error));
    s.model->destroy(loaded);
    s.model->destroy(model);
    s.train->destroy(trainer);
    unlink(file);
    rmdir(path);
    return end_of_group();
}

static const char *model_calls(const void *arg)
{
    graft_trainer   *trainer = trainer_of(&set.dataset), *other;
    graft_model     *model = NULL;
    graft_model_info info = GRAFT_INIT(graft_model_info);
    graft_state_item item = GRAFT_INIT(graft_state_item);
    graft_dataset    data = set.dataset;
    float            rows[N * CLASSES];
    graft_dense      logits = { sizeof logits, GRAFT_F32, N, CLASSES, CLASSES, rows };
    const char      *key, *value;

    (void)arg;
    REFUSED(GRAFT_OK, s.model->create(trainer, GRAFT_MODEL_BEST, &model, &error));
    REFUSED(GRAFT_ERR_ARG, s.model->info(NULL, &info, &error));
    REFUSED(GRAFT_ERR_ARG, s.model->info(model, NULL, &error));
    REFUSED(GRAFT_ERR_ARG, s.model->metadata(NULL, 0, &key, &value, &error));
    REFUSED(GRAFT_ERR_ARG, s.model->metadata(model, 0, NULL, &value, &error));
    REFUSED(GRAFT_ERR_ARG, s.model->metadata(model, 0, &key, NULL, &error));
    REFUSED(GRAFT_ERR_NOT_FOUND, s.model->metadata(model, -1, &key, &value, &error));
    REFUSED(GRAFT_ERR_NOT_FOUND, s.model->metadata(model, 1000, &key, &value, &error));
    REFUSED(GRAFT_ERR_ARG, s.model->item(NULL, 0, &item, &error));
    REFUSED(GRAFT_ERR_ARG, s.model->item(model, 0, NULL, &error));
    REFUSED(GRAFT_ERR_NOT_FOUND, s.model->item(model, -1, &item, &error));
    REFUSED(GRAFT_ERR_NOT_FOUND, s.model->item(model, 1000, &item, &error));
    REFUSED(GRAFT_ERR_ARG, s.model->apply(NULL, trainer, &error));
    REFUSED(GRAFT_ERR_ARG, s.model->apply(model, NULL, &error));
    REFUSED(GRAFT_ERR_STATE, s.api.set(s.context, "hidden", "5", &error)); /* the trainer has another hidden width */
    s.train->destroy(trainer);
    REFUSED(GRAFT_OK, s.api.set(s.context, "hidden", "5", &error));
    other = trainer_of(&set.dataset);
    REFUSED(GRAFT_ERR_FORMAT, s.model->apply(model, other, &error));
    s.train->destroy(other);
    REFUSED(GRAFT_OK, s.api.set(s.context, "layers", "2", &error));
    other = trainer_of(&set.dataset);
    REFUSED(GRAFT_ERR_FORMAT, s.model->apply(model, other, &error));
    s.train->destroy(other);
    data.n_classes++;
    other = trainer_of(&data);
    REFUSED(GRAFT_ERR_ARG, s.model->apply(model, other, &error));
    s.train->destroy(other);
    REFUSED(GRAFT_ERR_ARG, s.model->predict(NULL, 0, &set.dataset, NULL, NULL, &error));
    REFUSED(GRAFT_ERR_ARG, s.model->predict(model, 0, NULL, NULL, NULL, &error));
    REFUSED(GRAFT_OK, s.model->predict(model, 0, &data, NULL, NULL, &error)); /* n_classes is not read here */
    REFUSED(GRAFT_OK, s.model->predict(model, 0, &set.dataset, NULL, &logits, &error));
    REFUSED(GRAFT_ERR_ARG, s.model->predict(model, 2, &set.dataset, NULL, NULL, &error));
    REFUSED(GRAFT_ERR_ARG, s.model->predict(model, -1, &set.dataset, NULL, NULL, &error));
    data.n_features++;
    REFUSED(GRAFT_ERR_ARG, s.model->predict(model, 0, &data, NULL, NULL, &error));
    if (strstr(error.message, "5 features") == NULL || strstr(error.message, "has 4") == NULL)
        watch_blame("not both numbers of features: %s", error.message);
    logits.n_cols--;
    REFUSED(GRAFT_ERR_ARG, s.model->predict(model, 0, &set.dataset, NULL, &logits, &error));
    data = set.dataset;
    data.features = NULL;
    REFUSED(GRAFT_ERR_ARG, s.model->predict(model, 0, &data, NULL, NULL, &error));
    s.model->destroy(model);
    return end_of_group();
}

static const char *list_calls(const void *arg)
{
    graft_trainer   *trainer = trainer_of(&set.dataset);
    graft_model     *model = NULL;
    graft_dataset    data = set.dataset;
    float            rows[N * CLASSES];
    int32_t          labels[N];
    int64_t          vertices[] = { 2, 0, 2 };
    graft_dense      likely = { sizeof likely, GRAFT_F32, 3, CLASSES, CLASSES, rows };
    graft_prediction list = GRAFT_INIT(graft_prediction);

    (void)arg;
    REFUSED(GRAFT_OK, s.model->create(trainer, GRAFT_MODEL_LAST, &model, &error));
    s.train->destroy(trainer);
    list.vertices = vertices;
    list.n = 3;
    list.labels = labels;
    list.probabilities = &likely;
    REFUSED(GRAFT_ERR_ARG, s.model->predict_vertices(model, &list, &error));
    data.n_classes = 0;
    data.labels = NULL;
    data.split = NULL;
    list.dataset = &data;
    REFUSED(GRAFT_ERR_ARG, s.model->predict_vertices(NULL, &list, &error));
    REFUSED(GRAFT_ERR_ARG, s.model->predict_vertices(model, NULL, &error));
    REFUSED(GRAFT_OK, s.model->predict_vertices(model, &list, &error));
    list.logits = &likely;
    list.probabilities = NULL;
    REFUSED(GRAFT_OK, s.model->predict_vertices(model, &list, &error));
    list.weights = 2;
    REFUSED(GRAFT_ERR_ARG, s.model->predict_vertices(model, &list, &error));
    list.weights = GRAFT_WEIGHTS_BEST;
    vertices[1] = N;
    REFUSED(GRAFT_ERR_ARG, s.model->predict_vertices(model, &list, &error));
    vertices[1] = -1;
    REFUSED(GRAFT_ERR_ARG, s.model->predict_vertices(model, &list, &error));
    vertices[1] = 1;
    list.n = -1;
    REFUSED(GRAFT_ERR_ARG, s.model->predict_vertices(model, &list, &error));
    list.n = 2;
    REFUSED(GRAFT_ERR_ARG, s.model->predict_vertices(model, &list, &error)); /* the array for logits has 3 rows */
    list.n = 0;
    list.logits = NULL;
    REFUSED(GRAFT_OK, s.model->predict_vertices(model, &list, &error));
    list.vertices = NULL;
    REFUSED(GRAFT_ERR_ARG, s.model->predict_vertices(model, &list, &error));
    list.n = N;
    REFUSED(GRAFT_OK, s.model->predict_vertices(model, &list, &error));
    list.probabilities = &likely;
    likely.size = 0;
    REFUSED(GRAFT_ERR_ARG, s.model->predict_vertices(model, &list, &error));
    s.model->destroy(model);
    return end_of_group();
}

/* Calls on a model whose input includes labels. */
static const char *label_calls(const void *arg)
{
    graft_trainer *trainer;
    graft_model   *model = NULL;
    graft_dataset  data = set.dataset;
    int32_t        labels[N];
    uint8_t        targets[N * CLASSES] = { 0 };

    (void)arg;
    REFUSED(GRAFT_OK, s.api.set(s.context, "label_rate", "0.5", &error));
    trainer = trainer_of(&set.dataset);
    REFUSED(GRAFT_OK, s.model->create(trainer, GRAFT_MODEL_LAST, &model, &error));
    s.train->destroy(trainer);
    memcpy(labels, set.dataset.labels, sizeof labels);
    data.labels = labels;
    data.n_classes = 0;
    REFUSED(GRAFT_OK, s.model->predict(model, 0, &data, NULL, NULL, &error));
    data.targets = targets; /* softmax ignores targets if the data set has labels */
    data.n_classes = 1;
    REFUSED(GRAFT_OK, s.model->predict(model, 0, &data, NULL, NULL, &error));
    labels[1] = CLASSES;
    REFUSED(GRAFT_ERR_FORMAT, s.model->predict(model, 0, &data, NULL, NULL, &error));
    if (strstr(error.message, "vertex 1 has label") == NULL || strstr(error.message, "does not know") == NULL)
        watch_blame("not which label: %s", error.message);
    data.labels = NULL;
    REFUSED(GRAFT_ERR_ARG, s.model->predict(model, 0, &data, NULL, NULL, &error)); /* the targets have one column */
    s.model->destroy(model);
    REFUSED(GRAFT_OK, s.api.set(s.context, "label_rate", "0", &error));
    return end_of_group();
}

int main(void)
{
    static const struct group groups[] = {
        { "create of a model", model_create_calls, NULL },
        { "files of models", file_calls, NULL },
        { "a model", model_calls, NULL },
        { "a list of vertices", list_calls, NULL },
        { "labels as input", label_calls, NULL },
    };

    return run_groups(groups, NUMBER(groups));
}
