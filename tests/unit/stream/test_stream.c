/* Checks graft_stream.h over 1 to 4 ranks: which pairs are kept, lag and interval, the memory limit, time budgets,
 * states that are not finite, patience, and checkpoints from which training continues bitwise identically.
 * SPDX-License-Identifier: Apache-2.0 */
#include "draft/graft_stream.h"
#include "graft_load.h"
#include "harness/files.h"
#include "harness/networks.h"
#include "harness/tap.h"
#include "oracle/oracle.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

#define TINY "model.type=f64 hidden=4 layers=1 mgn.linear=2 mgn.schedule=constant:0 lr=0.01 halo.timeout=30 "

static struct test_mesh    mesh;
static struct network_case scene;
static char                folder[] = "/tmp/graft-stream-XXXXXX";

static const graft_stream_api *streams_of(const struct host *host)
{
    return graft_interface(host->api, GRAFT_STREAM_ID, sizeof(graft_stream_api));
}

/* Offer the state at a time. On the last rank one of its values may be wrong. */
static int32_t offer_state(struct host *host, struct network_rank *n, graft_stream *stream, double time, uint32_t flags,
                           int with_target, double wrong)
{
    graft_field        input = network_state(n, NETWORK_IN, time), target = network_state(n, NETWORK_OUT, time + 1);
    graft_sample_state state = GRAFT_INIT(graft_sample_state);
    int64_t            row = 0;
    int32_t            rc;

    while (row < input.n_rows && !network_has_row(n, host->rank, row)) row++;
    if (wrong != 0 && host->rank == host->n_ranks - 1 && row < input.n_rows) network_field_put(&input, row, 1, wrong);
    state.input = &input;
    state.target = with_target ? &target : NULL;
    state.flags = flags;
    state.time = time;
    rc = streams_of(host)->offer(stream, &state, &host->error);
    free(input.data);
    free(target.data);
    return rc;
}

static graft_stream_status status_of(struct host *host, const graft_stream *stream)
{
    graft_stream_status status = GRAFT_INIT(graft_stream_status);

    streams_of(host)->status(stream, &status, &host->error);
    return status;
}

/* With lag 3 and interval 2 a pair begins with states 0, 2, 4, ..., and ends three states later. In a new run the
 * states are counted from 0 again. */
static int32_t count_stream_pairs(struct host *host, struct network_rank *n)
{
    graft_stream *stream = NULL, *other = NULL;

    NETWORK_CHECK(streams_of(host)->create(n->network, &stream, &host->error) == GRAFT_OK);
    NETWORK_CHECK(streams_of(host)->create(n->network, &other, &host->error) == GRAFT_ERR_STATE);
    for (int k = 0; k < 10; k++) {
        NETWORK_CHECK(offer_state(host, n, stream, k, k == 0 ? GRAFT_STREAM_FIRST : 0, 0, 0) == GRAFT_OK);
        NETWORK_CHECK(status_of(host, stream).pairs == (k < 3 ? 0 : (k - 1) / 2));
    }
    NETWORK_CHECK(offer_state(host, n, stream, 20, GRAFT_STREAM_FIRST, 0, 0) == GRAFT_OK);
    for (int k = 0; k < 2; k++) NETWORK_CHECK(offer_state(host, n, stream, 21 + k, 0, 0, 0) == GRAFT_OK);
    NETWORK_CHECK(status_of(host, stream).pairs == 4); /* states of another run end no pair */
    NETWORK_CHECK(offer_state(host, n, stream, 23, 0, 0, 0) == GRAFT_OK && status_of(host, stream).pairs == 5);
    NETWORK_CHECK(offer_state(host, n, stream, 24, 0, 1, 0) == GRAFT_OK && status_of(host, stream).pairs == 6);
    NETWORK_CHECK(status_of(host, stream).held_out == 1 && status_of(host, stream).kept == 5);
    NETWORK_CHECK(status_of(host, stream).offered == 15 && status_of(host, stream).time == 24);
    n->networks->destroy(n->network); /* the stream keeps the network alive */
    n->network = NULL;
    streams_of(host)->destroy(stream);
    return GRAFT_OK;
}

/* Mix states that have their own target with other states. A state with a target cannot be the end of an earlier pair,
 * so pairs that wait for it must be discarded. */
static int32_t mix_targets(struct host *host, struct network_rank *n)
{
    graft_stream *stream = NULL;
    char          path[64];

    snprintf(path, sizeof path, "%s/mixed", folder);
    NETWORK_CHECK(streams_of(host)->create(n->network, &stream, &host->error) == GRAFT_OK);
    /* Each group of three has a state with its own target, a state that begins a pair, and a state that ends it. */
    for (int k = 0; k < 30; k++) {
        NETWORK_CHECK(offer_state(host, n, stream, k, 0, k % 3 == 0, 0) == GRAFT_OK);
        NETWORK_CHECK(status_of(host, stream).pairs == 2 * (k / 3) + 1 + (k % 3 == 2));
    }
    NETWORK_CHECK(streams_of(host)->save(stream, path, &host->error) == GRAFT_OK);
    NETWORK_CHECK(streams_of(host)->load(stream, path, &host->error) == GRAFT_OK);
    NETWORK_CHECK(offer_state(host, n, stream, 30, 0, 0, 0) == GRAFT_OK && status_of(host, stream).pairs == 21);
    streams_of(host)->destroy(stream);
    return GRAFT_OK;
}

/* Change the position for which the last input of a checkpoint waits, in a file without checksums. */
static int move_due(const char *path, int64_t due)
{
    char  text[20000], *at;
    long  length, begin, end;
    FILE *file = fopen(path, "r+");
    int   good = file != NULL;

    if (!good) return 0;
    length = (long)fread(text, 1, sizeof text - 1, file);
    text[length] = '\0';
    for (char *p = text + 8; (p = strstr(p, "crc32c")) != NULL;) memcpy(p, "no crc", 6);
    at = strstr(text + 8, "\"stream.pairs\"");
    at = at != NULL ? strstr(at, "offsets\":[") : NULL;
    good = at != NULL && sscanf(at, "offsets\":[%ld,%ld", &begin, &end) == 2 && fseek(file, 0, SEEK_SET) == 0 &&
           fwrite(text, 1, (size_t)length, file) == (size_t)length &&
           fseek(file, 8 + (long)*(int64_t *)(void *)text + end - 8, SEEK_SET) == 0 &&
           fwrite(&due, sizeof due, 1, file) == 1;
    return fclose(file) == 0 && good;
}

/* With lag 3 and interval 2, after five states those at 2 and 4 wait for 5 and 7. */
static int32_t refuse_due(struct host *host, struct network_rank *n)
{
    static const int64_t wrong[] = { 4, 5, 6, 8, 9, INT64_MAX };
    graft_stream        *stream = NULL;
    char                 path[64], of_rank[80];

    snprintf(path, sizeof path, "%s/due", folder);
    snprintf(of_rank, sizeof of_rank, "%s.%d", path, host->rank);
    NETWORK_CHECK(streams_of(host)->create(n->network, &stream, &host->error) == GRAFT_OK);
    for (int k = 0; k < 5; k++) NETWORK_CHECK(offer_state(host, n, stream, k, 0, 0, 0) == GRAFT_OK);
    NETWORK_CHECK(streams_of(host)->save(stream, path, &host->error) == GRAFT_OK);
    for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++) {
        NETWORK_CHECK(move_due(of_rank, wrong[k]));
        NETWORK_CHECK(streams_of(host)->load(stream, path, &host->error) == GRAFT_ERR_FORMAT);
        NETWORK_CHECK(strstr(host->error.message, "its pairs do not belong to a stream") != NULL);
    }
    NETWORK_CHECK(move_due(of_rank, 7) && streams_of(host)->load(stream, path, &host->error) == GRAFT_OK);
    streams_of(host)->destroy(stream);
    return GRAFT_OK;
}

/* Offer ten thousand states: the memory limit must hold, and the kept pairs must be evenly spread (reservoir) or the
 * last ones (fifo). The network predicts 0, so that its loss in a step shows the time of the pair. */
static int32_t keep_within_limit(struct host *host, struct network_rank *n)
{
    graft_stream       *stream = NULL;
    graft_stream_status status;

    NETWORK_CHECK(streams_of(host)->create(n->network, &stream, &host->error) == GRAFT_OK);
    status = status_of(host, stream);
    NETWORK_CHECK(status.capacity > 3 && status.capacity < 3000);
    for (int k = 0; k < 10000; k++) {
        NETWORK_CHECK(offer_state(host, n, stream, 0.001 * k, 0, 0, 0) == GRAFT_OK);
        if (k % 500 == 0) NETWORK_CHECK(status_of(host, stream).bytes <= 1000000);
    }
    status = status_of(host, stream);
    NETWORK_CHECK(status.bytes <= 1000000 && (host->n_ranks > 1 || status.bytes > 500000));
    NETWORK_CHECK(status.kept == status.capacity && status.pairs == 9999);
    streams_of(host)->destroy(stream);
    return GRAFT_OK;
}

/* Check time budgets of step(). The first steps are made to measure their time. A budget that is too small must make no
 * step, and a large budget must make several steps. */
static int32_t keep_budgets(struct host *host, struct network_rank *n)
{
    graft_stream       *stream = NULL;
    graft_stream_status s = GRAFT_INIT(graft_stream_status);
    int64_t             steps;

    NETWORK_CHECK(streams_of(host)->create(n->network, &stream, &host->error) == GRAFT_OK);
    NETWORK_CHECK(streams_of(host)->step(stream, 1, 0, &s, &host->error) == GRAFT_OK &&
                  s.reason == GRAFT_STREAM_NO_PAIRS);
    NETWORK_CHECK(s.steps_now == 0 && isnan(s.loss) && s.seconds_of_step == 0);
    for (int k = 0; k < 5; k++) NETWORK_CHECK(offer_state(host, n, stream, k, 0, 0, 0) == GRAFT_OK);
    NETWORK_CHECK(streams_of(host)->step(stream, 0, 0, &s, &host->error) == GRAFT_OK &&
                  s.reason == GRAFT_STREAM_BUDGET_SMALL);
    NETWORK_CHECK(s.steps_now == 0 && isnan(s.loss));
    NETWORK_CHECK(streams_of(host)->step(stream, 1e-6, 0, &s, &host->error) == GRAFT_OK && s.steps_now == 1);
    NETWORK_CHECK(s.reason == GRAFT_STREAM_BUDGET_USED && s.seconds_of_step > 0 && s.loss > 0);
    NETWORK_CHECK(streams_of(host)->step(stream, 0, 0, &s, &host->error) == GRAFT_OK && s.steps_now == 0);
    for (int k = 0; k < 9; k++) { /* includes two more first steps, whose time is measured */
        NETWORK_CHECK(streams_of(host)->step(stream, host->rank == 0 ? 1e-6 : 1e6, 0, &s, &host->error) == GRAFT_OK);
        NETWORK_CHECK(s.seconds_of_step > 0 && s.steps_now == (k == 1 || k == 3) && s.steps == 1 + (k >= 1) + (k >= 3));
        if (s.steps_now == 0) NETWORK_CHECK(s.reason == GRAFT_STREAM_BUDGET_SMALL && isnan(s.loss));
    }
    NETWORK_CHECK(streams_of(host)->step(stream, 1e6, 7, &s, &host->error) == GRAFT_OK && s.steps_now == 7);
    NETWORK_CHECK(s.reason == GRAFT_STREAM_STEPS_DONE && s.steps == 10);
    steps = s.steps;
    NETWORK_CHECK(streams_of(host)->step(stream, 60, 0, &s, &host->error) == GRAFT_OK);
    NETWORK_CHECK(s.reason == GRAFT_STREAM_BUDGET_USED || s.reason == GRAFT_STREAM_BUDGET_SMALL);
    NETWORK_CHECK(s.steps == steps + s.steps_now && s.seconds < 10);
    NETWORK_CHECK(streams_of(host)->step(stream, -1, 0, &s, &host->error) == GRAFT_ERR_ARG);
    NETWORK_CHECK(streams_of(host)->step(stream, (double)NAN, 0, &s, &host->error) == GRAFT_ERR_ARG);
    NETWORK_CHECK(streams_of(host)->step(stream, 1, -1, &s, &host->error) == GRAFT_ERR_ARG);
    NETWORK_CHECK(streams_of(host)->step(stream, 1e6, 1, NULL, &host->error) == GRAFT_OK);
    streams_of(host)->destroy(stream);
    return GRAFT_OK;
}

/* A state is not finite on one rank. */
static int32_t refuse_states(struct host *host, struct network_rank *n)
{
    graft_stream *stream = NULL;

    NETWORK_CHECK(streams_of(host)->create(n->network, &stream, &host->error) == GRAFT_OK);
    for (int k = 0; k < 3; k++) NETWORK_CHECK(offer_state(host, n, stream, k, 0, 0, 0) == GRAFT_OK);
    NETWORK_CHECK(offer_state(host, n, stream, 3, 0, 0, (double)NAN) == GRAFT_ERR_NONFINITE);
    NETWORK_CHECK(strstr(host->error.message, "state.input has nan in row ") != NULL);
    NETWORK_CHECK(offer_state(host, n, stream, 3, 0, 0, INFINITY) == GRAFT_ERR_NONFINITE);
    NETWORK_CHECK(status_of(host, stream).offered == 3 && status_of(host, stream).dropped == 0);
    NETWORK_CHECK(status_of(host, stream).pairs == 2);
    NETWORK_CHECK(offer_state(host, n, stream, 3, 0, 0, 0) == GRAFT_OK && status_of(host, stream).pairs == 3);
    host_set(host->api, "stream.nonfinite=drop");
    NETWORK_CHECK(offer_state(host, n, stream, 4, 0, 0, (double)NAN) == GRAFT_OK);
    NETWORK_CHECK(status_of(host, stream).dropped == 1 && status_of(host, stream).pairs == 3);
    NETWORK_CHECK(offer_state(host, n, stream, 5, 0, 0, 0) == GRAFT_OK && status_of(host, stream).pairs == 3);
    NETWORK_CHECK(offer_state(host, n, stream, 6, 0, 0, 0) == GRAFT_OK && status_of(host, stream).pairs == 4);
    streams_of(host)->destroy(stream);
    return GRAFT_OK;
}

/* Without training no validation is better than the first one. */
static int32_t advise_to_stop(struct host *host, struct network_rank *n)
{
    graft_stream       *stream = NULL;
    graft_stream_status s = GRAFT_INIT(graft_stream_status);

    NETWORK_CHECK(streams_of(host)->create(n->network, &stream, &host->error) == GRAFT_OK);
    NETWORK_CHECK(streams_of(host)->validate(stream, &s, &host->error) == GRAFT_ERR_STATE);
    for (int k = 0; k < 7; k++) NETWORK_CHECK(offer_state(host, n, stream, k, 0, 0, 0) == GRAFT_OK);
    NETWORK_CHECK(streams_of(host)->step(stream, 1e6, 2, &s, &host->error) == GRAFT_OK && isnan(s.validation));
    NETWORK_CHECK(streams_of(host)->validate(stream, &s, &host->error) == GRAFT_OK && s.validation == s.best);
    NETWORK_CHECK(s.held_out == 2 && s.validation > 0 && !s.should_stop);
    for (int k = 0; k < 2; k++) NETWORK_CHECK(streams_of(host)->validate(stream, &s, &host->error) == GRAFT_OK);
    NETWORK_CHECK(s.should_stop && s.validation == s.best);
    NETWORK_CHECK(streams_of(host)->step(stream, 1e6, 30, &s, &host->error) == GRAFT_OK);
    NETWORK_CHECK(streams_of(host)->validate(stream, &s, &host->error) == GRAFT_OK && !s.should_stop &&
                  s.validation == s.best);
    streams_of(host)->destroy(stream);
    return GRAFT_OK;
}

/* Make the offers and steps k to end - 1 of a run. */
static int32_t run_on(struct host *host, struct network_rank *n, graft_stream *stream, int k, int end,
                      graft_stream_status *s)
{
    int32_t rc = GRAFT_OK;

    for (; k < end && rc == GRAFT_OK; k++) {
        rc = offer_state(host, n, stream, 0.3 * k, k % 9 == 0 ? GRAFT_STREAM_FIRST : 0, 0, 0);
        if (rc == GRAFT_OK) rc = streams_of(host)->step(stream, 1e6, 2, s, &host->error);
        if (rc == GRAFT_OK && s->held_out > 0 && k % 4 == 0) rc = streams_of(host)->validate(stream, s, &host->error);
    }
    return rc;
}

/* An interrupted run must be bitwise identical to one that was not interrupted. */
static int32_t continue_run(struct host *host, struct network_rank *n)
{
    graft_stream       *stream = NULL;
    graft_network      *fresh = NULL;
    graft_stream_status whole = GRAFT_INIT(graft_stream_status), s = GRAFT_INIT(graft_stream_status);
    uint64_t            expected, before;
    char                path[64], of_rank[80];
    FILE               *file;

    snprintf(path, sizeof path, "%s/checkpoint", folder);
    snprintf(of_rank, sizeof of_rank, "%s.%d", path, host->rank);
    NETWORK_CHECK(streams_of(host)->create(n->network, &stream, &host->error) == GRAFT_OK);
    NETWORK_CHECK(run_on(host, n, stream, 0, 14, &whole) == GRAFT_OK);
    NETWORK_CHECK(streams_of(host)->save(stream, path, &host->error) == GRAFT_OK);
    NETWORK_CHECK(run_on(host, n, stream, 14, 40, &whole) == GRAFT_OK);
    expected = network_digest(n);
    streams_of(host)->destroy(stream);

    host_set(host->api, "seed=0");
    NETWORK_CHECK(n->networks->create(n->mesh, &n->args, &fresh, &host->error) == GRAFT_OK);
    n->networks->destroy(n->network);
    n->network = fresh;
    NETWORK_CHECK(streams_of(host)->create(n->network, &stream, &host->error) == GRAFT_OK);
    before = network_digest(n);
    NETWORK_CHECK(streams_of(host)->load(stream, "/nonexistent/checkpoint", &host->error) == GRAFT_ERR_NOT_FOUND);
    NETWORK_CHECK(before == network_digest(n));
    NETWORK_CHECK(streams_of(host)->load(stream, path, &host->error) == GRAFT_OK);
    NETWORK_CHECK(run_on(host, n, stream, 14, 40, &s) == GRAFT_OK && network_digest(n) == expected);
    NETWORK_CHECK(s.loss == whole.loss && s.validation == whole.validation && s.best == whole.best);
    NETWORK_CHECK(s.steps == whole.steps && s.kept == whole.kept && s.pairs == whole.pairs &&
                  s.held_out == whole.held_out);

    /* Damage on the last rank, and files of two times, must be refused on all ranks. */
    if (host->rank == host->n_ranks - 1) {
        file = fopen(of_rank, "r+");
        NETWORK_CHECK(file != NULL && fseek(file, -33, SEEK_END) == 0 && fputc(91, file) == 91 && fclose(file) == 0);
    }
    NETWORK_CHECK(streams_of(host)->load(stream, path, &host->error) == GRAFT_ERR_FORMAT &&
                  network_digest(n) == expected);
    NETWORK_CHECK(strstr(host->error.message, "is damaged") != NULL);
    if (host->n_ranks > 1) {
        char later[72], name[96], other[96];

        snprintf(later, sizeof later, "%s/later", folder);
        NETWORK_CHECK(streams_of(host)->save(stream, path, &host->error) == GRAFT_OK);
        NETWORK_CHECK(run_on(host, n, stream, 40, 41, &s) == GRAFT_OK);
        NETWORK_CHECK(streams_of(host)->save(stream, later, &host->error) == GRAFT_OK);
        snprintf(name, sizeof name, "%s.0", later);
        snprintf(other, sizeof other, "%s.0", path);
        if (host->rank == 0) NETWORK_CHECK(rename(name, other) == 0);
        NETWORK_CHECK(streams_of(host)->load(stream, path, &host->error) == GRAFT_ERR_FORMAT);
        NETWORK_CHECK(strstr(host->error.message, "do not belong together") != NULL);
    }
    NETWORK_CHECK(run_on(host, n, stream, 41, 44, &s) == GRAFT_OK);
    streams_of(host)->destroy(stream);
    return GRAFT_OK;
}

/* Every allocation from create() to load() fails in turn. */
static int32_t fail_stream(struct host *host)
{
    int32_t rc = GRAFT_ERR_NOMEM;
    char    path[64];

    snprintf(path, sizeof path, "%s/faults", folder);
    for (int64_t k = 0; rc == GRAFT_ERR_NOMEM && k < 3000; k++) {
        graft_stream       *stream = NULL;
        struct network_rank n;
        graft_stream_status s = GRAFT_INIT(graft_stream_status);

        rc = network_rank_init(host, &scene, &n);
        atomic_store(&host->fail_at, k);
        if (rc == GRAFT_OK) rc = streams_of(host)->create(n.network, &stream, &host->error);
        if (rc == GRAFT_OK) rc = run_on(host, &n, stream, 0, 6, &s);
        if (rc == GRAFT_OK) rc = streams_of(host)->save(stream, path, &host->error);
        if (rc == GRAFT_OK) rc = streams_of(host)->load(stream, path, &host->error);
        if (rc == GRAFT_OK && k < 20) rc = network_blame(host, "only %d allocations may fail", (int)k);
        atomic_store(&host->fail_at, -1);
        if (rc == GRAFT_ERR_NOMEM && stream != NULL && run_on(host, &n, stream, 20, 23, &s) != GRAFT_OK)
            rc = network_blame(host, "after allocation %d has failed, the run does not go on", (int)k);
        streams_of(host)->destroy(stream);
        network_rank_fini(&n);
    }
    return rc;
}

/* The memory limit allows no pair. */
static int32_t refuse_memory(struct host *host, struct network_rank *n)
{
    graft_stream *stream = NULL;

    NETWORK_CHECK(streams_of(host)->create(n->network, &stream, &host->error) == GRAFT_ERR_OPTION && stream == NULL);
    NETWORK_CHECK(strstr(host->error.message, "'stream.memory' is 1 MB") != NULL);
    return GRAFT_OK;
}

int main(void)
{
    struct sample sample = { 5 };
    const int32_t ranks[] = { 1, 2, 4 };
    const char   *fault;

    alarm(250);
    if (!ok(mkdtemp(folder) != NULL, "a folder for the test is made")) return done();
    test_mesh_init(&mesh, &sample, SHAPE_TRIANGLES, 4, 0, 1000);
    scene.predicts = GRAFT_PREDICTS_CHANGE;
    scene.dtype = GRAFT_F64;
    scene.has_boundary = 1;
    for (int k = 0; k < 3; k++) {
        const int how = k == 1 ? CUT_SHARED | CUT_RANDOM : CUT_RANDOM;

        network_test(&scene, &mesh, ranks[k], how, "pairs", TINY "stream.lag=3:2 stream.holdout=6", count_stream_pairs);
        network_test(&scene, &mesh, ranks[k], how, "targets", TINY, mix_targets);
        network_test(&scene, &mesh, ranks[k], how, "times", TINY "stream.lag=3:2", refuse_due);
        network_test(&scene, &mesh, ranks[k], how, "budgets", TINY "stream.batch=2", keep_budgets);
        network_test(&scene, &mesh, ranks[k], how, "states", TINY, refuse_states);
        network_test(&scene, &mesh, ranks[k], how, "patience", TINY "stream.holdout=3 patience=2", advise_to_stop);
        network_test(&scene, &mesh, ranks[k], how, "checkpoint",
                     TINY "stream.lag=2 stream.batch=3 stream.holdout=4 mgn.noise=0.1", continue_run);
    }
    network_test(&scene, &mesh, 1, 0, "memory", TINY "stream.memory=1", keep_within_limit);
    network_test(&scene, &mesh, 2, 0, "memory", TINY "stream.memory=1 stream.policy=fifo", keep_within_limit);
    network_test(&scene, &mesh, 1, 0, "no memory", TINY "stream.memory=1 stream.lag=100000", refuse_memory);
    fault = network_run(&scene, &mesh, 1, 0, TINY "stream.lag=2 stream.holdout=2", fail_stream);
    ok_fault("each allocation of a stream fails in turn", fault);
    remove_folder(folder);
    test_mesh_fini(&mesh);
    return done();
}
