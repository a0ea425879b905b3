/* Checks options that change between epochs. A schedule of the learning rate must give the weights of a host that sets
 * the rate of each epoch itself, the number of epochs can be raised, and ranks must agree on both.
 * SPDX-License-Identifier: Apache-2.0 */
#include "graft_load.h"
#include "graft_model.h"
#include "harness/hosts.h"
#include "harness/outputs.h"
#include "harness/tap.h"
#include "oracle/sample.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

enum { EPOCHS = 9 };

static const double LR = 0.02;

/* A schedule, and its rate by definition. */
struct schedule {
    const char *settings;
    double (*rate)(int epoch);
};

struct job {
    const struct sample_dataset *set;
    const struct schedule       *schedule;
    int                          serial;
};

static double rate_constant(int epoch)
{
    (void)epoch;
    return LR;
}

static double rate_cosine(int epoch)
{
    return LR / 2 * (1 + cos(acos(-1) * epoch / EPOCHS));
}

static double rate_step(int epoch)
{
    double rate = LR;

    for (int i = 2; i <= epoch; i += 2) rate *= 0.5;
    return rate;
}

/* Fail with a sentence of this test unless the condition holds. */
static int32_t schedule_check(struct host *host, int32_t rc, int right, const char *words)
{
    if (rc < 0 || right) return rc;
    snprintf(host->error.message, sizeof host->error.message, "%s", words);
    return GRAFT_STATUS_END;
}

static int32_t schedule_open(struct host *host, struct host_trainer *t)
{
    const struct job *job = host->all->arg;

    memset(t, 0, sizeof *t);
    if (!job->serial) return host_trainer_create(host, &job->set->dataset, SLICES_EVEN, t);
    return host->train->create(host->api->context, &job->set->dataset, &t->trainer, &host->error);
}

static void schedule_close(struct host *host, struct host_trainer *t)
{
    const struct job *job = host->all->arg;

    if (job->serial) host->train->destroy(t->trainer);
    else host_trainer_destroy(host, t);
}

static void set_rate(struct host *host, double rate)
{
    char text[64];

    snprintf(text, sizeof text, "lr=%.17g", rate);
    host_set(host->api, text);
}

/* Both trainers must have the same state, and epochs must report the rate. */
static int32_t follow_schedule(struct host *host)
{
    const struct job   *job = host->all->arg;
    graft_epoch         epoch = output_epoch();
    struct host_trainer by_schedule, by_hand;
    int32_t             rc = schedule_open(host, &by_schedule);

    if (rc == GRAFT_OK) rc = schedule_open(host, &by_hand);
    for (int i = 0; i < EPOCHS && rc == GRAFT_OK; i++) {
        set_rate(host, LR);
        host_set_all(host->api, job->schedule->settings);
        rc = host->train->epoch(by_schedule.trainer, &epoch, &host->error);
        rc = schedule_check(host, rc, fabs(epoch.learning_rate - job->schedule->rate(i)) < 1e-12 * LR,
                            "another learning rate is reported");
        host_set(host->api, "schedule=constant");
        set_rate(host, epoch.learning_rate);
        if (rc == GRAFT_OK) rc = host->train->epoch(by_hand.trainer, &epoch, &host->error);
    }
    rc = schedule_check(host, rc, epoch.done, "it is not done");
    rc = schedule_check(host, rc, rc == GRAFT_OK && host_same_state(host->train, by_schedule.trainer, by_hand.trainer),
                        "weights differ from those of rates set by hand");
    schedule_close(host, &by_schedule);
    schedule_close(host, &by_hand);
    return rc;
}

/* Ask for one more epoch when all are done. */
static int32_t ask_for_more(struct host *host)
{
    graft_epoch         epoch = output_epoch();
    graft_error         error = GRAFT_INIT(graft_error);
    struct host_trainer t;
    int32_t             rc = schedule_open(host, &t), more;

    host_set(host->api, "epochs=2");
    for (int i = 0; i < 2 && rc == GRAFT_OK; i++) rc = host->train->epoch(t.trainer, &epoch, &host->error);
    rc = schedule_check(host, rc, epoch.done == 1, "2 epochs are not all");
    more = rc == GRAFT_OK ? host->train->epoch(t.trainer, &epoch, NULL) : rc;
    rc = schedule_check(host, rc, more == GRAFT_ERR_STATE, "a third one runs");
    host_set(host->api, "epochs=3");
    if (rc == GRAFT_OK) rc = host->train->epoch(t.trainer, &epoch, &host->error);
    rc = schedule_check(host, rc, epoch.done == 1 && epoch.epochs == 3, "3 epochs are not 3");
    host_set(host->api, "epochs=1");
    more = rc == GRAFT_OK ? host->train->epoch(t.trainer, &epoch, &error) : rc;
    rc = schedule_check(host, rc, more == GRAFT_ERR_STATE && strstr(error.message, "3 epochs are completed") != NULL,
                        "fewer epochs than are completed are no such error");
    schedule_close(host, &t);
    return rc;
}

/* A state with another number of epochs must cause one warning, with both numbers, and only if the schedule is a
 * cosine. */
static int32_t resume_otherwise(struct host *host)
{
    const graft_model_api *models = graft_interface(host->api, GRAFT_MODEL_ID, sizeof *models);
    graft_model           *state = NULL;
    struct host_trainer    t;
    int32_t                rc = schedule_open(host, &t);
    const char            *told;

    if (rc == GRAFT_OK) rc = models->create(t.trainer, GRAFT_MODEL_STATE, &state, &host->error);
    host_set(host->api, "epochs=12");
    if (rc == GRAFT_OK) rc = models->apply(state, t.trainer, &host->error);
    rc = schedule_check(host, rc, host->warnings[0] == '\0', "a warning without a cosine");
    host_set(host->api, "schedule=cosine");
    if (rc == GRAFT_OK) rc = models->apply(state, t.trainer, &host->error);
    told = strstr(host->warnings, "of 9 epochs, and option 'epochs' is 12");
    rc = schedule_check(host, rc, (told != NULL) == (host->rank == 0), "not one warning of both numbers");
    host->warnings[0] = '\0';
    host_set(host->api, "epochs=9");
    if (rc == GRAFT_OK) rc = models->apply(state, t.trainer, &host->error);
    rc = schedule_check(host, rc, host->warnings[0] == '\0', "a warning of the same number");
    models->destroy(state);
    schedule_close(host, &t);
    return rc;
}

/* Ranks whose rates differ must get an error, and can go on when they agree. */
static int32_t disagree(struct host *host)
{
    graft_epoch         epoch = output_epoch();
    graft_error         error = GRAFT_INIT(graft_error);
    struct host_trainer t;
    int32_t             rc = schedule_open(host, &t), found;

    set_rate(host, host->rank == 1 ? LR / 2 : LR);
    found = rc == GRAFT_OK ? host->train->epoch(t.trainer, &epoch, &error) : rc;
    rc = schedule_check(host, rc, found == GRAFT_ERR_ARG && strstr(error.message, "lr") != NULL, error.message);
    set_rate(host, LR);
    if (rc == GRAFT_OK) rc = host->train->epoch(t.trainer, &epoch, &host->error);
    schedule_close(host, &t);
    return rc;
}

static void schedule_run(int32_t n_ranks, int32_t (*body)(struct host *host), const struct sample_dataset *set,
                         const struct schedule *schedule, const char *what)
{
    static const char *const settings[] = { "layers=2", "hidden=8", "epochs=9", "dropout=0.2", "threads=1", NULL };
    static struct hosts      hosts;
    struct job               job = { set, schedule, n_ranks == 0 };

    hosts_run(&hosts, job.serial ? 1 : n_ranks, settings, body, &job);
    ok_or(hosts_fault(&hosts) == NULL, hosts_fault(&hosts), "%d ranks: %s", n_ranks, what);
}

int main(void)
{
    static const struct schedule schedules[] = {
        { "schedule=constant", rate_constant },
        { "schedule=cosine", rate_cosine },
        { "schedule=step:2:0.5", rate_step },
    };
    struct sample         sample = { 4 };
    struct sample_dataset set;

    alarm(100);
    sample_dataset_init(&set, &sample, 60, 5, 3, 0, 0);
    for (int32_t ranks = 0; ranks < 3; ranks++) {
        for (int i = 0; i < 3; i++) schedule_run(ranks, follow_schedule, &set, &schedules[i], schedules[i].settings);
        schedule_run(ranks, ask_for_more, &set, NULL, "more epochs");
        schedule_run(ranks, resume_otherwise, &set, NULL, "a state of another number of epochs");
    }
    schedule_run(3, disagree, &set, NULL, "rates that differ are refused");
    sample_dataset_fini(&set);
    return done();
}
