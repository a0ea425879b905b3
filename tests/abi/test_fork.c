/* Checks fork(). In the child process every call must report it at once and a new context must work; in the parent
 * everything must continue to work.
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness/child.h"
#include "harness/tap.h"
#include "scenario.h"

static struct strict_host host;
static struct scene       scene;
static struct subject     s;
static graft_matrix      *matrix, *graph;
static graft_trainer     *trainer;
static graft_data        *data;
static graft_sampler     *sampler;
static graft_error        error = { .size = sizeof error };

static void forked(const char *call, int32_t rc)
{
    if (rc != GRAFT_ERR_FORKED) watch_blame("%s returned %d, expected %d", call, rc, GRAFT_ERR_FORKED);
    else if (strstr(error.message, "fork") == NULL) watch_blame("%s: %s", call, error.message);
}

#define FORKED(call) forked(#call, call)

static const char *all_calls(const void *arg)
{
    graft_option       option = GRAFT_INIT(graft_option);
    graft_module_entry entry = GRAFT_INIT(graft_module_entry);
    graft_mxm_args     args = GRAFT_INIT(graft_mxm_args);
    graft_epoch        epoch = GRAFT_INIT(graft_epoch);
    graft_metrics      metrics = GRAFT_INIT(graft_metrics);
    graft_state_item   item = GRAFT_INIT(graft_state_item);
    graft_matrix      *new_matrix = NULL;
    graft_trainer     *new_trainer = NULL;
    graft_data        *new_data = NULL;
    graft_sampler     *new_sampler = NULL;
    graft_sample_batch batch = GRAFT_INIT(graft_sample_batch);
    graft_sample_block block = GRAFT_INIT(graft_sample_block);
    const int64_t      seed = 1;
    int32_t            made;
    int64_t            order[64];
    char               text[64];

    (void)arg;
    args.a = matrix;
    FORKED(s.api.set(s.context, "lr", "1", &error));
    FORKED(s.api.option_info(s.context, 0, &option, &error));
    FORKED(s.api.load_module(s.context, "/x.so", &error));
    FORKED(s.api.module_info(s.context, 0, &entry, &error));
    FORKED(s.mxm->matrix_create(s.context, &scene.a.csr, 0, &new_matrix, &error));
    FORKED(s.mxm->matrix_transpose(s.context, matrix, &new_matrix, &error));
    FORKED(s.mxm->matrix_order(s.context, matrix, "rcm", order, &error));
    FORKED(s.mxm->matrix_permute(s.context, matrix, order, &new_matrix, &error));
    FORKED(s.mxm->convert(s.context, NULL, NULL, &error));
    FORKED(s.edge->gather_rows(s.context, NULL, NULL, NULL, 0, &error));
    FORKED(s.edge->index_add(s.context, NULL, NULL, NULL, 0, &error));
    FORKED(s.edge->index_matrix(s.context, NULL, 0, &new_matrix, &error));
    FORKED(s.edge->sddmm(s.context, matrix, NULL, NULL, NULL, 0, &error));
    FORKED(s.edge->softmax(s.context, matrix, NULL, NULL, 0, &error));
    FORKED(s.edge->softmax_backward(s.context, matrix, NULL, NULL, NULL, 0, &error));
    FORKED(s.edge->mxm(s.context, matrix, 0, NULL, NULL, NULL, 0, &error));
    FORKED(s.mxm->run(s.context, &args, &error));
    FORKED(s.mxm->explain(s.context, NULL, text, sizeof text, &error));
    FORKED(s.data->open(s.context, scene.dense.path, &new_data, &error));
    FORKED(s.train->create(s.context, &scene.set[0].dataset, &new_trainer, &error));
    FORKED(s.train->epoch(trainer, &epoch, &error));
    FORKED(s.train->evaluate(trainer, 0, &metrics, &error));
    FORKED(s.train->predict(trainer, 0, NULL, NULL, &error));
    FORKED(s.train->state_item(trainer, 0, &item, &error));
    FORKED(s.train->state_set(trainer, &item, &error));
    FORKED(s.train->explain(trainer, text, sizeof text, &error));
    FORKED(s.samples->create(s.context, matrix, &seed, 1, &new_sampler, &error));
    FORKED(s.samples->begin(sampler, 0, 0, NULL, &error));
    FORKED(s.samples->next(sampler, &batch, &error));
    FORKED(s.samples->sample(sampler, &seed, 1, 0, &batch, &error));
    FORKED(s.samples->block(sampler, 0, &block, &error));
    FORKED(s.samples->prefetch(sampler, &made, &error));
    FORKED(s.samples->explain(sampler, text, sizeof text, &error));
    s.samples->destroy(sampler);
    s.train->destroy(trainer);
    s.data->close(data);
    s.mxm->matrix_destroy(matrix);
    s.api.close(s.context);
    return watch.faults > 0 ? watch.fault : NULL;
}

static const char *own_context(const void *arg)
{
    const int32_t rc = scenario_play(arg, &scene, &error);

    if (rc < 0) return error.message;
    return watch.faults > 0 ? watch.fault : NULL;
}

static int32_t open_all(void)
{
    const int64_t seeds[] = { 3, 1, 2 };
    int32_t       rc = subject_open(&s, &error);

    if (rc == GRAFT_OK) rc = s.api.set(s.context, "threads", "2", &error);
    if (rc == GRAFT_OK) rc = s.mxm->matrix_create(s.context, &scene.a.csr, 0, &matrix, &error);
    if (rc == GRAFT_OK) rc = s.data->open(s.context, scene.dense.path, &data, &error);
    if (rc == GRAFT_OK) rc = s.train->create(s.context, &scene.set[0].dataset, &trainer, &error);
    if (rc == GRAFT_OK) rc = s.mxm->matrix_create(s.context, scene.set[0].dataset.graph, 0, &graph, &error);
    if (rc == GRAFT_OK) rc = s.samples->create(s.context, graph, seeds, 3, &sampler, &error);
    return rc;
}

static const struct scenario *find_scenario(const char *name)
{
    const struct scenario *found = scenarios;

    while (strcmp(found->name, name) != 0) found++;
    return found;
}

int main(void)
{
    const struct scenario *two_threads = find_scenario("sage");
    graft_epoch            epoch = GRAFT_INIT(graft_epoch);
    graft_sample_batch     batch = GRAFT_INIT(graft_sample_batch);

    scene_init(&scene);
    strict_host_init(&host);
    watch_reset(&host);
    ok_fault("a child of a process that has not used the library can", in_child(own_context, two_threads));
    if (!ok(open_all() == GRAFT_OK, "objects are made")) return done();
    ok_fault("every call in the child says that it was forked, and none hangs", in_child(all_calls, NULL));
    ok(s.train->epoch(trainer, &epoch, &error) == GRAFT_OK, "the parent trains, on two threads");
    ok_fault("after that, too", in_child(all_calls, NULL));
    /* The threads that OpenMP had before fork() are missing in the child, which must not wait for them. */
    ok_fault("a context of the child's own trains, asked for two threads", in_child(own_context, two_threads));
    ok(s.train->epoch(trainer, &epoch, &error) == GRAFT_OK && epoch.epoch == 2, "the parent goes on");
    ok(s.samples->next(sampler, &batch, &error) == GRAFT_OK && batch.n_seeds == 3, "and samples a batch");
    s.samples->destroy(sampler);
    s.mxm->matrix_destroy(graph);
    s.train->destroy(trainer);
    s.data->close(data);
    s.mxm->matrix_destroy(matrix);
    subject_close(&s);
    ok_or(watch.faults == 0 && host.live_bytes == 0, watch.fault, "and closes");
    scene_fini(&scene);
    return done();
}
