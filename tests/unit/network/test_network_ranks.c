/* Checks graft_network.h over ranks, on meshes with ghosts and with shared nodes. Outputs, rollouts, losses, gradients
 * and the curve of training must be those of one rank up to rounding, and copies of a node must be bitwise identical.
 * SPDX-License-Identifier: Apache-2.0 */
#include "graft_load.h"
#include "harness/effort.h"
#include "harness/networks.h"
#include "harness/tap.h"
#include "oracle/oracle.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

enum { STEPS = 100, WEIGHTS_MOST = 20000 };

/* The results of a run by node of the whole mesh: those of several ranks, or of one. */
struct found {
    double *output; /* [n_nodes x NETWORK_OUT] output of end() */
    double *rolled; /* [n_nodes x NETWORK_OUT] state after a rollout of 5 steps */
    double  loss, curve[STEPS], *gradient;
    int64_t n_weights;
};

struct network_job {
    struct network_case what;
    struct found        one, now;
    int                 steps;
    double              bound;
};

static void found_init(struct found *f, int64_t n_nodes)
{
    *f = (struct found){ .loss = 0 };
    f->output = oracle_new(n_nodes * NETWORK_OUT, sizeof(double));
    f->rolled = oracle_new(n_nodes * NETWORK_OUT, sizeof(double));
    f->gradient = oracle_new(WEIGHTS_MOST, sizeof(double));
    for (int64_t i = 0; i < n_nodes * NETWORK_OUT; i++) f->output[i] = f->rolled[i] = (double)NAN;
}

static void found_fini(struct found *f)
{
    free(f->output);
    free(f->rolled);
    free(f->gradient);
}

/* Copy the rows of this rank into the array of all nodes. A copy that another rank has stored must be bitwise
 * identical. */
static int32_t collect(struct host *host, const struct network_rank *n, const graft_field *field, double *all)
{
    static _Atomic int lock;
    int32_t            rc = GRAFT_OK;

    while (atomic_exchange(&lock, 1)) usleep(10);
    for (int64_t row = 0; row < field->n_rows && rc == GRAFT_OK; row++) {
        double *to = &all[(int64_t)n->part.node[row] * NETWORK_OUT];

        if (!network_has_row(n, host->rank, row)) continue;
        for (int64_t j = 0; j < NETWORK_OUT; j++) {
            const double x = network_field_at(field, row, j);

            if (!isnan(to[j]) && memcmp(&to[j], &x, sizeof x) != 0)
                rc = network_blame(host, "copies of node %d are %.17g and %.17g", n->part.node[row], to[j], x);
            to[j] = x;
        }
    }
    atomic_store(&lock, 0);
    return rc;
}

static int32_t infer_ranks(struct host *host, struct network_rank *n, struct found *f)
{
    graft_field   input = network_state(n, NETWORK_IN, 0.5), output = network_field(n, NETWORK_OUT);
    graft_rollout rollout = GRAFT_INIT(graft_rollout);
    int32_t       rc = n->networks->begin(n->network, &input, &host->error);

    for (int64_t row = 0; row < input.n_rows; row++) /* Begin() has copied the input. */
        for (int64_t j = 0; j < NETWORK_IN; j++) network_field_put(&input, row, j, -1e30);
    if (rc == GRAFT_OK) rc = n->networks->end(n->network, &output, &host->error);
    if (rc == GRAFT_OK) rc = collect(host, n, &output, f->output);
    free(input.data);
    input = network_state(n, NETWORK_IN, 0.5);
    rollout.steps = 5;
    rollout.initial = rollout.state = &input;
    if (rc == GRAFT_OK) rc = n->networks->rollout(n->network, &rollout, &host->error);
    if (rc == GRAFT_OK) rc = collect(host, n, &input, f->rolled);
    free(input.data);
    free(output.data);
    return rc;
}

/* Compute loss and gradient at a fixed state of the network. Rank 0 keeps them. */
static int32_t differentiate_ranks(struct host *host, struct network_rank *n, struct found *f)
{
    graft_field      input = network_state(n, NETWORK_IN, 0.5), target = network_state(n, NETWORK_OUT, 1.5);
    graft_pair       pair = GRAFT_INIT(graft_pair);
    graft_state_item item = GRAFT_INIT(graft_state_item);
    double           loss;
    int32_t          rc;

    pair.input = &input;
    pair.target = &target;
    rc = n->networks->gradient(n->network, &pair, &loss, &host->error);
    if (rc == GRAFT_OK && host->rank == 0) f->loss = loss;
    for (int32_t k = 0; rc == GRAFT_OK && host->rank == 0; k++) {
        int64_t count;

        if (n->networks->state_item(n->network, k, &item, NULL) < 0) break;
        if (strncmp(item.name, "gradient.", 9) != 0) continue;
        count = item.shape[0] * (item.n_dims == 2 ? item.shape[1] : 1);
        for (int64_t i = 0; i < count; i++) f->gradient[f->n_weights++] = sample_at(item.data, item.dtype, i);
    }
    free(input.data);
    free(target.data);
    return rc;
}

static int32_t network_body(struct host *host)
{
    struct network_job *job = host->all->arg;
    struct network_rank n;
    graft_network_step  step = GRAFT_INIT(graft_network_step);
    int32_t             rc = network_rank_init(host, &job->what, &n);

    for (int k = 0; k < 3 && rc == GRAFT_OK; k++) rc = network_train(host, &n, 0.1 * k, 0.1 * k + 1, &step);
    if (rc == GRAFT_OK) rc = infer_ranks(host, &n, &job->now);
    if (rc == GRAFT_OK) rc = differentiate_ranks(host, &n, &job->now);
    for (int k = 0; k < job->steps && rc == GRAFT_OK; k++) {
        rc = network_train(host, &n, 0.1 * (k % 7), 0.1 * (k % 7) + 1, &step);
        if (host->rank == 0) job->now.curve[k] = step.loss;
    }
    network_rank_fini(&n);
    return rc;
}

/* The largest difference, relative to the largest value. */
static double distance(const double *a, const double *b, int64_t n)
{
    double worst = 0, largest = 0;

    for (int64_t i = 0; i < n; i++) {
        if (isnan(a[i]) != isnan(b[i])) return INFINITY;
        if (isnan(a[i])) continue;
        worst = fmax(worst, fabs(a[i] - b[i]));
        largest = fmax(largest, fabs(b[i]));
    }
    return largest > 0 ? worst / largest : worst;
}

static const char *const common[] = { "threads=1",        "hidden=8",       "layers=3",
                                      "mgn.linear=2",     "mgn.noise=0.05", "mgn.schedule=constant:10",
                                      "weight_decay=0.01" };

/* Run on so many ranks, and compare with one rank. */
static void run_ranks(struct network_job *job, const char *more, int32_t n_ranks, int how, const char *name)
{
    static struct hosts hosts;
    const char         *settings[16] = { NULL };
    const int64_t       n_nodes = job->what.cut.mesh->n_nodes;
    int                 count = 0;

    for (size_t k = 0; k < sizeof common / sizeof *common; k++) settings[count++] = common[k];
    settings[count++] = more;
    if (n_ranks > 1) settings[count++] = "halo.timeout=60";
    settings[count++] = job->bound < 1e-9 ? "lr=0.002" : "lr=0.0001";
    found_init(&job->now, n_nodes);
    hosts_run(&hosts, n_ranks, settings, network_body, job);
    ok_or(hosts_fault(&hosts) == NULL, hosts_fault(&hosts), "%s, %s: %d ranks, cut %d: runs", name, more, n_ranks, how);
    if (n_ranks == 1) {
        job->one = job->now;
        return;
    }
    {
        const double out = distance(job->now.output, job->one.output, n_nodes * NETWORK_OUT);
        const double rolled = distance(job->now.rolled, job->one.rolled, n_nodes * NETWORK_OUT);
        const double loss = fabs(job->now.loss - job->one.loss) / job->one.loss;
        const double gradient = distance(job->now.gradient, job->one.gradient, WEIGHTS_MOST);
        double       curve = 0;

        for (int k = 0; k < job->steps; k++)
            curve = fmax(curve, fabs(job->now.curve[k] - job->one.curve[k]) / job->one.curve[k]);
        if (!ok(out < job->bound && rolled < 10 * job->bound && loss < job->bound && gradient < 100 * job->bound &&
                    curve < (job->bound < 1e-9 ? 1e-9 : job->bound),
                "%s: results over ranks equal those of one rank", name) ||
            getenv("GRAFT_TEST_EXIT") != NULL)
            diag("output %.1e, rollout %.1e, loss %.1e, gradient %.1e, curve %.1e", out, rolled, loss, gradient, curve);
        found_fini(&job->now);
    }
}

static void test_cut(struct sample *sample, const struct test_mesh *mesh, int how, const char *type, int changes,
                     const int32_t *ranks)
{
    struct network_job job = { .bound = strcmp(type, "model.type=f64") == 0 ? 1e-12 : 1e-6 };

    job.what.predicts = changes ? GRAFT_PREDICTS_CHANGE : GRAFT_PREDICTS_VALUE;
    job.what.has_boundary = changes;
    job.what.dtype = job.bound < 1e-9 || changes ? GRAFT_F64 : GRAFT_F32;
    job.what.by_columns = changes;
    job.steps = STEPS;
    for (int k = 0; k == 0 || ranks[k - 1] > 0; k++) {
        const int32_t n_ranks = k == 0 ? 1 : ranks[k - 1];

        mesh_cut_init(&job.what.cut, mesh, sample, n_ranks, k == 0 ? how & CUT_SHARED : how);
        run_ranks(&job, type, n_ranks, how, how & CUT_SHARED ? "shared nodes" : "ghosts");
        mesh_cut_fini(&job.what.cut);
    }
    found_fini(&job.one);
}

int main(void)
{
    struct sample    sample = { 5 };
    struct test_mesh mesh;
    const int32_t    few[] = { 2, 4, 0 }, many[] = { 2, 3, 8, 0 };

    alarm(300);
    test_mesh_init(&mesh, &sample, SHAPE_TRIANGLES, 6, 0, (int64_t)1 << 41);
    test_cut(&sample, &mesh, CUT_RANDOM | CUT_OWNERS, "model.type=f64", 1, many);
    test_cut(&sample, &mesh, CUT_SHARED | CUT_RANDOM | CUT_REPEATS, "model.type=f64", 0, many);
    test_cut(&sample, &mesh, CUT_LAYER, "model.type=f32", 0, few);
    test_cut(&sample, &mesh, CUT_SHARED, "model.type=f32", 1, few);
    test_mesh_fini(&mesh);
    return done();
}
