/* Kernel "simd": one sweep over the entries of a row with the columns of C in registers. The matrix is cut into tasks
 * of equal numbers of entries, which threads take in turn; the result of a task does not depend on the thread.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernel/simd/simd.h"

#include "base/assert.h"
#include "base/dtype.h"
#include "base/limits.h"
#include "base/memory.h"
#include "base/processor.h"
#include "base/team.h"
#include "kernel/simd/rows.h"
#include "kernel/simd/tasks.h"

#include <stdio.h>
#include <string.h>

struct simd_state {
    const graft_host           *host;
    const struct gr_simd_loops *loops; /* [2]: float, double */
};

/* Partial results of the segments of hubs: z and winner, for all columns of C. */
struct partials {
    char    *z;
    int32_t *winner;
    int64_t  width; /* columns of the arrays */
};

struct simd_prepared {
    struct gr_task_list list;
    struct partials     partials;
};

static int32_t simd_init(const struct gr_simd_loops *loops, const graft_host *host, void **state, graft_error *error)
{
    struct simd_state *made = NULL;

    if (GR_HOST_NEW(host, made, 1, error) < 0) return GRAFT_ERR_NOMEM;
    made->host = host;
    made->loops = loops;
    *state = made;
    return GRAFT_OK;
}

static void simd_fini(void *state)
{
    if (state != NULL) gr_host_free(((struct simd_state *)state)->host, state);
}

static int32_t simd_supports(void *state, const graft_csr *a, const graft_mxm_args *args, char *why, uint64_t capacity)
{
    (void)state, (void)args;
    if (a->n_cols > INT32_MAX) {
        snprintf(why, capacity, "it supports at most 2^31 - 1 columns, and A has %lld", (long long)a->n_cols);
        return GRAFT_ERR_UNSUPPORTED;
    }
    return GRAFT_OK;
}

static void simd_release(void *state, void *prepared)
{
    const graft_host     *host = ((struct simd_state *)state)->host;
    struct simd_prepared *p = prepared;

    if (p == NULL) return;
    gr_host_free(host, p->list.tasks);
    gr_host_free(host, p->list.hubs);
    gr_host_free(host, p->partials.z);
    gr_host_free(host, p->partials.winner);
    gr_host_free(host, p);
}

static int32_t simd_prepare(void *state, const graft_csr *a, void **prepared, int64_t *bytes, graft_error *error)
{
    const graft_host     *host = ((struct simd_state *)state)->host;
    struct simd_prepared *p = NULL;
    int32_t               rc = GRAFT_OK;

    GR_TRY(GR_HOST_NEW(host, p, 1, error));
    gr_tasks_list(a, &p->list);
    GR_TRY(GR_HOST_NEW(host, p->list.tasks, p->list.n_tasks, error));
    GR_TRY(GR_HOST_NEW(host, p->list.hubs, p->list.n_hubs, error));
    gr_tasks_list(a, &p->list);
    *bytes += p->list.n_tasks * (int64_t)sizeof *p->list.tasks + p->list.n_hubs * (int64_t)sizeof *p->list.hubs;
    *prepared = p;
    p = NULL;
done:
    simd_release(state, p);
    return rc;
}

/* Grow the partial results to `width` columns. The next run uses them again. */
static int32_t reserve_partials(const struct simd_state *state, struct simd_prepared *p, int64_t width,
                                graft_error *error)
{
    char    *z = NULL;
    int32_t *winner = NULL;
    int32_t  rc = GRAFT_OK;

    if (p->list.n_segments == 0 || width <= p->partials.width) return GRAFT_OK;
    if (width > INT64_MAX / 8 / p->list.n_segments)
        return gr_fail(error, GRAFT_ERR_NOMEM, "partial results of %lld columns do not fit into 64 bits",
                       (long long)width);
    GR_TRY(GR_HOST_NEW(state->host, z, p->list.n_segments * width * 8, error));
    GR_TRY(GR_HOST_NEW(state->host, winner, p->list.n_segments * width, error));
    gr_host_free(state->host, p->partials.z);
    gr_host_free(state->host, p->partials.winner);
    p->partials = (struct partials){ z, winner, width };
    z = NULL;
    winner = NULL;
done:
    gr_host_free(state->host, z);
    gr_host_free(state->host, winner);
    return rc;
}

/* One run; shared by the threads. */
struct simd_run {
    struct gr_simd_job          job;
    const struct gr_simd_loops *loops;
    const struct simd_prepared *p;
    int64_t                     element; /* bytes of an element of z */
    int64_t                     strip;   /* columns of a strip */
};

static struct gr_simd_strip strip_at(const struct simd_run *r, int64_t begin, int64_t most)
{
    const int64_t left = r->job.args->c->n_cols - begin;

    return (struct gr_simd_strip){ begin, left < most ? left : most };
}

static struct gr_simd_strip strip_number(const struct simd_run *r, int64_t number)
{
    return strip_at(r, number * r->strip, r->strip);
}

/* Whether the mask forbids all elements of the strip. Strips begin at multiples of 8. */
static int no_bit_allows(const graft_mask *mask, int64_t row, struct gr_simd_strip strip)
{
    const uint8_t *bits = mask->present + row * mask->stride + (strip.begin >> 3);
    const uint8_t  flip = mask->flags & GRAFT_MASK_COMPLEMENT ? 255 : 0;
    const int64_t  whole = strip.count / 8;

    for (int64_t i = 0; i < whole; i++) {
        if (bits[i] != flip) return 0;
    }
    return strip.count % 8 == 0 || (uint8_t)((bits[whole] ^ flip) << (8 - strip.count % 8)) == 0;
}

/* The same for a mask of bytes. Most strips have an allowed element near their begin. */
static int no_byte_allows(const graft_mask *mask, int64_t row, struct gr_simd_strip strip)
{
    const int64_t  at = row * mask->stride + strip.begin;
    const uint8_t *values = mask->flags & GRAFT_MASK_STRUCTURE ? NULL : mask->values;
    const int      flip = (mask->flags & GRAFT_MASK_COMPLEMENT) != 0;

    for (int64_t i = at; i < at + strip.count; i++) {
        const int is_true = (mask->present == NULL || mask->present[i] != 0) && (values == NULL || values[i] != 0);

        if (is_true != flip) return 0;
    }
    return 1;
}

/* Whether the mask forbids the whole strip of a row, so that no entry need be read for it. */
static int is_forbidden(const graft_mask *mask, int64_t row, struct gr_simd_strip strip)
{
    if (mask == NULL) return 0;
    if (mask->kind == GRAFT_MASK_BITS) return no_bit_allows(mask, row, strip);
    if (mask->kind == GRAFT_MASK_BYTES) return no_byte_allows(mask, row, strip);
    return (mask->present[row >> 3] >> (row & 7) & 1) == ((mask->flags & GRAFT_MASK_COMPLEMENT) != 0);
}

/* Whether a mask of rows forbids more than half of the rows. */
static int forbids_most_rows(const graft_mask *mask, int64_t rows)
{
    int64_t set = 0;

    if (mask == NULL || mask->kind != GRAFT_MASK_ROWS) return 0;
    for (int64_t i = 0; i < rows / 8; i++) set += __builtin_popcount(mask->present[i]);
    return mask->flags & GRAFT_MASK_COMPLEMENT ? 2 * set > rows : 2 * set < rows;
}

static void do_rows(const struct simd_run *r, int64_t begin, int64_t end, struct gr_simd_strip strip)
{
    const graft_csr  *a = r->job.a;
    _Alignas(64) char z[GR_SIMD_STRIP * sizeof(double)];
    int32_t           winner[GR_SIMD_STRIP];
    int32_t *const    winners = r->job.args->winner != NULL ? winner : NULL;
    const int         stays = !(r->job.args->flags & GRAFT_MXM_REPLACE) && r->job.args->epilogue == NULL;

    GR_ASSERT(begin <= end && strip.count <= GR_SIMD_STRIP);
    for (int64_t row = begin; row < end; row++) {
        const int forbidden = is_forbidden(r->job.args->mask, row, strip);
        const int empty = forbidden || a->row_ptr[row] == a->row_ptr[row + 1];

        if (forbidden && stays) continue;
        if (!empty) r->loops->gather(&r->job, a->row_ptr[row], a->row_ptr[row + 1], strip, z, winners);
        r->loops->finish(&r->job, row, strip, empty ? NULL : z, winners);
    }
}

static void report_rows(const struct simd_run *r, int64_t begin, int64_t end)
{
    const graft_mxm_args *args = r->job.args;

    args->rows_done(args->rows_arg, omp_get_thread_num(), begin, end);
}

/* All columns of some rows, in blocks that are still in cache when rows_done is called. */
static void do_blocks(const struct simd_run *r, int64_t begin, int64_t end)
{
    const int64_t width = r->job.args->c->n_cols, rows = 1 + GR_REPORT_BYTES / (1 + width * r->element);

    for (int64_t row = begin, next; row < end; row = next) {
        next = end - row > rows ? row + rows : end;
        for (int64_t j = 0; j < width; j += GR_SIMD_STRIP) do_rows(r, row, next, strip_at(r, j, GR_SIMD_STRIP));
        report_rows(r, row, next);
    }
}

static char *partial_z(const struct simd_run *r, int64_t segment, struct gr_simd_strip strip)
{
    return r->p->partials.z + (segment * r->p->partials.width + strip.begin) * r->element;
}

static int32_t *partial_winner(const struct simd_run *r, int64_t segment, struct gr_simd_strip strip)
{
    return r->job.args->winner != NULL ? r->p->partials.winner + segment * r->p->partials.width + strip.begin : NULL;
}

/* One part of a task: a strip of its rows; or, where rows_done needs whole rows, an equal share of the rows. */
static void do_task(const struct simd_run *r, int64_t number, int64_t n_parts)
{
    const struct gr_task      *task = &r->p->list.tasks[number / n_parts];
    const int64_t              part = number % n_parts, rows = task->row_end - task->row;
    const struct gr_simd_strip strip = strip_number(r, part);

    if (task->segment < 0 && r->job.args->rows_done != NULL) {
        do_blocks(r, task->row + rows * part / n_parts, task->row + rows * (part + 1) / n_parts);
    } else if (task->segment < 0) {
        do_rows(r, task->row, task->row_end, strip);
    } else if (!is_forbidden(r->job.args->mask, task->row, strip)) {
        r->loops->gather(&r->job, task->begin, task->end, strip, partial_z(r, task->segment, strip),
                         partial_winner(r, task->segment, strip));
    }
}

/* Tasks take about equal time, some tenths of a millisecond, so the calling thread polls between them. */
static void poll_host(const graft_mxm_args *args)
{
    if (args->poll != NULL && omp_get_thread_num() == 0) args->poll(args->poll_arg);
}

/* Combine the segments of a hub in order, then store the row. */
static void finish_strip(const struct simd_run *r, const struct gr_hub *hub, struct gr_simd_strip strip)
{
    char     *z = partial_z(r, hub->first_segment, strip);
    int32_t  *winner = partial_winner(r, hub->first_segment, strip);
    const int forbidden = is_forbidden(r->job.args->mask, hub->row, strip);

    for (int64_t s = 1; s < hub->n_segments && !forbidden; s++) {
        r->loops->combine(&r->job, strip.count, z, winner, partial_z(r, hub->first_segment + s, strip),
                          partial_winner(r, hub->first_segment + s, strip));
    }
    r->loops->finish(&r->job, hub->row, strip, forbidden ? NULL : z, winner);
}

/* Finish one strip of a hub whose segments are all done; or all of its strips where rows_done needs whole rows. */
static void finish_hub(const struct simd_run *r, int64_t number, int64_t n_strips)
{
    const struct gr_hub *hub = &r->p->list.hubs[r->job.args->rows_done != NULL ? number : number / n_strips];

    if (r->job.args->rows_done == NULL) {
        finish_strip(r, hub, strip_number(r, number % n_strips));
        return;
    }
    for (int64_t i = 0; i < n_strips; i++) finish_strip(r, hub, strip_number(r, i));
    report_rows(r, hub->row, hub->row + 1);
}

/* Whether some rows begin inside a cache line. */
static int crosses_lines(const graft_dense *b)
{
    return ((uintptr_t)b->data | (uint64_t)b->stride * (uint64_t)gr_dtype_bytes(b->dtype)) % GR_CACHE_LINE != 0;
}

/* Whether to write C past the caches: no values are added to C, rows_done does not read its rows, and C is larger than
 * the last-level cache that most processors have for two cores, so that little of it would stay in cache. */
static int streams(const graft_mxm_args *args)
{
    const double       large = 32 << 20;
    const graft_dense *c = args->c;

    if (args->mask != NULL || args->flags & GRAFT_MXM_ACCUMULATE || args->rows_done != NULL) return 0;
    return (double)c->n_rows * (double)c->n_cols * (double)gr_dtype_bytes(c->dtype) > large;
}

static struct gr_simd_job job_of(const graft_csr *a, const graft_mxm_args *args)
{
    const graft_semiring s = args->semiring;

    return (struct gr_simd_job){
        .args = args,
        .a = a,
        .col = a->col_idx,
        .col_shift = a->index_type == GRAFT_I64 ? 3 : 2,
        .entries = a->row_ptr[a->n_rows],
        .sum = s == GRAFT_PLUS_TIMES || s == GRAFT_PLUS_SECOND,
        .times = a->values != NULL && (s == GRAFT_PLUS_TIMES || s == GRAFT_MAX_TIMES || s == GRAFT_MIN_TIMES),
        .rows_masked = forbids_most_rows(args->mask, a->n_rows),
        .stream = streams(args),
        .b_crosses = crosses_lines(args->b),
        .sign = s == GRAFT_MIN_TIMES || s == GRAFT_MIN_SECOND ? -1 : 1,
    };
}

static int32_t simd_run(void *state, void *prepared, const graft_csr *a, const graft_mxm_args *args, graft_error *error)
{
    const struct simd_state *s = state;
    struct simd_prepared    *p = prepared;
    const int                is_double = args->c->dtype == GRAFT_F64;
    struct simd_run          r = { job_of(a, args), &s->loops[is_double], p, is_double ? 8 : 4, GR_SIMD_STRIP };
    const int64_t            width = args->c->n_cols;
    const int                reports = args->rows_done != NULL;
    int64_t                  n_strips, n_parts;
    int32_t                  rc = reserve_partials(s, p, width, error);

    if (rc < 0) return rc;
    /* Few rows make few tasks. Then a task is shared in smaller strips, which changes no bit of the result. */
    while (r.strip > 64 && p->list.n_tasks * ((width + r.strip - 1) / r.strip) < 8 * args->threads) r.strip /= 2;
    n_strips = (width + r.strip - 1) / r.strip;
    n_parts = reports && n_strips == 0 ? 1 : n_strips; /* rows without columns are reported too */
#pragma omp parallel num_threads(args->threads)
    {
        gr_team_begin(args->times);
#pragma omp for schedule(dynamic, 1) nowait
        for (int64_t i = 0; i < p->list.n_tasks * n_parts; i++) {
            do_task(&r, i, n_parts);
            poll_host(args);
        }
        gr_team_end(args->times);
#pragma omp barrier
        gr_team_begin(args->times);
#pragma omp for schedule(dynamic, 1) nowait
        for (int64_t i = 0; i < p->list.n_hubs * (reports ? 1 : n_strips); i++) finish_hub(&r, i, n_strips);
        gr_team_end(args->times);
#if defined(__x86_64__)
        /* Order the non-temporal stores before the caller's next accesses, on any thread. */
        if (r.job.stream) __builtin_ia32_sfence();
#endif
    }
    return GRAFT_OK;
}

/* init has no state yet, so each instruction set needs its own init to bind its loops. */
#define VARIANT(isa, rank, suffix, text)                                                                               \
    static int32_t init_##isa(const graft_host *host, void **state, graft_error *error)                                \
    {                                                                                                                  \
        return simd_init(gr_simd_##isa, host, state, error);                                                           \
    }                                                                                                                  \
    static const graft_kernel kernel_##isa = {                                                                         \
        .size = sizeof(graft_kernel),                                                                                  \
        .args_size = sizeof(graft_mxm_args),                                                                           \
        .preference = (rank),                                                                                          \
        .description = "registers and tasks of equal work, " text,                                                     \
        .init = init_##isa,                                                                                            \
        .fini = simd_fini,                                                                                             \
        .supports = simd_supports,                                                                                     \
        .prepare = simd_prepare,                                                                                       \
        .release = simd_release,                                                                                       \
        .run = simd_run,                                                                                               \
    };                                                                                                                 \
    static const graft_module_table table_##isa[2] = {                                                                 \
        { sizeof(graft_module_table), GRAFT_ABI_VERSION, "kernel", "simd", &kernel_##isa, NULL, NULL },                \
        { sizeof(graft_module_table), GRAFT_ABI_VERSION, "kernel", "simd." suffix, &kernel_##isa, NULL, NULL },        \
    };

#if defined(__x86_64__)
VARIANT(avx512, 103, "avx512", "AVX-512")
VARIANT(avx2, 102, "avx2", "AVX2")
#endif
#if defined(GR_HAS_SVE)
VARIANT(sve512, 103, "sve512", "SVE with 512 bits")
VARIANT(sve256, 102, "sve256", "SVE with 256 bits")
#endif
#if defined(__aarch64__)
#define GENERIC_TEXT "NEON"
#else
#define GENERIC_TEXT "the instructions every processor of this kind has"
#endif
VARIANT(generic, 101, "generic", GENERIC_TEXT)

const graft_module_table *gr_kernel_simd(int32_t index)
{
    const graft_module_table *found[3];
    int32_t                   count = 0;

#if defined(__x86_64__)
    if (gr_processor_isa() >= GR_ISA_AVX512) found[count++] = table_avx512;
    if (gr_processor_isa() >= GR_ISA_AVX2) found[count++] = table_avx2;
#endif
#if defined(GR_HAS_SVE)
    if (gr_processor_isa() == GR_ISA_SVE512) found[count++] = table_sve512;
    if (gr_processor_isa() == GR_ISA_SVE256) found[count++] = table_sve256;
#endif
    found[count++] = table_generic;
    if (index >= count) return NULL;
    return &found[index][index > 0];
}
