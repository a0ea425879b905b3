/* Checks the validators of matrices, parts of a graph, send lists and plans. Everything that the library creates must
 * be valid, and each single change that breaks a rule must be found.
 * SPDX-License-Identifier: Apache-2.0 */
#include "dgraph/part.h"
#include "entry/entry.h"
#include "graph/csr_build.h"
#include "graph/order.h"
#include "harness/spread.h"
#include "harness/tap.h"

#include <string.h>

static int expect_valid(struct rank *r, const struct gr_part *part, const char *name)
{
    const int valid = gr_csr_part_is_valid(part, r->n_ranks, r->rank) &&
                      gr_csr_halo_is_valid(&part->halo, r->n_ranks, r->rank) && gr_csr_is_valid(&part->local);

    if (!valid) rank_blame(r, "%s: the part is not valid", name);
    return valid;
}

/* An order that is neither the given one nor sorted: every third vertex first. */
static void shuffle(int64_t *order, int64_t n)
{
    int64_t put = 0;

    for (int64_t first = 2; first >= 0; first--)
        for (int64_t v = first; v < n; v += 3) order[put++] = v;
}

static int32_t make_parts(struct rank *r, graft_graph *graph, int64_t *order)
{
    struct gr_made_part both = { 0 }, ordered = { 0 }, first = { 0 };
    struct gr_links     links = { 0 };
    const int64_t       n = graph->n_owned, edges = gr_csr_entries(&graph->part.local);
    int32_t             rc;

    expect_valid(r, &graph->part, "created");
    GR_TRY_DONE(gr_graph_part_symmetrize(r->context, graph->comm, &graph->part, &both, &r->error));
    if (expect_valid(r, &both.part, "symmetrized") && gr_csr_entries(&both.part.local) < edges)
        rank_blame(r, "symmetrizing has removed edges");
    shuffle(order, n);
    GR_TRY_DONE(gr_halo_links_init(r->context, graph->comm, &both.part.halo, &links, &r->error));
    if (!gr_halo_links_are_valid(&links, r->n_ranks, r->rank)) rank_blame(r, "the send lists are not valid");
    GR_TRY_DONE(gr_graph_part_reorder(r->context, graph->comm, &both.part, &links, order, &ordered, &r->error));
    if (expect_valid(r, &ordered.part, "reordered") && ordered.part.halo.count != both.part.halo.count)
        rank_blame(r, "reordering has changed the halo");
    for (int64_t rows = n; rows >= 0; rows = rows > 0 ? rows / 2 : -1) {
        GR_TRY_DONE(gr_graph_part_first_rows(r->context, &ordered.part, r->n_ranks, rows, n, &first, &r->error));
        expect_valid(r, &first.part, "first rows");
        gr_graph_made_part_fini(r->context, &first);
    }
done:
    gr_halo_links_fini(graph->comm, &links);
    gr_graph_made_part_fini(r->context, &first);
    gr_graph_made_part_fini(r->context, &ordered);
    gr_graph_made_part_fini(r->context, &both);
    return rc;
}

/* Change one number of the plan, which must then be refused, and change it back. */
static void expect_refused(struct rank *r, const graft_plan *plan, int64_t *number, int64_t change, const char *name)
{
    *number += change;
    if (gr_plan_is_valid(plan)) rank_blame(r, "a plan with %s counts as valid", name);
    *number -= change;
}

static int32_t make_plan(struct rank *r, graft_graph *graph)
{
    const struct gr_plan_wish wish = { .transposed = 1, .width = 3, .dtype = GRAFT_F32, .layers = 1, .has_layers = 1 };
    graft_plan               *plan = NULL;
    int64_t                  *sent, *received;
    int32_t                   rc;

    GR_TRY_DONE(gr_plan_create(r->context, graph->comm, &graph->part, graph, &wish, &plan, &r->error));
    if (!gr_plan_is_valid(plan)) rank_blame(r, "the plan is not valid");
    sent = plan->rows[GR_SEND].start;
    received = plan->rows[GR_RECEIVE].start;
    expect_refused(r, plan, &sent[0], 1, "rows sent that do not begin with 0");
    expect_refused(r, plan, &sent[r->n_ranks], 1, "more rows to send than S has");
    expect_refused(r, plan, &received[r->n_ranks], 1, "more rows to receive than R has");
    expect_refused(r, plan, &received[r->rank + 1], 1, "rows from this rank");
    expect_refused(r, plan, &plan->matrices[GR_FORWARD].local->csr.n_rows, -1, "a matrix of too few rows");
    expect_refused(r, plan, &plan->matrices[GR_BACKWARD].received->csr.n_cols, 1, "a transpose of too many columns");
done:
    gr_plan_destroy(plan);
    return rc;
}

static int32_t make_all(struct rank *r)
{
    const struct spread *s = r->all->arg;
    graft_graph         *graph = NULL;
    int64_t             *order = calloc((size_t)s->graph->n_rows + 1, sizeof *order);
    int32_t              rc = spread_setup(r, s);

    if (rc == GRAFT_OK) rc = spread_graph(r, s, &graph);
    if (rc == GRAFT_OK) rc = make_parts(r, graph, order);
    if (rc == GRAFT_OK) rc = make_plan(r, graph);
    gr_interface_graph.destroy(graph);
    free(order);
    return rc;
}

static void test_valid(const graft_csr *graph, int32_t n_ranks, enum slicing slicing, const char *partition)
{
    struct spread s = { .graph = graph,
                        .dtype = GRAFT_F32,
                        .slicing = slicing,
                        .partition = partition,
                        .cover = "hybrid",
                        .threads = "1" };
    struct ranks  ranks;
    const char   *fault = NULL;

    ranks_init(&ranks, n_ranks, 60, make_all, &s);
    ranks_run(&ranks);
    fault = ranks_fini_well(&ranks);
    ok(fault == NULL, "%d ranks, %s: the parts of all ranks are made%s%s", n_ranks, partition,
       fault != NULL ? ": " : "", fault != NULL ? fault : "");
    ok(fault == NULL, "%d ranks, %s: the parts of all ranks are valid%s%s", n_ranks, partition,
       fault != NULL ? ": " : "", fault != NULL ? fault : "");
}

/* A part of rank 1 of 3 with two rows, one edge inside of the part, and three edges to vertices of other ranks. */
struct small {
    int64_t        local_ptr[3], remote_ptr[3], start[4];
    int32_t        local_col[1], remote_col[3], place[3];
    struct gr_part part;
};

static void small_init(struct small *s)
{
    *s = (struct small){ .local_ptr = { 0, 0, 1 },
                         .remote_ptr = { 0, 2, 3 },
                         .start = { 0, 1, 1, 3 },
                         .local_col = { 1 },
                         .remote_col = { 2, 0, 1 },
                         .place = { 5, 2, 7 } };
    s->part.local = (graft_csr){ .size = sizeof s->part.local,
                                 .index_type = GRAFT_I32,
                                 .n_rows = 2,
                                 .n_cols = 2,
                                 .row_ptr = s->local_ptr,
                                 .col_idx = s->local_col };
    s->part.remote = s->part.local;
    s->part.remote.n_cols = 3;
    s->part.remote.row_ptr = s->remote_ptr;
    s->part.remote.col_idx = s->remote_col;
    s->part.halo = (struct gr_halo){ 3, s->start, s->place };
}

#define expect_invalid(change, name)                                                                                   \
    do {                                                                                                               \
        struct small s;                                                                                                \
        small_init(&s);                                                                                                \
        s.change;                                                                                                      \
        ok(!gr_csr_part_is_valid(&s.part, 3, 1), "a part is recognised as invalid: %s", name);                         \
    } while (0)

static void test_invalid(void)
{
    struct small small;

    small_init(&small);
    ok(gr_csr_part_is_valid(&small.part, 3, 1), "a small part is valid");
    ok(!gr_csr_part_is_valid(&small.part, 3, 2), "a part whose halo has vertices of this rank is invalid");
    expect_invalid(local_ptr[0] = 1, "row pointers that do not begin with 0");
    expect_invalid(remote_ptr[1] = 4, "row pointers that fall");
    expect_invalid(local_col[0] = 2, "a local column out of range");
    expect_invalid(remote_col[1] = -1, "a negative column");
    expect_invalid(remote_col[0] = 3, "a column beyond the halo");
    expect_invalid(start[3] = 2, "starts that end before the halo");
    expect_invalid(start[2] = 0, "starts that fall");
    expect_invalid(place[2] = 2, "a vertex that is twice in the halo");
    expect_invalid(place[1] = 8, "a halo that is not sorted");
    expect_invalid(place[0] = -1, "a negative place");
    expect_invalid(part.remote.n_rows = 1, "matrices of different heights");
    expect_invalid(part.halo.count = 2, "a halo of another size than the remote matrix");
}

/* Send lists of rank 1 of 3 with two rows for rank 0 and one for rank 2. */
static void test_invalid_links(void)
{
    int64_t         start[] = { 0, 2, 2, 3 };
    int32_t         place[] = { 4, 6, 1 };
    struct gr_links links = { .send_start = start, .place = place };

    ok(gr_halo_links_are_valid(&links, 3, 1), "small send lists are valid");
    ok(!gr_halo_links_are_valid(&links, 3, 0), "send lists with rows for this rank are invalid");
    place[1] = 4;
    ok(!gr_halo_links_are_valid(&links, 3, 1), "send lists with a row that is sent twice to one rank are invalid");
    place[1] = 6;
    start[1] = 4;
    ok(!gr_halo_links_are_valid(&links, 3, 1), "send lists whose starts decrease are invalid");
}

/* The halo of the vertices 5 of rank 0, and 2 and 7 of rank 2, from their keys. */
static void test_keys(const graft_context *context)
{
    const int64_t       keys[] = { 5, INT64_C(2) << 32 | 2, INT64_C(2) << 32 | 7 };
    struct gr_made_part made = { 0 };
    struct small        s;
    graft_error         error = GRAFT_INIT(graft_error);

    small_init(&s);
    ok(gr_graph_made_part_key_halo(context, &made, 3, keys, 3, &error) == GRAFT_OK && made.part.halo.count == 3 &&
           memcmp(made.part.halo.start, s.start, sizeof s.start) == 0 &&
           memcmp(made.part.halo.place, s.place, sizeof s.place) == 0,
       "a halo is made from keys");
    for (int64_t i = 0; i < 3; i++)
        ok(gr_csr_halo_index(&s.part.halo, (int32_t)(keys[i] >> 32), s.place[i]) == i, "vertex %d is found in it",
           (int)i);
    gr_graph_made_part_fini(context, &made);
}

#define expect_invalid_csr(change, name)                                                                               \
    do {                                                                                                               \
        int64_t   row_ptr[] = { 0, 2, 2, 3 };                                                                          \
        int64_t   col_idx[] = { 0, 1, 1 };                                                                             \
        graft_csr csr = { sizeof csr, GRAFT_I64, 0, 0, 3, 2, row_ptr, col_idx, NULL, NULL };                           \
        ok(gr_csr_is_valid(&csr), "a small matrix is valid");                                                          \
        change;                                                                                                        \
        ok(!gr_csr_is_valid(&csr), "a matrix is recognised as invalid: %s", name);                                     \
    } while (0)

static void test_invalid_csr(void)
{
    expect_invalid_csr(row_ptr[0] = -1, "row pointers that do not begin with 0");
    expect_invalid_csr(row_ptr[2] = 1, "row pointers that fall");
    expect_invalid_csr(col_idx[2] = 2, "a column out of range");
    expect_invalid_csr(col_idx[0] = -1, "a negative column");
    expect_invalid_csr(csr.n_rows = -1, "a negative number of rows");
    expect_invalid_csr(csr.index_type = GRAFT_F32, "columns that are no integers");
    expect_invalid_csr(csr.row_ptr = NULL, "no row pointers");
    expect_invalid_csr(csr.col_idx = NULL, "entries without columns");
}

/* Whether a matrix is valid; frees it. */
static int is_valid_once(const graft_context *context, int32_t rc, struct gr_csr *csr)
{
    const int valid = rc == GRAFT_OK && gr_csr_is_valid(&csr->view);

    gr_csr_fini(context, csr);
    return valid;
}

static int32_t fill_coo(const graft_context *context, const graft_csr *graph, struct gr_coo *coo, graft_error *error)
{
    int64_t put = 0;
    int32_t rc;

    GR_TRY_DONE(gr_csr_coo_init(context, coo, 2 * gr_csr_entries(graph), 0, error));
    coo->n_rows = coo->n_cols = graph->n_rows;
    for (int times = 0; times < 2; times++)
        for (int64_t row = 0; row < graph->n_rows; row++)
            for (int64_t e = graph->row_ptr[row]; e < graph->row_ptr[row + 1]; e++) {
                coo->row[put] = (int32_t)row;
                coo->col[put++] = (int32_t)gr_csr_column(graph, e);
            }
done:
    return rc;
}

/* Call every function that makes a matrix. */
static void test_made(graft_context *context, const graft_csr *graph)
{
    struct gr_csr turned = { 0 }, sorted = { 0 }, made = { 0 };
    struct gr_coo coo = { 0 };
    graft_error   error = GRAFT_INIT(graft_error);
    int64_t      *order = calloc((size_t)graph->n_rows, sizeof *order), merged = 0;
    int32_t       rc = gr_csr_transpose(context, graph, &turned, &error);

    if (rc == GRAFT_OK) rc = gr_csr_transpose(context, &turned.view, &sorted, &error);
    ok(rc == GRAFT_OK && gr_csr_is_valid(&turned.view) && gr_csr_is_valid(&sorted.view),
       "a transposed matrix is valid");
    rc = gr_csr_union(context, &turned.view, &sorted.view, gr_csr_union_entries(&turned.view, &sorted.view), &made,
                      &error);
    ok(is_valid_once(context, rc, &made), "a union of matrices is valid");
    rc = gr_csr_add_self_loops(context, &sorted.view, &(struct gr_loop_value){ 0 }, &made, &error);
    ok(is_valid_once(context, rc, &made), "a matrix with self loops is valid");
    shuffle(order, graph->n_rows);
    rc = gr_csr_order_apply(context, graph, order, &made, &error);
    ok(is_valid_once(context, rc, &made), "a reordered matrix is valid");
    rc = fill_coo(context, graph, &coo, &error);
    if (rc == GRAFT_OK) rc = gr_csr_build(context, &coo, "the test", &made, &merged, &error);
    ok(is_valid_once(context, rc, &made) && merged >= gr_csr_entries(graph), "a matrix built from edges is valid");
    gr_csr_fini(context, &turned);
    gr_csr_fini(context, &sorted);
    free(order);
}

int main(void)
{
    static const char *const      partitions[] = { "block", "hash", "stream", "given" };
    const struct sample_csr_shape shape = { 400, 400, GRAFT_I64, GRAFT_F32, 0, 1 };
    struct sample                 sample = { 11 };
    struct sample_csr             graph;
    const graft_api              *api;
    graft_error                   error = GRAFT_INIT(graft_error);

    sample_csr_init_shape(&graph, &sample, &shape);
    for (int i = 0; i < 4; i++) {
        test_valid(&graph.csr, 1, SLICE_EVEN, partitions[i]);
        test_valid(&graph.csr, 2, SLICE_LAST, partitions[i]);
        test_valid(&graph.csr, 5, SLICE_ODD, partitions[i]);
        test_valid(&graph.csr, 8, SLICE_EVEN, partitions[i]);
    }
    if (graft_open(GRAFT_ABI_VERSION, GRAFT_ABI_VERSION, NULL, &api, &error) < 0) return 2;
    test_made(api->context, &graph.csr);
    test_keys(api->context);
    api->close(api->context);
    sample_csr_fini(&graph);
    test_invalid();
    test_invalid_links();
    test_invalid_csr();
    return done();
}
