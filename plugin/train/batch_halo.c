/* Creates the data that batches over ranks share: features, global indices and degrees of the halo, and the graph from
 * which neighbours are drawn.
 * SPDX-License-Identifier: Apache-2.0 */
#include "train/minibatch.h"

#include "base/assert.h"
#include "base/dtype.h"
#include "base/memory.h"
#include "comm/collective.h"
#include "sample/kind.h"
#include "sample/options.h"

#include <stdlib.h>

/* Fetch the elements of the halo vertices, `bytes` each, from the owners' arrays `owned`. */
static int32_t fetch_halo(struct gr_setup *s, struct gr_minibatches *m, const void *owned, int64_t bytes, void *halo,
                          graft_error *error)
{
    struct gr_batch_ranks *r = m->ranks;
    struct gr_budget      *budget = &m->lasting.budget;
    struct gr_comm        *comm = s->data.over->comm;
    const int64_t          count = r->links.send_start[comm->n_ranks];
    void                  *packed = NULL;
    int32_t                rc = gr_budget_borrow(budget, count * bytes, "messages (rows of the halo)", error);

    if (rc == GRAFT_OK) packed = gr_new(s->context, count, (uint64_t)bytes, "rows", error);
    if (rc == GRAFT_OK && packed == NULL) rc = GRAFT_ERR_NOMEM;
    GR_TRY_DONE(gr_comm_agree(comm, rc, error));
    rc = gr_halo_links_ask(&r->links, comm, owned, packed, halo, bytes, error);
    gr_budget_return(budget, count * bytes);
done:
    gr_free(s->context, packed);
    return rc;
}

static int32_t fetch_degrees(struct gr_setup *s, struct gr_minibatches *m, graft_error *error)
{
    struct gr_batch_ranks *r = m->ranks;
    const int64_t          bytes = s->data.n * (int64_t)sizeof(int64_t);
    int64_t               *owned = NULL;
    int32_t                rc = gr_budget_borrow(&m->lasting.budget, bytes, "messages (degrees)", error);

    if (rc == GRAFT_OK) rc = GR_NEW(s->context, owned, s->data.n, error);
    GR_TRY_DONE(gr_comm_agree(s->data.over->comm, rc, error));
    for (int64_t v = 0; v < s->data.n; v++) owned[v] = m->graph->row_ptr[v + 1] - m->graph->row_ptr[v];
    rc = fetch_halo(s, m, owned, sizeof *owned, r->degree, error);
    gr_budget_return(&m->lasting.budget, bytes);
done:
    gr_free(s->context, owned);
    return rc;
}

static int64_t input_row_bytes(const struct gr_setup *s)
{
    return s->model.config.width[0] * gr_dtype_bytes(s->run.input.type);
}

static int32_t make_halo_arrays(struct gr_setup *s, struct gr_minibatches *m, graft_error *error)
{
    struct gr_budget *budget = &m->lasting.budget;
    const int         by_degree = gr_sample_options(s->context)->weights == GR_SAMPLE_BY_DEGREE;
    const int64_t     halo = s->derived.graph.part.halo.count;

    GR_TRY(GR_BUDGET_NEW(budget, GR_USE_GRAPH, m->halo.name, halo, error));
    if (s->derived.whole.right != NULL) GR_TRY(GR_BUDGET_NEW(budget, GR_USE_GRAPH, m->halo.right, halo, error));
    if (by_degree) GR_TRY(GR_BUDGET_NEW(budget, GR_USE_GRAPH, m->ranks->degree, halo, error));
    return GR_BUDGET_NEW(budget, GR_USE_FEATURES, m->halo.x, halo * input_row_bytes(s), error);
}

/* An entry of a row, with the global index of its column. */
struct named_entry {
    int64_t name, entry;
};

static int by_name(const void *a, const void *b)
{
    const struct named_entry *x = a, *y = b;

    return x->name != y->name ? (x->name > y->name) - (x->name < y->name)
                              : (x->entry > y->entry) - (x->entry < y->entry);
}

static int draws_neighbours(const struct gr_setup *s)
{
    const struct gr_widths *fanout = &gr_sample_options(s->context)->fanout;
    int                     draws = 0;

    for (int i = 0; i < fanout->count; i++) draws |= fanout->width[i] != GR_ALL_NEIGHBOURS;
    return draws && s->model.config.kind->gathers;
}

/* Compute `shift`, which orders the entries of each row by global column: draws in this order do not depend on the
 * partition. */
static int32_t order_entries(struct gr_setup *s, struct gr_minibatches *m, graft_error *error)
{
    struct gr_batch_ranks *r = m->ranks;
    const graft_csr       *graph = m->graph;
    struct named_entry    *row = NULL;
    int64_t                longest = 0;
    int32_t                rc = GRAFT_OK;

    if (!draws_neighbours(s)) return GRAFT_OK;
    for (int64_t v = 0; v < s->data.n; v++)
        if (graph->row_ptr[v + 1] - graph->row_ptr[v] > longest) longest = graph->row_ptr[v + 1] - graph->row_ptr[v];
    GR_TRY_DONE(GR_BUDGET_NEW(&m->lasting.budget, GR_USE_GRAPH, r->shift, gr_csr_entries(graph), error));
    GR_TRY_DONE(GR_NEW(s->context, row, longest, error));
    for (int64_t v = 0; v < s->data.n; v++) {
        const int64_t begin = graph->row_ptr[v], count = graph->row_ptr[v + 1] - begin;

        for (int64_t i = 0; i < count; i++) {
            const int64_t column = gr_csr_column(graph, begin + i);

            row[i] = (struct named_entry){ column < s->data.n ? s->derived.whole.vertex[column]
                                                              : m->halo.name[column - s->data.n],
                                           begin + i };
        }
        qsort(row, (size_t)count, sizeof *row, by_name);
        for (int64_t i = 0; i < count; i++) r->shift[begin + i] = (int32_t)(row[i].entry - begin - i);
    }
done:
    gr_free(s->context, row);
    return rc;
}

static double joined_bytes(const struct gr_setup *s)
{
    const struct gr_part *part = &s->derived.graph.part;
    const int64_t         entries = gr_csr_entries(&part->local) + gr_csr_entries(&part->remote);

    return (double)s->data.n * sizeof(int64_t) + (double)entries * (s->derived.wish.uses_values ? 8.0 : 4.0);
}

/* Create the graph from which neighbours are drawn, unless the matrix of attention and extrema exists, which is used
 * instead. */
static int32_t join_graph(struct gr_setup *s, struct gr_minibatches *m, graft_error *error)
{
    struct gr_batch_ranks *r = m->ranks;

    if (s->derived.whole.a != NULL || !s->model.config.kind->gathers) return GRAFT_OK;
    GR_TRY(gr_budget_check(&m->lasting.budget, joined_bytes(s), "graph (to draw from)", error));
    GR_TRY(gr_derived_join(&s->derived, s->derived.wish.uses_values, &r->joined, error));
    gr_budget_charge(&m->lasting.budget, GR_USE_GRAPH, gr_csr_bytes(&r->joined));
    m->graph = &r->joined.view;
    return GRAFT_OK;
}

int32_t gr_train_batch_halo_init(struct gr_setup *s, struct gr_minibatches *m, graft_error *error)
{
    const struct gr_block *whole = &s->derived.whole;
    struct gr_comm        *comm = s->data.over->comm;
    struct gr_batch_halo  *halo = &m->halo;
    int32_t                rc = GRAFT_OK;

    GR_TRY(gr_halo_links_init(s->context, comm, &s->derived.graph.part.halo, &m->ranks->links, error));
    rc = make_halo_arrays(s, m, error);
    if (rc == GRAFT_OK) rc = join_graph(s, m, error);
    GR_TRY(gr_comm_agree(comm, rc, error));
    GR_TRY(fetch_halo(s, m, whole->vertex, sizeof *halo->name, halo->name, error));
    GR_TRY(gr_comm_agree(comm, order_entries(s, m, error), error));
    if (halo->right != NULL) GR_TRY(fetch_halo(s, m, whole->right, sizeof *halo->right, halo->right, error));
    if (m->ranks->degree != NULL) GR_TRY(fetch_degrees(s, m, error));
    GR_ASSERT(s->run.input.x != NULL && s->run.input.stride == s->model.config.width[0]);
    GR_TRY(fetch_halo(s, m, s->run.input.x, input_row_bytes(s), halo->x, error));
    gr_budget_charge(&m->lasting.budget, GR_USE_MESSAGES, gr_halo_links_bytes(&m->ranks->links));
    return GRAFT_OK;
}

int32_t gr_train_batch_halo_prepare(struct gr_setup *s, struct gr_minibatches *m, uint32_t what,
                                    const struct gr_new_edges *edges, struct gr_batch_changes *changes,
                                    graft_error *error)
{
    const struct gr_csr *joined = &m->ranks->joined;
    const int64_t        features = what & GRAFT_UPDATE_FEATURES ? input_row_bytes(s) : 0;
    const int64_t right = what & GRAFT_UPDATE_EDGE_VALUES && m->halo.right != NULL ? (int64_t)sizeof *m->halo.right : 0;
    const int64_t bytes =
        m->ranks->links.send_start[s->data.over->comm->n_ranks] * (features > right ? features : right);
    float *values;

    GR_TRY(gr_budget_check(&s->budget, (double)bytes, "messages (rows of the halo)", error));
    GR_TRY(GR_NEW(s->context, changes->packed, bytes, error));
    if (edges == NULL || joined->values == NULL) return GRAFT_OK;
    GR_TRY(GR_NEW(s->context, values, gr_csr_entries(&joined->view), error));
    gr_derived_join_values(&edges->copy.part, values);
    changes->values = values;
    return GRAFT_OK;
}

int32_t gr_train_batch_halo_take(struct gr_setup *s, struct gr_minibatches *m, uint32_t what,
                                 struct gr_batch_changes *changes, graft_error *error)
{
    struct gr_batch_ranks *r = m->ranks;
    struct gr_comm        *comm = s->data.over->comm;
    void *const            before = r->joined.values;

    if (changes->values != NULL) {
        r->joined.values = changes->values;
        r->joined.view.values = changes->values;
        changes->values = before;
    }
    if (what & GRAFT_UPDATE_FEATURES)
        GR_TRY(
            gr_halo_links_ask(&r->links, comm, s->run.input.x, changes->packed, m->halo.x, input_row_bytes(s), error));
    if ((what & GRAFT_UPDATE_EDGE_VALUES) != 0 && m->halo.right != NULL)
        return gr_halo_links_ask(&r->links, comm, s->derived.whole.right, changes->packed, m->halo.right,
                                 sizeof *m->halo.right, error);
    return GRAFT_OK;
}
