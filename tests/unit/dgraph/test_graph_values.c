/* Checks update_values() of graft.graph/1: afterwards plans and halos must be bitwise identical to new ones that are
 * made from slices with the new values. An illegal update must be refused on all ranks and change nothing.
 * SPDX-License-Identifier: Apache-2.0 */
#include "graft_aggregate.h"
#include "graft_halo.h"
#include "graft_load.h"
#include "harness/effort.h"
#include "harness/hosts.h"
#include "harness/tap.h"
#include "oracle/oracle.h"
#include "oracle/sample.h"

#include <math.h>
#include <string.h>

enum { WIDTH = 5, EPOCHS = 2, PASSES = 2 * EPOCHS + 1, UPDATES = 3 };

#define TRY(expression)                                                                                                \
    do {                                                                                                               \
        rc = (expression);                                                                                             \
        if (rc < 0) goto done;                                                                                         \
    } while (0)

/* A graph with repeated edges, and two sets of values. */
struct values_job {
    struct sample_csr graph;
    int64_t           n, entries;
    graft_dtype       dtype;
    int32_t          *owner;     /* [n] owners, or NULL for option partition */
    char             *values[2]; /* [entries] values before and after */
    enum slices       way;
    const char       *change; /* name of what one rank does wrong */
};

/* The objects of a rank, and the results of their passes. */
struct values_objects {
    int64_t      first, entries; /* place of the slice among all entries, and its number of entries */
    graft_graph *graph;
    graft_plan  *both, *forward;
    graft_halo  *halo;
    int64_t      n_owned;
    char        *x, *out[PASSES];
};

static const graft_aggregate_api *aggregate_of(const struct host *host)
{
    return graft_interface(host->api, GRAFT_AGGREGATE_ID, GRAFT_HAS(graft_aggregate_api, assign_bits));
}

static const graft_halo_api *halos_of(const struct host *host)
{
    return graft_interface(host->api, GRAFT_HALO_ID, GRAFT_HAS(graft_halo_api, destroy));
}

static int32_t values_fault(struct host *host, const char *words, long long number)
{
    char before[256];

    snprintf(before, sizeof before, "%.250s", host->error.message);
    snprintf(host->error.message, sizeof host->error.message, "%.80s (%lld); %s", words, number, before);
    return GRAFT_ERR_FORMAT;
}

static void values_job_init(struct values_job *job, struct sample *sample, int64_t n, graft_dtype dtype,
                            int32_t n_ranks, int owned)
{
    const struct sample_csr_shape shape = { n, n, sample_below(sample, 2) ? GRAFT_I32 : GRAFT_I64, dtype, 1, 0 };

    *job = (struct values_job){ .n = n, .dtype = dtype };
    sample_csr_init_shape(&job->graph, sample, &shape);
    job->entries = job->graph.row_ptr[n];
    for (int i = 0; i < 2; i++) {
        job->values[i] = oracle_new(job->entries + 1, sample_bytes(dtype));
        for (int64_t e = 0; e < job->entries; e++) sample_put(job->values[i], dtype, e, sample_real(sample, -1, 1));
    }
    if (owned) job->owner = oracle_new(n + 1, sizeof *job->owner);
    for (int64_t v = 0; v < n && owned; v++) job->owner[v] = (int32_t)sample_below(sample, n_ranks);
}

static void values_job_fini(struct values_job *job)
{
    sample_csr_fini(&job->graph);
    free(job->owner);
    free(job->values[0]);
    free(job->values[1]);
}

static char *values_at(const struct values_job *job, const struct values_objects *o, int which)
{
    return job->values[which] + job->graph.row_ptr[o->first] * (int64_t)sample_bytes(job->dtype);
}

static int32_t values_make_graph(struct host *host, int which, struct values_objects *o)
{
    const struct values_job *job = host->all->arg;
    graft_dataset            whole = GRAFT_INIT(graft_dataset);
    struct host_slice        slice;
    int32_t                  rc;

    whole.n_vertices = job->n;
    whole.graph = whole.sparse_features = &job->graph.csr; /* host_slice_init() needs features, which are not used */
    host_slice_init(&slice, &whole, job->way, host->rank, host->n_ranks);
    o->first = slice.first;
    o->entries = job->graph.row_ptr[slice.end] - job->graph.row_ptr[slice.first];
    if (slice.slice.rows != NULL) slice.rows.values = values_at(job, o, which);
    if (job->owner != NULL) slice.slice.owner = job->owner + slice.first;
    rc = host->graphs->create(host->api->context, &host->transport, &slice.slice, &o->graph, &host->error);
    host_slice_fini(&slice);
    return rc;
}

static void values_close(struct host *host, struct values_objects *o)
{
    aggregate_of(host)->destroy(o->both);
    aggregate_of(host)->destroy(o->forward);
    halos_of(host)->destroy(o->halo);
    host->graphs->destroy(o->graph);
    free(o->x);
    for (int i = 0; i < PASSES; i++) free(o->out[i]);
}

/* Make a graph with two plans, one of which has transposed passes, and a halo with its matrix. */
static int32_t values_open(struct host *host, int which, struct values_objects *o)
{
    const struct values_job *job = host->all->arg;
    const graft_plan_args    args = { sizeof args, GRAFT_PLAN_TRANSPOSED, WIDTH, job->dtype, 1 };
    graft_graph_info         info = GRAFT_INIT(graft_graph_info);
    graft_csr                matrix = GRAFT_INIT(graft_csr);
    struct sample            sample = { 3 };
    int32_t                  rc;

    *o = (struct values_objects){ 0 };
    TRY(values_make_graph(host, which, o));
    TRY(aggregate_of(host)->create(o->graph, &args, &o->both, &host->error));
    TRY(halos_of(host)->create(o->graph, &o->halo, &host->error));
    TRY(aggregate_of(host)->create(o->graph, NULL, &o->forward, &host->error));
    TRY(halos_of(host)->matrix(o->halo, &matrix, &host->error));
    TRY(host->graphs->info(o->graph, host->rank, &info, &host->error));
    o->n_owned = info.n_owned;
    o->x = oracle_new(o->n_owned * WIDTH + 1, sample_bytes(job->dtype));
    for (int64_t i = 0; i < o->n_owned * WIDTH; i++) sample_put(o->x, job->dtype, i, sample_real(&sample, -1, 1));
    for (int i = 0; i < PASSES; i++) o->out[i] = oracle_new(o->n_owned * WIDTH + 1, sample_bytes(job->dtype));
done:
    return rc;
}

static graft_dense rows_of(const struct host *host, const struct values_objects *o, char *data)
{
    const struct values_job *job = host->all->arg;

    return (graft_dense){ sizeof(graft_dense), job->dtype, o->n_owned, WIDTH, WIDTH, data };
}

static int32_t values_pass(struct host *host, struct values_objects *o, graft_plan *plan, int32_t epoch, uint32_t flags,
                           char *to)
{
    const graft_dense    x = rows_of(host, o, o->x), out = rows_of(host, o, to);
    graft_aggregate_args args = { .size = sizeof args, .flags = flags, .epoch = epoch, .x = &x, .out = &out };
    int32_t              rc;

    args.semiring = plan == o->forward ? GRAFT_MAX_TIMES : GRAFT_PLUS_TIMES;
    TRY(aggregate_of(host)->begin(plan, &args, &host->error));
    rc = aggregate_of(host)->end(plan, &host->error);
done:
    return rc;
}

/* Run the passes of some training steps in both directions, and one pass of the other plan. */
static int32_t values_run(struct host *host, struct values_objects *o, int32_t epoch)
{
    const struct values_job *job = host->all->arg;
    int32_t                  rc;

    for (int32_t i = 0; i < EPOCHS; i++) {
        if (o->n_owned > 0) sample_put(o->x, job->dtype, 0, epoch + i);
        TRY(values_pass(host, o, o->both, epoch + i, 0, o->out[2 * i]));
        TRY(values_pass(host, o, o->both, epoch + i, GRAFT_AGGREGATE_TRANSPOSE, o->out[2 * i + 1]));
    }
    rc = values_pass(host, o, o->forward, epoch, GRAFT_AGGREGATE_STATELESS, o->out[PASSES - 1]);
done:
    return rc;
}

/* Compare results and matrices of two sets of objects bitwise. */
static int32_t values_compare(struct host *host, const struct values_objects *a, const struct values_objects *b)
{
    const struct values_job *job = host->all->arg;
    const size_t             bytes = (size_t)a->n_owned * WIDTH * sample_bytes(job->dtype);
    graft_csr                m = GRAFT_INIT(graft_csr), k = GRAFT_INIT(graft_csr);

    for (int i = 0; i < PASSES; i++)
        if (memcmp(a->out[i], b->out[i], bytes) != 0) return values_fault(host, "a pass has other bits", i);
    halos_of(host)->matrix(a->halo, &m, NULL);
    halos_of(host)->matrix(b->halo, &k, NULL);
    if (memcmp(m.values, k.values, (size_t)m.row_ptr[m.n_rows] * sample_bytes(job->dtype)) != 0)
        return values_fault(host, "the matrix of the halo has other values", 0);
    return GRAFT_OK;
}

static graft_dense new_values(const struct host *host, const struct values_objects *o, int which)
{
    const struct values_job *job = host->all->arg;

    return (graft_dense){ sizeof(graft_dense), job->dtype, o->entries, 1, 1, values_at(job, o, which) };
}

static int32_t same_body(struct host *host)
{
    const int             is_adaptive = strstr(((const struct values_job *)host->all->arg)->change, "adaptive") != NULL;
    struct values_objects old, fresh = { 0 };
    int32_t               rc;

    TRY(values_open(host, 0, &old));
    for (int i = 1; i <= UPDATES; i++) {
        const graft_dense values = new_values(host, &old, i % 2);

        /* Makes kernels prepare their matrices, and leaves rows in flight. */
        TRY(values_run(host, &old, EPOCHS * (i - 1)));
        if (is_adaptive) TRY(aggregate_of(host)->assign_bits(old.both, &host->error));
        TRY(host->graphs->update_values(old.graph, old.entries > 0 ? &values : NULL, &host->error));
        TRY(values_open(host, i % 2, &fresh));
        TRY(values_run(host, &old, EPOCHS * i));
        TRY(values_run(host, &fresh, EPOCHS * i));
        TRY(values_compare(host, &old, &fresh));
        values_close(host, &fresh);
        fresh = (struct values_objects){ 0 };
    }
done:
    values_close(host, &fresh);
    values_close(host, &old);
    return rc;
}

static void test_same_bits(int32_t n_ranks, int count)
{
    static const char *const settings[][4] = {
        { "partition=hash", "halo.cover=hybrid" },
        { "partition=given", "halo.cover=pre" },
        { "partition=block", "halo.cover=post", "threads=2" },
        { "partition=hash", "halo.staleness=1", "halo.cover=pre" },
        { "partition=given", "halo.codec=adaptive" },
        { "partition=stream", "halo.codec=q2", "halo.staleness=1" },
    };
    struct sample sample = { 70 + (uint64_t)n_ranks };
    const char   *words = NULL;

    for (int i = 0; i < count && words == NULL; i++) {
        static struct hosts      hosts;
        const char *const *const at = settings[i % (int)(sizeof settings / sizeof *settings)];
        struct values_job        job;

        values_job_init(&job, &sample, 3 + sample_below(&sample, 200), i % 3 != 0 ? GRAFT_F32 : GRAFT_F64, n_ranks,
                        i % 4 == 3);
        job.way = (enum slices)(i % SLICES);
        job.change = at[1];
        hosts_run(&hosts, n_ranks, at, same_body, &job);
        words = hosts_fault(&hosts);
        if (words != NULL) diag("case %d, %s %s, slices %s", i, at[0], at[1], slices_name[job.way]);
        values_job_fini(&job);
    }
    ok(words == NULL,
       "new values of %d graphs over %d ranks give results bitwise identical to new graphs, "
       "plans and halos: %s",
       count, n_ranks, words != NULL ? words : "same");
}

/* Rank 1 makes a wrong call: one property of its values is changed. */
static int32_t wrong_update(struct host *host, struct values_objects *o)
{
    const struct values_job *job = host->all->arg;
    const char              *change = host->rank == 1 ? job->change : "";
    const size_t             bytes = (size_t)o->entries * sample_bytes(job->dtype);
    char                    *copy = oracle_new(2 * o->entries + 1, sample_bytes(job->dtype));
    graft_dense              values = new_values(host, o, 1);
    int32_t                  rc;

    memcpy(copy, values.data, bytes);
    values.data = copy;
    if (strcmp(change, "one less") == 0) values.n_rows--;
    if (strcmp(change, "one more") == 0) values.n_rows++;
    if (strcmp(change, "two columns") == 0) values.n_cols = 2;
    if (strcmp(change, "gaps") == 0) values.stride = 2;
    if (strcmp(change, "type") == 0) values.dtype = job->dtype == GRAFT_F32 ? GRAFT_F64 : GRAFT_F32;
    if (strcmp(change, "array") == 0) values.data = NULL;
    if (strcmp(change, "size") == 0) values.size = 7;
    if (strcmp(change, "not finite") == 0) sample_put(copy, job->dtype, o->entries - 1, NAN);
    if (strcmp(change, "plan") == 0) {
        aggregate_of(host)->destroy(o->forward);
        o->forward = NULL;
    }
    rc = host->graphs->update_values(o->graph, strcmp(change, "null") == 0 ? NULL : &values, &host->error);
    free(copy);
    return rc;
}

/* Check that an update that changes nothing, or fails, has no effect on later passes. */
static int32_t unchanged(struct host *host, struct values_objects *o)
{
    const struct values_job *job = host->all->arg;
    char                    *now = oracle_new(o->n_owned * WIDTH + 1, sample_bytes(job->dtype));
    int32_t                  rc;

    TRY(values_pass(host, o, o->both, 0, 0, now));
    if (memcmp(now, o->out[0], (size_t)o->n_owned * WIDTH * sample_bytes(job->dtype)) != 0)
        rc = values_fault(host, "a refused update has changed a product", 0);
done:
    free(now);
    return rc;
}

static int32_t values_wrong_body(struct host *host)
{
    const struct values_job *job = host->all->arg;
    const int                starts = strcmp(job->change, "pass") == 0;
    struct values_objects    o;
    graft_aggregate_args     args = GRAFT_INIT(graft_aggregate_args);
    graft_dense              x, out;
    graft_error              refused = GRAFT_INIT(graft_error);
    int32_t                  rc;

    TRY(values_open(host, 0, &o));
    TRY(values_pass(host, &o, o.both, 0, 0, o.out[0]));
    x = rows_of(host, &o, o.x);
    out = rows_of(host, &o, o.out[1]);
    args.x = &x;
    args.out = &out;
    args.semiring = GRAFT_PLUS_TIMES;
    if (starts) TRY(aggregate_of(host)->begin(o.both, &args, &host->error));
    if (wrong_update(host, &o) == GRAFT_OK) {
        rc = values_fault(host, "it was not refused", 0);
        goto done;
    }
    refused = host->error;
    if (starts) TRY(aggregate_of(host)->end(o.both, &host->error));
    TRY(unchanged(host, &o));
    host->error = refused;
    rc = refused.code;
done:
    values_close(host, &o);
    return rc;
}

static void test_values_wrong(void)
{
    static const struct {
        const char *change, *words;
        int32_t     code;
    } wrong[] = {
        { "one less", "expected", GRAFT_ERR_ARG },
        { "one more", "edges", GRAFT_ERR_ARG },
        { "two columns", "x 2 values", GRAFT_ERR_ARG },
        { "gaps", "stride", GRAFT_ERR_ARG },
        { "type", "dtype", GRAFT_ERR_ARG },
        { "array", "null", GRAFT_ERR_ARG },
        { "null", "0 x 1", GRAFT_ERR_ARG },
        { "size", "size", GRAFT_ERR_ARG },
        { "not finite", "not finite", GRAFT_ERR_FORMAT },
        { "plan", "plans of the graph", GRAFT_ERR_ARG },
        { "pass", "has begun", GRAFT_ERR_STATE },
    };
    static const char *const settings[] = { "halo.timeout=5", "partition=hash", NULL };
    static struct hosts      hosts;
    struct sample            sample = { 8 };
    struct values_job        job;

    values_job_init(&job, &sample, 60, GRAFT_F32, 3, 0);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        int right = 1;

        job.change = wrong[i].change;
        hosts_run(&hosts, 3, settings, values_wrong_body, &job);
        for (int32_t p = 0; p < 3; p++)
            right &= hosts.at[p].rc == wrong[i].code && strstr(hosts.at[p].error.message, wrong[i].words) != NULL &&
                     strcmp(hosts.at[p].error.message, hosts.at[0].error.message) == 0 && hosts.at[p].seconds < 4;
        ok(right && hosts.error.code == 0, "%s: update_values() is refused on all ranks, and nothing has changed: %s",
           wrong[i].change, hosts.at[0].error.message);
    }
    values_job_fini(&job);
}

/* Each allocation of an update fails in turn, on one rank. */
static int32_t values_starved_body(struct host *host)
{
    struct values_objects o;
    graft_dense           values;
    int32_t               rc, failures = 0;

    TRY(values_open(host, 0, &o));
    TRY(values_pass(host, &o, o.both, 0, 0, o.out[0]));
    values = new_values(host, &o, 1);
    for (;; failures++) {
        host->fail_at = host->rank == 1 ? failures : -1;
        rc = host->graphs->update_values(o.graph, &values, &host->error);
        host->fail_at = -1;
        if (rc == GRAFT_OK) break;
        if (rc != GRAFT_ERR_NOMEM) goto done;
        TRY(unchanged(host, &o));
    }
    if (failures < 10) rc = values_fault(host, "allocations, which are too few", failures);
    snprintf(host->error.message, sizeof host->error.message, "%d allocations", failures);
done:
    values_close(host, &o);
    return rc;
}

static void test_values_starved(void)
{
    static const char *const settings[] = { "halo.timeout=5", "partition=hash", NULL };
    static struct hosts      hosts;
    struct sample            sample = { 9 };
    struct values_job        job;

    values_job_init(&job, &sample, 60, GRAFT_F64, 3, 0);
    hosts_run(&hosts, 3, settings, values_starved_body, &job);
    ok(hosts_fault(&hosts) == NULL,
       "each allocation fails in turn: ERR_NOMEM on all ranks, and nothing has changed; %s: %s",
       hosts.at[1].error.message, hosts_fault(&hosts) != NULL ? hosts_fault(&hosts) : "right");
    values_job_fini(&job);
}

/* A trainer borrows the values of its graph, so update_values() must be refused while it exists. */
static int32_t trainer_body(struct host *host)
{
    const graft_dataset *data = host->all->arg;
    struct host_trainer  t;
    graft_dense          values = { sizeof values, GRAFT_F32, 0, 1, 1, NULL };
    int32_t              rc, with, without;

    TRY(host_trainer_create(host, data, SLICES_EVEN, &t));
    values.n_rows = t.slice.rows.row_ptr[t.slice.rows.n_rows];
    values.data = (void *)(uintptr_t)t.slice.rows.values;
    with = host->graphs->update_values(t.graph, &values, &host->error);
    host->train->destroy(t.trainer);
    t.trainer = NULL;
    without = host->graphs->update_values(t.graph, &values, NULL);
    if (with != GRAFT_ERR_STATE || strstr(host->error.message, "trainer") == NULL || without != GRAFT_OK)
        rc = values_fault(host, "the trainer does not count", with);
done:
    host_trainer_destroy(host, &t);
    return rc;
}

static int32_t valueless_body(struct host *host)
{
    const graft_dataset *data = host->all->arg;
    struct host_slice    slice;
    graft_graph         *graph = NULL;
    int32_t              rc;

    host_slice_init(&slice, data, SLICES_EVEN, host->rank, host->n_ranks);
    slice.rows.values = NULL;
    TRY(host->graphs->create(host->api->context, &host->transport, &slice.slice, &graph, &host->error));
    rc = host->graphs->update_values(graph, NULL, &host->error);
done:
    host->graphs->destroy(graph);
    host_slice_fini(&slice);
    return rc;
}

static void test_values_others(void)
{
    static const char *const settings[] = { "model=gcn", "self_loops=no", NULL };
    static struct hosts      hosts;
    struct sample            sample = { 10 };
    struct sample_dataset    set;
    float                   *values;

    sample_dataset_init(&set, &sample, 50, 4, 3, 0, 0);
    values = oracle_new(set.graph.row_ptr[50], sizeof *values);
    for (int64_t e = 0; e < set.graph.row_ptr[50]; e++) values[e] = (float)sample_real(&sample, 0, 1);
    set.graph.csr.values = values;
    set.graph.csr.value_type = GRAFT_F32;
    hosts_run(&hosts, 2, settings, trainer_body, &set.dataset);
    ok(hosts_fault(&hosts) == NULL, "update_values() returns ERR_STATE as long as a trainer uses the graph: %s",
       hosts.at[0].error.message);
    hosts_run(&hosts, 2, settings, valueless_body, &set.dataset);
    ok(hosts.at[0].rc == GRAFT_ERR_STATE && hosts.at[1].rc == GRAFT_ERR_STATE &&
           strstr(hosts.at[1].error.message, "without values") != NULL,
       "update_values() refuses a graph without values: %s", hosts.at[0].error.message);
    set.graph.csr.values = NULL;
    free(values);
    sample_dataset_fini(&set);
}

int main(void)
{
    for (int32_t n_ranks = 1; n_ranks <= 4; n_ranks++) test_same_bits(n_ranks, repeats(24));
    test_values_wrong();
    test_values_starved();
    test_values_others();
    return done();
}
