/* Checks misuse of graft_network.h and graft_stream.h over ranks: one rank passes something wrong, all ranks must
 * return the same status and sentence, and training must go on afterwards.
 * SPDX-License-Identifier: Apache-2.0 */
#include "draft/graft_stream.h"
#include "graft_load.h"
#include "harness/networks.h"
#include "harness/tap.h"
#include "oracle/oracle.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

enum { RANKS = 3, WRONG = 1 };

static struct test_mesh    mesh;
static struct network_case scene;
static char                said[RANKS][512]; /* message of each rank in the current case */

/* The objects that cases use. */
struct tools {
    struct network_rank    *n;
    const graft_stream_api *streams;
    graft_stream           *stream;
    graft_field             input, target;
    graft_pair              pair;
    graft_sample_state      state;
    graft_network_args      args;
    graft_rollout           rollout;
    int                     wrong; /* whether this rank makes the mistake */
};

static int32_t create_with(struct host *host, struct tools *t)
{
    graft_network *made = NULL;
    const int32_t  rc = t->n->networks->create(t->n->mesh, &t->args, &made, &host->error);

    if (made != NULL) t->n->networks->destroy(made);
    return rc;
}

static int32_t train_pair_with(struct host *host, struct tools *t)
{
    return t->n->networks->train(t->n->network, &t->pair, 1, NULL, &host->error);
}

static int32_t gradient_with(struct host *host, struct tools *t)
{
    double loss;

    return t->n->networks->gradient(t->n->network, &t->pair, &loss, &host->error);
}

static int32_t offer_with(struct host *host, struct tools *t)
{
    return t->streams->offer(t->stream, &t->state, &host->error);
}

static int32_t roll_with(struct host *host, struct tools *t)
{
    return t->n->networks->rollout(t->n->network, &t->rollout, &host->error);
}

static int32_t end_early(void *arg, int32_t step)
{
    return step == *(const int32_t *)arg;
}

#define NETWORK(what) static int32_t what(struct host *host, struct tools *t)

NETWORK(unlike_free)
{
    for (int64_t row = 0; row < t->input.n_rows && t->wrong; row++) t->n->is_free[row] = 0;
    return create_with(host, t);
}

NETWORK(unlike_weight)
{
    for (int64_t row = 0; row < t->input.n_rows && t->wrong; row++) t->n->loss_weight[row] = 2;
    return create_with(host, t);
}

NETWORK(null_args)
{
    graft_network *made = NULL;

    return t->n->networks->create(t->n->mesh, t->wrong ? NULL : &t->args, &made, &host->error);
}
NETWORK(null_result)
{
    graft_network *made = NULL;

    return t->n->networks->create(t->n->mesh, &t->args, t->wrong ? NULL : &made, &host->error);
}
NETWORK(other_predicts)
{
    if (t->wrong) t->args.predicts = GRAFT_PREDICTS_VALUE;
    return create_with(host, t);
}
NETWORK(unknown_predicts)
{
    if (t->wrong) t->args.predicts = 7;
    return create_with(host, t);
}
NETWORK(more_outputs)
{
    t->args.n_out = 9;
    return create_with(host, t);
}
NETWORK(no_inputs)
{
    if (t->wrong) t->args.n_in = 0;
    return create_with(host, t);
}
NETWORK(other_inputs)
{
    if (t->wrong) t->args.n_in = 4;
    return create_with(host, t);
}
NETWORK(negative_weight)
{
    if (t->wrong) t->n->loss_weight[0] = -1;
    return create_with(host, t);
}
NETWORK(all_bound)
{
    for (int64_t i = 0; i < t->input.n_rows; i++) t->n->is_free[i] = 0;
    return create_with(host, t);
}
NETWORK(no_boolean)
{
    if (t->wrong) t->n->is_free[0] = 3;
    return create_with(host, t);
}
NETWORK(constant_nan)
{
    if (t->wrong) network_field_put(&t->n->constant, 0, 0, (double)NAN);
    return create_with(host, t);
}
NETWORK(constant_short)
{
    if (t->wrong) t->n->constant.n_rows--;
    return create_with(host, t);
}
NETWORK(other_option)
{
    int32_t rc;

    host_set(host->api, t->wrong ? "hidden=6" : "hidden=4");
    rc = create_with(host, t);
    host_set(host->api, "hidden=4");
    return rc;
}
NETWORK(bf16_option)
{
    int32_t rc;

    host_set(host->api, "model.type=bf16");
    rc = create_with(host, t);
    host_set(host->api, "model.type=f64");
    return rc;
}
NETWORK(residual_change)
{
    int32_t rc;

    host_set(host->api, "residual=yes");
    rc = create_with(host, t);
    host_set(host->api, "residual=no");
    return rc;
}
NETWORK(decay_first)
{
    int32_t rc;

    host_set(host->api, "weight_decay=0.1:first");
    rc = create_with(host, t);
    host_set(host->api, "weight_decay=0");
    return rc;
}
NETWORK(norm_batch)
{
    int32_t rc;

    host_set(host->api, "norm=batch");
    rc = create_with(host, t);
    host_set(host->api, "norm=layer");
    return rc;
}
NETWORK(null_pair)
{
    return t->n->networks->train(t->n->network, t->wrong ? NULL : &t->pair, 1, NULL, &host->error);
}
NETWORK(no_pairs)
{
    return t->n->networks->train(t->n->network, &t->pair, t->wrong ? 0 : 1, NULL, &host->error);
}
NETWORK(two_pairs)
{
    graft_pair pairs[2] = { t->pair, t->pair };

    return t->n->networks->train(t->n->network, pairs, t->wrong ? 2 : 1, NULL, &host->error);
}
NETWORK(narrow_input)
{
    if (t->wrong) t->input.n_columns = 2;
    return train_pair_with(host, t);
}
NETWORK(null_target)
{
    if (t->wrong) t->pair.target = NULL;
    return train_pair_with(host, t);
}
NETWORK(input_type)
{
    if (t->wrong) t->input.dtype = GRAFT_I32;
    return train_pair_with(host, t);
}
NETWORK(input_stride)
{
    if (t->wrong) t->input.row_stride = -3;
    return gradient_with(host, t);
}
NETWORK(input_nan)
{
    if (t->wrong) network_field_put(&t->input, 0, 0, (double)NAN);
    return train_pair_with(host, t);
}
NETWORK(gradient_infinite)
{
    if (t->wrong) network_field_put(&t->input, 0, 0, INFINITY);
    return gradient_with(host, t);
}
NETWORK(other_rate)
{
    int32_t rc;

    host_set(host->api, t->wrong ? "lr=0.5" : "lr=0.01");
    rc = train_pair_with(host, t);
    host_set(host->api, "lr=0.01");
    return rc;
}
NETWORK(other_state)
{
    graft_state_item item = GRAFT_INIT(graft_state_item);
    int32_t          rc;

    if (t->n->networks->state_item(t->n->network, 0, &item, &host->error) < 0) return GRAFT_OK;
    if (t->wrong) t->n->networks->state_set(t->n->network, &item, &host->error);
    rc = train_pair_with(host, t);
    if (!t->wrong) t->n->networks->state_set(t->n->network, &item, &host->error);
    return rc;
}
NETWORK(no_steps)
{
    if (t->wrong) t->rollout.steps = 0;
    return roll_with(host, t);
}
NETWORK(other_steps)
{
    if (t->wrong) t->rollout.steps = 3;
    return roll_with(host, t);
}
NETWORK(null_state)
{
    if (t->wrong) t->rollout.state = NULL;
    return roll_with(host, t);
}
NETWORK(ended_rollout)
{
    int32_t step = t->wrong ? 1 : 99;

    t->rollout.after = end_early;
    t->rollout.arg = &step;
    return roll_with(host, t);
}
NETWORK(ensemble_twice)
{
    graft_network *networks[2] = { t->n->network, t->wrong ? NULL : t->n->network };

    return t->n->networks->ensemble(networks, 2, &t->input, &t->target, NULL, &host->error);
}
NETWORK(ensemble_none) /* without a network the call knows no ranks, so each rank has its own error */
{
    return t->n->networks->ensemble(&t->n->network, 0, &t->input, &t->target, NULL, &host->error);
}
NETWORK(ensemble_order)
{
    graft_network *made = NULL;
    int32_t        rc;

    t->args.constant = NULL;
    rc = t->n->networks->create(t->n->mesh, &t->args, &made, &host->error);
    if (rc == GRAFT_OK) {
        graft_network *networks[2] = { t->wrong ? made : t->n->network, t->wrong ? t->n->network : made };

        rc = t->n->networks->ensemble(networks, 2, &t->input, &t->target, NULL, &host->error);
    }
    t->n->networks->destroy(made);
    return rc;
}
NETWORK(null_path)
{
    return t->n->networks->save(t->n->network, t->wrong ? NULL : "/nonexistent/x", &host->error);
}
NETWORK(no_folder)
{
    return t->n->networks->save(t->n->network, "/nonexistent/x", &host->error);
}
NETWORK(no_file)
{
    return t->n->networks->load(t->n->network, "/nonexistent/x", &host->error);
}
NETWORK(no_stream)
{
    graft_stream *made = NULL;

    return t->streams->create(t->n->network, t->wrong ? NULL : &made, &host->error);
}
NETWORK(null_offer)
{
    return t->streams->offer(t->stream, t->wrong ? NULL : &t->state, &host->error);
}
NETWORK(narrow_offer)
{
    if (t->wrong) t->input.n_columns = 1;
    return offer_with(host, t);
}
NETWORK(short_offer)
{
    if (t->wrong) t->input.n_rows++;
    return offer_with(host, t);
}
NETWORK(other_flags)
{
    if (t->wrong) t->state.flags = GRAFT_STREAM_FIRST;
    return offer_with(host, t);
}
NETWORK(unknown_flags)
{
    if (t->wrong) t->state.flags = 64;
    return offer_with(host, t);
}
NETWORK(one_target)
{
    if (t->wrong) t->state.target = &t->target;
    return offer_with(host, t);
}
NETWORK(offer_nan)
{
    if (t->wrong) network_field_put(&t->input, 0, 2, (double)NAN);
    return offer_with(host, t);
}
NETWORK(negative_budget)
{
    return t->streams->step(t->stream, t->wrong ? -1 : 1, 0, NULL, &host->error);
}
NETWORK(endless_budget)
{
    return t->streams->step(t->stream, t->wrong ? INFINITY : 10, 0, NULL, &host->error);
}
NETWORK(other_most)
{
    return t->streams->step(t->stream, 1, t->wrong ? 2 : 0, NULL, &host->error);
}
NETWORK(other_call)
{
    if (t->wrong) return t->streams->offer(t->stream, &t->state, &host->error);
    return t->streams->step(t->stream, 10, 0, NULL, &host->error);
}
NETWORK(nothing_held)
{
    return t->streams->validate(t->stream, NULL, &host->error);
}
NETWORK(stream_path)
{
    return t->streams->save(t->stream, t->wrong ? NULL : "/nonexistent/x", &host->error);
}
NETWORK(stream_file)
{
    return t->streams->load(t->stream, "/nonexistent/x", &host->error);
}

static const struct {
    int32_t (*make)(struct host *host, struct tools *t);
    int32_t     code;
    const char *part; /* part of the expected sentence */
} cases[] = {
    { unlike_free, GRAFT_ERR_FORMAT, "has the node with id" },
    { unlike_weight, GRAFT_ERR_FORMAT, "has the node with id" },
    { null_args, GRAFT_ERR_ARG, "args is null" },
    { null_result, GRAFT_ERR_ARG, "network is null" },
    { other_predicts, GRAFT_ERR_ARG, "args.predicts is " },
    { unknown_predicts, GRAFT_ERR_ARG, "args.predicts is 7" },
    { more_outputs, GRAFT_ERR_ARG, "args.n_out is 9" },
    { no_inputs, GRAFT_ERR_ARG, "args.n_in and n_out are 0 and 2" },
    { other_inputs, GRAFT_ERR_ARG, "args.n_in is " },
    { negative_weight, GRAFT_ERR_FORMAT, "args.loss_weight has -1 in row 0" },
    { all_bound, GRAFT_ERR_FORMAT, "no node is free" },
    { no_boolean, GRAFT_ERR_FORMAT, "args.is_free has 3 in row 0" },
    { constant_nan, GRAFT_ERR_FORMAT, "args.constant has nan in row 0" },
    { constant_short, GRAFT_ERR_ARG, "args.constant" },
    { other_option, GRAFT_ERR_ARG, "option hidden is " },
    { bf16_option, GRAFT_ERR_OPTION, "'model.type' is bf16" },
    { residual_change, GRAFT_ERR_OPTION, "'residual' is yes" },
    { decay_first, GRAFT_ERR_OPTION, "'weight_decay' ends with ':first'" },
    { norm_batch, GRAFT_ERR_OPTION, "'norm' is batch" },
    { null_pair, GRAFT_ERR_ARG, "pair is null" },
    { no_pairs, GRAFT_ERR_ARG, "count is 0" },
    { two_pairs, GRAFT_ERR_ARG, "the number of pairs is " },
    { narrow_input, GRAFT_ERR_ARG, "pair.input" },
    { null_target, GRAFT_ERR_ARG, "pair.target is null" },
    { input_type, GRAFT_ERR_ARG, "pair.input" },
    { input_stride, GRAFT_ERR_ARG, "pair.input" },
    { input_nan, GRAFT_ERR_NONFINITE, "the input has nan in row 0, column 0" },
    { gradient_infinite, GRAFT_ERR_NONFINITE, "the input has inf in row 0, column 0" },
    { other_rate, GRAFT_ERR_ARG, "option lr is " },
    { other_state, GRAFT_ERR_ARG, "items set by state_set()" },
    { no_steps, GRAFT_ERR_ARG, "args.steps is 0" },
    { other_steps, GRAFT_ERR_ARG, "args.steps is " },
    { null_state, GRAFT_ERR_ARG, "args.state is null" },
    { ended_rollout, GRAFT_ERR_CANCELLED, "args.after asked to end the rollout after step 1 of 2" },
    { ensemble_twice, GRAFT_ERR_ARG, "networks[1] is null" },
    { ensemble_none, GRAFT_ERR_ARG, "count is 0, expected 1 or more" },
    { ensemble_order, GRAFT_ERR_ARG, "networks[] in their order" },
    { null_path, GRAFT_ERR_ARG, "path is null" },
    { no_folder, GRAFT_ERR_IO, "/nonexistent/x" },
    { no_file, GRAFT_ERR_NOT_FOUND, "/nonexistent/x" },
    { no_stream, GRAFT_ERR_ARG, "stream is null" },
    { null_offer, GRAFT_ERR_ARG, "state is null" },
    { narrow_offer, GRAFT_ERR_ARG, "state.input" },
    { short_offer, GRAFT_ERR_ARG, "state.input" },
    { other_flags, GRAFT_ERR_ARG, "state.flags is " },
    { unknown_flags, GRAFT_ERR_ARG, "state.flags is 0x40" },
    { one_target, GRAFT_ERR_ARG, "whether state.target is given" },
    { offer_nan, GRAFT_ERR_NONFINITE, "state.input has nan in row 0, column 2" },
    { negative_budget, GRAFT_ERR_ARG, "budget is -1 ms" },
    { endless_budget, GRAFT_ERR_ARG, "budget is inf ms, expected a finite number" },
    { other_most, GRAFT_ERR_ARG, "max_steps is " },
    { other_call, GRAFT_ERR_ARG, "4 items up to 'whether state.target is given'" },
    { nothing_held, GRAFT_ERR_STATE, "no pair is held out" },
    { stream_path, GRAFT_ERR_ARG, "path is null" },
    { stream_file, GRAFT_ERR_NOT_FOUND, "/nonexistent/x" },
};

static void take_tools(struct host *host, struct network_rank *n, graft_stream *stream, struct tools *t)
{
    *t = (struct tools){ .n = n, .streams = graft_interface(host->api, GRAFT_STREAM_ID, sizeof(graft_stream_api)) };
    t->stream = stream;
    t->wrong = host->rank == WRONG;
    t->input = network_state(n, NETWORK_IN, 0);
    t->target = network_state(n, NETWORK_OUT, 1);
    t->pair = GRAFT_INIT(graft_pair);
    t->pair.input = &t->input;
    t->pair.target = &t->target;
    t->state = GRAFT_INIT(graft_sample_state);
    t->state.input = &t->input;
    t->args = n->args;
    t->args.is_free = n->is_free;
    t->args.loss_weight = n->loss_weight;
    t->rollout = GRAFT_INIT(graft_rollout);
    t->rollout.steps = 2;
    t->rollout.initial = t->rollout.state = &t->input;
    for (int64_t row = 0; row < t->input.n_rows; row++) {
        n->is_free[row] = 1;
        n->loss_weight[row] = 1;
    }
    n->constant.n_rows = t->input.n_rows;
    if (t->input.n_rows > 0) network_field_put(&n->constant, 0, 0, 1);
}

static int32_t misuse(struct host *host, struct network_rank *n)
{
    const graft_stream_api *streams = graft_interface(host->api, GRAFT_STREAM_ID, sizeof *streams);
    graft_stream           *stream = NULL;
    struct tools            t;

    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        int32_t rc;

        /* A stream for the cases of streams only, because the network of other cases has none. */
        if (cases[k].make == null_offer) NETWORK_CHECK(streams->create(n->network, &stream, &host->error) == GRAFT_OK);
        take_tools(host, n, stream, &t);
        host->error.message[0] = '\0';
        rc = cases[k].make(host, &t);
        snprintf(said[host->rank], sizeof said[0], "%s", host->error.message);
        NETWORK_CHECK(hosts_meet(host));
        if (rc != cases[k].code || strstr(said[host->rank], cases[k].part) == NULL)
            return network_blame(host, "case %zu: status %d, '%.250s', expected %d, '%s'", k, rc, said[host->rank],
                                 cases[k].code, cases[k].part);
        NETWORK_CHECK(strcmp(said[host->rank], said[0]) == 0);
        NETWORK_CHECK(hosts_meet(host));
        free(t.input.data);
        free(t.target.data);
        /* Training goes on. */
        NETWORK_CHECK(network_train(host, n, 0, 1, NULL) == GRAFT_OK);
    }
    streams->destroy(stream);
    return GRAFT_OK;
}

static int32_t set_bias(struct host *host, struct network_rank *n, const char *name, double value)
{
    graft_state_item item = GRAFT_INIT(graft_state_item);
    double           values[8] = { value };

    for (int32_t k = 0; n->networks->state_item(n->network, k, &item, NULL) == GRAFT_OK; k++) {
        if (strcmp(item.name, name) != 0) continue;
        item.data = values;
        return n->networks->state_set(n->network, &item, &host->error);
    }
    return GRAFT_ERR_NOT_FOUND;
}

/* Ranks may set state items in any order. If one rank has set an item alone, loading a file repairs that. */
static int32_t set_alone(struct host *host, struct network_rank *n)
{
    static const char *const names[] = { "decoder.0.bias", "node_encoder.0.bias" };
    const int                first = host->rank == WRONG;
    char                     path[64];

    snprintf(path, sizeof path, "/tmp/graft-set-alone-%d.safetensors", (int)getpid());
    NETWORK_CHECK(n->networks->save(n->network, path, &host->error) == GRAFT_OK);
    NETWORK_CHECK(set_bias(host, n, names[first], 2 - first) == GRAFT_OK &&
                  set_bias(host, n, names[!first], 1 + first) == 0);
    NETWORK_CHECK(network_train(host, n, 0, 1, NULL) == GRAFT_OK);
    NETWORK_CHECK(n->networks->save(n->network, path, &host->error) == GRAFT_OK);
    if (host->rank == WRONG) NETWORK_CHECK(set_bias(host, n, names[0], 7) == GRAFT_OK);
    NETWORK_CHECK(network_train(host, n, 0, 1, NULL) == GRAFT_ERR_ARG &&
                  strstr(host->error.message, "state_set") != NULL);
    NETWORK_CHECK(n->networks->load(n->network, path, &host->error) == GRAFT_OK);
    NETWORK_CHECK(network_train(host, n, 0, 1, NULL) == GRAFT_OK);
    if (host->rank == 0) unlink(path);
    return GRAFT_OK;
}

/* Options of messages that networks do not support. */
static int32_t options_refused(struct host *host)
{
    struct network_case *what = host->all->arg;
    struct network_rank  n = { 0 };
    const int32_t        rc = network_rank_init(host, what, &n);
    const char          *word = what->arg;

    network_rank_fini(&n);
    NETWORK_CHECK(rc == GRAFT_ERR_OPTION && strstr(host->error.message, word) != NULL);
    return GRAFT_OK;
}

static void refuse_options(const char *settings, char *word)
{
    const char *fault;

    scene.arg = word;
    fault = network_run(&scene, &mesh, RANKS, CUT_RANDOM, settings, options_refused);
    ok_or(fault == NULL, fault, "%s is refused", settings);
}

int main(void)
{
    const char   *settings = "model.type=f64 hidden=4 layers=1 mgn.linear=1 lr=0.01 halo.timeout=20";
    struct sample sample = { 5 };

    alarm(100);
    test_mesh_init(&mesh, &sample, SHAPE_TRIANGLES, 4, 0, 1000);
    scene.predicts = GRAFT_PREDICTS_CHANGE;
    scene.dtype = GRAFT_F64;
    network_test(&scene, &mesh, RANKS, CUT_SHARED, "misuse on one of the ranks", settings, misuse);
    network_test(&scene, &mesh, RANKS, CUT_SHARED, "items set by one rank alone", settings, set_alone);
    refuse_options("halo.codec=adaptive", "halo.codec");
    refuse_options("halo.staleness=1", "halo.staleness");
    ok(sizeof cases / sizeof *cases >= 30, "%zu cases of misuse of networks are refused", sizeof cases / sizeof *cases);
    test_mesh_fini(&mesh);
    return done();
}
