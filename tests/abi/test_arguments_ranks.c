/* Checks what graft.graph/1, graft.aggregate/1 and graft.halo/1 must refuse on one rank. Each call gets arguments that
 * it cannot use, and must return the status that the header documents. unit/spmm/test_aggregate_faults has mistakes of
 * several ranks together.
 * SPDX-License-Identifier: Apache-2.0 */
#include "arguments.h"

enum { WIDTH = 3 };

static graft_slice whole_graph(void)
{
    graft_slice slice = GRAFT_INIT(graft_slice);

    slice.n_vertices = N;
    slice.rows = set.dataset.graph;
    return slice;
}

static const char *arguments_ranks_graph_create(const void *arg)
{
    const graft_slice whole = whole_graph();
    graft_transport   ranks[2] = { GRAFT_INIT(graft_transport), GRAFT_INIT(graft_transport) }, bad;
    graft_graph      *graph = NULL;
    graft_slice       slice;
    graft_csr         rows;
    int32_t           owner[N] = { 0 };

    (void)arg;
    REFUSED(GRAFT_ERR_ARG, s.graph->create(NULL, NULL, &whole, &graph, &error));
    REFUSED(GRAFT_ERR_ARG, s.graph->create(s.context, NULL, NULL, &graph, &error));
    REFUSED(GRAFT_ERR_ARG, s.graph->create(s.context, NULL, &whole, NULL, &error));
#define BAD(status, change)                                                                                            \
    do {                                                                                                               \
        slice = whole, rows = *whole.rows, slice.rows = &rows, slice.owner = owner;                                    \
        memset(owner, 0, sizeof owner);                                                                                \
        change;                                                                                                        \
        snprintf(doing, DOING, "create with %s", #change);                                                             \
        arguments_judge(status, s.graph->create(s.context, NULL, &slice, &graph, &error));                             \
        s.graph->destroy(graph);                                                                                       \
        graph = NULL;                                                                                                  \
    } while (0)
    BAD(GRAFT_OK, (void)slice);
    BAD(GRAFT_OK, slice.owner = NULL);
    BAD(GRAFT_ERR_ARG, slice.size = 4);
    BAD(GRAFT_ERR_ARG, slice.n_vertices = N + 1);
    BAD(GRAFT_ERR_ARG, slice.n_vertices = N - 1);
    BAD(GRAFT_ERR_ARG, slice.n_vertices = -1);
    BAD(GRAFT_ERR_ARG, slice.first_row = 1);
    BAD(GRAFT_ERR_ARG, slice.first_row = -1);
    BAD(GRAFT_ERR_ARG, slice.first_row = INT64_MAX);
    BAD(GRAFT_ERR_ARG, slice.rows = NULL);
    BAD(GRAFT_ERR_ARG, owner[N - 1] = 1);
    BAD(GRAFT_ERR_ARG, owner[0] = -1);
    BAD(GRAFT_ERR_ARG, rows.n_rows = N - 1);
    BAD(GRAFT_ERR_ARG, rows.n_cols = N + 1);
    BAD(GRAFT_ERR_ARG, rows.index_type = 0);
    BAD(GRAFT_ERR_ARG, rows.row_ptr = NULL);
    BAD(GRAFT_ERR_ARG, rows.size = 0);
#undef BAD
    slice = (graft_slice){ .size = sizeof slice };
    REFUSED(GRAFT_OK, s.graph->create(s.context, NULL, &slice, &graph, &error)); /* the slice has no vertices */
    s.graph->destroy(graph);
    graph = NULL;
    REFUSED(GRAFT_OK, s.transport->threads(s.context, 2, ranks, &error));
    bad = ranks[0], bad.rank = 2;
    REFUSED(GRAFT_ERR_ARG, s.graph->create(s.context, &bad, &whole, &graph, &error));
    bad = ranks[0], bad.test = NULL;
    REFUSED(GRAFT_ERR_ARG, s.graph->create(s.context, &bad, &whole, &graph, &error));
    bad = ranks[0], bad.size = 0;
    REFUSED(GRAFT_ERR_ARG, s.graph->create(s.context, &bad, &whole, &graph, &error));
    for (int i = 0; i < 2; i++) ranks[i].close(ranks[i].self);
    return end_of_group();
}

static void graph_redistributes(graft_graph *graph)
{
    float                from[N][WIDTH] = { { 0 } }, to[N][WIDTH] = { { 0 } };
    graft_redistribution good = {
        sizeof good, GRAFT_TO_OWNERS, sizeof from[0], from, sizeof from[0], to, sizeof to[0]
    };
    graft_redistribution args;

#define BAD(status, change)                                                                                            \
    do {                                                                                                               \
        args = good;                                                                                                   \
        change;                                                                                                        \
        snprintf(doing, DOING, "redistribute with %s", #change);                                                       \
        arguments_judge(status, s.graph->redistribute(graph, &args, &error));                                          \
    } while (0)
    BAD(GRAFT_OK, (void)args);
    BAD(GRAFT_OK, args.direction = GRAFT_TO_SLICES);
    BAD(GRAFT_OK, args.row_bytes = 0);
    BAD(GRAFT_OK, args.row_bytes = 1);
    BAD(GRAFT_ERR_ARG, args.size = 7);
    BAD(GRAFT_ERR_ARG, args.direction = 0);
    BAD(GRAFT_ERR_ARG, args.direction = 3);
    BAD(GRAFT_ERR_ARG, args.row_bytes = -1);
    BAD(GRAFT_ERR_ARG, args.row_bytes = INT64_MAX);
    BAD(GRAFT_ERR_ARG, args.from_stride = sizeof from[0] - 1);
    BAD(GRAFT_ERR_ARG, args.to_stride = -1);
    BAD(GRAFT_ERR_ARG, args.to_stride = INT64_MAX / 2);
    BAD(GRAFT_ERR_ARG, args.from = NULL);
    BAD(GRAFT_ERR_ARG, args.to = NULL);
    BAD(GRAFT_ERR_ARG, args.to = from);
    BAD(GRAFT_ERR_ARG, args.to = &from[N - 1][WIDTH - 1]);
#undef BAD
    REFUSED(GRAFT_ERR_ARG, s.graph->redistribute(NULL, &good, &error));
    REFUSED(GRAFT_ERR_ARG, s.graph->redistribute(graph, NULL, &error));
}

static void arguments_graph_values(void)
{
    float             values[N * N] = { 0 };
    graft_csr         rows = *set.dataset.graph;
    graft_slice       whole = whole_graph();
    const int64_t     entries = rows.row_ptr[N];
    const graft_dense good = { sizeof good, GRAFT_F32, entries, 1, 1, values };
    graft_dense       args;
    graft_graph      *graph = NULL, *plain = NULL;

    whole.rows = &rows;
    rows.values = NULL;
    REFUSED(GRAFT_OK, s.graph->create(s.context, NULL, &whole, &plain, &error));
    rows.values = values;
    rows.value_type = GRAFT_F32;
    REFUSED(GRAFT_OK, s.graph->create(s.context, NULL, &whole, &graph, &error));
#define BAD(status, change)                                                                                            \
    do {                                                                                                               \
        args = good;                                                                                                   \
        change;                                                                                                        \
        snprintf(doing, DOING, "update_values with %s", #change);                                                      \
        arguments_judge(status, s.graph->update_values(graph, &args, &error));                                         \
    } while (0)
    BAD(GRAFT_OK, (void)args);
    BAD(GRAFT_ERR_ARG, args.size = 7);
    BAD(GRAFT_ERR_ARG, args.dtype = GRAFT_F64);
    BAD(GRAFT_ERR_ARG, args.dtype = 0);
    BAD(GRAFT_ERR_ARG, args.n_rows = entries - 1);
    BAD(GRAFT_ERR_ARG, args.n_rows = entries + 1);
    BAD(GRAFT_ERR_ARG, args.n_rows = -1);
    BAD(GRAFT_ERR_ARG, args.n_rows = INT64_MAX);
    BAD(GRAFT_ERR_ARG, args.n_cols = 0);
    BAD(GRAFT_ERR_ARG, args.n_cols = 2);
    BAD(GRAFT_ERR_ARG, args.stride = 2);
    BAD(GRAFT_ERR_ARG, args.stride = 0);
    BAD(GRAFT_ERR_ARG, args.data = NULL);
    BAD(GRAFT_ERR_FORMAT, values[entries - 1] = NAN);
#undef BAD
    REFUSED(GRAFT_ERR_ARG, s.graph->update_values(NULL, &good, &error));
    REFUSED(GRAFT_ERR_ARG, s.graph->update_values(graph, NULL, &error));
    values[entries - 1] = 0;
    REFUSED(GRAFT_ERR_STATE, s.graph->update_values(plain, &good, &error));
    s.graph->destroy(graph);
    s.graph->destroy(plain);
}

static const char *graph_calls(const void *arg)
{
    const graft_slice whole = whole_graph();
    graft_graph      *graph = NULL;
    graft_graph_info  info = GRAFT_INIT(graft_graph_info);
    char              text[64];

    (void)arg;
    if (s.graph->create(s.context, NULL, &whole, &graph, &error) < 0) return error.message;
    REFUSED(GRAFT_OK, s.graph->info(graph, 0, &info, &error));
    REFUSED(GRAFT_OK, s.graph->info(graph, -1, &info, &error));
    REFUSED(GRAFT_ERR_ARG, s.graph->info(graph, 1, &info, &error));
    REFUSED(GRAFT_ERR_ARG, s.graph->info(graph, -2, &info, &error));
    REFUSED(GRAFT_ERR_ARG, s.graph->info(NULL, 0, &info, &error));
    REFUSED(GRAFT_ERR_ARG, s.graph->info(graph, 0, NULL, &error));
    info.size = 0;
    REFUSED(GRAFT_ERR_ARG, s.graph->info(graph, 0, &info, &error));
    REFUSED(GRAFT_OK, s.graph->explain(graph, text, sizeof text, &error));
    REFUSED(GRAFT_OK, s.graph->explain(graph, text, 1, &error));
    REFUSED(GRAFT_ERR_ARG, s.graph->explain(graph, text, 0, &error));
    REFUSED(GRAFT_ERR_ARG, s.graph->explain(graph, NULL, 9, &error));
    REFUSED(GRAFT_ERR_ARG, s.graph->explain(NULL, text, sizeof text, &error));
    if (s.graph->owned(NULL) != NULL) watch_blame("owned(NULL) is not NULL");
    graph_redistributes(graph);
    arguments_graph_values();
    s.graph->destroy(NULL);
    s.graph->destroy(graph);
    return end_of_group();
}

static void passes(graft_plan *plan, graft_plan *forward)
{
    float                values[2][N][WIDTH] = { { { 0 } } }, scale[N] = { 0 };
    double               times[3] = { 0 };
    uint8_t              present[N] = { 0 };
    graft_dense          x, out;
    graft_mask           mask;
    graft_epilogue       epilogue;
    graft_aggregate_args good = GRAFT_INIT(graft_aggregate_args), a;
    int32_t              rc, arrived;

    good.semiring = GRAFT_PLUS_TIMES;
#define BAD(status, change)                                                                                            \
    do {                                                                                                               \
        x = (graft_dense){ sizeof x, GRAFT_F32, N, WIDTH, WIDTH, values[0] }, out = x, out.data = values[1];           \
        a = good, a.x = &x, a.out = &out;                                                                              \
        mask = (graft_mask){ .size = sizeof mask, .kind = GRAFT_MASK_ROWS, .present = present };                       \
        epilogue = GRAFT_INIT(graft_epilogue);                                                                         \
        change;                                                                                                        \
        snprintf(doing, DOING, "begin with %s", #change);                                                              \
        rc = s.aggregate->begin(plan, &a, &error);                                                                     \
        arguments_judge(status, rc);                                                                                   \
        if (rc == GRAFT_OK) REFUSED(GRAFT_ERR_STATE, s.aggregate->begin(plan, &a, &error));                            \
        if (rc == GRAFT_OK) REFUSED(GRAFT_ERR_ARG, s.aggregate->progress(plan, NULL, &error));                         \
        REFUSED(rc == GRAFT_OK ? GRAFT_OK : GRAFT_ERR_STATE, s.aggregate->progress(plan, &arrived, &error));           \
        REFUSED(rc == GRAFT_OK ? GRAFT_OK : GRAFT_ERR_STATE, s.aggregate->end(plan, &error));                          \
    } while (0)
    BAD(GRAFT_OK, (void)a);
    BAD(GRAFT_OK, a.row_scale = scale);
    BAD(GRAFT_OK, (a.times = times, a.threads = 1));
    BAD(GRAFT_OK, x.n_cols = out.n_cols = 0);
    BAD(GRAFT_OK, a.flags = GRAFT_AGGREGATE_TRANSPOSE | GRAFT_AGGREGATE_ACCUMULATE);
    BAD(GRAFT_ERR_ARG, a.size = 3);
    BAD(GRAFT_ERR_ARG, a.semiring = 0);
    BAD(GRAFT_ERR_ARG, a.semiring = 7);
    BAD(GRAFT_OK, a.flags = GRAFT_AGGREGATE_STATELESS | GRAFT_AGGREGATE_SYNCHRONOUS);
    BAD(GRAFT_ERR_ARG, a.flags = 64);
    BAD(GRAFT_OK, (a.mask = &mask, a.epilogue = &epilogue, a.flags = GRAFT_AGGREGATE_REPLACE));
    BAD(GRAFT_OK, (a.epilogue = &epilogue, epilogue.residual = &out));
    BAD(GRAFT_ERR_ARG, (a.mask = &mask, mask.kind = 7));
    BAD(GRAFT_ERR_ARG, (a.mask = &mask, mask.size = 1));
    BAD(GRAFT_ERR_ARG, (a.mask = &mask, mask.present = NULL));
    BAD(GRAFT_ERR_ARG, (a.epilogue = &epilogue, epilogue.size = 2));
    BAD(GRAFT_ERR_ARG, (a.epilogue = &epilogue, epilogue.dropout = 1));
    BAD(GRAFT_ERR_ARG, (a.epilogue = &epilogue, epilogue.flags = 8));
    BAD(GRAFT_ERR_UNSUPPORTED, (a.epilogue = &epilogue, a.semiring = GRAFT_MAX_SECOND));
    BAD(GRAFT_ERR_UNSUPPORTED, (a.epilogue = &epilogue, a.flags = GRAFT_AGGREGATE_ACCUMULATE));
    BAD(GRAFT_ERR_ARG, a.x = NULL);
    BAD(GRAFT_ERR_ARG, a.out = NULL);
    BAD(GRAFT_ERR_ARG, a.times = times);
    BAD(GRAFT_ERR_ARG, (a.row_scale = scale, a.semiring = GRAFT_MAX_SECOND));
    BAD(GRAFT_ERR_ARG, x.n_rows = N - 1);
    BAD(GRAFT_ERR_ARG, out.n_rows = N + 1);
    BAD(GRAFT_ERR_ARG, x.n_cols = WIDTH - 1);
    BAD(GRAFT_ERR_ARG, x.stride = WIDTH - 1);
    BAD(GRAFT_ERR_ARG, x.data = NULL);
    BAD(GRAFT_ERR_ARG, x.dtype = GRAFT_F64);
    BAD(GRAFT_ERR_ARG, x.dtype = out.dtype = GRAFT_BF16);
    BAD(GRAFT_ERR_ARG, x.dtype = out.dtype = GRAFT_I32);
    BAD(GRAFT_ERR_ARG, out.data = &values[0][1]);
    BAD(GRAFT_ERR_ARG, x.size = 1);
    BAD(GRAFT_ERR_UNSUPPORTED, (a.flags = GRAFT_AGGREGATE_TRANSPOSE, a.semiring = GRAFT_MIN_TIMES));
    BAD(GRAFT_OK, (void)a);
#undef BAD
    x = (graft_dense){ sizeof x, GRAFT_F32, N, WIDTH, WIDTH, values[0] }, out = x, out.data = values[1];
    a = good, a.x = &x, a.out = &out, a.flags = GRAFT_AGGREGATE_TRANSPOSE;
    REFUSED(GRAFT_ERR_STATE, s.aggregate->begin(forward, &a, &error));
    REFUSED(GRAFT_ERR_ARG, s.aggregate->begin(NULL, &a, &error));
    REFUSED(GRAFT_ERR_ARG, s.aggregate->begin(plan, NULL, &error));
    REFUSED(GRAFT_ERR_ARG, s.aggregate->end(NULL, &error));
    REFUSED(GRAFT_ERR_ARG, s.aggregate->progress(NULL, &arrived, &error));
    REFUSED(GRAFT_OK, s.aggregate->begin(plan, &a, &error)); /* the plan is destroyed without end() */
}

static void plan_calls(graft_graph *graph, graft_plan *plan)
{
    graft_plan_info info = GRAFT_INIT(graft_plan_info);
    graft_plan_args args = GRAFT_INIT(graft_plan_args);
    graft_plan     *none = NULL;
    char            text[64];

    REFUSED(GRAFT_ERR_ARG, s.aggregate->create(NULL, &args, &none, &error));
    REFUSED(GRAFT_ERR_ARG, s.aggregate->create(graph, &args, NULL, &error));
    args.size = 0;
    REFUSED(GRAFT_ERR_ARG, s.aggregate->create(graph, &args, &none, &error));
    args = GRAFT_INIT(graft_plan_args), args.flags = 2;
    REFUSED(GRAFT_ERR_ARG, s.aggregate->create(graph, &args, &none, &error));
    args = GRAFT_INIT(graft_plan_args), args.width = -1;
    REFUSED(GRAFT_ERR_ARG, s.aggregate->create(graph, &args, &none, &error));
    args = GRAFT_INIT(graft_plan_args), args.dtype = GRAFT_I32;
    REFUSED(GRAFT_ERR_ARG, s.aggregate->create(graph, &args, &none, &error));
    REFUSED(GRAFT_OK, s.aggregate->info(plan, 0, &info, &error));
    REFUSED(GRAFT_OK, s.aggregate->info(plan, -1, &info, &error));
    REFUSED(GRAFT_ERR_ARG, s.aggregate->info(plan, 1, &info, &error));
    REFUSED(GRAFT_ERR_ARG, s.aggregate->info(plan, -2, &info, &error));
    REFUSED(GRAFT_ERR_ARG, s.aggregate->info(NULL, 0, &info, &error));
    REFUSED(GRAFT_ERR_ARG, s.aggregate->info(plan, 0, NULL, &error));
    REFUSED(GRAFT_OK, s.aggregate->explain(plan, text, sizeof text, &error));
    REFUSED(GRAFT_OK, s.aggregate->explain(plan, text, 1, &error));
    REFUSED(GRAFT_ERR_ARG, s.aggregate->explain(plan, text, 0, &error));
    REFUSED(GRAFT_ERR_ARG, s.aggregate->explain(plan, NULL, 9, &error));
    REFUSED(GRAFT_ERR_ARG, s.aggregate->explain(NULL, text, sizeof text, &error));
    REFUSED(GRAFT_ERR_ARG, s.aggregate->assign_bits(NULL, &error));
    REFUSED(GRAFT_ERR_STATE, s.aggregate->assign_bits(plan, &error)); /* widths cannot be assigned, because messages
                                                                       * have 32 bits */
    s.aggregate->destroy(NULL);
}

static const char *plans(const void *arg)
{
    const graft_slice whole = whole_graph();
    graft_graph      *graph = NULL;
    graft_plan       *plan = NULL, *forward = NULL;
    graft_plan_args   args = GRAFT_INIT(graft_plan_args);

    (void)arg;
    args.flags = GRAFT_PLAN_TRANSPOSED;
    if (s.graph->create(s.context, NULL, &whole, &graph, &error) < 0) return error.message;
    if (s.aggregate->create(graph, &args, &plan, &error) < 0) return error.message;
    if (s.aggregate->create(graph, NULL, &forward, &error) < 0) return error.message;
    plan_calls(graph, plan);
    passes(plan, forward);
    s.aggregate->destroy(plan);
    s.graph->destroy(graph);
    s.aggregate->destroy(forward);
    return end_of_group();
}

static void passes_of_halo(graft_halo *halo)
{
    float           values[N][WIDTH] = { { 0 } };
    graft_halo_args good = GRAFT_INIT(graft_halo_args), a;
    graft_dense     owned, rows;
    int32_t         rc, arrived;

#define BAD(status, change)                                                                                            \
    do {                                                                                                               \
        owned = (graft_dense){ sizeof owned, GRAFT_F32, N, WIDTH, WIDTH, values };                                     \
        rows = owned, rows.n_rows = 0, rows.data = NULL;                                                               \
        a = good, a.owned = &owned, a.halo = &rows;                                                                    \
        change;                                                                                                        \
        snprintf(doing, DOING, "begin of a halo with %s", #change);                                                    \
        rc = s.halo->begin(halo, &a, &error);                                                                          \
        arguments_judge(status, rc);                                                                                   \
        if (rc == GRAFT_OK) REFUSED(GRAFT_ERR_STATE, s.halo->begin(halo, &a, &error));                                 \
        if (rc == GRAFT_OK) REFUSED(GRAFT_ERR_ARG, s.halo->progress(halo, NULL, &error));                              \
        REFUSED(rc == GRAFT_OK ? GRAFT_OK : GRAFT_ERR_STATE, s.halo->progress(halo, &arrived, &error));                \
        REFUSED(rc == GRAFT_OK ? GRAFT_OK : GRAFT_ERR_STATE, s.halo->end(halo, &error));                               \
    } while (0)
    BAD(GRAFT_OK, (void)a);
    BAD(GRAFT_OK, a.flags = GRAFT_HALO_SUM | GRAFT_HALO_EXACT);
    BAD(GRAFT_OK, owned.n_cols = rows.n_cols = 0);
    BAD(GRAFT_OK, (owned.dtype = rows.dtype = GRAFT_F64, owned.n_cols = rows.n_cols = owned.stride = rows.stride = 1));
    BAD(GRAFT_ERR_ARG, a.size = 2);
    BAD(GRAFT_ERR_ARG, a.flags = 4);
    BAD(GRAFT_ERR_ARG, a.owned = NULL);
    BAD(GRAFT_ERR_ARG, a.halo = NULL);
    BAD(GRAFT_ERR_ARG, owned.size = 3);
    BAD(GRAFT_ERR_ARG, owned.n_rows = N - 1);
    BAD(GRAFT_ERR_ARG, (rows.n_rows = 1, rows.data = &values[0][0]));
    BAD(GRAFT_ERR_ARG, rows.n_rows = -1);
    BAD(GRAFT_ERR_ARG, owned.n_cols = WIDTH - 1);
    BAD(GRAFT_ERR_ARG, owned.stride = WIDTH - 1);
    BAD(GRAFT_ERR_ARG, owned.data = NULL);
    BAD(GRAFT_ERR_ARG, rows.dtype = GRAFT_F64);
    BAD(GRAFT_ERR_ARG, owned.dtype = rows.dtype = GRAFT_BF16);
    BAD(GRAFT_ERR_ARG, owned.dtype = rows.dtype = GRAFT_I32);
    BAD(GRAFT_OK, (void)a);
#undef BAD
    REFUSED(GRAFT_ERR_ARG, s.halo->begin(NULL, &a, &error));
    REFUSED(GRAFT_ERR_ARG, s.halo->begin(halo, NULL, &error));
    REFUSED(GRAFT_ERR_ARG, s.halo->progress(NULL, &arrived, &error));
    REFUSED(GRAFT_ERR_ARG, s.halo->end(NULL, &error));
    REFUSED(GRAFT_OK, s.halo->begin(halo, &a, &error)); /* the halo is destroyed without end() */
}

static const char *halos(const void *arg)
{
    const graft_slice whole = whole_graph();
    graft_graph      *graph = NULL;
    graft_halo       *halo = NULL, *none = NULL;
    graft_halo_info   info = GRAFT_INIT(graft_halo_info);
    graft_csr         matrix = GRAFT_INIT(graft_csr);

    (void)arg;
    if (s.graph->create(s.context, NULL, &whole, &graph, &error) < 0) return error.message;
    REFUSED(GRAFT_ERR_ARG, s.halo->create(NULL, &none, &error));
    REFUSED(GRAFT_ERR_ARG, s.halo->create(graph, NULL, &error));
    REFUSED(GRAFT_OK, s.halo->create(graph, &halo, &error));
    REFUSED(GRAFT_OK, s.halo->info(halo, &info, &error));
    REFUSED(GRAFT_ERR_ARG, s.halo->info(NULL, &info, &error));
    REFUSED(GRAFT_ERR_ARG, s.halo->info(halo, NULL, &error));
    REFUSED(GRAFT_ERR_ARG, s.halo->matrix(NULL, &matrix, &error));
    REFUSED(GRAFT_ERR_ARG, s.halo->matrix(halo, NULL, &error));
    REFUSED(GRAFT_OK, s.halo->matrix(halo, &matrix, &error));
    if (info.n_halo != 0 || matrix.n_cols != N) watch_blame("one rank has a halo of %lld rows", (long long)info.n_halo);
    matrix.size = 0;
    REFUSED(GRAFT_ERR_ARG, s.halo->matrix(halo, &matrix, &error));
    info.size = 1;
    REFUSED(GRAFT_ERR_ARG, s.halo->info(halo, &info, &error));
    passes_of_halo(halo);
    s.graph->destroy(graph);
    s.halo->destroy(NULL);
    s.halo->destroy(halo);
    return end_of_group();
}

static const char *groups_of_ranks(const void *arg)
{
    graft_group  *group = NULL, *none = NULL;
    int64_t       numbers[2] = { 3, 4 }, bytes[1] = { 2 }, huge[1] = { -1 };
    float         floats[2] = { 1, 2 };
    char          all[2] = { 'c', 'd' };
    graft_error   reason = GRAFT_INIT(graft_error);
    const int32_t own = -1234;

    (void)arg;
    REFUSED(GRAFT_ERR_ARG, s.group->create(NULL, NULL, &none, &error));
    REFUSED(GRAFT_ERR_ARG, s.group->create(s.context, NULL, NULL, &error));
    REFUSED(GRAFT_OK, s.group->create(s.context, NULL, &group, &error));
    REFUSED(GRAFT_ERR_ARG, s.group->agree(NULL, 0, &error));
    REFUSED(GRAFT_OK, s.group->agree(group, 0, &error));
    REFUSED(GRAFT_OK, s.group->agree(group, 7, &error));
    s.api.cancel(NULL);
    s.api.cancel(s.context);
    REFUSED(GRAFT_OK, s.group->agree(group, 7, &error)); /* an agreement of the host itself does not cancel a call */
    REFUSED(GRAFT_ERR_CANCELLED, s.group->create(s.context, NULL, &none, &error));
    REFUSED(GRAFT_OK, s.group->create(s.context, NULL, &none, &error));
    s.group->destroy(none);
    strcpy(reason.message, "there is no disk");
    REFUSED(own, s.group->agree(group, own, &reason));
    if (strcmp(reason.message, "there is no disk") != 0) watch_blame("agree says: %s", reason.message);
    REFUSED(own, s.group->agree(group, own, NULL));
    REFUSED(GRAFT_OK, s.group->sum(group, GRAFT_F32, 2, floats, &error));
    REFUSED(GRAFT_OK, s.group->sum(group, GRAFT_I64, 2, numbers, &error));
    REFUSED(GRAFT_OK, s.group->sum(group, GRAFT_F64, 0, NULL, &error));
    REFUSED(GRAFT_ERR_ARG, s.group->sum(NULL, GRAFT_F32, 2, floats, &error));
    REFUSED(GRAFT_ERR_ARG, s.group->sum(group, GRAFT_I32, 2, floats, &error));
    REFUSED(GRAFT_ERR_ARG, s.group->sum(group, GRAFT_F32, -1, floats, &error));
    REFUSED(GRAFT_ERR_ARG, s.group->sum(group, GRAFT_F32, INT64_MAX, floats, &error));
    REFUSED(GRAFT_ERR_ARG, s.group->sum(group, GRAFT_F32, 2, NULL, &error));
    REFUSED(GRAFT_OK, s.group->maximum(group, 2, numbers, &error));
    REFUSED(GRAFT_ERR_ARG, s.group->maximum(NULL, 2, numbers, &error));
    REFUSED(GRAFT_ERR_ARG, s.group->maximum(group, 2, NULL, &error));
    REFUSED(GRAFT_ERR_ARG, s.group->maximum(group, -2, numbers, &error));
    REFUSED(GRAFT_OK, s.group->gather(group, 0, bytes, "ab", all, &error));
    if (all[0] != 'a' || all[1] != 'b') watch_blame("one rank gathers %c%c", all[0], all[1]);
    REFUSED(GRAFT_OK, s.group->gather(group, -1, bytes, "ab", all, &error));
    REFUSED(GRAFT_ERR_ARG, s.group->gather(NULL, 0, bytes, "ab", all, &error));
    REFUSED(GRAFT_ERR_ARG, s.group->gather(group, 1, bytes, "ab", all, &error));
    REFUSED(GRAFT_ERR_ARG, s.group->gather(group, -2, bytes, "ab", all, &error));
    REFUSED(GRAFT_ERR_ARG, s.group->gather(group, 0, NULL, "ab", all, &error));
    REFUSED(GRAFT_ERR_ARG, s.group->gather(group, 0, huge, "ab", all, &error));
    REFUSED(GRAFT_ERR_ARG, s.group->gather(group, 0, bytes, NULL, all, &error));
    REFUSED(GRAFT_ERR_ARG, s.group->gather(group, 0, bytes, "ab", NULL, &error));
    REFUSED(GRAFT_OK, s.group->broadcast(group, 0, 2, all, &error));
    REFUSED(GRAFT_ERR_ARG, s.group->broadcast(NULL, 0, 2, all, &error));
    REFUSED(GRAFT_ERR_ARG, s.group->broadcast(group, -1, 2, all, &error));
    REFUSED(GRAFT_ERR_ARG, s.group->broadcast(group, 0, -2, all, &error));
    REFUSED(GRAFT_ERR_ARG, s.group->broadcast(group, 0, 2, NULL, &error));
    s.group->destroy(NULL);
    s.group->destroy(group);
    return end_of_group();
}

int main(void)
{
    static const struct group groups[] = {
        { "create of a graph", arguments_ranks_graph_create, NULL },
        { "a graph", graph_calls, NULL },
        { "plans and passes", plans, NULL },
        { "halos", halos, NULL },
        { "collective calls of hosts", groups_of_ranks, NULL },
    };

    return run_groups(groups, NUMBER(groups));
}
