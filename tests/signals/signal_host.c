/* A host whose results are reduced to one number: signal_host WORK KEY=VALUE... prints a hash of all results. WORK is
 * `train` (options select the kind of training), `cancel` (the same training, which a signal handler cancels many
 * times) or `mgn`.
 * SPDX-License-Identifier: Apache-2.0 */
#include "graft_load.h"
#include "harness/networks.h"
#include "harness/state_items.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { VERTICES = 3000, FEATURES = 48, CLASSES = 5, EPOCHS = 3, STEPS = 3, SIDE = 12, CANCELS = 12 };

static const graft_api *cancels; /* the interface by which a signal cancels the calls of a context */
static int              n_cancelled;

static uint64_t add_bits(uint64_t sum, const void *data, uint64_t bytes)
{
    for (uint64_t i = 0; i < bytes; i++) sum = (sum ^ ((const unsigned char *)data)[i]) * 1099511628211u;
    return sum;
}

static void handle_cancel(int number)
{
    (void)number;
    cancels->cancel(cancels->context);
}

/* Start a timer for signals after 1, 2, 3, ... milliseconds, until there were enough. */
static void signal_later(timer_t timer)
{
    const struct itimerspec times = { .it_value = { 0, 1000000L * (n_cancelled + 1) } };

    if (n_cancelled < CANCELS) timer_settime(timer, 0, &times, NULL);
}

static int32_t train_epochs(const graft_api *api, graft_trainer *trainer, int is_cancelled, graft_error *error)
{
    const graft_train_api *train = graft_interface(api, GRAFT_TRAIN_ID, sizeof *train);
    struct sigevent        event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1 };
    graft_epoch            epoch = GRAFT_INIT(graft_epoch);
    int32_t                rc = GRAFT_OK;
    timer_t                timer;

    cancels = api;
    if (signal(SIGUSR1, handle_cancel) == SIG_ERR || timer_create(CLOCK_MONOTONIC, &event, &timer) != 0) abort();
    while (rc == GRAFT_OK && epoch.epoch < EPOCHS) {
        if (is_cancelled) signal_later(timer);
        rc = train->epoch(trainer, &epoch, error);
        if (rc != GRAFT_ERR_CANCELLED) continue;
        n_cancelled++;
        rc = GRAFT_OK;
    }
    timer_delete(timer);
    return rc;
}

static int32_t sum_of_training(const graft_api *api, int is_cancelled, uint64_t *sum, graft_error *error)
{
    const graft_train_api *train = graft_interface(api, GRAFT_TRAIN_ID, sizeof *train);
    graft_state_item       item = GRAFT_INIT(graft_state_item);
    struct sample          sample = { 3 };
    struct sample_dataset  set;
    graft_trainer         *trainer = NULL;
    int32_t                rc;

    sample_dataset_init(&set, &sample, VERTICES, FEATURES, CLASSES, 0, 0);
    rc = train->create(api->context, &set.dataset, &trainer, error);
    if (rc == GRAFT_OK) rc = train_epochs(api, trainer, is_cancelled, error);
    for (int32_t i = 0; rc == GRAFT_OK && train->state_item(trainer, i, &item, NULL) == GRAFT_OK; i++)
        *sum = add_bits(*sum, item.data, state_item_bytes(&item));
    train->destroy(trainer);
    sample_dataset_fini(&set);
    return rc;
}

static int32_t infer(struct host *host, struct network_rank *n)
{
    uint64_t *sum = n->what->arg;

    for (int step = 0; step < STEPS; step++) {
        const graft_field input = network_state(n, NETWORK_IN, 0.1 * step), output = network_field(n, NETWORK_OUT);
        int32_t           rc = n->networks->begin(n->network, &input, &host->error);

        if (rc == GRAFT_OK) rc = n->networks->end(n->network, &output, &host->error);
        if (rc < 0) return rc;
        for (int64_t row = 0; row < output.n_rows; row++)
            for (int64_t j = 0; j < NETWORK_OUT; j++) {
                const double value = network_field_at(&output, row, j);

                *sum = add_bits(*sum, &value, sizeof value);
            }
        free(input.data);
        free(output.data);
    }
    return GRAFT_OK;
}

static int32_t infer_body(struct host *host)
{
    struct network_rank n;
    int32_t             rc = network_rank_init(host, host->all->arg, &n);

    if (rc == GRAFT_OK) rc = infer(host, &n);
    network_rank_fini(&n);
    return rc;
}

static const char *sum_of_mgn(const char *settings, uint64_t *sum)
{
    struct network_case what = { .predicts = GRAFT_PREDICTS_VALUE, .dtype = GRAFT_F32, .arg = sum };
    struct sample       sample = { 3 };
    struct test_mesh    mesh;
    const char         *fault;

    test_mesh_init(&mesh, &sample, SHAPE_HEXES, SIDE, 0, 1 << 20);
    fault = network_run(&what, &mesh, 1, 0, settings, infer_body);
    test_mesh_fini(&mesh);
    return fault;
}

int main(int argc, char **argv)
{
    const graft_api *api = NULL;
    graft_error      error = GRAFT_INIT(graft_error);
    uint64_t         sum = 1469598103934665603u;
    const char      *fault = NULL;

    if (argc != 3) return 2;
    if (strcmp(argv[1], "mgn") == 0) {
        fault = sum_of_mgn(argv[2], &sum);
    } else {
        if (graft_load(getenv("GRAFT_LIBRARY"), NULL, &api, &error) < 0) return 2;
        host_set_all(api, argv[2]);
        if (sum_of_training(api, strcmp(argv[1], "cancel") == 0, &sum, &error) < 0) fault = error.message;
        api->close(api->context);
    }
    printf("%016" PRIx64 " cancelled %d %s\n", sum, n_cancelled, fault != NULL ? fault : "");
    return fault != NULL;
}
