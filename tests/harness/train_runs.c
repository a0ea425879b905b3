/* Runs trainers one after the other over the same graph, see harness/train_runs.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness/train_runs.h"
#include "harness/outputs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char CACHES[] = "caches.";

int same_state(const struct kept_state *a, const struct kept_state *b)
{
    return same_kept_state(a, b, CACHES) && a->n > 4;
}

int same_caches(const struct kept_state *a, const struct kept_state *b)
{
    int caches = 0;

    for (int32_t i = 0; i < a->n; i++) caches += state_item_begins(&a->item[i], CACHES);
    return same_kept_state(a, b, NULL) && caches > 4;
}

static int32_t look_around(struct host *host, graft_trainer *trainer)
{
    static _Thread_local int32_t labels[N];
    graft_metrics                metrics = output_metrics();
    int32_t                      rc = host->train->evaluate(trainer, GRAFT_WEIGHTS_LAST, &metrics, &host->error);

    return rc < 0 ? rc : host->train->predict(trainer, GRAFT_WEIGHTS_BEST, labels, NULL, &host->error);
}

static int32_t train_one(struct host *host, struct job *job, int number, graft_trainer *trainer)
{
    const struct run *run = &job->run[number];
    struct outcome   *o = &job->at[number][host->rank];
    int32_t           rc = GRAFT_OK;

    kept_state_take(&o->first, host->train, trainer);
    for (int e = 0; e < (run->gives_up > 0 ? run->gives_up : EPOCHS) && rc == GRAFT_OK; e++) {
        graft_epoch epoch = output_epoch();

        if (e == HALF) kept_state_take(&o->half, host->train, trainer);
        if (e == HALF && run->sets_state) rc = kept_state_set(&o->half, NULL, host->train, trainer, &host->error);
        if (e == 0 && run->from > 0) {
            rc = kept_state_set(&job->at[run->from][host->rank].half, run->forgets == 1 + host->rank ? CACHES : NULL,
                                host->train, trainer, &host->error);
            e = HALF;
        }
        if (rc == GRAFT_OK) rc = host->train->epoch(trainer, &epoch, &host->error);
        o->loss[e] = epoch.loss;
        o->drift[e] = epoch.drift;
        o->waited[e] = epoch.synchronous;
        if (rc == GRAFT_OK && run->evaluates && e % 3 != 1) rc = look_around(host, trainer);
    }
    o->traffic = GRAFT_INIT(graft_traffic);
    if (rc == GRAFT_OK) rc = host->report->traffic(trainer, -1, &o->traffic, &host->error);
    kept_state_take(&o->last, host->train, trainer);
    return rc;
}

/* Options of all runs. With this seed every feature column has an element that is not 0. */
static const char *const usual =
    "layers=3 hidden=3,6 heads=1 epochs=8 dropout=0 input_dropout=0 norm=none "
    "seed=5 optimizer=sgd lr=0.2 eval_every=0 reuse_input=yes row_masks=yes "
    "recompute=no label_rate=0 sparse_input=auto halo.codec=f32 halo.staleness=0 threads=1 "
    "log.level=error batch_size=0";

static int32_t train_all_runs(struct host *host)
{
    struct job       *job = host->all->arg;
    graft_graph      *graph = NULL;
    struct host_slice s;
    int32_t           rc;

    host_slice_init(&s, &job->set.dataset, job->way, host->rank, host->n_ranks);
    rc = host->graphs->create(host->api->context, &host->transport, &s.slice, &graph, &host->error);
    s.dataset.over = graph;
    if (rc == GRAFT_OK) {
        graft_graph_info info = GRAFT_INIT(graft_graph_info);

        rc = host->graphs->info(graph, host->rank, &info, &host->error);
        for (int64_t i = 0; i < info.n_owned; i++) job->owner[host->graphs->owned(graph)[i]] = host->rank;
    }
    for (int i = 0; i < job->n_runs && rc == GRAFT_OK; i++) {
        graft_trainer *trainer = NULL;

        host_set_all(host->api, usual);
        host_set_all(host->api, job->run[i].settings);
        rc = host->train->create(host->api->context, &s.dataset, &trainer, &host->error);
        if (rc == GRAFT_OK) rc = train_one(host, job, i, trainer);
        host->train->destroy(trainer);
    }
    host->graphs->destroy(graph);
    host_slice_fini(&s);
    return rc;
}

void train_runs_add(struct job *job, struct run run)
{
    job->run[job->n_runs++] = run;
}

const char *train_runs_shared = "parallel=partition", *train_runs_columns = "feature.graph=auto";

const char *train_runs_play(struct job *job, int32_t n_ranks, const char *partition, const char *cover)
{
    static struct hosts hosts;
    char                by[64], with[64];
    const char *const   settings[] = { by, with, "halo.timeout=60", train_runs_shared, train_runs_columns, NULL };

    snprintf(by, sizeof by, "partition=%s", partition);
    snprintf(with, sizeof with, "halo.cover=%s", cover);
    hosts_run(&hosts, n_ranks, settings, train_all_runs, job);
    if (hosts_fault(&hosts) != NULL) return hosts_fault(&hosts);
    for (int i = 0; i < job->n_runs; i++)
        for (int32_t r = 1; r < n_ranks; r++)
            if (!same_state(&job->at[i][r].last, &job->at[i][0].last)) return "ranks have other weights";
    return NULL;
}

void train_runs_free(struct job *job)
{
    for (int i = 0; i < job->n_runs; i++) {
        for (int r = 0; r < HOSTS_MOST; r++) {
            kept_state_free(&job->at[i][r].first);
            kept_state_free(&job->at[i][r].half);
            kept_state_free(&job->at[i][r].last);
        }
    }
    sample_dataset_fini(&job->set);
    free(job);
}
