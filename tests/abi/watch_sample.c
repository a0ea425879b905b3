/* Wraps the table of graft.sample/1, see watch.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "watched.h"

static const graft_sample_api *samples;

static int32_t sampler_create(graft_context *context, graft_matrix *graph, const int64_t *seeds, int64_t n_seeds,
                              graft_sampler **sampler, graft_error *error)
{
    graft_sampler *const copy = sampler != NULL ? *sampler : NULL;
    int32_t              rc;

    WATCHED("graft.sample/1 create", error, samples->create(context, graph, seeds, n_seeds, sampler, error),
            watch_same(sampler, &copy, sizeof copy), 0);
    return rc;
}

static int32_t sampler_begin(graft_sampler *sampler, int64_t epoch, int64_t first, int64_t *n_batches,
                             graft_error *error)
{
    const int64_t copy = n_batches != NULL ? *n_batches : 0;
    int32_t       rc;

    WATCHED("graft.sample/1 begin", error, samples->begin(sampler, epoch, first, n_batches, error),
            watch_same(n_batches, &copy, sizeof copy), 0);
    return rc;
}

static int32_t sampler_next(graft_sampler *sampler, graft_sample_batch *batch, graft_error *error)
{
    const graft_sample_batch copy = batch != NULL ? *batch : (graft_sample_batch){ 0 };
    int32_t                  rc;

    WATCHED("graft.sample/1 next", error, samples->next(sampler, batch, error), watch_same(batch, &copy, sizeof copy),
            MAY_KEEP);
    return rc;
}

static int32_t sampler_sample(graft_sampler *sampler, const int64_t *seeds, int64_t n, uint32_t flags,
                              graft_sample_batch *batch, graft_error *error)
{
    const graft_sample_batch copy = batch != NULL ? *batch : (graft_sample_batch){ 0 };
    int32_t                  rc;

    WATCHED("graft.sample/1 sample", error, samples->sample(sampler, seeds, n, flags, batch, error),
            watch_same(batch, &copy, sizeof copy), MAY_KEEP);
    return rc;
}

static int32_t sampler_block(graft_sampler *sampler, int32_t layer, graft_sample_block *block, graft_error *error)
{
    const graft_sample_block copy = block != NULL ? *block : (graft_sample_block){ 0 };
    int32_t                  rc;

    WATCHED("graft.sample/1 block", error, samples->block(sampler, layer, block, error),
            watch_same(block, &copy, sizeof copy), 0);
    return rc;
}

static int32_t sampler_prefetch(graft_sampler *sampler, int32_t *made, graft_error *error)
{
    const int32_t copy = made != NULL ? *made : 0;
    int32_t       rc;

    WATCHED("graft.sample/1 prefetch", error, samples->prefetch(sampler, made, error),
            watch_same(made, &copy, sizeof copy), MAY_KEEP);
    return rc;
}

static int32_t sampler_explain(graft_sampler *sampler, char *text, uint64_t capacity, graft_error *error)
{
    const char copy = text != NULL ? text[0] : '\0';
    int32_t    rc;

    WATCHED("graft.sample/1 explain", error, samples->explain(sampler, text, capacity, error),
            watch_same(text, &copy, 1), 0);
    return rc;
}

static void sampler_destroy(graft_sampler *sampler)
{
    WATCHED_VOID("graft.sample/1 destroy", samples->destroy(sampler));
}

static const graft_sample_api watched_samples = {
    .size = sizeof watched_samples,
    .create = sampler_create,
    .begin = sampler_begin,
    .next = sampler_next,
    .sample = sampler_sample,
    .block = sampler_block,
    .prefetch = sampler_prefetch,
    .explain = sampler_explain,
    .destroy = sampler_destroy,
};

void watch_samples(struct subject *subject, const graft_api *api)
{
    samples = api->get_interface(api->context, GRAFT_SAMPLE_ID);
    subject->samples = &watched_samples;
    watch_check_whole(GRAFT_SAMPLE_ID, &watched_samples, sizeof watched_samples);
}
