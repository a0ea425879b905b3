/* Computes and writes predictions. Each rank predicts the vertices of its slice, or the part of a list that is in its
 * slice. Rank 0 collects and writes the results.
 * SPDX-License-Identifier: Apache-2.0 */
#include "predict.h"
#include "npy_read.h"
#include "npy_write.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/** The vertices that are predicted. */
struct wanted {
    int64_t  n;      /* number of rows in the output files */
    int64_t *list;   /* [n] list in the order of its file, on all ranks; NULL means all vertices in their order */
    int64_t  n_mine; /* number of rows that this rank computes */
    int64_t *mine;   /* [n_mine] part of the list that is in the slice of this rank */
    int64_t *end;    /* [n_ranks] first vertex after the slice of each rank */
    int64_t *rows;   /* [n_ranks] number of rows that each rank computes */
    int64_t *next;   /* [n_ranks] work space */
};

/** The outputs of the model for the predicted vertices. */
struct answers {
    int64_t columns;       /* columns of float outputs; 0 if the model predicts classes */
    int64_t classes;       /* columns of probabilities */
    void   *found;         /* [n_mine] int32 classes, or [n_mine x columns] float outputs */
    float  *probabilities; /* [n_mine x classes], or NULL */
};

static int is_list(const struct wanted *w)
{
    return w->list != NULL;
}

/** Find the slices of all ranks. */
static int32_t find_slices(struct run *run, struct wanted *w, graft_error *error)
{
    const int n_ranks = run->ranks.n_ranks;
    int64_t   end = 0;
    int32_t   rc = GRAFT_OK;

    w->rows[0] = run->dataset->n_vertices;
    if (n_ranks > 1) TRY(ranks_slices(&run->ranks, &run->library, w->rows, error));
    for (int q = 0; q < n_ranks; q++) w->end[q] = end += w->rows[q];
    w->n = run->dataset->n_vertices;
    w->n_mine = w->rows[run->ranks.rank];
done:
    return rc;
}

static int32_t check_list(const struct run *run, const struct wanted *w, graft_error *error)
{
    const int64_t n = run->dataset->n_vertices;

    for (int64_t i = 0; i < w->n; i++) {
        if (w->list[i] >= 0 && w->list[i] < n) continue;
        return problem(error, GRAFT_ERR_FORMAT,
                       "'%s': element %" PRId64 " is vertex %" PRId64 ", expected 0 to %" PRId64
                       ", the vertices of '%s'",
                       run->arguments->vertices, i, w->list[i], n - 1, run->arguments->dataset);
    }
    return GRAFT_OK;
}

static int rank_of(const struct wanted *w, int64_t vertex)
{
    int q = 0;

    while (vertex >= w->end[q]) q++;
    return q;
}

/** Assign each entry of the list to the rank whose slice has the vertex. The order of the list is preserved. */
static void divide_list(const struct run *run, struct wanted *w)
{
    w->n_mine = 0;
    for (int q = 0; q < run->ranks.n_ranks; q++) w->rows[q] = 0;
    for (int64_t i = 0; i < w->n; i++) {
        const int q = rank_of(w, w->list[i]);

        w->rows[q]++;
        if (q == run->ranks.rank) w->mine[w->n_mine++] = w->list[i];
    }
}

/** Read the list on rank 0, and send it to all ranks. */
static int32_t read_list(struct run *run, struct wanted *w, graft_error *error)
{
    const int first = run->ranks.rank == 0;
    int32_t   rc = first ? npy_read_vertices(run->arguments->vertices, &w->list, &w->n, error) : GRAFT_OK;

    TRY(ranks_agree(&run->ranks, rc, error));
    TRY(ranks_share(&run->ranks, sizeof w->n, &w->n, error));
    if (!first) w->list = calloc((size_t)w->n + 1, sizeof *w->list);
    w->mine = calloc((size_t)w->n + 1, sizeof *w->mine);
    if (w->list == NULL || w->mine == NULL) rc = problem_memory(error, "the list of vertices");
    TRY(ranks_agree(&run->ranks, rc, error));
    TRY(ranks_share(&run->ranks, w->n * (int64_t)sizeof *w->list, w->list, error));
    TRY(check_list(run, w, error)); /* has the same result on all ranks */
    divide_list(run, w);
done:
    return rc;
}

static int32_t wanted_init(struct run *run, struct wanted *w, graft_error *error)
{
    const size_t n_ranks = (size_t)run->ranks.n_ranks;
    int32_t      rc = GRAFT_OK;

    w->end = calloc(n_ranks, sizeof *w->end);
    w->rows = calloc(n_ranks, sizeof *w->rows);
    w->next = calloc(n_ranks, sizeof *w->next);
    if (w->end == NULL || w->rows == NULL || w->next == NULL) rc = problem_memory(error, "the predictions");
    TRY(ranks_agree(&run->ranks, rc, error));
    TRY(find_slices(run, w, error));
    if (run->arguments->vertices != NULL) rc = read_list(run, w, error);
done:
    return rc;
}

static void wanted_fini(struct wanted *w)
{
    free(w->list);
    free(w->mine);
    free(w->end);
    free(w->rows);
    free(w->next);
}

/** Returns whether the saved model was trained with float targets. */
static int model_is_regression(const struct run *run)
{
    const struct library *library = &run->library;
    const char           *key, *value;

    for (int32_t i = 0; library->models->metadata(run->model, i, &key, &value, NULL) == GRAFT_OK; i++)
        if (strcmp(key, "model.loss") == 0) return strcmp(value, "softmax") != 0 && strcmp(value, "sigmoid") != 0;
    return 0;
}

/** Find the numbers of columns of the outputs of the model or the trainer. */
static int32_t find_widths(const struct run *run, struct answers *answers, graft_error *error)
{
    graft_model_info info = GRAFT_INIT(graft_model_info);
    int32_t          rc = GRAFT_OK;
    int              regression = run_is_regression(run);

    answers->classes = run->dataset->n_classes;
    if (run->model != NULL) {
        TRY(run->library.models->info(run->model, &info, error));
        answers->classes = info.n_classes;
        regression = model_is_regression(run);
    }
    if (regression) answers->columns = answers->classes;
    if (regression && run->arguments->probabilities != NULL)
        rc = problem(error, GRAFT_ERR_ARG, "'%s' has learnt float targets, and has no probabilities of classes",
                     run->arguments->model);
done:
    return rc;
}

static int32_t answers_init(struct run *run, const struct wanted *w, struct answers *answers, graft_error *error)
{
    const size_t rows = (size_t)w->n_mine + 1;
    int32_t      rc = GRAFT_OK;

    TRY(find_widths(run, answers, error));
    answers->found = calloc(rows, (size_t)(answers->columns > 0 ? answers->columns : 1) * 4);
    if (run->arguments->probabilities != NULL)
        answers->probabilities = calloc(rows, (size_t)answers->classes * sizeof *answers->probabilities);
    if (answers->found == NULL || (run->arguments->probabilities != NULL && answers->probabilities == NULL))
        rc = problem_memory(error, "the predictions");
done:
    return ranks_agree(&run->ranks, rc, error);
}

static int32_t predict(struct run *run, const struct wanted *w, const struct answers *answers, graft_error *error)
{
    const int64_t     columns = answers->columns, classes = answers->classes;
    const graft_dense out = { sizeof out, GRAFT_F32, w->n_mine, columns, columns, answers->found };
    const graft_dense likely = { sizeof likely, GRAFT_F32, w->n_mine, classes, classes, answers->probabilities };
    graft_prediction  prediction = GRAFT_INIT(graft_prediction);

    prediction.weights = GRAFT_WEIGHTS_BEST;
    prediction.dataset = run->dataset;
    prediction.vertices = w->mine;
    prediction.n = w->n_mine;
    if (columns > 0) prediction.logits = &out;
    else prediction.labels = answers->found;
    if (answers->probabilities != NULL) prediction.probabilities = &likely;
    if (run->model != NULL) return run->library.models->predict_vertices(run->model, &prediction, error);
    return run->library.train->predict(run->trainer, GRAFT_WEIGHTS_BEST, prediction.labels, prediction.logits, error);
}

/** Reorder rows, which are grouped by rank, to the order of the list. */
static void put_in_order(const struct run *run, const struct wanted *w, const char *from, size_t row, char *to)
{
    int64_t at = 0;

    for (int q = 0; q < run->ranks.n_ranks; at += w->rows[q++]) w->next[q] = at;
    for (int64_t i = 0; i < w->n; i++)
        memcpy(to + (size_t)i * row, from + (size_t)w->next[rank_of(w, w->list[i])]++ * row, row);
}

/** Collect the rows of all ranks on rank 0, and write them as int32, or as `columns` columns of float32. */
static int32_t write_rows(struct run *run, const struct wanted *w, const char *path, const void *mine, int64_t columns,
                          graft_error *error)
{
    const size_t row = (size_t)(columns > 0 ? columns : 1) * 4, bytes = (size_t)w->n * row + 1;
    const int    first = run->ranks.rank == 0;
    char        *all = NULL, *ordered = NULL;
    int32_t      rc = GRAFT_OK;

    if (run->ranks.n_ranks == 1) return npy_write(path, mine, w->n, columns, error);
    if (first) all = malloc(bytes);
    if (first && is_list(w)) ordered = malloc(bytes);
    if (first && (all == NULL || (is_list(w) && ordered == NULL))) rc = problem_memory(error, "the predictions");
    TRY(ranks_agree(&run->ranks, rc, error));
    TRY(ranks_collect(&run->ranks, w->rows, mine, row, all, error));
    if (first && is_list(w)) put_in_order(run, w, all, row, ordered);
    if (first) rc = npy_write(path, is_list(w) ? ordered : all, w->n, columns, error);
done:
    free(all);
    free(ordered);
    return rc;
}

int32_t predict_write(struct run *run, graft_error *error)
{
    const struct arguments *a = run->arguments;
    struct wanted           w = { 0 };
    struct answers          answers = { 0 };
    int32_t                 rc;

    TRY(wanted_init(run, &w, error));
    TRY(answers_init(run, &w, &answers, error));
    TRY(predict(run, &w, &answers, error));
    if (a->predict != NULL) rc = write_rows(run, &w, a->predict, answers.found, answers.columns, error);
    if (a->probabilities == NULL) goto done;
    TRY(ranks_agree(&run->ranks, rc, error));
    rc = write_rows(run, &w, a->probabilities, answers.probabilities, answers.classes, error);
done:
    free(answers.found);
    free(answers.probabilities);
    wanted_fini(&w);
    return rc;
}
