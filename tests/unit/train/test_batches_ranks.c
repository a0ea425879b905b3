/* Checks minibatches over ranks. One layer over features, which ranks fetch, is exact: a batch of all training vertices
 * with all neighbours must have the losses and weights of one process. Later layers read rows of earlier batches. If
 * weights stay constant these rows are up to date, so that losses must become those of one process.
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness/tap.h"
#include "harness/train_cases.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { VERTICES = 240 };

static const struct shape plain = { VERTICES, 0 }, weighted = { VERTICES, WEIGHTED };

/* All vertices are trained, so that each rank computes all rows that others have in their halo. */
static struct job *make_job(const struct shape *shape)
{
    struct job   *job = calloc(1, sizeof *job);
    struct sample sample = { 41 };

    train_job_init(job, &sample, shape);
    for (int64_t v = 0; v < shape->n; v++) {
        job->set.split[v] = GRAFT_SPLIT_TRAIN;
        if (job->set.labels != NULL && job->set.labels[v] < 0) job->set.labels[v] = (int32_t)(v % CLASSES);
    }
    return job;
}

static void free_job(struct job *job)
{
    train_job_fini(job);
    free(job);
}

/* The last value of an option counts, also over the defaults of a model. */
static void replace_rate(struct settings *settings, const char *rate)
{
    for (int i = 0; settings->at[i] != NULL && rate != NULL; i++)
        if (strncmp(settings->at[i], "lr=", 3) == 0) settings->at[i] = rate;
}

/* Train in one process on the whole graph, and over ranks by batches. The return value is NULL or an error in words. */
static const char *run_both(struct job *job, int32_t n_ranks, const char *model, const char *partition,
                            const char *both, const char *batches, const char *rate)
{
    static struct hosts hosts;
    struct settings     one, many;
    char                more[400];

    train_settings_init(&one, model, partition, "hybrid", both);
    replace_rate(&one, rate);
    train_one_process(job, one.at);
    snprintf(more, sizeof more, "%s batch_size=%d fanout=-1 hec.rows=1000000:2 aep.rows=2000 aep.codec=f32 %s", both,
             (VERTICES + n_ranks - 1) / n_ranks, batches);
    train_settings_init(&many, model, partition, "hybrid", more);
    replace_rate(&many, rate);
    hosts_run(&hosts, n_ranks, many.at, train_job_body, job);
    for (int i = 1; i < n_ranks; i++)
        if (memcmp(job->at[i].loss, job->at[0].loss, sizeof job->at[0].loss) != 0 ||
            memcmp(job->at[i].weights, job->at[0].weights, sizeof job->at[0].weights) != 0)
            return "ranks differ";
    return hosts_fault(&hosts);
}

static void test_one_layer(const char *model, int32_t n_ranks, const char *partition, const struct shape *shape,
                           const char *more)
{
    struct job *job = make_job(shape);
    char        both[300];
    const char *fault;
    double      worst;

    snprintf(both, sizeof both, "layers=%d propagation=1 dropout=0.3 optimizer=sgd:0.5 lr=0.05 %s",
             strcmp(model, "appnp") == 0 ? 2 : 1, more);
    fault = run_both(job, n_ranks, model, partition, both, "", NULL);
    worst = train_worst_of(job);
    ok_or(fault == NULL && worst < 1e-4, fault, "%s on %d ranks, %s, one layer over features, %s: %.1e off one process",
          model, n_ranks, partition, more, worst);
    for (int e = 0; e < EPOCHS && worst >= 1e-4; e++)
        diag("epoch %d: loss %.9g, in one process %.9g", e, job->at[0].loss[e], job->one.loss[e]);
    free_job(job);
}

/* Losses, weights and logits must be those of one process after all epochs, and differ without `batches`. */
static void test_same_batch(const char *model, int32_t n_ranks, const char *partition, const struct shape *shape,
                            const char *more, const char *batches)
{
    struct job *job = make_job(shape);
    char        both[400];
    const char *fault;
    double      worst;

    snprintf(both, sizeof both, "dropout=0.3 optimizer=sgd:0.5 lr=0.05 %s", more);
    fault = run_both(job, n_ranks, model, partition, both, batches, NULL);
    worst = train_worst_of(job);
    ok_or(fault == NULL && worst < 1e-5, fault, "%s on %d ranks, %s, %s %s: %.1e off one process", model, n_ranks,
          partition, more, batches, worst);
    for (int e = 0; e < EPOCHS && worst >= 1e-5; e++)
        diag("epoch %d: loss %.9g, in one process %.9g", e, job->at[0].loss[e], job->one.loss[e]);
    free_job(job);
}

static const char fetched[] = "hec.miss=fetch aep.rows=0";

/* Rows of other ranks that batches need are fetched from their owners, and gradients return, so that all ranks together
 * form one batch. */
static void test_fetch(void)
{
    static const char *const models[] = { "sage", "gcn", "gin", "gat", "sgc", "appnp" };

    for (int m = 0; m < 6; m++) {
        test_same_batch(models[m], 2, "hash", &plain, "propagation=2", fetched);
        test_same_batch(models[m], 5, "block", &weighted, "edge_features=values input_dropout=0.2 hidden=24 heads=4",
                        fetched);
    }
    test_same_batch("sage", 3, "hash", &plain, "aggregator=max recompute=yes", fetched);
    test_same_batch("sage", 4, "hash", &plain, "aggregator=min recompute=yes", fetched);
    test_same_batch("sage", 3, "hash", &plain, "layers=4 hidden=24,24,30 norm=layer residual=yes recompute=yes",
                    fetched);
    test_same_batch("gat", 3, "hash", &plain, "attention_dropout=0.4 recompute=yes edge_features=array", fetched);
    test_same_batch("gat", 3, "hash", &plain, "attention_input=relu symmetrize=yes", fetched);
    test_same_batch("sage", 7, "given", &(struct shape){ VERTICES, SPARSE }, "jumping=cat threads=3", fetched);
    test_same_batch("gcn", 3, "hash", &(struct shape){ VERTICES, LONE }, "", fetched);
}

/* Neighbours of weight 0 are not drawn, and `fanout` exceeds the number of others, so that the same neighbours are
 * drawn in one process and over ranks. Some vertices gather from none and have degree 0. */
static void test_equal_draws(void)
{
    static const char by_degree[] = "batch_size=240 fanout=1000 sample.weights=degree";

    for (int32_t n = 2; n <= 5; n += 3) {
        char one_layer[100];

        snprintf(one_layer, sizeof one_layer, "layers=1 %s", by_degree);
        test_same_batch("sage", n, "hash", &plain, one_layer, "fanout=1000");
        test_same_batch("sage", n, "hash", &plain, by_degree, "fanout=1000 hec.miss=fetch aep.rows=0");
        test_same_batch("gin", n, "block", &plain, by_degree, "fanout=1000 hec.miss=fetch aep.rows=0");
    }
}

/* Draws depend on global vertex numbers and not on the partition, so a batch must have the neighbours of a batch of one
 * process. */
static void test_draws_of_one_process(void)
{
    static const char *const draws[] = { "fanout=4", "fanout=4 sampler=neighbour:replace",
                                         "fanout=3 sample.weights=degree",
                                         "fanout=50 sample.weights=degree sampler=neighbour:replace", "fanout=2,-1,5" };

    for (int i = 0; i < 5; i++) {
        char one[100], ranks[100];

        snprintf(one, sizeof one, "batch_size=240 %s", draws[i]);
        snprintf(ranks, sizeof ranks, "%s %s", draws[i], fetched);
        test_same_batch("sage", 3, "hash", &plain, one, ranks);
        test_same_batch("gcn", 4, i % 2 == 0 ? "hash" : "block", &plain, one, ranks);
    }
    test_same_batch("sage", 3, "hash", &weighted, "batch_size=240 fanout=3 edge_features=values sample.weights=edge",
                    "fanout=3 hec.miss=fetch aep.rows=0");
    test_same_batch("gat", 5, "hash", &plain, "batch_size=240 fanout=3", "fanout=3 hec.miss=fetch aep.rows=0");
}

static const char constant[] = "lr=1e-30";

/* With constant weights losses must be those of one process from epoch `from` on, and not before. */
static void test_constant_weights(const char *model, int32_t n_ranks, const struct shape *shape, const char *both,
                                  const char *batches, int from, double most)
{
    struct job *job = make_job(shape);
    char        settings[300];
    const char *fault;
    double      first, worst = 0;

    snprintf(settings, sizeof settings, "%s dropout=0 optimizer=sgd lr=1", both);
    fault = run_both(job, n_ranks, model, "hash", settings, batches, constant);
    first = train_off(job->at[0].loss[from - 1], job->one.loss[from - 1]);
    for (int e = from; e < EPOCHS; e++) worst = fmax(worst, train_off(job->at[0].loss[e], job->one.loss[e]));
    ok_or(fault == NULL && worst < most && first > 5 * most, fault,
          "%s on %d ranks, %s %s: losses are %.1e off one process from epoch %d on, and %.1e before", model, n_ranks,
          both, batches, worst, from, first);
    for (int e = 0; e < EPOCHS && !(worst < most && first > 5 * most); e++)
        diag("epoch %d: loss %.9g, in one process %.9g", e, job->at[0].loss[e], job->one.loss[e]);
    free_job(job);
}

static void test_caches(void)
{
    static const char *const models[] = { "sage", "gcn", "gin", "gat" };

    for (int m = 0; m < 4; m++) {
        test_constant_weights(models[m], 2, &plain, "", "", 2, 1e-5);
        test_constant_weights(models[m], 5, &weighted, "edge_features=values hidden=24 heads=4",
                              "hec.miss=drop_rescaled", 2, 1e-5);
    }
    test_constant_weights("sage", 3, &plain, "aggregator=sum recompute=yes", "", 2, 1e-5);
    test_constant_weights("sage", 3, &plain, "aggregator=max", "", 2, 1e-5);
    test_constant_weights("sage", 3, &plain, "aggregator=min", "", 2, 1e-5);
    test_constant_weights("sage", 3, &weighted, "aggregator=sum hidden=6,30", "aep.rows=2000:3 hec.rows=1000000:3", 2,
                          1e-5);
    test_constant_weights("gat", 3, &plain, "attention_dropout=0 recompute=yes", "aep.rows=2000:2 hec.rows=1000000:2",
                          2, 1e-5);
    test_constant_weights("gat", 3, &plain, "attention_input=relu recompute=yes", "", 2, 1e-5);
    test_constant_weights("sgc", 3, &plain, "propagation=3", "", 2, 1e-5);
    test_constant_weights("appnp", 4, &plain, "propagation=3", "", 2, 1e-5);
    test_constant_weights("gcn", 4, &plain, "model.type=bf16", "", 2, 2e-3);
    test_constant_weights("sage", 3, &plain, "", "hec.codec=bf16", 2, 5e-4);
    test_constant_weights("sage", 3, &plain, "", "hec.codec=q8 aep.codec=q8", 2, 1e-3);
    test_constant_weights("sage", 3, &plain, "", "hec.miss=last hec.rows=1000000:1 aep.rows=2000:2", 2, 1e-5);
    test_constant_weights("sage", 3, &plain, "", "hec.rows=1000000:6", 4,
                          1e-5); /* rows are sent again after 3 batches */
}

/* Rows that are too old, or were never sent, must not be used. */
static void test_without_rows(const char *batches)
{
    struct job *job = make_job(&plain);
    const char *fault = run_both(job, 3, "sage", "hash", "dropout=0 optimizer=sgd lr=1", batches, constant);
    double      least = INFINITY;

    for (int e = 0; e < EPOCHS; e++) least = fmin(least, train_off(job->at[0].loss[e], job->one.loss[e]));
    ok_or(fault == NULL && least > 1e-4 && job->at[0].loss[0] == job->at[0].loss[EPOCHS - 1], fault,
          "%s: losses stay those of the first batch, %.1e off", batches, least);
    free_job(job);
}

/* With constant weights small batches of all neighbours must have the losses of one process in each epoch, because all
 * rows are in caches or fetched from their owners. */
static void test_fetched_losses(const char *model, int32_t n_ranks, const struct shape *shape, const char *batches)
{
    struct job *job = make_job(shape);
    const char *fault = run_both(job, n_ranks, model, "hash", "dropout=0 optimizer=sgd lr=1", batches, constant);
    double      worst = 0;

    for (int e = 0; e < EPOCHS; e++) worst = fmax(worst, train_off(job->at[0].loss[e], job->one.loss[e]));
    ok_or(fault == NULL && worst < 1e-5, fault, "%s on %d ranks, %s: losses are %.1e off one process", model, n_ranks,
          batches, worst);
    free_job(job);
}

/* Losses of small batches with few neighbours, whose estimates are unbiased, must be near those of all neighbours. */
static void test_few_neighbours(const char *model, const char *more)
{
    char        batches[140];
    struct job *job = make_job(&plain);
    const char *fault;
    double      mean = 0, whole = 0;

    snprintf(batches, sizeof batches, "fanout=3 batch_size=20 hec.rows=1000000:9 %s", more);
    fault = run_both(job, 3, model, "hash", "dropout=0 optimizer=sgd lr=1", batches, constant);

    for (int e = 2; e < EPOCHS; e++) mean += job->at[0].loss[e];
    for (int e = 2; e < EPOCHS; e++) whole += job->one.loss[e];
    ok_or(fault == NULL && fabs(mean / whole - 1) < 0.05, fault, "%s: %s: %.3f of the loss", model, batches,
          mean / whole);
    free_job(job);
}

/* The losses of the model by batches. The return value is NULL or an error in words. */
static const char *batch_losses(struct job *job, int32_t n_ranks, const char *model, const char *batches,
                                double loss[EPOCHS])
{
    static struct hosts hosts;
    struct settings     settings;

    train_settings_init(&settings, model, "hash", "hybrid", batches);
    hosts_run(&hosts, n_ranks, settings.at, train_job_body, job);
    memcpy(loss, job->at[0].loss, sizeof job->at[0].loss);
    return hosts_fault(&hosts);
}

/* Small caches, few rows to send, few seeds on some ranks, or no edges: results must be bitwise identical on 1 and 3
 * threads, and losses must fall. */
static void test_batches_threads(const char *model, const struct shape *shape, const char *more)
{
    static double loss[2][EPOCHS];
    struct job   *job = make_job(shape);
    const char   *fault = NULL;

    if (shape->is & FEW)
        for (int64_t v = 0; v < shape->n; v++) job->set.split[v] = v % 40 < 2 ? GRAFT_SPLIT_TRAIN : GRAFT_SPLIT_TEST;
    for (int i = 0; i < 2 && fault == NULL; i++) {
        char text[300];

        snprintf(text, sizeof text, "fanout=4 dropout=0.1 lr=0.02 %s threads=%d", more, i == 0 ? 1 : 3);
        fault = batch_losses(job, 4, model, text, loss[i]);
    }
    ok_or(fault == NULL && memcmp(loss[0], loss[1], sizeof loss[0]) == 0 && loss[0][EPOCHS - 1] < loss[0][0], fault,
          "%s, %s: bitwise identical on 1 and 3 threads, and the loss falls from %.3f to %.3f", model, more, loss[0][0],
          loss[0][EPOCHS - 1]);
    free_job(job);
}

/* By default a batch sends as many rows as it has seeds, in 8 bits. */
static void test_default_rows(void)
{
    static const char *const more[] = { "", "aep.rows=15 aep.codec=q8", "aep.rows=14", "aep.codec=f32" };
    static double            loss[4][EPOCHS];
    struct job              *job = make_job(&plain);
    const char              *fault = NULL;

    for (int i = 0; i < 4 && fault == NULL; i++) {
        char text[200];

        snprintf(text, sizeof text, "fanout=-1 lr=0.02 batch_size=15 %s", more[i]);
        fault = batch_losses(job, 3, "sage", text, loss[i]);
    }
    ok_or(fault == NULL && memcmp(loss[0], loss[1], sizeof loss[0]) == 0 &&
              memcmp(loss[0], loss[2], sizeof loss[0]) != 0 && memcmp(loss[0], loss[3], sizeof loss[0]) != 0,
          fault, "by default as with aep.rows=15 aep.codec=q8, and not as with fewer rows or with floats");
    free_job(job);
}

/* Rows that are sent in an epoch are used after the delay of option aep.rows, and at once in the next epoch. */
static void test_delay(void)
{
    static const char *const more[] = { "aep.rows=0", "aep.rows=-1:64", "aep.rows=-1:1", "aep.rows=-1:3" };
    static double            loss[4][EPOCHS];
    struct job              *job = make_job(&plain);
    const char              *fault = NULL;

    for (int i = 0; i < 4 && fault == NULL; i++) {
        char text[200];

        snprintf(text, sizeof text, "fanout=-1 lr=0.02 batch_size=15 hec.rows=1000000:64 %s", more[i]);
        fault = batch_losses(job, 3, "sage", text, loss[i]);
    }
    ok_or(fault == NULL && loss[0][0] == loss[1][0] && loss[0][1] != loss[1][1] && loss[2][0] != loss[1][0] &&
              loss[3][0] != loss[1][0] && loss[3][0] != loss[2][0],
          fault, "rows that come too late for an epoch have no effect in it, but in the next one");
    free_job(job);
}

/* Kept rows are a few batches old, and losses must be near those with rows that are fetched in each batch. */
static void test_kept_rows(void)
{
    static const char *const more[] = { "", "hec.rows=1000000:9", "hec.miss=fetch_keep hec.rows=1000000:3" };
    static double            loss[3][EPOCHS];
    struct job              *job = make_job(&plain);
    const char              *fault = NULL;
    double                   worst = 0;

    for (int i = 0; i < 3 && fault == NULL; i++) {
        char text[200];

        snprintf(text, sizeof text, "fanout=-1 dropout=0 lr=0.01 batch_size=15 hec.miss=fetch aep.rows=0 %s", more[i]);
        fault = batch_losses(job, 3, "sage", text, loss[i]);
    }
    for (int e = 0; e < EPOCHS; e++) worst = fmax(worst, train_off(loss[2][e], loss[0][e]));
    ok_or(fault == NULL && memcmp(loss[0], loss[1], sizeof loss[0]) == 0 && worst > 0 && worst < 0.1, fault,
          "by default no fetched row is kept; with hec.miss=fetch_keep losses are %.1e off", worst);
    free_job(job);
}

/* One rank has more training vertices than the others, and therefore larger batches. Rank 0 must warn. */
static void test_large_batches(const char *partition, int warns)
{
    static struct hosts hosts;
    struct job         *job = make_job(&plain);
    struct settings     settings;
    int                 right = 1;

    for (int64_t v = 40; v < VERTICES; v++) job->set.split[v] = GRAFT_SPLIT_TEST;
    train_settings_init(&settings, "sage", partition, "hybrid", "batch_size=10 fanout=3");
    hosts_run(&hosts, 4, settings.at, train_job_body, job);
    for (int i = 0; i < 4; i++) {
        const int has = strstr(hosts.at[i].warnings, "have up to 40 training vertices, more than") != NULL;

        right = right && hosts.at[i].rc == GRAFT_OK && has == (warns && i == 0);
    }
    ok(right, "partition=%s of 40 training vertices in batches of 10 on 4 ranks is balanced: %s", partition,
       warns ? "rank 0 warns" : "no warning");
    free_job(job);
}

/* Options that batches over ranks exclude must be refused with the same sentence on all ranks. */
static void test_batches_refused(const char *more, int32_t status, const char *sentence)
{
    static struct hosts hosts;
    struct job         *job = make_job(&plain);
    struct settings     settings;
    char                text[300];
    int                 right = 0;

    snprintf(text, sizeof text, "batch_size=10 fanout=3 %s", more);
    train_settings_init(&settings, "sage", "hash", "hybrid", text);
    hosts_run(&hosts, 3, settings.at, train_job_body, job);
    for (int i = 0; i < 3; i++)
        right += hosts.at[i].rc == status && strstr(hosts.at[i].error.message, sentence) != NULL;
    ok(right == 3, "%s: %s", more, hosts.at[0].error.message);
    free_job(job);
}

static void test_batches_refusals(void)
{
    test_batches_refused("norm=batch", GRAFT_ERR_OPTION, "norm=batch: ranks have");
    test_batches_refused("parallel=feature", GRAFT_ERR_OPTION, "parallel=feature");
    test_batches_refused("halo.staleness=1", GRAFT_ERR_OPTION, "halo.staleness=1");
    test_batches_refused("halo.codec=adaptive", GRAFT_ERR_OPTION, "halo.codec=adaptive");
    test_batches_refused("sampler=cluster", GRAFT_ERR_OPTION, "sampler=cluster");
    test_batches_refused("sampler=ladies", GRAFT_ERR_OPTION, "sampler=ladies: a layer is drawn");
    test_batches_refused("sampler=saint", GRAFT_ERR_OPTION, "sampler=saint: its subgraphs");
    test_batches_refused("aggregator=max hec.miss=drop_rescaled", GRAFT_ERR_OPTION,
                         "option 'hec.miss' is drop_rescaled, but aggregator=max has no scale");
    test_batches_refused("aggregator=min hec.miss=drop_rescaled", GRAFT_ERR_OPTION,
                         "option 'hec.miss' is drop_rescaled, but aggregator=min has no scale");
    test_batches_refused("batch_size=81", GRAFT_ERR_OPTION,
                         "81 on each of 3 ranks, but the number of training vertices is 240");
    test_batches_refused("fanout=1,2", GRAFT_ERR_OPTION, "2 numbers, but 3 layers");
    test_batches_refused("hec.rows=1000000:1 aep.rows=-1:2", GRAFT_ERR_OPTION, "keeps a row for 1 batches");
    test_batches_refused("hec.rows=5", GRAFT_ERR_OPTION, "can arrive here with one batch");
    test_batches_refused("label_rate=0.5", GRAFT_ERR_OPTION, "cannot be set together: a step draws");
}

int main(void)
{
    static const char *const models[] = { "sage", "gcn", "gin", "gat", "appnp", "sgc" };

    alarm(600); /* it is slow under a sanitizer */
    for (int m = 0; m < 6; m++) {
        test_one_layer(models[m], 2, "hash", &plain, "input_dropout=0.2");
        test_one_layer(models[m], 4, "block", &weighted, "symmetrize=yes order=degree edge_features=values");
    }
    test_one_layer("sage", 3, "hash", &plain, "aggregator=max");
    test_one_layer("sage", 3, "hash", &plain, "aggregator=min");
    test_one_layer("gat", 3, "hash", &plain, "edge_features=array attention_dropout=0.4");
    test_one_layer("gat", 3, "hash", &plain, "attention_input=relu attention_dropout=0.4");
    test_one_layer("sage", 7, "given", &(struct shape){ VERTICES, SPARSE }, "normalize_features=yes");
    test_one_layer("sage", 3, "hash", &(struct shape){ VERTICES, SEVERAL }, "aggregator=sum lr=0.01");
    test_fetch();
    test_equal_draws();
    test_draws_of_one_process();
    test_caches();
    test_few_neighbours("sage", "");
    test_few_neighbours("sage", fetched);
    test_few_neighbours("gat", "");
    test_fetched_losses("sage", 3, &plain, "batch_size=27 hec.miss=fetch aep.rows=0");
    test_fetched_losses("sage", 3, &plain, "batch_size=27 hec.miss=fetch_keep aep.rows=0 hec.rows=1000000:9");
    test_fetched_losses("gcn", 3, &plain, "batch_size=15 hec.miss=fetch_keep aep.rows=0 hec.rows=30:9");
    test_fetched_losses("gat", 3, &plain, "batch_size=15 hec.miss=fetch_keep aep.rows=9:3 hec.rows=50:5");
    test_fetched_losses("gat", 5, &weighted, "batch_size=17 hec.miss=fetch aep.rows=5");
    test_fetched_losses("gin", 4, &plain, "batch_size=21 hec.miss=fetch aep.rows=500:2 hec.rows=500:2");
    test_without_rows("aep.rows=0");
    test_default_rows();
    test_delay();
    test_kept_rows();
    test_batches_threads("sage", &plain, "batch_size=15 hec.rows=40 aep.rows=10 aep.codec=q4");
    test_batches_threads("gat", &weighted, "batch_size=15 hec.rows=60 aep.rows=20:3 hec.codec=q4");
    test_batches_threads("gcn", &(struct shape){ VERTICES, FEW }, "batch_size=1 hec.miss=drop_rescaled");
    test_batches_threads("gcn", &plain, "batch_size=15 hec.miss=fetch aep.rows=3");
    test_batches_threads("gat", &(struct shape){ VERTICES, FEW }, "batch_size=2 hec.miss=fetch");
    test_batches_threads("sage", &plain, "batch_size=15 hec.miss=fetch_keep aep.rows=0 hec.rows=1000000:3");
    test_batches_threads("mlp", &plain, "batch_size=20 hec.miss=fetch");
    test_batches_threads("mlp", &plain, "batch_size=20");
    test_large_batches("given", 1);
    test_large_batches("hash", 0);
    test_batches_refusals();
    return done();
}
