/* Runs this program over ranks: opens the transport, distributes the graph, and exchanges data between the copies of
 * the program.
 * SPDX-License-Identifier: Apache-2.0 */
#include "ranks.h"
#include "deadline.h"
#include "launch.h"

#include "graft_load.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/** Open the transport. This initialises MPI, which waits for all ranks. */
static int32_t open_transport(struct ranks *ranks, const struct library *library, graft_error *error)
{
    graft_communicator all = GRAFT_INIT(graft_communicator);
    graft_option       option;
    char               line[128];
    double             seconds;
    int32_t            rc;

    TRY(library_option(library, "halo.timeout", &option, error));
    seconds = strtod(option.value, NULL) + RANKS_PATIENCE;
    snprintf(line, sizeof line, "graft-train: rank %d: waited %.3g s for the start of MPI on all ranks", launch_rank(),
             seconds);
    all.start = 1;
    deadline_begin(seconds, EXIT_PROBLEM, line);
    rc = ranks->transports->open(library->api->context, "auto", &all, &ranks->transport, error);
    deadline_end();
    ranks->is_open = rc == GRAFT_OK;
done:
    return rc;
}

static int32_t join_ranks(struct ranks *ranks, const struct library *library, graft_error *error)
{
    int32_t rc;

    ranks->transports = graft_interface(library->api, GRAFT_TRANSPORT_ID, GRAFT_HAS(graft_transport_api, open));
    ranks->groups = library->groups;
    if (ranks->transports == NULL)
        return problem(error, GRAFT_ERR_VERSION, "Graft %s has no collective calls", library->api->version);
    TRY(open_transport(ranks, library, error));
    ranks->n_ranks = ranks->transport.n_ranks;
    if (ranks->n_ranks == 1)
        return problem(error, GRAFT_ERR_STATE,
                       "the launcher has started %d processes, but MPI knows of this one only: it is another MPI than "
                       "the launcher's",
                       launch_size());
    ranks->rank = ranks->transport.rank;
    rc = library->groups->create(library->api->context, &ranks->transport, &ranks->group, error);
done:
    return rc;
}

int32_t ranks_init(struct ranks *ranks, const struct library *library, graft_error *error)
{
    int32_t rc;

    *ranks = (struct ranks){ .n_ranks = 1 };
    ranks->transport = GRAFT_INIT(graft_transport);
    TRY(launch_check(error));
    if (launch_size() > 1) rc = join_ranks(ranks, library, error);
done:
    return rc;
}

int32_t ranks_prepare(struct ranks *ranks, graft_error *error)
{
    ranks->reports = calloc((size_t)ranks->n_ranks, sizeof *ranks->reports);
    ranks->bytes = calloc((size_t)ranks->n_ranks, sizeof *ranks->bytes);
    return ranks->reports != NULL && ranks->bytes != NULL ? GRAFT_OK : problem_memory(error, "the ranks");
}

/** Close the transport. This also finalises MPI, which waits for all ranks. */
static void close_transport(struct ranks *ranks, int code)
{
    char line[128];

    snprintf(line, sizeof line, "graft-train: warning: rank %d: waited %d s for the end of MPI on all ranks",
             ranks->rank, RANKS_PATIENCE);
    deadline_begin(RANKS_PATIENCE, code, line);
    ranks->transport.close(ranks->transport.self);
    deadline_end();
    ranks->is_open = 0;
}

void ranks_fini(struct ranks *ranks, const struct library *library, int code)
{
    if (ranks->graph != NULL) library->graphs->destroy(ranks->graph);
    if (ranks->pairs == NULL && ranks->reports != NULL) free(ranks->reports[ranks->rank].pairs);
    free(ranks->pairs);
    free(ranks->reports);
    free(ranks->bytes);
    ranks->graph = NULL;
    ranks->pairs = NULL;
    ranks->reports = NULL;
    ranks->bytes = NULL;
    if (!ranks->is_open) return;
    library->groups->destroy(ranks->group);
    close_transport(ranks, code);
}

/** Returns the mask of the training vertices of the slice, which the partition balances. It is NULL if there are none
 *  or if memory runs out, which is not an error. The caller frees it. */
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
    TRY(library->graphs->create(library->api->context, &ranks->transport, &rows, &ranks->graph, error));
    ranks->dataset = *slice;
    ranks->dataset.over = ranks->graph;
done:
    free(mask);
    return rc;
}

int32_t ranks_agree(struct ranks *ranks, int32_t rc, graft_error *error)
{
    const graft_error mine = *error;
    int32_t           agreed;

    if (ranks->n_ranks == 1 || rc == GRAFT_ERR_PEER) return rc;
    agreed = ranks->groups->agree(ranks->group, rc, error);
    if (agreed < 0 && agreed == rc && error->rank == ranks->rank)
        *error = mine; /* the message need not name this rank */
    return agreed;
}

/** Returns a hash of 62 bits of a text (FNV-1a). */
static int64_t number_of_text(const char *text)
{
    uint64_t number = 14695981039346656037u;

    if (text == NULL) return 0;
    for (; *text != '\0'; text++) number = (number ^ (unsigned char)*text) * 1099511628211u;
    return 1 + (int64_t)(number >> 2);
}

enum { SHOWN = 160 }; /* bytes of a word in a message, with its terminating zero */

/** Copy a word for a message. A long word is shortened to its end, because paths usually differ there. */
static void show_word(char shown[SHOWN], const char *text)
{
    const size_t most = SHOWN - sizeof "'...'", length = text != NULL ? strlen(text) : 0;

    memset(shown, 0, SHOWN);
    if (text == NULL) snprintf(shown, SHOWN, "not given");
    else if (length == 0) snprintf(shown, SHOWN, "given");
    else snprintf(shown, SHOWN, "'%s%s'", length > most ? "..." : "", text + (length > most ? length - most : 0));
}

/** A word of one rank: its hash, which distinguishes words that look the same in a message, and the shown text. */
struct rank_word {
    int64_t number;
    char    shown[SHOWN];
};

/** Set an error with the word that differs, and two ranks. All ranks set the same message. */
static int32_t report_word(struct ranks *ranks, const struct ranks_word *word, graft_error *error)
{
    struct rank_word  mine = { .number = number_of_text(word->text) };
    struct rank_word *all = calloc((size_t)ranks->n_ranks, sizeof *all);
    int32_t           rc = all != NULL ? GRAFT_OK : problem_memory(error, "the command line");
    int               q = 1;

    TRY(ranks_agree(ranks, rc, error));
    show_word(mine.shown, word->text);
    for (int i = 0; i < ranks->n_ranks; i++) ranks->bytes[i] = sizeof mine;
    TRY(ranks->groups->gather(ranks->group, -1, ranks->bytes, &mine, all, error));
    while (q < ranks->n_ranks - 1 && all[q].number == all[0].number) q++;
    rc = problem(error, GRAFT_ERR_OPTION, "%s is %s on rank 0 and %s on rank %d; expected the same on all ranks",
                 word->name, all[0].shown, all[q].shown, q);
done:
    free(all);
    return rc;
}

int32_t ranks_compare(struct ranks *ranks, const struct ranks_word words[RANKS_WORDS], graft_error *error)
{
    int64_t ends[2 * RANKS_WORDS] = { 0 };
    int32_t rc = GRAFT_OK;

    if (ranks->n_ranks == 1) return GRAFT_OK;
    for (int i = 0; i < RANKS_WORDS; i++) {
        ends[2 * i] = number_of_text(words[i].text);
        ends[2 * i + 1] = -ends[2 * i];
    }
    TRY(ranks->groups->maximum(ranks->group, 2 * RANKS_WORDS, ends, error));
    for (int i = 0; i < RANKS_WORDS; i++)
        if (ends[2 * i] != -ends[2 * i + 1]) return report_word(ranks, &words[i], error);
done:
    return rc;
}

int32_t ranks_largest(struct ranks *ranks, int *value, graft_error *error)
{
    int64_t largest = *value;
    int32_t rc;

    if (ranks->n_ranks == 1) return GRAFT_OK;
    TRY(ranks->groups->maximum(ranks->group, 1, &largest, error));
    *value = (int)largest;
done:
    return rc;
}

int32_t ranks_share(struct ranks *ranks, int64_t bytes, void *data, graft_error *error)
{
    return ranks->n_ranks == 1 ? GRAFT_OK : ranks->groups->broadcast(ranks->group, 0, bytes, data, error);
}

int32_t ranks_slices(const struct ranks *ranks, const struct library *library, int64_t *rows, graft_error *error)
{
    int32_t rc = GRAFT_OK;

    for (int q = 0; q < ranks->n_ranks; q++) {
        graft_graph_info info = GRAFT_INIT(graft_graph_info);

        TRY(library->graphs->info(ranks->graph, q, &info, error));
        rows[q] = info.n_slice;
    }
done:
    return rc;
}

int32_t ranks_collect(struct ranks *ranks, const int64_t *rows, const void *mine, uint64_t row_bytes, void *all,
                      graft_error *error)
{
    for (int q = 0; q < ranks->n_ranks; q++) ranks->bytes[q] = rows[q] * (int64_t)row_bytes;
    return ranks->groups->gather(ranks->group, 0, ranks->bytes, mine, all, error);
}

/** Append the pairs of item `index` of this rank to `mine`, which has sufficient capacity. */
static int32_t add_pairs(const struct ranks *ranks, const struct library *library, graft_trainer *trainer,
                         int32_t index, struct rank_report *mine)
{
    int32_t rc = GRAFT_OK;

    for (int q = 0; q < ranks->n_ranks && rc == GRAFT_OK; q++) {
        graft_traffic_pair *pair = &mine->pairs[mine->n_pairs];

        *pair = GRAFT_INIT(graft_traffic_pair);
        rc = library->report->traffic_pair(trainer, q, index, pair, NULL);
        if (rc == GRAFT_OK && (pair->rows > 0 || pair->sampled_rows > 0)) mine->n_pairs++;
    }
    return rc;
}

static int32_t collect_pairs(const struct ranks *ranks, const struct library *library, graft_trainer *trainer,
                             struct rank_report *mine, graft_error *error)
{
    graft_traffic_item item = GRAFT_INIT(graft_traffic_item);
    size_t             items = 0;

    while (library->report->traffic_item(trainer, -1, (int32_t)items, &item, NULL) == GRAFT_OK) items++;
    mine->pairs = calloc(items * (size_t)ranks->n_ranks + 1, sizeof *mine->pairs);
    if (mine->pairs == NULL) return problem_memory(error, "the report on messages");
    for (size_t i = 0; i < items; i++) add_pairs(ranks, library, trainer, (int32_t)i, mine);
    return GRAFT_OK;
}

/** Gather the reports of all ranks, and then their pairs on rank 0, which assigns the pairs to the reports. */
static int32_t gather_pairs(struct ranks *ranks, graft_error *error)
{
    const struct rank_report mine = ranks->reports[ranks->rank];
    graft_traffic_pair      *all = NULL, *next;
    int64_t                  total = 0;
    int32_t                  rc = GRAFT_OK;

    ranks->reports[ranks->rank].pairs = NULL;
    for (int q = 0; q < ranks->n_ranks; q++) ranks->bytes[q] = sizeof mine;
    TRY(ranks->groups->gather(ranks->group, -1, ranks->bytes, &mine, ranks->reports, error));
    for (int q = 0; q < ranks->n_ranks; q++) {
        ranks->reports[q].pairs = NULL;
        total += ranks->bytes[q] = ranks->reports[q].n_pairs * (int64_t)sizeof *all;
        if (ranks->rank > 0) ranks->reports[q].n_pairs = 0;
    }
    if (ranks->rank == 0) all = malloc((size_t)total + 1);
    if (ranks->rank == 0 && all == NULL) rc = problem_memory(error, "the report on messages");
    TRY(ranks_agree(ranks, rc, error));
    TRY(ranks->groups->gather(ranks->group, 0, ranks->bytes, mine.pairs, all, error));
    next = ranks->pairs = all;
    for (int q = 0; q < ranks->n_ranks && ranks->rank == 0; next += ranks->reports[q++].n_pairs)
        ranks->reports[q].pairs = next;
    all = NULL;
done:
    free(all);
    free(mine.pairs);
    return rc;
}

int32_t ranks_gather_reports(struct ranks *ranks, const struct library *library, graft_trainer *trainer,
                             graft_error *error)
{
    graft_traffic       traffic = GRAFT_INIT(graft_traffic);
    struct rank_report *mine = ranks->reports + ranks->rank;
    int32_t             rc;

    if (ranks->n_ranks == 1) return GRAFT_OK;
    rc = library->report->traffic(trainer, ranks->rank, &traffic, error);
    if (rc == GRAFT_OK) rc = collect_pairs(ranks, library, trainer, mine, error);
    mine->waited = traffic.wait_seconds;
    TRY(ranks_agree(ranks, rc, error));
    rc = gather_pairs(ranks, error);
done:
    return rc;
}
