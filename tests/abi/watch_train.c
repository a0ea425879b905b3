/* Wraps the table of graft.train/1, see watch.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "watched.h"

static const graft_train_api  *train;
static const graft_report_api *report;

static int32_t train_create(graft_context *context, const graft_dataset *dataset, graft_trainer **trainer,
                            graft_error *error)
{
    graft_trainer *const copy = trainer != NULL ? *trainer : NULL;
    int32_t              rc;

    WATCHED("graft.train/1 create", error, train->create(context, dataset, trainer, error),
            watch_same(trainer, &copy, sizeof copy), MAY_KEEP);
    return rc;
}

static int32_t train_epoch(graft_trainer *trainer, graft_epoch *epoch, graft_error *error)
{
    const graft_epoch copy = epoch != NULL ? *epoch : (graft_epoch){ 0 };
    int32_t           rc;

    WATCHED("graft.train/1 epoch", error, train->epoch(trainer, epoch, error), watch_same(epoch, &copy, sizeof copy),
            MAY_KEEP | NOT_TWICE);
    return rc;
}

static int32_t train_evaluate(graft_trainer *trainer, int32_t weights, graft_metrics *metrics, graft_error *error)
{
    const graft_metrics copy = metrics != NULL ? *metrics : (graft_metrics){ 0 };
    int32_t             rc;

    WATCHED("graft.train/1 evaluate", error, train->evaluate(trainer, weights, metrics, error),
            watch_same(metrics, &copy, sizeof copy), MAY_KEEP);
    return rc;
}

static int32_t train_predict(graft_trainer *trainer, int32_t weights, int32_t *labels, const graft_dense *logits,
                             graft_error *error)
{
    const int32_t label = labels != NULL ? labels[0] : 0;
    size_t        bytes;
    void         *copy = watch_copy_dense(logits, &bytes);
    int32_t       rc;

    WATCHED("graft.train/1 predict", error, train->predict(trainer, weights, labels, logits, error),
            watch_same(labels, &label, sizeof label) && (copy == NULL || memcmp(copy, logits->data, bytes) == 0),
            MAY_KEEP);
    free(copy);
    return rc;
}

static int32_t train_state_item(graft_trainer *trainer, int32_t index, graft_state_item *item, graft_error *error)
{
    const graft_state_item copy = item != NULL ? *item : (graft_state_item){ 0 };
    int32_t                rc;

    WATCHED("graft.train/1 state_item", error, train->state_item(trainer, index, item, error),
            watch_same(item, &copy, sizeof copy), 0);
    return rc;
}

static int32_t train_state_set(graft_trainer *trainer, const graft_state_item *item, graft_error *error)
{
    int32_t rc;

    WATCHED("graft.train/1 state_set", error, train->state_set(trainer, item, error), 1, 0);
    return rc;
}

static int32_t train_explain(graft_trainer *trainer, char *text, uint64_t capacity, graft_error *error)
{
    const char copy = text != NULL ? text[0] : '\0';
    int32_t    rc;

    WATCHED("graft.train/1 explain", error, train->explain(trainer, text, capacity, error), watch_same(text, &copy, 1),
            0);
    return rc;
}

static void train_destroy(graft_trainer *trainer)
{
    WATCHED_VOID("graft.train/1 destroy", train->destroy(trainer));
}

static int32_t report_span(graft_trainer *trainer, int64_t index, graft_span *span, graft_error *error)
{
    const graft_span copy = span != NULL ? *span : (graft_span){ 0 };
    int32_t          rc;

    WATCHED("graft.report/1 span", error, report->span(trainer, index, span, error),
            watch_same(span, &copy, sizeof copy), 0);
    return rc;
}

static int32_t report_memory_item(graft_trainer *trainer, int32_t index, graft_memory_item *item, graft_error *error)
{
    const graft_memory_item copy = item != NULL ? *item : (graft_memory_item){ 0 };
    int32_t                 rc;

    WATCHED("graft.report/1 memory_item", error, report->memory_item(trainer, index, item, error),
            watch_same(item, &copy, sizeof copy), 0);
    return rc;
}

static int32_t report_traffic(graft_trainer *trainer, int32_t rank, graft_traffic *traffic, graft_error *error)
{
    const graft_traffic copy = traffic != NULL ? *traffic : (graft_traffic){ 0 };
    int32_t             rc;

    WATCHED("graft.report/1 traffic", error, report->traffic(trainer, rank, traffic, error),
            watch_same(traffic, &copy, sizeof copy), 0);
    return rc;
}

static int32_t report_traffic_item(graft_trainer *trainer, int32_t rank, int32_t index, graft_traffic_item *item,
                                   graft_error *error)
{
    const graft_traffic_item copy = item != NULL ? *item : (graft_traffic_item){ 0 };
    int32_t                  rc;

    WATCHED("graft.report/1 traffic_item", error, report->traffic_item(trainer, rank, index, item, error),
            watch_same(item, &copy, sizeof copy), 0);
    return rc;
}

static int32_t report_traffic_pair(graft_trainer *trainer, int32_t peer, int32_t index, graft_traffic_pair *pair,
                                   graft_error *error)
{
    const graft_traffic_pair copy = pair != NULL ? *pair : (graft_traffic_pair){ 0 };
    int32_t                  rc;

    WATCHED("graft.report/1 traffic_pair", error, report->traffic_pair(trainer, peer, index, pair, error),
            watch_same(pair, &copy, sizeof copy), 0);
    return rc;
}

static int32_t train_update(graft_trainer *trainer, uint32_t what, const graft_dataset *dataset, graft_error *error)
{
    int32_t rc;

    WATCHED("graft.train/1 update", error, train->update(trainer, what, dataset, error), 1, 0);
    return rc;
}

static int32_t report_cache_item(graft_trainer *trainer, int32_t rank, int32_t index, graft_cache_item *item,
                                 graft_error *error)
{
    const graft_cache_item copy = item != NULL ? *item : (graft_cache_item){ 0 };
    int32_t                rc;

    WATCHED("graft.report/1 cache_item", error, report->cache_item(trainer, rank, index, item, error),
            watch_same(item, &copy, sizeof copy), 0);
    return rc;
}

static const graft_train_api watched_train = {
    .size = sizeof watched_train,
    .create = train_create,
    .epoch = train_epoch,
    .evaluate = train_evaluate,
    .predict = train_predict,
    .state_item = train_state_item,
    .state_set = train_state_set,
    .explain = train_explain,
    .destroy = train_destroy,
    .update = train_update,
};

static const graft_report_api watched_report = {
    .size = sizeof watched_report,
    .span = report_span,
    .memory_item = report_memory_item,
    .traffic = report_traffic,
    .traffic_item = report_traffic_item,
    .traffic_pair = report_traffic_pair,
    .cache_item = report_cache_item,
};

void watch_train(struct subject *subject, const graft_api *api)
{
    train = api->get_interface(api->context, GRAFT_TRAIN_ID);
    report = api->get_interface(api->context, GRAFT_REPORT_ID);
    subject->train = &watched_train;
    watch_check_whole(GRAFT_TRAIN_ID, &watched_train, sizeof watched_train);
    subject->report = &watched_report;
    watch_check_whole(GRAFT_REPORT_ID, &watched_report, sizeof watched_report);
}
