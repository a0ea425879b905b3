/* What a run came to: as JSON for programs, in a few lines for people.
 * SPDX-License-Identifier: Apache-2.0 */
#include "report.h"
#include "checkpoint.h"
#include "json_text.h"
#include "ledger.h"
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

/** Median of the seconds of an epoch; NaN if there was none, or no memory to sort them in. */
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

/** Add one member; the first failure is kept. */
static void add(json_t *object, const char *key, json_t *value, int *bad)
{
    if (json_object_set_new(object, key, value) != 0) *bad = 1;
}

/** JSON has neither NaN nor infinity. */
static json_t *number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *measured(const graft_epoch *epoch, double value)
{
    return number(epoch->evaluated ? value : NAN);
}

static json_t *build_history(const struct run *run)
{
    json_t *history = json_array();

    for (int64_t i = 0; i < run->n_history; i++) {
        const graft_epoch *e = &run->history[i];
        json_t            *entry = json_object();
        int                bad = 0;

        add(entry, "epoch", json_integer(e->epoch), &bad);
        add(entry, "loss", number(e->loss), &bad);
        add(entry, "train_accuracy", measured(e, e->train_accuracy), &bad);
        add(entry, "val_accuracy", measured(e, e->validation_accuracy), &bad);
        add(entry, "test_accuracy", measured(e, e->test_accuracy), &bad);
        add(entry, "seconds", number(e->seconds), &bad);
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

/** Bytes of the last epoch by layer, of all ranks; NULL when out of memory. */
static json_t *build_layers(const struct run *run)
{
    graft_traffic_item item = GRAFT_INIT(graft_traffic_item);
    json_t            *layers = json_array(), *layer = NULL;
    int                bad = 0;

    for (int32_t i = 0; run->library.train->traffic_item(run->trainer, -1, i, &item, NULL) == GRAFT_OK; i++) {
        if (item.pass == GRAFT_PASS_FORWARD) {
            layer = json_object();
            add(layer, "layer", json_integer(item.layer), &bad);
            if (json_array_append_new(layers, layer) != 0) bad = 1;
        }
        if (bad) break;
        add(layer, item.pass == GRAFT_PASS_FORWARD ? "forward" : "backward", json_integer(item.bytes), &bad);
        add(layer, item.pass == GRAFT_PASS_FORWARD ? "messages_forward" : "messages_backward",
            json_integer(item.messages), &bad);
    }
    if (!bad) return layers;
    json_decref(layers);
    return NULL;
}

static json_t *build_waits(const struct run *run)
{
    json_t *waits = json_array();

    for (int q = 0; q < run->ranks.n_ranks; q++) {
        if (json_array_append_new(waits, number(run->ranks.told[q].waited)) == 0) continue;
        json_decref(waits);
        return NULL;
    }
    return waits;
}

/** What few bits lost of the rows that all ranks sent and looked at, of their squares; nothing if there were none. */
static void add_losses(json_t *report, const struct run *run, int *bad)
{
    struct told all = { 0 };

    for (int q = 0; q < run->ranks.n_ranks; q++) {
        all.looked_at += run->ranks.told[q].looked_at;
        all.nmse += run->ranks.told[q].nmse;
        all.bound += run->ranks.told[q].bound;
    }
    if (all.looked_at == 0) return;
    add(report, "quant_nmse", number(all.nmse / all.looked_at), bad);
    add(report, "quant_nmse_bound", number(all.bound / all.looked_at), bad);
}

/** Over ranks: how many, and what they send. */
static void add_ranks(json_t *report, const struct run *run, int *bad)
{
    graft_traffic traffic = GRAFT_INIT(graft_traffic);

    add(report, "ranks", json_integer(run->ranks.n_ranks), bad);
    if (run->library.train->traffic(run->trainer, -1, &traffic, NULL) < 0) return;
    add(report, "cut_edges", json_integer(traffic.cut_edges), bad);
    add(report, "halo_rows", json_integer(traffic.halo_rows), bad);
    add(report, "halo_bytes_per_epoch", json_integer(traffic.halo_bytes_per_epoch), bad);
    add(report, "halo_bytes_if_post", json_integer(traffic.halo_bytes_if_post), bad);
    add(report, "halo_bytes_by_layer", build_layers(run), bad);
    add(report, "wait_seconds", number(run->ranks.told[0].waited), bad);
    add(report, "wait_seconds_by_rank", build_waits(run), bad);
    add(report, "overlap_fraction", number(traffic.overlap_fraction), bad);
    add_losses(report, run, bad);
}

/** The whole report, or NULL when out of memory. */
static json_t *build_report(const struct run *run)
{
    const graft_dataset *dataset = run->dataset;
    json_t              *report = json_object();
    char                 kernel[64];
    int                  bad = 0;

    add(report, "dataset", json_text(run->arguments->dataset), &bad);
    add(report, "version", json_text(run->library.api->version), &bad);
    add(report, "test_accuracy", number(run->best.test_accuracy), &bad);
    add(report, "val_accuracy", number(run->best.validation_accuracy), &bad);
    add(report, "train_accuracy", number(run->best.train_accuracy), &bad);
    add(report, "epochs", json_integer(run->epochs), &bad);
    add(report, "best_epoch", json_integer(run->best.epoch), &bad);
    add(report, "interrupted", json_boolean(run->signal != 0), &bad);
    add(report, "seconds_per_epoch", number(median_seconds(run)), &bad);
    add(report, "seconds_total", number(run->seconds), &bad);
    library_kernel(&run->library, kernel, sizeof kernel);
    add(report, "kernel", json_text(kernel), &bad);
    add(report, "explain", json_text(run->explained), &bad);
    add(report, "peak_rss_bytes", json_integer(ledger_peak()), &bad);
    add(report, "ledger_bytes", ledger_json(run), &bad);
    add(report, "vertices", json_integer(dataset->n_vertices), &bad);
    add(report, "edges", json_integer(run_edges(run)), &bad);
    add(report, "features", json_integer(dataset->n_features), &bad);
    add(report, "classes", json_integer(dataset->n_classes), &bad);
    add(report, "options", build_options(run), &bad);
    add(report, "history", build_history(run), &bad);
    if (run->ranks.n_ranks > 1) add_ranks(report, run, &bad);
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
    /* A failed write is kept by the stream and told by output_end(); what else can fail here is memory. */
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

/** A share with four decimals, or "-". */
static const char *share(char text[32], double value)
{
    if (isnan(value)) return "-";
    snprintf(text, 32, "%.4f", value);
    return text;
}

/** What ranks sent in an epoch, and how long they waited for it. */
static void print_ranks(const struct run *run)
{
    graft_traffic traffic = GRAFT_INIT(graft_traffic);
    int           slowest = 0;

    if (run->library.train->traffic(run->trainer, -1, &traffic, NULL) < 0) return;
    for (int q = 1; q < run->ranks.n_ranks; q++)
        if (run->ranks.told[q].waited > run->ranks.told[slowest].waited) slowest = q;
    printf("messages        %.3f MB of rows per epoch, %.3f if all were raw; waited %.3g s on the first rank, %.3g s "
           "at most (rank %d)\n",
           (double)traffic.halo_bytes_per_epoch * 1e-6, (double)traffic.halo_bytes_if_post * 1e-6,
           run->ranks.told[0].waited, run->ranks.told[slowest].waited, slowest);
}

void report_print(const struct run *run)
{
    const struct arguments *arguments = run->arguments;
    char                    test[32], validation[32], train[32], kernel[64];

    printf("\n");
    if (!isnan(run->best.test_accuracy) || !isnan(run->best.validation_accuracy)) {
        printf("test accuracy   %s, validation %s, training %s\n", share(test, run->best.test_accuracy),
               share(validation, run->best.validation_accuracy), share(train, run->best.train_accuracy));
        printf("best epoch      %" PRId64 " of %" PRId64 ", by validation accuracy\n", run->best.epoch, run->epochs);
    }
    if (run->n_history > 0) {
        printf("time per epoch  %.4g s (median), %.4g s in all\n", median_seconds(run), run->seconds);
    }
    if (run->ranks.n_ranks > 1) print_ranks(run);
    printf("peak memory     %.1f MB", (double)ledger_peak() * 1e-6);
    if (arguments->explain) printf(", where %.1f were told", (double)ledger_told(run) * 1e-6);
    printf("\n");
    library_kernel(&run->library, kernel, sizeof kernel);
    printf("kernel          %s\n", kernel);
    if (run->saved) printf("checkpoint      %s/" CHECKPOINT_FILE "\n", arguments->save);
    if (run->predicted) printf("predictions     %s\n", arguments->predict);
    if (run->profiled) printf("profile         %s\n", arguments->profile);
    if (run->reported) printf("report          %s\n", arguments->json);
}
