/* Checks the caches of minibatches over ranks in the state. Another trainer that gets the state of each rank in the
 * middle of training must continue bitwise identically. If one rank does not get its caches, all must begin with empty
 * caches. Invalid caches must be refused.
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness/outputs.h"
#include "harness/tap.h"
#include "harness/train_runs.h"

#include <stdlib.h>
#include <string.h>

static struct job *cache_job(void)
{
    struct job   *job = calloc(1, sizeof *job);
    struct sample sample = { 47 };

    if (job == NULL) printf("Bail out! malloc\n"), exit(2);
    sample_dataset_init(&job->set, &sample, N, FEATURES, CLASSES, 0, 0);
    job->way = SLICES_EVEN;
    return job;
}

/* Whether run b has the losses of run a in the second half, and the same state and caches on each rank. */
static int same_ends(const struct job *job, int a, int b, int32_t n_ranks)
{
    int same = 1;

    for (int32_t r = 0; r < n_ranks; r++) {
        const struct outcome *first = &job->at[a][r], *other = &job->at[b][r];

        same &= memcmp(first->loss + HALF, other->loss + HALF, (EPOCHS - HALF) * sizeof first->loss[0]) == 0 &&
                same_caches(&first->last, &other->last);
    }
    return same;
}

static void test_resumed_caches(const char *settings, int32_t n_ranks)
{
    struct job *job = cache_job();
    char        all[300];
    const char *fault;

    snprintf(all, sizeof all, "batch_size=4 fanout=5 dropout=0.2 hec.rows=1000000:9 %s", settings);
    train_runs_add(job, (struct run){ .settings = all });
    train_runs_add(job, (struct run){ .settings = all, .evaluates = 1 });
    train_runs_add(job, (struct run){ .settings = all, .from = 1 }); /* 0 would mean no run */
    train_runs_add(job, (struct run){ .settings = all, .from = 1, .evaluates = 1 });
    train_runs_add(job, (struct run){ .settings = all, .sets_state = 1 });
    train_runs_add(job, (struct run){ .settings = all, .from = 1, .forgets = 2 });
    fault = train_runs_play(job, n_ranks, "hash", "hybrid");
    ok(fault == NULL && same_ends(job, 0, 1, n_ranks) && same_ends(job, 0, 2, n_ranks) &&
           same_ends(job, 0, 3, n_ranks) && same_ends(job, 0, 4, n_ranks),
       "%s on %d ranks: a state that is set in another trainer, or in the same one, gives "
       "bitwise identical training",
       settings, (int)n_ranks);
    ok_or(fault == NULL && job->at[5][0].loss[HALF] != job->at[0][0].loss[HALF] &&
              job->at[5][0].loss[EPOCHS - 1] < 1.2 * job->at[0][0].loss[EPOCHS - 1],
          fault, "%s: if rank 1 lacks its caches, training continues with empty ones", settings);
    train_runs_free(job);
}

/* Caches of another size, codec or order must be refused with the name of the array. */
static void test_other_caches(const char *settings, const char *part)
{
    struct job *job = cache_job();
    char        all[300];
    const char *fault;

    snprintf(all, sizeof all, "batch_size=4 fanout=5 aep.rows=3 hec.rows=20:9 hec.codec=f32 %s", settings);
    train_runs_add(job, (struct run){ .settings = "batch_size=4 fanout=5 aep.rows=3 hec.rows=20:9" });
    train_runs_add(job, job->run[0]);
    train_runs_add(job, (struct run){ .settings = all, .from = 1 });
    fault = train_runs_play(job, 2, "hash", "hybrid");
    ok(fault != NULL && strstr(fault, "state item 'caches.") != NULL && strstr(fault, part) != NULL, "%s: %s", settings,
       fault != NULL ? fault : "not refused");
    train_runs_free(job);
}

/* -- caches that cannot be ---------------------------------------------------------------------------------------- */

enum { TRIES = 40 };

/* The results of each rank. */
struct broken_caches {
    struct sample_dataset set;
    double                loss[2][HOSTS_MOST];
    int64_t               refused[HOSTS_MOST], wrong[HOSTS_MOST];
};

/* The state item with this name, with a copy of its data. */
static graft_state_item copy_item(const struct host *host, graft_trainer *trainer, const char *name, void *data)
{
    graft_state_item item = GRAFT_INIT(graft_state_item);

    for (int32_t i = 0; host->train->state_item(trainer, i, &item, NULL) == GRAFT_OK; i++) {
        if (strcmp(item.name, name) != 0) continue;
        item.data = memcpy(data, item.data, state_item_bytes(&item));
        return item;
    }
    printf("Bail out! no %s\n", name);
    exit(2);
}

/* Set invalid caches of each kind, and count the refusals. */
static void set_broken(struct host *host, graft_trainer *trainer)
{
    static _Thread_local int64_t data[4096];
    struct broken_caches        *b = host->all->arg;
    int32_t *const               places = (int32_t *)(void *)data;

    for (int i = 0; i < 6; i++) {
        static const char *const names[] = { "caches.layout",   "caches.1.batches", "caches.1.sent",
                                             "caches.2.places", "caches.2.places",  "caches.2.places" };
        static const char *const parts[] = { "another graph or rank", "is -2", "is -2", "once", "once", "once" };
        const graft_state_item   item = copy_item(host, trainer, names[i], data);
        const int64_t            capacity = item.shape[0] * 2 / 3;

        if (i < 3) data[0] = i == 0 ? data[0] + 1 : -2;
        else if (i == 3) places[0] = places[1];
        else if (i == 4) places[0] = N;
        else places[2 * capacity] = 0; /* the successor of row 0 in the list becomes row 0 itself */
        b->refused[host->rank] += host->train->state_set(trainer, &item, &host->error) == GRAFT_ERR_FORMAT &&
                                  strstr(host->error.message, parts[i]) != NULL;
    }
}

/* Give a new trainer the state of another one, with one flipped bit in the caches of one rank, and train an epoch. */
static int32_t set_random(struct host *host, const graft_dataset *dataset, graft_trainer *from, struct sample *sample)
{
    static _Thread_local char data[1 << 15];
    struct broken_caches     *b = host->all->arg;
    const int64_t             who = sample_below(sample, host->n_ranks), at = sample_below(sample, 1 << 20);
    const int64_t             which = sample_below(sample, 9);
    graft_trainer            *to = NULL;
    graft_state_item          item = GRAFT_INIT(graft_state_item);
    graft_epoch               epoch = output_epoch();
    int64_t                   caches = 0;
    int32_t                   rc = host->train->create(host->api->context, dataset, &to, &host->error);

    for (int32_t i = 0; rc == GRAFT_OK && host->train->state_item(from, i, &item, NULL) == GRAFT_OK; i++) {
        int32_t set;

        item.data = memcpy(data, item.data, state_item_bytes(&item));
        if (state_item_begins(&item, "caches.") && caches++ == which && who == host->rank)
            data[at % (int64_t)state_item_bytes(&item)] ^= (char)(1 << at % 8);
        set = host->train->state_set(to, &item, &host->error);
        b->wrong[host->rank] += set == GRAFT_ERR_FORMAT;
        if (set != GRAFT_ERR_FORMAT) rc = set;
    }
    if (rc == GRAFT_OK) rc = host->train->epoch(to, &epoch, &host->error);
    host->train->destroy(to);
    return rc == GRAFT_ERR_NONFINITE ? GRAFT_OK : rc;
}

static int32_t broken_caches_body(struct host *host)
{
    struct broken_caches *b = host->all->arg;
    struct sample         sample = { 99 };
    struct host_trainer   t;
    graft_trainer        *other = NULL;
    graft_epoch           epoch = output_epoch();
    int32_t               rc = host_trainer_create(host, &b->set.dataset, SLICES_EVEN, &t);

    if (rc == GRAFT_OK) rc = host->train->create(host->api->context, &t.slice.dataset, &other, &host->error);
    for (int i = 0; i < 2; i++) {
        graft_trainer *trainer = i == 0 ? t.trainer : other;

        for (int e = 0; e < 3 && rc == GRAFT_OK; e++) {
            if (e == 2 && i == 1) set_broken(host, trainer);
            rc = host->train->epoch(trainer, &epoch, &host->error);
        }
        b->loss[i][host->rank] = epoch.loss;
    }
    for (int i = 0; i < TRIES && rc == GRAFT_OK; i++) rc = set_random(host, &t.slice.dataset, other, &sample);
    host->train->destroy(other);
    host_trainer_destroy(host, &t);
    return rc;
}

static void test_broken_caches(const char *codec)
{
    static const char *const    settings[] = { "layers=3",    "hidden=3,6",     "batch_size=4",     "fanout=5",
                                               "epochs=9",    "eval_every=0",   "hec.rows=99999:9", "threads=1",
                                               "dropout=0.2", "partition=hash", "aep.rows=5",       "log.level=error" };
    static struct hosts         hosts;
    static struct broken_caches b;
    struct sample               sample = { 53 };
    const char                 *all[sizeof settings / sizeof *settings + 2] = { NULL };
    int64_t                     wrong = 0;

    memset(&b, 0, sizeof b);
    memcpy(all, settings, sizeof settings);
    all[sizeof settings / sizeof *settings] = codec;
    sample_dataset_init(&b.set, &sample, N, FEATURES, CLASSES, 0, 0);
    hosts_run(&hosts, 3, all, broken_caches_body, &b);
    for (int r = 0; r < 3; r++) wrong += b.wrong[r];
    ok(hosts_fault(&hosts) == NULL && b.refused[0] == 6 && b.refused[1] == 6 && b.refused[2] == 6 &&
           b.loss[0][0] == b.loss[1][0],
       "%s: invalid caches are refused, and training continues as if they had not been set", codec);
    ok_or(hosts_fault(&hosts) == NULL && wrong > 2 && wrong < TRIES, hosts_fault(&hosts),
          "%s: of %d changes of a bit %lld are refused", codec, TRIES, (long long)wrong);
    sample_dataset_fini(&b.set);
}

int main(void)
{
    test_resumed_caches("aep.rows=3 aep.codec=f32", 2);
    test_resumed_caches("aep.rows=9 aep.codec=q8 hec.codec=bf16 hec.miss=drop_rescaled hidden=8", 3);
    test_resumed_caches("aep.rows=4:3 aep.codec=q4 hec.codec=q8 hec.miss=last hec.rows=1000000:4", 4);
    test_resumed_caches("aep.rows=2 hec.miss=fetch_keep hec.codec=q4 hidden=9", 3);
    test_resumed_caches("aep.rows=0 hec.miss=fetch_keep hec.rows=12:9", 2);
    test_resumed_caches("aep.rows=5:2 hec.rows=20:9 model=gat order=rcm", 3);
    test_resumed_caches("aep.rows=5:4 aggregator=max aep.codec=bf16", 2);
    test_other_caches("hec.rows=19:9", "expected I64 [");
    test_other_caches("hec.codec=bf16", "hec.codec");
    test_other_caches("order=degree", "'order'");
    test_broken_caches("hec.codec=f32");
    test_broken_caches("hec.codec=q8");
    return done();
}
