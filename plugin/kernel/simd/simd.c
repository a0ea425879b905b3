/* Kernel "simd": one sweep over the entries of a row with the columns of C in registers. The matrix is cut into tasks
 * of about equal work, which threads take in turn; the result of a task does not depend on the thread.
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
    if (state != NULL) gr_memory_host_free(((struct simd_state *)state)->host, state);
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
    gr_memory_host_free(host, p->list.first_rows);
    gr_memory_host_free(host, p->list.hubs);
    gr_memory_host_free(host, p->partials.z);
    gr_memory_host_free(host, p->partials.winner);
    gr_memory_host_free(host, p);
}

static int32_t simd_prepare(void *state, const graft_csr *a, void **prepared, int64_t *bytes, graft_error *error)
{
    const graft_host     *host = ((struct simd_state *)state)->host;
    struct simd_prepared *p = NULL;
    int32_t               rc = GRAFT_OK;

    GR_TRY_DONE(GR_HOST_NEW(host, p, 1, error));
    gr_kernel_tasks_count(a, &p->list);
    GR_TRY_DONE(GR_HOST_NEW(host, p->list.first_rows, p->list.n_tasks + 1, error));
    GR_TRY_DONE(GR_HOST_NEW(host, p->list.hubs, p->list.most_hubs, error));
    *bytes +=
        (p->list.n_tasks + 1) * (int64_t)sizeof *p->list.first_rows + p->list.most_hubs * (int64_t)sizeof *p->list.hubs;
    *prepared = p;
    p = NULL;
done:
    simd_release(state, p);
    return rc;
}

/* Grow the partial results to `width` columns, if there is memory. The next run uses them again. */
static void reserve_partials(const struct simd_state *state, struct simd_prepared *p, int64_t width)
{
    const graft_host *host = state->host;
    struct partials   more = { .width = width };
    graft_error       ignored = { .size = sizeof ignored };

    if (p->list.n_hubs == 0 || width <= p->partials.width || width > INT64_MAX / 8 / p->list.n_segments) return;
    if (GR_HOST_NEW(host, more.z, p->list.n_segments * width * 8, &ignored) < 0 ||
        GR_HOST_NEW(host, more.winner, p->list.n_segments * width, &ignored) < 0) {
        gr_memory_host_free(host, more.z);
        return;
    }
    gr_memory_host_free(host, p->partials.z);
    gr_memory_host_free(host, p->partials.winner);
    p->partials = more;
}

/* The data of one run, which all threads share. */
struct simd_run {
    struct gr_simd_job          job;
    const struct simd_state    *state;
    const struct gr_simd_loops *loops;
    struct simd_prepared       *p;
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

/* Whether a mask of bits forbids all elements of the strip. Strips begin at multiples of 8. */
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

/* Whether a mask of bytes forbids all elements of the strip. Most strips have an allowed element near their begin,
 * which ends the loop. */
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

/* Whether the mask forbids the whole strip of a row, so that no entry needs to be read for it. */
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

/* Compute a strip of the rows begin .. end-1 that are not hubs, but only of rows with less than `work_end` work before
 * them; record the hubs among them. \return the row after the last one */
static int64_t do_rows(const struct simd_run *r, int64_t begin, int64_t end, int64_t work_end,
                       struct gr_simd_strip strip)
{
    const int64_t *const    row_ptr = r->job.a->row_ptr;
    const graft_mask *const mask = r->job.args->mask;
    _Alignas(64) char       z[GR_SIMD_STRIP * sizeof(double)];
    int32_t                 winner[GR_SIMD_STRIP];
    int32_t *const          winners = r->job.args->winner != NULL ? winner : NULL;
    const int               stays = !(r->job.args->flags & GRAFT_MXM_REPLACE) && r->job.args->epilogue == NULL;
    int64_t                 row = begin, first = row_ptr[begin], last;

    GR_ASSERT(begin <= end && strip.count <= GR_SIMD_STRIP);
    for (; row < end && gr_work_before(first, row) < work_end; row++, first = last) {
        int forbidden;

        last = row_ptr[row + 1];
        if (gr_is_hub(last - first)) {
            if (strip.begin == 0) gr_kernel_task_add_hub(&r->p->list, row);
            continue;
        }
        forbidden = is_forbidden(mask, row, strip);
        if (forbidden && stays) continue;
        if (forbidden || first == last) {
            r->loops->finish(&r->job, row, strip, NULL, winners);
        } else {
            r->loops->gather(&r->job, first, last, strip, z, winners);
            r->loops->finish(&r->job, row, strip, z, winners);
        }
    }
    return row;
}

static void report_rows(const struct simd_run *r, int64_t begin, int64_t end)
{
    const graft_mxm_args *args = r->job.args;

    args->rows_done(args->rows_arg, omp_get_thread_num(), begin, end);
}

static int is_hub(const graft_csr *a, int64_t row)
{
    return gr_is_hub(a->row_ptr[row + 1] - a->row_ptr[row]);
}

/* Compute all columns of rows begin .. end-1, in blocks that are still in cache when rows_done is called. A hub ends a
 * block, and is reported when it is finished. */
static void do_blocks(const struct simd_run *r, int64_t begin, int64_t end)
{
    const int64_t width = r->job.args->c->n_cols, rows = 1 + GR_REPORT_BYTES / (1 + width * r->element);

    for (int64_t row = begin, next; row < end; row = next) {
        for (next = row; next < end && next - row < rows && !is_hub(r->job.a, next);) next++;
        for (int64_t j = 0; j < width; j += GR_SIMD_STRIP)
            do_rows(r, row, next, INT64_MAX, strip_at(r, j, GR_SIMD_STRIP));
        if (next > row) report_rows(r, row, next);
        if (next < end && is_hub(r->job.a, next)) gr_kernel_task_add_hub(&r->p->list, next++);
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

/* Do one part of a task: a strip of its rows; or, where rows_done needs whole rows, an equal share of the rows. */
static void do_task(const struct simd_run *r, int64_t number, int64_t n_parts)
{
    const graft_csr     *a = r->job.a;
    struct gr_task_list *list = &r->p->list;
    const int64_t        task = number / n_parts, part = number % n_parts, first = gr_kernel_task_first(a, list, task);

    if (r->job.args->rows_done != NULL) {
        const int64_t rows = gr_kernel_task_first(a, list, task + 1) - first;

        do_blocks(r, first + rows * part / n_parts, first + rows * (part + 1) / n_parts);
    } else {
        const int64_t work_end = (task + 1) * GR_TASK_ENTRIES;

        gr_kernel_task_set_first(list, task + 1, do_rows(r, first, a->n_rows, work_end, strip_number(r, part)));
    }
}

/* Find the hub that a segment is part of. */
static const struct gr_hub *hub_of(const struct gr_task_list *list, int64_t segment)
{
    int64_t low = 0, high = list->n_hubs - 1;

    while (low < high) {
        const int64_t middle = high - (high - low) / 2;

        if (list->hubs[middle].first_segment <= segment) low = middle;
        else high = middle - 1;
    }
    return &list->hubs[low];
}

/* Compute a strip of z and the winners from one segment of a hub. */
static void gather_segment(const struct simd_run *r, const struct gr_hub *hub, int64_t segment,
                           struct gr_simd_strip strip, char *z, int32_t *winner)
{
    const int64_t begin = r->job.a->row_ptr[hub->row] + segment * GR_TASK_ENTRIES;
    const int64_t end = r->job.a->row_ptr[hub->row + 1];

    r->loops->gather(&r->job, begin, end - begin > GR_TASK_ENTRIES ? begin + GR_TASK_ENTRIES : end, strip, z, winner);
}

static void do_segment(const struct simd_run *r, int64_t number, int64_t n_strips)
{
    const int64_t              segment = number / n_strips;
    const struct gr_hub       *hub = hub_of(&r->p->list, segment);
    const struct gr_simd_strip strip = strip_number(r, number % n_strips);

    if (is_forbidden(r->job.args->mask, hub->row, strip)) return;
    gather_segment(r, hub, segment - hub->first_segment, strip, partial_z(r, segment, strip),
                   partial_winner(r, segment, strip));
}

/* Poll the host, in the calling thread. Called between tasks, which take some tenths of a millisecond each. */
static void poll_host(const graft_mxm_args *args)
{
    if (args->poll != NULL && omp_get_thread_num() == 0) args->poll(args->poll_arg);
}

static int has_partials(const struct simd_run *r)
{
    return r->p->partials.width >= r->job.args->c->n_cols;
}

static void combine_segments(const struct simd_run *r, const struct gr_hub *hub, struct gr_simd_strip strip)
{
    for (int64_t s = 1; s < hub->n_segments; s++) {
        r->loops->combine(&r->job, strip.count, partial_z(r, hub->first_segment, strip),
                          partial_winner(r, hub->first_segment, strip), partial_z(r, hub->first_segment + s, strip),
                          partial_winner(r, hub->first_segment + s, strip));
    }
}

/* Compute the segments one after the other, where there is no memory for partial results. */
static void gather_segments(const struct simd_run *r, const struct gr_hub *hub, struct gr_simd_strip strip, char *z,
                            int32_t *winner)
{
    _Alignas(64) char other[GR_SIMD_STRIP * sizeof(double)];
    int32_t           others[GR_SIMD_STRIP];
    int32_t *const    other_winner = winner != NULL ? others : NULL;

    gather_segment(r, hub, 0, strip, z, winner);
    for (int64_t s = 1; s < hub->n_segments; s++) {
        gather_segment(r, hub, s, strip, other, other_winner);
        r->loops->combine(&r->job, strip.count, z, winner, other, other_winner);
    }
}

/* Combine the segments of a hub in order, then store the row. */
static void finish_strip(const struct simd_run *r, const struct gr_hub *hub, struct gr_simd_strip strip)
{
    _Alignas(64) char sums[GR_SIMD_STRIP * sizeof(double)];
    int32_t           winners[GR_SIMD_STRIP];
    char             *z = has_partials(r) ? partial_z(r, hub->first_segment, strip) : sums;
    int32_t          *winner = has_partials(r)               ? partial_winner(r, hub->first_segment, strip)
                               : r->job.args->winner != NULL ? winners
                                                             : NULL;
    const int         forbidden = is_forbidden(r->job.args->mask, hub->row, strip);

    if (!forbidden && has_partials(r)) combine_segments(r, hub, strip);
    else if (!forbidden) gather_segments(r, hub, strip, z, winner);
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

/* Whether stores to C shall bypass the caches: no values are added to C, rows_done does not read its rows, and C is
 * larger than the last-level cache that most processors have for two cores, so that little of it would stay in
 * cache. */
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

/* Do the share of the calling thread in `count` pieces of work of a team. */
static void share_work(const struct simd_run *r, int64_t count, int64_t n_parts,
                       void (*work)(const struct simd_run *r, int64_t number, int64_t n_parts))
{
    gr_team_begin(r->job.args->times);
#pragma omp for schedule(dynamic, 1) nowait
    for (int64_t i = 0; i < count; i++) {
        work(r, i, n_parts);
        poll_host(r->job.args);
    }
    gr_team_end(r->job.args->times);
}

/* Do all tasks, and then the hubs that they found. In later products of the matrix the hubs are `known` from the
 * start. */
static void share_all(const struct simd_run *r, int known, int64_t n_strips, int64_t n_parts)
{
    struct simd_prepared *p = r->p;

    if (known && has_partials(r)) share_work(r, p->list.n_segments * n_strips, n_strips, do_segment);
    share_work(r, p->list.n_tasks * n_parts, n_parts, do_task);
    if (known && p->list.n_hubs == 0) return;
#pragma omp barrier
    if (!known) {
#pragma omp single
        {
            gr_kernel_tasks_end(r->job.a, &p->list);
            reserve_partials(r->state, p, r->job.args->c->n_cols);
        }
        if (has_partials(r)) share_work(r, p->list.n_segments * n_strips, n_strips, do_segment);
#pragma omp barrier
    }
    share_work(r, p->list.n_hubs * (r->job.args->rows_done != NULL ? 1 : n_strips), n_strips, finish_hub);
}

static int32_t simd_run(void *state, void *prepared, const graft_csr *a, const graft_mxm_args *args, graft_error *error)
{
    const struct simd_state *s = state;
    struct simd_prepared    *p = prepared;
    const int                is_double = args->c->dtype == GRAFT_F64, known = p->list.complete;
    struct simd_run          r = { job_of(a, args), s, &s->loops[is_double], p, is_double ? 8 : 4, GR_SIMD_STRIP };
    const int64_t            width = args->c->n_cols;
    const struct gr_fp       fp = gr_fp_get();
    int64_t                  n_strips, n_parts;

    (void)error;
    /* Few rows make few tasks. Then a task is divided into smaller strips, and the result is bitwise identical. */
    while (r.strip > 64 && p->list.n_tasks * ((width + r.strip - 1) / r.strip) < 8 * args->threads) r.strip /= 2;
    n_strips = (width + r.strip - 1) / r.strip;
    n_parts = args->rows_done != NULL && n_strips == 0 ? 1 : n_strips; /* rows without columns are reported too */
    if (n_parts == 0) return GRAFT_OK;
    if (known) reserve_partials(s, p, width);
#pragma omp parallel num_threads(args->threads)
    {
        const struct gr_fp own = gr_fp_swap(fp);

        share_all(&r, known, n_strips, n_parts);
#if defined(__x86_64__)
        /* Order the non-temporal stores before the caller's next accesses, on any thread. */
        if (r.job.stream) __builtin_ia32_sfence();
#endif
        gr_fp_set(own);
    }
    return GRAFT_OK;
}

/* init has no state yet, so each instruction set needs its own init to bind its loops. */
#define VARIANT(isa, rank, suffix, text)                                                                               \
    static int32_t init_##isa(const graft_host *host, void **state, graft_error *error)                                \
    {                                                                                                                  \
        return simd_init(gr_simd_##isa, host, state, error);                                                           \
    }                                                                                                                  \
    static const graft_kernel_ops kernel_##isa = {                                                                     \
        .size = sizeof(graft_kernel_ops),                                                                              \
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
