/* Reports the results of a run in a JSON file and in a few printed lines.
 * SPDX-License-Identifier: Apache-2.0 */
#include "report.h"
#include "caches.h"
#include "checkpoint.h"
#include "json_text.h"
#include "memory.h"
#include "messages.h"
#include "output_file.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static int by_value(const void *left, const void *right)
{
    const double a = *(const double *)left, b = *(const double *)right;

    return (a > b) - (a < b);
}

/** Returns the median of the seconds of an epoch, or NaN if there was no epoch or memory is insufficient. */
static double median_seconds(const struct run *run)
{
    const int64_t n = run->n_history;
    double       *seconds = n > 0 ? malloc((size_t)n * sizeof *seconds) : NULL;

    if (seconds == NULL) return NAN;
    for (int64_t i = 0; i < n; i++) seconds[i] = run->history[i].seconds;
    qsort(seconds, (size_t)n, sizeof *seconds, by_value);
    const double median = 0.5 * (seconds[(n - 1) / 2] + seconds[n / 2]);
    free(seconds);
    return median;
}

static double measured(const graft_epoch *epoch, double value)
{
    return epoch->evaluated ? value : NAN;
}

/** Add accuracies or, for a regression, its scores. */
static void add_scores(json_t *to, const struct run *run, const graft_metrics *m, int *bad)
{
    if (!run_is_regression(run)) {
        json_add(to, "test_accuracy", json_number(m->test_accuracy), bad);
        json_add(to, "val_accuracy", json_number(m->validation_accuracy), bad);
        json_add(to, "train_accuracy", json_number(m->train_accuracy), bad);
        return;
    }
    json_add(to, "test_rmse", json_number(m->test_rmse), bad);
    json_add(to, "val_rmse", json_number(m->validation_rmse), bad);
    json_add(to, "train_rmse", json_number(m->train_rmse), bad);
    json_add(to, "test_r2", json_number(m->test_r2), bad);
    json_add(to, "val_r2", json_number(m->validation_r2), bad);
    json_add(to, "train_r2", json_number(m->train_r2), bad);
}

static json_t *build_history(const struct run *run)
{
    json_t *history = json_array();

    for (int64_t i = 0; i < run->n_history; i++) {
        const graft_epoch  *e = &run->history[i];
        json_t             *entry = json_object();
        const graft_metrics scores = { .train_accuracy = measured(e, e->train_accuracy),
                                       .validation_accuracy = measured(e, e->validation_accuracy),
                                       .test_accuracy = measured(e, e->test_accuracy),
                                       .train_rmse = measured(e, e->train_rmse),
                                       .validation_rmse = measured(e, e->validation_rmse),
                                       .test_rmse = measured(e, e->test_rmse),
                                       .train_r2 = measured(e, e->train_r2),
                                       .validation_r2 = measured(e, e->validation_r2),
                                       .test_r2 = measured(e, e->test_r2) };
        int                 bad = 0;

        json_add(entry, "epoch", json_integer(e->epoch), &bad);
        json_add(entry, "loss", json_number(e->loss), &bad);
        add_scores(entry, run, &scores, &bad);
        json_add(entry, "seconds", json_number(e->seconds), &bad);
        json_add(entry, "learning_rate", json_number(e->learning_rate), &bad);
        if (!isnan(e->gradient_norm)) json_add(entry, "gradient_norm", json_number(e->gradient_norm), &bad);
        if (e->drift > 0) json_add(entry, "drift", json_number(e->drift), &bad);
        if (e->synchronous) json_add(entry, "synchronous", json_true(), &bad);
        if (json_array_append_new(history, entry) != 0 || bad) {
            json_decref(history);
            return NULL;
        }
    }
    return history;
}

static json_t *build_options(const struct run *run)
{
    json_t *options = json_object();

    if (json_add_options(options, &run->library, "") == 0) return options;
    json_decref(options);
    return NULL;
}

/** Returns the whole report, or NULL when out of memory. */
static json_t *build_report(const struct run *run)
{
    const graft_dataset *dataset = run->dataset;
    json_t              *report = json_object();
    char                 kernel[64];
    int                  bad = 0;

    json_add(report, "dataset", json_text(run->arguments->dataset), &bad);
    json_add(report, "version", json_text(run->library.api->version), &bad);
    add_scores(report, run, &run->best, &bad);
    json_add(report, "epochs", json_integer(run->epochs), &bad);
    json_add(report, "best_epoch", json_integer(run->best.epoch), &bad);
    json_add(report, "interrupted", json_boolean(run->signal != 0), &bad);
    json_add(report, "stopped_early", json_boolean(run->stopped_early), &bad);
    json_add(report, "seconds_per_epoch", json_number(median_seconds(run)), &bad);
    json_add(report, "seconds_total", json_number(run->seconds), &bad);
    library_kernel(&run->library, kernel, sizeof kernel);
    json_add(report, "kernel", json_text(kernel), &bad);
    json_add(report, "explain", json_text(run->explained), &bad);
    json_add(report, "peak_rss_bytes", json_integer(memory_peak()), &bad);
    json_add(report, "memory_bytes", memory_json(run), &bad);
    json_add(report, "vertices", json_integer(dataset->n_vertices), &bad);
    json_add(report, "edges", json_integer(run_edges(run)), &bad);
    json_add(report, "features", json_integer(dataset->n_features), &bad);
    json_add(report, "classes", json_integer(dataset->n_classes), &bad);
    json_add(report, "options", build_options(run), &bad);
    json_add(report, "history", build_history(run), &bad);
    if (run->ranks.n_ranks > 1) messages_json(report, run, &bad);
    caches_json(report, run, &bad);
    if (!bad) return report;
    json_decref(report);
    return NULL;
}

int32_t report_write(const struct run *run, const char *path, graft_error *error)
{
    struct output_file file = { 0 };
    json_t            *report = build_report(run);
    int32_t            rc;

    TRY(report != NULL ? GRAFT_OK : problem_memory(error, "the JSON report"));
    TRY(output_begin(&file, path, error));
    /* output_end() reports a failed write, because the stream remembers it. The only other failure is lack of
     * memory. */
    if (json_dumpf(report, file.stream, JSON_INDENT(2) | JSON_REAL_PRECISION(9)) != 0 && !ferror(file.stream)) {
        rc = problem_memory(error, "the JSON report");
        goto done;
    }
    fputc('\n', file.stream);
    rc = output_end(&file, error);
done:
    output_abort(&file);
    json_decref(report);
    return rc;
}

/** Returns a fraction with four decimals, or "-" for NaN. */
static const char *fraction(char text[32], double value)
{
    if (isnan(value)) return "-";
    snprintf(text, 32, "%.4f", value);
    return text;
}

/** Returns a number with four significant digits, or "-" for NaN. */
static const char *significant(char text[32], double value)
{
    if (isnan(value)) return "-";
    snprintf(text, 32, "%.4g", value);
    return text;
}

/** Print the line of explain() with this name. After training the line has measured figures: the predictions of
 *  parallel=auto and the last step, or the idle time of workers. */
static void explained_print(const struct run *run, const char *name)
{
    char        begin[32];
    const char *line;

    snprintf(begin, sizeof begin, "\n%-10s", name);
    line = strstr(run->explained, begin);
    if (line == NULL) return;
    line += strlen(begin);
    printf("%-15s %.*s\n", name, (int)strcspn(line, "\n"), line);
}

void report_print(const struct run *run)
{
    const struct arguments *arguments = run->arguments;
    char                    test[32], validation[32], train[32], kernel[64];

    printf("\n");
    if (!isnan(run->best.test_rmse) || !isnan(run->best.validation_rmse)) {
        printf("test RMSE       %s, validation %s, training %s\n", significant(test, run->best.test_rmse),
               significant(validation, run->best.validation_rmse), significant(train, run->best.train_rmse));
        printf("test R^2        %s, validation %s, training %s\n", fraction(test, run->best.test_r2),
               fraction(validation, run->best.validation_r2), fraction(train, run->best.train_r2));
        printf("best epoch      %" PRId64 " of %" PRId64 ", by validation loss\n", run->best.epoch, run->epochs);
    }
    if (!isnan(run->best.test_accuracy) || !isnan(run->best.validation_accuracy)) {
        printf("test accuracy   %s, validation %s, training %s\n", fraction(test, run->best.test_accuracy),
               fraction(validation, run->best.validation_accuracy), fraction(train, run->best.train_accuracy));
        printf("best epoch      %" PRId64 " of %" PRId64 ", by validation accuracy\n", run->best.epoch, run->epochs);
    }
    if (run->n_history > 0) {
        printf("time per epoch  %.4g s (median), %.4g s in total\n", median_seconds(run), run->seconds);
    }
    if (run->ranks.n_ranks > 1) messages_print(run);
    caches_print(run);
    if (arguments->explain) explained_print(run, "parallel");
    if (arguments->explain) explained_print(run, "workers");
    printf("peak memory     %.1f MB", (double)memory_peak() * 1e-6);
    if (arguments->explain) printf(", estimated %.1f MB", (double)memory_reported(run) * 1e-6);
    printf("\n");
    library_kernel(&run->library, kernel, sizeof kernel);
    printf("kernel          %s\n", kernel);
    if (run->saved) printf("checkpoint      %s/" CHECKPOINT_FILE "\n", arguments->save);
    if (run->predicted) printf("predictions     %s\n", arguments->predict);
    if (run->profiled) printf("profile         %s\n", arguments->profile);
    if (run->reported) printf("report          %s\n", arguments->json);
}
