/* Checks what graft.sample/1 must refuse. Each call gets arguments that it cannot use, and must return the status that
 * the header documents.
 * SPDX-License-Identifier: Apache-2.0 */
#include "arguments.h"

static const int64_t good_seeds[] = { 3, 0, 7, 5 };

/* Set an option; the library must accept it. */
static void set_to(const char *key, const char *value)
{
    REFUSED(GRAFT_OK, s.api.set(s.context, key, value, &error));
}

static graft_matrix *matrix_of(const graft_csr *csr)
{
    graft_matrix *matrix = NULL;

    REFUSED(GRAFT_OK, s.mxm->matrix_create(s.context, csr, 0, &matrix, &error));
    return matrix;
}

static graft_sampler *sampler_of(graft_matrix *graph)
{
    graft_sampler *sampler = NULL;

    REFUSED(GRAFT_OK, s.samples->create(s.context, graph, good_seeds, 4, &sampler, &error));
    return sampler;
}

static const char *sampler_create_calls(const void *arg)
{
    static const int64_t outside[] = { 3, N }, negative[] = { -1 }, twice[] = { 4, 1, 4 };
    graft_csr            wide = *set.dataset.graph;
    graft_matrix        *graph = matrix_of(set.dataset.graph), *other;
    graft_sampler       *made = NULL;

    (void)arg;
    REFUSED(GRAFT_ERR_ARG, s.samples->create(NULL, graph, good_seeds, 4, &made, &error));
    REFUSED(GRAFT_ERR_ARG, s.samples->create(s.context, NULL, good_seeds, 4, &made, &error));
    REFUSED(GRAFT_ERR_ARG, s.samples->create(s.context, graph, good_seeds, 4, NULL, &error));
    REFUSED(GRAFT_ERR_ARG, s.samples->create(s.context, graph, NULL, 4, &made, &error));
    REFUSED(GRAFT_ERR_ARG, s.samples->create(s.context, graph, good_seeds, -1, &made, &error));
    REFUSED(GRAFT_ERR_ARG, s.samples->create(s.context, graph, NULL, INT64_MIN, &made, NULL));
    REFUSED(GRAFT_ERR_ARG, s.samples->create(s.context, graph, outside, 2, &made, &error));
    REFUSED(GRAFT_ERR_ARG, s.samples->create(s.context, graph, negative, 1, &made, &error));
    REFUSED(GRAFT_ERR_ARG, s.samples->create(s.context, graph, twice, 3, &made, &error));
    REFUSED(GRAFT_ERR_ARG, s.samples->create(s.context, graph, good_seeds, INT64_MAX, &made, &error));
    REFUSED(GRAFT_ERR_ARG, s.samples->create(s.context, graph, good_seeds, N + 1, &made, &error));
    wide.n_cols++;
    other = matrix_of(&wide);
    REFUSED(GRAFT_ERR_ARG, s.samples->create(s.context, other, good_seeds, 4, &made, &error));
    s.mxm->matrix_destroy(other);
    REFUSED(GRAFT_ERR_STATE, s.samples->create(s.context, other, good_seeds, 4, &made, &error));
    set_to("layers", "2");
    set_to("fanout", "3,2,1");
    REFUSED(GRAFT_ERR_OPTION, s.samples->create(s.context, graph, good_seeds, 4, &made, &error));
    set_to("fanout", "3,2");
    set_to("batch_size", "5");
    REFUSED(GRAFT_ERR_OPTION, s.samples->create(s.context, graph, good_seeds, 4, &made, &error));
    set_to("sampler", "saint");
    REFUSED(GRAFT_ERR_OPTION, s.samples->create(s.context, graph, good_seeds, 4, &made, &error));
    set_to("sampler", "cluster");
    REFUSED(GRAFT_ERR_OPTION, s.samples->create(s.context, graph, good_seeds, 4, &made, &error));
    set_to("sampler", "neighbour");
    set_to("batch_size", "0");
    set_to("sample.weights", "edge");
    if (set.dataset.graph->values == NULL)
        REFUSED(GRAFT_ERR_OPTION, s.samples->create(s.context, graph, good_seeds, 4, &made, &error));
    s.samples->destroy(NULL);
    s.mxm->matrix_destroy(graph);
    return end_of_group();
}

static const char *batch_calls(const void *arg)
{
    static const int64_t outside[] = { N }, twice[] = { 2, 2 };
    graft_matrix        *graph = matrix_of(set.dataset.graph);
    graft_sampler       *sampler;
    graft_sample_batch   batch = GRAFT_INIT(graft_sample_batch), sizeless = { 0 };
    graft_sample_block   block = GRAFT_INIT(graft_sample_block), blank = { 0 };
    int64_t              n_batches = 0;
    int32_t              made = 7;
    char                 text[64];

    (void)arg;
    set_to("layers", "2");
    set_to("batch_size", "3");
    sampler = sampler_of(graph);
    REFUSED(GRAFT_ERR_STATE, s.samples->block(sampler, 0, &block, &error));
    REFUSED(GRAFT_ERR_ARG, s.samples->begin(NULL, 0, 0, &n_batches, &error));
    REFUSED(GRAFT_ERR_ARG, s.samples->begin(sampler, -1, 0, &n_batches, &error));
    REFUSED(GRAFT_ERR_ARG, s.samples->begin(sampler, 0, -1, &n_batches, &error));
    REFUSED(GRAFT_ERR_ARG, s.samples->begin(sampler, 0, 3, &n_batches, &error));
    REFUSED(GRAFT_ERR_ARG, s.samples->next(NULL, &batch, &error));
    REFUSED(GRAFT_ERR_ARG, s.samples->next(sampler, NULL, &error));
    REFUSED(GRAFT_ERR_ARG, s.samples->next(sampler, &sizeless, &error));
    REFUSED(GRAFT_ERR_ARG, s.samples->prefetch(NULL, &made, &error));
    REFUSED(GRAFT_ERR_ARG, s.samples->prefetch(sampler, NULL, &error));
    REFUSED(GRAFT_ERR_ARG, s.samples->explain(NULL, text, sizeof text, &error));
    REFUSED(GRAFT_ERR_ARG, s.samples->explain(sampler, NULL, sizeof text, &error));
    REFUSED(GRAFT_ERR_ARG, s.samples->explain(sampler, text, 0, &error));
    REFUSED(GRAFT_OK, s.samples->next(sampler, &batch, &error));
    if (batch.index != 0) watch_blame("a refused call has taken batch 0");
    REFUSED(GRAFT_ERR_ARG, s.samples->block(NULL, 0, &block, &error));
    REFUSED(GRAFT_ERR_ARG, s.samples->block(sampler, -1, &block, &error));
    REFUSED(GRAFT_ERR_ARG, s.samples->block(sampler, 2, &block, &error));
    REFUSED(GRAFT_ERR_ARG, s.samples->block(sampler, 0, NULL, &error));
    REFUSED(GRAFT_ERR_ARG, s.samples->block(sampler, 0, &blank, &error));
    REFUSED(GRAFT_ERR_ARG, s.samples->sample(NULL, good_seeds, 1, 0, &batch, &error));
    REFUSED(GRAFT_ERR_ARG, s.samples->sample(sampler, NULL, 1, 0, &batch, &error));
    REFUSED(GRAFT_ERR_ARG, s.samples->sample(sampler, good_seeds, 0, 0, &batch, &error));
    REFUSED(GRAFT_ERR_ARG, s.samples->sample(sampler, good_seeds, -1, 0, &batch, &error));
    REFUSED(GRAFT_ERR_ARG, s.samples->sample(sampler, good_seeds, INT64_MAX, 0, &batch, &error));
    REFUSED(GRAFT_ERR_ARG, s.samples->sample(sampler, good_seeds, 1, 2, &batch, &error));
    REFUSED(GRAFT_ERR_ARG, s.samples->sample(sampler, good_seeds, 1, 0, NULL, &error));
    REFUSED(GRAFT_ERR_ARG, s.samples->sample(sampler, good_seeds, 1, 0, &sizeless, &error));
    REFUSED(GRAFT_ERR_ARG, s.samples->sample(sampler, outside, 1, 0, &batch, &error));
    REFUSED(GRAFT_ERR_ARG, s.samples->sample(sampler, twice, 2, 0, &batch, &error));
    REFUSED(GRAFT_OK, s.samples->next(sampler, &batch, &error));
    if (batch.index != 1 || batch.n_seeds != 1) watch_blame("sample() has changed the epoch");
    REFUSED(GRAFT_ERR_NOT_FOUND, s.samples->next(sampler, &batch, &error));
    REFUSED(GRAFT_ERR_STATE, s.samples->block(sampler, 0, &block, &error));
    REFUSED(GRAFT_OK, s.samples->begin(sampler, 1, 2, NULL, &error));
    REFUSED(GRAFT_ERR_NOT_FOUND, s.samples->next(sampler, &batch, &error));
    REFUSED(GRAFT_OK, s.samples->begin(sampler, INT64_MAX, 1, &n_batches, &error));
    REFUSED(GRAFT_OK, s.samples->next(sampler, &batch, &error));
    REFUSED(GRAFT_ERR_STATE, s.api.set(s.context, "batch_size", "2", &error)); /* the sampler has another batch size */
    s.samples->destroy(sampler);
    s.mxm->matrix_destroy(graph);
    return end_of_group();
}

/* This sampler makes batches for given seeds only. */
static const char *no_seed_calls(const void *arg)
{
    graft_matrix      *graph = matrix_of(set.dataset.graph);
    graft_sampler     *sampler = NULL;
    graft_sample_batch batch = GRAFT_INIT(graft_sample_batch);
    int64_t            n_batches = 7;
    int32_t            made = 7;

    (void)arg;
    set_to("batch_size", "100");
    REFUSED(GRAFT_OK, s.samples->create(s.context, graph, NULL, 0, &sampler, &error));
    REFUSED(GRAFT_OK, s.samples->begin(sampler, 3, 0, &n_batches, &error));
    REFUSED(GRAFT_ERR_ARG, s.samples->begin(sampler, 3, 1, &n_batches, &error));
    REFUSED(GRAFT_ERR_NOT_FOUND, s.samples->next(sampler, &batch, &error));
    REFUSED(GRAFT_OK, s.samples->prefetch(sampler, &made, &error));
    if (n_batches != 0 || made != 0) watch_blame("batches of no seeds");
    REFUSED(GRAFT_OK, s.samples->sample(sampler, good_seeds, 4, 0, &batch, &error));
    if (batch.index != -1 || batch.epoch != 3 || batch.n_seeds != 4) watch_blame("sample() says other numbers");
    s.samples->destroy(sampler);
    s.mxm->matrix_destroy(graph);
    return end_of_group();
}

/* The graph is destroyed before the sampler, or its values are replaced. */
static const char *lost_graph_calls(const void *arg)
{
    static float       values[2][N * N];
    graft_csr          csr = *set.dataset.graph;
    graft_sampler     *sampler;
    graft_matrix      *graph;
    graft_sample_batch batch = GRAFT_INIT(graft_sample_batch);
    int32_t            made;

    (void)arg;
    for (int i = 0; i < N * N; i++) values[0][i] = values[1][i] = 1;
    csr.values = values[0];
    csr.value_type = GRAFT_F32;
    graph = matrix_of(&csr);
    sampler = sampler_of(graph);
    REFUSED(GRAFT_OK, s.mxm->matrix_update_values(s.context, graph, values[1], NULL, &error));
    REFUSED(GRAFT_OK, s.samples->next(sampler, &batch, &error)); /* the sampler draws without using values */
    s.samples->destroy(sampler);
    set_to("sample.weights", "edge");
    sampler = sampler_of(graph);
    REFUSED(GRAFT_OK, s.mxm->matrix_update_values(s.context, graph, values[0], NULL, &error));
    REFUSED(GRAFT_ERR_STATE, s.samples->next(sampler, &batch, &error));
    REFUSED(GRAFT_ERR_STATE, s.samples->prefetch(sampler, &made, &error));
    s.samples->destroy(sampler);
    sampler = sampler_of(graph);
    s.mxm->matrix_destroy(graph);
    REFUSED(GRAFT_ERR_STATE, s.samples->begin(sampler, 0, 0, NULL, &error));
    REFUSED(GRAFT_ERR_STATE, s.samples->next(sampler, &batch, &error));
    REFUSED(GRAFT_ERR_STATE, s.samples->sample(sampler, good_seeds, 1, 0, &batch, &error));
    REFUSED(GRAFT_ERR_STATE, s.samples->prefetch(sampler, &made, &error));
    s.samples->destroy(sampler);
    return end_of_group();
}

int main(void)
{
    static const struct group groups[] = {
        { "create of a sampler", sampler_create_calls, NULL },
        { "batches and blocks", batch_calls, NULL },
        { "a sampler without seeds", no_seed_calls, NULL },
        { "a graph that does not stay", lost_graph_calls, NULL },
    };

    return run_groups(groups, NUMBER(groups));
}
