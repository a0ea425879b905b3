/* Checks networks of kind mgn on one rank: number of weights, forward pass against the oracle, gradients against finite
 * differences, threads, and memory. The arguments are files of dense modules.
 * SPDX-License-Identifier: Apache-2.0 */
#include "entry/entry.h"
#include "harness/mgn_scene.h"
#include "harness/tap.h"

#include <math.h>
#include <stdatomic.h>

/* A host that counts allocations and lets one of them fail. */
static _Atomic int64_t allocations, fail_at = -1, live_bytes;

static void *scene_allocate(void *self, uint64_t bytes, uint64_t alignment)
{
    (void)self;
    if (atomic_load(&fail_at) >= 0 && atomic_fetch_sub(&fail_at, 1) == 0) return NULL;
    atomic_fetch_add(&allocations, 1);
    atomic_fetch_add(&live_bytes, (int64_t)bytes);
    return aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
}

static void scene_deallocate(void *self, void *memory, uint64_t bytes, uint64_t alignment)
{
    (void)self, (void)alignment;
    atomic_fetch_sub(&live_bytes, (int64_t)bytes);
    free(memory);
}

static const graft_api *api;

static void test_counts(void)
{
    static const struct {
        struct gr_mgn_options options;
        int64_t               nodes, edges, out, count;
    } cases[] = {
        { { .width = 8, .layers = 4, .linear = 4, .has_norm = 1 }, 3, 4, 3, 3979 },
        { { .width = 32, .layers = 4, .linear = 7, .has_norm = 1 }, 3, 4, 3, 91459 },
        { { .width = 128, .layers = 15, .linear = 3, .has_norm = 1 }, 11, 3, 2, 2332930 },
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct gr_mgn_shape shape;
        graft_error         error = GRAFT_INIT(graft_error);
        const int32_t       rc = gr_mgn_shape_init(api->context, &cases[i].options, cases[i].nodes, cases[i].edges,
                                                   cases[i].out, &shape, &error);

        ok(rc == GRAFT_OK && shape.n_weights == cases[i].count, "the network has %lld weights",
           (long long)shape.n_weights);
        gr_mgn_shape_fini(api->context, &shape);
    }
}

/* The largest error of a forward pass, relative to the largest output. */
static double forward_error(struct mgn_scene *s)
{
    const int64_t n = s->what.n_nodes * s->what.n_out;
    double       *expected = malloc((size_t)(n + 1) * sizeof *expected), worst = 0, largest = 0;
    void         *found = malloc((size_t)(n + 1) * sizeof(double));
    graft_error   error = GRAFT_INIT(graft_error);

    oracle_mgn(&s->what, s->weights, s->nodes, s->edges, expected);
    if (mgn_scene_forward(s, 2, found, &error) < 0) {
        diag("%s", error.message);
        worst = INFINITY;
    }
    for (int64_t i = 0; i < n; i++) {
        worst = fmax(worst, fabs(mgn_scene_element(found, i, s->dtype) - expected[i]));
        largest = fmax(largest, fabs(expected[i]));
        if (isnan(mgn_scene_element(found, i, s->dtype))) worst = INFINITY;
    }
    free(expected);
    free(found);
    return worst / fmax(largest, 1e-3);
}

static void test_mgn_forward(graft_dtype dtype, const char *module, int step)
{
    double worst = 0;
    int    worst_form = 0;

    for (int form = 0; form < 48; form += step) {
        const struct oracle_mgn what = { .width = form % 5 == 0 ? 32 : 13 + form % 7,
                                         .layers = form % 3 + 1,
                                         .linear = form % 4 + 1,
                                         .is_elu = form & 1,
                                         .has_norm = form >> 1 & 1,
                                         .is_encoded = form >> 2 & 1,
                                         .sum = form / 8 % 3,
                                         .n_node_in = 5,
                                         .n_edge_in = 3,
                                         .n_out = form % 3 + 1 };
        struct mgn_scene        s;
        graft_error             error = GRAFT_INIT(graft_error);
        double                  far = INFINITY;

        if (mgn_scene_init(&s, api->context, &what, 60, form % 4 == 0 ? 2 * GR_MGN_ROWS + 18 : 7, form % 2, dtype,
                           &error) < 0)
            diag("%s", error.message);
        else far = forward_error(&s);
        if (far > worst) worst_form = form;
        worst = fmax(worst, far);
        mgn_scene_fini(&s);
    }
    ok(worst < (dtype == GRAFT_F64 ? 1e-12 : 1e-5),
       "the forward pass, %s, module %s, is within %.1e of the oracle (form %d)",
       dtype == GRAFT_F64 ? "double" : "float", module, worst, worst_form);
}

/* Networks without nodes, edges or layers. */
static void test_empty(void)
{
    for (int form = 0; form < 3; form++) {
        const struct oracle_mgn what = { .width = 7,
                                         .layers = form == 2 ? 0 : 2,
                                         .linear = 2,
                                         .has_norm = 1,
                                         .n_node_in = 2,
                                         .n_edge_in = 2,
                                         .n_out = 2 };
        struct mgn_scene        s;
        graft_error             error = GRAFT_INIT(graft_error);
        const int64_t           n = form == 0 ? 0 : form == 1 ? 1 : 30;

        ok(mgn_scene_init(&s, api->context, &what, n, 0, 0, GRAFT_F64, &error) == GRAFT_OK && forward_error(&s) < 1e-12,
           "%lld nodes, %lld edges, %d layers", (long long)n, (long long)s.mesh.n_edges, what.layers);
        mgn_scene_fini(&s);
    }
}

static void test_mgn_threads(graft_dtype dtype)
{
    const struct oracle_mgn what = {
        .width = 24, .layers = 2, .linear = 3, .is_elu = 1, .has_norm = 1, .n_node_in = 5, .n_edge_in = 3, .n_out = 2
    };
    const size_t     bytes = 6 * GR_MGN_ROWS * 2 * (dtype == GRAFT_F64 ? sizeof(double) : sizeof(float));
    struct mgn_scene s;
    graft_error      error = GRAFT_INIT(graft_error);
    char            *first = calloc(bytes, 1), *again = malloc(bytes);
    int64_t          before;
    int              same = 1;

    ok_or(mgn_scene_init(&s, api->context, &what, 6 * GR_MGN_ROWS, 40, 1, dtype, &error) == GRAFT_OK &&
              mgn_scene_forward(&s, 1, first, &error) == GRAFT_OK,
          error.message, "a pass on one thread");
    before = atomic_load(&allocations);
    for (int threads = 1; threads <= 3; threads++) {
        memset(again, 1, bytes);
        same &= mgn_scene_forward(&s, threads, again, &error) == GRAFT_OK && memcmp(first, again, bytes) == 0;
    }
    ok(same, "the forward pass is bitwise identical with 1, 2 and 3 threads");
    ok(atomic_load(&allocations) == before, "the forward pass allocates no memory");
    mgn_scene_fini(&s);
    free(first);
    free(again);
}

/* The loss with other weights. */
static double loss_at(struct mgn_scene *s, const double *weights)
{
    void *kept = s->own_weights, *output = calloc((size_t)(s->what.n_nodes * s->what.n_out), sizeof(double));
    void *gradient = calloc((size_t)(s->what.n_nodes * s->what.n_out), sizeof(double));
    struct mgn_scene_loss loss = { .scene = s };
    graft_error           error = GRAFT_INIT(graft_error);

    s->own_weights = mgn_scene_convert(weights, oracle_mgn_weights(&s->what), s->dtype);
    if (mgn_scene_forward(s, 2, output, &error) < 0) diag("%s", error.message);
    mgn_scene_take_loss(&loss, output, gradient, &error);
    free(s->own_weights);
    s->own_weights = kept;
    free(output);
    free(gradient);
    return loss.value;
}

/* The difference between the slope along `direction` and a central difference, relative to the sum of magnitudes of its
 * parts. */
static double slope_error(struct mgn_scene *s, const double *gradient, const double *direction)
{
    const int64_t n = oracle_mgn_weights(&s->what);
    /* A larger step could cross a point where the derivative of ReLU jumps. */
    const double  step = s->what.is_elu || s->what.linear == 1 ? 1e-5 : 1e-6;
    double       *weights = calloc((size_t)n, sizeof *weights), slope = 0, size = 0, up;

    for (int64_t i = 0; i < n; i++) {
        weights[i] = s->weights[i] + step * direction[i];
        slope += gradient[i] * direction[i];
        size += fabs(gradient[i] * direction[i]);
    }
    up = loss_at(s, weights);
    for (int64_t i = 0; i < n; i++) weights[i] = s->weights[i] - step * direction[i];
    up -= loss_at(s, weights);
    free(weights);
    return fabs(up / (2 * step) - slope) / (size + 1e-3 * fabs(up) + 1e-2);
}

/* The largest error along some single weights, and along random directions. */
static double gradient_error(struct mgn_scene *s)
{
    const int64_t         n = oracle_mgn_weights(&s->what);
    const struct gr_team  team = { .threads = 2 };
    double               *gradient = malloc((size_t)n * sizeof *gradient), worst = 0;
    struct mgn_scene_loss loss = { .scene = s };
    graft_error           error = GRAFT_INIT(graft_error);
    uint32_t              state = 99;

    if (gr_mgn_reserve_backward(s->mgn, &error) < 0 ||
        (s->what.layers == 2 && gr_mgn_reserve_products(s->mgn, &error) < 0) ||
        gr_mgn_backward(s->mgn, s->own_weights, s->own_nodes, s->own_edges, 1, 5, mgn_scene_take_loss, &loss, gradient,
                        team, &error) < 0) {
        diag("%s", error.message);
        return INFINITY;
    }
    for (int64_t i = 0; i < n; i += i < 40 ? 13 : n / 17 + 1) {
        double *direction = calloc((size_t)n, sizeof *direction);

        direction[i] = 1;
        worst = fmax(worst, slope_error(s, gradient, direction));
        free(direction);
    }
    for (int i = 0; i < 2; i++) {
        double *direction = mgn_scene_numbers(n, 1, &state);

        worst = fmax(worst, slope_error(s, gradient, direction));
        free(direction);
    }
    free(gradient);
    return worst;
}

static void test_mgn_gradient(void)
{
    double worst = 0;
    int    worst_form = 0;

    for (int form = 0; form < 48; form++) {
        const struct oracle_mgn what = { .width = 5 + form % 7,
                                         .layers = form % 3,
                                         .linear = form % 4 + 1,
                                         .is_elu = form & 1,
                                         .has_norm = form >> 1 & 1,
                                         .is_encoded = form >> 2 & 1,
                                         .sum = form / 8 % 3,
                                         .n_node_in = 3,
                                         .n_edge_in = 2,
                                         .n_out = form % 3 + 1 };
        struct mgn_scene        s;
        graft_error             error = GRAFT_INIT(graft_error);
        double                  far = INFINITY;

        if (mgn_scene_init(&s, api->context, &what, 23, form % 8 == 1 ? GR_MGN_ROWS + 14 : 7, form % 2, GRAFT_F64,
                           &error) < 0)
            diag("%s", error.message);
        else far = gradient_error(&s);
        if (far > worst) worst_form = form;
        worst = fmax(worst, far);
        mgn_scene_fini(&s);
    }
    ok(worst < 1e-6, "the gradient in double is within %.1e of finite differences (form %d)", worst, worst_form);
}

/* The gradient in float must be near that in double, and bitwise identical for any number of threads. */
static void test_gradient_bits(graft_dtype dtype)
{
    const struct oracle_mgn what = {
        .width = 24, .layers = 2, .linear = 3, .is_elu = 1, .has_norm = 1, .n_node_in = 5, .n_edge_in = 3, .n_out = 2
    };
    const int64_t         n = oracle_mgn_weights(&what);
    double               *first = calloc((size_t)n, sizeof *first), *again = calloc((size_t)n, sizeof *again);
    struct mgn_scene      s;
    struct mgn_scene_loss loss = { .scene = &s };
    graft_error           error = GRAFT_INIT(graft_error);
    int                   same = 1;

    if (mgn_scene_init(&s, api->context, &what, 4 * GR_MGN_ROWS, 40, 1, dtype, &error) < 0) diag("%s", error.message);
    if (gr_mgn_reserve_backward(s.mgn, &error) < 0) diag("%s", error.message);
    for (int turn = 0; turn < 5; turn++) {
        const struct gr_team team = { .threads = turn % 3 + 1 };
        void                *gradient = turn == 0 ? first : again;

        if (turn == 3 && gr_mgn_reserve_products(s.mgn, &error) < 0) diag("%s", error.message);

        same &= gr_mgn_backward(s.mgn, s.own_weights, s.own_nodes, s.own_edges, 1, 5, mgn_scene_take_loss, &loss,
                                gradient, team, &error) == GRAFT_OK;
        same &= turn == 0 || memcmp(first, again, (size_t)n * sizeof *first) == 0;
    }
    ok(same,
       "the gradient, %s, is bitwise identical with 1, 2 and 3 threads, and with products that "
       "are kept",
       dtype == GRAFT_F64 ? "double" : "float");
    mgn_scene_fini(&s);
    free(first);
    free(again);
}

static int gradient_works(struct mgn_scene *s)
{
    const struct gr_team  team = { .threads = 2 };
    struct mgn_scene_loss loss = { .scene = s };
    void                 *gradient = calloc((size_t)s->shape.n_weights, sizeof(double));
    graft_error           error = GRAFT_INIT(graft_error);
    int32_t               rc = gr_mgn_reserve_backward(s->mgn, &error);

    if (rc == GRAFT_OK)
        rc = gr_mgn_backward(s->mgn, s->own_weights, s->own_nodes, s->own_edges, 1, 5, mgn_scene_take_loss, &loss,
                             gradient, team, &error);
    free(gradient);
    return rc == GRAFT_OK;
}

/* Each allocation fails once, and nothing may leak. */
static void test_mgn_allocations(void)
{
    const struct oracle_mgn what = {
        .width = 5, .layers = 2, .linear = 2, .has_norm = 1, .n_node_in = 3, .n_edge_in = 3, .n_out = 2
    };
    const int64_t before = atomic_load(&live_bytes);
    int           good = 1, failures = 0, ended = 0;

    for (int64_t at = 0; !ended && good && at < 300; at++) {
        struct mgn_scene s;
        graft_error      error = GRAFT_INIT(graft_error);
        int32_t          rc;

        atomic_store(&fail_at, at);
        rc = mgn_scene_init(&s, api->context, &what, 23, 9, 0, GRAFT_F32, &error);
        if (rc == GRAFT_OK) rc = gr_mgn_reserve_backward(s.mgn, &error);
        if (rc == GRAFT_OK) rc = gr_mgn_reserve_products(s.mgn, &error);
        ended = atomic_exchange(&fail_at, -1) >= 0;
        good &= rc == (ended ? GRAFT_OK : GRAFT_ERR_NOMEM);
        /* A network that was made can still be used. */
        if (rc < 0 && s.mgn != NULL) good &= forward_error(&s) < 1e-5 && gradient_works(&s);
        if (!good) diag("allocation %lld: %d %s", (long long)at, rc, error.message);
        failures += rc < 0;
        mgn_scene_fini(&s);
        good &= atomic_load(&live_bytes) == before;
    }
    ok(good && ended && failures > 20, "each of %d allocations fails in turn, and no memory is left", failures);
}

int main(int argc, char **argv)
{
    static const char *const modules[] = { "reference", "auto", "cblas", "onednn" };
    graft_host               host = GRAFT_INIT(graft_host);
    graft_error              error = GRAFT_INIT(graft_error);

    host.allocate = scene_allocate;
    host.deallocate = scene_deallocate;
    if (graft_open(GRAFT_ABI_VERSION, GRAFT_ABI_VERSION, &host, &api, &error) < 0) return 2;
    for (int i = 1; i < argc; i++)
        if (api->load_module(api->context, argv[i], &error) < 0) diag("%s", error.message);
    api->set(api->context, "threads", "3", &error);
    test_counts();
    for (size_t i = 0; i < sizeof modules / sizeof *modules; i++) {
        if (api->set(api->context, "dense.module", modules[i], &error) < 0) continue;
        if (strcmp(modules[i], "auto") != 0 && gr_module_find(api->context, "dense", modules[i]) == NULL) continue;
        if (strcmp(modules[i], "onednn") != 0) test_mgn_forward(GRAFT_F64, modules[i], i == 0 ? 1 : 5);
        test_mgn_forward(GRAFT_F32, modules[i], i == 0 ? 1 : 5);
    }
    api->set(api->context, "dense.module", "auto", &error);
    api->set(api->context, "check", "full", &error);
    test_mgn_forward(GRAFT_F64, "auto, all products checked", 7);
    test_mgn_forward(GRAFT_F32, "auto, all products checked", 7);
    api->set(api->context, "check", "args", &error);
    test_empty();
    test_mgn_threads(GRAFT_F32);
    test_mgn_threads(GRAFT_F64);
    test_mgn_gradient();
    test_gradient_bits(GRAFT_F32);
    test_gradient_bits(GRAFT_F64);
    test_mgn_allocations();
    api->close(api->context);
    ok(atomic_load(&live_bytes) == 0, "all memory of the network is freed");
    return done();
}
