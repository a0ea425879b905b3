/* Checks what a trainer over ranks reports of its work: bytes by layer, direction and pair of ranks against those that
 * a counting transport was given to send, quantization errors against theory, and the staleness of rows.
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness/counting.h"
#include "harness/outputs.h"
#include "harness/tap.h"
#include "oracle/sample.h"

#include "graft_codec.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

enum { N = 300, MANY = 4000, FEATURES = 13, CLASSES = 4, LAYERS = 3, ITEMS = 2 * LAYERS, EPOCHS = 3 };

/* What one rank saw of a training step. */
struct step {
    struct counts      counts;
    graft_traffic_item item[HOSTS_MOST + 1][ITEMS]; /* traffic of each rank, and of all */
    graft_traffic_item lost[ITEMS];
    graft_traffic_pair pair[ITEMS][HOSTS_MOST];
    graft_traffic      traffic[HOSTS_MOST + 1];
};

struct job {
    struct sample_dataset set;
    struct step           step[HOSTS_MOST][EPOCHS];
    char                  explained[2][HOSTS_MOST][8192]; /* explain() before the first step, and after the last */
    /* Few vertices are trained, none of which gathers from all. */
    int                   few;
    /* Width of all rows except those sent in f32; 0 if there are several. */
    int                   bits;
    int                   shares;      /* ranks share columns, and have no halo */
    int                   mixes;       /* widths are assigned after the first epoch */
    int                   minmax_back; /* the 1-bit code of backward passes is MINMAX */
    int                   rounding;    /* rounding of both directions; 0 for the default */
    int32_t               refused[7];
};

static int32_t train_account_ask(struct host *host, graft_trainer *trainer, struct step *step)
{
    int32_t rc = GRAFT_OK;

    for (int32_t p = 0; p <= host->n_ranks && rc == GRAFT_OK; p++) {
        const int32_t rank = p < host->n_ranks ? p : -1;

        step->traffic[p] = GRAFT_INIT(graft_traffic);
        rc = host->report->traffic(trainer, rank, &step->traffic[p], &host->error);
        for (int32_t i = 0; i < ITEMS && rc == GRAFT_OK; i++) {
            step->item[p][i] = GRAFT_INIT(graft_traffic_item);
            rc = host->report->traffic_item(trainer, rank, i, &step->item[p][i], &host->error);
            if (rank == host->rank) step->lost[i] = step->item[p][i];
            if (rank == host->rank) step->item[p][i].sampled_rows = 0;
            if (rank == host->rank) step->item[p][i].nmse = step->item[p][i].expected = 0;
        }
    }
    for (int32_t q = 0; q < host->n_ranks; q++) {
        for (int32_t i = 0; i < ITEMS && rc == GRAFT_OK; i++) {
            step->pair[i][q] = GRAFT_INIT(graft_traffic_pair);
            rc = host->report->traffic_pair(trainer, q, i, &step->pair[i][q], &host->error);
        }
    }
    return rc;
}

static int32_t train_account_train(struct host *host, struct job *job, graft_trainer *trainer)
{
    graft_epoch   epoch = output_epoch();
    graft_metrics metrics = output_metrics();
    int32_t       rc = GRAFT_OK;

    for (int e = 0; e < EPOCHS && rc == GRAFT_OK; e++) {
        struct step *step = &job->step[host->rank][e];

        counting_begin(&step->counts);
        rc = host->train->epoch(trainer, &epoch, &host->error);
        counting_begin(NULL);
        /* Rows that are not finite have already been sent when the loss is found not to be finite. */
        if (rc == GRAFT_ERR_NONFINITE) rc = GRAFT_OK;
        /* Messages of an evaluation must not count for the step. */
        if (rc == GRAFT_OK) rc = host->train->evaluate(trainer, GRAFT_WEIGHTS_LAST, &metrics, &host->error);
        if (rc == GRAFT_OK) rc = train_account_ask(host, trainer, step);
    }
    return rc;
}

static void ask_too_much(struct host *host, struct job *job, graft_trainer *trainer)
{
    graft_traffic_item item = GRAFT_INIT(graft_traffic_item);
    graft_traffic_pair pair = GRAFT_INIT(graft_traffic_pair);

    job->refused[0] = host->report->traffic_item(trainer, host->n_ranks, 0, &item, NULL);
    job->refused[1] = host->report->traffic_item(trainer, -2, 0, &item, NULL);
    job->refused[2] = host->report->traffic_item(trainer, 0, ITEMS, &item, NULL);
    job->refused[3] = host->report->traffic_item(trainer, 0, -1, &item, NULL);
    job->refused[4] = host->report->traffic_pair(trainer, host->n_ranks, 0, &pair, NULL);
    job->refused[5] = host->report->traffic_pair(trainer, -1, 0, &pair, NULL);
    job->refused[6] = host->report->traffic_pair(trainer, 0, ITEMS, &pair, NULL);
}

static int32_t account_body(struct host *host)
{
    struct job         *job = host->all->arg;
    struct host_trainer t;
    int32_t             rc;

    counting_wrap(&host->transport);
    rc = host_trainer_create(host, &job->set.dataset, SLICES_EVEN, &t);
    if (rc == GRAFT_OK)
        rc = host->train->explain(t.trainer, job->explained[0][host->rank], sizeof job->explained[0][0], &host->error);
    if (rc == GRAFT_OK) rc = train_account_train(host, job, t.trainer);
    if (rc == GRAFT_OK)
        rc = host->train->explain(t.trainer, job->explained[1][host->rank], sizeof job->explained[1][0], &host->error);
    if (rc == GRAFT_OK && host->rank == 0) ask_too_much(host, job, t.trainer);
    host_trainer_destroy(host, &t);
    return rc;
}

/* Read the numbers of line `rank` ("0", "all") in the table of bytes that explain() prints. */
static int read_line(const char *explained, const char *rank, int64_t numbers[ITEMS])
{
    const char *table = strstr(explained, "bytes of rows that each rank receives in a step"), *line;
    char        name[24];
    int         read = 0, more;
    long long   number;

    snprintf(name, sizeof name, "\n%-6s", rank);
    line = table != NULL ? strstr(table, name) : NULL;
    if (line == NULL) return 0;
    for (line += strlen(name); read < ITEMS && *line != '\n' && sscanf(line, "%lld%n", &number, &more) == 1;
         line += more)
        numbers[read++] = number;
    return read == ITEMS && *line == '\n';
}

/* Compare what a rank sent to each other rank with what it reports. */
static const char *check_pairs(const struct step *own, int32_t rank, int32_t n_ranks, int i)
{
    const graft_traffic_item *item = &own->item[rank][i], *lost = &own->lost[i];
    int64_t                   bytes = 0, rows = 0, messages = 0, sampled_rows = 0;
    double                    nmse = 0, expected = 0;

    for (int32_t q = 0; q < n_ranks; q++) {
        const graft_traffic_pair *pair = &own->pair[i][q];

        if (pair->peer != q || pair->layer != i / 2 || pair->pass != i % 2) return "a pair of something else";
        if (pair->bytes != own->counts.bytes[i][q]) return "another rank was sent something else";
        if ((pair->rows_unquantized > 0) != (own->counts.spare[i][q] > 0) || pair->rows_unquantized > pair->rows)
            return "other rows went as they are";
        if (pair->bytes_unquantized != own->counts.spare[i][q]) return "other bytes went as they are";
        bytes += pair->bytes;
        rows += pair->rows;
        messages += own->counts.messages[i][q];
        sampled_rows += pair->sampled_rows;
        nmse += pair->nmse;
        expected += pair->expected;
    }
    if (item->bytes_sent != bytes || item->rows_sent != rows || item->messages_sent != messages)
        return "a layer sent something else than its pairs";
    if (lost->sampled_rows != sampled_rows || lost->nmse != nmse || lost->expected != expected)
        return "a layer lost something else than its pairs";
    return NULL;
}

/* All rows must be counted by their widths. If a layer has a single width, the bytes that it sent follow from them. */
static const char *train_account_check_bits(const graft_traffic_item *item, int bits)
{
    int64_t rows = 0;

    for (int b = 0; b < 6; b++) {
        rows += item->rows_by_bits[b];
        if (bits > 0 && 1 << b != bits && b != 5 && item->rows_by_bits[b] > 0) return "rows of other bits";
    }
    return rows == item->rows_sent ? NULL : "rows of no bits";
}

/* A rank must receive what the others report as sent to it, in each layer and in a step. */
static const char *check_coming(const struct job *job, int e, int32_t rank, int32_t n_ranks)
{
    int64_t bytes = 0;

    for (int i = 0; i < ITEMS; i++) {
        const graft_traffic_item *item = &job->step[0][e].item[rank][i];
        int64_t                   coming = 0, rows = 0;

        for (int32_t p = 0; p < n_ranks; p++) {
            coming += job->step[p][e].pair[i][rank].bytes;
            rows += job->step[p][e].pair[i][rank].rows;
        }
        if (item->bytes != coming || item->rows != rows) return "something else comes to a layer than was sent to it";
        bytes += coming;
    }
    for (int32_t p = 0; p < n_ranks; p++)
        if (job->step[p][e].traffic[rank].halo_bytes_per_epoch != bytes)
            return "something else comes to a rank than was sent to it";
    return NULL;
}

/* Compare the counts of a step with what it sent. The return value is NULL or an error in words. */
static const char *check_step(const struct job *job, int e, int32_t n_ranks, int is_gat)
{
    const struct step *first = &job->step[0][e];
    const char        *fault = NULL;
    int64_t            all = 0;

    for (int32_t p = 0; p < n_ranks; p++) {
        const struct step *own = &job->step[p][e];
        int64_t            coming = 0;

        if (own->counts.odd + own->counts.last_is_odd > 0) return "a frame said another number of bytes";
        if (memcmp(own->item, first->item, sizeof own->item) != 0) return "ranks count each other otherwise";
        if (fault == NULL) fault = check_coming(job, e, p, n_ranks);
        for (int i = 0; i < ITEMS; i++) {
            const graft_traffic_item *item = &own->item[p][i];

            if (item->rank != p || item->layer != i / 2 || item->pass != i % 2) return "an item of something else";
            if (fault == NULL) fault = check_pairs(own, p, n_ranks, i);
            if (fault == NULL) fault = train_account_check_bits(item, job->bits);
            coming += item->bytes;
        }
        all += coming;
    }
    if (fault != NULL) return fault;
    for (int i = 0; i < ITEMS; i++) {
        const graft_traffic_item *sum = &first->item[n_ranks][i];
        int64_t                   bytes = 0, sent = 0, rows = 0, messages = 0;

        for (int32_t p = 0; p < n_ranks; p++) {
            bytes += first->item[p][i].bytes;
            sent += first->item[p][i].bytes_sent;
            rows += first->item[p][i].rows;
            messages += first->item[p][i].messages;
        }
        if (sum->bytes != bytes || bytes != sent || sum->rows != rows || sum->messages != messages)
            return "all together is not the sum";
        /* A training vertex gathers from all vertices, so only the last layer computes fewer rows than there are. */
        rows = sum->exchanges * first->traffic[n_ranks].halo_rows;
        if (job->shares) continue;
        if ((i / 2 < 2 && !job->few) || is_gat ? sum->rows != rows : sum->rows > rows) return "rows of another halo";
    }
    return all == first->traffic[n_ranks].halo_bytes_per_epoch ? NULL : "the bytes of an epoch are not those of layers";
}

/* The code of a row by the options; the default does not rotate narrow rows, which in 1 bit are those of less than 8
 * bytes. */
static int32_t code_of(const struct job *job, const graft_traffic_item *item)
{
    const int is_narrow = item->bytes_sent < 8 * item->rows_sent;

    return job->bits == 1 && !is_narrow && !(job->minmax_back && item->pass) ? GRAFT_CODEC_ROTATED : GRAFT_CODEC_MINMAX;
}

static int32_t rounding_of(const struct job *job, int back)
{
    if (job->rounding != 0) return job->rounding;
    return back ? GRAFT_ROUND_STOCHASTIC : GRAFT_ROUND_NEAREST;
}

/* With quantized rows and halo.error_statistics=exact all sent rows must have been measured and have the error that
 * theory predicts, otherwise none. */
static const char *check_losses(const struct job *job, int32_t n_ranks, int few_bits, int is_gat)
{
    for (int32_t p = 0; p < n_ranks; p++) {
        for (int i = 0; i < ITEMS; i++) {
            const graft_traffic_item *lost = &job->step[p][EPOCHS - 1].lost[i];
            int64_t                   sent = 0;

            /* Constant features are aggregated once, in the first step, and sent in f32. */
            for (int e = i == 0 && !is_gat; e < EPOCHS && few_bits; e++) sent += job->step[p][e].item[p][i].rows_sent;
            if (lost->sampled_rows != sent) return "other rows were looked at than were sent";
            if (sent > 0 && lost->code != code_of(job, lost)) return "rows of another code";
            if (sent > 0 && job->bits != 1 && lost->rounding != rounding_of(job, i % 2)) return "another rounding";
            /* The predicted error of one bit holds for long rows, but the last layer has three columns. */
            if (lost->nmse > 2.5 * lost->expected || (sent > 0 && !(lost->nmse > 0)))
                return "more is lost than is expected";
        }
    }
    return NULL;
}

/* Rows with a NaN must have been sent unquantized by some rank in some step. */
static const char *check_raw(const struct job *job, int32_t n_ranks)
{
    for (int32_t p = 0; p < n_ranks; p++)
        for (int i = 0; i < ITEMS * n_ranks * EPOCHS; i++)
            if (job->step[p][i % EPOCHS].pair[i / EPOCHS / n_ranks][i / EPOCHS % n_ranks].rows_unquantized > 0)
                return NULL;
    return "all rows fit the code";
}

#define SENT "sent in the last step, all ranks"

/* Before the first step explain() must report what later steps send, except where widths are assigned later. */
static const char *train_account_check_explained(const struct job *job, int32_t n_ranks)
{
    const struct step *last = &job->step[0][EPOCHS - 1];
    char               name[16];
    int64_t            numbers[ITEMS];

    if (strstr(job->explained[0][0], SENT) != NULL) return "explain() says before a step what it sent";
    if ((strstr(job->explained[1][0], SENT) != NULL) != (last->traffic[n_ranks].halo_bytes_per_epoch > 0))
        return "explain() does not say after a step what it sent";
    for (int32_t p = 0; p <= n_ranks; p++) {
        snprintf(name, sizeof name, p < n_ranks ? "%d" : "all", p);
        for (int when = job->mixes; when < 2; when++) {
            if (!read_line(job->explained[when][0], name, numbers)) return "explain() has no such line";
            for (int i = 0; i < ITEMS; i++)
                if (numbers[i] != last->item[p][i].bytes) return "explain() says other bytes than a step sends";
        }
    }
    return NULL;
}

/* The staleness of the rows that the last step used must be one epoch, and none for labels. */
static const char *check_ages(const struct job *job, int32_t n_ranks, int is_stale, int labels)
{
    const struct step *last = &job->step[0][EPOCHS - 1];
    int64_t            most = 0;

    for (int i = 0; i < ITEMS; i++) {
        const graft_traffic_item *item = &last->item[n_ranks][i];

        if (item->staleness != (is_stale && item->exchanges > 0 && i >= labels)) return "rows are of another epoch";
        if (item->staleness_max < item->staleness) return "the oldest rows are not the oldest";
        if (item->staleness_max > most) most = item->staleness_max;
    }
    return most == last->traffic[n_ranks].staleness_max ? NULL : "the oldest rows of all are not those of a layer";
}

/* Options in addition to the common ones, and the expected results. */
struct more {
    const char *set[4]; /* options, the last one NULL */
    int         bits;   /* width of all rows, or 0 if there are several */
    int         few;    /* whether few vertices are trained */
    int         mixes;
    int         minmax_back, rounding;
};

static struct job *account_run(int32_t n_ranks, int64_t n, const char *const *settings, const struct more *more,
                               const char **words)
{
    static struct hosts hosts;
    struct job         *job = calloc(1, sizeof *job);
    struct sample       sample = { 5 };

    for (int i = 0; i < 4 && more->set[i] != NULL; i++) job->shares |= strncmp(more->set[i], "parallel=", 9) == 0;
    job->few = more->few;
    job->bits = more->bits;
    job->mixes = more->mixes;
    job->minmax_back = more->minmax_back;
    job->rounding = more->rounding;
    sample_dataset_init(&job->set, &sample, n, FEATURES, CLASSES, 0, 0);
    for (int64_t v = 0; v < n && job->few; v++) job->set.split[v] = v % 37 == 2 ? GRAFT_SPLIT_TRAIN : GRAFT_SPLIT_TEST;
    hosts_run(&hosts, n_ranks, settings, account_body, job);
    *words = hosts_fault(&hosts);
    return job;
}

static void job_free(struct job *job)
{
    sample_dataset_fini(&job->set);
    free(job);
}

/* Options of a run as "key=value", the last one NULL. */
struct settings {
    char        text[32][32];
    const char *at[33];
    int         n;
};

static void add_setting(struct settings *s, const char *key, const char *value)
{
    snprintf(s->text[s->n], sizeof s->text[0], "%s%s", key, value);
    s->at[s->n] = s->text[s->n];
    s->at[++s->n] = NULL;
}

static void settings_of(const char *model, const char *cover, const struct more *more, struct settings *s)
{
    static const char *const common[] = { "layers=3",        "epochs=9",
                                          "eval_every=0",    "threads=1",
                                          "halo.timeout=60", "partition=hash",
                                          "heads=2",         "halo.error_statistics=no" };

    s->n = 0;
    for (size_t i = 0; i < sizeof common / sizeof *common; i++) add_setting(s, common[i], "");
    add_setting(s, "model=", model);
    add_setting(s, "halo.cover=", cover);
    for (int i = 0; i < 4 && more->set[i] != NULL; i++) add_setting(s, more->set[i], "");
}

static int has(const struct more *more, const char *setting)
{
    for (int i = 0; i < 4 && more->set[i] != NULL; i++)
        if (strcmp(more->set[i], setting) == 0) return 1;
    return 0;
}

static void test_traffic(const char *model, const struct more *more, const char *cover, int32_t n_ranks)
{
    const int       is_gat = strcmp(model, "gat") == 0;
    struct settings s;
    const char     *words;
    struct job     *job;
    int64_t         total = 0;

    if (is_gat && strncmp(more->set[0], "parallel=", 9) == 0) return;
    settings_of(model, cover, more, &s);
    job = account_run(n_ranks, N, s.at, more, &words);
    for (int e = 0; e < EPOCHS && words == NULL; e++) words = check_step(job, e, n_ranks, is_gat);
    if (words == NULL && strcmp(model, "mlp") != 0 && !job->shares) words = train_account_check_explained(job, n_ranks);
    if (words == NULL) words = check_losses(job, n_ranks, has(more, "halo.error_statistics=exact"), is_gat);
    if (words == NULL)
        words = check_ages(job, n_ranks, has(more, "halo.staleness=1"), !is_gat && has(more, "label_rate=0.5"));
    if (words == NULL && has(more, "lr=1e30")) words = check_raw(job, n_ranks);
    if (words == NULL) total = job->step[0][EPOCHS - 1].traffic[n_ranks].halo_bytes_per_epoch;
    ok_or(words == NULL && (total > 0) == (strcmp(model, "mlp") != 0 && n_ranks > 1), words,
          "%s, %s %s%s, %s on %d ranks: %lld bytes by layer, direction and pair, as they were sent", model,
          more->set[0], more->set[1], more->mixes ? ", mixed" : "", cover, n_ranks, (long long)total);
    if (n_ranks == 3 && words == NULL)
        ok(job->refused[0] == GRAFT_ERR_ARG && job->refused[1] == GRAFT_ERR_ARG &&
               job->refused[2] == GRAFT_ERR_NOT_FOUND && job->refused[3] == GRAFT_ERR_NOT_FOUND &&
               job->refused[4] == GRAFT_ERR_ARG && job->refused[5] == GRAFT_ERR_ARG &&
               job->refused[6] == GRAFT_ERR_NOT_FOUND,
           "reports refuse a rank or a layer that does not exist");
    job_free(job);
}

/* The expected number of measured rows in all passes of an item: one row in 64, other rows in each epoch. */
static int64_t sampled(const struct job *job, int32_t rank, int i)
{
    int64_t rows = 0;

    for (int64_t e = 0; e < EPOCHS; e++)
        for (int64_t row = 0; row < job->step[rank][e].item[rank][i].rows_sent; row++) rows += (row + e) % 64 == 0;
    return rows;
}

/* By default one row in 64 is measured, and the sample must have the mean of all rows. */
static void test_sample(const char *bits, int32_t n_ranks)
{
    const struct more two[] = { { .set = { "halo.error_statistics=sample", bits, "reuse_input=no" } },
                                { .set = { "halo.error_statistics=exact", bits, "reuse_input=no" } } };
    struct job       *job[2];
    const char       *words = NULL;
    double            mean[2][2] = { { 0 } }; /* mean of each run, forward and backward */
    int64_t           rows[2][2] = { { 0 } }, wanted = 0;

    for (int k = 0; k < 2; k++) {
        struct settings s;
        const char     *here;

        settings_of("sage", "hybrid", &two[k], &s);
        job[k] = account_run(n_ranks, MANY, s.at, &two[k], &here);
        if (words == NULL) words = here;
        for (int i = 0; i < n_ranks * ITEMS; i++) {
            const graft_traffic_item *lost = &job[k]->step[i / ITEMS][EPOCHS - 1].lost[i % ITEMS];

            rows[k][i % 2] += lost->sampled_rows;
            mean[k][i % 2] += lost->nmse;
            if (k == 0) wanted += sampled(job[k], i / ITEMS, i % ITEMS);
        }
        job_free(job[k]);
    }
    ok(words == NULL && rows[0][0] + rows[0][1] == wanted && 60 * wanted < rows[1][0] + rows[1][1],
       "%s: of %lld rows %lld are compared%s%s", bits, (long long)(rows[1][0] + rows[1][1]),
       (long long)(rows[0][0] + rows[0][1]), words != NULL ? ": " : "", words != NULL ? words : "");
    for (int d = 0; d < 2; d++) {
        const double some = mean[0][d] / (double)rows[0][d], all = mean[1][d] / (double)rows[1][d];

        /* The errors of rows vary by less than their mean, so five standard errors of the mean are allowed. */
        ok(rows[0][d] > 100 && fabs(some - all) < 5 * all / sqrt((double)rows[0][d]),
           "%s, %s: the quantization error is %.3g of the compared rows, %.3g of all rows", bits,
           d ? "backward" : "forward", some, all);
    }
}

int main(void)
{
    static const char *const models[] = { "sage", "gcn", "gin", "gat" };
    static const struct more more[] = {
        { { "hidden=16", "dropout=0" }, 32, 0, 0, 0, 0 },
        { { "recompute=yes", "hidden=16" }, 32, 0, 0, 0, 0 },
        { { "recompute=yes", "hidden=40,8" }, 32, 0, 0, 0, 0 },
        { { "recompute=yes", "reuse_input=no" }, 32, 0, 0, 0, 0 },
        { { "hidden=8,40", "reuse_input=no" }, 32, 0, 0, 0, 0 },
        { { "hidden=40,8", "input_dropout=0.2" }, 32, 0, 0, 0, 0 },
        { { "halo.codec=q2", "halo.error_statistics=exact" }, 2, 0, 0, 0, 0 },
        { { "halo.codec=q1", "halo.error_statistics=exact" }, 1, 0, 0, 0, 0 },
        { { "halo.codec=q1/q1:minmax", "halo.error_statistics=exact" }, 1, 0, 0, 1, 0 },
        { { "halo.codec=q4", "halo.error_statistics=exact", "halo.rounding=stochastic" },
          4,
          0,
          0,
          0,
          GRAFT_ROUND_STOCHASTIC },
        { { "halo.codec=q4", "halo.error_statistics=exact", "halo.rounding=nearest" },
          4,
          0,
          0,
          0,
          GRAFT_ROUND_NEAREST },
        { { "halo.codec=adaptive", "halo.error_statistics=exact", "hidden=16", "halo.budget=bytes:1000000000" },
          8,
          0,
          0,
          0,
          0 },
        { { "halo.codec=adaptive", "halo.error_statistics=exact", "hidden=40,8" }, 0, 0, 1, 0, 0 },
        { { "halo.codec=adaptive", "recompute=yes", "hidden=16", "reuse_input=no" }, 0, 0, 1, 0, 0 },
        { { "halo.staleness=1", "recompute=yes", "hidden=16" }, 32, 0, 0, 0, 0 },
        { { "halo.staleness=1", "halo.codec=q4", "halo.error_statistics=exact" }, 4, 0, 0, 0, 0 },
        { { "label_rate=0.5", "hidden=16" }, 32, 1, 0, 0, 0 },
        { { "label_rate=0.5", "recompute=yes" }, 32, 0, 0, 0, 0 },
        { { "label_rate=0.5", "halo.codec=q2" }, 2, 1, 0, 0, 0 },
        { { "hidden=16", "reuse_input=no" }, 32, 1, 0, 0, 0 },
        { { "label_rate=0.5", "halo.codec=adaptive", "reuse_input=no" }, 0, 1, 1, 0, 0 },
        { { "label_rate=0.5", "halo.staleness=1", "recompute=yes" }, 32, 1, 0, 0, 0 },
        { { "halo.codec=q2", "lr=1e30", "norm=none" }, 2, 0, 0, 0, 0 }, /* rows overflow soon */
        { { "parallel=feature", "hidden=16" }, 32, 0, 0, 0, 0 },
        { { "parallel=feature", "hidden=40,8", "recompute=yes" }, 32, 0, 0, 0, 0 },
        { { "parallel=grid", "hidden=15", "reuse_input=no" }, 32, 0, 0, 0, 0 },
        { { "parallel=grid", "hidden=1", "reuse_input=no" }, 32, 0, 0, 0, 0 },
        { { "parallel=grid", "hidden=1", "halo.codec=q8" }, 8, 1, 0, 0, 0 },
        { { "parallel=grid", "hidden=15", "halo.codec=q4", "reuse_input=no" }, 4, 0, 0, 0, 0 },
        { { "parallel=feature", "halo.codec=q4", "halo.error_statistics=exact" }, 4, 0, 0, 0, 0 },
        { { "parallel=feature", "halo.codec=q4", "label_rate=0.5" }, 4, 1, 0, 0, 0 },
        { { "parallel=grid", "feature.graph=stream", "hidden=16" }, 32, 0, 0, 0, 0 },
    };
    static const char *const covers[] = { "hybrid", "post", "pre" };
    static const int32_t     ranks[] = { 3, 2, 4, 3 };
    int                      number = 0;

    alarm(110);
    for (int m = 0; m < 4; m++)
        for (size_t s = 0; s < sizeof more / sizeof *more; s++, number++)
            test_traffic(models[m], &more[s], covers[number % 3], ranks[(number + m) % 4]);
    test_traffic("mlp", &more[0], "hybrid", 2);
    test_traffic("sage", &more[0], "hybrid", 1);
    test_sample("halo.codec=q2", 3);
    test_sample("halo.codec=q1", 4);
    return done();
}
