/* Checks training with stale rows: with halo.staleness=1:1 it must be bitwise identical to synchronous training, and
 * options that must not change results are tried one by one.
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness/tap.h"
#include "harness/train_runs.h"

#include <string.h>
#include <unistd.h>

/* Whether two runs have bitwise identical results from an epoch on. */
static int same(const struct job *job, int a, int b, int from)
{
    const struct outcome *x = &job->at[a][0], *y = &job->at[b][0];

    return memcmp(x->loss + from, y->loss + from, (size_t)(EPOCHS - from) * sizeof(double)) == 0 &&
           same_state(&x->last, &y->last);
}

enum { SYNC, EVERY_ONE, ASYNC, REMADE, OBSERVED, GIVES_UP, ANEW, RESTORED, RESUMED, EVERY_FOUR, RESTORED_FOUR, RUNS };

/* Stale rows must have the bytes of synchronous ones. With shared columns they travel as records of 128 floats, and the
 * last record of a synchronous message may be shorter. A model here has at most 16 sums, each with two transposes in
 * two directions. */
static int bytes_fit(int64_t synchronous, int64_t stale, int32_t n_ranks)
{
    const int64_t padding = stale - synchronous, messages = 16 * 2 * 2 * (int64_t)n_ranks;

    if (strcmp(train_runs_shared, "parallel=partition") == 0) return padding == 0;
    return padding >= 0 && padding % 4 == 0 && padding < messages * 128 * 4;
}

static const char *train_runs_judge(const struct job *job, int32_t n_ranks, const char *model, const char *settings)
{
    const graft_traffic *sync = &job->at[SYNC][0].traffic, *async = &job->at[ASYNC][0].traffic;
    const int            exchanges = sync->halo_bytes_per_epoch > 0, is_mlp = strcmp(model, "mlp") == 0;
    const int            has_labels = strstr(settings, "label_rate") != NULL;

    if (!same(job, EVERY_ONE, SYNC, 0)) return "with halo.staleness=1:1 it has other bits than synchronous";
    if (!same(job, REMADE, ASYNC, 0)) return "with recompute it has other bits";
    if (!same(job, OBSERVED, ASYNC, 0)) return "evaluations and predictions in between change it";
    if (!same(job, ANEW, ASYNC, 0)) return "after a trainer that was destroyed half-way it has other bits";
    if (!same(job, RESUMED, RESTORED, HALF)) return "a state that is set says not all of what comes after it";
    if (!same(job, RESTORED_FOUR, EVERY_FOUR, 0)) return "set in an epoch that waits, a state changes what comes after";
    if (exchanges && !is_mlp && same(job, ASYNC, SYNC, 0)) return "asynchronous is no other than synchronous";
    if (memcmp(job->at[ASYNC][0].loss, job->at[SYNC][0].loss, sizeof(double)) != 0) return "the first epoch is another";
    if (sync->staleness_max != 0 || job->at[EVERY_ONE][0].traffic.staleness_max != 0) return "rows are reported as old";
    if (async->staleness_max != (exchanges && !is_mlp)) return "rows are not told old";
    if (!bytes_fit(sync->halo_bytes_per_epoch, async->halo_bytes_per_epoch, n_ranks))
        return "other bytes than synchronous";
    if (!has_labels && job->at[REMADE][0].traffic.halo_bytes_per_epoch != async->halo_bytes_per_epoch)
        return "rows are sent again to make a layer again";
    return NULL;
}

/* Options, and properties of the data set. */
struct setup {
    const char *settings;
    int         sparse, several;
};

enum { TWO_BITS = 2 };

static const struct setup setups[] = {
    { "", 0, 0 },
    { "halo.codec=q8 reuse_input=no", 0, 0 },
    { "halo.codec=q2 row_masks=no dropout=0.3", 0, 1 },
    { "halo.codec=q1/q4 hidden=8", 0, 0 },
    { "reuse_input=no input_dropout=0.3 hidden=12,5 norm=layer", 0, 1 },
    { "label_rate=0.5 hidden=5 dropout=0.2", 0, 0 },
    { "sparse_input=yes input_dropout=0.2 halo.codec=bf16", 1, 0 },
    { "sparse_input=no label_rate=0.3 reuse_input=no", 1, 1 },
    { "optimizer=adam lr=0.05", 0, 0 },
};
static const struct setup extrema[] = {
    { "aggregator=max", 0, 0 },
    { "aggregator=max halo.codec=q8 reuse_input=no", 0, 1 },
    { "aggregator=max reuse_input=no input_dropout=0.3 hidden=12,5 norm=layer halo.codec=bf16", 0, 0 },
    { "aggregator=min dropout=0.2", 0, 0 },
    { "aggregator=min halo.codec=q8 reuse_input=no norm=layer", 0, 1 },
};

static void test_setup(int number, const char *model, int32_t n_ranks, const struct setup *setup)
{
    static const char *const more[RUNS] = {
        "halo.staleness=0",     "halo.staleness=1:1:0.25", "halo.staleness=1:0:0", "halo.staleness=1:0:0 recompute=yes",
        "halo.staleness=1:0:0", "halo.staleness=1:0:0",    "halo.staleness=1:0:0", "halo.staleness=1:0:0",
        "halo.staleness=1:0:0", "halo.staleness=1:4:0",    "halo.staleness=1:4:0"
    };
    static const char *const covers[] = { "hybrid", "post", "pre" };
    const char *const partition = number % 2 ? "hash" : "given", *const cover = covers[number % 3];
    struct job   *job = calloc(1, sizeof *job);
    struct sample sample = { (uint64_t)number };
    char          settings[RUNS][256];
    const char   *words;

    sample_dataset_init(&job->set, &sample, N, FEATURES, CLASSES, setup->several, setup->sparse);
    job->way = (enum slices)(number / 2 % SLICES);
    for (int i = 0; i < RUNS; i++) {
        snprintf(settings[i], sizeof settings[i], "model=%s %s %s", model, setup->settings, more[i]);
        train_runs_add(job, (struct run){ .settings = settings[i],
                                          .evaluates = i == OBSERVED,
                                          .sets_state = i == RESTORED || i == RESTORED_FOUR,
                                          .from = i == RESUMED ? RESTORED : 0,
                                          .gives_up = i == GIVES_UP ? 3 : 0 });
    }
    words = train_runs_play(job, n_ranks, partition, cover);
    if (words == NULL) words = train_runs_judge(job, n_ranks, model, setup->settings);
    ok_or(words == NULL, words, "%s on %d ranks, %s, %s, %s, slices %s, %s: bitwise identical where they should be",
          model, n_ranks, train_runs_shared, partition, cover, slices_name[job->way], setup->settings);
    train_runs_free(job);
}

/* Ranks share columns, or groups of ranks do, which have stale boundary rows too. Rows of 2 bits alone are too
 * coarse. */
static void test_shared_columns(int number)
{
    static const char *const models[] = { "sage", "gcn", "gin", "sgc", "appnp" };
    static const int32_t     ranks[] = { 3, 4, 2, 7 };

    train_runs_shared = "parallel=feature";
    for (size_t i = 0; i < sizeof setups / sizeof *setups; i++, number++)
        if (i != TWO_BITS) test_setup(number, models[i % 5], ranks[i % 4], &setups[i]);
    for (size_t i = 0; i < sizeof extrema / sizeof *extrema; i++) test_setup(number++, "sage", 2 + (int)i, &extrema[i]);
    train_runs_columns = "feature.graph=stream";
    for (size_t i = 0; i < 4; i++) test_setup(number++, models[i + 1], 5 - (int)i, &setups[i]);
    train_runs_shared = "parallel=grid:2";
    train_runs_columns = "feature.graph=auto";
    for (size_t i = 0; i < sizeof setups / sizeof *setups; i++, number++)
        if (i != TWO_BITS) test_setup(number, models[(i + 1) % 5], i % 2 ? 4 : 6, &setups[i]);
    for (size_t i = 0; i < sizeof extrema / sizeof *extrema; i++)
        test_setup(number++, "sage", i % 2 ? 6 : 4, &extrema[i]);
}

int main(void)
{
    static const char *const models[] = { "sage", "gcn", "gin", "gat", "sgc", "appnp", "mlp" };
    static const int32_t     ranks[] = { 3, 1, 4, 2, 7 };
    int                      number = 43;

    alarm(300); /* it is slow under a sanitizer */
    for (int m = 0; m < 7; m++)
        for (size_t i = 0; i < sizeof setups / sizeof *setups; i++, number++)
            if (m < 6 || i % 3 == 0) test_setup(number, models[m], ranks[number % 5], &setups[i]);
    for (size_t i = 0; i < sizeof extrema / sizeof *extrema; i++) test_setup(number++, "sage", 2 + (int)i, &extrema[i]);
    test_shared_columns(number);
    return done();
}
