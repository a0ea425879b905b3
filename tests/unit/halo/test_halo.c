/* Checks graft.halo/1 against plain loops over the whole graph: which vertices are in the halo, rows that owners send,
 * and sums that return to the owners.
 * SPDX-License-Identifier: Apache-2.0 */
#include "graft_halo.h"
#include "graft_load.h"
#include "harness/hosts.h"
#include "harness/tap.h"
#include "oracle/oracle.h"
#include "oracle/sample.h"

#include <math.h>
#include <sched.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { GAP = 3, POISON = -77, PROGRESS_SECONDS = 20 };

/* A graph over ranks, and the rows that are exchanged. */
struct halo_job {
    struct sample_csr graph;
    int64_t           n, width, gap;
    graft_dtype       dtype;
    int32_t          *owner;   /* [n] owner of each vertex */
    uint8_t          *needs;   /* [n_ranks x n] whether a rank has a vertex in its halo */
    double           *own;     /* [n x width] rows of the owners, representable in the type */
    double           *partial; /* [n_ranks x n x width] rows that ranks return to the owners */
    uint32_t          flags;
    int32_t           threads;
    double            bound;  /* largest error of a received element; 0 unless rows are quantized */
    const char       *change; /* name of what one rank does wrong */
    _Atomic int32_t   begun;
};

#define TRY(expression)                                                                                                \
    do {                                                                                                               \
        rc = (expression);                                                                                             \
        if (rc < 0) goto done;                                                                                         \
    } while (0)

/* Fail with a sentence of this rank. */
static int32_t blame_halo(struct host *host, const char *format, long long at, double found, double expected)
{
    host->error.code = GRAFT_ERR_FORMAT;
    snprintf(host->error.message, sizeof host->error.message, format, at, found, expected);
    return GRAFT_ERR_FORMAT;
}

static void halo_job_init(struct halo_job *job, struct sample *sample, int32_t n_ranks, int64_t n, int64_t width,
                          graft_dtype dtype)
{
    const int32_t spared = (int32_t)sample_below(sample, 2 * n_ranks); /* this rank, if it exists, owns no vertex */
    double       *reals;

    *job = (struct halo_job){ .n = n, .width = width, .dtype = dtype, .bound = 0 };
    job->gap = sample_below(sample, 2) ? GAP : 0;
    job->threads = (int32_t)sample_below(sample, 4);
    sample_csr_init_shape(&job->graph, sample, &(struct sample_csr_shape){ n, n, GRAFT_I32, GRAFT_F32, 1, 1 });
    job->owner = oracle_new(n, sizeof *job->owner);
    job->needs = oracle_new(n_ranks * n, 1);
    job->own = oracle_new(n * width, sizeof *job->own);
    job->partial = oracle_new(n_ranks * n * width, sizeof *job->partial);
    for (int64_t v = 0; v < n; v++) {
        job->owner[v] = (int32_t)sample_below(sample, n_ranks);
        if (job->owner[v] == spared) job->owner[v] = (spared + 1) % n_ranks;
    }
    for (int64_t v = 0; v < n; v++)
        for (int64_t e = job->graph.row_ptr[v]; e < job->graph.row_ptr[v + 1]; e++) {
            const int32_t u = ((const int32_t *)job->graph.col_idx)[e];

            if (job->owner[u] != job->owner[v]) job->needs[job->owner[v] * n + u] = 1;
        }
    for (int a = 0; a < 2; a++) {
        const int64_t count = (a == 0 ? 1 : n_ranks) * n * width;

        reals = a == 0 ? job->own : job->partial;
        for (int64_t i = 0; i < count; i++) {
            reals[i] = sample_real(sample, -1, 1);
            if (dtype == GRAFT_F32) reals[i] = (double)(float)reals[i];
        }
    }
}

static void halo_job_fini(struct halo_job *job)
{
    sample_csr_fini(&job->graph);
    free(job->owner);
    free(job->needs);
    free(job->own);
    free(job->partial);
}

/* A matrix of the host with gaps between rows, filled with POISON. */
static graft_dense halo_dense(const struct halo_job *job, int64_t n_rows)
{
    const int64_t stride = job->width + job->gap;
    graft_dense   d = { sizeof d,   job->dtype, n_rows,
                        job->width, stride,     oracle_new(n_rows * stride + 1, sample_bytes(job->dtype)) };

    for (int64_t i = 0; i < n_rows * stride; i++) sample_put(d.data, d.dtype, i, POISON);
    return d;
}

static void put_row(const graft_dense *d, int64_t row, const double *values)
{
    for (int64_t j = 0; j < d->n_cols; j++) sample_put(d->data, d->dtype, row * d->stride + j, values[j]);
}

/* Whether a row has the expected values, and its gap is untouched. */
static int32_t check_halo_row(struct host *host, const graft_dense *d, int64_t row, const double *values, double bound)
{
    for (int64_t j = 0; j < d->stride; j++) {
        const double found = sample_at(d->data, d->dtype, row * d->stride + j);
        const double want = j < d->n_cols ? values[j] : POISON;

        if (!(fabs(found - want) <= (j < d->n_cols ? bound : 0)))
            return blame_halo(host, "row %lld has %.17g, expected %.17g", (long long)row, found, want);
    }
    return GRAFT_OK;
}

/* Make the graph from slices; either rank 0 has all rows, or slices are even. */
static int32_t make_halo_graph(struct host *host, graft_graph **graph)
{
    const struct halo_job *job = host->all->arg;
    const int64_t          first = job->n * host->rank / host->n_ranks, end = job->n * (host->rank + 1) / host->n_ranks;
    graft_slice            slice = GRAFT_INIT(graft_slice);
    graft_csr              rows = job->graph.csr;
    int64_t               *row_ptr = oracle_new(end - first + 1, sizeof *row_ptr);
    int32_t                rc;

    for (int64_t i = 0; i <= end - first; i++) row_ptr[i] = job->graph.row_ptr[first + i] - job->graph.row_ptr[first];
    rows.n_rows = end - first;
    rows.row_ptr = row_ptr;
    rows.col_idx = (const int32_t *)rows.col_idx + job->graph.row_ptr[first];
    rows.values = (const float *)rows.values + job->graph.row_ptr[first];
    slice.n_vertices = job->n;
    slice.first_row = first;
    slice.rows = &rows;
    slice.owner = job->owner + first;
    rc = host->graphs->create(host->api->context, &host->transport, &slice, graph, &host->error);
    free(row_ptr);
    return rc;
}

/* The halo must have each vertex that the rank needs once, by owner and then ascending, and the send lists must have
 * what others need. */
static int32_t check_halo_info(struct host *host, const graft_halo_info *info, const int64_t *owned)
{
    const struct halo_job *job = host->all->arg;
    int64_t                needed = 0, sent = 0;

    for (int64_t v = 0; v < job->n; v++) needed += job->needs[host->rank * job->n + v];
    if (info->n_halo != needed)
        return blame_halo(host, "%lld rows: %g, needed %g", 0, (double)info->n_halo, (double)needed);
    for (int32_t i = 0; i < info->n_neighbours; i++) {
        const int32_t q = info->neighbour[i];

        if (i > 0 && q <= info->neighbour[i - 1]) return blame_halo(host, "neighbour %lld: %g %g", i, q, 0);
        for (int64_t k = info->receive_start[i]; k < info->receive_start[i + 1]; k++) {
            const int64_t v = info->vertex[k];

            if (job->owner[v] != q || !job->needs[host->rank * job->n + v] ||
                (k > info->receive_start[i] && v <= info->vertex[k - 1]))
                return blame_halo(host, "row %lld of the halo is of %g, which is not next of rank %g", (long long)k,
                                  (double)v, q);
        }
        for (int64_t v = 0, k = info->send_start[i]; v < job->n; v++) {
            if (job->owner[v] != host->rank || !job->needs[q * job->n + v]) continue;
            if (k >= info->send_start[i + 1] || owned[info->send_row[k++]] != v)
                return blame_halo(host, "vertex %lld is not sent %g to rank %g", (long long)v, 0, q);
            sent++;
        }
    }
    if (sent != info->n_sent || info->send_start[info->n_neighbours] != sent)
        return blame_halo(host, "%lld: %g rows are sent, needed %g", 0, (double)info->n_sent, (double)sent);
    if (info->receive_start[info->n_neighbours] != needed) return blame_halo(host, "%lld %g %g", 0, 0, 0);
    return GRAFT_OK;
}

/* Rows of the matrix must be those of the graph: first the entries of owned columns, then those of the halo, each in
 * the order of the graph. */
static int32_t check_halo_matrix(struct host *host, const graft_halo_api *halos, graft_halo *halo, const int64_t *owned)
{
    const struct halo_job *job = host->all->arg;
    graft_halo_info        info = GRAFT_INIT(graft_halo_info);
    graft_csr              matrix = GRAFT_INIT(graft_csr);
    int32_t                rc;

    TRY(halos->info(halo, &info, &host->error));
    TRY(halos->matrix(halo, &matrix, &host->error));
    if (matrix.n_rows != info.n_owned || matrix.n_cols != info.n_owned + info.n_halo)
        return blame_halo(host, "%lld: %g x %g", 0, (double)matrix.n_rows, (double)matrix.n_cols);
    for (int64_t i = 0; i < info.n_owned; i++) {
        int64_t at = matrix.row_ptr[i];

        for (int foreign = 0; foreign < 2; foreign++)
            for (int64_t e = job->graph.row_ptr[owned[i]]; e < job->graph.row_ptr[owned[i] + 1]; e++) {
                const int64_t u = ((const int32_t *)job->graph.col_idx)[e];
                int64_t       column;

                if ((job->owner[u] != host->rank) != foreign) continue;
                if (at == matrix.row_ptr[i + 1]) return blame_halo(host, "row %lld is short: %g %g", i, 0, 0);
                column = ((const int32_t *)matrix.col_idx)[at];
                column = column < info.n_owned ? owned[column] : info.vertex[column - info.n_owned];
                if (column != u || ((const float *)matrix.values)[at++] != ((const float *)job->graph.values)[e])
                    return blame_halo(host, "row %lld has column %g, expected %g", i, (double)column, (double)u);
            }
        if (at != matrix.row_ptr[i + 1]) return blame_halo(host, "row %lld is long: %g %g", i, 0, 0);
    }
done:
    return rc;
}

static double now_seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* When all ranks have begun, progress() alone must receive all messages. */
static int32_t halo_drive(struct host *host, const graft_halo_api *halos, graft_halo *halo, int32_t pass)
{
    struct halo_job *job = host->all->arg;
    const double     begin = now_seconds();
    int32_t          arrived = 0, rc = GRAFT_OK;

    job->begun++;
    while (job->begun < pass * host->n_ranks && now_seconds() - begin < PROGRESS_SECONDS) sched_yield();
    while (!arrived && now_seconds() - begin < PROGRESS_SECONDS) TRY(halos->progress(halo, &arrived, &host->error));
    if (!arrived) return blame_halo(host, "after %lld s nothing has arrived: %g %g", PROGRESS_SECONDS, 0, 0);
    TRY(halos->progress(halo, &arrived, &host->error));
    if (!arrived) return blame_halo(host, "%lld: what has arrived has not: %g %g", 0, 0, 0);
done:
    return rc;
}

/* Make one pass to the halo and one back, and compare both. */
static int32_t halo_there_and_back(struct host *host, const graft_halo_api *halos, graft_halo *halo,
                                   const int64_t *owned)
{
    const struct halo_job *job = host->all->arg;
    graft_halo_info        info = GRAFT_INIT(graft_halo_info);
    graft_halo_args        args = GRAFT_INIT(graft_halo_args);
    graft_dense            own, rows;
    double                *sum = oracle_new(job->width, sizeof *sum);
    int32_t                rc;

    halos->info(halo, &info, NULL);
    own = halo_dense(job, info.n_owned);
    rows = halo_dense(job, info.n_halo);
    args.owned = &own;
    args.halo = &rows;
    args.flags = job->flags;
    args.threads = job->threads;
    for (int64_t i = 0; i < own.n_rows; i++) put_row(&own, i, job->own + owned[i] * job->width);
    TRY(halos->begin(halo, &args, &host->error));
    if (own.n_rows > 0) put_row(&own, 0, job->partial); /* begin() has already read the row */
    TRY(halo_drive(host, halos, halo, 1));
    TRY(halos->end(halo, &host->error));
    if (own.n_rows > 0) put_row(&own, 0, job->own + owned[0] * job->width);
    for (int64_t k = 0; k < rows.n_rows; k++)
        TRY(check_halo_row(host, &rows, k, job->own + info.vertex[k] * job->width, job->bound));
    for (int64_t k = 0; k < rows.n_rows; k++)
        put_row(&rows, k, job->partial + (host->rank * job->n + info.vertex[k]) * job->width);
    args.flags = GRAFT_HALO_SUM | GRAFT_HALO_EXACT;
    TRY(halos->begin(halo, &args, &host->error));
    TRY(halo_drive(host, halos, halo, 2));
    TRY(halos->end(halo, &host->error));
    for (int64_t i = 0; i < own.n_rows; i++) {
        for (int64_t j = 0; j < job->width; j++) {
            sum[j] = job->own[owned[i] * job->width + j];
            for (int32_t q = 0; q < host->n_ranks; q++) {
                if (!job->needs[q * job->n + owned[i]]) continue;
                sum[j] += job->partial[(q * job->n + owned[i]) * job->width + j];
                if (job->dtype == GRAFT_F32) sum[j] = (double)(float)sum[j];
            }
        }
        TRY(check_halo_row(host, &own, i, sum, 0));
    }
done:
    free(own.data);
    free(rows.data);
    free(sum);
    return rc;
}

static int32_t test_halo_body(struct host *host)
{
    const graft_halo_api *halos = graft_interface(host->api, GRAFT_HALO_ID, GRAFT_HAS(graft_halo_api, destroy));
    graft_graph          *graph = NULL;
    graft_halo           *halo = NULL;
    graft_halo_info       info = GRAFT_INIT(graft_halo_info);
    int32_t               rc;

    TRY(make_halo_graph(host, &graph));
    TRY(halos->create(graph, &halo, &host->error));
    TRY(halos->info(halo, &info, &host->error));
    TRY(check_halo_info(host, &info, host->graphs->owned(graph)));
    TRY(check_halo_matrix(host, halos, halo, host->graphs->owned(graph)));
    TRY(halo_there_and_back(host, halos, halo, host->graphs->owned(graph)));
    TRY(halos->info(halo, &info, &host->error));
    if (info.passes != 2) rc = blame_halo(host, "%lld passes: %g, expected %g", 0, (double)info.passes, 2);
done:
    if (host->rank % 2) host->graphs->destroy(graph); /* objects may be destroyed in any order */
    halos->destroy(halo);
    if (host->rank % 2 == 0) host->graphs->destroy(graph);
    return rc;
}

static void test_halo_cases(int32_t n_ranks, int count)
{
    static const int64_t     sizes[] = { 1, 2, 5, 17, 64, 203 }, widths[] = { 0, 1, 2, 7, 16, 33, 130 };
    static const char *const none[] = { NULL };
    struct sample            sample = { 900 + (uint64_t)n_ranks };
    const char              *words = NULL;

    for (int i = 0; i < count && words == NULL; i++) {
        static struct hosts hosts;
        struct halo_job     job;
        const int64_t       n = sizes[sample_below(&sample, 6)], width = widths[sample_below(&sample, 7)];

        halo_job_init(&job, &sample, n_ranks, n, width, sample_below(&sample, 2) ? GRAFT_F64 : GRAFT_F32);
        hosts_run(&hosts, n_ranks, none, test_halo_body, &job);
        words = hosts_fault(&hosts);
        if (words != NULL) diag("%lld vertices, width %lld, dtype %d", (long long)n, (long long)width, job.dtype);
        halo_job_fini(&job);
    }
    ok(words == NULL,
       "%d graphs over %d ranks: halos have the right rows, sums in the order of ranks, matrix "
       "and progress: %s",
       count, n_ranks, words != NULL ? words : "right");
}

/* Quantized rows must be near the exact ones, and with GRAFT_HALO_EXACT equal to them. */
static void test_halo_codec(void)
{
    static const char *const settings[] = { "halo.codec=q8", "halo.staleness=1", NULL };
    static struct hosts      hosts;
    struct sample            sample = { 41 };
    struct halo_job          job;

    halo_job_init(&job, &sample, 3, 203, 24, GRAFT_F32);
    job.bound = 2.0 / 255;
    hosts_run(&hosts, 3, settings, test_halo_body, &job);
    ok(hosts_fault(&hosts) == NULL, "halo rows with 8 bits are near the right rows");
    job.bound = 1e-4;
    job.begun = 0;
    hosts_run(&hosts, 3, settings, test_halo_body, &job);
    ok(hosts_fault(&hosts) != NULL, "halo rows with 8 bits have a quantization error");
    job.bound = 0;
    job.begun = 0;
    job.flags = GRAFT_HALO_EXACT;
    hosts_run(&hosts, 3, settings, test_halo_body, &job);
    ok(hosts_fault(&hosts) == NULL, "halo rows with GRAFT_HALO_EXACT are the right rows: %s",
       hosts.at[0].error.message);
    halo_job_fini(&job);
}

/* One rank makes a mistake, of which the others must learn in time. */
static int32_t wrong_body(struct host *host)
{
    struct halo_job      *job = host->all->arg;
    const graft_halo_api *halos = graft_interface(host->api, GRAFT_HALO_ID, GRAFT_HAS(graft_halo_api, destroy));
    const int             is_wrong = host->rank == 1;
    graft_graph          *graph = NULL;
    graft_halo           *halo = NULL;
    graft_halo_info       info = GRAFT_INIT(graft_halo_info);
    graft_halo_args       args = GRAFT_INIT(graft_halo_args);
    graft_dense           own = { .data = NULL }, rows = { .data = NULL };
    int32_t               rc;

    TRY(make_halo_graph(host, &graph));
    TRY(halos->create(graph, &halo, &host->error));
    halos->info(halo, &info, NULL);
    own = halo_dense(job, info.n_owned);
    rows = halo_dense(job, info.n_halo);
    args.owned = &own;
    args.halo = &rows;
    if (is_wrong && strcmp(job->change, "width") == 0) own.n_cols = rows.n_cols = job->width - 1;
    if (is_wrong && strcmp(job->change, "flags") == 0) args.flags = GRAFT_HALO_SUM;
    if (is_wrong && strcmp(job->change, "memory") == 0) host->fail_at = 0;
    if (is_wrong && strcmp(job->change, "leaves") == 0) goto done;
    TRY(halos->begin(halo, &args, &host->error));
    rc = halos->end(halo, &host->error);
    if (rc == GRAFT_ERR_PEER)
        for (int64_t k = 0; k < rows.n_rows * rows.stride; k++)
            if (sample_at(rows.data, rows.dtype, k) != POISON)
                rc = blame_halo(host, "%lld was written: %g %g", k, 0, 0);
done:
    free(own.data);
    free(rows.data);
    halos->destroy(halo);
    host->graphs->destroy(graph);
    return rc;
}

static void test_halo_mistakes(void)
{
    static const char *const changes[] = { "width", "flags", "memory", "leaves" };
    static const char *const settings[] = { "halo.timeout=2", NULL };
    static struct hosts      hosts;
    struct sample            sample = { 5 };
    struct halo_job          job;

    halo_job_init(&job, &sample, 3, 64, 6, GRAFT_F64);
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        int right = 1, leaves;

        job.change = changes[i];
        leaves = strcmp(job.change, "leaves") == 0;
        hosts_run(&hosts, 3, settings, wrong_body, &job);
        for (int32_t p = 0; p < 3; p++)
            right &= hosts.at[p].rc == (leaves && p == 1 ? GRAFT_OK : GRAFT_ERR_PEER) && hosts.at[p].seconds < 15;
        ok(right && hosts.error.code == 0,
           "if one rank makes the call alone (%s), all others return ERR_PEER in time: %d %d %d, %s", job.change,
           hosts.at[0].rc, hosts.at[1].rc, hosts.at[2].rc, hosts.at[0].error.message);
    }
    halo_job_fini(&job);
}

/* Create a halo while the k-th allocation of one rank fails. */
static int32_t starved_body(struct host *host)
{
    struct halo_job      *job = host->all->arg;
    const graft_halo_api *halos = graft_interface(host->api, GRAFT_HALO_ID, GRAFT_HAS(graft_halo_api, destroy));
    graft_graph          *graph = NULL;
    graft_halo           *halo = NULL;
    int32_t               rc;

    TRY(make_halo_graph(host, &graph));
    if (host->rank == 1) host->fail_at = job->threads;
    rc = halos->create(graph, &halo, &host->error);
    host->fail_at = -1;
    if (rc < 0 && halo != NULL) rc = blame_halo(host, "%lld: a halo that is none: %g %g", 0, 0, 0);
    if (rc == GRAFT_ERR_NOMEM && halos->create(graph, &halo, &host->error) < 0) /* the ranks can go on */
        rc = blame_halo(host, "%lld: no second halo: %g %g", 0, 0, 0);
done:
    halos->destroy(halo);
    host->graphs->destroy(graph);
    return rc;
}

static void test_halo_memory(void)
{
    static const char *const settings[] = { "halo.timeout=5", NULL };
    static struct hosts      hosts;
    struct sample            sample = { 6 };
    struct halo_job          job;
    int                      failed = 0, right = 1;

    halo_job_init(&job, &sample, 3, 64, 6, GRAFT_F32);
    for (job.threads = 0; job.threads < 200; job.threads++) {
        hosts_run(&hosts, 3, settings, starved_body, &job);
        for (int32_t p = 0; p < 3; p++) right &= hosts.at[p].rc == hosts.at[1].rc;
        if (hosts.error.code != 0 || (hosts.at[1].rc != GRAFT_ERR_NOMEM && hosts.at[1].rc != GRAFT_ERR_PEER)) break;
        failed++;
    }
    ok(right && failed > 5 && failed < 200 && hosts.at[1].rc == GRAFT_OK && hosts.error.code == 0,
       "create() of a halo without memory on one rank, %d allocations: all ranks agree, and no "
       "memory is left: %d, %s",
       failed, hosts.at[1].rc, hosts.error.code != 0 ? hosts.error.message : hosts.at[1].error.message);
    halo_job_fini(&job);
}

int main(void)
{
    alarm(600);
    for (int32_t n_ranks = 1; n_ranks <= 4; n_ranks++) test_halo_cases(n_ranks, 30);
    test_halo_codec();
    test_halo_mistakes();
    test_halo_memory();
    return done();
}
