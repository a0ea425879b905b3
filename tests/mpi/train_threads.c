/* Trains on a data set of files over ranks that are threads of this process: train_threads DATASET N KEY=VALUE... It
 * prints one JSON object with losses by epoch and weights by name. test_agree.py compares them with the results of
 * other transports.
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness/hosts.h"
#include "harness/outputs.h"

#include "graft_data.h"
#include "graft_load.h"

#include <stdio.h>
#include <stdlib.h>

/* All ranks have the same weights, so one rank prints them. */
static void print_weights(const graft_train_api *train, graft_trainer *trainer)
{
    graft_state_item item = GRAFT_INIT(graft_state_item);
    const char      *between = "";

    for (int32_t i = 0; train->state_item(trainer, i, &item, NULL) == GRAFT_OK; i++) {
        const int64_t count = item.shape[0] * (item.n_dims == 2 ? item.shape[1] : 1);

        if (item.dtype != GRAFT_F32) continue;
        printf("%s\n\"%s\": [", between, item.name);
        for (int64_t k = 0; k < count; k++) printf("%s%.9g", k > 0 ? "," : "", (double)((const float *)item.data)[k]);
        printf("]");
        between = ",";
    }
}

static int32_t train_and_print(struct host *host, const graft_dataset *dataset)
{
    graft_trainer *trainer = NULL;
    graft_epoch    epoch = output_epoch();
    int32_t        rc = host->train->create(host->api->context, dataset, &trainer, &host->error);

    if (host->rank == 0) printf("{\"loss\": [");
    for (int i = 0; rc == GRAFT_OK && !epoch.done; i++) {
        rc = host->train->epoch(trainer, &epoch, &host->error);
        if (host->rank == 0) printf("%s%.17g", i > 0 ? ", " : "", epoch.loss);
    }
    if (host->rank == 0) {
        printf("],\n\"weights\": {");
        if (rc == GRAFT_OK) print_weights(host->train, trainer);
        printf("}}\n");
    }
    host->train->destroy(trainer);
    return rc;
}

static int32_t open_and_train(struct host *host)
{
    const graft_data_api *files = graft_interface(host->api, GRAFT_DATA_ID, sizeof *files);
    graft_slice           slice = GRAFT_INIT(graft_slice);
    graft_data           *data = NULL;
    graft_graph          *graph = NULL;
    graft_dataset         dataset;
    int32_t               rc;

    rc = files->open_slice(host->api->context, &host->transport, host->all->arg, &data, &host->error);
    if (rc == GRAFT_OK) {
        dataset = *files->view(data);
        slice.n_vertices = dataset.n_vertices;
        slice.first_row = dataset.first_vertex;
        slice.rows = dataset.graph;
        rc = host->graphs->create(host->api->context, &host->transport, &slice, &graph, &host->error);
    }
    if (rc == GRAFT_OK) {
        dataset.over = graph;
        rc = train_and_print(host, &dataset);
    }
    host->graphs->destroy(graph);
    files->close(data);
    return rc;
}

int main(int argc, char **argv)
{
    static struct hosts hosts;
    const int32_t       n_ranks = argc > 2 ? atoi(argv[2]) : 0;
    const char         *words = NULL;

    if (n_ranks < 1 || n_ranks > HOSTS_MOST) {
        fprintf(stderr, "usage: train_threads DATASET N KEY=VALUE..., N from 1 to %d\n", HOSTS_MOST);
        return 2;
    }
    hosts_run(&hosts, n_ranks, (const char *const *)argv + 3, open_and_train, argv[1]);
    words = hosts_fault(&hosts);
    if (words != NULL) fprintf(stderr, "train_threads: %s\n", words);
    return words != NULL;
}
