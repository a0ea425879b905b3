/* Checks the warnings about options that have no effect together with the others. The log must have exactly one warning
 * for each of them, which says why, in one process and over ranks. An option that has an effect, or its default value,
 * must have none.
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness/hosts.h"
#include "harness/tap.h"
#include "oracle/sample.h"

#include <string.h>
#include <unistd.h>

/* Options separated by blanks, and the only warning that they may cause; NULL for none. */
struct effect {
    int32_t     n_ranks;
    const char *settings, *warning;
};

/* The data set with which the ranks of a run make trainers. */
struct job {
    const struct sample_dataset *set;
    const char                  *settings;
};

#define IDLE "which has no effect "

static const struct effect effects[] = {
    { 1, "model=sage heads=2", "option 'heads' is 2, " IDLE "because option 'model' is sage and not gat" },
    { 1, "model=gat heads=2", NULL },
    { 1, "model=sage attention_dropout=0.5",
      "option 'attention_dropout' is 0.5, " IDLE "because option 'model' is sage and not gat" },
    { 1, "model=sage edge_features=values",
      "option 'edge_features' is values, " IDLE "because option 'model' is sage and not gat" },
    { 1, "layers=2 residual=yes", "option 'residual' is yes, " IDLE "because option 'layers' is 2" },
    { 1, "layers=2 jumping=cat", "option 'jumping' is cat, " IDLE "because option 'layers' is 2" },
    { 1, "layers=1 activation=elu", "option 'activation' is elu, " IDLE "because option 'layers' is 1" },
    { 1, "dropout=0 norm_order=after_dropout",
      "option 'norm_order' is after_dropout, " IDLE "because option 'dropout' is 0" },
    { 1, "dropout=0.1 activation=elu norm_order=after_dropout", NULL },
    { 1, "norm=none norm_order=after_dropout",
      "option 'norm_order' is after_dropout, " IDLE "because option 'norm' is none and option 'activation' is relu" },
    { 1, "norm=none activation=elu norm_order=after_dropout", NULL },
    { 1, "activation=relu norm_order=after_dropout", NULL },
    { 1, "model=gin aggregator=sum", "option 'aggregator' is sum, " IDLE "because option 'model' is gin and not sage" },
    { 1, "model=gin propagation=3",
      "option 'propagation' is 3, " IDLE "because option 'model' is gin and not sgc or appnp" },
    { 1, "model=sage teleport=0.3", "option 'teleport' is 0.3, " IDLE "because option 'model' is sage and not appnp" },
    { 1, "model=sgc teleport=0.3", "option 'teleport' is 0.3, " IDLE "because option 'model' is sgc and not appnp" },
    { 1, "model=appnp teleport=0.3 propagation=2", NULL },
    { 2, "model=sage feature.graph=stream",
      "option 'feature.graph' is stream, " IDLE
      "because option 'parallel' is partition and not feature, grid or auto" },
    { 2, "model=sage parallel=feature feature.graph=stream", NULL },
    { 1, "loss=softmax:balanced:0.1", NULL },
    { 1, "weight_decay=0.1:first", NULL },
    { 1, "epochs=0 lr=0.1", "option 'lr' is 0.1, " IDLE "because option 'epochs' is 0" },
    { 1, "epochs=0 optimizer=sgd", "option 'optimizer' is sgd, " IDLE "because option 'epochs' is 0" },
    { 1, "epochs=0 weight_decay=0.1", "option 'weight_decay' is 0.1, " IDLE "because option 'epochs' is 0" },
    { 1, "epochs=0 patience=3", "option 'patience' is 3, " IDLE "because option 'epochs' is 0" },
    { 1, "epochs=0 clip_norm=3", "option 'clip_norm' is 3, " IDLE "because option 'epochs' is 0" },
    { 1, "graphblas.path=/nowhere/x.so",
      "option 'graphblas.path' is /nowhere/x.so, " IDLE "because option 'mxm.kernel' is auto and not graphblas" },
    { 1, "mxm.kernel=graphblas graphblas.path=/nowhere/x.so", NULL },
    { 1, "partition=metis:3:60", "option 'partition' is metis:3:60, " IDLE "in a single process" },
    { 1, "batch_size=4 sampler=cluster partition=stream:3:60", NULL },
    { 1, "layers=1 hidden=16", "option 'hidden' is 16, " IDLE "because option 'layers' is 1" },
    { 1, "layers=1 norm=none", "option 'norm' is none, " IDLE "because option 'layers' is 1" },
    { 1, "layers=1 dropout=0.2", "option 'dropout' is 0.2, " IDLE "because option 'layers' is 1" },
    { 1, "layers=1 dropout=0.5", NULL },
    { 1, "model=mlp symmetrize=yes", "option 'symmetrize' is yes, " IDLE "because option 'model' is mlp" },
    { 1, "model=mlp self_loops=yes", "option 'self_loops' is yes, " IDLE "because option 'model' is mlp" },
    { 1, "model=mlp order=rcm", "option 'order' is rcm, " IDLE "because option 'model' is mlp" },
    { 1, "model=gat heads=1 row_masks=no", "option 'row_masks' is no, " IDLE "because option 'model' is gat" },
    { 1, "aggregator=max row_masks=no", NULL },
    { 2, "aggregator=max row_masks=no",
      "option 'row_masks' is no, " IDLE
      "because option 'model' is sage and option 'aggregator' is max and there are several processes and option "
      "'parallel' is partition and not feature" },
    { 2, "aggregator=max row_masks=no parallel=feature", NULL },
    { 2, "aggregator=max row_masks=no parallel=grid",
      "option 'row_masks' is no, " IDLE
      "because option 'model' is sage and option 'aggregator' is max and there are several processes and option "
      "'parallel' is grid and not feature" },
    { 2, "model=gcn halo.cover=pre parallel=feature",
      "option 'halo.cover' is pre, " IDLE "because option 'parallel' is feature" },
    { 2, "model=gcn halo.cover=pre parallel=grid", NULL },
    { 1, "aggregator=min row_masks=no", NULL },
    { 2, "aggregator=min row_masks=no",
      "option 'row_masks' is no, " IDLE
      "because option 'model' is sage and option 'aggregator' is min and there are several processes and option "
      "'parallel' is partition and not feature" },
    { 2, "aggregator=min halo.cover=pre",
      "option 'halo.cover' is pre, " IDLE "because option 'model' is sage and option 'aggregator' is min" },
    { 1, "aggregator=min model.type=bf16",
      "option 'model.type' is bf16, " IDLE "because option 'model' is sage and option 'aggregator' is min" },
    { 2, "model=gcn aggregator=max row_masks=no",
      "option 'aggregator' is max, " IDLE "because option 'model' is gcn and not sage" },
    { 2, "model=gcn aggregator=max halo.cover=pre",
      "option 'aggregator' is max, " IDLE "because option 'model' is gcn and not sage" },
    { 1, "norm=batch row_masks=no", NULL },
    { 1, "model=sgc reuse_input=no",
      "option 'reuse_input' is no, " IDLE "because option 'model' is sgc and not sage, gcn or gin" },
    { 1, "reuse_input=no input_dropout=0.5",
      "option 'reuse_input' is no, " IDLE "because option 'input_dropout' is 0.5 and not 0" },
    { 1, "partition=hash", "option 'partition' is hash, " IDLE "in a single process" },
    { 1, "halo.codec=q2", "option 'halo.codec' is q2, " IDLE "in a single process" },
    { 1, "halo.timeout=60", "option 'halo.timeout' is 60, " IDLE "in a single process" },
    { 2, "partition=hash halo.codec=q2 halo.timeout=60", NULL },
    { 2, "partition=hash parallel=feature",
      "option 'partition' is hash, " IDLE "because all ranks share the columns of one part: its vertices are dealt to "
      "the ranks in turn, with every value except given" },
    { 2, "partition=given parallel=feature", NULL },
    { 2, "partition.file=/nowhere/owners parallel=feature",
      "option 'partition.file' is /nowhere/owners, " IDLE "because option 'parallel' is feature" },
    { 2, "partition=given:3 parallel=grid", NULL },
    { 2, "partition.file=/nowhere/owners parallel=grid:2",
      "option 'partition.file' is /nowhere/owners, " IDLE "because all ranks share the columns of one part" },
    { 2, "model=mlp halo.codec=q2", "option 'halo.codec' is q2, " IDLE "because option 'model' is mlp" },
    { 2, "model=mlp halo.staleness=1", "option 'halo.staleness' is 1, " IDLE "because option 'model' is mlp" },
    { 2, "model=mlp halo.cover=pre", "option 'halo.cover' is pre, " IDLE "because option 'model' is mlp" },
    { 2, "model=gat heads=1 halo.cover=pre", "option 'halo.cover' is pre, " IDLE "because option 'model' is gat" },
    { 2, "model=gcn halo.cover=pre", NULL },
    { 2, "halo.staleness=1:3:0", NULL },
    { 2, "halo.budget=error:0.1",
      "option 'halo.budget' is error:0.1, " IDLE "because option 'halo.codec' is f32 and not adaptive" },
    { 2, "halo.budget=error:0.1:5 halo.codec=f32/adaptive", NULL },
    { 2, "halo.rounding=nearest", "option 'halo.rounding' is nearest, " IDLE "because option 'halo.codec' is f32" },
    { 2, "halo.rounding=nearest halo.codec=q1:rotated",
      "option 'halo.rounding' is nearest, " IDLE "because option 'halo.codec' is q1:rotated" },
    { 2, "halo.rounding=nearest halo.codec=q1:rotated/q2", NULL },
    { 2, "halo.nonfinite=refuse halo.codec=bf16",
      "option 'halo.nonfinite' is refuse, " IDLE "because option 'halo.codec' is bf16" },
    { 2, "halo.error_statistics=exact",
      "option 'halo.error_statistics' is exact, " IDLE "because option 'halo.codec' is f32" },
};

/* Make two trainers in the same context. The second one must not warn again. */
static int32_t create_twice(struct host *host)
{
    const struct job *job = host->all->arg;
    int32_t           rc = GRAFT_OK;

    host_set_all(host->api, job->settings);
    for (int i = 0; i < 2 && rc == GRAFT_OK; i++) {
        graft_trainer      *alone = NULL;
        struct host_trainer t;

        if (host->n_ranks == 1) {
            rc = host->train->create(host->api->context, &job->set->dataset, &alone, &host->error);
            host->train->destroy(alone);
        } else {
            rc = host_trainer_create(host, &job->set->dataset, SLICES_EVEN, &t);
            host_trainer_destroy(host, &t);
        }
    }
    return rc;
}

static void test_effect(const struct sample_dataset *set, const struct effect *effect)
{
    /* The plain loops are chosen, because the log warns where there is no BLAS. */
    static const char *const settings[] = { "threads=1", "dense.module=reference", NULL };
    static struct hosts      hosts;
    struct job               job = { set, effect->settings };
    char                     expected[256] = "";
    const char              *fault;

    if (effect->warning != NULL) snprintf(expected, sizeof expected, "%s\n", effect->warning);
    hosts_run(&hosts, effect->n_ranks, settings, create_twice, &job);
    fault = hosts_fault(&hosts);
    for (int32_t i = 0; i < effect->n_ranks && fault == NULL; i++)
        if (strcmp(hosts.at[i].warnings, i == 0 ? expected : "") != 0) fault = hosts.at[i].warnings;
    ok_or(fault == NULL, fault, "%d rank%s: %s: %s", effect->n_ranks, effect->n_ranks > 1 ? "s" : "", effect->settings,
          effect->warning != NULL ? effect->warning : "no warning");
}

int main(void)
{
    struct sample         sample = { 6 };
    struct sample_dataset set;

    alarm(100);
    sample_dataset_init(&set, &sample, 30, 5, 3, 0, 0);
    for (size_t i = 0; i < sizeof effects / sizeof *effects; i++) test_effect(&set, &effects[i]);
    sample_dataset_fini(&set);
    return done();
}
