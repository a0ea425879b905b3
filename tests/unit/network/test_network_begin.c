/* Checks begin() and end() of graft_network.h when one rank calls them wrongly: the status of that rank, and the status
 * of all others.
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

/* Expect this status on all ranks, with the sentence of rank WRONG. */
#define REFUSED_BY_ONE(status, call)                                                                                   \
    do {                                                                                                               \
        NETWORK_CHECK((call) == (status));                                                                             \
        NETWORK_CHECK(host->error.rank == WRONG && strncmp(host->error.message, "rank 1: ", 8) == 0);                  \
    } while (0)

static int32_t begin_and_end(struct host *host, struct network_rank *n, const graft_field *input, graft_field *output)
{
    const int32_t rc = n->networks->begin(n->network, input, &host->error);

    return rc < 0 ? rc : n->networks->end(n->network, output, &host->error);
}

/* A wrong argument of one rank to begin() or end() must be refused on all ranks, which begin again. A begin() after a
 * begin(), or an end() without one, is refused on each rank. */
static int32_t begin_again(struct host *host, struct network_rank *n)
{
    graft_field input = network_state(n, NETWORK_IN, 0), output = network_field(n, NETWORK_OUT);
    const int   is_wrong = host->rank == WRONG;

    NETWORK_CHECK(n->networks->end(n->network, &output, &host->error) == GRAFT_ERR_STATE);
    input.n_columns -= is_wrong;
    REFUSED_BY_ONE(GRAFT_ERR_ARG, begin_and_end(host, n, &input, &output));
    input.n_columns += is_wrong;
    REFUSED_BY_ONE(GRAFT_ERR_ARG, begin_and_end(host, n, is_wrong ? NULL : &input, &output));
    NETWORK_CHECK(n->networks->begin(n->network, &input, &host->error) == GRAFT_OK);
    NETWORK_CHECK(n->networks->begin(n->network, &input, &host->error) == GRAFT_ERR_STATE);
    output.n_rows += is_wrong;
    REFUSED_BY_ONE(GRAFT_ERR_ARG, n->networks->end(n->network, &output, &host->error));
    output.n_rows -= is_wrong;
    NETWORK_CHECK(n->networks->end(n->network, &output, &host->error) == GRAFT_ERR_STATE);
    NETWORK_CHECK(begin_and_end(host, n, &input, &output) == GRAFT_OK);
    free(input.data);
    free(output.data);
    return GRAFT_OK;
}

/* One rank drops its result, and the others must have theirs. */
static int32_t drop_result(struct host *host, struct network_rank *n)
{
    graft_field input = network_state(n, NETWORK_IN, 0), output = network_field(n, NETWORK_OUT);
    graft_field again = network_field(n, NETWORK_OUT);

    for (int k = 0; k < 2; k++) {
        NETWORK_CHECK(n->networks->begin(n->network, &input, &host->error) == GRAFT_OK);
        NETWORK_CHECK(n->networks->end(n->network,
                                       host->rank == WRONG && k == 0 ? NULL
                                       : k == 0                      ? &output
                                                                     : &again,
                                       &host->error) == GRAFT_OK);
        NETWORK_CHECK(n->networks->end(n->network, NULL, &host->error) == GRAFT_ERR_STATE);
    }
    for (int64_t row = 0; row < output.n_rows && host->rank != WRONG; row++)
        NETWORK_CHECK(!network_is_written(n, row) ||
                      network_field_at(&output, row, 0) == network_field_at(&again, row, 0));
    free(input.data);
    free(output.data);
    free(again.data);
    return GRAFT_OK;
}

/* With halo.nonfinite=refuse an input that is not finite must be refused on all ranks, which repeat the call. Row
 * numbers of the host begin with 1. */
static int32_t begin_with_nan(struct host *host, struct network_rank *n)
{
    graft_field   input = network_state(n, NETWORK_IN, 0), output = network_field(n, NETWORK_OUT);
    graft_rollout rollout = GRAFT_INIT(graft_rollout);
    int64_t       row = 0;
    double        before;
    char          where[64];

    while (!network_has_row(n, host->rank, row)) row++;
    before = network_field_at(&input, row, 1);
    rollout.steps = 2;
    rollout.initial = rollout.state = &input;
    if (host->rank == WRONG) {
        snprintf(where, sizeof where, "nan in row %d, column 1", (int)row + 1);
        network_field_put(&input, row, 1, (double)NAN);
    }
    REFUSED_BY_ONE(GRAFT_ERR_NONFINITE, begin_and_end(host, n, &input, &output));
    if (host->rank == WRONG) NETWORK_CHECK(strstr(host->error.message, where) != NULL);
    NETWORK_CHECK(n->networks->rollout(n->network, &rollout, &host->error) == GRAFT_ERR_NONFINITE);
    NETWORK_CHECK(n->networks->ensemble(&n->network, 1, &input, &output, NULL, &host->error) == GRAFT_ERR_NONFINITE);
    if (host->rank == WRONG) network_field_put(&input, row, 1, before);
    NETWORK_CHECK(n->networks->begin(n->network, &input, &host->error) == GRAFT_OK);
    NETWORK_CHECK(n->networks->end(n->network, &output, &host->error) == GRAFT_OK);
    free(input.data);
    free(output.data);
    return GRAFT_OK;
}

/* The row of the first node that all ranks have; the result is 0 if there is none. */
static int64_t shared_row(const struct network_rank *n, int64_t *id)
{
    const struct mesh_cut *cut = &n->what->cut;

    for (int64_t row = 0; row < n->part.args.n_rows; row++) {
        const int32_t v = n->part.node[row];

        if (!cut->has_node[v] || !cut->has_node[cut->mesh->n_nodes + v]) continue;
        *id = cut->mesh->id[v];
        return row;
    }
    return -1;
}

/* The same for offer(): a state on one rank, or a target, that differs must be refused, and the stream be as before.
 * `state` has a wrong value at `row` of the wrong rank, and `before` is the right one. */
static int32_t compare_offers(struct host *host, struct network_rank *n, graft_sample_state *state, int64_t row,
                              double before)
{
    const graft_stream_api *streams = graft_interface(host->api, GRAFT_STREAM_ID, sizeof *streams);
    graft_stream           *stream = NULL;
    graft_stream_status     status = GRAFT_INIT(graft_stream_status);
    graft_field            *input = (graft_field *)(uintptr_t)state->input;

    NETWORK_CHECK(streams->create(n->network, &stream, &host->error) == GRAFT_OK);
    NETWORK_CHECK(streams->offer(stream, state, &host->error) == GRAFT_ERR_FORMAT && host->error.rank == 0);
    NETWORK_CHECK(strstr(host->error.message, "rank 0: state.input: rank 1 has") != NULL);
    if (host->rank == WRONG) network_field_put(input, row, 1, before);
    NETWORK_CHECK(streams->offer(stream, state, &host->error) == GRAFT_ERR_FORMAT);
    NETWORK_CHECK(strstr(host->error.message, "rank 0: state.target: rank 1 has") != NULL);
    state->target = NULL;
    NETWORK_CHECK(streams->offer(stream, state, &host->error) == GRAFT_OK);
    NETWORK_CHECK(streams->status(stream, &status, &host->error) == GRAFT_OK && status.offered == 1);
    streams->destroy(stream);
    return GRAFT_OK;
}

/* With check=full a copy of a node whose state differs between ranks must be found in each call that reads states, with
 * its id and both ranks. */
static int32_t compare_states(struct host *host, struct network_rank *n)
{
    graft_field        input = network_state(n, NETWORK_IN, 0), output = network_field(n, NETWORK_OUT);
    graft_field        target = network_state(n, NETWORK_OUT, 1);
    graft_rollout      rollout = GRAFT_INIT(graft_rollout);
    graft_network_step step = GRAFT_INIT(graft_network_step);
    graft_pair         pair = GRAFT_INIT(graft_pair);
    graft_sample_state offered = GRAFT_INIT(graft_sample_state);
    int64_t            id = -1, row = shared_row(n, &id);
    double             before = row >= 0 ? network_field_at(&input, row, 1) : 0;
    char               name[32];

    pair.input = &input;
    pair.target = &target;
    offered.input = &input;
    offered.target = &target;
    rollout.steps = 1;
    rollout.initial = rollout.state = &input;
    if (host->rank == WRONG) {
        NETWORK_CHECK(row >= 0);
        network_field_put(&input, row, 1, before + 0.5);
    }
    NETWORK_CHECK(begin_and_end(host, n, &input, &output) == GRAFT_ERR_FORMAT && host->error.rank == 0);
    NETWORK_CHECK(strstr(host->error.message, "rank 0: the input: rank 1 has") != NULL);
    snprintf(name, sizeof name, "id %lld ", (long long)id);
    if (host->rank == WRONG) NETWORK_CHECK(strstr(host->error.message, name) != NULL);
    NETWORK_CHECK(n->networks->rollout(n->network, &rollout, &host->error) == GRAFT_ERR_FORMAT);
    NETWORK_CHECK(n->networks->train(n->network, &pair, 1, &step, &host->error) == GRAFT_ERR_FORMAT);
    NETWORK_CHECK(strstr(host->error.message, "rank 0: the input of a pair: rank 1 has") != NULL);
    if (host->rank == WRONG) network_field_put(&target, row, 0, 17);
    NETWORK_CHECK(compare_offers(host, n, &offered, row, before) == GRAFT_OK);
    NETWORK_CHECK(n->networks->train(n->network, &pair, 1, &step, &host->error) == GRAFT_ERR_FORMAT);
    NETWORK_CHECK(begin_and_end(host, n, &input, &output) == GRAFT_OK);
    free(input.data);
    free(output.data);
    free(target.data);
    return GRAFT_OK;
}

/* Destroy a network while messages are in flight. Nothing may be written to freed memory, and other networks of the
 * mesh must say why they cannot be used. */
static int32_t destroy_begun(struct host *host, struct network_rank *n)
{
    graft_field    input = network_state(n, NETWORK_IN, 0), output = network_field(n, NETWORK_OUT);
    graft_network *other = NULL;
    int32_t        rc;

    NETWORK_CHECK(n->networks->create(n->mesh, &n->args, &other, &host->error) == GRAFT_OK);
    NETWORK_CHECK(n->networks->begin(n->network, &input, &host->error) == GRAFT_OK);
    n->networks->destroy(n->network);
    n->network = NULL;
    rc = n->networks->begin(other, &input, &host->error);
    if (rc == GRAFT_OK) rc = n->networks->end(other, &output, &host->error);
    NETWORK_CHECK(rc == GRAFT_ERR_PEER && strstr(host->error.message, "destroyed between begin and end") != NULL);
    n->networks->destroy(other);
    free(input.data);
    free(output.data);
    return GRAFT_OK;
}

int main(void)
{
    const char   *settings = "model.type=f64 hidden=4 layers=1 mgn.linear=1 lr=0.01 halo.timeout=20";
    struct sample sample = { 5 };

    alarm(100);
    test_mesh_init(&mesh, &sample, SHAPE_TRIANGLES, 4, 0, 1000);
    scene.predicts = GRAFT_PREDICTS_CHANGE;
    scene.dtype = GRAFT_F64;
    network_test(&scene, &mesh, RANKS, CUT_RANDOM, "begin and end are made again", settings, begin_again);
    network_test(&scene, &mesh, RANKS, CUT_RANDOM, "a result is dropped", settings, drop_result);
    network_test(&scene, &mesh, RANKS, CUT_RANDOM | CUT_I64, "a value that is not finite is refused",
                 "hidden=4 layers=2 halo.codec=q8 halo.nonfinite=refuse halo.timeout=20", begin_with_nan);
    network_test(&scene, &mesh, 2, CUT_SHARED, "check=full compares copies of states",
                 "hidden=4 layers=2 check=full halo.timeout=20", compare_states);
    network_test(&scene, &mesh, RANKS, CUT_RANDOM, "destroyed between begin and end", settings, destroy_begun);
    network_test(&scene, &mesh, RANKS, CUT_SHARED, "the same with shared nodes", settings, destroy_begun);
    test_mesh_fini(&mesh);
    return done();
}
