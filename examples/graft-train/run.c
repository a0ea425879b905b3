/* Performs a run: opens the data set, creates the trainer, loads the checkpoint, trains in a loop over epochs, and
 * evaluates at the end.
 * SPDX-License-Identifier: Apache-2.0 */
#include "run.h"
#include "checkpoint.h"
#include "interrupt.h"
#include "memory.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/** Returns the transport for collective calls of the library, or NULL in one process. */
static const graft_transport *transport_of(const struct run *run)
{
    return run->ranks.n_ranks > 1 ? &run->ranks.transport : NULL;
}

/** Returns whether the trainer has caches that a state could contain. The state of a trainer without caches has no item
 *  of this name. */
static int uses_caches(const struct run *run)
{
    static const int64_t   none[4];
    const graft_state_item item = { .size = sizeof item, .dtype = GRAFT_F64, .name = "caches.layout", .data = none };

    return run->library.train->state_set(run->trainer, &item, NULL) != GRAFT_ERR_NOT_FOUND;
}

static void warn_of_caches(const struct run *run, const char *reason)
{
    if (problem_is_silent()) return;
    fprintf(stderr, "graft-train: warning: training continues from '%s' with empty caches: %s\n",
            run->arguments->resume, reason);
}

/** Over ranks, warn if training continues with empty caches. The library itself warns if it refuses those of rank 0. */
static int32_t compare_caches(struct run *run, const struct checkpoint_facts *facts, graft_error *error)
{
    graft_error reason = facts->no_caches;
    int         some = checkpoint_has_caches(&run->library, run->trainer) && run->ranks.rank == 0;
    int32_t     rc = GRAFT_OK;

    if (run->ranks.n_ranks == 1) return GRAFT_OK;
    TRY(ranks_largest(&run->ranks, &some, error));
    if (run->ranks.rank == 0 && !facts->has_caches && uses_caches(run))
        warn_of_caches(run, "the checkpoint has none; they are saved at the end of an epoch over ranks");
    if (!some) return GRAFT_OK;
    rc = ranks_agree(&run->ranks, reason.code, &reason);
    if (rc == GRAFT_ERR_PEER || rc == GRAFT_ERR_CANCELLED) {
        *error = reason;
        return rc;
    }
    if (rc < 0) warn_of_caches(run, reason.message);
    rc = GRAFT_OK;
done:
    return rc;
}

/** Read the epochs and batches that the trainer has completed. */
static void read_progress(struct run *run)
{
    graft_state_item item = GRAFT_INIT(graft_state_item);

    for (int32_t i = 0; run->library.train->state_item(run->trainer, i, &item, NULL) == GRAFT_OK; i++) {
        if (strcmp(item.name, "progress.epoch") == 0) run->epochs = *(const int64_t *)item.data;
        if (strcmp(item.name, "progress.batch") == 0) run->batch = *(const int64_t *)item.data;
        if (strcmp(item.name, "progress.batches") == 0) run->n_batches = *(const int64_t *)item.data;
    }
}

/** Print the completed part, such as "after epoch 2 of 4", or "in epoch 3 of 4, after 20 of 230 batches". */
static void print_progress(FILE *to, const struct run *run, int64_t total)
{
    if (run->batch == 0) {
        fprintf(to, "after epoch %" PRId64 " of %" PRId64, run->epochs, total);
        return;
    }
    fprintf(to, "in epoch %" PRId64 " of %" PRId64 ", after %" PRId64, run->epochs + 1, total, run->batch);
    if (run->n_batches > 0)
        fprintf(to, " of %" PRId64, run->n_batches); /* files of older builds do not have the number */
    fputs(" batches", to);
}

static int32_t resume(struct run *run, graft_error *error)
{
    struct checkpoint_facts facts;
    const char             *folder = run->arguments->resume;
    int32_t                 rc =
        checkpoint_read(&run->library, transport_of(run), run->ranks.rank, run->trainer, folder, &facts, error);

    TRY(ranks_agree(&run->ranks, rc, error));
    TRY(compare_caches(run, &facts, error));
    if (*facts.differences != '\0' && !problem_is_silent()) {
        fprintf(stderr, "graft-train: warning: the checkpoint in '%s' was made with %s\n", folder, facts.differences);
    }
    read_progress(run);
done:
    return rc;
}

int run_is_regression(const struct run *run)
{
    return run->dataset->float_targets != NULL;
}

/** Returns whether the data set can be used for training. Otherwise a checkpoint must have the weights. */
static int is_trainable(const struct run *run)
{
    return run->dataset->split != NULL &&
           (run->dataset->labels != NULL || run->dataset->targets != NULL || run_is_regression(run));
}

/** Returns whether a saved model only predicts, without training. */
static int only_predicts(const struct run *run)
{
    return run->arguments->model != NULL || !is_trainable(run);
}

/** Check that the arguments request an action that is possible with the data set. */
static int32_t check_purpose(const struct run *run, graft_error *error)
{
    const struct arguments *a = run->arguments;

    if (a->model != NULL || is_trainable(run)) return GRAFT_OK;
    if (a->resume != NULL && a->predict != NULL && !arguments_report(a)) return GRAFT_OK;
    return problem(error, GRAFT_ERR_STATE,
                   "'%s' has no labels or targets, or no split: nothing to train on, only to predict: --predict with "
                   "--model or --resume, without --save, --json and --profile",
                   a->dataset);
}

/** Open the data set. Over ranks only the slice of this rank is opened. */
static int32_t open_data(struct run *run, graft_error *error)
{
    const struct library *library = &run->library;
    const char           *path = run->arguments->dataset;
    const int             many = run->ranks.n_ranks > 1;
    int32_t               rc;

    if (many) TRY(library->data->open_slice(library->api->context, &run->ranks.transport, path, &run->data, error));
    else TRY(library->data->open(library->api->context, path, &run->data, error));
    run->dataset = library->data->view(run->data);
    TRY(ranks_agree(&run->ranks, check_purpose(run, error), error));
    if (!many) return rc;
    TRY(ranks_distribute(&run->ranks, library, run->dataset, error));
    run->dataset = &run->ranks.dataset;
done:
    return rc;
}

/** Load the model for a prediction without a trainer, from the file of --model or else from the checkpoint. */
static int32_t open_model(struct run *run, graft_error *error)
{
    const struct library *library = &run->library;
    const char           *given = run->arguments->model;
    char                 *saved = given == NULL ? checkpoint_path(run->arguments->resume) : NULL;
    int32_t rc = given != NULL || saved != NULL ? GRAFT_OK : problem_memory(error, "the name of the checkpoint");

    TRY(ranks_agree(&run->ranks, rc, error));
    rc = library->models->load(library->api->context, transport_of(run), given != NULL ? given : saved, &run->model,
                               error);
done:
    free(saved);
    return rc;
}

int32_t run_init(struct run *run, graft_error *error)
{
    const struct library *library = &run->library;
    int32_t               rc;

    run->best = (graft_metrics){ .size = sizeof run->best,
                                 .train_accuracy = NAN,
                                 .validation_accuracy = NAN,
                                 .test_accuracy = NAN,
                                 .train_rmse = NAN,
                                 .validation_rmse = NAN,
                                 .test_rmse = NAN,
                                 .train_r2 = NAN,
                                 .validation_r2 = NAN,
                                 .test_r2 = NAN };
    TRY(open_data(run, error));
    if (only_predicts(run)) return open_model(run, error);
    TRY(library->train->create(library->api->context, run->dataset, &run->trainer, error));
    if (run->arguments->resume != NULL) rc = resume(run, error);
    rc = ranks_agree(&run->ranks, rc, error);
done:
    return rc;
}

/** Print the description of the trainer, and the epoch from which it continues. */
static int32_t announce(struct run *run, int64_t total, graft_error *error)
{
    const int32_t rc = run->library.train->explain(run->trainer, run->explained, sizeof run->explained, error);
    const size_t  length = strlen(run->explained);

    if (rc < 0) return rc;
    printf("%s%s", run->explained, length > 0 && run->explained[length - 1] != '\n' ? "\n" : "");
    if (run->arguments->explain) memory_print(run);
    if (run->arguments->resume != NULL) {
        printf("resumed from '%s' ", run->arguments->resume);
        print_progress(stdout, run, total);
        printf("%s\n", run->epochs >= total ? ": nothing left to train" : "");
    }
    fflush(stdout);
    return GRAFT_OK;
}

static int32_t remember(struct run *run, const graft_epoch *epoch, graft_error *error)
{
    if (run->n_history == run->capacity) {
        const int64_t capacity = run->capacity == 0 ? 256 : 2 * run->capacity;
        graft_epoch  *larger = realloc(run->history, (size_t)capacity * sizeof *larger);
        if (larger == NULL) return problem_memory(error, "the history of epochs");
        run->history = larger;
        run->capacity = capacity;
    }
    run->history[run->n_history++] = *epoch;
    return GRAFT_OK;
}

int32_t run_settle(struct run *run, graft_error *error)
{
    int     number;
    int32_t rc;

    interrupt_end();
    number = interrupt_signal();
    /* Agreeing on ERR_CANCELLED also clears pending requests for cancellation, such as requests of another rank. */
    rc = ranks_agree(&run->ranks, number != 0 ? GRAFT_ERR_CANCELLED : GRAFT_OK, error);
    if (rc < 0 && rc != GRAFT_ERR_CANCELLED) return rc;
    TRY(ranks_largest(&run->ranks, &number, error));
    run->signal = number;
done:
    return rc;
}

/** Train until all epochs are completed, option patience ends training, or a call returns ERR_CANCELLED. */
static int32_t train_epochs(struct run *run, int64_t total, graft_error *error)
{
    int32_t rc = GRAFT_OK;

    while (run->epochs < total && !run->stopped_early) {
        graft_epoch epoch = GRAFT_INIT(graft_epoch);
        TRY(run->library.train->epoch(run->trainer, &epoch, error));
        run->epochs = epoch.epoch;
        run->stopped_early = epoch.should_stop && epoch.epoch < total;
        progress_epoch(&run->progress, &epoch);
        rc = remember(run, &epoch, error);
        if (rc == GRAFT_OK && run->arguments->profile != NULL)
            rc = profile_take(&run->profile, &run->library, run->trainer, error);
        TRY(ranks_agree(&run->ranks, rc, error));
    }
done:
    return rc;
}

/** Save the state immediately, before anything that takes time. If a rank fails, the program tries to save again when
 *  it writes its outputs, and reports a failure then. */
static void save_interrupted(struct run *run, int64_t total)
{
    const char *save = run->arguments->save;
    graft_error error = GRAFT_INIT(graft_error);
    int32_t     rc;

    if (save != NULL) {
        rc = checkpoint_write(&run->library, run->trainer, run->ranks.rank, save, &error);
        run->saved = ranks_agree(&run->ranks, rc, &error) >= 0;
    }
    if (run->ranks.rank > 0) return;
    fprintf(stderr, "graft-train: interrupted ");
    print_progress(stderr, run, total);
    if (run->saved) fprintf(stderr, ", saved in '%s/" CHECKPOINT_FILE "'", save);
    fprintf(stderr, "\n");
}

/** Save the state after a loss or weights were not finite. The trainer then has the state of the last good epoch. */
static void save_last_good(struct run *run)
{
    const char *save = run->arguments->save;
    graft_error error = GRAFT_INIT(graft_error);

    if (run->ranks.rank > 0 || save == NULL || run->epochs == 0) return;
    if (checkpoint_write(&run->library, run->trainer, 0, save, &error) < 0) problem_print(&error);
    else fprintf(stderr, "graft-train: the last good state is saved in '%s/" CHECKPOINT_FILE "'\n", save);
}

/** Train until all epochs are completed, or until an interrupt. \return Also ERR_CANCELLED if no epoch and no batch was
 *  completed. */
static int32_t train_or_stop(struct run *run, int64_t total, graft_error *error)
{
    int32_t rc;

    if (run->ranks.n_ranks == 1) interrupt_begin(run->library.api); /* ranks begin to catch signals earlier */
    progress_begin(&run->progress, run_is_regression(run));
    rc = train_epochs(run, total, error);
    progress_end(&run->progress);
    if (rc == GRAFT_ERR_NONFINITE) save_last_good(run);
    if (rc < 0 && rc != GRAFT_ERR_CANCELLED) return rc;
    read_progress(run);
    TRY(run_settle(run, error));
    if (run->epochs >= total || run->stopped_early) run->signal = 0;
    if (run->signal == 0) return rc;
    if (run->epochs == 0 && run->batch == 0) return GRAFT_ERR_CANCELLED;
    save_interrupted(run, total);
done:
    return rc;
}

/** Print why fewer epochs were trained than the option requests. */
static void announce_stop(const struct run *run, int64_t total)
{
    graft_option patience = GRAFT_INIT(graft_option);

    if (library_option(&run->library, "patience", &patience, NULL) < 0) return;
    printf("stopped early after epoch %" PRId64 " of %" PRId64 ": no better validation in %s epochs (patience)\n",
           run->epochs, total, patience.value);
    fflush(stdout);
}

int32_t run_train(struct run *run, graft_error *error)
{
    graft_option option;
    int64_t      total;
    int32_t      rc;

    TRY(library_option(&run->library, "epochs", &option, error));
    total = strtoll(option.value, NULL, 10);
    TRY(announce(run, total, error));
    TRY(train_or_stop(run, total, error));
    if (run->stopped_early) announce_stop(run, total);
    /* Read the description again, because it now includes the messages of the last step. */
    TRY(run->library.train->explain(run->trainer, run->explained, sizeof run->explained, error));
    TRY(run->library.train->evaluate(run->trainer, GRAFT_WEIGHTS_BEST, &run->best, error));
    TRY(ranks_gather_reports(&run->ranks, &run->library, run->trainer, error));
    run->seconds = progress_clock() - run->began;
done:
    return rc;
}

int64_t run_edges(const struct run *run)
{
    graft_graph_info info = GRAFT_INIT(graft_graph_info);

    if (run->ranks.n_ranks == 1) return run->dataset->graph->row_ptr[run->dataset->n_vertices];
    return run->library.graphs->info(run->ranks.graph, -1, &info, NULL) < 0 ? 0 : info.n_edges;
}

double run_seconds(const struct run *run)
{
    double seconds = 0;

    for (int64_t i = 0; i < run->n_history; i++) seconds += run->history[i].seconds;
    return seconds;
}

void run_fini(struct run *run, int code)
{
    free(run->history);
    profile_fini(&run->profile);
    run->history = NULL;
    if (run->trainer != NULL) run->library.train->destroy(run->trainer);
    if (run->model != NULL) run->library.models->destroy(run->model);
    if (run->data != NULL) run->library.data->close(run->data);
    run->trainer = NULL;
    run->model = NULL;
    run->data = NULL;
    ranks_fini(&run->ranks, &run->library, code);
}
