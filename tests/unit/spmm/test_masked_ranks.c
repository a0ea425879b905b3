/* Checks masks, epilogues and attention over ranks against their definition on the whole graph.
 * SPDX-License-Identifier: Apache-2.0 */
#include "graft_aggregate.h"
#include "graft_halo.h"
#include "graft_load.h"
#include "harness/hosts.h"
#include "harness/tap.h"
#include "oracle/oracle.h"
#include "oracle/sample.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

enum { WIDTH = 24, HEADS = 3, KINDS = 4 };

/* A product over ranks, with arrays of the whole graph. */
struct masked_job {
    struct sample_csr graph, transpose;
    int64_t           n;
    int32_t          *owner;
    double           *x, *before, *residual, *bias, *scale, *z; /* z is the product without mask and epilogue */
    uint8_t          *allowed;                                  /* [n x WIDTH] whether the mask allows the element */
    graft_dtype       dtype;
    graft_semiring    semiring;
    uint32_t          flags;
    int               kind; /* kind of the mask; 0 for none */
    int               complement, has_epilogue;
    graft_epilogue    epilogue; /* bound for the error of one element */
    double            bound;
};

#define TRY(expression)                                                                                                \
    do {                                                                                                               \
        rc = (expression);                                                                                             \
        if (rc < 0) goto done;                                                                                         \
    } while (0)

static double *numbers(struct sample *sample, int64_t count)
{
    double *array = oracle_new(count, sizeof *array);

    for (int64_t i = 0; i < count; i++) array[i] = sample_exact(sample, 8, 4);
    return array;
}

static graft_dense of_doubles(double *data, int64_t n, int64_t width)
{
    return (graft_dense){ sizeof(graft_dense), GRAFT_F64, n, width, width, data };
}

static void masked_job_init(struct masked_job *job, struct sample *sample, int32_t n_ranks, int64_t n)
{
    const struct sample_csr_shape shape = { n, n, GRAFT_I32, GRAFT_F64, 1, 1 };

    *job = (struct masked_job){ .n = n };
    sample_csr_init_shape(&job->graph, sample, &shape);
    sample_csr_transpose(&job->transpose, &job->graph);
    job->owner = oracle_new(n, sizeof *job->owner);
    for (int64_t v = 0; v < n; v++) job->owner[v] = (int32_t)sample_below(sample, n_ranks);
    job->x = numbers(sample, n * WIDTH);
    job->before = numbers(sample, n * WIDTH);
    job->residual = numbers(sample, n * WIDTH);
    job->bias = numbers(sample, WIDTH);
    job->scale = numbers(sample, n);
    job->z = oracle_new(n * WIDTH, sizeof *job->z);
    job->allowed = oracle_new(n * WIDTH, 1);
}

static void masked_job_fini(struct masked_job *job)
{
    void *const arrays[] = {
        job->owner, job->x, job->before, job->residual, job->bias, job->scale, job->z, job->allowed
    };

    sample_csr_fini(&job->graph);
    sample_csr_fini(&job->transpose);
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) free(arrays[i]);
}

static const graft_csr *matrix_of_job(const struct masked_job *job)
{
    return job->flags & GRAFT_AGGREGATE_TRANSPOSE ? &job->transpose.csr : &job->graph.csr;
}

/* Draw the properties of a pass, and compute Z, which with ACCUMULATE includes the old C. */
static void masked_job_draw(struct masked_job *job, struct sample *sample)
{
    const int      is_sum = sample_below(sample, 3) > 0;
    graft_dense    x = of_doubles(job->x, job->n, WIDTH), c = of_doubles(job->before, job->n, WIDTH);
    graft_mxm_args args = GRAFT_INIT(graft_mxm_args);
    double        *bound = oracle_new(job->n * WIDTH, sizeof *bound);

    job->semiring = is_sum ? GRAFT_PLUS_TIMES : GRAFT_MAX_TIMES + 2 * (graft_semiring)sample_below(sample, 2);
    job->kind = (int)sample_below(sample, KINDS);
    job->complement = (int)sample_below(sample, 2);
    job->has_epilogue = is_sum && sample_below(sample, 3) > 0;
    job->flags = (is_sum && sample_below(sample, 2) ? GRAFT_AGGREGATE_TRANSPOSE : 0) |
                 (!job->has_epilogue && sample_below(sample, 2) ? GRAFT_AGGREGATE_ACCUMULATE : 0) |
                 (sample_below(sample, 2) ? GRAFT_AGGREGATE_REPLACE : 0);
    job->epilogue = GRAFT_INIT(graft_epilogue);
    job->epilogue.flags = sample_below(sample, 2) ? GRAFT_EPILOGUE_RELU : 0;
    job->epilogue.dropout = sample_below(sample, 2) ? 0.5 : 0;
    job->epilogue.dropout_key = sample_bits(sample);
    for (int64_t i = 0; i < job->n * WIDTH; i++) {
        if (job->kind != GRAFT_MASK_ROWS || i % WIDTH == 0) job->allowed[i] = (uint8_t)(sample_below(sample, 3) > 0);
        else job->allowed[i] = job->allowed[i - 1];
        if (job->kind == 0) job->allowed[i] = 1;
    }
    args.semiring = job->semiring;
    args.flags = job->flags & GRAFT_AGGREGATE_ACCUMULATE ? GRAFT_MXM_ACCUMULATE : 0;
    args.b = &x;
    args.c = &c;
    args.row_scale = is_sum ? job->scale : NULL;
    oracle_mxm(matrix_of_job(job), &args, job->z, NULL, bound);
    free(bound);
}

/* Whether dropout keeps an element, by the description in graft_mxm.h. */
static int masked_stays(const graft_epilogue *e, int64_t vertex, int64_t column)
{
    const int64_t  block = column / 8;
    const uint32_t counter[4] = { (uint32_t)block, 0, (uint32_t)vertex, 0 };
    const uint32_t key[2] = { (uint32_t)e->dropout_key, (uint32_t)(e->dropout_key >> 32) };
    uint32_t       word[4];

    oracle_philox(counter, key, word);
    return (word[column % 8 / 2] >> (column % 2 ? 16 : 0) & 0xFFFF) >= (uint32_t)(e->dropout * 65536);
}

/* Element (v, j) of the result, and whether it passed ReLU and dropout. */
static double masked_expect(const struct masked_job *job, int64_t v, int64_t j, int *passed)
{
    const int64_t at = v * WIDTH + j;
    double        z = job->z[at];

    *passed = 0;
    if (!job->allowed[at]) return job->flags & GRAFT_AGGREGATE_REPLACE ? 0 : job->before[at];
    if (!job->has_epilogue) return z;
    z += job->bias[j] + job->residual[at];
    *passed = !(job->epilogue.flags & GRAFT_EPILOGUE_RELU && z <= 0);
    if (job->epilogue.dropout > 0 && !masked_stays(&job->epilogue, v, j)) *passed = 0;
    return !*passed ? 0 : job->epilogue.dropout > 0 ? 2 * z : z;
}

static int32_t masked_graph(struct host *host, const graft_csr *whole, const int32_t *owner, graft_graph **graph)
{
    const int64_t n = whole->n_rows, first = n * host->rank / host->n_ranks, end = n * (host->rank + 1) / host->n_ranks;
    graft_slice   slice = GRAFT_INIT(graft_slice);
    graft_csr     rows = *whole;
    int64_t      *row_ptr = oracle_new(end - first + 1, sizeof *row_ptr);
    int32_t       rc;

    for (int64_t i = 0; i <= end - first; i++) row_ptr[i] = whole->row_ptr[first + i] - whole->row_ptr[first];
    rows.n_rows = end - first;
    rows.row_ptr = row_ptr;
    rows.col_idx = (const int32_t *)rows.col_idx + whole->row_ptr[first];
    if (rows.values != NULL) rows.values = (const double *)rows.values + whole->row_ptr[first];
    slice.n_vertices = n;
    slice.first_row = first;
    slice.rows = &rows;
    slice.owner = owner + first;
    rc = host->graphs->create(host->api->context, &host->transport, &slice, graph, &host->error);
    free(row_ptr);
    return rc;
}

/* The rows of the vertices that a rank owns. */
static double *take_rows(const double *whole, const int64_t *owned, int64_t n_owned, int64_t width)
{
    double *rows = oracle_new(n_owned * width + 1, sizeof *rows);

    for (int64_t i = 0; i < n_owned; i++)
        memcpy(rows + i * width, whole + owned[i] * width, (size_t)width * sizeof *rows);
    return rows;
}

/* The mask of a rank in the form of its kind. `present` has a byte for each element, which is more than any kind
 * needs. */
static graft_mask mask_of(const struct masked_job *job, const int64_t *owned, int64_t n_owned, uint8_t *present)
{
    graft_mask mask = { .size = sizeof mask, .kind = job->kind, .present = present };

    mask.flags = job->complement ? GRAFT_MASK_COMPLEMENT : 0;
    mask.stride = job->kind == GRAFT_MASK_BITS ? (WIDTH + 7) / 8 : WIDTH;
    for (int64_t i = 0; i < n_owned; i++)
        for (int64_t j = 0; j < WIDTH; j++) {
            if (job->allowed[owned[i] * WIDTH + j] == job->complement) continue;
            if (job->kind == GRAFT_MASK_ROWS) present[i / 8] |= (uint8_t)(1 << i % 8);
            if (job->kind == GRAFT_MASK_BITS) present[i * mask.stride + j / 8] |= (uint8_t)(1 << j % 8);
            if (job->kind == GRAFT_MASK_BYTES) present[i * WIDTH + j] = 1;
        }
    return mask;
}

static int32_t masked_compare(struct host *host, const int64_t *owned, int64_t n_owned, const double *out,
                              const uint8_t *bits)
{
    const struct masked_job *job = host->all->arg;

    for (int64_t i = 0; i < n_owned; i++)
        for (int64_t j = 0; j < WIDTH; j++) {
            int          passed;
            const double want = masked_expect(job, owned[i], j, &passed), found = out[i * WIDTH + j];
            const int    bit = bits[i * ((WIDTH + 7) / 8) + j / 8] >> (j % 8) & 1;

            if (found == want && (!job->has_epilogue || bit == passed)) continue;
            snprintf(host->error.message, sizeof host->error.message,
                     "vertex %lld, column %lld: %g, expected %g; bit %d", (long long)owned[i], (long long)j, found,
                     want, bit);
            return host->error.code = GRAFT_ERR_FORMAT;
        }
    return GRAFT_OK;
}

static int32_t masked_body(struct host *host)
{
    struct masked_job         *job = host->all->arg;
    const graft_aggregate_api *aggregate = graft_interface(host->api, GRAFT_AGGREGATE_ID, sizeof *aggregate);
    graft_graph               *graph = NULL;
    graft_plan                *plan = NULL;
    graft_graph_info           info = GRAFT_INIT(graft_graph_info);
    graft_plan_args            how = GRAFT_INIT(graft_plan_args);
    graft_aggregate_args       args = GRAFT_INIT(graft_aggregate_args);
    graft_epilogue             epilogue = job->epilogue;
    graft_dense                x, out, residual;
    graft_mask                 mask;
    double                    *data[4] = { NULL };
    uint8_t                   *present = NULL, *bits = NULL;
    const int64_t             *owned;
    int32_t                    rc;

    how.flags = GRAFT_PLAN_TRANSPOSED;
    TRY(masked_graph(host, &job->graph.csr, job->owner, &graph));
    TRY(aggregate->create(graph, &how, &plan, &host->error));
    TRY(host->graphs->info(graph, host->rank, &info, &host->error));
    owned = host->graphs->owned(graph);
    data[0] = take_rows(job->x, owned, info.n_owned, WIDTH);
    data[1] = take_rows(job->before, owned, info.n_owned, WIDTH);
    data[2] = take_rows(job->residual, owned, info.n_owned, WIDTH);
    data[3] = take_rows(job->scale, owned, info.n_owned, 1);
    present = oracle_new(info.n_owned * WIDTH + 8, 1);
    bits = oracle_new(info.n_owned * WIDTH + 8, 1);
    x = of_doubles(data[0], info.n_owned, WIDTH), out = of_doubles(data[1], info.n_owned, WIDTH);
    residual = of_doubles(data[2], info.n_owned, WIDTH);
    mask = mask_of(job, owned, info.n_owned, present);
    epilogue.bias = job->bias;
    epilogue.residual = &residual;
    epilogue.bits = bits;
    epilogue.bits_stride = (WIDTH + 7) / 8;
    args.semiring = job->semiring;
    args.flags = job->flags;
    args.x = &x, args.out = &out;
    args.row_scale = job->semiring == GRAFT_PLUS_TIMES ? data[3] : NULL;
    args.mask = job->kind != 0 ? &mask : NULL;
    args.epilogue = job->has_epilogue ? &epilogue : NULL;
    TRY(aggregate->begin(plan, &args, &host->error));
    mask.kind = 99, residual.n_rows = 0, epilogue.size = 0; /* the structs are borrowed during the call only */
    TRY(aggregate->end(plan, &host->error));
    rc = masked_compare(host, owned, info.n_owned, data[1], bits);
done:
    for (int i = 0; i < 4; i++) free(data[i]);
    free(present);
    free(bits);
    aggregate->destroy(plan);
    host->graphs->destroy(graph);
    return rc;
}

static void test_masks_over_ranks(int32_t n_ranks, int count)
{
    static const int64_t     sizes[] = { 1, 5, 17, 64, 97 };
    static const char *const none[] = { NULL };
    static struct hosts      hosts;
    struct sample            sample = { 50 + (uint64_t)n_ranks };
    const char              *words = NULL;

    for (int i = 0; i < count && words == NULL; i++) {
        struct masked_job job;

        masked_job_init(&job, &sample, n_ranks, sizes[sample_below(&sample, 5)]);
        masked_job_draw(&job, &sample);
        hosts_run(&hosts, n_ranks, none, masked_body, &job);
        words = hosts_fault(&hosts);
        if (words != NULL)
            diag("%lld vertices, semiring %d, flags 0x%x, mask %d%s, %s", (long long)job.n, job.semiring, job.flags,
                 job.kind, job.complement ? " complement" : "", job.has_epilogue ? "epilogue" : "no epilogue");
        masked_job_fini(&job);
    }
    ok(words == NULL, "%d passes over %d ranks with masks and epilogues are exact: %s", count, n_ranks,
       words != NULL ? words : "right");
}

/* -- attention ---------------------------------------------------------------------------------------------------- */

/* The attention scores of GAT: LeakyReLU(left . z_i + right . z_j) for each edge (i, j) and head. */
static void gat_scores(const graft_csr *a, const double *z, const double *left, const double *right, double *scores)
{
    for (int64_t i = 0; i < a->n_rows; i++)
        for (int64_t e = a->row_ptr[i]; e < a->row_ptr[i + 1]; e++)
            for (int64_t h = 0; h < HEADS; h++) {
                const int64_t j = ((const int32_t *)a->col_idx)[e];
                double        sum = 0;

                for (int64_t c = h * WIDTH / HEADS; c < (h + 1) * WIDTH / HEADS; c++)
                    sum += left[c] * z[i * WIDTH + c] + right[c] * z[j * WIDTH + c];
                scores[e * HEADS + h] = sum > 0 ? sum : 0.2 * sum;
            }
}

/* Compute attention over ranks: exchange rows of the halo, compute scores, softmax and weighted sum, and return the
 * rows of the transposed sum to their owners. all[n_owned + n_halo] begins with the owned rows; `out` and `back` have
 * the owned vertices. */
static int32_t gat_over_ranks(struct host *host, graft_halo *halo, double *all, double *out, double *back)
{
    const struct masked_job *job = host->all->arg;
    const graft_halo_api    *halos = graft_interface(host->api, GRAFT_HALO_ID, GRAFT_HAS(graft_halo_api, destroy));
    const graft_mxm_api     *mxm = graft_interface(host->api, GRAFT_MXM_ID, GRAFT_HAS(graft_mxm_api, matrix_destroy));
    const graft_edge_api    *edge = graft_interface(host->api, GRAFT_EDGE_ID, GRAFT_HAS(graft_edge_api, mxm));
    graft_context           *context = host->api->context;
    graft_halo_info          info = GRAFT_INIT(graft_halo_info);
    graft_halo_args          args = GRAFT_INIT(graft_halo_args);
    graft_csr                rows = GRAFT_INIT(graft_csr);
    graft_matrix            *a = NULL;
    graft_dense              owned, outer, whole, p, sum, gradient;
    double                  *weight = NULL;
    int32_t                  rc;

    TRY(halos->info(halo, &info, &host->error));
    TRY(halos->matrix(halo, &rows, &host->error));
    TRY(mxm->matrix_create(context, &rows, 1, &a, &host->error));
    weight = oracle_new(rows.row_ptr[rows.n_rows] * HEADS + 1, sizeof *weight);
    whole = of_doubles(all, rows.n_cols, WIDTH);
    owned = of_doubles(all, info.n_owned, WIDTH);
    outer = of_doubles(all + info.n_owned * WIDTH, info.n_halo, WIDTH);
    sum = of_doubles(out, info.n_owned, WIDTH);
    p = of_doubles(weight, rows.row_ptr[rows.n_rows], HEADS);
    args.owned = &owned, args.halo = &outer;
    TRY(halos->begin(halo, &args, &host->error));
    TRY(halos->end(halo, &host->error));
    gat_scores(&rows, all, job->bias, job->residual, weight);
    TRY(edge->softmax(context, a, &p, &p, 0, &host->error));
    TRY(edge->mxm(context, a, 0, &p, &whole, &sum, 0, &host->error));
    gradient = of_doubles(back, rows.n_cols, WIDTH);
    owned.data = back, outer.data = back + info.n_owned * WIDTH;
    TRY(edge->mxm(context, a, GRAFT_EDGE_TRANSPOSE, &p, &sum, &gradient, 0, &host->error));
    args.flags = GRAFT_HALO_SUM;
    TRY(halos->begin(halo, &args, &host->error));
    TRY(halos->end(halo, &host->error));
done:
    mxm->matrix_destroy(a);
    free(weight);
    return rc;
}

static int32_t attention_of_rank(struct host *host)
{
    struct masked_job    *job = host->all->arg;
    const graft_halo_api *halos = graft_interface(host->api, GRAFT_HALO_ID, GRAFT_HAS(graft_halo_api, destroy));
    graft_graph          *graph = NULL;
    graft_halo           *halo = NULL;
    graft_halo_info       info = GRAFT_INIT(graft_halo_info);
    double               *all = NULL, *out = NULL, *back = NULL;
    const int64_t        *owned;
    int32_t               rc;

    TRY(masked_graph(host, &job->graph.csr, job->owner, &graph));
    TRY(halos->create(graph, &halo, &host->error));
    TRY(halos->info(halo, &info, &host->error));
    owned = host->graphs->owned(graph);
    all = oracle_new((info.n_owned + info.n_halo) * WIDTH + 1, sizeof *all);
    out = oracle_new(info.n_owned * WIDTH + 1, sizeof *out);
    back = oracle_new((info.n_owned + info.n_halo) * WIDTH + 1, sizeof *back);
    for (int64_t i = 0; i < info.n_owned; i++) memcpy(all + i * WIDTH, job->x + owned[i] * WIDTH, WIDTH * sizeof *all);
    TRY(gat_over_ranks(host, halo, all, out, back));
    for (int64_t i = 0; i < info.n_owned; i++)
        for (int64_t c = 0; c < WIDTH; c++) {
            const int64_t at = owned[i] * WIDTH + c;

            if (fabs(out[i * WIDTH + c] - job->z[at]) < 1e-12 && fabs(back[i * WIDTH + c] - job->before[at]) < 1e-11)
                continue;
            snprintf(host->error.message, sizeof host->error.message,
                     "vertex %lld: %.17g, expected %.17g; back %.17g, %.17g", (long long)owned[i], out[i * WIDTH + c],
                     job->z[at], back[i * WIDTH + c], job->before[at]);
            rc = host->error.code = GRAFT_ERR_FORMAT;
        }
done:
    free(all);
    free(out);
    free(back);
    halos->destroy(halo);
    host->graphs->destroy(graph);
    return rc;
}

static void test_attention_over_ranks(int32_t n_ranks)
{
    static const char *const none[] = { NULL };
    static struct hosts      hosts;
    struct sample            sample = { 77 };
    struct masked_job        job;
    const graft_csr         *a = &job.graph.csr;
    graft_dense              weights, x, z;
    double                  *scores, *p;

    masked_job_init(&job, &sample, n_ranks, 97);
    scores = oracle_new(a->row_ptr[job.n] * HEADS, sizeof *scores);
    p = oracle_new(a->row_ptr[job.n] * HEADS, sizeof *p);
    gat_scores(a, job.x, job.bias, job.residual, scores);
    weights = of_doubles(scores, a->row_ptr[job.n], HEADS);
    oracle_edge_softmax(a, &weights, p);
    weights.data = p;
    x = of_doubles(job.x, job.n, WIDTH), z = of_doubles(job.z, job.n, WIDTH);
    oracle_edge_mxm(a, 0, &weights, &x, WIDTH, job.z);
    oracle_edge_mxm(a, 1, &weights, &z, WIDTH, job.before);
    hosts_run(&hosts, n_ranks, none, attention_of_rank, &job);
    ok(hosts_fault(&hosts) == NULL, "attention of %d heads over %d ranks, forward and backward, is right: %s", HEADS,
       n_ranks, hosts_fault(&hosts) != NULL ? hosts_fault(&hosts) : "right");
    free(scores);
    free(p);
    masked_job_fini(&job);
}

int main(void)
{
    alarm(600);
    for (int32_t n_ranks = 1; n_ranks <= 4; n_ranks++) test_masks_over_ranks(n_ranks, 60);
    for (int32_t n_ranks = 1; n_ranks <= 4; n_ranks++) test_attention_over_ranks(n_ranks);
    return done();
}
