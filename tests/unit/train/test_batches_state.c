/* Checks a state from the middle of an epoch in a trainer with other batches. The epoch must begin again with a
 * warning, bitwise like a state in which no batch is completed. With the same batches the epoch must go on.
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness/hosts.h"
#include "harness/outputs.h"
#include "harness/state_items.h"
#include "harness/tap.h"
#include "oracle/sample.h"

#include <stdlib.h>
#include <string.h>

enum { N = 240, FEATURES = 5, CLASSES = 3, DONE = 3 /* number of completed batches */ };

static const char BEGINS_AGAIN[] = "epoch 2 begins again, on ";

/* A trainer whose state is taken, and one that gets it. */
struct pair {
    const char *first, *second; /* options of both */
    int         alone;          /* whether the first trainer has no ranks */
    const char *without;        /* prefix of the items that are left out */
    int         updates;        /* whether the second trainer gets another split after the state */
};

struct job {
    struct sample_dataset set;
    struct pair           pair;
    /* Results: whether the epoch began again; whether the state has items of batches. */
    int                   again, whole;
};

static int count_of(const char *text, const char *part)
{
    int count = 0;

    for (const char *at = text; (at = strstr(at, part)) != NULL; at++) count++;
    return count;
}

static void put(struct kept_state *state, const char *name, double number)
{
    graft_state_item *item = kept_state_find(state, name);
    void             *data = (void *)(uintptr_t)item->data;

    if (item->dtype == GRAFT_I64) *(int64_t *)data = (int64_t)number;
    else *(double *)data = number;
}

static void put_batch(struct kept_state *state, int64_t batch)
{
    put(state, "progress.batch", (double)batch);
    put(state, "progress.batch_loss", batch > 0 ? 60 : 0);
    put(state, "progress.batch_weight", batch > 0 ? 50 : 0);
}

static int32_t create_one(struct host *host, const char *settings, int alone, struct host_trainer *t)
{
    struct job *job = host->all->arg;

    *t = (struct host_trainer){ 0 };
    host_set_all(host->api, "batch_size=10 fanout=4 seed=1 sampler=neighbour order=given "
                            "drop_last=no history=no");
    host_set_all(host->api, settings);
    if (alone) return host->train->create(host->api->context, &job->set.dataset, &t->trainer, &host->error);
    return host_trainer_create(host, &job->set.dataset, SLICES_EVEN, t);
}

/* The state of a trainer after one epoch. */
static int32_t first_state(struct host *host, struct kept_state *state)
{
    struct job         *job = host->all->arg;
    struct host_trainer t;
    graft_epoch         epoch = output_epoch();
    int32_t             rc = create_one(host, job->pair.first, job->pair.alone || host->n_ranks == 1, &t);

    if (rc == GRAFT_OK) rc = host->train->epoch(t.trainer, &epoch, &host->error);
    if (rc == GRAFT_OK) kept_state_take(state, host->train, t.trainer);
    host_trainer_destroy(host, &t);
    return rc;
}

/* Exchange a training vertex with another vertex. A second call reverts that. */
static void change_split(struct job *job)
{
    uint8_t *split = job->set.split, first = split[0];
    int64_t  v = 1;

    while ((split[v] == GRAFT_SPLIT_TRAIN) == (first == GRAFT_SPLIT_TRAIN)) v++;
    split[0] = split[v];
    split[v] = first;
}

/* Run an epoch that begins with `state`, and take the state after it. */
static int32_t go_on(struct host *host, const struct kept_state *state, int *whole, struct kept_state *after)
{
    struct job         *job = host->all->arg;
    struct host_trainer t;
    graft_epoch         epoch = output_epoch();
    int32_t             rc = create_one(host, job->pair.second, host->n_ranks == 1, &t);

    if (rc == GRAFT_OK) rc = kept_state_set(state, job->pair.without, host->train, t.trainer, &host->error);
    if (rc == GRAFT_OK) {
        kept_state_take(after, host->train, t.trainer);
        *whole = kept_state_find(after, "progress.batches") != NULL;
        kept_state_free(after);
        host->warnings[0] = '\0';
        if (job->pair.updates) change_split(job);
        if (job->pair.updates) rc = host->train->update(t.trainer, GRAFT_UPDATE_SPLIT, &job->set.dataset, &host->error);
        if (rc == GRAFT_OK) rc = host->train->epoch(t.trainer, &epoch, &host->error);
        if (job->pair.updates) change_split(job);
    }
    if (rc == GRAFT_OK) kept_state_take(after, host->train, t.trainer);
    host_trainer_destroy(host, &t);
    return rc;
}

static int32_t pair_body(struct host *host)
{
    struct job       *job = host->all->arg;
    struct kept_state state = { 0 }, after[2] = { { 0 }, { 0 } };
    const int         speaks = host->rank == 0;
    int               whole, warns;
    int32_t           rc = first_state(host, &state);

    if (rc == GRAFT_OK) {
        put_batch(&state, 0);
        rc = go_on(host, &state, &whole, &after[0]);
    }
    if (rc == GRAFT_OK) {
        warns = count_of(host->warnings, "begins again");
        put_batch(&state, DONE);
        rc = go_on(host, &state, &whole, &after[1]);
    }
    if (rc == GRAFT_OK) {
        const int same = same_kept_state(&after[0], &after[1], NULL);

        if (warns != 0 || count_of(host->warnings, BEGINS_AGAIN) != (same && speaks)) {
            printf("# rank %d: \"%s\"\n", (int)host->rank, host->warnings);
            rc = GRAFT_ERR_ARG;
        }
        if (speaks) job->again = same;
        if (speaks) job->whole = whole;
    }
    kept_state_free(&state);
    for (int i = 0; i < 2; i++) kept_state_free(&after[i]);
    return rc;
}

static void test_pair(struct pair pair, int32_t n_ranks, int again)
{
    static const char *const settings[] = { "model=sage",
                                            "layers=3",
                                            "hidden=6",
                                            "epochs=5",
                                            "eval_every=0",
                                            "dropout=0.2",
                                            "lr=0.05",
                                            "threads=1",
                                            "aep.rows=4",
                                            "hec.rows=200:9",
                                            "partition=hash",
                                            "norm=none",
                                            "partition.program=none",
                                            NULL };
    static struct hosts      hosts;
    static struct job        job;
    struct sample            sample = { 71 };

    memset(&job, 0, sizeof job);
    job.pair = pair;
    sample_dataset_init(&job.set, &sample, N, FEATURES, CLASSES, 0, 0);
    hosts_run(&hosts, n_ranks, settings, pair_body, &job);
    ok_or(hosts_fault(&hosts) == NULL && job.again == again && job.whole, hosts_fault(&hosts),
          "ranks: %d, %s%s, then %s%s%s%s: %s", (int)n_ranks, *pair.first != '\0' ? pair.first : "a state",
          pair.alone ? " alone" : "", *pair.second != '\0' ? pair.second : "the usual options",
          pair.without != NULL ? " without " : "", pair.without != NULL ? pair.without : "",
          pair.updates ? " and another split" : "", again ? "the epoch begins again" : "it goes on");
    sample_dataset_fini(&job.set);
}

int main(void)
{
    static const struct pair others[] = {
        { "", "batch_size=20", 0, NULL, 0 },
        { "", "batch_size=40", 0, NULL, 0 },
        { "", "batch_size=0", 0, NULL, 0 },
        { "", "seed=2", 0, NULL, 0 },
        { "", "sampler=saint", 0, NULL, 0 },
        { "sampler=saint", "batch_size=20 sampler=saint", 0, NULL, 0 },
        { "sampler=saint", "", 0, NULL, 0 },
        { "batch_size=7", "batch_size=7 drop_last=yes", 0, NULL, 0 },
        { "", "order=degree", 0, NULL, 0 },
        { "", "history=full", 0, NULL, 0 },
        { "history=full", "history=full batch_size=20", 0, NULL, 0 },
        { "sampler=cluster:30", "sampler=cluster:20", 0, NULL, 0 },
        { "", "batch_size=0", 0, "progress.batches", 0 },
        { "", "", 0, NULL, 1 },
    };
    static const struct pair same[] = {
        { "", "", 0, NULL, 0 },
        { "", "fanout=6", 0, NULL, 0 },
        { "", "threads=2 sample.ahead=3", 0, NULL, 0 },
        { "sampler=saint", "sampler=saint:3", 0, NULL, 0 },
        { "sampler=cluster:30", "sampler=cluster:30", 0, NULL, 0 },
        { "history=full", "history=full fanout=3", 0, NULL, 0 },
        { "", "batch_size=9", 0, "progress.batches", 0 }, /* as older builds saved it */
    };

    for (size_t i = 0; i < sizeof others / sizeof *others; i++) test_pair(others[i], 1, 1);
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) test_pair(same[i], 1, 0);
    test_pair((struct pair){ "", "batch_size=5", 0, NULL, 0 }, 2, 1);
    /* Ages of cached rows would be ahead of the batch. */
    test_pair((struct pair){ "batch_size=5", "", 0, NULL, 0 }, 2, 1);
    test_pair((struct pair){ "", "seed=2", 0, NULL, 0 }, 3, 1);
    test_pair((struct pair){ "", "batch_size=0", 0, "caches.", 0 }, 2, 1);
    test_pair((struct pair){ "batch_size=20", "batch_size=10", 1, NULL, 0 }, 2, 1);
    test_pair((struct pair){ "", "fanout=6", 0, NULL, 0 }, 2, 0);
    return done();
}
