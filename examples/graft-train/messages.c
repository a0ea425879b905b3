/* Reports the messages between ranks as JSON and as a table.
 * SPDX-License-Identifier: Apache-2.0 */
#include "messages.h"
#include "caches.h"
#include "json_text.h"

#include "graft_codec.h"

#include <inttypes.h>

/** The quantization error of all sampled rows, and the largest error of a pair of ranks. */
struct quantization {
    double sampled, nmse, expected;
    int    worst_from, worst_to;
    double worst; /* mean error of the rows of the worst pair */
};

static void add_pair(struct quantization *sum, int from, const graft_traffic_pair *pair)
{
    if (pair->sampled_rows == 0) return;
    sum->sampled += (double)pair->sampled_rows;
    sum->nmse += pair->nmse;
    sum->expected += pair->expected;
    if (pair->nmse / (double)pair->sampled_rows < sum->worst) return;
    sum->worst = pair->nmse / (double)pair->sampled_rows;
    sum->worst_from = from;
    sum->worst_to = pair->peer;
}

/** Returns the sum over the pairs of item `index` of the traffic, or over all pairs if `index` is -1. */
static struct quantization quantization_of(const struct run *run, int32_t index)
{
    struct quantization sum = { .worst = 0 };

    for (int q = 0; q < run->ranks.n_ranks; q++) {
        const struct rank_report *report = &run->ranks.reports[q];

        for (int64_t i = 0; i < report->n_pairs; i++)
            if (index < 0 || 2 * report->pairs[i].layer + report->pairs[i].pass == index)
                add_pair(&sum, q, &report->pairs[i]);
    }
    return sum;
}

static int next_item(const struct run *run, int32_t index, graft_traffic_item *item)
{
    *item = GRAFT_INIT(graft_traffic_item);
    return run->library.report->traffic_item(run->trainer, -1, index, item, NULL) == GRAFT_OK;
}

static const char *pass_name(int32_t pass)
{
    return pass == GRAFT_PASS_FORWARD ? "forward" : "backward";
}

/** Add a value under the key "WHAT_forward" or "WHAT_backward". */
static void add_of_pass(json_t *layer, const char *what, const graft_traffic_item *item, json_t *value, int *bad)
{
    char key[64];

    snprintf(key, sizeof key, "%s_%s", what, pass_name(item->pass));
    json_add(layer, key, value, bad);
}

static void add_item(json_t *layer, const struct run *run, int32_t index, const graft_traffic_item *item, int *bad)
{
    const struct quantization error = quantization_of(run, index);

    json_add(layer, pass_name(item->pass), json_integer(item->bytes), bad);
    add_of_pass(layer, "messages", item, json_integer(item->messages), bad);
    add_of_pass(layer, "rows", item, json_integer(item->rows), bad);
    add_of_pass(layer, "staleness", item, json_integer(item->staleness), bad);
    if (item->expected_error > 0) add_of_pass(layer, "expected_error", item, json_number(item->expected_error), bad);
    if (error.sampled == 0) return;
    add_of_pass(layer, "nmse", item, json_number(error.nmse / error.sampled), bad);
    add_of_pass(layer, "nmse_expected", item, json_number(error.expected / error.sampled), bad);
}

/** Returns the messages of the last epoch for each layer, summed over ranks, or NULL when out of memory. */
static json_t *build_layers(const struct run *run)
{
    json_t            *layers = json_array(), *layer = NULL;
    graft_traffic_item item;
    int                bad = 0;

    for (int32_t i = 0; next_item(run, i, &item) && !bad; i++) {
        if (item.pass == GRAFT_PASS_FORWARD) {
            layer = json_object();
            json_add(layer, "layer", json_integer(item.layer), &bad);
            if (json_array_append_new(layers, layer) != 0) bad = 1;
        }
        if (!bad) add_item(layer, run, i, &item, &bad);
    }
    if (!bad) return layers;
    json_decref(layers);
    return NULL;
}

static json_t *build_pair(int from, const graft_traffic_pair *pair, int *bad)
{
    json_t *entry = json_object();

    json_add(entry, "layer", json_integer(pair->layer), bad);
    json_add(entry, "pass", json_string(pass_name(pair->pass)), bad);
    json_add(entry, "from", json_integer(from), bad);
    json_add(entry, "to", json_integer(pair->peer), bad);
    json_add(entry, "rows", json_integer(pair->rows), bad);
    json_add(entry, "bytes", json_integer(pair->bytes), bad);
    json_add(entry, "rows_unquantized", json_integer(pair->rows_unquantized), bad);
    json_add(entry, "bytes_unquantized", json_integer(pair->bytes_unquantized), bad);
    json_add(entry, "sampled_rows", json_integer(pair->sampled_rows), bad);
    if (pair->sampled_rows == 0) return entry;
    json_add(entry, "nmse", json_number(pair->nmse / (double)pair->sampled_rows), bad);
    json_add(entry, "nmse_expected", json_number(pair->expected / (double)pair->sampled_rows), bad);
    return entry;
}

static json_t *build_pairs(const struct run *run)
{
    json_t *pairs = json_array();
    int     bad = 0;

    for (int q = 0; q < run->ranks.n_ranks; q++) {
        const struct rank_report *report = &run->ranks.reports[q];

        for (int64_t i = 0; i < report->n_pairs && !bad; i++)
            if (json_array_append_new(pairs, build_pair(q, &report->pairs[i], &bad)) != 0) bad = 1;
    }
    if (!bad) return pairs;
    json_decref(pairs);
    return NULL;
}

static json_t *build_waits(const struct run *run)
{
    json_t *waits = json_array();

    for (int q = 0; q < run->ranks.n_ranks; q++) {
        if (json_array_append_new(waits, json_number(run->ranks.reports[q].waited)) == 0) continue;
        json_decref(waits);
        return NULL;
    }
    return waits;
}

/** Count the rows of the last epoch with 2^i bits per element. */
static void count_bits(const struct run *run, int64_t rows[6])
{
    graft_traffic_item item;

    for (int b = 0; b < 6; b++) rows[b] = 0;
    for (int32_t i = 0; next_item(run, i, &item); i++)
        for (int b = 0; b < 6; b++) rows[b] += item.rows_by_bits[b];
}

static json_t *build_histogram(const struct run *run)
{
    json_t *histogram = json_object();
    int64_t rows[6];
    char    key[8];
    int     bad = 0;

    count_bits(run, rows);
    for (int b = 0; b < 6; b++) {
        snprintf(key, sizeof key, "%d", 1 << b);
        if (rows[b] > 0) json_add(histogram, key, json_integer(rows[b]), &bad);
    }
    if (!bad) return histogram;
    json_decref(histogram);
    return NULL;
}

/** Count the rows that were sent unquantized. Returns their bytes. */
static int64_t count_raw(const struct run *run, int64_t *rows)
{
    int64_t bytes = 0;

    *rows = 0;
    for (int q = 0; q < run->ranks.n_ranks; q++) {
        for (int64_t i = 0; i < run->ranks.reports[q].n_pairs; i++) {
            *rows += run->ranks.reports[q].pairs[i].rows_unquantized;
            bytes += run->ranks.reports[q].pairs[i].bytes_unquantized;
        }
    }
    return bytes;
}

/** Returns whether ranks share columns of sums. In that case there is no alternative of sending raw rows. */
static int shares_columns(const graft_traffic *traffic)
{
    return traffic->halo_bytes_per_epoch > 0 && traffic->halo_bytes_if_post == 0;
}

void messages_json(json_t *report, const struct run *run, int *bad)
{
    const struct quantization error = quantization_of(run, -1);
    graft_traffic             traffic = GRAFT_INIT(graft_traffic);
    int64_t                   rows_unquantized;

    json_add(report, "ranks", json_integer(run->ranks.n_ranks), bad);
    if (run->library.report->traffic(run->trainer, -1, &traffic, NULL) < 0) return;
    json_add(report, "cut_edges", json_integer(traffic.cut_edges), bad);
    json_add(report, "halo_rows", json_integer(traffic.halo_rows), bad);
    json_add(report, "halo_bytes_per_epoch", json_integer(traffic.halo_bytes_per_epoch), bad);
    json_add(report, "edge_bytes_per_epoch", json_integer(traffic.edge_bytes_per_epoch), bad);
    if (!shares_columns(&traffic))
        json_add(report, "halo_bytes_if_post", json_integer(traffic.halo_bytes_if_post), bad);
    json_add(report, "halo_bytes_unquantized", json_integer(count_raw(run, &rows_unquantized)), bad);
    json_add(report, "halo_bytes_by_layer", build_layers(run), bad);
    json_add(report, "halo_by_pair", build_pairs(run), bad);
    json_add(report, "bits_histogram", build_histogram(run), bad);
    json_add(report, "staleness_max", json_integer(traffic.staleness_max), bad);
    json_add(report, "epochs_synchronous", json_integer(traffic.epochs_synchronous), bad);
    json_add(report, "wait_seconds", json_number(run->ranks.reports[0].waited), bad);
    json_add(report, "wait_seconds_by_rank", build_waits(run), bad);
    json_add(report, "overlap_fraction", json_number(traffic.overlap_fraction), bad);
    if (error.sampled == 0) return;
    json_add(report, "quant_nmse", json_number(error.nmse / error.sampled), bad);
    json_add(report, "quant_nmse_expected", json_number(error.expected / error.sampled), bad);
}

/** Returns the formula of the expected |x - x'|^2 of a row of D elements with step S between levels. */
static const char *expected_name(const graft_traffic_item *item)
{
    if (item->code == 0) return "";
    if (item->code == GRAFT_CODEC_ROTATED) return "(pi/2-1)|x|^2";
    return item->rounding == GRAFT_ROUND_STOCHASTIC ? "D S^2/6" : "D S^2/12";
}

/** The optional columns of the table, and whether the table counts records of shared columns instead of rows. */
struct columns {
    int stale, error, share, records;
};

static struct columns columns_of(const struct run *run, const graft_traffic *traffic)
{
    struct columns     columns = { .stale = traffic->staleness_max > 0,
                                   .error = quantization_of(run, -1).sampled > 0,
                                   .records = shares_columns(traffic) };
    graft_traffic_item item;

    for (int32_t i = 0; next_item(run, i, &item); i++) columns.share |= item.expected_error > 0;
    return columns;
}

static void print_item(const struct run *run, int32_t index, const graft_traffic_item *item, struct columns columns)
{
    const struct quantization error = quantization_of(run, index);
    double                    bits = 0;

    for (int b = 0; b < 6; b++) bits += (double)item->rows_by_bits[b] * (1 << b);
    printf("  %-2d %-8s %10" PRId64 " %9.3f %5.3g", item->layer, pass_name(item->pass), item->rows,
           (double)item->bytes * 1e-6, item->rows > 0 ? bits / (double)item->rows : 0);
    if (columns.stale) printf(" %5" PRId64, item->staleness);
    if (columns.share) printf(" %9.3g", item->expected_error);
    if (error.sampled > 0)
        printf(" %9.3g  %9.3g %-13s  %9.3g from %d to %d", error.nmse / error.sampled, error.expected / error.sampled,
               expected_name(item), error.worst, error.worst_from, error.worst_to);
    printf("\n");
}

/** Print a line for each layer and direction that had messages in the last epoch. */
static void print_layers(const struct run *run, struct columns columns)
{
    graft_traffic_item item;

    printf("  %-11s %10s %9s %5s", "layer", columns.records ? "records" : "rows", "MB", "bits");
    if (columns.stale) printf(" %5s", "stale");
    if (columns.share) printf(" %9s", "share");
    if (columns.error) printf(" %9s  %9s %-13s  %9s", "error", "expected", "", "largest");
    printf("\n");
    for (int32_t i = 0; next_item(run, i, &item); i++)
        if (item.rows > 0) print_item(run, i, &item, columns);
}

/** Print the histogram of bits per element, unless all rows have the same number of bits. */
static void print_histogram(const struct run *run)
{
    const char *between = "  rows by bits ";
    int64_t     rows[6];
    int         kinds = 0;

    count_bits(run, rows);
    for (int b = 0; b < 6; b++) kinds += rows[b] > 0;
    for (int b = 5; b >= 0 && kinds > 1; b--) {
        if (rows[b] == 0) continue;
        printf("%s %d: %" PRId64, between, 1 << b, rows[b]);
        between = ",";
    }
    if (kinds > 1) printf("\n");
}

static void print_raw(const struct run *run)
{
    int64_t       rows;
    const int64_t bytes = count_raw(run, &rows);

    if (rows > 0)
        printf("  %" PRId64 " of these rows were also sent unquantized, %.3f MB: their messages have a row without a "
               "code\n",
               rows, (double)bytes * 1e-6);
}

static void print_waits(const struct run *run)
{
    int slowest = 0;

    for (int q = 1; q < run->ranks.n_ranks; q++)
        if (run->ranks.reports[q].waited > run->ranks.reports[slowest].waited) slowest = q;
    printf("; waited %.3g s on rank 0, at most %.3g s (rank %d)\n", run->ranks.reports[0].waited,
           run->ranks.reports[slowest].waited, slowest);
}

void messages_print(const struct run *run)
{
    const int64_t of_batches = caches_bytes(run);
    graft_traffic traffic = GRAFT_INIT(graft_traffic);

    if (run->library.report->traffic(run->trainer, -1, &traffic, NULL) < 0) return;
    if (of_batches > 0) {
        printf("messages        %.3f MB of features and of rows for batches, in all epochs", (double)of_batches * 1e-6);
        print_waits(run);
        return;
    }
    printf("messages        %.3f MB of %s per epoch", (double)traffic.halo_bytes_per_epoch * 1e-6,
           shares_columns(&traffic) ? "shared columns" : "rows");
    if (traffic.edge_bytes_per_epoch > 0)
        printf(", of which %.3f MB are edges", (double)traffic.edge_bytes_per_epoch * 1e-6);
    if (!shares_columns(&traffic)) printf(", %.3f if all were raw", (double)traffic.halo_bytes_if_post * 1e-6);
    print_waits(run);
    if (traffic.halo_bytes_per_epoch == 0) return;
    print_layers(run, columns_of(run, &traffic));
    print_histogram(run);
    print_raw(run);
    if (traffic.epochs_synchronous > 0)
        printf("  %" PRId64 " of %" PRId64 " epochs were synchronous\n", traffic.epochs_synchronous, run->n_history);
}
