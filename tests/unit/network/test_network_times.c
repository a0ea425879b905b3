/* Checks times() of graft_network.h: times of parts must add up to those of a layer, layers to a pass, and a pass must
 * fit into the time of the calls. Bytes must be those that the transport was given to send.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "harness/counting.h"
#include "harness/networks.h"
#include "harness/tap.h"
#include "oracle/oracle.h"

#include <string.h>
#include <unistd.h>

enum { LAYERS = 3, ROUNDS = 6 };

static struct test_mesh    mesh;
static struct network_case scene;

/* The largest share of a time that its parts explain, over some rounds. The system may suspend the thread between two
 * parts, but not in each round. */
struct shares {
    double of_layers, of_pass, of_calls;
};

static double parts_of(const graft_network_times *t)
{
    return t->edges + t->nodes + t->pack + t->wait + t->unpack;
}

/* Whether a is at most b, up to rounding. */
static int is_at_most(double a, double b)
{
    return a >= 0 && a <= b * (1 + 1e-9) + 1e-9;
}

static double larger_of(double a, double b)
{
    return a > b ? a : b;
}

static double smaller_of(double a, double b)
{
    return a < b ? a : b;
}

static int32_t ask_times(struct host *host, struct network_rank *n, int32_t layer, int32_t pass,
                         graft_network_times *times)
{
    *times = (graft_network_times){ .size = sizeof *times };
    return n->networks->times(n->network, layer, pass, times, &host->error);
}

/* Check one direction of calls that took so many seconds. The times of the whole pass go to *whole. */
static int32_t check_pass(struct host *host, struct network_rank *n, int32_t pass, double seconds,
                          struct shares *shares, graft_network_times *whole)
{
    graft_network_times t;
    double              sum = 0, parts = 0, least = 1;
    int64_t             bytes = 0;

    for (int32_t layer = -1; layer < LAYERS; layer++) {
        const int is_sent = layer >= 0 && host->n_ranks > 1;

        NETWORK_CHECK(ask_times(host, n, layer, pass, &t) == GRAFT_OK);
        NETWORK_CHECK(t.edges > 0 && t.nodes > 0 && t.wait >= 0 && is_at_most(parts_of(&t), t.seconds));
        if (is_sent) NETWORK_CHECK(t.pack > 0 && t.unpack > 0 && t.bytes_sent > 0);
        else NETWORK_CHECK(t.pack == 0 && t.wait == 0 && t.unpack == 0 && t.bytes_sent == 0);
        least = smaller_of(least, parts_of(&t) / t.seconds);
        sum += t.seconds;
        parts += parts_of(&t);
        bytes += t.bytes_sent;
    }
    NETWORK_CHECK(ask_times(host, n, -2, pass, whole) == GRAFT_OK);
    NETWORK_CHECK(is_at_most(sum, whole->seconds) && is_at_most(whole->seconds, seconds));
    NETWORK_CHECK(is_at_most(parts, parts_of(whole)) && is_at_most(parts_of(whole), parts));
    NETWORK_CHECK(whole->bytes_sent == bytes);
    shares->of_layers = larger_of(shares->of_layers, least);
    shares->of_pass = larger_of(shares->of_pass, sum / whole->seconds);
    return GRAFT_OK;
}

/* What the transport was given to send in one direction, in layers of the network. With shared nodes it is the sum of
 * both directions, because gradients are exchanged as sums are. */
static int64_t counted(const struct counts *c, int32_t layer, int is_backward)
{
    int64_t sum = 0;

    for (int q = 0; q < HOSTS_MOST; q++) sum += c->bytes[2 * layer + is_backward][q];
    return sum;
}

static int32_t check_times_bytes(struct host *host, struct network_rank *n, const struct counts *c, int trains)
{
    const int           is_shared = (n->what->cut.how & CUT_SHARED) != 0;
    graft_network_times f, b;

    for (int32_t layer = 0; layer < LAYERS; layer++) {
        NETWORK_CHECK(ask_times(host, n, layer, GRAFT_PASS_FORWARD, &f) == GRAFT_OK);
        NETWORK_CHECK(ask_times(host, n, layer, GRAFT_PASS_BACKWARD, &b) == GRAFT_OK);
        if (is_shared) {
            NETWORK_CHECK(f.bytes_sent + b.bytes_sent == counted(c, layer, 0));
        } else {
            NETWORK_CHECK(f.bytes_sent == counted(c, layer, 0) && b.bytes_sent == counted(c, layer, 1));
        }
        NETWORK_CHECK(trains ? b.seconds > 0 : b.seconds + parts_of(&b) == 0);
    }
    NETWORK_CHECK(c->odd == 0 && c->last_is_odd == 0);
    return GRAFT_OK;
}

static int32_t check_explained(struct host *host, struct network_rank *n, const char *expected)
{
    char text[8192];

    NETWORK_CHECK(n->networks->explain(n->network, text, sizeof text, &host->error) == GRAFT_OK);
    NETWORK_CHECK(strstr(text, expected) != NULL);
    return GRAFT_OK;
}

static int32_t measure_inference(struct host *host, struct network_rank *n, struct shares *shares)
{
    graft_field         input = network_state(n, NETWORK_IN, 0), output = network_field(n, NETWORK_OUT);
    struct counts       counts = { .odd = 0 };
    graft_network_times whole;
    graft_network_info  info = GRAFT_INIT(graft_network_info);
    double              seconds = -gr_seconds();

    counting_begin(&counts);
    NETWORK_CHECK(n->networks->begin(n->network, &input, &host->error) == GRAFT_OK);
    NETWORK_CHECK(n->networks->end(n->network, &output, &host->error) == GRAFT_OK);
    counting_begin(NULL);
    seconds += gr_seconds();
    free(input.data);
    free(output.data);
    NETWORK_CHECK(check_pass(host, n, GRAFT_PASS_FORWARD, seconds, shares, &whole) == GRAFT_OK);
    shares->of_calls = larger_of(shares->of_calls, whole.seconds / seconds);
    NETWORK_CHECK(n->networks->info(n->network, &info, &host->error) == GRAFT_OK);
    NETWORK_CHECK(whole.bytes_sent == info.bytes_sent);
    return check_times_bytes(host, n, &counts, 0);
}

static int32_t measure_step(struct host *host, struct network_rank *n, struct shares *shares)
{
    struct counts       counts = { .odd = 0 };
    graft_network_times forward, backward;
    graft_network_info  info = GRAFT_INIT(graft_network_info);
    double              seconds = -gr_seconds();

    counting_begin(&counts);
    NETWORK_CHECK(network_train(host, n, 0, 0.25, NULL) == GRAFT_OK);
    counting_begin(NULL);
    seconds += gr_seconds();
    NETWORK_CHECK(check_pass(host, n, GRAFT_PASS_FORWARD, seconds, shares, &forward) == GRAFT_OK);
    NETWORK_CHECK(check_pass(host, n, GRAFT_PASS_BACKWARD, seconds - forward.seconds, shares, &backward) == GRAFT_OK);
    shares->of_calls = larger_of(shares->of_calls, (forward.seconds + backward.seconds) / seconds);
    NETWORK_CHECK(n->networks->info(n->network, &info, &host->error) == GRAFT_OK);
    NETWORK_CHECK(forward.bytes_sent + backward.bytes_sent == info.bytes_sent);
    return check_times_bytes(host, n, &counts, 1);
}

static int32_t check_shares(struct host *host, const struct shares *s)
{
    if (s->of_layers > 0.9 && s->of_pass > 0.9 && s->of_calls > 0.4) return GRAFT_OK;
    return network_blame(host, "parts are %.3f of layers, layers %.3f of passes, passes %.3f of calls", s->of_layers,
                         s->of_pass, s->of_calls);
}

static int32_t measure_rank(struct host *host, struct network_rank *n)
{
    struct shares       inference = { 0, 0, 0 }, training = { 0, 0, 0 };
    graft_network_times times;

    for (int round = 0; round < ROUNDS; round++) {
        NETWORK_CHECK(measure_inference(host, n, &inference) == GRAFT_OK);
        NETWORK_CHECK(check_explained(host, n, "forward  layer 2") == GRAFT_OK);
        NETWORK_CHECK(measure_step(host, n, &training) == GRAFT_OK);
        NETWORK_CHECK(check_explained(host, n, "backward all") == GRAFT_OK);
    }
    if (check_shares(host, &inference) < 0 || check_shares(host, &training) < 0) return GRAFT_ERR_FORMAT;
    NETWORK_CHECK(ask_times(host, n, LAYERS, GRAFT_PASS_FORWARD, &times) == GRAFT_ERR_ARG);
    NETWORK_CHECK(strstr(host->error.message, "layer is 3, expected -2 to 2") != NULL);
    NETWORK_CHECK(ask_times(host, n, -3, GRAFT_PASS_FORWARD, &times) == GRAFT_ERR_ARG);
    NETWORK_CHECK(ask_times(host, n, 0, GRAFT_PASS_EVALUATION, &times) == GRAFT_ERR_ARG);
    NETWORK_CHECK(n->networks->times(n->network, 0, 0, NULL, &host->error) == GRAFT_ERR_ARG);
    return GRAFT_OK;
}

static int32_t measure_nothing(struct host *host, struct network_rank *n)
{
    graft_network_times times;

    NETWORK_CHECK(ask_times(host, n, 0, GRAFT_PASS_FORWARD, &times) == GRAFT_ERR_STATE);
    NETWORK_CHECK(strstr(host->error.message, "option 'profile' was no") != NULL);
    return GRAFT_OK;
}

/* Run while the messages of each rank are counted. */
static int32_t run_counted(struct host *host)
{
    struct network_rank n;
    int32_t             rc;

    if (host->n_ranks > 1) counting_wrap(&host->transport);
    rc = network_rank_init(host, &scene, &n);
    if (rc == GRAFT_OK) rc = measure_rank(host, &n);
    network_rank_fini(&n);
    return rc;
}

static void test_times(int32_t n_ranks, int how, const char *more)
{
    char settings[256], name[320];

    snprintf(settings, sizeof settings, "threads=1 hidden=32 layers=3 mgn.linear=3 profile=yes %s", more);
    snprintf(name, sizeof name, "%s, %d ranks, %s: parts add up, and bytes are those of the transport",
             (how & CUT_SHARED) != 0 ? "shared nodes" : "ghosts", n_ranks, more);
    ok_fault(name, network_run(&scene, &mesh, n_ranks, how, settings, run_counted));
}

int main(void)
{
    struct sample sample = { 6 };

    alarm(200);
    test_mesh_init(&mesh, &sample, SHAPE_TRIANGLES, 24, 0, 100000);
    scene.predicts = GRAFT_PREDICTS_CHANGE;
    scene.dtype = GRAFT_F64;
    for (int32_t n_ranks = 1; n_ranks <= 3; n_ranks++) {
        test_times(n_ranks, 0, "model.type=f32");
        test_times(n_ranks, CUT_SHARED, "model.type=f32");
    }
    test_times(2, CUT_SHARED, "model.type=f64");
    test_times(3, CUT_RANDOM, "halo.codec=q8");
    network_test(&scene, &mesh, 2, 0, "without option profile nothing is measured", "hidden=8 layers=1",
                 measure_nothing);
    test_mesh_fini(&mesh);
    return done();
}
