/* What a trainer over ranks says of its work: bytes by layer and direction, against those that a transport was given
 * to send; and spans of time, which must add up.
 * SPDX-License-Identifier: Apache-2.0 */
#include "../exchange/hosts.h"
#include "../oracle/sample.h"
#include "../tap.h"

#include "exchange/calls.h"
#include "graft_load.h"

#include <string.h>
#include <unistd.h>

enum { N = 300, FEATURES = 13, CLASSES = 4, LAYERS = 3, ITEMS = 2 * LAYERS, EPOCHS = 3, SPANS = 2048 };

/* What went out in a step, by layer and direction. Rows of gat go in calls of all ranks, which do not know of layers:
 * theirs are all in the first item. */
struct counts {
    int64_t bytes[ITEMS], messages[ITEMS];
    int     open; /* messages of this item will have their rows next; -1: none */
    int     odd;  /* a frame that says another number of bytes than follow */
    int64_t said;
};

/* The last rank sleeps once in an epoch before it sends rows. */
enum { SLEEP_MS = 100 };

/* A rank is a thread, and the transport is called by it alone. */
static _Thread_local struct counts *counts;
static _Thread_local int            is_tired;
static int32_t (*inner_send)(void *, int32_t, int32_t, const void *, uint64_t, graft_request **, graft_error *);

static void count(int32_t tag, const void *data, uint64_t bytes)
{
    const int       is_pass = tag >= GR_TAG_FIRST;
    struct gr_frame frame = { 0 };

    if (bytes == sizeof frame) memcpy(&frame, data, sizeof frame);
    if (counts->open >= 0) {
        counts->bytes[counts->open] += (int64_t)bytes;
        counts->odd += counts->said != (int64_t)bytes;
        counts->open = -1;
    } else if (frame.magic == GR_FRAME_MAGIC && is_pass) {
        counts->open = frame.layer * 2 + frame.direction;
        counts->messages[counts->open]++;
        if (is_tired) usleep(1000 * SLEEP_MS);
        is_tired = 0;
        counts->said = (int64_t)frame.bytes;
    }
}

static int32_t counted_send(void *self, int32_t to, int32_t tag, const void *data, uint64_t bytes,
                            graft_request **request, graft_error *error)
{
    if (counts != NULL) count(tag, data, bytes);
    return inner_send(self, to, tag, data, bytes, request, error);
}

/* What one rank saw of a step. */
struct step {
    struct counts      counts;
    graft_traffic_item item[HOSTS_MOST + 1][ITEMS]; /* of each rank, and of all; without what the rank lost: */
    graft_traffic_item lost[ITEMS];
    graft_traffic      traffic[HOSTS_MOST + 1];
};

struct job {
    struct sample_dataset set;
    struct step           step[HOSTS_MOST][EPOCHS];
    char                  explained[2][HOSTS_MOST][8192]; /* before the first step, and after the last */
    graft_span            span[SPANS];                    /* of rank 0, in the last epoch */
    int64_t               n_spans;
    double                seconds;    /* of that epoch */
    int                   tires, few; /* few: few are trained, and none of them gathers from all */
    int32_t               refused[4];
};

static int32_t ask(struct host *host, graft_trainer *trainer, struct step *step)
{
    int32_t rc = GRAFT_OK;

    for (int32_t p = 0; p <= host->n_ranks && rc == GRAFT_OK; p++) {
        const int32_t rank = p < host->n_ranks ? p : -1;

        step->traffic[p] = GRAFT_INIT(graft_traffic);
        rc = host->train->traffic(trainer, rank, &step->traffic[p], &host->error);
        for (int32_t i = 0; i < ITEMS && rc == GRAFT_OK; i++) {
            step->item[p][i] = GRAFT_INIT(graft_traffic_item);
            rc = host->train->traffic_item(trainer, rank, i, &step->item[p][i], &host->error);
            if (rank == host->rank) step->lost[i] = step->item[p][i];
            if (rank == host->rank) step->item[p][i].looked_at = 0;
            if (rank == host->rank) step->item[p][i].nmse = step->item[p][i].bound = 0;
        }
    }
    return rc;
}

static int32_t train(struct host *host, struct job *job, graft_trainer *trainer)
{
    graft_epoch epoch = GRAFT_INIT(graft_epoch);
    int32_t     rc = GRAFT_OK;

    for (int e = 0; e < EPOCHS && rc == GRAFT_OK; e++) {
        struct step *step = &job->step[host->rank][e];

        step->counts.open = -1;
        counts = &step->counts;
        is_tired = job->tires && host->rank == host->n_ranks - 1;
        rc = host->train->epoch(trainer, &epoch, &host->error);
        counts = NULL;
        if (host->rank == 0) job->seconds = epoch.seconds;
        if (rc == GRAFT_OK && host->rank == 0) {
            for (job->n_spans = 0; job->n_spans < SPANS; job->n_spans++) {
                job->span[job->n_spans] = GRAFT_INIT(graft_span);
                if (host->train->span(trainer, job->n_spans, &job->span[job->n_spans], NULL) < 0) break;
            }
        }
        if (rc == GRAFT_OK) rc = ask(host, trainer, step);
    }
    return rc;
}

static void ask_too_much(struct host *host, struct job *job, graft_trainer *trainer)
{
    graft_traffic_item item = GRAFT_INIT(graft_traffic_item);

    job->refused[0] = host->train->traffic_item(trainer, host->n_ranks, 0, &item, NULL);
    job->refused[1] = host->train->traffic_item(trainer, -2, 0, &item, NULL);
    job->refused[2] = host->train->traffic_item(trainer, 0, ITEMS, &item, NULL);
    job->refused[3] = host->train->traffic_item(trainer, 0, -1, &item, NULL);
}

static int32_t body(struct host *host)
{
    struct job       *job = host->all->arg;
    graft_graph      *graph = NULL;
    graft_trainer    *trainer = NULL;
    graft_transport   transport = host->transport;
    struct host_slice s;
    int32_t           rc;

    transport.send = counted_send;
    host_slice_init(&s, &job->set.dataset, SLICES_EVEN, host->rank, host->n_ranks);
    rc = host->graphs->create(host->api->context, &transport, &s.slice, &graph, &host->error);
    s.dataset.over = graph;
    if (rc == GRAFT_OK) rc = host->train->create(host->api->context, &s.dataset, &trainer, &host->error);
    if (rc == GRAFT_OK)
        rc = host->train->explain(trainer, job->explained[0][host->rank], sizeof job->explained[0][0], &host->error);
    if (rc == GRAFT_OK) rc = train(host, job, trainer);
    if (rc == GRAFT_OK)
        rc = host->train->explain(trainer, job->explained[1][host->rank], sizeof job->explained[1][0], &host->error);
    if (rc == GRAFT_OK && host->rank == 0) ask_too_much(host, job, trainer);
    host->train->destroy(trainer);
    host->graphs->destroy(graph);
    host_slice_fini(&s);
    return rc;
}

/* The numbers of line `rank` ("0", "all") in the table of bytes that explain() prints. */
static int read_line(const char *explained, const char *rank, int64_t numbers[ITEMS])
{
    const char *table = strstr(explained, "bytes of rows that come to each rank in a step"), *line;
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

/* Counts of a step against what it sent. Returns what is wrong, or NULL. */
static const char *check_step(const struct job *job, int e, int32_t n_ranks, int is_gat)
{
    const struct step *first = &job->step[0][e];
    int64_t            all = 0;

    for (int32_t p = 0; p < n_ranks; p++) {
        const struct step *own = &job->step[p][e];
        int64_t            coming = 0;

        if (own->counts.odd > 0) return "a frame said another number of bytes";
        if (memcmp(own->item, first->item, sizeof own->item) != 0) return "ranks count one another otherwise";
        for (int i = 0; i < ITEMS; i++) {
            const graft_traffic_item *item = &own->item[p][i];

            if (item->rank != p || item->layer != i / 2 || item->pass != i % 2) return "an item of something else";
            if (item->bytes_sent != own->counts.bytes[i] || item->messages_sent != own->counts.messages[i])
                return "a layer sent something else";
            coming += item->bytes;
        }
        all += coming;
    }
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
        /* A vertex that is trained gathers from all, so no layer but the last one does fewer rows than there are. */
        rows = sum->exchanges * first->traffic[n_ranks].halo_rows;
        if ((i / 2 < 2 && !job->few) || is_gat ? sum->rows != rows : sum->rows > rows) return "rows of another halo";
    }
    return all == first->traffic[n_ranks].halo_bytes_per_epoch ? NULL : "the bytes of an epoch are not those of layers";
}

/* With few bits and halo.error=exact, all rows that were sent were looked at, and lost what the theory allows; else
 * none. */
static const char *check_losses(const struct job *job, int32_t n_ranks, int few_bits, int is_gat)
{
    for (int32_t p = 0; p < n_ranks; p++) {
        for (int i = 0; i < ITEMS; i++) {
            const graft_traffic_item *lost = &job->step[p][EPOCHS - 1].lost[i];
            int64_t                   sent = 0;

            /* What is aggregated once, in the first step, goes as it is. */
            for (int e = i == 0 && !is_gat; e < EPOCHS && few_bits; e++) sent += job->step[p][e].item[p][i].rows_sent;
            if (lost->looked_at != sent) return "other rows were looked at than were sent";
            /* The bound of one bit is for long rows, and the last layer has three columns. */
            if (lost->nmse > 2.5 * lost->bound || (sent > 0 && !(lost->nmse > 0))) return "more is lost than can be";
        }
    }
    return NULL;
}

/* explain() says before the first step what the later ones send. */
static const char *check_explained(const struct job *job, int32_t n_ranks)
{
    const struct step *last = &job->step[0][EPOCHS - 1];
    char               name[16];
    int64_t            numbers[ITEMS];

    for (int32_t p = 0; p <= n_ranks; p++) {
        snprintf(name, sizeof name, p < n_ranks ? "%d" : "all", p);
        for (int when = 0; when < 2; when++) {
            if (!read_line(job->explained[when][0], name, numbers)) return "explain() has no such line";
            for (int i = 0; i < ITEMS; i++)
                if (numbers[i] != last->item[p][i].bytes) return "explain() says other bytes than a step sends";
        }
    }
    return NULL;
}

static int near(double a, double b)
{
    return a - b < 1e-9 && b - a < 1e-9;
}

/* The parts of phase `at`. Returns what is wrong with them, or NULL. */
static const char *check_parts(const struct job *job, int64_t at, int32_t n_ranks)
{
    static const char *const names[] = { "pack", "local", "wait", "unpack" };
    const graft_span *const  phase = &job->span[at];
    const int                is_sum = strcmp(phase->phase, "aggregate") == 0;
    double                   end = phase->begin, waited = 0;
    int                      n = 0, first = 0;

    /* gat has the first two parts of what it gathers in one phase, and from the second on in the next. */
    if (!is_sum && at + 1 < job->n_spans && strcmp(job->span[at + 1].phase, "local") == 0) first = 1;
    for (at++; at < job->n_spans && job->span[at].part; at++, n++) {
        const graft_span *part = &job->span[at];

        if (first + n == 4 || strcmp(part->phase, names[first + n]) != 0) return "a part of another name";
        if (part->thread != 0 || part->layer != phase->layer || part->pass != phase->pass) return "a part out of place";
        if (part->end < part->begin || part->begin < end - 1e-9) return "parts that overlap";
        if (!near(part->begin, end)) return "a gap between parts";
        if (!near(part->waited, strcmp(part->phase, "wait") == 0 ? part->end - part->begin : 0))
            return "another part than 'wait' has waited";
        end = part->end;
        waited += part->waited;
    }
    if (is_sum ? n != 4 : n != 0 && first + n != 4 && first + n != 2) return "parts are missing";
    if (n > 0 && !near(end, phase->end)) return "parts that do not add up to their phase";
    if (!near(waited, phase->waited)) return "a phase that waited for another time than its parts";
    for (; is_sum && n_ranks > 1 && at < job->n_spans && job->span[at].thread > 0; at++)
        if (job->span[at].thread == 1 && job->span[at].waited < waited - 1e-9)
            return "a thread that worked while its phase waited";
    return NULL;
}

/* The spans of the last epoch on rank 0. Returns what is wrong, or NULL. */
static const char *check_spans(const struct job *job, int32_t n_ranks, double *waited, int *parts, int *reduced)
{
    const double told =
        job->step[0][EPOCHS - 1].traffic[0].wait_seconds - job->step[0][EPOCHS - 2].traffic[0].wait_seconds;
    double      all = 0, end = 0;
    const char *fault = NULL;

    *waited = 0;
    *parts = *reduced = 0;
    for (int64_t i = 0; i < job->n_spans && fault == NULL; i++) {
        const graft_span *span = &job->span[i];

        *parts += span->part;
        if (span->thread > 0 || span->part) continue;
        if (span->begin < end - 1e-9) return "phases overlap";
        end = span->end;
        all += span->end - span->begin;
        *waited += span->waited;
        *reduced += strcmp(span->phase, "reduce") == 0;
        fault = check_parts(job, i, n_ranks);
    }
    if (fault == NULL && all > job->seconds) fault = "phases are longer than the epoch";
    if (fault == NULL && *waited < told - 1e-6) fault = "more was waited than the spans say";
    return fault;
}

static struct job *run(int32_t n_ranks, const char *const *settings, int tires, int few, const char **words)
{
    static struct hosts hosts;
    struct job         *job = calloc(1, sizeof *job);
    struct sample       sample = { 5 };

    job->tires = tires;
    job->few = few;
    sample_dataset_init(&job->set, &sample, N, FEATURES, CLASSES, 0, 0);
    for (int64_t v = 0; v < N && few; v++) job->set.split[v] = v % 37 == 2 ? GRAFT_SPLIT_TRAIN : GRAFT_SPLIT_TEST;
    *words = hosts_run(&hosts, n_ranks, settings, body, job) ? NULL : hosts.error.message;
    for (int32_t i = 0; i < n_ranks && *words == NULL; i++)
        if (hosts.at[i].rc != GRAFT_OK) *words = hosts.at[i].error.message;
    return job;
}

static void job_free(struct job *job)
{
    sample_dataset_fini(&job->set);
    free(job);
}

/* Two options, beside those that all have; and whether few vertices are trained. */
struct more {
    const char *first, *second;
    int         few;
};

static void test_traffic(const char *model, const struct more *more, const char *cover, int32_t n_ranks)
{
    char        kind[32], option[32];
    const char *settings[] = { "layers=3",  "epochs=9",        "eval_every=0",
                               "threads=1", "halo.timeout=60", "partition=hash",
                               "heads=2",   "halo.error=no",   kind,
                               option,      more->first,       more->second,
                               NULL };
    const char *words;
    struct job *job;
    int64_t     total = 0;

    snprintf(kind, sizeof kind, "model=%s", model);
    snprintf(option, sizeof option, "halo.cover=%s", cover);
    job = run(n_ranks, settings, 0, more->few, &words);
    for (int e = 0; e < EPOCHS && words == NULL; e++) words = check_step(job, e, n_ranks, strcmp(model, "gat") == 0);
    if (words == NULL && strcmp(model, "mlp") != 0) words = check_explained(job, n_ranks);
    if (words == NULL)
        words = check_losses(job, n_ranks, strcmp(more->second, "halo.error=exact") == 0, strcmp(model, "gat") == 0);
    if (words == NULL) total = job->step[0][EPOCHS - 1].traffic[n_ranks].halo_bytes_per_epoch;
    ok(words == NULL && (total > 0) == (strcmp(model, "mlp") != 0 && n_ranks > 1),
       "%s, %s %s, %s on %d ranks: %lld bytes by layer and direction, as they were sent", model, more->first,
       more->second, cover, n_ranks, (long long)total);
    if (words != NULL) diag("%s", words);
    if (n_ranks == 3 && words == NULL)
        ok(job->refused[0] == GRAFT_ERR_ARG && job->refused[1] == GRAFT_ERR_ARG &&
               job->refused[2] == GRAFT_ERR_NOT_FOUND && job->refused[3] == GRAFT_ERR_NOT_FOUND,
           "no such rank, no such layer");
    job_free(job);
}

/* `exchanges` of one epoch with its evaluation. */
static void test_spans(const char *model, const char *recompute, const char *more, int32_t n_ranks, int expected)
{
    char        kind[32];
    const char *settings[] = { "layers=3",
                               "epochs=9",
                               "eval_every=1",
                               "threads=2",
                               "halo.timeout=60",
                               "partition=hash",
                               "heads=2",
                               "reuse_input=no",
                               kind,
                               recompute,
                               "profile=yes",
                               "hidden=16",
                               more,
                               NULL };
    const char *words;
    double      waited = 0;
    int         parts = 0, reduced = 0;
    struct job *job;

    snprintf(kind, sizeof kind, "model=%s", model);
    job = run(n_ranks, settings, 1, 0, &words);
    if (words == NULL) words = check_spans(job, n_ranks, &waited, &parts, &reduced);
    ok(words == NULL && parts == expected && reduced == 1, "%s, %s, %s on %d ranks: %d parts of spans: %s", model,
       recompute, more, n_ranks, parts, words != NULL ? words : "they add up");
    if (n_ranks > 1) /* the other rank slept meanwhile */
        ok(waited > 0.0005 * SLEEP_MS, "%s: %.3f s in which the rank waited", model, waited);
    job_free(job);
}

int main(void)
{
    static const char *const models[] = { "sage", "gcn", "gin", "gat" };
    static const struct more more[] = {
        { "hidden=16", "dropout=0", 0 },          { "recompute=yes", "hidden=16", 0 },
        { "recompute=yes", "hidden=40,8", 0 },    { "recompute=yes", "reuse_input=no", 0 },
        { "hidden=8,40", "reuse_input=no", 0 },   { "hidden=40,8", "input_dropout=0.2", 0 },
        { "halo.bits=2", "halo.error=exact", 0 }, { "halo.bits=1", "halo.error=exact", 0 },
    };
    static const struct more labelled[] = {
        { "label_rate=0.5", "hidden=16", 1 },
        { "label_rate=0.5", "recompute=yes", 0 },
        { "label_rate=0.5", "halo.bits=2", 1 },
        { "hidden=16", "reuse_input=no", 1 },
    };
    static const char *const covers[] = { "hybrid", "post", "pre" };
    static const int32_t     ranks[] = { 3, 2, 4, 3 };
    const graft_transports  *transports;
    const graft_api         *api = NULL;
    graft_transport          any[1] = { GRAFT_INIT(graft_transport) };
    int                      number = 0;

    alarm(110);
    if (graft_load(getenv("GRAFT_LIBRARY"), NULL, &api, NULL) < 0) return 2;
    transports = graft_interface(api, GRAFT_TRANSPORT_ID, sizeof *transports);
    if (transports->threads(api->context, 1, any, NULL) < 0) return 2;
    inner_send = any->send;
    any->close(any->self);
    api->close(api->context);
    for (int m = 0; m < 4; m++)
        for (int s = 0; s < 8; s++, number++)
            test_traffic(models[m], &more[s], covers[number % 3], ranks[(number + m) % 4]);
    for (int m = 0; m < 4; m++)
        for (int s = 0; s < 4; s++, number++)
            test_traffic(models[m], &labelled[s], covers[number % 3], ranks[(number + m) % 4]);
    test_traffic("mlp", &more[0], "hybrid", 2);
    /* of three layers, each forward in step and evaluation, the first not backward; with recompute, once more those
     * whose arrays another layer has taken */
    test_spans("sage", "recompute=no", "eval_every=1", 2, 4 * (3 + 3 + 2));
    test_spans("sage", "recompute=yes", "eval_every=1", 3, 4 * (3 + 3 + 2 + 1));
    test_spans("gcn", "recompute=no", "eval_every=1", 3, 4 * (3 + 3 + 2));
    test_spans("gin", "recompute=yes", "eval_every=1", 2, 4 * (3 + 3 + 2 + 2));
    test_spans("gat", "recompute=yes", "eval_every=1", 2, 5 * (3 + 3 + 2) + 4 * 3);
    test_spans("sage", "recompute=no", "eval_every=1", 1, 4 * (3 + 3 + 2));
    /* and labels, once in each of step and evaluation */
    test_spans("gin", "recompute=yes", "label_rate=0.5", 2, 4 * (3 + 3 + 2 + 2 + 2));
    test_spans("sage", "recompute=yes", "label_rate=0.5", 3, 4 * (3 + 3 + 2 + 1 + 2));
    test_traffic("sage", &more[0], "hybrid", 1);
    return done();
}
