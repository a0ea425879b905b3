/* Distributes graphs over ranks and joins the results, see harness/spread.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness/spread.h"

#include "oracle/oracle.h"

#include "base/clock.h"
#include "base/dtype.h"
#include "base/option.h"
#include "kernel/simd/simd.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TRY(expression)                                                                                                \
    do {                                                                                                               \
        rc = (expression);                                                                                             \
        if (rc < 0) goto done;                                                                                         \
    } while (0)

void spread_slice(enum slicing slicing, int64_t n, int32_t n_ranks, int32_t rank, int64_t *first, int64_t *end)
{
    const int64_t odd = n_ranks / 2;

    *first = *end = 0;
    switch (slicing) {
    case SLICE_EVEN: *first = n * rank / n_ranks, *end = n * (rank + 1) / n_ranks; break;
    case SLICE_FIRST: *first = rank == 0 ? 0 : n, *end = n; break;
    case SLICE_LAST: *first = 0, *end = rank == n_ranks - 1 ? n : 0; break;
    default: /* every rank with an odd number has edges; if there is only one rank, it has all of them */
        *first = odd > 0 ? n * (rank / 2) / odd : 0;
        *end = odd == 0 ? n : rank % 2 == 1 ? n * (rank / 2 + 1) / odd : *first;
        if (*first > n) *first = *end = n;
    }
}

int32_t spread_setup(struct rank *r, const struct spread *s)
{
    char    timeout[32];
    int32_t rc = GRAFT_OK;

    snprintf(timeout, sizeof timeout, "%g", r->all->timeout);
    TRY(gr_option_set(r->context, "halo.timeout", timeout, &r->error));
    for (int32_t i = 0; gr_kernel_simd(i) != NULL; i++)
        TRY(gr_module_register(r->context, gr_kernel_simd(i), &r->error));
    TRY(gr_module_register(r->context, &gr_kernel_reference, &r->error));
    TRY(gr_option_set(r->context, "partition", s->partition, &r->error));
    TRY(gr_option_set(r->context, "halo.cover", s->cover, &r->error));
    TRY(gr_option_set(r->context, "threads", s->threads, &r->error));
    for (int i = 0; s->settings != NULL && s->settings[i] != NULL; i += 2)
        TRY(gr_option_set(r->context, s->settings[i], s->settings[i + 1], &r->error));
done:
    return rc;
}

int32_t spread_graph(struct rank *r, const struct spread *s, graft_graph **graph)
{
    const int64_t entry = s->graph->index_type == GRAFT_I32 ? 4 : 8;
    graft_slice   slice = GRAFT_INIT(graft_slice);
    graft_csr     rows = *s->graph;
    int64_t      *row_ptr, first, end;
    int32_t       rc;

    spread_slice(s->slicing, s->graph->n_rows, r->n_ranks, r->rank, &first, &end);
    row_ptr = calloc((size_t)(end - first) + 1, sizeof *row_ptr);
    for (int64_t i = 0; i <= end - first; i++) row_ptr[i] = s->graph->row_ptr[first + i] - s->graph->row_ptr[first];
    rows.n_rows = end - first;
    rows.row_ptr = row_ptr;
    rows.col_idx = (const char *)s->graph->col_idx + s->graph->row_ptr[first] * entry;
    if (rows.values != NULL)
        rows.values = (const char *)rows.values + s->graph->row_ptr[first] * gr_dtype_bytes(rows.value_type);
    slice.n_vertices = s->graph->n_rows;
    slice.first_row = first;
    slice.rows = end > first || r->rank % 2 == 0 ? &rows : NULL;
    slice.owner = s->owner != NULL ? s->owner + first : NULL;
    slice.train_mask = s->train_mask != NULL ? s->train_mask + first : NULL;
    rc = gr_interface_graph.create(r->context, r->n_ranks > 1 ? &r->transport : NULL, &slice, graph, &r->error);
    free(row_ptr);
    return rc;
}

static graft_dense dense(const struct spread *s, void *data, int64_t rows, int64_t width, int64_t stride)
{
    return (graft_dense){ sizeof(graft_dense), s->dtype, rows, width, stride, data };
}

/* The arrays of one rank, in the order of the vertices that it owns. */
struct owned {
    int64_t   n, first, element;
    char     *x, *out, *scale;
    uint16_t *half; /* x in bfloat16, or NULL */
};

/* Store floats as bfloat16. Their lower halves are 0, so nothing is rounded. */
static void spread_halve(struct rank *r, const struct spread *s, struct owned *o)
{
    const int64_t count = o->n * s->x_width;

    o->half = calloc((size_t)count + 1, sizeof *o->half);
    for (int64_t i = 0; i < count; i++) {
        uint32_t bits;

        memcpy(&bits, o->x + i * o->element, sizeof bits);
        o->half[i] = (uint16_t)(bits >> 16);
        if (bits << 16 != 0) rank_blame(r, "element %lld of x is no bfloat16", (long long)i);
    }
}

static int32_t spread_redistribute(struct rank *r, graft_graph *graph, int32_t direction, int64_t row_bytes,
                                   const void *from, void *to)
{
    graft_redistribution args = { sizeof args, direction, row_bytes, from, row_bytes, to, row_bytes };

    return gr_interface_graph.redistribute(graph, &args, &r->error);
}

/* Wait until all ranks have begun the pass, and call progress() until all messages have arrived. Then end() need not
 * wait. */
static int32_t spread_progress(struct rank *r, graft_graph *graph, graft_plan *plan)
{
    const double begin = gr_seconds();
    int32_t      arrived = 0, rc = GRAFT_OK;

    TRY(gr_comm_barrier(graph->comm, &r->error));
    while (!arrived && gr_seconds() < begin + 20) TRY(gr_interface_aggregate.progress(plan, &arrived, &r->error));
    if (!arrived) rank_blame(r, "progress() brings in nothing");
    TRY(gr_interface_aggregate.progress(plan, &arrived, &r->error));
    if (!arrived) rank_blame(r, "what has arrived has not");
done:
    return rc;
}

/* The time in seconds that the plan has spent waiting for messages up to now. */
static double spread_waited(const struct rank *r, const graft_plan *plan)
{
    graft_plan_info info = GRAFT_INIT(graft_plan_info);

    gr_interface_aggregate.info(plan, r->rank, &info, NULL);
    return info.wait_seconds;
}

static int32_t do_pass(struct rank *r, const struct spread *s, graft_graph *graph, graft_plan *plan, struct owned *o,
                       int number)
{
    const struct spread_pass *p = &s->pass[number];
    const int64_t             row = p->width * o->element;
    graft_dense               x = dense(s, o->x, o->n, p->width, s->x_width);
    const graft_dense         out = dense(s, o->out, o->n, p->width, p->width);
    graft_aggregate_args      args = GRAFT_INIT(graft_aggregate_args);
    double                    waited = 0;
    int32_t                   rc;

    if (o->half != NULL) {
        x.data = o->half;
        x.dtype = GRAFT_BF16;
    }
    args.semiring = p->semiring;
    args.flags = p->flags;
    args.x = &x;
    args.out = &out;
    args.row_scale = p->scaled ? o->scale : NULL;
    args.threads = s->pass_threads;
    args.epoch = number / 4;
    args.layer = number % 4;
    TRY(spread_redistribute(r, graph, GRAFT_TO_OWNERS, row, p->out + o->first * row, o->out));
    TRY(gr_interface_aggregate.begin(plan, &args, &r->error));
    if (s->progresses) TRY(spread_progress(r, graph, plan));
    if (s->progresses) waited = spread_waited(r, plan);
    TRY(gr_interface_aggregate.end(plan, &r->error));
    if (s->progresses && spread_waited(r, plan) > waited) rank_blame(r, "end() has waited for what had arrived");
    TRY(spread_redistribute(r, graph, GRAFT_TO_SLICES, row, o->out, p->out + o->first * row));
done:
    return rc;
}

/* Check that move() has brought the rows of x to the rank that owns their vertices. */
static void check_owned(struct rank *r, struct spread *s, const graft_graph *graph, const struct owned *o)
{
    const int64_t *vertex = gr_interface_graph.owned(graph);
    const int64_t  row = s->x_width * o->element;

    for (int64_t i = 0; i < o->n; i++) {
        if (memcmp(o->x + i * row, s->x + vertex[i] * row, (size_t)row) != 0)
            rank_blame(r, "the row of vertex %lld is not its", (long long)vertex[i]);
        if (i > 0 && vertex[i] <= vertex[i - 1]) rank_blame(r, "owned vertices do not rise");
        if (s->owner != NULL && s->owner[vertex[i]] != r->rank) rank_blame(r, "another owner than was asked for");
        s->found[vertex[i]] = r->rank;
    }
}

static void record(struct rank *r, struct spread *s, const graft_graph *graph, const graft_plan *plan)
{
    const int64_t *in = plan->rows[GR_RECEIVE].start;

    if (!gr_plan_is_valid(plan)) rank_blame(r, "the plan is not valid");
    if (r->rank == r->n_ranks - 1) gr_interface_graph.explain(graph, s->explained, sizeof s->explained, &r->error);
    for (int32_t q = 0; q < r->n_ranks; q++) s->rows[q][r->rank] = in[q + 1] - in[q];
    if (r->rank != 0) return;
    for (int32_t p = 0; p <= r->n_ranks; p++) {
        s->graph_info[p] = GRAFT_INIT(graft_graph_info);
        s->plan_info[p] = GRAFT_INIT(graft_plan_info);
        gr_interface_graph.info(graph, p < r->n_ranks ? p : -1, &s->graph_info[p], NULL);
        gr_interface_aggregate.info(plan, p < r->n_ranks ? p : -1, &s->plan_info[p], NULL);
    }
}

int32_t spread_plan(struct rank *r, struct spread *s, graft_graph *graph, const graft_plan_args *args,
                    graft_plan **plan)
{
    const int weighs = s->weighs && r->n_ranks > 1;
    int64_t   before;
    int32_t   rc = GRAFT_OK;

    if (weighs) TRY(gr_comm_barrier(graph->comm, &r->error));
    before = atomic_load(&r->all->live_bytes);
    if (weighs) TRY(gr_comm_barrier(graph->comm, &r->error));
    if (weighs && r->rank == 0) atomic_store(&r->all->peak_bytes, before);
    TRY(gr_interface_aggregate.create(graph, args, plan, &r->error));
    if (weighs) TRY(gr_comm_barrier(graph->comm, &r->error));
    if (weighs && r->rank == 0) s->plan_peak = atomic_load(&r->all->peak_bytes) - before;
    if (weighs && r->rank == 0) s->plan_stays = atomic_load(&r->all->live_bytes) - before;
    if (weighs) TRY(gr_comm_barrier(graph->comm, &r->error));
done:
    return rc;
}

/* After a plan failed because a rank had no memory, make a second plan on the same ranks, and one pass. */
static void make_again(struct rank *r, const struct spread *s, graft_graph *graph, const graft_plan_args *args,
                       struct owned *o)
{
    const graft_error first = r->error;
    graft_plan       *plan = NULL;
    int32_t           rc;

    TRY(gr_interface_aggregate.create(graph, args, &plan, &r->error));
    if (s->n_passes > 0) TRY(do_pass(r, s, graph, plan, o, 0));
done:
    if (rc < 0) rank_blame(r, "again: %s", r->error.message);
    gr_interface_aggregate.destroy(plan);
    r->error = first;
}

int32_t spread_body(struct rank *r)
{
    struct spread   *s = r->all->arg;
    graft_graph     *graph = NULL;
    graft_plan      *plan = NULL;
    graft_plan_args  args = GRAFT_INIT(graft_plan_args);
    graft_graph_info info = GRAFT_INIT(graft_graph_info);
    struct owned     o = { .element = s->dtype == GRAFT_F64 ? 8 : 4 };
    int64_t          end;
    int32_t          rc;

    TRY(spread_setup(r, s));
    if (s->starved && r->rank == r->all->fail_rank) atomic_store(&r->all->fail_at, s->fail_at);
    TRY(spread_graph(r, s, &graph));
    TRY(gr_interface_graph.info(graph, r->rank, &info, &r->error));
    spread_slice(s->slicing, s->graph->n_rows, r->n_ranks, r->rank, &o.first, &end);
    o.n = info.n_owned;
    o.x = calloc((size_t)(o.n * s->x_width) + 1, (size_t)o.element);
    o.out = calloc((size_t)(o.n * s->x_width) + 1, (size_t)o.element);
    o.scale = calloc((size_t)o.n + 1, (size_t)o.element);
    args.flags = s->forward_only ? 0 : GRAFT_PLAN_TRANSPOSED;
    args.width = s->reserved;
    args.dtype = s->dtype;
    args.layers = 4; /* the number of layers, which is the same in the other passes */
    rc = spread_plan(r, s, graph, &args, &plan);
    if (rc == GRAFT_ERR_NOMEM && s->starved) make_again(r, s, graph, &args, &o);
    TRY(rc);
    TRY(spread_redistribute(r, graph, GRAFT_TO_OWNERS, s->x_width * o.element, s->x + o.first * s->x_width * o.element,
                            o.x));
    TRY(spread_redistribute(r, graph, GRAFT_TO_OWNERS, o.element, s->scale + o.first * o.element, o.scale));
    check_owned(r, s, graph, &o);
    if (s->halves) spread_halve(r, s, &o);
    for (int i = 0; i < s->n_passes; i++) TRY(do_pass(r, s, graph, plan, &o, i));
    record(r, s, graph, plan);
done:
    free(o.x);
    free(o.half);
    free(o.out);
    free(o.scale);
    if (r->rank % 2 == 0) { /* a list of rows that are not in ascending order */
        gr_interface_graph.destroy(graph);
        gr_interface_aggregate.destroy(plan);
    } else {
        gr_interface_aggregate.destroy(plan);
        gr_interface_graph.destroy(graph);
    }
    return rc;
}

/* Whether a rank failed to allocate memory for its very last message. The other ranks had already finished, and learn
 * of the failure in their next call. */
static int is_too_late(const struct rank *r, const struct rank *other)
{
    return r->rc == GRAFT_ERR_PEER && other->rc == GRAFT_OK && strstr(r->error.message, "'a message'") != NULL;
}

int spread_starve(struct spread *s, int32_t n_ranks, int32_t rank, char fault[512])
{
    static struct ranks ranks;
    const char         *words;
    int                 failed = 0;

    ranks_init(&ranks, n_ranks, 20, spread_body, s);
    ranks.fail_rank = rank;
    ranks_run(&ranks);
    fault[0] = '\0';
    for (int32_t i = 0; i < n_ranks; i++) {
        const struct rank *r = &ranks.at[i];

        failed += r->rc < 0;
        if (r->rc < 0 && r->rc != GRAFT_ERR_NOMEM && r->rc != GRAFT_ERR_PEER)
            snprintf(fault, 512, "rank %d: status %d: %.300s", i, r->rc, r->error.message);
        if (!is_too_late(r, &ranks.at[0]) &&
            (r->rc != ranks.at[0].rc || strcmp(r->error.message, ranks.at[0].error.message) != 0))
            snprintf(fault, 512, "rank %d: %d, %.150s; rank 0: %d, %.150s", i, r->rc, r->error.message, ranks.at[0].rc,
                     ranks.at[0].error.message);
        if (r->rc < 0 && n_ranks > 1 && strstr(r->error.message, "no memory") == NULL)
            snprintf(fault, 512, "rank %d does not say why: %.300s", i, r->error.message);
        if (r->seconds > 15) snprintf(fault, 512, "rank %d took %.1f s", i, r->seconds);
    }
    if (atomic_load(&ranks.fail_at) >= 0 && failed > 0) snprintf(fault, 512, "there was memory");
    if (atomic_load(&ranks.fail_at) < 0 && failed == 0) snprintf(fault, 512, "memory failed and no call did");
    words = ranks_fini(&ranks);
    if (words != NULL && fault[0] == '\0') snprintf(fault, 512, "%.500s", words);
    return fault[0] != '\0' ? -1 : failed > 0;
}

void spread_make_sums(uint64_t seed, int64_t n, int64_t width, struct sample_csr *graph, struct sample_csr *transposed,
                      float *x, float *want)
{
    const struct sample_csr_shape shape = { n, n, GRAFT_I32, GRAFT_F32, 1, 1 };
    const graft_dense             b = { sizeof b, GRAFT_F32, n, width, width, x };
    const int64_t                 count = n * width;
    double                       *exact = calloc((size_t)(2 * count), sizeof *exact);
    struct sample                 sample = { seed };
    graft_mxm_args                args = GRAFT_INIT(graft_mxm_args);

    sample_csr_init_shape(graph, &sample, &shape);
    sample_csr_transpose(transposed, graph);
    for (int64_t i = 0; i < count; i++) x[i] = (float)sample_exact(&sample, 8, 4);
    args.semiring = GRAFT_PLUS_TIMES;
    args.b = args.c = &b;
    for (int t = 0; t < 2; t++) {
        oracle_mxm(t ? &transposed->csr : &graph->csr, &args, exact, NULL, exact + count);
        for (int64_t i = 0; i < count; i++) want[t * count + i] = (float)exact[i];
    }
    free(exact);
}
