/* This program over ranks: transports, the distributed graph, and collectives between the copies of this program.
 * SPDX-License-Identifier: Apache-2.0 */
#include "ranks.h"

#include "graft_load.h"
#include "progress.h"

#include <sched.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { TAG = 1, MESSAGE = 1000 }; /* messages of this size complete without a posted receive */

/** Variables that the launchers of Open MPI, and of MPICH and its relatives, set for their processes. */
static const char *const LAUNCHERS[][2] = { { "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK" },
                                            { "PMI_SIZE", "PMI_RANK" } };

static int number_of(const char *variable)
{
    const char *text = getenv(variable);

    return text != NULL ? atoi(text) : 0;
}

static int launched(int what)
{
    for (size_t i = 0; i < sizeof LAUNCHERS / sizeof *LAUNCHERS; i++)
        if (number_of(LAUNCHERS[i][0]) > 1) return number_of(LAUNCHERS[i][what]);
    return 1 - what;
}

int ranks_launched_rank(void)
{
    return launched(1);
}

int ranks_are_many(void)
{
    return launched(0) > 1;
}

int ranks_are_launched(void)
{
    for (size_t i = 0; i < sizeof LAUNCHERS / sizeof *LAUNCHERS; i++)
        if (getenv(LAUNCHERS[i][1]) != NULL) return 1;
    return 0;
}

static int32_t open_both(struct ranks *ranks, const struct library *library, graft_error *error)
{
    const graft_transports *transports =
        graft_interface(library->api, GRAFT_TRANSPORT_ID, GRAFT_HAS(graft_transports, open));
    graft_communicator all = GRAFT_INIT(graft_communicator);
    graft_context     *context = library->api->context;
    int32_t            rc;

    if (transports == NULL)
        return problem(error, GRAFT_ERR_VERSION, "Graft %s has no transports", library->api->version);
    all.start = 1;
    TRY(transports->open(context, "auto", &all, &ranks->for_library, error));
    all.start = 0;
    rc = transports->open(context, "auto", &all, &ranks->own, error);
    if (rc < 0) ranks->for_library.close(ranks->for_library.self);
    TRY(rc);
    ranks->is_open = 1;
    ranks->n_ranks = ranks->own.n_ranks;
    ranks->rank = ranks->own.rank;
done:
    return rc;
}

int32_t ranks_init(struct ranks *ranks, const struct library *library, graft_error *error)
{
    *ranks = (struct ranks){ .n_ranks = 1 };
    ranks->for_library = ranks->own = GRAFT_INIT(graft_transport);
    return ranks_are_many() ? open_both(ranks, library, error) : GRAFT_OK;
}

int32_t ranks_prepare(struct ranks *ranks, const struct library *library, graft_error *error)
{
    graft_option timeout;
    int32_t      rc;

    TRY(library_option(library, "halo.timeout", &timeout, error));
    ranks->timeout = strtod(timeout.value, NULL);
    ranks->reports = calloc((size_t)ranks->n_ranks, sizeof *ranks->reports);
    if (ranks->reports == NULL) rc = problem_memory(error, "the ranks");
done:
    return rc;
}

void ranks_fini(struct ranks *ranks, const struct library *library)
{
    if (ranks->graph != NULL) library->graphs->destroy(ranks->graph);
    for (int q = 0; q < ranks->n_ranks && ranks->reports != NULL; q++) free(ranks->reports[q].pairs);
    free(ranks->reports);
    ranks->graph = NULL;
    ranks->reports = NULL;
    if (!ranks->is_open) return;
    if (ranks->has_parted && ranks->own.abandon != NULL) ranks->own.abandon(ranks->own.self);
    ranks->own.close(ranks->own.self);
    ranks->for_library.close(ranks->for_library.self); /* also finalises MPI */
    ranks->is_open = 0;
}

/** The training vertices of the slice, which the partition balances; NULL if there are none or memory runs out, which
 *  is no error. The caller frees it. */
static uint8_t *training_mask(const graft_dataset *slice)
{
    const int64_t n = slice->n_slice;
    uint8_t      *mask = slice->split != NULL ? malloc((size_t)n + 1) : NULL;

    for (int64_t v = 0; v < n && mask != NULL; v++) mask[v] = slice->split[v] == GRAFT_SPLIT_TRAIN;
    return mask;
}

int32_t ranks_distribute(struct ranks *ranks, const struct library *library, const graft_dataset *slice,
                         graft_error *error)
{
    graft_slice rows = GRAFT_INIT(graft_slice);
    uint8_t    *mask = training_mask(slice);
    int32_t     rc;

    rows.n_vertices = slice->n_vertices;
    rows.first_row = slice->first_vertex;
    rows.rows = slice->graph;
    rows.train_mask = mask;
    TRY(library->graphs->create(library->api->context, &ranks->for_library, &rows, &ranks->graph, error));
    ranks->dataset = *slice;
    ranks->dataset.over = ranks->graph;
done:
    free(mask);
    return rc;
}

static int32_t fail_timeout(struct ranks *ranks, int32_t rank, graft_error *error)
{
    error->rank = rank;
    return problem(error, GRAFT_ERR_PEER, "rank %d did not answer in %.3g s", rank, ranks->timeout);
}

/** Wait for a message in flight. */
static int32_t await(struct ranks *ranks, int32_t peer, graft_request *request, double timeout, graft_error *error)
{
    const struct timespec  rest = { 0, 50000 };
    const graft_transport *t = &ranks->own;
    const double           begin = progress_clock();
    int32_t                done = 0, rc = GRAFT_OK;

    for (int turn = 0; rc == GRAFT_OK && !done; turn++) {
        rc = t->test(t->self, request, &done, error);
        if (rc == GRAFT_OK && !done && progress_clock() - begin > timeout) rc = fail_timeout(ranks, peer, error);
        if (!done && turn > 1000) nanosleep(&rest, NULL);
        else if (!done) sched_yield();
    }
    if (rc < 0) t->cancel(t->self, request);
    if (rc < 0) ranks->has_parted = 1;
    return rc;
}

static int32_t send_to(struct ranks *ranks, int32_t peer, const void *data, uint64_t bytes, graft_error *error)
{
    const graft_transport *t = &ranks->own;
    graft_request         *request = NULL;
    int32_t                rc;

    TRY(t->send(t->self, peer, TAG, data, bytes, &request, error));
    rc = await(ranks, peer, request, ranks->timeout, error);
done:
    return rc;
}

static int32_t receive_within(struct ranks *ranks, int32_t peer, void *data, uint64_t bytes, double timeout,
                              graft_error *error)
{
    const graft_transport *t = &ranks->own;
    graft_request         *request = NULL;
    int32_t                rc;

    TRY(t->receive(t->self, peer, TAG, data, bytes, &request, error));
    rc = await(ranks, peer, request, timeout, error);
done:
    return rc;
}

static int32_t receive_from(struct ranks *ranks, int32_t peer, void *data, uint64_t bytes, graft_error *error)
{
    return receive_within(ranks, peer, data, bytes, ranks->timeout, error);
}

struct answer {
    int32_t silent; /* a rank that did not answer rank 0, or -1 */
    char    value[MESSAGE];
};

/** Rank 0 receives the values of all ranks, and `choose` combines them in `mine`. *silent is the rank that did not
 *  answer, or -1. */
static int32_t gather(struct ranks *ranks, void *mine, uint64_t bytes, void (*choose)(void *mine, const void *other),
                      int32_t *silent, graft_error *error)
{
    char    other[MESSAGE];
    int32_t rc = GRAFT_OK;

    for (int q = 1; q < ranks->n_ranks; q++) {
        *silent = q;
        TRY(receive_from(ranks, q, other, bytes, error));
        choose(mine, other);
    }
    *silent = -1;
done:
    return rc;
}

/** Combine the values of all ranks on rank 0 and send the result, or the rank that did not answer, to all. */
static int32_t reduce(struct ranks *ranks, void *mine, uint64_t bytes, void (*choose)(void *mine, const void *other),
                      graft_error *error)
{
    const uint64_t size = offsetof(struct answer, value) + bytes;
    graft_error    ignored = GRAFT_INIT(graft_error);
    struct answer  answer = { .silent = -1 };
    int32_t        rc, sent;

    if (ranks->rank == 0) {
        rc = gather(ranks, mine, bytes, choose, &answer.silent, error);
        memcpy(answer.value, mine, bytes);
        for (int q = 1; q < ranks->n_ranks; q++) {
            if (q == answer.silent) continue;
            sent = send_to(ranks, q, &answer, size, rc < 0 ? &ignored : error);
            if (rc == GRAFT_OK) rc = sent;
        }
        return rc;
    }
    TRY(send_to(ranks, 0, mine, bytes, error));
    /* Twice the time, because rank 0 may be waiting for another rank. */
    TRY(receive_within(ranks, 0, &answer, size, 2 * ranks->timeout, error));
    if (answer.silent >= 0) TRY(fail_timeout(ranks, answer.silent, error));
    memcpy(mine, answer.value, bytes);
done:
    return rc;
}

struct outcome {
    int32_t rc, rank;
    char    message[448];
};

static void first_failure(void *mine, const void *other)
{
    const struct outcome *so_far = mine, *next = other;

    if (so_far->rc == GRAFT_OK && next->rc < 0) memcpy(mine, other, sizeof *so_far);
}

int32_t ranks_agree(struct ranks *ranks, int32_t rc, graft_error *error)
{
    struct outcome mine = { .rc = rc, .rank = ranks->rank };
    int32_t        sent;

    if (ranks->n_ranks == 1 || rc == GRAFT_ERR_PEER) return rc;
    if (rc < 0) memcpy(mine.message, error->message, sizeof mine.message);
    sent = reduce(ranks, &mine, sizeof mine, first_failure, error);
    if (sent < 0 || mine.rc == GRAFT_OK || mine.rank == ranks->rank) return sent < 0 ? sent : mine.rc;
    return problem(error, mine.rc, "rank %d: %.430s", mine.rank, mine.message);
}

static void largest(void *mine, const void *other)
{
    if (*(const int *)other > *(int *)mine) *(int *)mine = *(const int *)other;
}

int32_t ranks_largest(struct ranks *ranks, int *value, graft_error *error)
{
    return ranks->n_ranks > 1 ? reduce(ranks, value, sizeof *value, largest, error) : GRAFT_OK;
}

int32_t ranks_collect(struct ranks *ranks, const struct library *library, const int32_t *mine, int32_t *all,
                      graft_error *error)
{
    int64_t at = 0;
    int32_t rc = GRAFT_OK;

    for (int q = 0; q < ranks->n_ranks; q++) {
        graft_graph_info info = GRAFT_INIT(graft_graph_info);

        TRY(library->graphs->info(ranks->graph, q, &info, error));
        const uint64_t bytes = (uint64_t)info.n_slice * sizeof *mine;
        if (q == ranks->rank && q > 0) TRY(send_to(ranks, 0, mine, bytes, error));
        if (ranks->rank == 0 && q > 0) TRY(receive_from(ranks, q, all + at, bytes, error));
        if (ranks->rank == 0 && q == 0 && bytes > 0) memcpy(all, mine, bytes);
        at += info.n_slice;
    }
done:
    return rc;
}

/** Append the pairs of this rank and item `index` to `mine`, which has capacity for them. */
static int32_t add_pairs(const struct ranks *ranks, const struct library *library, graft_trainer *trainer,
                         int32_t index, struct rank_report *mine)
{
    int32_t rc = GRAFT_OK;

    for (int q = 0; q < ranks->n_ranks && rc == GRAFT_OK; q++) {
        graft_traffic_pair *pair = &mine->pairs[mine->n_pairs];

        *pair = GRAFT_INIT(graft_traffic_pair);
        rc = library->train->traffic_pair(trainer, q, index, pair, NULL);
        if (rc == GRAFT_OK && (pair->rows > 0 || pair->sampled_rows > 0)) mine->n_pairs++;
    }
    return rc;
}

static int32_t collect_pairs(const struct ranks *ranks, const struct library *library, graft_trainer *trainer,
                             struct rank_report *mine, graft_error *error)
{
    graft_traffic_item item = GRAFT_INIT(graft_traffic_item);
    size_t             items = 0;

    while (library->train->traffic_item(trainer, -1, (int32_t)items, &item, NULL) == GRAFT_OK) items++;
    mine->pairs = calloc(items * (size_t)ranks->n_ranks + 1, sizeof *mine->pairs);
    if (mine->pairs == NULL) return problem_memory(error, "the report on messages");
    for (size_t i = 0; i < items; i++) add_pairs(ranks, library, trainer, (int32_t)i, mine);
    return GRAFT_OK;
}

/** Rank 0 receives the report of rank q. */
static int32_t receive_report(struct ranks *ranks, int q, graft_error *error)
{
    struct rank_report *report = &ranks->reports[q];
    int32_t             rc;

    TRY(receive_from(ranks, q, report, sizeof *report, error));
    report->pairs = calloc((size_t)report->n_pairs + 1, sizeof *report->pairs);
    if (report->pairs == NULL) return problem_memory(error, "the report on messages");
    rc = receive_from(ranks, q, report->pairs, (uint64_t)report->n_pairs * sizeof *report->pairs, error);
done:
    return rc;
}

int32_t ranks_gather_reports(struct ranks *ranks, const struct library *library, graft_trainer *trainer,
                             graft_error *error)
{
    graft_traffic       traffic = GRAFT_INIT(graft_traffic);
    struct rank_report *mine = ranks->reports + ranks->rank;
    int32_t             rc;

    if (ranks->n_ranks == 1) return GRAFT_OK;
    rc = library->train->traffic(trainer, ranks->rank, &traffic, error);
    if (rc == GRAFT_OK) rc = collect_pairs(ranks, library, trainer, mine, error);
    TRY(ranks_agree(ranks, rc, error));
    mine->waited = traffic.wait_seconds;
    for (int q = 1; q < ranks->n_ranks && ranks->rank == 0; q++) TRY(receive_report(ranks, q, error));
    if (ranks->rank == 0) return GRAFT_OK;
    TRY(send_to(ranks, 0, mine, sizeof *mine, error));
    rc = send_to(ranks, 0, mine->pairs, (uint64_t)mine->n_pairs * sizeof *mine->pairs, error);
done:
    return rc;
}
