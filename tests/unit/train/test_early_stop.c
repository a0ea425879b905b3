/* Checks option patience. An epoch must report when training should stop, according to its validation. All ranks must
 * stop in the same epoch. Another trainer with the same state must continue to count the epochs without improvement,
 * and with other data it must begin to count at 0.
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness/hosts.h"
#include "harness/outputs.h"
#include "harness/tap.h"
#include "oracle/sample.h"

#include "graft_load.h"
#include "graft_model.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

enum { EPOCHS = 40 };

struct job {
    const struct sample_dataset *set;
    const char                  *settings;
    int                          serial, patience;
    int64_t                      stopped[HOSTS_MOST]; /* first epoch of each rank that says to stop; 0 for none */
};

/* The best evaluation so far by the contract: the higher accuracy, or, if equal and for float targets, the lower
 * loss. */
struct best {
    int64_t epoch;
    double  accuracy, loss;
};

static int32_t stop_blame(struct host *host, const char *words)
{
    snprintf(host->error.message, sizeof host->error.message, "%s", words);
    return GRAFT_STATUS_END;
}

static int32_t stop_open(struct host *host, struct host_trainer *t)
{
    const struct job *job = host->all->arg;

    memset(t, 0, sizeof *t);
    host_set_all(host->api, job->settings);
    if (!job->serial) return host_trainer_create(host, &job->set->dataset, SLICES_EVEN, t);
    return host->train->create(host->api->context, &job->set->dataset, &t->trainer, &host->error);
}

static void stop_close(struct host *host, struct host_trainer *t)
{
    const struct job *job = host->all->arg;

    if (job->serial) host->train->destroy(t->trainer);
    else host_trainer_destroy(host, t);
}

static int is_higher(const struct best *best, const graft_epoch *epoch)
{
    if (best->epoch == 0) return 1;
    if (!isnan(epoch->validation_accuracy) && epoch->validation_accuracy != best->accuracy)
        return epoch->validation_accuracy > best->accuracy;
    return epoch->validation_loss < best->loss;
}

/* What an epoch must say, computed from its metrics and those before. */
static int must_stop(struct best *best, const graft_epoch *epoch, int patience)
{
    if (!epoch->evaluated) return 0;
    if (is_higher(best, epoch))
        *best = (struct best){ epoch->epoch, epoch->validation_accuracy, epoch->validation_loss };
    return patience > 0 && epoch->epoch - best->epoch >= patience;
}

/* Run all epochs, also those after the first one that says to stop. */
static int32_t follow_patience(struct host *host)
{
    struct job         *job = host->all->arg;
    struct best         best = { 0 };
    struct host_trainer t;
    int32_t             rc = stop_open(host, &t);

    job->stopped[host->rank] = 0;
    for (int i = 0; i < EPOCHS && rc == GRAFT_OK; i++) {
        graft_epoch epoch = output_epoch();

        epoch.should_stop = -1;
        rc = host->train->epoch(t.trainer, &epoch, &host->error);
        if (rc == GRAFT_OK && epoch.should_stop != must_stop(&best, &epoch, job->patience))
            rc = stop_blame(host, "an epoch says the wrong thing");
        if (rc == GRAFT_OK && epoch.should_stop && job->stopped[host->rank] == 0)
            job->stopped[host->rank] = epoch.epoch;
    }
    stop_close(host, &t);
    return rc;
}

static int32_t train_until_stop(struct host *host, graft_trainer *trainer, graft_epoch *epoch)
{
    int32_t rc = GRAFT_OK;

    for (epoch->should_stop = 0; rc == GRAFT_OK && !epoch->should_stop;)
        rc = host->train->epoch(trainer, epoch, &host->error);
    return rc;
}

/* Run half of the epochs up to the stop in one trainer, and the rest in another one that takes over its state. */
static int32_t resume_patience(struct host *host)
{
    const graft_model_api *models = graft_interface(host->api, GRAFT_MODEL_ID, sizeof *models);
    graft_epoch            whole = output_epoch(), part = output_epoch();
    struct host_trainer    alone, first, second;
    graft_model           *state = NULL;
    int32_t                rc = stop_open(host, &alone);

    if (rc == GRAFT_OK) rc = train_until_stop(host, alone.trainer, &whole);
    stop_close(host, &alone);
    if (rc == GRAFT_OK) rc = stop_open(host, &first);
    for (int64_t i = 0; i + 1 < whole.epoch && rc == GRAFT_OK; i++)
        rc = host->train->epoch(first.trainer, &part, &host->error);
    if (rc == GRAFT_OK) rc = models->create(first.trainer, GRAFT_MODEL_STATE, &state, &host->error);
    stop_close(host, &first);
    if (rc == GRAFT_OK) rc = stop_open(host, &second);
    if (rc == GRAFT_OK) rc = models->apply(state, second.trainer, &host->error);
    if (rc == GRAFT_OK) rc = host->train->epoch(second.trainer, &part, &host->error);
    if (rc == GRAFT_OK && (part.epoch != whole.epoch || !part.should_stop))
        rc = stop_blame(host, "the count does not go on in the second trainer");
    stop_close(host, &second);
    models->destroy(state);
    return rc;
}

/* With new data the next evaluation must be the best one. */
static int32_t renew_patience(struct host *host)
{
    const struct job   *job = host->all->arg;
    graft_epoch         epoch = output_epoch();
    struct host_trainer t;
    int32_t             rc = stop_open(host, &t);

    if (rc == GRAFT_OK) rc = train_until_stop(host, t.trainer, &epoch);
    if (rc == GRAFT_OK)
        rc = host->train->update(t.trainer, GRAFT_UPDATE_FEATURES, job->serial ? &job->set->dataset : &t.slice.dataset,
                                 &host->error);
    for (int i = 0; i < job->patience && rc == GRAFT_OK; i++) {
        rc = host->train->epoch(t.trainer, &epoch, &host->error);
        if (rc == GRAFT_OK && epoch.should_stop) rc = stop_blame(host, "the count did not begin anew");
    }
    stop_close(host, &t);
    return rc;
}

static void stop_run(int32_t n_ranks, int32_t (*body)(struct host *host), struct job job, const char *what)
{
    static const char *const common[] = { "layers=2", "hidden=8", "epochs=40", "threads=1", "norm=none", NULL };
    static struct hosts      hosts;
    const char              *fault;

    job.serial = n_ranks == 0;
    hosts_run(&hosts, job.serial ? 1 : n_ranks, common, body, &job);
    fault = hosts_fault(&hosts);
    for (int32_t i = 1; i < n_ranks && fault == NULL; i++)
        if (job.stopped[i] != job.stopped[0]) fault = "ranks stop at different epochs";
    if (fault == NULL && body == follow_patience && (job.stopped[0] > 0) != (job.patience > 0))
        fault = job.patience > 0 ? "no epoch says to stop" : "an epoch says to stop";
    ok_or(fault == NULL, fault, "%d ranks, %s: %s", n_ranks, what, job.settings);
}

int main(void)
{
    static const struct {
        const char *settings;
        int         patience;
    } cases[] = {
        { "patience=3 lr=0.2", 3 },
        { "patience=5 eval_every=3 lr=0.2", 5 },
        { "patience=2 eval_every=4 lr=0.2", 2 },
        { "patience=0 lr=0.2", 0 },
    };
    struct sample         sample = { 4 };
    struct sample_dataset classes, floats;

    alarm(100);
    sample_dataset_init(&classes, &sample, 60, 5, 3, 0, 0);
    sample_dataset_init(&floats, &sample, 60, 5, 3, 0, 0);
    sample_dataset_regress(&floats, &sample);
    for (int32_t ranks = 0; ranks < 4; ranks += 3) {
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            struct job job = { .set = &classes, .settings = cases[i].settings, .patience = cases[i].patience };

            stop_run(ranks, follow_patience, job, "classes");
            job.set = &floats;
            stop_run(ranks, follow_patience, job, "float targets");
            if (job.patience == 0) continue;
            stop_run(ranks, resume_patience, job, "resumed");
            stop_run(ranks, renew_patience, job, "with other data");
        }
    }
    sample_dataset_fini(&classes);
    sample_dataset_fini(&floats);
    return done();
}
