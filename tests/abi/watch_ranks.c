/* Wraps the tables whose calls all ranks make together, see watch.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "watched.h"

static const graft_transport_api *transport;
static const graft_group_api     *group;
static const graft_graph_api     *graph;
static const graft_aggregate_api *aggregate;
static const graft_codec_api     *codec;
static const graft_halo_api      *halo;

static int32_t transport_threads(graft_context *context, int32_t n_ranks, graft_transport *transports,
                                 graft_error *error)
{
    const graft_transport copy = transports != NULL ? *transports : (graft_transport){ 0 };
    int32_t               rc;

    WATCHED("graft.transport/1 threads", error, transport->threads(context, n_ranks, transports, error),
            watch_same(transports, &copy, sizeof copy), 0);
    return rc;
}

static int32_t transport_open(graft_context *context, const char *module, const graft_communicator *communicator,
                              graft_transport *out, graft_error *error)
{
    const graft_transport copy = out != NULL ? *out : (graft_transport){ 0 };
    int32_t               rc;

    WATCHED("graft.transport/1 open", error, transport->open(context, module, communicator, out, error),
            watch_same(out, &copy, sizeof copy), MAY_KEEP);
    return rc;
}

static const graft_transport_api watched_transport = {
    .size = sizeof watched_transport,
    .threads = transport_threads,
    .open = transport_open,
};

static int32_t group_create(graft_context *context, const graft_transport *ranks, graft_group **out, graft_error *error)
{
    graft_group *const copy = out != NULL ? *out : NULL;
    int32_t            rc;

    WATCHED("graft.group/1 create", error, group->create(context, ranks, out, error),
            watch_same(out, &copy, sizeof copy), 0);
    return rc;
}

static int32_t group_agree(graft_group *joined, int32_t status, graft_error *error)
{
    int32_t rc;

    WATCHED("graft.group/1 agree", error, group->agree(joined, status, error), 1, NOT_TWICE);
    return rc;
}

/* Only the first byte of the output is checked. */
static int32_t group_sum(graft_group *joined, graft_dtype dtype, int64_t count, void *values, graft_error *error)
{
    const char copy = values != NULL ? *(const char *)values : 0;
    int32_t    rc;

    WATCHED("graft.group/1 sum", error, group->sum(joined, dtype, count, values, error), watch_same(values, &copy, 1),
            0);
    return rc;
}

static int32_t group_maximum(graft_group *joined, int64_t count, int64_t *values, graft_error *error)
{
    const int64_t copy = values != NULL ? *values : 0;
    int32_t       rc;

    WATCHED("graft.group/1 maximum", error, group->maximum(joined, count, values, error),
            watch_same(values, &copy, sizeof copy), 0);
    return rc;
}

static int32_t group_gather(graft_group *joined, int32_t root, const int64_t *bytes, const void *mine, void *all,
                            graft_error *error)
{
    const char copy = all != NULL ? *(const char *)all : 0;
    int32_t    rc;

    WATCHED("graft.group/1 gather", error, group->gather(joined, root, bytes, mine, all, error),
            watch_same(all, &copy, 1), 0);
    return rc;
}

static int32_t group_broadcast(graft_group *joined, int32_t root, int64_t bytes, void *data, graft_error *error)
{
    const char copy = data != NULL ? *(const char *)data : 0;
    int32_t    rc;

    WATCHED("graft.group/1 broadcast", error, group->broadcast(joined, root, bytes, data, error),
            watch_same(data, &copy, 1), 0);
    return rc;
}

static void group_destroy(graft_group *joined)
{
    WATCHED_VOID("graft.group/1 destroy", group->destroy(joined));
}

static const graft_group_api watched_group = {
    .size = sizeof watched_group,
    .create = group_create,
    .agree = group_agree,
    .sum = group_sum,
    .maximum = group_maximum,
    .gather = group_gather,
    .broadcast = group_broadcast,
    .destroy = group_destroy,
};

static int32_t watch_ranks_graph_create(graft_context *context, const graft_transport *ranks, const graft_slice *slice,
                                        graft_graph **out, graft_error *error)
{
    graft_graph *const copy = out != NULL ? *out : NULL;
    int32_t            rc;

    WATCHED("graft.graph/1 create", error, graph->create(context, ranks, slice, out, error),
            watch_same(out, &copy, sizeof copy), 0);
    return rc;
}

static int32_t graph_info(const graft_graph *of, int32_t rank, graft_graph_info *info, graft_error *error)
{
    const graft_graph_info copy = info != NULL ? *info : (graft_graph_info){ 0 };
    int32_t                rc;

    WATCHED("graft.graph/1 info", error, graph->info(of, rank, info, error), watch_same(info, &copy, sizeof copy), 0);
    return rc;
}

static const int64_t *graph_owned(const graft_graph *of)
{
    const int64_t *owned = NULL;

    WATCHED_VOID("graft.graph/1 owned", owned = graph->owned(of));
    return owned;
}

/* Only the first byte of the output is checked. */
static int32_t graph_redistribute(graft_graph *of, const graft_redistribution *args, graft_error *error)
{
    const unsigned char *to = args != NULL && args->size >= sizeof *args ? args->to : NULL;
    const unsigned char  copy = to != NULL ? to[0] : 0;
    int32_t              rc;

    WATCHED("graft.graph/1 redistribute", error, graph->redistribute(of, args, error), watch_same(to, &copy, 1), 0);
    return rc;
}

static int32_t graph_explain(const graft_graph *of, char *text, uint64_t capacity, graft_error *error)
{
    const char copy = text != NULL ? text[0] : '\0';
    int32_t    rc;

    WATCHED("graft.graph/1 explain", error, graph->explain(of, text, capacity, error), watch_same(text, &copy, 1), 0);
    return rc;
}

static void graph_destroy(graft_graph *of)
{
    WATCHED_VOID("graft.graph/1 destroy", graph->destroy(of));
}

static int32_t graph_update_values(graft_graph *of, const graft_dense *values, graft_error *error)
{
    int32_t rc;

    WATCHED("graft.graph/1 update_values", error, graph->update_values(of, values, error), 1, 0);
    return rc;
}

static const graft_graph_api watched_graph = {
    .size = sizeof watched_graph,
    .create = watch_ranks_graph_create,
    .info = graph_info,
    .owned = graph_owned,
    .redistribute = graph_redistribute,
    .explain = graph_explain,
    .destroy = graph_destroy,
    .update_values = graph_update_values,
};

static int32_t plan_create(graft_graph *of, const graft_plan_args *args, graft_plan **plan, graft_error *error)
{
    graft_plan *const copy = plan != NULL ? *plan : NULL;
    int32_t           rc;

    WATCHED("graft.aggregate/1 create", error, aggregate->create(of, args, plan, error),
            watch_same(plan, &copy, sizeof copy), 0);
    return rc;
}

/* The output is undefined until end(). */
static int32_t plan_begin(graft_plan *plan, const graft_aggregate_args *args, graft_error *error)
{
    int32_t rc;

    WATCHED("graft.aggregate/1 begin", error, aggregate->begin(plan, args, error), 1, MAY_KEEP);
    return rc;
}

static int32_t plan_end(graft_plan *plan, graft_error *error)
{
    int32_t rc;

    WATCHED("graft.aggregate/1 end", error, aggregate->end(plan, error), 1, MAY_KEEP | NOT_TWICE);
    return rc;
}

static int32_t plan_info(const graft_plan *plan, int32_t rank, graft_plan_info *info, graft_error *error)
{
    const graft_plan_info copy = info != NULL ? *info : (graft_plan_info){ 0 };
    int32_t               rc;

    WATCHED("graft.aggregate/1 info", error, aggregate->info(plan, rank, info, error),
            watch_same(info, &copy, sizeof copy), 0);
    return rc;
}

static int32_t plan_explain(const graft_plan *plan, char *text, uint64_t capacity, graft_error *error)
{
    const char copy = text != NULL ? text[0] : '\0';
    int32_t    rc;

    WATCHED("graft.aggregate/1 explain", error, aggregate->explain(plan, text, capacity, error),
            watch_same(text, &copy, 1), 0);
    return rc;
}

static void plan_destroy(graft_plan *plan)
{
    WATCHED_VOID("graft.aggregate/1 destroy", aggregate->destroy(plan));
}

static int32_t plan_assign_bits(graft_plan *plan, graft_error *error)
{
    int32_t rc;

    WATCHED("graft.aggregate/1 assign_bits", error, aggregate->assign_bits(plan, error), 1, MAY_KEEP);
    return rc;
}

static int32_t plan_progress(graft_plan *plan, int32_t *arrived, graft_error *error)
{
    const int32_t copy = arrived != NULL ? *arrived : 0;
    int32_t       rc;

    WATCHED("graft.aggregate/1 progress", error, aggregate->progress(plan, arrived, error),
            watch_same(arrived, &copy, sizeof copy), 0);
    return rc;
}

static const graft_aggregate_api watched_aggregate = {
    .size = sizeof watched_aggregate,
    .create = plan_create,
    .begin = plan_begin,
    .end = plan_end,
    .info = plan_info,
    .explain = plan_explain,
    .destroy = plan_destroy,
    .assign_bits = plan_assign_bits,
    .progress = plan_progress,
};

static int32_t halo_create(graft_graph *of, graft_halo **out, graft_error *error)
{
    graft_halo *const copy = out != NULL ? *out : NULL;
    int32_t           rc;

    WATCHED("graft.halo/1 create", error, halo->create(of, out, error), watch_same(out, &copy, sizeof copy), 0);
    return rc;
}

static int32_t halo_info(const graft_halo *of, graft_halo_info *info, graft_error *error)
{
    const graft_halo_info copy = info != NULL ? *info : (graft_halo_info){ 0 };
    int32_t               rc;

    WATCHED("graft.halo/1 info", error, halo->info(of, info, error), watch_same(info, &copy, sizeof copy), 0);
    return rc;
}

static int32_t halo_matrix(graft_halo *of, graft_csr *matrix, graft_error *error)
{
    const graft_csr copy = matrix != NULL ? *matrix : (graft_csr){ 0 };
    int32_t         rc;

    WATCHED("graft.halo/1 matrix", error, halo->matrix(of, matrix, error), watch_same(matrix, &copy, sizeof copy), 0);
    return rc;
}

static int32_t halo_begin(graft_halo *of, const graft_halo_args *args, graft_error *error)
{
    int32_t rc;

    WATCHED("graft.halo/1 begin", error, halo->begin(of, args, error), 1, 0);
    return rc;
}

static int32_t halo_progress(graft_halo *of, int32_t *arrived, graft_error *error)
{
    const int32_t copy = arrived != NULL ? *arrived : 0;
    int32_t       rc;

    WATCHED("graft.halo/1 progress", error, halo->progress(of, arrived, error), watch_same(arrived, &copy, sizeof copy),
            0);
    return rc;
}

static int32_t halo_end(graft_halo *of, graft_error *error)
{
    int32_t rc;

    WATCHED("graft.halo/1 end", error, halo->end(of, error), 1, NOT_TWICE);
    return rc;
}

static void halo_destroy(graft_halo *of)
{
    WATCHED_VOID("graft.halo/1 destroy", halo->destroy(of));
}

static const graft_halo_api watched_halo = {
    .size = sizeof watched_halo,
    .create = halo_create,
    .info = halo_info,
    .matrix = halo_matrix,
    .begin = halo_begin,
    .progress = halo_progress,
    .end = halo_end,
    .destroy = halo_destroy,
};

static int32_t codec_row_bytes(graft_context *context, int32_t bits, int64_t width, graft_dtype dtype, int64_t *bytes,
                               graft_error *error)
{
    const int64_t copy = bytes != NULL ? *bytes : 0;
    int32_t       rc;

    WATCHED("graft.codec/1 row_bytes", error, codec->row_bytes(context, bits, width, dtype, bytes, error),
            watch_same(bytes, &copy, sizeof copy), 0);
    return rc;
}

/* Only the first byte of the output is checked. */
static int32_t codec_encode(graft_context *context, const graft_codec_args *args, graft_error *error)
{
    const unsigned char *to = args != NULL && args->size >= sizeof *args ? args->message : NULL;
    const unsigned char  copy = to != NULL ? to[0] : 0;
    int32_t              rc;

    WATCHED("graft.codec/1 encode", error, codec->encode(context, args, error), watch_same(to, &copy, 1), 0);
    return rc;
}

static int32_t codec_decode(graft_context *context, const graft_codec_args *args, graft_error *error)
{
    const int            whole = args != NULL && args->size >= sizeof *args && args->rows != NULL;
    const unsigned char *to = whole ? args->rows->data : NULL;
    const unsigned char  copy = to != NULL ? to[0] : 0;
    int32_t              rc;

    WATCHED("graft.codec/1 decode", error, codec->decode(context, args, error), watch_same(to, &copy, 1), 0);
    return rc;
}

static const graft_codec_api watched_codec = {
    .size = sizeof watched_codec,
    .row_bytes = codec_row_bytes,
    .encode = codec_encode,
    .decode = codec_decode,
};

void watch_ranks(struct subject *subject, const graft_api *api)
{
    transport = api->get_interface(api->context, GRAFT_TRANSPORT_ID);
    group = api->get_interface(api->context, GRAFT_GROUP_ID);
    graph = api->get_interface(api->context, GRAFT_GRAPH_ID);
    aggregate = api->get_interface(api->context, GRAFT_AGGREGATE_ID);
    codec = api->get_interface(api->context, GRAFT_CODEC_ID);
    halo = api->get_interface(api->context, GRAFT_HALO_ID);
    subject->halo = &watched_halo;
    watch_check_whole(GRAFT_HALO_ID, &watched_halo, sizeof watched_halo);
    subject->codec = &watched_codec;
    subject->transport = &watched_transport;
    subject->group = &watched_group;
    subject->graph = &watched_graph;
    subject->aggregate = &watched_aggregate;
    watch_check_whole(GRAFT_TRANSPORT_ID, &watched_transport, sizeof watched_transport);
    watch_check_whole(GRAFT_GROUP_ID, &watched_group, sizeof watched_group);
    watch_check_whole(GRAFT_GRAPH_ID, &watched_graph, sizeof watched_graph);
    watch_check_whole(GRAFT_CODEC_ID, &watched_codec, sizeof watched_codec);
    watch_check_whole(GRAFT_AGGREGATE_ID, &watched_aggregate, sizeof watched_aggregate);
}
