/* A host for test_resources.py that has few resources. It trains, saves the model under PATH, reads it again, and
 * prints what failed: resource_host PATH STACK-KB [KEY=VALUE...]. It does so in a thread with a stack of STACK-KB, or
 * for 0 in main().
 * SPDX-License-Identifier: Apache-2.0 */
#include "graft_load.h"
#include "graft_model.h"
#include "graft_train.h"
#include "harness/hosts.h"
#include "harness/outputs.h"
#include "oracle/oracle.h"
#include "oracle/sample.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { VERTICES = 2000, FEATURES = 40, CLASSES = 3 };

static struct sample_dataset set;
static char                **arguments;

static int32_t use_library(const graft_api *api, const char *path, graft_error *error)
{
    const graft_train_api *train = graft_interface(api, GRAFT_TRAIN_ID, sizeof *train);
    const graft_model_api *models = graft_interface(api, GRAFT_MODEL_ID, sizeof *models);
    graft_epoch            epoch = output_epoch();
    graft_trainer         *trainer = NULL;
    graft_model           *model = NULL, *again = NULL;
    int32_t                rc = train->create(api->context, &set.dataset, &trainer, error);

    for (int i = 0; i < 2 && rc == GRAFT_OK; i++) rc = train->epoch(trainer, &epoch, error);
    if (rc == GRAFT_OK) rc = models->create(trainer, GRAFT_MODEL_STATE, &model, error);
    if (rc == GRAFT_OK) rc = models->save(model, path, error);
    if (rc == GRAFT_OK) rc = models->load(api->context, NULL, path, &again, error);
    models->destroy(again);
    models->destroy(model);
    train->destroy(trainer);
    return rc;
}

static void *run(void *unused)
{
    const graft_api *api = NULL;
    graft_error      error = GRAFT_INIT(graft_error);
    int32_t          rc = graft_load(getenv("GRAFT_LIBRARY"), NULL, &api, &error);

    (void)unused;
    for (char **setting = arguments + 3; rc == GRAFT_OK && *setting != NULL; setting++) host_set(api, *setting);
    if (rc == GRAFT_OK) rc = use_library(api, arguments[1], &error);
    if (api != NULL) api->close(api->context);
    if (rc < 0) printf("status %d: %s\n", rc, error.message);
    return NULL;
}

int main(int argc, char **argv)
{
    struct sample  sample = { 3 };
    pthread_attr_t attributes;
    pthread_t      thread;
    int            stack;

    if (argc < 3) return 2;
    stack = atoi(argv[2]);
    arguments = argv;
    sample_dataset_init(&set, &sample, VERTICES, FEATURES, CLASSES, 0, 0);
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, (size_t)stack << 10);
    if (stack == 0) run(NULL);
    else if (pthread_create(&thread, &attributes, run, NULL) == 0) pthread_join(thread, NULL);
    sample_dataset_fini(&set);
    printf("alive\n");
    return 0;
}
