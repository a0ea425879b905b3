/* Checks that ranks which share the columns of sums have the results of one process, for every model that sums and
 * every data set. All ranks share them with parallel=feature, and groups of ranks with parallel=grid.
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness/tap.h"
#include "harness/train_cases.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Tolerance for bf16 after a few small steps. An element in the wrong place would be much further off. */
#define ENCODED_TOLERANCE 0.02

/* With quantized rows results must be near those of one process. */
static void test_encoded(const char *model, int32_t n_ranks)
{
    static const struct shape shape = { 300, 0 };
    struct job               *job = calloc(1, sizeof *job);
    struct sample             sample = { 29 };
    struct settings           settings;
    const char               *words;
    double                    worst;

    train_job_init(job, &sample, &shape);
    train_settings_init(&settings, model, "hash", "hybrid",
                        "dropout=0 norm=none halo.codec=bf16 optimizer=sgd lr=0.05");
    words = train_run_case(job, n_ranks, &settings);
    worst = train_worst_of(job);
    ok_or(words == NULL && worst <= ENCODED_TOLERANCE, words, "%s on %d ranks, %s, with encoded rows: %.2g off", model,
          n_ranks, train_shared, worst);
    train_job_fini(job);
    free(job);
}

/* Graphs with vertices without neighbours must have the results of one process. \return Bytes of a step. */
static double test_lone(const char *model, int32_t n_ranks, const struct shape *shape, const char *more)
{
    struct job     *job = calloc(1, sizeof *job);
    struct sample   sample = { 31 };
    struct settings settings;
    const char     *words;
    double          worst, bytes;

    train_job_init(job, &sample, shape);
    train_settings_init(&settings, model, "hash", "hybrid", more);
    words = train_run_case(job, n_ranks, &settings);
    worst = train_worst_of(job);
    bytes = (double)job->at[0].traffic.halo_bytes_per_epoch;
    ok_or(words == NULL && worst <= 1e-4, words, "%s on %d ranks, %s %s, %d: %.2g off", model, n_ranks, train_shared,
          more, shape->is, worst);
    train_job_fini(job);
    free(job);
    return bytes;
}

static void test_all_lone(void)
{
    static const char *const shared[] = { "parallel=feature", "parallel=feature feature.graph=stream",
                                          "parallel=grid" };

    static const struct shape lone = { 300, LONE }, few = { 300, LONE | FEW }, weighted = { 300, LONE | WEIGHTED };
    static const char *const  all_rows = "dropout=0 row_masks=no reuse_input=no";
    double                    bytes[2];

    for (int i = 0; i < 3; i++) {
        train_shared = shared[i];
        test_lone("gcn", 4, &weighted, "dropout=0.2 edge_features=values");
        test_lone("sage", 4, &weighted, "dropout=0 edge_features=values row_masks=no reuse_input=no");
        test_lone("gin", 6, &few, "dropout=0.1 row_masks=yes");
        test_lone("sage", 8, &lone, "dropout=0.2 self_loops=yes recompute=yes reuse_input=no");
    }
    train_shared = "parallel=feature";
    test_lone("sage", 3, &lone, "dropout=0.2 aggregator=max reuse_input=no row_masks=no");
    test_lone("sage", 3, &few, "dropout=0 aggregator=max row_masks=yes");
    test_lone("sage", 4, &lone, "dropout=0.2 aggregator=min reuse_input=no row_masks=no");
    test_lone("sage", 4, &few, "dropout=0 aggregator=min row_masks=yes");
    /* A quarter of the vertices must not be in any message. */
    bytes[0] = test_lone("sage", 4, &(struct shape){ 4000, LONE }, all_rows);
    bytes[1] = test_lone("sage", 4, &(struct shape){ 4000, 0 }, all_rows);
    ok(bytes[0] > 0.74 * bytes[1] && bytes[0] < 0.77 * bytes[1],
       "rows of vertices without neighbours are not sent: %.0f of %.0f bytes", bytes[0], bytes[1]);
}

int main(void)
{
    /* With 7 and 8 ranks some slices of 4 classes have no columns. 5 ranks cannot form a grid of several columns. */
    static const char *const models[] = { "sage", "gcn", "gin" };
    static const int32_t     feature[] = { 2, 3, 4, 7, 8 }, grid[] = { 4, 8, 6, 2, 5 };

    alarm(600); /* it is slow under a sanitizer */
    train_shared = "parallel=feature";
    train_test_all(models, 3, train_setups, TRAIN_SETUPS, feature);
    train_test_all(models, 3, train_prepared, TRAIN_PREPARED, feature);
    train_test_sums(feature);
    train_test_extrema("max", feature);
    train_test_extrema("min", feature);
    test_encoded("gcn", 4);
    test_encoded("sage", 7);
    train_shared = "parallel=feature feature.graph=stream";
    train_test_all(models, 1, train_setups, TRAIN_SETUPS, feature);
    train_test_all(models, 3, train_prepared, TRAIN_PREPARED, feature);
    train_test_sums(feature);
    train_test_extrema("max", feature);
    train_test_extrema("min", feature + 1);
    test_encoded("gcn", 7);
    train_shared = "parallel=grid";
    train_test_all(models, 3, train_setups, TRAIN_SETUPS, grid);
    train_test_all(models, 3, train_prepared, TRAIN_PREPARED, grid);
    train_test_extrema("max", grid);
    train_test_extrema("min", grid + 1);
    test_encoded("gcn", 6);
    train_shared = "parallel=grid feature.graph=stream";
    train_test_all(models, 1, train_prepared, TRAIN_PREPARED, grid);
    train_test_extrema("max", grid);
    train_test_extrema("min", grid);
    test_encoded("sage", 8);
    train_shared = "parallel=grid:4";
    train_test_all(models, 1, train_prepared, TRAIN_PREPARED, (const int32_t[]){ 4, 8, 4, 8, 8 });
    train_shared = "parallel=grid";
    train_rounds = ":2"; /* also of slices, whose vertices are not dealt out */
    train_test_all(models, 1, train_setups, 4, grid);
    test_all_lone();
    return done();
}
