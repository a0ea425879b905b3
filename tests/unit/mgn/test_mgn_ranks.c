/* Checks networks of kind mgn over ranks that are threads, with ghosts and with shared nodes, in two partitions,
 * against one rank. Also memory that runs out, and dense modules that fail or whose rows depend on their place. The
 * arguments are files of dense modules.
 * SPDX-License-Identifier: Apache-2.0 */
#include "dense/dense.h"
#include "entry/entry.h"
#include "harness/effort.h"
#include "harness/mgn_parts.h"
#include "harness/tap.h"
#include "mgn/inside.h"

#include <math.h>

/* The loss of mgn_scene_take_loss() for the nodes of one rank. */
struct share {
    const struct rank_part *part;
    double                  value;
};

static int32_t take_share(void *arg, const void *output, void *gradient, graft_error *error)
{
    struct share     *share = arg;
    const graft_dtype dtype = share->part->world->scene.dtype;
    const int64_t     columns = share->part->world->scene.what.n_out;

    (void)error;
    share->value = 0;
    for (int64_t i = 0; i < share->part->mesh.n_nodes * columns; i++) {
        const double weight = share->part->node_weight[i / columns], y = mgn_scene_element(output, i, dtype);
        const double factor = mgn_scene_factor(share->part->global[i / columns] * columns + i % columns);

        share->value += weight * (factor * y + y * y / 2);
        if (dtype == GRAFT_F64) ((double *)gradient)[i] = weight * (factor + y);
        else ((float *)gradient)[i] = (float)(weight * (factor + y));
    }
    return GRAFT_OK;
}

static int32_t run_part_of_rank(struct rank *r, struct rank_part *p)
{
    const struct gr_team team = { .threads = 2 };
    struct world        *w = r->all->arg;
    struct share         share = { .part = p };
    const int64_t        columns = w->scene.what.n_out, n = p->mesh.n_nodes * columns;
    void                *output = calloc((size_t)n + 1, sizeof(double)), *gradient = w->gradients[r->rank];
    int32_t              rc;

    GR_TRY_DONE(gr_mgn_create(&p->mesh, &w->scene.shape, w->scene.dtype, &p->mgn, &r->error));
    for (int pass = 0; pass < 2; pass++) { /* the second pass finds the arrays as the first one left them */
        GR_TRY_DONE(gr_mgn_forward_begin(p->mgn, GRAFT_OK, w->scene.own_weights, p->nodes, p->edges, w->exact, team,
                                         &r->error));
        GR_TRY_DONE(gr_mgn_forward_end(p->mgn, GRAFT_OK, output, team, &r->error));
    }
    w->bytes_sent[r->rank] = gr_mgn_bytes_sent(p->mgn);
    w->loops_multiply[r->rank] = p->mgn->blocks.dense->table == &gr_dense_reference;
    for (int64_t i = 0; i < n; i++)
        w->found[r->rank][p->global[i / columns] * columns + i % columns] =
            mgn_scene_element(output, i, w->scene.dtype);
    GR_TRY_DONE(gr_comm_agree(r->comm, gr_mgn_reserve_backward(p->mgn, &r->error), &r->error));
    rc = gr_mgn_backward(p->mgn, w->scene.own_weights, p->nodes, p->edges, w->exact, 5, take_share, &share, gradient,
                         team, &r->error);
    w->losses[r->rank] = share.value;
    /* A rank hears here of a late failure of another one. */
    if (rc == GRAFT_OK) rc = gr_comm_barrier(r->comm, &r->error);
done:
    free(output);
    return rc;
}

/* A dense module whose results differ in the last bits for rows with odd numbers. On request it fails on one rank. */
static _Atomic int64_t fails_after = -1;

static int32_t uneven_init(const graft_host *host, void **state, graft_error *error)
{
    (void)host, (void)error;
    *state = NULL;
    return GRAFT_OK;
}

static void uneven_fini(void *state)
{
    (void)state;
}

static int32_t uneven_gemm(void *state, const graft_gemm *g, graft_error *error)
{
    const int32_t rc = gr_dense_reference.dense->gemm(state, g, error);

    if (atomic_load(&fails_after) >= 0 && atomic_fetch_sub(&fails_after, 1) == 0) {
        snprintf(error->message, sizeof error->message, "uneven: out of order");
        return error->code = GRAFT_ERR_MODULE;
    }
    for (int64_t i = 1; i < g->m; i += 2)
        for (int64_t j = 0; j < g->n && g->type == GRAFT_F32; j++) g->c[i * g->ldc + j] *= 1 + 0x1p-22f;
    return rc;
}

static int32_t uneven_supports(void *state, graft_dtype type, char *why, uint64_t capacity)
{
    (void)state;
    snprintf(why, capacity, "it multiplies floats");
    return type == GRAFT_F32 ? GRAFT_OK : GRAFT_ERR_UNSUPPORTED;
}

static const graft_dense_ops uneven_ops = {
    .size = sizeof uneven_ops,
    .preference = 1,
    .description = "uneven",
    .init = uneven_init,
    .fini = uneven_fini,
    .gemm = uneven_gemm,
    .supports = uneven_supports,
    .gemm_size = sizeof(graft_gemm),
};

static const graft_module_table uneven_table = {
    .size = sizeof uneven_table,
    .abi = GRAFT_ABI_VERSION,
    .kind = "dense",
    .name = "uneven",
    .dense = &uneven_ops,
};

static int32_t mgn_body(struct rank *r)
{
    struct world     *w = r->all->arg;
    struct rank_part *part = calloc(1, sizeof *part);
    int32_t           rc;

    GR_TRY_DONE(gr_module_register(r->context, &gr_dense_reference, &r->error));
    GR_TRY_DONE(gr_module_register(r->context, &uneven_table, &r->error));
    if (w->module != NULL && strchr(w->module, '/') != NULL)
        GR_TRY_DONE(gr_module_load(r->context, w->module, &r->error));
    else GR_TRY_DONE(gr_option_set(r->context, "dense.module", w->module != NULL ? w->module : "reference", &r->error));
    GR_TRY_DONE(gr_option_set(r->context, "threads", "2", &r->error));
    if (w->codec != NULL) GR_TRY_DONE(gr_option_set(r->context, "halo.codec", w->codec, &r->error));
    GR_TRY_DONE(gr_comm_create(r->context, &r->transport, r->all->timeout, &r->comm, &r->error));
    rank_part_init(part, w, r);
    if (r->rank == r->all->fail_rank) atomic_store(&r->all->fail_at, w->fail_at);
    rc = run_part_of_rank(r, part);
    rank_part_fini(part);
done:
    free(part);
    return rc;
}

/* The largest differences from the results of one rank, relative to the largest values, and whether copies of a node
 * differ. */
struct distance {
    double output, gradient, loss;
    int    copies_differ;
};

static struct distance compare_ranks(const struct world *w, int32_t n_ranks)
{
    const int64_t   n = NODES * w->scene.what.n_out, n_weights = w->scene.shape.n_weights;
    struct distance d = { 0 };
    double          largest = 0, loss = 0;

    for (int64_t i = 0; i < n; i++) {
        const double *first = NULL;

        largest = fmax(largest, fabs(w->output[i]));
        for (int32_t q = 0; q < n_ranks; q++) {
            const double *found = &w->found[q][i];

            if (!node_is_on(w, n_ranks, i / w->scene.what.n_out, q)) continue;
            if (first == NULL) first = found;
            d.copies_differ |= memcmp(first, found, sizeof *found) != 0;
            d.output = fmax(d.output, isnan(*found) ? INFINITY : fabs(*found - w->output[i]));
        }
    }
    d.output /= largest;
    largest = 0;
    for (int64_t i = 0; i < n_weights; i++) {
        double sum = 0;

        for (int32_t q = 0; q < n_ranks; q++) sum += mgn_scene_element(w->gradients[q], i, w->scene.dtype);
        largest = fmax(largest, fabs(w->gradient[i]));
        d.gradient = fmax(d.gradient, isnan(sum) ? INFINITY : fabs(sum - w->gradient[i]));
    }
    d.gradient /= largest;
    for (int32_t q = 0; q < n_ranks; q++) loss += w->losses[q];
    d.loss = fabs(loss - w->loss) / fabs(w->loss);
    return d;
}

/* Compute the results on one rank. */
static void world_init(struct world *w, graft_context *context, const struct oracle_mgn *what, graft_dtype dtype)
{
    const struct gr_team  team = { .threads = 1 };
    struct mgn_scene_loss loss = { .scene = &w->scene };
    graft_error           error = GRAFT_INIT(graft_error);
    const int64_t         n = NODES * what->n_out;
    void                 *output, *gradient;
    int32_t               rc;

    memset(w, 0, sizeof *w);
    rc = mgn_scene_init(&w->scene, context, what, NODES, MOST, 0, dtype, &error);
    output = calloc((size_t)n, sizeof(double));
    gradient = calloc((size_t)w->scene.shape.n_weights, sizeof(double));
    if (rc == GRAFT_OK) rc = mgn_scene_forward(&w->scene, 1, output, &error);
    if (rc == GRAFT_OK) rc = gr_mgn_reserve_backward(w->scene.mgn, &error);
    if (rc == GRAFT_OK)
        rc = gr_mgn_backward(w->scene.mgn, w->scene.own_weights, w->scene.own_nodes, w->scene.own_edges, 1, 5,
                             mgn_scene_take_loss, &loss, gradient, team, &error);
    if (rc < 0) printf("Bail out! %s\n", error.message), exit(2);
    w->loss = loss.value;
    w->output = calloc((size_t)n, sizeof(double));
    w->gradient = calloc((size_t)w->scene.shape.n_weights, sizeof(double));
    for (int64_t i = 0; i < n; i++) w->output[i] = mgn_scene_element(output, i, dtype);
    for (int64_t i = 0; i < w->scene.shape.n_weights; i++) w->gradient[i] = mgn_scene_element(gradient, i, dtype);
    for (int q = 0; q < RANKS_MOST; q++) w->gradients[q] = calloc((size_t)w->scene.shape.n_weights, sizeof(double));
    free(output);
    free(gradient);
}

static void world_fini(struct world *w)
{
    mgn_scene_fini(&w->scene);
    free(w->output);
    free(w->gradient);
    for (int q = 0; q < RANKS_MOST; q++) free(w->gradients[q]);
}

static struct distance run_world(struct world *w, int32_t n_ranks)
{
    static struct ranks ranks;
    const char         *fault;

    ranks_init(&ranks, n_ranks, 20, mgn_body, w);
    ranks_run(&ranks);
    fault = ranks_fini_well(&ranks);
    if (fault == NULL) return compare_ranks(w, n_ranks);
    diag("%s", fault);
    return (struct distance){ INFINITY, INFINITY, INFINITY, 1 };
}

static void test_partitions(graft_context *context, const struct oracle_mgn *what, graft_dtype dtype, const char *name)
{
    static const int32_t counts[] = { 1, 2, 3, 4, 8 };
    const size_t         n_counts = effort_fewer() > 1 ? 3 : 5;
    const int            is_wide = dtype == GRAFT_F64;
    static struct world  w;

    world_init(&w, context, what, dtype);
    for (int form = 0; form < 4; form++) {
        struct distance worst = { 0 };

        w.kind = form & 1 ? GRAFT_MESH_SHARED : GRAFT_MESH_GHOSTS;
        w.in_blocks = form >> 1;
        for (size_t i = 0; i < n_counts; i++) {
            const struct distance d = run_world(&w, counts[i]);

            worst.output = fmax(worst.output, d.output);
            worst.gradient = fmax(worst.gradient, d.gradient);
            worst.loss = fmax(worst.loss, d.loss);
            worst.copies_differ |= d.copies_differ;
        }
        ok(worst.output < (is_wide ? 1e-12 : 1e-6) && worst.loss < (is_wide ? 1e-12 : 1e-6) &&
               worst.gradient < (is_wide ? 1e-10 : 1e-5) && !worst.copies_differ,
           "%s, %s, %s: output within %.1e, loss %.1e, gradient %.1e of one rank; copies of shared "
           "nodes are%s bitwise identical",
           name, w.kind == GRAFT_MESH_SHARED ? "shared nodes" : "ghosts", w.in_blocks ? "blocks" : "hash", worst.output,
           worst.loss, worst.gradient, worst.copies_differ ? " NOT" : "");
    }
    world_fini(&w);
}

/* Quantized rows of ghosts must have fewer bytes and be near the exact ones. Exact ones are sent raw, and so are sums
 * of shared nodes. */
static void test_mgn_codec(graft_context *context, graft_dtype dtype)
{
    const struct oracle_mgn what = {
        .width = 32, .layers = 3, .linear = 2, .has_norm = 1, .n_node_in = 3, .n_edge_in = 3, .n_out = 2
    };
    static struct world w;
    struct distance     d;
    int64_t             raw = 0, coded = 0;

    world_init(&w, context, &what, dtype);
    w.kind = GRAFT_MESH_GHOSTS;
    w.codec = "q8";
    w.exact = 1;
    d = run_world(&w, 4);
    for (int q = 0; q < 4; q++) raw += w.bytes_sent[q];
    ok(d.output < 1e-6 && d.gradient < 1e-5,
       "codec q8 with exact passes: output within %.1e, gradient %.1e of one rank", d.output, d.gradient);
    w.exact = 0;
    d = run_world(&w, 4);
    for (int q = 0; q < 4; q++) coded += w.bytes_sent[q];
    ok(d.output > 0 && d.output < 0.05 && d.gradient < 0.2 && coded * 3 <= raw + raw / 8,
       "codec q8: output within %.1e, gradient %.1e of one rank, %lld bytes instead of %lld", d.output, d.gradient,
       (long long)coded, (long long)raw);
    w.kind = GRAFT_MESH_SHARED;
    d = run_world(&w, 4);
    ok(d.output < 1e-6 && !d.copies_differ, "codec q8: sums of shared nodes are sent unquantized");
    world_fini(&w);
}

/* Whether a dense module computes equal rows of A differently in different places of a block. That depends on the
 * library, the processor and the shape. */
static int rows_differ(const struct gr_module *module, int64_t in, int64_t out, int adds)
{
    const size_t rows = GR_MGN_ROWS;
    graft_error  error = GRAFT_INIT(graft_error);
    float       *a = aligned_alloc(64, rows * (size_t)in * 64), *b = aligned_alloc(64, (size_t)(out * in) * 64);
    float       *c = aligned_alloc(64, rows * (size_t)out * 64);
    graft_gemm   gemm = { .size = sizeof gemm, .threads = 1, .transpose_b = 1, .m = GR_MGN_ROWS, .n = out, .k = in };
    int          differ = 0;

    for (int64_t i = 0; i < GR_MGN_ROWS * in; i++) a[i] = 1 + (float)(i % in * 7919 % 101) / 303;
    for (int64_t i = 0; i < out * in; i++) b[i] = 1 + (float)(i * 6151 % 997) / 2991;
    gemm.alpha = 1;
    gemm.a = a;
    gemm.b = b;
    gemm.lda = gemm.ldb = in;
    gemm.c = c;
    gemm.ldc = out;
    for (gemm.beta = 0; gemm.beta <= (float)adds; gemm.beta++)
        if (module->table->dense->gemm(module->state, &gemm, &error) != GRAFT_OK) abort();
    for (int64_t row = 1; row < gemm.m; row++) differ |= memcmp(c, c + row * out, sizeof *c * (size_t)out) != 0;
    free(a);
    free(b);
    free(c);
    return differ;
}

/* Whether that happens in a product of a network of this width. */
static int is_uneven(graft_context *context, const char *path, const struct oracle_mgn *what)
{
    graft_error             error = GRAFT_INIT(graft_error);
    const struct gr_module *module = NULL;

    if (gr_module_load(context, path, &error) < 0) abort();
    for (int32_t i = 0; i < context->modules.count; i++)
        if (context->modules.at[i].path != NULL && strcmp(context->modules.at[i].path, path) == 0)
            module = &context->modules.at[i];
    return rows_differ(module, what->n_node_in, what->width, 0) || rows_differ(module, what->width, what->width, 1) ||
           rows_differ(module, what->width, what->n_out, 0);
}

/* With dense modules copies of shared nodes must be bitwise identical. A module whose rows depend on their place must
 * be replaced, and others must not. */
static void test_mgn_modules(graft_context *context, int64_t width, int count, char **files)
{
    const struct oracle_mgn what = {
        .width = width, .layers = 2, .linear = 2, .has_norm = 1, .n_node_in = 3, .n_edge_in = 3, .n_out = 2
    };
    static struct world w;

    world_init(&w, context, &what, GRAFT_F32);
    w.kind = GRAFT_MESH_SHARED;
    for (int i = 0; i < count; i++) {
        char           *path = i == 0 ? NULL : realpath(files[i], NULL);
        struct distance d;
        const int       uneven = i == 0 || is_uneven(context, path, &what);
        int             replaced = 0;

        w.module = i == 0 ? "uneven" : path;
        d = run_world(&w, 3);
        for (int q = 0; q < 3; q++) replaced += w.loops_multiply[q];
        ok(d.output < 1e-5 && !d.copies_differ && replaced == (uneven ? 3 : 0),
           "width %lld, %s module %s: copies are bitwise identical, output within %.1e; plain loops on %d ranks",
           (long long)width, uneven ? "uneven" : "even", w.module, d.output, replaced);
        free(path);
    }
    world_fini(&w);
}

/* A module fails in one of many products, and all ranks must return one error. */
static void test_module_fails(graft_context *context)
{
    const struct oracle_mgn what = {
        .width = 8, .layers = 2, .linear = 2, .has_norm = 1, .n_node_in = 3, .n_edge_in = 3, .n_out = 2
    };
    static struct world w;
    int                 runs = 0, good = 1;

    world_init(&w, context, &what, GRAFT_F32);
    w.kind = GRAFT_MESH_GHOSTS;
    w.module = "uneven";
    for (int64_t after = 0; good && runs < 400; after += 1 + after / 3, runs++) {
        static struct ranks ranks;
        const char         *fault;
        int                 failed = 0;

        ranks_init(&ranks, 3, 20, mgn_body, &w);
        atomic_store(&fails_after, after);
        ranks_run(&ranks);
        for (int32_t q = 0; q < 3; q++) failed += ranks.at[q].rc == GRAFT_ERR_PEER;
        for (int32_t q = 0; q < 3; q++)
            good &= failed == 0 || strstr(ranks.at[q].error.message, "out of order") != NULL;
        good &= failed == 0 || failed == 3;
        if (!good) diag("after %lld products: %s", (long long)after, ranks.at[0].error.message);
        fault = ranks_fini(&ranks);
        if (fault != NULL) diag("%s", fault);
        good &= fault == NULL;
        if (atomic_exchange(&fails_after, -1) >= 0) break;
    }
    ok(good && runs > 10, "a module fails in one of its products, in %d runs: all ranks return its error", runs);
    world_fini(&w);
}

/* Each allocation of one rank fails. All ranks must return the same status, which is OK where memory can be saved, and
 * nothing may leak. */
static void test_mgn_memory(graft_context *context, graft_mesh_kind kind)
{
    const struct oracle_mgn what = {
        .width = 5, .layers = 1, .linear = 2, .has_norm = 1, .n_node_in = 3, .n_edge_in = 3, .n_out = 2
    };
    static struct world w;
    int                 failed = 0, runs = 0, good = 1, ended = 0;

    world_init(&w, context, &what, GRAFT_F32);
    w.kind = kind;
    for (int64_t at = 0; good && !ended && runs < 400; at++, runs++) {
        static struct ranks ranks;
        const char         *fault;

        ranks_init(&ranks, 2, 20, mgn_body, &w);
        ranks.fail_rank = 1;
        w.fail_at = at;
        ranks_run(&ranks);
        ended = atomic_load(&ranks.fail_at) >= 0;
        for (int32_t q = 0; q < 2; q++) good &= ranks.at[q].rc == (ended ? GRAFT_OK : ranks.at[0].rc);
        failed += ranks.at[1].rc < 0;
        if (!good)
            diag("allocation %lld: %d %d %s", (long long)at, ranks.at[0].rc, ranks.at[1].rc, ranks.at[1].error.message);
        fault = ranks_fini(&ranks);
        if (fault != NULL) diag("allocation %lld: %s", (long long)at, fault);
        good &= fault == NULL;
    }
    ok(good && ended && failed > 10 && failed > runs * 3 / 4,
       "%s: of %d allocations of a rank %d fail, and all ranks report it",
       kind == GRAFT_MESH_SHARED ? "shared nodes" : "ghosts", runs - 1, failed);
    world_fini(&w);
}

int main(int argc, char **argv)
{
    const struct oracle_mgn nekrs = { .width = 9,
                                      .layers = 3,
                                      .linear = 4,
                                      .is_elu = 1,
                                      .has_norm = 1,
                                      .sum = 1,
                                      .is_encoded = 1,
                                      .n_node_in = 3,
                                      .n_edge_in = 4,
                                      .n_out = 3 };
    const struct oracle_mgn deepmind = {
        .width = 16, .layers = 3, .linear = 3, .has_norm = 1, .n_node_in = 5, .n_edge_in = 3, .n_out = 2
    };
    const struct oracle_mgn old = {
        .width = 7, .layers = 2, .linear = 1, .sum = 2, .n_node_in = 2, .n_edge_in = 3, .n_out = 1
    };
    graft_context *context = NULL;
    graft_error    error = GRAFT_INIT(graft_error);

    if (gr_context_create(NULL, &gr_all_options, &context, &error) < 0 ||
        gr_module_register(context, &gr_dense_reference, &error) < 0 ||
        gr_option_set(context, "dense.module", "reference", &error) < 0)
        return 2;
    test_partitions(context, &nekrs, GRAFT_F64, "double, nekRS-ML");
    test_partitions(context, &nekrs, GRAFT_F32, "float, nekRS-ML");
    test_partitions(context, &deepmind, GRAFT_F64, "double, MeshGraphNets");
    test_partitions(context, &deepmind, GRAFT_F32, "float, MeshGraphNets");
    test_partitions(context, &old, GRAFT_F64, "double, sums of old edges");
    test_mgn_codec(context, GRAFT_F32);
    test_mgn_codec(context, GRAFT_F64);
    test_mgn_modules(context, 24, argc, argv);
    test_mgn_modules(context, 64, argc, argv);
    test_module_fails(context);
    test_mgn_memory(context, GRAFT_MESH_GHOSTS);
    test_mgn_memory(context, GRAFT_MESH_SHARED);
    gr_context_destroy(context);
    return done();
}
