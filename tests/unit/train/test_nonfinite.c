/* Checks training that diverges. A loss, gradient or weight that is not finite must be an error of its epoch, the same
 * on all ranks. The trainer must keep the last good state, from which training goes on with another learning rate. With
 * on_nonfinite=restore the library does that itself: a request to cancel must then change nothing, and metrics and best
 * weights must be those of the epochs that the library reports.
 * SPDX-License-Identifier: Apache-2.0 */
#include "graft_load.h"
#include "graft_model.h"
#include "harness/hosts.h"
#include "harness/outputs.h"
#include "harness/tap.h"
#include "oracle/sample.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { EPOCHS = 12 };

struct job {
    const struct sample_dataset *set;
    const char                  *settings; /* options that make training diverge */
    const char                  *sentence; /* part of the error in cases that start well */
    int                          serial;
    char                         said[HOSTS_MOST][448];
};

static int32_t nonfinite_blame(struct host *host, const char *words)
{
    snprintf(host->error.message, sizeof host->error.message, "rank %d: %.400s", host->rank, words);
    return GRAFT_STATUS_END;
}

static int32_t open_diverging(struct host *host, struct host_trainer *t)
{
    const struct job *job = host->all->arg;

    memset(t, 0, sizeof *t);
    if (!job->serial) return host_trainer_create(host, &job->set->dataset, SLICES_EVEN, t);
    return host->train->create(host->api->context, &job->set->dataset, &t->trainer, &host->error);
}

static void close_diverging(struct host *host, struct host_trainer *t)
{
    const struct job *job = host->all->arg;

    if (job->serial) host->train->destroy(t->trainer);
    else host_trainer_destroy(host, t);
}

static int64_t completed_epochs(struct host *host, graft_trainer *trainer)
{
    graft_state_item item = GRAFT_INIT(graft_state_item);

    for (int32_t i = 0; host->train->state_item(trainer, i, &item, NULL) == GRAFT_OK; i++)
        if (strcmp(item.name, "progress.epoch") == 0) return *(const int64_t *)item.data;
    return -1;
}

static const char *state_fault(struct host *host, graft_trainer *trainer)
{
    graft_state_item item = GRAFT_INIT(graft_state_item);

    for (int32_t i = 0; host->train->state_item(trainer, i, &item, NULL) == GRAFT_OK; i++) {
        int64_t count = 1;

        for (int32_t d = 0; d < item.n_dims; d++) count *= item.shape[d];
        for (int64_t k = 0; k < count && item.dtype != GRAFT_I64; k++)
            if (!isfinite(sample_at(item.data, item.dtype, k))) return item.name;
    }
    return NULL;
}

/* Run epochs until one fails, which must happen before all are done. */
static int32_t train_until_error(struct host *host, graft_trainer *trainer, graft_error *error)
{
    graft_epoch epoch = output_epoch();
    int32_t     rc = GRAFT_OK;

    while (rc == GRAFT_OK && !epoch.done) {
        rc = host->train->epoch(trainer, &epoch, error);
        if (rc == GRAFT_OK && !isfinite(epoch.loss))
            return nonfinite_blame(host, "the loss of a good epoch is not finite");
    }
    if (rc == GRAFT_ERR_NONFINITE) return GRAFT_OK;
    return nonfinite_blame(host, rc < 0 ? error->message : "nothing is wrong with any epoch");
}

/* The trainer must have what `epochs` epochs give, and its file must work in a new trainer. */
static int32_t check_good_state(struct host *host, graft_trainer *trainer, struct host_trainer *other)
{
    const graft_model_api *models = graft_interface(host->api, GRAFT_MODEL_ID, sizeof *models);
    const int64_t          epochs = completed_epochs(host, trainer);
    const char            *fault = state_fault(host, trainer);
    graft_epoch            epoch = output_epoch();
    graft_model           *state = NULL;
    int32_t                rc = GRAFT_OK;

    if (fault != NULL) return nonfinite_blame(host, fault);
    for (int64_t i = 0; i < epochs && rc == GRAFT_OK; i++)
        rc = host->train->epoch(other->trainer, &epoch, &host->error);
    if (rc == GRAFT_OK && !host_same_state(host->train, trainer, other->trainer))
        rc = nonfinite_blame(host, "the state is not that of the last good epoch");
    if (rc == GRAFT_OK) rc = models->create(trainer, GRAFT_MODEL_STATE, &state, &host->error);
    if (rc == GRAFT_OK) rc = models->apply(state, other->trainer, &host->error);
    models->destroy(state);
    return rc;
}

/* Train until the error of the job. The state must be that of the last good epoch, to which `other` is trained too. */
static int32_t diverge_once(struct host *host, struct host_trainer *t, struct host_trainer *other)
{
    struct job *job = host->all->arg;
    graft_error error = GRAFT_INIT(graft_error);
    int32_t     rc;

    memset(other, 0, sizeof *other);
    host_set_all(host->api, job->settings);
    rc = open_diverging(host, t);
    if (rc == GRAFT_OK) rc = open_diverging(host, other);
    if (rc == GRAFT_OK) rc = train_until_error(host, t->trainer, &error);
    if (rc == GRAFT_OK && strstr(error.message, job->sentence) == NULL) rc = nonfinite_blame(host, error.message);
    if (rc == GRAFT_OK) rc = check_good_state(host, t->trainer, other);
    snprintf(job->said[host->rank], sizeof job->said[0], "%s", error.message);
    return rc;
}

/* The error must recur with the same learning rate. With a smaller one all epochs must be completed. */
static int32_t stop_epochs(struct host *host)
{
    graft_error         again = GRAFT_INIT(graft_error);
    graft_epoch         epoch = output_epoch();
    struct host_trainer t, other;
    int32_t             rc = diverge_once(host, &t, &other);

    if (rc == GRAFT_OK) rc = train_until_error(host, t.trainer, &again);
    if (rc == GRAFT_OK) rc = check_good_state(host, t.trainer, &other);
    host_set(host->api, "lr=0.01");
    while (rc == GRAFT_OK && !epoch.done) rc = host->train->epoch(t.trainer, &epoch, &host->error);
    if (rc == GRAFT_OK && (epoch.epoch != EPOCHS || !isfinite(epoch.loss)))
        rc = nonfinite_blame(host, "it cannot go on");
    close_diverging(host, &other);
    close_diverging(host, &t);
    return rc;
}

/* All epochs must be completed with a rate that is halved, and a warning of rank 0. A resumed run must be bitwise
 * identical. */
static int32_t restore_epochs(struct host *host)
{
    struct job            *job = host->all->arg;
    const graft_model_api *models = graft_interface(host->api, GRAFT_MODEL_ID, sizeof *models);
    graft_epoch            epoch = output_epoch(), resumed = output_epoch();
    graft_model           *state = NULL;
    struct host_trainer    t, other;
    int32_t                rc;

    host_set_all(host->api, job->settings);
    host_set(host->api, "on_nonfinite=restore");
    rc = open_diverging(host, &t);
    if (rc == GRAFT_OK) rc = open_diverging(host, &other);
    for (int64_t i = 1; i <= EPOCHS && rc == GRAFT_OK; i++) {
        if (i == EPOCHS) rc = models->create(t.trainer, GRAFT_MODEL_STATE, &state, &host->error);
        if (rc == GRAFT_OK) rc = host->train->epoch(t.trainer, &epoch, &host->error);
        if (rc == GRAFT_OK && (epoch.epoch != i || !isfinite(epoch.loss)))
            rc = nonfinite_blame(host, "an epoch is wrong");
    }
    if (rc == GRAFT_OK && (state_fault(host, t.trainer) != NULL || !epoch.done))
        rc = nonfinite_blame(host, "the state is bad");
    if (rc == GRAFT_OK && !(epoch.learning_rate > 0 && epoch.learning_rate < 1e25))
        rc = nonfinite_blame(host, "the rate");
    if (rc == GRAFT_OK && (strstr(host->warnings, "the learning rate was halved") != NULL) != (host->rank == 0))
        rc = nonfinite_blame(host, "the warning");
    if (rc == GRAFT_OK) rc = models->apply(state, other.trainer, &host->error);
    if (rc == GRAFT_OK) rc = host->train->epoch(other.trainer, &resumed, &host->error);
    /* A resumed epoch is synchronous. */
    if (rc == GRAFT_OK && strstr(job->settings, "staleness") == NULL &&
        !host_same_state(host->train, t.trainer, other.trainer))
        rc = nonfinite_blame(host, "it is not resumed bitwise identically");
    snprintf(job->said[host->rank], sizeof job->said[0], "%.17g", epoch.learning_rate);
    models->destroy(state);
    close_diverging(host, &other);
    close_diverging(host, &t);
    return rc;
}

/* The data are too large: the first epoch fails and the initial weights stay, also with on_nonfinite=restore. */
static int32_t hopeless(struct host *host)
{
    struct job         *job = host->all->arg;
    struct host_trainer t, other;
    int32_t             rc = diverge_once(host, &t, &other);

    if (rc == GRAFT_OK && strstr(job->said[host->rank], "epoch 1: ") == NULL)
        rc = nonfinite_blame(host, job->said[host->rank]);
    close_diverging(host, &other);
    close_diverging(host, &t);
    return rc;
}

/* Weights are restored until no learning rate helps, in fewer than 128 tries; or until all epochs are completed, where
 * the rounding of the processor allows it and no `sentence` is expected. The state must be finite. */
static int32_t no_rate_helps(struct host *host)
{
    struct job         *job = host->all->arg;
    graft_epoch         epoch = output_epoch();
    graft_error         error = GRAFT_INIT(graft_error);
    struct host_trainer t;
    int32_t             rc;

    host_set_all(host->api, job->settings);
    rc = open_diverging(host, &t);
    while (rc == GRAFT_OK && !epoch.done) rc = host->train->epoch(t.trainer, &epoch, &error);
    snprintf(job->said[host->rank], sizeof job->said[0], "%s", error.message);
    if (rc == GRAFT_ERR_NONFINITE && strstr(error.message, "also with any learning rate smaller than") != NULL)
        rc = completed_epochs(host, t.trainer) <= epoch.epoch ? GRAFT_OK : nonfinite_blame(host, "nothing is restored");
    else if (rc < 0) rc = nonfinite_blame(host, error.message);
    if (rc == GRAFT_OK && strstr(error.message, job->sentence) == NULL) rc = nonfinite_blame(host, error.message);
    if (rc == GRAFT_OK && state_fault(host, t.trainer) != NULL) rc = nonfinite_blame(host, "the state is not finite");
    close_diverging(host, &t);
    return rc;
}

/* -- a request to cancel while epochs are repeated -- */

enum { GOOD_CALLS = 2, CALLS = 5, MOMENTS = 5, MOMENTS_SERIAL = 32 };

/* A request is made with a message of this rank, which is a thread, or in one process after some time. */
static _Thread_local struct {
    const graft_api *api;
    int32_t (*send)(void *self, int32_t to, int32_t tag, const void *data, uint64_t bytes, graft_request **request,
                    graft_error *error);
    int64_t sends; /* messages left until the request; negative for none */
    int64_t counted;
} canceller;

static int32_t send_and_cancel(void *self, int32_t to, int32_t tag, const void *data, uint64_t bytes,
                               graft_request **request, graft_error *error)
{
    canceller.counted++;
    if (canceller.sends-- == 0) canceller.api->cancel(canceller.api->context);
    return canceller.send(self, to, tag, data, bytes, request, error);
}

struct cancel_timer {
    const graft_api *api;
    double           seconds;
};

static void *cancel_in_time(void *arg)
{
    const struct cancel_timer *timer = arg;
    const struct timespec      rest = { (time_t)timer->seconds, (long)(1e9 * fmod(timer->seconds, 1)) };

    nanosleep(&rest, NULL);
    timer->api->cancel(timer->api->context);
    return NULL;
}

static int32_t call_epochs(struct host *host, graft_trainer *trainer, int64_t first, int64_t end)
{
    graft_epoch epoch = output_epoch();
    int32_t     rc = GRAFT_OK;

    for (int64_t i = first; i < end && rc == GRAFT_OK; i++) {
        host_set(host->api, i < GOOD_CALLS ? "lr=0.01" : "lr=1e20");
        rc = host->train->epoch(trainer, &epoch, &host->error);
        if (rc == GRAFT_OK && epoch.epoch != i + 1) rc = nonfinite_blame(host, "a call has not made one epoch");
    }
    return rc;
}

/* Copy the state of one trainer to the other. */
static int32_t give_state(struct host *host, graft_trainer *from, graft_trainer *to)
{
    const graft_model_api *models = graft_interface(host->api, GRAFT_MODEL_ID, sizeof *models);
    graft_model           *state = NULL;
    int32_t                rc = models->create(from, GRAFT_MODEL_STATE, &state, &host->error);

    if (rc == GRAFT_OK) rc = models->apply(state, to, &host->error);
    models->destroy(state);
    return rc;
}

/* Run an epoch with a request after this share of the messages of the last rank, or in one process of the time. */
static int32_t epoch_with_request(struct host *host, graft_trainer *trainer, double share, int64_t sends,
                                  double seconds)
{
    struct cancel_timer timer = { host->api, share * seconds };
    const int           is_asked = host->rank == host->n_ranks - 1;
    graft_epoch         epoch = output_epoch();
    pthread_t           thread;
    int32_t             rc;

    if (host->n_ranks == 1 && pthread_create(&thread, NULL, cancel_in_time, &timer) != 0) abort();
    canceller.sends = is_asked ? (int64_t)(share * (double)sends) : -1;
    rc = host->train->epoch(trainer, &epoch, &host->error);
    if (host->n_ranks == 1) pthread_join(thread, NULL);
    return rc;
}

/* The call is cancelled and must have changed nothing, or it completes its epoch, and then the next one is
 * cancelled. */
static int32_t request_once(struct host *host, graft_trainer *trainer, graft_trainer *copy, double share, int64_t sends,
                            double seconds)
{
    struct job *job = host->all->arg;
    graft_epoch epoch = output_epoch();
    int32_t     rc = give_state(host, trainer, copy);

    if (rc == GRAFT_OK) rc = epoch_with_request(host, trainer, share, sends, seconds);
    if (rc == GRAFT_ERR_CANCELLED && share > 0.5 && host->n_ranks > 1)
        return nonfinite_blame(host, "repeated epochs have heard the request");
    if (rc != GRAFT_ERR_CANCELLED) {
        if (rc == GRAFT_OK && share == 0 && host->n_ranks > 1)
            return nonfinite_blame(host, "no layer has heard the request");
        if (rc == GRAFT_OK) rc = give_state(host, trainer, copy);
        if (rc == GRAFT_OK) rc = host->train->epoch(trainer, &epoch, &host->error);
    }
    if (rc != GRAFT_ERR_CANCELLED) return nonfinite_blame(host, rc < 0 ? host->error.message : "the request is lost");
    snprintf(job->said[host->rank], sizeof job->said[0], "%s", host->error.message);
    if (!host_same_state(host->train, trainer, copy))
        return nonfinite_blame(host, "a cancelled epoch changed the state");
    return GRAFT_OK;
}

/* Train with a request in call number `bad`, whose epochs are repeated. The result must be bitwise identical to a
 * training without a request. */
static int32_t cancel_at(struct host *host, graft_trainer *reference, int64_t bad, double share, int64_t sends,
                         double seconds)
{
    struct host_trainer t = { .trainer = NULL }, copy = { .trainer = NULL };
    int32_t             rc = open_diverging(host, &t);

    if (rc == GRAFT_OK) rc = open_diverging(host, &copy);
    if (rc == GRAFT_OK) rc = call_epochs(host, t.trainer, 0, bad);
    host_set(host->api, "lr=1e20");
    if (rc == GRAFT_OK) rc = request_once(host, t.trainer, copy.trainer, share, sends, seconds);
    if (rc == GRAFT_OK) rc = call_epochs(host, t.trainer, completed_epochs(host, t.trainer), CALLS);
    if (rc == GRAFT_OK && !host_same_state(host->train, t.trainer, reference))
        rc = nonfinite_blame(host, "a cancelled epoch gave other bits");
    close_diverging(host, &copy);
    close_diverging(host, &t);
    return rc;
}

static double nonfinite_clock(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static int32_t cancel_repeats(struct host *host)
{
    const struct job   *job = host->all->arg;
    const int           moments = job->serial ? MOMENTS_SERIAL : MOMENTS;
    const int64_t       bad = strstr(job->settings, "eval_every=0") != NULL ? GOOD_CALLS + 1 : GOOD_CALLS;
    struct host_trainer reference = { .trainer = NULL };
    double              seconds = 0;
    int64_t             sends = 0;
    int32_t             rc;

    canceller.api = host->api;
    canceller.sends = -1;
    canceller.send = host->transport.send;
    if (!job->serial) host->transport.send = send_and_cancel;
    host_set_all(host->api, job->settings);
    rc = open_diverging(host, &reference);
    if (rc == GRAFT_OK) rc = call_epochs(host, reference.trainer, 0, bad);
    sends = canceller.counted;
    seconds = nonfinite_clock();
    if (rc == GRAFT_OK) rc = call_epochs(host, reference.trainer, bad, bad + 1);
    sends = canceller.counted - sends;
    seconds = nonfinite_clock() - seconds;
    if (rc == GRAFT_OK && host->rank == 0 && strstr(host->warnings, "the learning rate was halved") == NULL)
        rc = nonfinite_blame(host, "nothing was repeated");
    if (rc == GRAFT_OK) rc = call_epochs(host, reference.trainer, bad + 1, CALLS);
    for (int i = 0; i < moments && rc == GRAFT_OK; i++)
        rc = cancel_at(host, reference.trainer, bad, (double)i / moments, sends, seconds);
    close_diverging(host, &reference);
    return rc;
}

/* -- what is reported and kept of epochs that are repeated -- */

/* Epoch 2 is the first that is evaluated, and the best one. After it the gradients are not finite. */
static int32_t make_evaluated(struct host *host, struct host_trainer *t, graft_epoch *epoch)
{
    const struct job *job = host->all->arg;
    int32_t           rc;

    host_set_all(host->api, job->settings);
    host_set(host->api, "lr=0.01");
    rc = open_diverging(host, t);
    if (rc == GRAFT_OK) rc = host->train->epoch(t->trainer, epoch, &host->error);
    host_set(host->api, "lr=1e15");
    if (rc == GRAFT_OK) rc = host->train->epoch(t->trainer, epoch, &host->error);
    if (rc == GRAFT_OK && !(epoch->evaluated && epoch->best && isfinite(epoch->validation_loss)))
        rc = nonfinite_blame(host, "epoch 2 is not the best");
    return rc;
}

/* Epoch 2 is repeated in the third call, which must report epoch 3 alone. */
static int32_t report_last(struct host *host)
{
    graft_epoch         epoch = output_epoch();
    struct host_trainer t;
    int32_t             rc = make_evaluated(host, &t, &epoch);

    if (rc == GRAFT_OK) rc = host->train->epoch(t.trainer, &epoch, &host->error);
    if (rc == GRAFT_OK && (epoch.epoch != 3 || epoch.learning_rate >= 1e15))
        rc = nonfinite_blame(host, "nothing was repeated");
    if (rc == GRAFT_OK && (epoch.evaluated || epoch.best || !isnan(epoch.validation_loss) ||
                           !isnan(epoch.validation_rmse) || !isnan(epoch.train_r2)))
        rc = nonfinite_blame(host, "metrics of another epoch");
    close_diverging(host, &t);
    return rc;
}

/* The best weights must be those of epoch 2, with the validation loss that it had. */
static int32_t check_best(struct host *host, graft_trainer *trainer, double loss)
{
    const graft_model_api *models = graft_interface(host->api, GRAFT_MODEL_ID, sizeof *models);
    graft_metrics          metrics = output_metrics();
    graft_model_info       info = GRAFT_INIT(graft_model_info);
    graft_model           *best = NULL;
    int32_t                rc = host->train->evaluate(trainer, GRAFT_WEIGHTS_BEST, &metrics, &host->error);

    if (completed_epochs(host, trainer) != 1) return nonfinite_blame(host, "the trainer is not back at epoch 1");
    if (rc == GRAFT_OK && (metrics.epoch != 2 || metrics.validation_loss != loss))
        return nonfinite_blame(host, "the best weights are not those of epoch 2");
    if (rc == GRAFT_OK) rc = models->create(trainer, GRAFT_MODEL_BEST, &best, &host->error);
    if (rc == GRAFT_OK) rc = models->info(best, &info, &host->error);
    if (rc == GRAFT_OK && info.epoch != 2) rc = nonfinite_blame(host, "the best model is not that of epoch 2");
    models->destroy(best);
    return rc;
}

/* Save the trainer, and load the file into another one. */
static int32_t save_to_other(struct host *host, graft_trainer *from, graft_trainer *to)
{
    const struct job      *job = host->all->arg;
    const graft_model_api *models = graft_interface(host->api, GRAFT_MODEL_ID, sizeof *models);
    graft_model           *saved = NULL, *loaded = NULL;
    char                   path[64];
    int32_t                rc = models->create(from, GRAFT_MODEL_STATE, &saved, &host->error);

    snprintf(path, sizeof path, "/tmp/graft-nonfinite-%d.safetensors", (int)getpid());
    if (rc == GRAFT_OK && host->rank == 0) rc = models->save(saved, path, &host->error);
    if (rc == GRAFT_OK)
        rc = models->load(host->api->context, job->serial ? NULL : &host->transport, path, &loaded, &host->error);
    if (rc == GRAFT_OK) rc = models->apply(loaded, to, &host->error);
    if (host->rank == 0) unlink(path);
    models->destroy(loaded);
    models->destroy(saved);
    return rc;
}

/* The repeated epochs diverge at any learning rate, because the penalty on the weights overflows. */
static int32_t keep_best_ahead(struct host *host)
{
    graft_epoch         epoch = output_epoch();
    graft_error         error = GRAFT_INIT(graft_error);
    struct host_trainer t, other = { .trainer = NULL };
    int32_t             rc = make_evaluated(host, &t, &epoch);
    const double        loss = epoch.validation_loss;

    host_set(host->api, "weight_decay=3e38");
    if (rc == GRAFT_OK && host->train->epoch(t.trainer, &epoch, &error) != GRAFT_ERR_NONFINITE)
        rc = nonfinite_blame(host, "the third epoch does not diverge");
    if (rc == GRAFT_OK) rc = check_best(host, t.trainer, loss);
    if (rc == GRAFT_OK) rc = open_diverging(host, &other);
    if (rc == GRAFT_OK) rc = save_to_other(host, t.trainer, other.trainer);
    if (rc == GRAFT_OK) rc = check_best(host, other.trainer, loss);
    close_diverging(host, &other);
    close_diverging(host, &t);
    return rc;
}

static void diverge(int32_t n_ranks, int32_t (*body)(struct host *host), const struct sample_dataset *set,
                    const char *settings, const char *sentence, const char *what)
{
    static const char *const common[] = { "layers=2", "hidden=8", "epochs=12", "dropout=0.2", "threads=1", NULL };
    static struct hosts      hosts;
    static struct job        job;
    const char              *fault = NULL;

    job = (struct job){ .set = set, .settings = settings, .sentence = sentence, .serial = n_ranks == 0 };
    hosts_run(&hosts, job.serial ? 1 : n_ranks, common, body, &job);
    fault = hosts_fault(&hosts);
    for (int32_t i = 1; i < n_ranks && fault == NULL; i++)
        if (strcmp(job.said[i], job.said[0]) != 0) fault = "ranks say different things";
    ok_or(fault == NULL, fault, "%d ranks, %s: %s", n_ranks, what, settings);
}

static void scale_features(struct sample_dataset *set, float factor)
{
    float *x = (float *)set->features.data;

    for (int64_t i = 0; i < set->features.n_rows * set->features.stride; i++) x[i] *= factor;
}

int main(void)
{
    static const char *const diverging[][2] = {
        { "lr=1e30 eval_every=0", "the loss is NaN" },
        { "lr=1e30", "the loss of the training or validation vertices is not finite after the step" },
        { "lr=1e25 model=gcn", "Try a smaller lr" },
    };
    /* Halved learning rates may end at finite weights whose gradients are not finite, depending on the rounding of the
     * processor. These cases are therefore only stopped. */
    static const char *const gat = "lr=1e25 model=gat heads=2 norm=none";
    static const char *const gin = "lr=1e38 optimizer=sgd:0.9 model=gin norm=none";
    static const char *const over_ranks[] = { "lr=1e25 halo.codec=q4 norm=none",
                                              "lr=1e25 halo.codec=q4 halo.staleness=1 norm=none" };
    static const char *const adaptive = "lr=1e25 halo.codec=adaptive halo.staleness=1 norm=none eval_every=3";
    static const char *const adaptive_repeated = "norm=none on_nonfinite=restore eval_every=0 halo.codec=adaptive "
                                                 "halo.staleness=1";
    static const char *const repeated = "norm=none on_nonfinite=restore eval_every=0";
    static const char *const sgd_restored = "norm=none on_nonfinite=restore eval_every=2 optimizer=sgd";
    static const char *const lost[] = { "lr=1e25 model=gat heads=2 norm=none on_nonfinite=restore",
                                        "lr=1e25 model=gat heads=2 norm=none on_nonfinite=restore eval_every=3",
                                        "lr=1e35 norm=none on_nonfinite=restore" };
    static const char *const overflows = "lr=1e25 model=gin norm=none on_nonfinite=restore";
    static const char *const restored = "norm=none on_nonfinite=restore eval_every=2";
    struct sample            sample = { 4 };
    struct sample_dataset    set, large, floats, targets;

    alarm(100);
    sample_dataset_init(&set, &sample, 60, 5, 3, 0, 0);
    sample_dataset_init(&large, &sample, 60, 5, 3, 0, 0);
    scale_features(&large, 1e38f);
    sample_dataset_init(&floats, &sample, 60, 5, 3, 0, 0);
    sample_dataset_regress(&floats, &sample);
    scale_features(&floats, 1e25f);
    sample_dataset_init(&targets, &sample, 60, 5, 3, 0, 0);
    sample_dataset_regress(&targets, &sample);
    for (int32_t ranks = 0; ranks < 4; ranks += ranks == 1 ? 2 : 1) {
        for (size_t i = 0; i < sizeof diverging / sizeof *diverging; i++) {
            diverge(ranks, stop_epochs, &set, diverging[i][0], diverging[i][1], "stop");
            diverge(ranks, restore_epochs, &set, diverging[i][0], NULL, "restore");
        }
        diverge(ranks, stop_epochs, &set, gat, "Try a smaller lr", "stop");
        diverge(ranks, stop_epochs, &set, gin, " is not finite after the step", "stop");
        diverge(ranks, hopeless, &large, "norm=none", "the loss is", "large features");
        diverge(ranks, hopeless, &large, "norm=none on_nonfinite=restore", "no earlier weights", "large features");
        diverge(ranks, hopeless, &floats, "norm=none", "the gradient of layers.0", "large features and float targets");
        diverge(ranks, report_last, &targets, sgd_restored, NULL, "an evaluated epoch is repeated");
        for (size_t i = 0; i < sizeof lost / sizeof *lost; i++)
            diverge(ranks, no_rate_helps, &set, lost[i], "", "no rate helps");
        diverge(ranks, no_rate_helps, &set, overflows, "a moment of layers", "no rate helps");
        diverge(ranks, keep_best_ahead, &targets, restored, NULL, "the best epoch is undone");
        if (ranks == 1) continue;
        diverge(ranks, cancel_repeats, &set, repeated, NULL, "cancelled");
        diverge(ranks, cancel_repeats, &set, "norm=none on_nonfinite=restore", NULL, "cancelled");
    }
    diverge(3, cancel_repeats, &set, adaptive_repeated, NULL, "cancelled");
    for (size_t i = 0; i < sizeof over_ranks / sizeof *over_ranks; i++) {
        diverge(3, stop_epochs, &set, over_ranks[i], "Try a smaller lr", "stop");
        diverge(3, restore_epochs, &set, over_ranks[i], NULL, "restore");
    }
    diverge(3, stop_epochs, &set, adaptive, "Try a smaller lr", "stop");
    sample_dataset_fini(&set);
    sample_dataset_fini(&large);
    sample_dataset_fini(&floats);
    sample_dataset_fini(&targets);
    return done();
}
