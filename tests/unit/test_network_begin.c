/* begin() and end() of graft_network.h where a rank calls them wrongly: its status, and that of the others.
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness/networks.h"
#include "harness/tap.h"
#include "oracle/oracle.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

enum { RANKS = 3, WRONG = 1 };

static struct test_mesh    mesh;
static struct network_case scene;

/* begin() and end() check arguments on their rank alone: the others wait, and the call is made again. */
static int32_t begin_again(struct host *host, struct network_rank *n)
{
    graft_field input = network_state(n, NETWORK_IN, 0), output = network_field(n, NETWORK_OUT);

    if (host->rank == WRONG) {
        NETWORK_CHECK(n->networks->end(n->network, &output, &host->error) == GRAFT_ERR_STATE);
        input.n_columns--;
        NETWORK_CHECK(n->networks->begin(n->network, &input, &host->error) == GRAFT_ERR_ARG);
        input.n_columns++;
        NETWORK_CHECK(n->networks->begin(n->network, NULL, &host->error) == GRAFT_ERR_ARG);
    }
    NETWORK_CHECK(n->networks->begin(n->network, &input, &host->error) == GRAFT_OK);
    if (host->rank == WRONG) {
        NETWORK_CHECK(n->networks->begin(n->network, &input, &host->error) == GRAFT_ERR_STATE);
        output.n_rows++;
        NETWORK_CHECK(n->networks->end(n->network, &output, &host->error) == GRAFT_ERR_ARG);
        output.n_rows--;
    }
    NETWORK_CHECK(n->networks->end(n->network, &output, &host->error) == GRAFT_OK);
    free(input.data);
    free(output.data);
    return GRAFT_OK;
}

/* One rank drops its result, and others have theirs. */
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
        NETWORK_CHECK(network_field_at(&output, row, 0) == network_field_at(&again, row, 0));
    free(input.data);
    free(output.data);
    free(again.data);
    return GRAFT_OK;
}

/* With halo.nonfinite=refuse an input that is not finite is refused before a row is sent: the call is made again.
 * Rows of the host begin with 1. */
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
        NETWORK_CHECK(n->networks->begin(n->network, &input, &host->error) == GRAFT_ERR_NONFINITE);
        NETWORK_CHECK(strstr(host->error.message, where) != NULL);
    }
    NETWORK_CHECK(n->networks->rollout(n->network, &rollout, &host->error) == GRAFT_ERR_NONFINITE);
    NETWORK_CHECK(n->networks->ensemble(&n->network, 1, &input, &output, NULL, &host->error) == GRAFT_ERR_NONFINITE);
    if (host->rank == WRONG) network_field_put(&input, row, 1, before);
    NETWORK_CHECK(n->networks->begin(n->network, &input, &host->error) == GRAFT_OK);
    NETWORK_CHECK(n->networks->end(n->network, &output, &host->error) == GRAFT_OK);
    free(input.data);
    free(output.data);
    return GRAFT_OK;
}

/* Messages in flight are abandoned: nothing is written to memory that was freed, and other networks of the mesh say
 * why they cannot be used. */
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
    const char   *settings = "model.type=f64 mgn.width=4 mgn.layers=1 mgn.linear=1 mgn.lr=0.01 halo.timeout=20";
    struct sample sample = { 5 };

    alarm(100);
    test_mesh_init(&mesh, &sample, SHAPE_TRIANGLES, 4, 0, 1000);
    scene.predicts = GRAFT_PREDICTS_CHANGE;
    scene.dtype = GRAFT_F64;
    network_test(&scene, &mesh, RANKS, CUT_RANDOM, "begin and end are made again", settings, begin_again);
    network_test(&scene, &mesh, RANKS, CUT_RANDOM, "a result is dropped", settings, drop_result);
    network_test(&scene, &mesh, RANKS, CUT_RANDOM | CUT_I64, "a value that is not finite is refused",
                 "mgn.width=4 mgn.layers=2 halo.codec=q8 halo.nonfinite=refuse halo.timeout=20", begin_with_nan);
    network_test(&scene, &mesh, RANKS, CUT_RANDOM, "destroyed between begin and end", settings, destroy_begun);
    network_test(&scene, &mesh, RANKS, CUT_SHARED, "the same with shared nodes", settings, destroy_begun);
    test_mesh_fini(&mesh);
    return done();
}
