/* Checks graft_network.h in one process: numbers of weights, inference against the oracle, statistics, noise, AdamW
 * against plain loops, and ensembles.
 * SPDX-License-Identifier: Apache-2.0 */
#include "graft_load.h"
#include "harness/networks.h"
#include "harness/tap.h"
#include "oracle/oracle.h"
#include "oracle/oracle_mgn.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

#define SMALL "hidden=8 layers=3 mgn.linear=2"

static struct test_mesh    mesh;
static struct network_case scene;

/* The numbers of weights that papers give for their networks. */
static int32_t count_weights(struct host *host)
{
    static const struct {
        const char *settings;
        int32_t     dim, in, out, constant, predicts;
        int64_t     weights;
    } models[] = {
        { "hidden=8 mgn.linear=4 layers=4 mgn.edge_scale=longest", 3, 3, 3, 0, 1, 3979 },
        { "hidden=32 mgn.linear=7", 3, 3, 3, 0, 1, 91459 },
        { "hidden=128 mgn.linear=3 layers=15", 2, 2, 2, 9, 2, 2332930 },
    };
    const graft_mesh_api    *meshes = graft_interface(host->api, GRAFT_MESH_ID, sizeof *meshes);
    const graft_network_api *networks = graft_interface(host->api, GRAFT_NETWORK_ID, sizeof *networks);

    for (int k = 0; k < 3; k++) {
        double             x[6] = { 0, 0, 0, 1, 2, 3 }, types[18] = { 0 };
        int32_t            nodes[2] = { 0, 1 };
        graft_field        coordinates = GRAFT_INIT(graft_field), constant = GRAFT_INIT(graft_field);
        graft_mesh_args    args = GRAFT_INIT(graft_mesh_args);
        graft_network_args what = GRAFT_INIT(graft_network_args);
        graft_network_info info = GRAFT_INIT(graft_network_info);
        graft_mesh        *line = NULL;
        graft_network     *network = NULL;

        host_set_all(host->api, models[k].settings);
        coordinates.dtype = constant.dtype = GRAFT_F64;
        coordinates.n_rows = constant.n_rows = args.n_rows = 2;
        coordinates.n_columns = args.dim = models[k].dim;
        coordinates.data = x;
        args.kind = GRAFT_MESH_GHOSTS;
        args.coordinates = &coordinates;
        args.index_type = GRAFT_I32;
        args.n_cells = 1;
        args.cell_type = GRAFT_CELL_LINE;
        args.cell_nodes = nodes;
        what.predicts = models[k].predicts;
        what.n_in = models[k].in;
        what.n_out = models[k].out;
        constant.n_columns = 9;
        constant.data = types;
        what.constant = models[k].constant > 0 ? &constant : NULL;
        NETWORK_CHECK(meshes->create(host->api->context, NULL, &args, &line, &host->error) == GRAFT_OK);
        NETWORK_CHECK(networks->create(line, &what, &network, &host->error) == GRAFT_OK);
        NETWORK_CHECK(networks->info(network, &info, &host->error) == GRAFT_OK && info.n_weights == models[k].weights);
        meshes->destroy(line); /* the network keeps the mesh alive */
        networks->destroy(network);
    }
    return GRAFT_OK;
}

/* Mean and deviation of the columns of rows with weights, computed by plain loops. */
static void measure_plainly(const double *rows, int64_t n, int64_t columns, const double *weight, double *mean,
                            double *deviation)
{
    for (int64_t j = 0; j < columns; j++) {
        double w = 0, sum = 0, squares = 0;

        for (int64_t i = 0; i < n; i++) {
            w += weight != NULL ? weight[i] : 1;
            sum += (weight != NULL ? weight[i] : 1) * rows[i * columns + j];
        }
        mean[j] = sum / w;
        for (int64_t i = 0; i < n; i++)
            squares += (weight != NULL ? weight[i] : 1) * pow(rows[i * columns + j] - mean[j], 2);
        deviation[j] = fmax(sqrt(squares / w), 1e-8);
    }
}

/* The oracle for the options of a network, with the edges of the mesh as graft.draft.mesh has them. */
static struct oracle_mgn oracle_of(const struct host *host, const graft_mesh_view *view, int32_t *target)
{
    struct oracle_mgn o = { .width = 8, .layers = 3, .linear = 2 };
    graft_option      option = GRAFT_INIT(graft_option);

    for (int32_t k = 0; host->api->option_info(host->api->context, k, &option, NULL) == GRAFT_OK; k++) {
        if (strcmp(option.key, "activation") == 0) o.is_elu = strcmp(option.value, "elu") == 0;
        if (strcmp(option.key, "norm") == 0) o.has_norm = strcmp(option.value, "layer") == 0;
        if (strcmp(option.key, "mgn.edges") == 0) o.is_encoded = strcmp(option.value, "encoded") == 0;
        if (strcmp(option.key, "mgn.sum") == 0)
            o.sum = strcmp(option.value, "new") == 0 ? 1 : strcmp(option.value, "old") == 0 ? 2 : 0;
        if (strcmp(option.key, "mgn.linear") == 0) o.linear = atoi(option.value);
    }
    o.n_node_in = NETWORK_IN + NETWORK_CONSTANT;
    o.n_edge_in = view->dim + 1;
    o.n_out = NETWORK_OUT;
    o.n_nodes = view->n_nodes;
    o.n_edges = view->n_edges;
    o.source = view->source;
    for (int64_t i = 0; i < view->n_nodes; i++)
        for (int64_t e = view->row_ptr[i]; e < view->row_ptr[i + 1]; e++) target[e] = (int32_t)i;
    o.target = target;
    return o;
}

/* The node of a view whose row is the one that the part has there. */
static int32_t node_at(const struct network_rank *n, const graft_mesh_view *view, int64_t i)
{
    return n->part.node[view->row_of[i]];
}

/* Inputs and standardised outputs at time t, computed by plain loops and the oracle. */
static void predict_plainly(struct host *host, const struct network_rank *n, const graft_mesh_view *view, int longest,
                            int residual, double *result)
{
    const int64_t nodes = view->n_nodes, edges = view->n_edges, dim = view->dim;
    const int     changes = scene.predicts == GRAFT_PREDICTS_CHANGE;
    double       *in = oracle_new(nodes * NETWORK_IN, sizeof *in), *out = oracle_new(nodes * NETWORK_OUT, sizeof *out);
    double       *x = oracle_new(nodes * 4, sizeof *x), *r = oracle_new(edges * 4, sizeof *r), mean[4], deviation[4];
    double       *free_weight = oracle_new(nodes, sizeof *free_weight), *weights = oracle_new(100000, sizeof *weights);
    double        far = 0, out_mean[4], out_deviation[4];
    int32_t      *target = oracle_new(edges, sizeof *target);
    struct oracle_mgn o = oracle_of(host, view, target);

    /* Statistics are those of the one pair that was trained with, at times 0 and 1. */
    for (int64_t i = 0; i < nodes; i++) {
        free_weight[i] = network_is_free(&scene, node_at(n, view, i));
        for (int j = 0; j < NETWORK_IN; j++) in[i * NETWORK_IN + j] = network_value(&mesh, node_at(n, view, i), j, 0);
        for (int j = 0; j < NETWORK_OUT; j++)
            out[i * NETWORK_OUT + j] =
                network_value(&mesh, node_at(n, view, i), j, 1) - (changes ? in[i * NETWORK_IN + j] : 0);
    }
    measure_plainly(in, nodes, NETWORK_IN, NULL, mean, deviation);
    measure_plainly(out, nodes, NETWORK_OUT, free_weight, out_mean, out_deviation);
    for (int64_t i = 0; i < nodes; i++) {
        for (int j = 0; j < NETWORK_IN; j++)
            x[i * 4 + j] = (network_value(&mesh, node_at(n, view, i), j, 0.5) - mean[j]) / deviation[j];
        x[i * 4 + 3] = free_weight[i] > 0 ? 0.25 : -1;
    }
    for (int64_t e = 0, i = 0; e < edges; e++) {
        double squares = 0;

        while (e == view->row_ptr[i + 1]) i++;
        for (int64_t c = 0; c < dim; c++) {
            const double apart = view->position[view->source[e] * dim + c] - view->position[i * dim + c];

            r[e * (dim + 1) + c] = mesh.period[c] > 0 ? remainder(apart, mesh.period[c]) : apart;
            squares += pow(r[e * (dim + 1) + c], 2);
        }
        r[e * (dim + 1) + dim] = sqrt(squares);
        far = fmax(far, sqrt(squares));
    }
    measure_plainly(r, edges, dim + 1, NULL, mean, deviation);
    for (int64_t e = 0; e < edges * (dim + 1); e++)
        r[e] = longest ? r[e] / far : (r[e] - mean[e % (dim + 1)]) / deviation[e % (dim + 1)];
    network_pull_all(n, "", weights);
    oracle_mgn(&o, weights, x, r, result);
    for (int64_t i = 0; i < nodes; i++) {
        for (int j = 0; j < NETWORK_OUT; j++) {
            const double now = network_value(&mesh, node_at(n, view, i), j, 0.5);
            double      *y = &result[i * NETWORK_OUT + j];

            *y = (*y + (residual ? x[i * 4 + j] : 0)) * out_deviation[j] + out_mean[j] + (changes ? now : 0);
            if (free_weight[i] == 0) *y = changes ? now : (double)NAN; /* NaN marks an element that is not written */
        }
    }
    free(in), free(out), free(x), free(r), free(free_weight), free(weights), free(target);
}

static int32_t compare_with_oracle(struct host *host, struct network_rank *n)
{
    graft_mesh_view    view = GRAFT_INIT(graft_mesh_view);
    graft_network_step step = GRAFT_INIT(graft_network_step);
    graft_field        input = network_state(n, NETWORK_IN, 0.5), output = network_field(n, NETWORK_OUT);
    graft_option       option = GRAFT_INIT(graft_option);
    double            *expected, worst = 0;
    int                longest = 0, residual = 0;

    for (int32_t k = 0; host->api->option_info(host->api->context, k, &option, NULL) == GRAFT_OK; k++) {
        if (strcmp(option.key, "mgn.edge_scale") == 0) longest = strcmp(option.value, "longest") == 0;
        if (strcmp(option.key, "residual") == 0) residual = strcmp(option.value, "yes") == 0;
    }
    NETWORK_CHECK(n->meshes->view(n->mesh, &view, &host->error) == GRAFT_OK);
    NETWORK_CHECK(network_train(host, n, 0, 1, &step) == GRAFT_OK && step.step == 1);
    for (int64_t i = 0; i < view.n_nodes; i++)
        for (int j = 0; j < NETWORK_OUT; j++) network_field_put(&output, view.row_of[i], j, (double)NAN);
    NETWORK_CHECK(n->networks->begin(n->network, &input, &host->error) == GRAFT_OK);
    NETWORK_CHECK(n->networks->end(n->network, &output, &host->error) == GRAFT_OK);
    expected = oracle_new(view.n_nodes * NETWORK_OUT, sizeof *expected);
    predict_plainly(host, n, &view, longest, residual, expected);
    for (int64_t i = 0; i < view.n_nodes; i++)
        for (int j = 0; j < NETWORK_OUT; j++) {
            const double y = network_field_at(&output, view.row_of[i], j), e = expected[i * NETWORK_OUT + j];

            worst = fmax(worst, isnan(y) && isnan(e) ? 0 : isnan(y) != isnan(e) ? INFINITY : fabs(y - e));
        }
    free(expected), free(input.data), free(output.data);
    NETWORK_CHECK(worst < (scene.dtype == GRAFT_F64 ? 1e-9 : 2e-5));
    return GRAFT_OK;
}

/* The learning rate of a step; steps count from 0. */
static double rate_of(int64_t t)
{
    if (t < 4) return 0.01 * (double)(t + 1) / 4;
    return t >= 12 ? 0.001 : 0.001 + 0.0045 * (1 + cos(acos(-1) * (double)(t - 4) / 8));
}

/* Follow steps of AdamW in plain loops, with the gradients that gradient() gives. Statistics stay after the first
 * step. */
static int32_t compare_adamw(struct host *host, struct network_rank *n)
{
    enum { MOST = 20000 };
    graft_network_step step = GRAFT_INIT(graft_network_step);
    graft_network_info info = GRAFT_INIT(graft_network_info);
    graft_field        input = network_state(n, NETWORK_IN, 0), target = network_state(n, NETWORK_OUT, 1);
    graft_pair         pair = GRAFT_INIT(graft_pair);
    double *g = oracle_new(MOST, sizeof *g), *w = oracle_new(MOST, sizeof *w), *m = oracle_new(MOST, sizeof *m);
    double *v = oracle_new(MOST, sizeof *v), *now = oracle_new(MOST, sizeof *now), loss, worst = 0;
    int64_t count = 0;

    pair.input = &input;
    pair.target = &target;
    for (int64_t t = 0; t < 16; t++) {
        double length = 0;

        if (t == 0) NETWORK_CHECK(n->networks->train(n->network, &pair, 1, &step, &host->error) == GRAFT_OK);
        if (t == 0) {
            count = network_pull_all(n, "", w);
            NETWORK_CHECK(network_pull_all(n, "optimizer.m.", m) == count &&
                          network_pull_all(n, "optimizer.v.", v) == count);
            continue;
        }
        NETWORK_CHECK(n->networks->gradient(n->network, &pair, &loss, &host->error) == GRAFT_OK);
        NETWORK_CHECK(network_pull_all(n, "gradient.", g) == count && count > 0 && count <= MOST);
        NETWORK_CHECK(n->networks->train(n->network, &pair, 1, &step, &host->error) == GRAFT_OK && step.step == t + 1);
        NETWORK_CHECK(network_pull_all(n, "gradient.", now) == 0 && fabs(step.loss - loss) <= 1e-14 * loss);
        for (int64_t i = 0; i < count; i++) length += g[i] * g[i];
        NETWORK_CHECK(fabs(step.learning_rate - rate_of(t)) < 1e-15 && fabs(step.gradient_norm - sqrt(length)) < 1e-12);
        for (int64_t i = 0; i < count; i++) {
            const double clipped = length > 0.25 ? g[i] * 0.5 / sqrt(length) : g[i], k = (double)(t + 1);

            m[i] = 0.8 * m[i] + 0.2 * clipped;
            v[i] = 0.95 * v[i] + 0.05 * clipped * clipped;
            w[i] -= rate_of(t) * 0.1 * w[i];
            w[i] -= rate_of(t) * (m[i] / (1 - pow(0.8, k))) / (sqrt(v[i] / (1 - pow(0.95, k))) + 1e-8);
        }
        network_pull_all(n, "", now);
        for (int64_t i = 0; i < count; i++) worst = fmax(worst, fabs(w[i] - now[i]));
    }
    NETWORK_CHECK(n->networks->info(n->network, &info, &host->error) == GRAFT_OK && info.n_steps == 16);
    NETWORK_CHECK(fabs(info.learning_rate - 0.001) < 1e-15 && worst < 1e-11);
    free(g), free(w), free(m), free(v), free(now), free(input.data), free(target.data);
    return GRAFT_OK;
}

/* Make steps that only gather statistics. For a constant field these show the noise. */
static int32_t gather_noise(struct host *host, struct network_rank *n)
{
    graft_network_step step = GRAFT_INIT(graft_network_step);
    graft_field        input = network_field(n, NETWORK_IN), target = network_field(n, NETWORK_OUT);
    graft_pair         pair = GRAFT_INIT(graft_pair);
    const uint64_t     before = network_digest(n);
    double             count, sum[NETWORK_IN], squares[NETWORK_IN];

    pair.input = &input;
    pair.target = &target;
    for (int64_t row = 0; row < input.n_rows; row++)
        for (int j = 0; j < NETWORK_IN; j++) {
            network_field_put(&input, row, j, 1e6);
            if (j < NETWORK_OUT) network_field_put(&target, row, j, 1e6);
        }
    for (int k = 0; k < 400; k++) {
        NETWORK_CHECK(n->networks->train(n->network, &pair, 1, &step, &host->error) == GRAFT_OK &&
                      step.is_gathering == 1);
        NETWORK_CHECK(step.loss == 0);
    }
    NETWORK_CHECK(network_digest(n) != before && network_pull(n, "statistics.node.count", &count) == 1 &&
                  count == 400.0 * mesh.n_nodes);
    NETWORK_CHECK(network_pull(n, "statistics.node.sum", sum) == NETWORK_IN &&
                  network_pull(n, "statistics.node.squares", squares) == NETWORK_IN);
    NETWORK_CHECK(squares[2] == 0 && sum[2] / count == 1e6); /* noise is added to the first n_out columns */
    NETWORK_CHECK(fabs(sqrt(squares[0] / count) - 0.5) < 0.01 && fabs(sum[0] / count - 1e6) < 0.02);
    /* The target corrects the noise, so the change of the state is its negative. */
    NETWORK_CHECK(network_pull(n, "statistics.output.squares", squares) == NETWORK_OUT);
    NETWORK_CHECK(fabs(sqrt(squares[1] / count) - 0.5) < 0.01);
    free(input.data), free(target.data);
    return GRAFT_OK;
}

/* Compare mean and deviation of an ensemble with those of its three networks, run one after the other. */
static int32_t compare_ensemble(struct host *host, struct network_rank *n)
{
    graft_network *networks[3] = { n->network, NULL, NULL };
    graft_field    input = network_state(n, NETWORK_IN, 0.5), mean = network_field(n, NETWORK_OUT);
    graft_field    deviation = network_field(n, NETWORK_OUT), single[3];
    double         worst = 0;

    for (int k = 0; k < 3; k++) {
        host_set(host->api, k == 1 ? "seed=1" : "seed=2");
        if (k > 0) NETWORK_CHECK(n->networks->create(n->mesh, &n->args, &networks[k], &host->error) == GRAFT_OK);
        single[k] = network_field(n, NETWORK_OUT);
        NETWORK_CHECK(n->networks->begin(networks[k], &input, &host->error) == GRAFT_OK);
        NETWORK_CHECK(n->networks->end(networks[k], &single[k], &host->error) == GRAFT_OK);
    }
    NETWORK_CHECK(n->networks->ensemble(networks, 3, &input, &mean, &deviation, &host->error) == GRAFT_OK);
    for (int64_t row = 0; row < input.n_rows; row++)
        for (int j = 0; j < NETWORK_OUT && network_is_written(n, row); j++) {
            double m = 0, s = 0;

            for (int k = 0; k < 3; k++) m += network_field_at(&single[k], row, j) / 3;
            for (int k = 0; k < 3; k++) s += pow(network_field_at(&single[k], row, j) - m, 2) / 3;
            worst = fmax(worst, fabs(m - network_field_at(&mean, row, j)));
            worst = fmax(worst, fabs(sqrt(s) - network_field_at(&deviation, row, j)));
            if (network_is_free(&scene, n->part.node[row])) NETWORK_CHECK(s > 1e-6);
        }
    NETWORK_CHECK(worst < 1e-12);
    for (int k = 0; k < 3; k++) free(single[k].data);
    n->networks->destroy(networks[1]), n->networks->destroy(networks[2]);
    free(input.data), free(mean.data), free(deviation.data);
    return GRAFT_OK;
}

static int32_t explain_body(struct host *host)
{
    struct network_rank n;
    char                text[1024], small[10];
    int32_t             rc = network_rank_init(host, &scene, &n);

    if (rc == GRAFT_OK) rc = n.networks->explain(n.network, text, sizeof text, &host->error);
    if (rc == GRAFT_OK && (strstr(text, "width=8") == NULL || strstr(text, "the change of the first inputs") == NULL))
        rc = network_blame(host, "%.300s", text);
    if (rc == GRAFT_OK && strstr(text, " s training step") == NULL) rc = network_blame(host, "there are no times");
    if (rc == GRAFT_OK) rc = n.networks->explain(n.network, small, sizeof small, &host->error);
    if (rc == GRAFT_OK && strlen(small) != 9) rc = network_blame(host, "a text is not cut");
    network_rank_fini(&n);
    return rc;
}

int main(void)
{
    struct sample sample = { 5 };

    alarm(200);
    test_mesh_init(&mesh, &sample, SHAPE_TRIANGLES, 5, 0, 1000);
    scene.has_boundary = 1;
    scene.dtype = GRAFT_F64;
    scene.predicts = GRAFT_PREDICTS_CHANGE;
    ok_fault("networks have the right numbers of weights", network_run(&scene, &mesh, 1, 0, "", count_weights));
    network_test(&scene, &mesh, 1, 0, "oracle", SMALL " model.type=f64", compare_with_oracle);
    scene.predicts = GRAFT_PREDICTS_VALUE;
    network_test(&scene, &mesh, 1, 0, "oracle",
                 SMALL " model.type=f64 mgn.sum=new mgn.edges=encoded mgn.edge_scale=longest activation=elu",
                 compare_with_oracle);
    network_test(&scene, &mesh, 1, 0, "oracle", SMALL " model.type=f64 mgn.sum=old residual=yes norm=none",
                 compare_with_oracle);
    scene.dtype = GRAFT_F32;
    scene.by_columns = 1;
    scene.predicts = GRAFT_PREDICTS_CHANGE;
    network_test(&scene, &mesh, 1, 0, "oracle", SMALL, compare_with_oracle);
    scene.dtype = GRAFT_F64;
    network_test(&scene, &mesh, 1, 0, "AdamW",
                 SMALL " model.type=f64 mgn.statistics=train:1 lr=0.01 mgn.schedule=cosine:12:0.001:4 "
                       "optimizer=adam:0.8:0.95 weight_decay=0.1 clip_norm=0.5",
                 compare_adamw);
    scene.has_boundary = 0;
    network_test(&scene, &mesh, 1, 0, "noise", SMALL " model.type=f64 mgn.statistics=gather:400 mgn.noise=0.5",
                 gather_noise);
    scene.has_boundary = 1;
    scene.predicts = GRAFT_PREDICTS_VALUE;
    network_test(&scene, &mesh, 1, 0, "ensemble", SMALL, compare_ensemble);
    scene.predicts = GRAFT_PREDICTS_CHANGE;
    ok_fault("explain", network_run(&scene, &mesh, 1, 0, SMALL " profile=yes", explain_body));
    test_mesh_fini(&mesh);
    return done();
}
