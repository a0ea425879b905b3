/* Orders of the vertices: by degree, reverse Cuthill-McKee, by community.
 * SPDX-License-Identifier: Apache-2.0 */
#include "graph/order.h"

#include "base/assert.h"
#include "base/memory.h"

#include <string.h>

/* Work arrays; all [n] unless noted. */
struct order_work {
    const graft_csr *csr;
    int64_t          n;
    int64_t         *by_degree; /* vertices by ascending degree */
    int64_t         *label;
    int64_t         *count; /* [n + 1] number of vertices with each label or key, then offsets */
    int64_t         *place;
};

/* Stable counting sort of `from` by key[v] in 0 .. n-1 into `to`. */
static void counting_sort(struct order_work *w, const int64_t *from, const int64_t *key, int64_t *to)
{
    memset(w->count, 0, (uint64_t)(w->n + 1) * sizeof *w->count);
    for (int64_t i = 0; i < w->n; i++) w->count[key[i] + 1]++;
    for (int64_t k = 0; k < w->n; k++) w->count[k + 1] += w->count[k];
    for (int64_t i = 0; i < w->n; i++) to[w->count[key[from[i]]]++] = from[i];
}

static void sort_by_degree(struct order_work *w)
{
    for (int64_t v = 0; v < w->n; v++) {
        const int64_t d = w->csr->row_ptr[v + 1] - w->csr->row_ptr[v];

        w->label[v] = d < w->n ? d : w->n - 1;
        w->place[v] = v;
    }
    counting_sort(w, w->place, w->label, w->by_degree);
}

static void reverse(int64_t *order, int64_t n)
{
    for (int64_t i = 0; i < n / 2; i++) {
        const int64_t other = order[n - 1 - i];

        order[n - 1 - i] = order[i];
        order[i] = other;
    }
}

/* Append the neighbours of v that are not yet in the queue, by ascending degree. \return the new end */
static int64_t append_neighbours(struct order_work *w, int64_t v, int64_t *order, int64_t end)
{
    const graft_csr *csr = w->csr;
    const int64_t    begin = end;

    for (int64_t e = csr->row_ptr[v]; e < csr->row_ptr[v + 1]; e++) {
        const int64_t u = gr_csr_column(csr, e);

        if (w->label[u]) continue;
        w->label[u] = 1;
        order[end++] = u;
    }
    /* place[] holds the rank by degree. A shell sort needs no memory, and is nearly linear at these lengths. */
    for (int64_t gap = (end - begin) / 2; gap > 0; gap = gap * 5 / 11) {
        for (int64_t i = begin + gap; i < end; i++) {
            const int64_t u = order[i];
            int64_t       j = i;

            for (; j - gap >= begin && w->place[order[j - gap]] > w->place[u]; j -= gap) order[j] = order[j - gap];
            order[j] = u;
        }
    }
    return end;
}

static void cuthill_mckee(struct order_work *w, int64_t *order)
{
    int64_t end = 0;

    memset(w->label, 0, (uint64_t)w->n * sizeof *w->label);
    for (int64_t i = 0; i < w->n; i++) w->place[w->by_degree[i]] = i;
    for (int64_t i = 0, done = 0; i < w->n; i++) {
        if (w->label[w->by_degree[i]]) continue;
        w->label[w->by_degree[i]] = 1;
        order[end++] = w->by_degree[i];
        for (; done < end; done++) end = append_neighbours(w, order[done], order, end);
    }
    reverse(order, w->n);
}

/* Find the most frequent label among the neighbours; of equally frequent labels, the first to reach this count. Resets
 * the counts. */
static int64_t common_label(struct order_work *w, int64_t v)
{
    const graft_csr *csr = w->csr;
    int64_t          best = w->label[v], most = 0;

    for (int64_t e = csr->row_ptr[v]; e < csr->row_ptr[v + 1]; e++) {
        const int64_t label = w->label[gr_csr_column(csr, e)];

        if (++w->count[label] > most) {
            most = w->count[label];
            best = label;
        }
    }
    for (int64_t e = csr->row_ptr[v]; e < csr->row_ptr[v + 1]; e++) w->count[w->label[gr_csr_column(csr, e)]] = 0;
    return best;
}

/* Sort the vertices by community, larger communities first, and within a community by descending degree. */
static void by_community(struct order_work *w, int64_t *order)
{
    enum { SWEEPS = 5 };

    for (int64_t v = 0; v < w->n; v++) w->label[v] = v;
    memset(w->count, 0, (uint64_t)(w->n + 1) * sizeof *w->count);
    for (int sweep = 0; sweep < SWEEPS; sweep++) {
        for (int64_t i = 0; i < w->n; i++) w->label[w->by_degree[i]] = common_label(w, w->by_degree[i]);
    }
    reverse(w->by_degree, w->n);
    counting_sort(w, w->by_degree, w->label, order);
    /* count[label] is now the end of the community; its size, descending, is the second key. */
    for (int64_t v = 0; v < w->n; v++) {
        const int64_t label = w->label[v], begin = label > 0 ? w->count[label - 1] : 0;

        w->place[v] = w->n - (w->count[label] - begin);
    }
    memcpy(w->by_degree, order, (uint64_t)w->n * sizeof *order);
    counting_sort(w, w->by_degree, w->place, order);
}

static int32_t allocate_order_work(const graft_context *context, struct gr_pool *pool, struct order_work *w,
                                   graft_error *error)
{
    GR_TRY(GR_POOL_NEW(context, pool, w->by_degree, w->n, error));
    GR_TRY(GR_POOL_NEW(context, pool, w->label, w->n, error));
    GR_TRY(GR_POOL_NEW(context, pool, w->count, w->n + 1, error));
    GR_TRY(GR_POOL_NEW(context, pool, w->place, w->n, error));
    sort_by_degree(w);
    return GRAFT_OK;
}

int64_t gr_csr_order_bytes(int64_t n)
{
    return 3 * gr_memory_block_bytes(n, sizeof(int64_t)) + gr_memory_block_bytes(n + 1, sizeof(int64_t));
}

const char *const gr_order_names[] = { GR_ORDER_LIST(GR_CHOICE_NAME) };

int32_t gr_csr_order_find(const char *name, enum gr_order *method, graft_error *error)
{
    for (int i = GR_ORDER_DEGREE; i <= GR_ORDER_COMMUNITY; i++) {
        *method = (enum gr_order)i;
        if (strcmp(name, gr_order_names[i]) == 0) return GRAFT_OK;
    }
    return gr_fail(error, GRAFT_ERR_OPTION, "there is no order '%.60s'; expected degree, rcm or community", name);
}

/* Set place[order[i]] = i. ERR_ARG if `order` is no permutation. */
static int32_t invert_order(const int64_t *order, int64_t n, int64_t *place, graft_error *error)
{
    for (int64_t i = 0; i < n; i++) place[i] = -1;
    for (int64_t i = 0; i < n; i++) {
        if (order[i] < 0 || order[i] >= n || place[order[i]] >= 0) {
            return gr_fail(error, GRAFT_ERR_ARG, "order[%lld] is %lld, which is %s", (long long)i, (long long)order[i],
                           order[i] < 0 || order[i] >= n ? "no vertex" : "a vertex that occurs twice");
        }
        place[order[i]] = i;
    }
    return GRAFT_OK;
}

int32_t gr_csr_order_compute(const graft_context *context, const graft_csr *csr, enum gr_order method, int64_t *order,
                             graft_error *error)
{
    struct gr_pool    pool = { 0 };
    struct order_work w = { .csr = csr, .n = csr->n_rows };
    int32_t           rc = allocate_order_work(context, &pool, &w, error);

    if (rc < 0) goto done;
    if (method == GR_ORDER_RCM) {
        cuthill_mckee(&w, order);
    } else if (method == GR_ORDER_COMMUNITY) {
        by_community(&w, order);
    } else {
        memcpy(order, w.by_degree, (uint64_t)w.n * sizeof *order);
        reverse(order, w.n);
    }
    GR_ASSERT(invert_order(order, w.n, w.place, error) == GRAFT_OK);
done:
    gr_pool_fini(context, &pool);
    return rc;
}

int32_t gr_csr_order_apply(const graft_context *context, const graft_csr *csr, const int64_t *order,
                           struct gr_csr *permuted, graft_error *error)
{
    int64_t *place = NULL, to = 0;
    int32_t  rc = GRAFT_OK;

    memset(permuted, 0, sizeof *permuted);
    GR_TRY_DONE(GR_NEW(context, place, csr->n_rows, error));
    GR_TRY_DONE(invert_order(order, csr->n_rows, place, error));
    GR_TRY_DONE(gr_csr_init(context, permuted, csr, csr->n_rows, csr->n_cols, gr_csr_entries(csr), error));
    for (int64_t i = 0; i < csr->n_rows; i++) {
        for (int64_t e = csr->row_ptr[order[i]]; e < csr->row_ptr[order[i] + 1]; e++) {
            gr_csr_put(permuted, to++, place[gr_csr_column(csr, e)], csr, e);
        }
        permuted->row_ptr[i + 1] = to;
    }
done:
    gr_free(context, place);
    return rc;
}
