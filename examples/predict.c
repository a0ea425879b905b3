/* A saved model predicts, without a trainer: its file, a data set, and no more.
 *
 *     cc predict.c -o predict $(pkg-config --cflags --libs graft)
 *     ./predict $(pkg-config --variable=library graft) MODEL.safetensors DATASET
 *
 * `graft-train DATASET --save DIR` makes DIR/checkpoint.safetensors, which is such a model.
 * SPDX-License-Identifier: Apache-2.0 */
#include "graft_load.h"
#include "graft_model.h"

#include <stdio.h>
#include <stdlib.h>

enum { SHOWN = 5 };

/* Print what the file says about the model. */
static int32_t print_model(const graft_model_api *models, graft_model *model, graft_error *error)
{
    graft_model_info info = GRAFT_INIT(graft_model_info);
    const char      *key, *value;
    const int32_t    rc = models->info(model, &info, error);

    if (rc < 0) return rc;
    printf("%s of %lld features and %lld classes after %lld epochs\n", info.kind, (long long)info.n_features,
           (long long)info.n_classes, (long long)info.epoch);
    for (int32_t i = 0; models->metadata(model, i, &key, &value, NULL) >= 0; i++) printf("  %s = %s\n", key, value);
    return rc;
}

static void print_labels(const int32_t *labels, int64_t n)
{
    for (int64_t v = 0; v < n && v < SHOWN; v++) printf("vertex %lld: class %d\n", (long long)v, labels[v]);
    if (n > SHOWN) printf("and %lld more\n", (long long)(n - SHOWN));
}

int main(int argc, char **argv)
{
    const graft_api       *graft = NULL;
    const graft_data_api  *data = NULL;
    const graft_model_api *models = NULL;
    graft_data            *set = NULL;
    graft_model           *model = NULL;
    int32_t               *labels = NULL;
    graft_error            error = GRAFT_INIT(graft_error);
    int32_t                rc;

    if (argc != 4) {
        fprintf(stderr, "usage: predict LIBGRAFT.SO MODEL.safetensors DATASET\n");
        return 2;
    }
    rc = graft_load(argv[1], NULL, &graft, &error);
    if (rc < 0) goto done;
    data = graft_interface(graft, GRAFT_DATA_ID, GRAFT_HAS(graft_data_api, close));
    models = graft_interface(graft, GRAFT_MODEL_ID, GRAFT_HAS(graft_model_api, destroy));
    if (data == NULL || models == NULL) goto done;

    /* NULL means one process. Over ranks a transport is passed here, and the first rank reads the file for all. */
    rc = models->load(graft->context, NULL, argv[2], &model, &error);
    if (rc >= 0) rc = print_model(models, model, &error);
    if (rc >= 0) rc = data->open(graft->context, argv[3], &set, &error);
    if (rc < 0) goto done;

    const graft_dataset *dataset = data->view(set);
    labels = calloc((size_t)dataset->n_vertices, sizeof *labels);
    if (labels == NULL) goto done;
    rc = models->predict(model, GRAFT_WEIGHTS_BEST, dataset, labels, NULL, &error);
    if (rc >= 0) print_labels(labels, dataset->n_vertices);

done:
    if (rc < 0) fprintf(stderr, "predict: %s\n", error.message);
    if (rc >= 0 && labels == NULL) fprintf(stderr, "predict: an older library, or no memory\n");
    free(labels);
    if (models != NULL) models->destroy(model);
    if (data != NULL) data->close(set);
    if (graft != NULL) graft->close(graft->context);
    return rc < 0 || labels == NULL;
}
