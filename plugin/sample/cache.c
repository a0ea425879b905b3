/* The cache of historical embeddings.
 * SPDX-License-Identifier: Apache-2.0 */
#include "sample/cache.h"

#include "base/assert.h"
#include "base/team.h"

#include <math.h>
#include <string.h>

/* The value of `since` for a row that must not be used. */
enum { NEVER = -1 };

int32_t gr_sample_cache_init(struct gr_cache *c, struct gr_budget *budget, int64_t n, int64_t rows, int64_t width,
                             int32_t bits, int64_t most, graft_error *error)
{
    *c = (struct gr_cache){ .n = n, .most = most, .first = -1, .last = -1 };
    c->codec = (struct gr_codec){ .width = width,
                                  .dtype = GRAFT_F32,
                                  .bits = bits,
                                  .code = GRAFT_CODEC_MINMAX,
                                  .rounding = GRAFT_ROUND_NEAREST,
                                  .isa = gr_processor_isa() };
    c->row_bytes = gr_codec_row_bytes(&c->codec);
    c->capacity = (int64_t)fmin((double)n, (double)rows * 4.0 * (double)width / (double)c->row_bytes);
    GR_TRY(GR_BUDGET_NEW(budget, GR_USE_MESSAGES, c->row_of, n, error));
    GR_TRY(GR_BUDGET_NEW(budget, GR_USE_MESSAGES, c->vertex, gr_sample_cache_place_words(c) * 2, error));
    c->older = c->vertex + c->capacity;
    c->newer = c->older + c->capacity;
    GR_TRY(GR_BUDGET_NEW(budget, GR_USE_MESSAGES, c->since, c->capacity, error));
    GR_TRY(GR_BUDGET_NEW(budget, GR_USE_MESSAGES, c->bytes, gr_sample_cache_words(c) * 8, error));
    GR_TRY(GR_BUDGET_NEW(budget, GR_USE_MESSAGES, c->assigned, most, error));
    gr_sample_cache_forget(c);
    return GRAFT_OK;
}

void gr_sample_cache_forget(struct gr_cache *c)
{
    for (int64_t v = 0; v < c->n; v++) c->row_of[v] = GR_NOT_CACHED;
    for (int64_t i = 0; i < c->capacity; i++) c->vertex[i] = -1;
    c->used = 0;
    c->first = c->last = -1;
}

int64_t gr_sample_cache_words(const struct gr_cache *c)
{
    return (c->capacity * c->row_bytes + 7) / 8;
}

int64_t gr_sample_cache_place_words(const struct gr_cache *c)
{
    return (3 * c->capacity + 1) / 2;
}

/* Whether a row may be used now. */
static int is_of_use(const struct gr_cache *c, int32_t row, const struct gr_cache_life *life)
{
    if (row == GR_NOT_CACHED || c->since[row] == NEVER) return 0;
    return life->takes_expired || life->now - c->since[row] <= life->life;
}

int gr_sample_cache_has(const struct gr_cache *c, int64_t vertex, const struct gr_cache_life *life)
{
    return is_of_use(c, c->row_of[vertex], life);
}

int64_t gr_sample_cache_find(struct gr_cache *c, const int32_t *vertex, int64_t count, const struct gr_cache_life *life,
                             int threads, int32_t *rows)
{
    int64_t found = 0, expired = 0, ages = 0, oldest = c->counts.oldest;

    threads = gr_threads_worth(threads, 16 * count);
#pragma omp parallel for num_threads(threads) if (threads > 1) reduction(+ : found, expired, ages)                     \
    reduction(max : oldest)
    for (int64_t i = 0; i < count; i++) {
        const int32_t row = c->row_of[vertex[i]];

        rows[i] = is_of_use(c, row, life) ? row : GR_NOT_CACHED;
        expired += row != GR_NOT_CACHED && rows[i] == GR_NOT_CACHED;
        if (rows[i] == GR_NOT_CACHED) continue;
        found++;
        ages += life->now - c->since[row];
        if (life->now - c->since[row] > oldest) oldest = life->now - c->since[row];
    }
    c->counts.searched += count;
    c->counts.found += found;
    c->counts.expired += expired;
    c->counts.ages += ages;
    c->counts.oldest = oldest;
    return found;
}

void gr_sample_cache_load(const struct gr_cache *c, const int32_t *rows, int64_t count, int threads, float *to)
{
    const struct gr_fp fp = gr_fp_get();

    threads = gr_threads_worth(threads, count * c->codec.width);
#pragma omp parallel num_threads(threads) if (threads > 1)
    {
        const struct gr_fp own = gr_fp_swap(fp);

#pragma omp for schedule(static) nowait
        for (int64_t i = 0; i < count; i++) {
            float *const         row = to + i * c->codec.width;
            enum gr_codec_result result;

            if (rows[i] == GR_NOT_CACHED) {
                memset(row, 0, (uint64_t)c->codec.width * sizeof *row);
                continue;
            }
            result = gr_codec_decode_row(&c->codec, 0, c->bytes + rows[i] * c->row_bytes, row, row);
            GR_ASSERT(result == GR_CODEC_DONE);
            (void)result;
        }
        gr_fp_set(own);
    }
}

static void unlink_row(struct gr_cache *c, int32_t row)
{
    if (c->older[row] >= 0) c->newer[c->older[row]] = c->newer[row];
    else c->first = c->newer[row];
    if (c->newer[row] >= 0) c->older[c->newer[row]] = c->older[row];
    else c->last = c->older[row];
}

static void append_row(struct gr_cache *c, int32_t row)
{
    c->older[row] = c->last;
    c->newer[row] = -1;
    if (c->last >= 0) c->newer[c->last] = row;
    else c->first = row;
    c->last = row;
}

/* Choose the row of a vertex: its current row, a free row, or the oldest row. */
static int32_t place_row(struct gr_cache *c, int32_t vertex)
{
    int32_t row = c->row_of[vertex];

    if (row != GR_NOT_CACHED) {
        unlink_row(c, row);
    } else if (c->used < c->capacity) {
        row = (int32_t)c->used++;
    } else {
        row = c->first;
        unlink_row(c, row);
        c->row_of[c->vertex[row]] = GR_NOT_CACHED;
        c->counts.evicted++;
    }
    append_row(c, row);
    c->row_of[vertex] = row;
    c->vertex[row] = vertex;
    return row;
}

int64_t gr_sample_cache_store(struct gr_cache *c, const int32_t *vertex, int64_t count, const float *from, int64_t now,
                              int threads)
{
    const struct gr_fp fp = gr_fp_get();
    int64_t            unfit = 0;

    GR_ASSERT(count <= c->most);
    if (c->capacity == 0) return 0;
    for (int64_t i = 0; i < count; i++) {
        const int32_t there = c->row_of[vertex[i]];

        c->assigned[i] = there != GR_NOT_CACHED && c->since[there] > now ? GR_NOT_CACHED : place_row(c, vertex[i]);
        c->counts.stored += c->assigned[i] != GR_NOT_CACHED;
    }
    threads = gr_threads_worth(threads, count * c->codec.width);
#pragma omp parallel num_threads(threads) if (threads > 1) reduction(+ : unfit)
    {
        const struct gr_fp own = gr_fp_swap(fp);

#pragma omp for schedule(static) nowait
        for (int64_t i = 0; i < count; i++) {
            const int32_t row = c->assigned[i];
            uint8_t      *record;

            if (row == GR_NOT_CACHED || c->row_of[vertex[i]] != row) continue; /* evicted by a row of this call */
            record = c->bytes + row * c->row_bytes;
            c->since[row] = now;
            /* A row that could not be encoded in its message was received as NaN. */
            if ((c->has_no_messages || !isnan(from[i * c->codec.width])) &&
                gr_codec_encode_row(&c->codec, 0, from + i * c->codec.width, NULL, record) == GR_CODEC_DONE)
                continue;
            c->since[row] = NEVER;
            unfit++;
        }
        gr_fp_set(own);
    }
    return unfit;
}

int64_t gr_sample_cache_first_broken(const struct gr_cache *c, const uint8_t *records, int64_t count, float *row)
{
    for (int64_t i = 0; i < count; i++) {
        const enum gr_codec_result result = gr_codec_decode_row(&c->codec, 0, records + i * c->row_bytes, row, row);

        if (result == GR_CODEC_INVALID || (result == GR_CODEC_UNENCODED && c->has_no_messages)) return i;
    }
    return count;
}

/* Set row_of for the vertices of rows 0 .. count-1. Returns whether each vertex is valid, and occurs once. */
static int turn_places(struct gr_cache *c, const int32_t *vertex, int64_t count)
{
    for (int64_t v = 0; v < c->n; v++) c->row_of[v] = GR_NOT_CACHED;
    for (int64_t i = 0; i < count; i++) {
        if (vertex[i] < 0 || vertex[i] >= c->n || c->row_of[vertex[i]] != GR_NOT_CACHED) return 0;
        c->row_of[vertex[i]] = (int32_t)i;
    }
    return 1;
}

/* The number of rows in use, which are the first rows. */
static int64_t count_used(const struct gr_cache *c, const int32_t *vertex)
{
    int64_t used = 0;

    while (used < c->capacity && vertex[used] >= 0) used++;
    return used;
}

/* Whether rows 0 .. used-1 are one list in both directions. */
static int is_list(const int32_t *older, const int32_t *newer, int64_t used)
{
    int32_t at = -1, next = -1;
    int64_t steps = 0;

    for (int64_t i = 0; i < used; i++)
        if (older[i] == -1) next = (int32_t)i;
    for (; next != -1 && steps < used; steps++) {
        if (next < 0 || next >= used || older[next] != at) return 0;
        at = next;
        next = newer[at];
    }
    return next == -1 && steps == used;
}

int gr_sample_cache_can_place(struct gr_cache *c, const int32_t *places)
{
    const int64_t used = count_used(c, places);
    int           can = turn_places(c, places, used) && is_list(places + c->capacity, places + 2 * c->capacity, used);

    for (int64_t i = used; i < c->capacity; i++) can &= places[i] == -1;
    (void)turn_places(c, c->vertex, count_used(c, c->vertex));
    return can;
}

void gr_sample_cache_adopt(struct gr_cache *c, int64_t now, float *row)
{
    c->used = count_used(c, c->vertex);
    c->first = c->last = -1;
    (void)turn_places(c, c->vertex, c->used);
    for (int64_t i = 0; i < c->used; i++) {
        if (c->older[i] == -1) c->first = (int32_t)i;
        if (c->newer[i] == -1) c->last = (int32_t)i;
        if (c->since[i] > now) c->since[i] = now;
        if (gr_codec_decode_row(&c->codec, 0, c->bytes + i * c->row_bytes, row, row) != GR_CODEC_DONE)
            c->since[i] = NEVER;
    }
}

void gr_sample_cache_place_all(struct gr_cache *c)
{
    GR_ASSERT(c->capacity == c->n);
    gr_sample_cache_forget(c);
    for (int64_t v = 0; v < c->n; v++) (void)place_row(c, (int32_t)v);
}
