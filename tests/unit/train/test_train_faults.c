/* Checks failures in training over ranks, which must be the same error on all ranks in time: ranks disagree, one rank
 * has bad input, any allocation or a kernel fails, or a rank stops or makes another call.
 * SPDX-License-Identifier: Apache-2.0 */
#include "graft_load.h"
#include "graft_model.h"
#include "harness/hosts.h"
#include "harness/outputs.h"
#include "harness/tap.h"
#include "oracle/sample.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

enum { N = 60, FEATURES = 7, CLASSES = 3, RANKS = 3, MOST = 3000 };

static struct hosts hosts;

/* What the ranks do, and how rank `guilty` differs. */
struct plot {
    struct sample_dataset set;
    enum slices           way;
    int32_t               guilty;
    /* Changes options or slice of the guilty rank before create(). */
    void (*spoil)(struct host *host, struct host_slice *slice);
    int32_t (*act)(struct host *host, graft_trainer *trainer); /* calls of all ranks after create(); may be NULL */
    int64_t      fail_at;                                      /* number of its allocation that fails */
    int          again; /* whether create() must succeed with good data after a failure */
    const char  *other; /* option that the guilty rank sets before create(), or NULL */
    const char  *usual; /* option of all others, and of all ranks at the end */
    graft_graph *graphs[RANKS];
};

static const char *const settings[] = { "layers=2",        "hidden=8",  "epochs=9",  "model=sage",
                                        "halo.timeout=20", "threads=1", "dropout=0", NULL };
static const char *const hasty[] = { "layers=2",       "hidden=8",  "epochs=9",  "model=sage",
                                     "halo.timeout=1", "threads=1", "dropout=0", NULL };

/* The same with stale rows, so that messages are in flight between calls. */
static const char *const async[] = { "layers=2",  "hidden=8",  "epochs=9",         "model=sage", "halo.timeout=20",
                                     "threads=1", "dropout=0", "halo.staleness=1", NULL };
static const char *const hasty_async[] = { "layers=2",  "hidden=8",  "epochs=9",         "model=gat", "halo.timeout=1",
                                           "threads=1", "dropout=0", "halo.staleness=1", NULL };

static const char *const three[] = { "layers=3",        "hidden=8",  "epochs=9",  "model=sage",
                                     "halo.timeout=20", "threads=1", "dropout=0", NULL };

static int32_t train_faults_make(struct host *host, graft_graph *graph, struct host_slice *s, graft_trainer **trainer)
{
    s->dataset.over = graph;
    return host->train->create(host->api->context, &s->dataset, trainer, &host->error);
}

/* After an error of create() that all ranks agree on, they can make a trainer and train. */
static int32_t train_faults_make_again(struct host *host, graft_graph *graph, const struct plot *plot)
{
    graft_error       first = host->error, second = GRAFT_INIT(graft_error);
    graft_trainer    *trainer = NULL;
    graft_epoch       epoch = output_epoch();
    struct host_slice s;
    int32_t           rc;

    atomic_store(&host->fail_at, -1);
    for (int i = 0; settings[i] != NULL; i++) host_set(host->api, settings[i]);
    host_set(host->api, "symmetrize=no");
    host_set(host->api, "order=given");
    host_set(host->api, "row_masks=yes");
    host_set(host->api, "model=sage");
    if (plot->usual != NULL) host_set(host->api, plot->usual);
    host_set(host->api, "label_rate=0");
    host_set(host->api, "halo.staleness=0");
    host_slice_init(&s, &plot->set.dataset, plot->way, host->rank, host->n_ranks);
    host->error = second;
    rc = train_faults_make(host, graph, &s, &trainer);
    if (rc == GRAFT_OK) rc = host->train->epoch(trainer, &epoch, &host->error);
    host->train->destroy(trainer);
    host_slice_fini(&s);
    if (rc == GRAFT_OK) host->error = first;
    return rc == GRAFT_OK ? first.code : GRAFT_STATUS_END;
}

static int32_t plot_body(struct host *host)
{
    struct plot      *plot = host->all->arg;
    const int         guilty = host->rank == plot->guilty;
    graft_graph      *graph = NULL;
    graft_trainer    *trainer = NULL;
    struct host_slice s;
    int32_t           rc;

    host_slice_init(&s, &plot->set.dataset, plot->way, host->rank, host->n_ranks);
    rc = host->graphs->create(host->api->context, &host->transport, &s.slice, &graph, &host->error);
    plot->graphs[host->rank] = graph;
    if (plot->usual != NULL) host_set(host->api, guilty ? plot->other : plot->usual);
    if (guilty && plot->spoil != NULL) plot->spoil(host, &s);
    if (guilty) atomic_store(&host->fail_at, plot->fail_at);
    if (rc == GRAFT_OK) rc = train_faults_make(host, graph, &s, &trainer);
    if (rc < 0 && rc != GRAFT_ERR_PEER && plot->again) rc = train_faults_make_again(host, graph, plot);
    if (rc == GRAFT_OK && plot->act != NULL) rc = plot->act(host, trainer);
    atomic_store(&host->fail_at, -1);
    host->train->destroy(trainer);
    host->graphs->destroy(graph);
    host_slice_fini(&s);
    return rc;
}

static void plot_init(struct plot *plot)
{
    struct sample sample = { 5 };

    *plot = (struct plot){ .guilty = 1, .fail_at = -1 };
    sample_dataset_init(&plot->set, &sample, N, FEATURES, CLASSES, 0, 0);
}

/* Whether all ranks returned this status with the same message, which has both words. */
static int all_say(int32_t n_ranks, int32_t code, const char *word, const char *other)
{
    for (int32_t i = 0; i < n_ranks; i++) {
        const struct host *host = &hosts.at[i];

        if (host->rc == code && strcmp(host->error.message, hosts.at[0].error.message) == 0 &&
            strstr(host->error.message, word) != NULL && strstr(host->error.message, other) != NULL &&
            strstr(host->error.message, "rank 1: rank") == NULL)
            continue;
        diag("rank %d: status %d, expected %d with '%s' and '%s': %s", i, host->rc, code, word, other,
             host->error.message);
        return 0;
    }
    return 1;
}

static void train_faults_play(struct plot *plot, const char *const *with, int32_t code, const char *word,
                              const char *other, const char *name)
{
    const int clean = hosts_run(&hosts, RANKS, with, plot_body, plot);

    ok_or(all_say(RANKS, code, word, other) && clean, clean ? NULL : hosts.error.message, "%s", name);
    sample_dataset_fini(&plot->set);
}

/* --- before create() --- */

static void spoil_features(struct host *host, struct host_slice *s)
{
    (void)host;
    s->dataset.n_features = s->features.n_cols = FEATURES - 1;
}

static void spoil_label(struct host *host, struct host_slice *s)
{
    (void)host;
    ((int32_t *)(uintptr_t)s->dataset.labels)[2] = 77;
}

static void spoil_split(struct host *host, struct host_slice *s)
{
    (void)host;
    ((uint8_t *)(uintptr_t)s->dataset.split)[3] = 9;
}

static void spoil_value(struct host *host, struct host_slice *s)
{
    (void)host;
    ((float *)s->features.data)[4 * s->features.stride] = NAN;
}

static void spoil_labels(struct host *host, struct host_slice *s)
{
    (void)host;
    s->dataset.labels = NULL;
}

static void spoil_count(struct host *host, struct host_slice *s)
{
    (void)host;
    s->dataset.n_vertices = N + 1;
}

static void test_create(void)
{
    static const struct {
        void (*spoil)(struct host *host, struct host_slice *slice);
        int         again; /* whether all tries share the data, which must be unchanged */
        int32_t     code;
        const char *word, *other, *name;
    } cases[] = {
        { spoil_features, 1, GRAFT_ERR_ARG, "the number of features", "on rank 1", "a rank with other features" },
        { spoil_label, 0, GRAFT_ERR_FORMAT, "rank 1: vertex 22 has label 77", "-1 to 2", "a bad label" },
        { spoil_split, 0, GRAFT_ERR_FORMAT, "rank 1: vertex 23 has split 9", "0 to 3", "a bad split" },
        { spoil_value, 0, GRAFT_ERR_FORMAT, "rank 1: features of vertex 24: ", "expected a finite number",
          "a feature that is no number" },
        { spoil_labels, 1, GRAFT_ERR_ARG, "rank 1: labels are not given", "other ranks", "labels that are missing" },
        { spoil_count, 1, GRAFT_ERR_ARG, "rank 1: the graph over ranks has 60", "61", "another number of vertices" },
    };
    static const char *const labelled[] = { "label_rate=0.5", "halo.timeout=20", "threads=1", NULL };
    struct plot              plot;

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        plot_init(&plot);
        plot.spoil = cases[i].spoil;
        plot.again = cases[i].again;
        train_faults_play(&plot, settings, cases[i].code, cases[i].word, cases[i].other, cases[i].name);
    }
    plot_init(&plot);
    for (int64_t v = 0; v < N; v++)
        if (plot.set.split[v] == GRAFT_SPLIT_TRAIN) plot.set.split[v] = GRAFT_SPLIT_TEST;
    train_faults_play(&plot, settings, GRAFT_ERR_FORMAT, "no training vertex", "60 vertices",
                      "no training vertex on any rank");
    plot_init(&plot);
    plot.set.dataset.labels = NULL;
    train_faults_play(&plot, labelled, GRAFT_ERR_OPTION, "option 'label_rate' is 0.5", "no labels",
                      "no labels to be input");
    plot_init(&plot);
    plot.set.dataset.split = NULL;
    train_faults_play(&plot, labelled, GRAFT_ERR_OPTION, "option 'label_rate' is 0.5", "no split",
                      "no split to tell whose labels");
}

/* Options that must be the same on all ranks, each with two values; and some values that mean the same. */
static void test_options(void)
{
    static const struct {
        const char *key, *usual, *other, *show; /* name in the message, if it is not the option */
    } options[] = {
        { "model", "sage", "gat", NULL },
        { "layers", "2", "3", NULL },
        { "hidden", "8", "9", NULL },
        { "heads", "4", "2", NULL },
        { "epochs", "9", "8", NULL },
        { "eval_every", "1", "2", NULL },
        { "lr", "0.01", "0.5", NULL },
        { "dropout", "0", "0.25", NULL },
        { "input_dropout", "0", "0.2", NULL },
        { "label_rate", "0", "0.25", NULL },
        { "weight_decay", "0", "5e-4:first", NULL },
        { "optimizer", "sgd", "sgd:0.9", NULL },
        { "seed", "0", "9007199254740993", NULL },
        { "loss", "auto", "sigmoid", NULL },
        { "norm", "layer", "none", NULL },
        { "optimizer", "adam", "sgd", NULL },
        { "symmetrize", "no", "yes", NULL },
        { "self_loops", "auto", "yes", NULL },
        { "order", "given", "degree", NULL },
        { "row_masks", "yes", "no", NULL },
        { "normalize_features", "no", "yes", NULL },
        { "reuse_input", "yes", "no", NULL },
        { "sparse_input", "auto", "no", NULL },
        { "recompute", "no", "yes", NULL },
        { "mxm.kernel", "auto", "reference", NULL },
        { "dense.module", "auto", "reference", NULL },
        { "dense.type", "f32", "bf16", NULL },
        { "strict", "no", "yes", NULL },
        { "halo.staleness", "0", "1", NULL },
    };
    char usual[64], other[64], said[128];

    for (size_t i = 0; i < 2 * (sizeof options / sizeof options[0]); i++) {
        struct plot plot;

        plot_init(&plot);
        plot.way = i % 2 ? SLICES_FIRST : SLICES_EVEN; /* the guilty rank has vertices, or none */
        snprintf(usual, sizeof usual, "%s=%s", options[i / 2].key, options[i / 2].usual);
        snprintf(other, sizeof other, "%s=%s", options[i / 2].key, options[i / 2].other);
        snprintf(said, sizeof said, "option %s is %s on rank 0, %s on rank 1", options[i / 2].key, options[i / 2].usual,
                 options[i / 2].other);
        plot.again = 1;
        plot.usual = usual;
        plot.other = other;
        train_faults_play(&plot, settings, GRAFT_ERR_ARG,
                          "the ranks disagree: ", options[i / 2].show != NULL ? options[i / 2].show : said, other);
    }
}

/* Values that are written in different ways and mean the same. */
static void test_words(void)
{
    static const char *const words[][2] = {
        { "lr=0.01", "lr=1e-2" },
        { "layers=3", "layers=03" },
        { "halo.codec=q8", "halo.codec=q8/q8" },
    };

    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        struct plot plot;

        plot_init(&plot);
        plot.usual = words[i][0];
        plot.other = words[i][1];
        train_faults_play(&plot, three, GRAFT_OK, "", "", words[i][1]);
    }
}

static int32_t body_without_place(struct host *host)
{
    struct plot      *plot = host->all->arg;
    graft_graph      *graph = NULL;
    graft_trainer    *trainer = NULL;
    struct host_slice s;
    int32_t           rc;

    host_slice_init(&s, &plot->set.dataset, plot->way, host->rank, host->n_ranks);
    rc = host->graphs->create(host->api->context, &host->transport, &s.slice, &graph, &host->error);
    s.dataset.over = graph;
    if (rc == GRAFT_OK)
        rc = host->train->create(host->api->context, &s.dataset, host->rank == plot->guilty ? NULL : &trainer,
                                 &host->error);
    host->train->destroy(trainer);
    host->graphs->destroy(graph);
    host_slice_fini(&s);
    return rc;
}

static void test_without_place(void)
{
    struct plot plot;

    plot_init(&plot);
    hosts_run(&hosts, RANKS, settings, body_without_place, &plot);
    ok(all_say(RANKS, GRAFT_ERR_ARG, "rank 1: trainer is null", ""),
       "a trainer that is NULL on one rank is refused on all ranks");
    sample_dataset_fini(&plot.set);
}

/* --- between calls --- */

static int32_t train_two(struct host *host, graft_trainer *trainer)
{
    graft_epoch epoch = output_epoch();
    int32_t     rc = host->train->epoch(trainer, &epoch, &host->error);

    return rc < 0 ? rc : host->train->epoch(trainer, &epoch, &host->error);
}

static int is_guilty(const struct host *host)
{
    return host->rank == ((const struct plot *)host->all->arg)->guilty;
}

static int32_t act_kernel(struct host *host, graft_trainer *trainer)
{
    int32_t rc = train_two(host, trainer);

    if (is_guilty(host)) host_set(host->api, "mxm.kernel=nothing");
    if (rc == GRAFT_OK) rc = train_two(host, trainer);
    return rc;
}

static int32_t act_sleep(struct host *host, graft_trainer *trainer)
{
    int32_t rc = train_two(host, trainer);

    if (is_guilty(host)) sleep(3);
    return rc == GRAFT_OK ? train_two(host, trainer) : rc;
}

static int32_t act_leave(struct host *host, graft_trainer *trainer)
{
    const int32_t rc = train_two(host, trainer);

    if (!is_guilty(host)) return rc == GRAFT_OK ? train_two(host, trainer) : rc;
    sleep(4);
    return rc;
}

static int32_t act_other(struct host *host, graft_trainer *trainer)
{
    graft_metrics metrics = output_metrics();
    const int32_t rc = train_two(host, trainer);

    if (rc < 0 || !is_guilty(host)) return rc < 0 ? rc : train_two(host, trainer);
    return host->train->evaluate(trainer, GRAFT_WEIGHTS_LAST, &metrics, &host->error);
}

static int32_t act_weights(struct host *host, graft_trainer *trainer)
{
    const int32_t rc = train_two(host, trainer);

    if (rc < 0) return rc;
    return host->train->predict(trainer, is_guilty(host) ? 5 : GRAFT_WEIGHTS_LAST, NULL, NULL, &host->error);
}

/* One rank sets a bias; then all do, one of them to another value; then all to the same value, and training goes on. */
static int32_t act_state(struct host *host, graft_trainer *trainer)
{
    float            bias[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };
    graft_state_item item = GRAFT_INIT(graft_state_item);
    graft_error      first;
    int32_t          rc = train_two(host, trainer), other;

    item.name = "layers.0.bias";
    item.dtype = GRAFT_F32;
    item.n_dims = 1;
    item.shape[0] = 8;
    item.data = bias;
    if (rc == GRAFT_OK && is_guilty(host)) rc = host->train->state_set(trainer, &item, &host->error);
    if (rc < 0) return rc;
    rc = train_two(host, trainer);
    first = host->error;
    bias[0] = is_guilty(host) ? 1 : 2;
    if (rc < 0) host->train->state_set(trainer, &item, &host->error);
    other = train_two(host, trainer);
    if (other != rc || strstr(host->error.message, "CRC32C") == NULL) return GRAFT_STATUS_END;
    bias[0] = 1;
    host->train->state_set(trainer, &item, &host->error);
    if (train_two(host, trainer) != GRAFT_OK) return GRAFT_STATUS_END;
    host->error = first;
    return rc;
}

enum { SIZE_EPOCH, SIZE_EVALUATE, SIZE_PREDICT, SIZE_UPDATE, SIZE_MODEL, SIZES };

/* Make call number `which` with structs of this size. */
static int32_t call_with_size(struct host *host, graft_trainer *trainer, const graft_dataset *data, int which,
                              uint32_t size)
{
    const graft_model_api *models = graft_interface(host->api, GRAFT_MODEL_ID, GRAFT_HAS(graft_model_api, destroy));
    float                  outputs[N * CLASSES];
    const int64_t          n = data->features->n_rows;
    graft_epoch            epoch = { .size = size > 0 ? sizeof epoch : 0 };
    graft_metrics          metrics = { .size = size > 0 ? sizeof metrics : 0 };
    graft_dense            logits = { size > 0 ? sizeof logits : 0, GRAFT_F32, n, CLASSES, CLASSES, outputs };
    graft_dataset          next = *data;
    graft_model           *model = NULL;
    int32_t                rc = models->create(trainer, GRAFT_MODEL_LAST, &model, &host->error);

    if (size == 0) next.size = 0;
    if (rc < 0) return rc;
    if (which == SIZE_EPOCH) rc = host->train->epoch(trainer, &epoch, &host->error);
    else if (which == SIZE_EVALUATE) rc = host->train->evaluate(trainer, GRAFT_WEIGHTS_LAST, &metrics, &host->error);
    else if (which == SIZE_PREDICT) rc = host->train->predict(trainer, GRAFT_WEIGHTS_LAST, NULL, &logits, &host->error);
    else if (which == SIZE_UPDATE) rc = host->train->update(trainer, GRAFT_UPDATE_FEATURES, &next, &host->error);
    else rc = models->predict(model, GRAFT_WEIGHTS_LAST, data, NULL, &logits, &host->error);
    models->destroy(model);
    return rc;
}

/* Let one rank pass a struct without a size. All ranks must refuse it, and training must continue. */
static int32_t act_sizes(struct host *host, graft_trainer *trainer)
{
    const struct plot *plot = host->all->arg;
    struct host_slice  s;
    int32_t            rc = train_two(host, trainer), refused = GRAFT_OK;

    host_slice_init(&s, &plot->set.dataset, plot->way, host->rank, host->n_ranks);
    for (int which = 0; which < SIZES && rc == GRAFT_OK; which++) {
        s.dataset.over = plot->graphs[host->rank];
        refused = call_with_size(host, trainer, &s.dataset, which, is_guilty(host) ? 0 : 1);
        if (refused != GRAFT_ERR_ARG || strstr(host->error.message, "rank 1: ") == NULL ||
            strstr(host->error.message, "has size 0") == NULL)
            rc = refused == GRAFT_OK ? GRAFT_STATUS_END : refused;
        if (rc == GRAFT_OK && call_with_size(host, trainer, &s.dataset, which, 1) != GRAFT_OK) rc = GRAFT_STATUS_END;
    }
    host_slice_fini(&s);
    return rc == GRAFT_OK ? refused : rc;
}

static void test_between(const char *const *with)
{
    struct plot plot;

    plot_init(&plot);
    plot.act = act_kernel;
    train_faults_play(&plot, with, GRAFT_ERR_PEER, "rank 1: ", "nothing", "a kernel that fails on one rank");
    plot_init(&plot);
    plot.act = act_other;
    train_faults_play(&plot, with, GRAFT_ERR_PEER, "an agreement", "a comparison",
                      "a rank that evaluates where others train");
    plot_init(&plot);
    plot.act = act_weights;
    train_faults_play(&plot, with, GRAFT_ERR_ARG, "rank 1: weights is 5", "GRAFT_WEIGHTS_LAST",
                      "weights that there are not");
    plot_init(&plot);
    plot.act = act_sizes;
    train_faults_play(&plot, with, GRAFT_ERR_ARG, "rank 1: logits has size 0", "GRAFT_INIT", "structs without a size");
    plot_init(&plot);
    plot.act = act_state;
    train_faults_play(&plot, with, GRAFT_ERR_ARG, "state_set()", "on rank 1", "a state that is not that of all ranks");
}

static void test_late(const char *const *with)
{
    struct plot plot;
    double      longest = 0;

    plot_init(&plot);
    plot.act = act_sleep;
    train_faults_play(&plot, with, GRAFT_ERR_PEER, "rank 1 did not answer", "waited 1 s",
                      "a rank that sleeps for three deadlines");
    for (int32_t i = 0; i < RANKS; i++)
        if (i != 1 && hosts.at[i].seconds > longest) longest = hosts.at[i].seconds;
    ok(longest < 2.9, "while one rank sleeps, the others return after %.1f s", longest);
    plot_init(&plot);
    plot.act = act_leave;
    hosts_run(&hosts, RANKS, with, plot_body, &plot);
    ok(hosts.at[1].rc == GRAFT_OK && hosts.at[0].rc == GRAFT_ERR_PEER && hosts.at[2].rc == GRAFT_ERR_PEER &&
           strcmp(hosts.at[0].error.message, hosts.at[2].error.message) == 0 && hosts.at[0].error.rank == 1,
       "a rank that stops calling is reported: %s", hosts.at[0].error.message);
    sample_dataset_fini(&plot.set);
}

/* --- out of memory --- */

static int32_t act_all(struct host *host, graft_trainer *trainer)
{
    static _Thread_local int32_t labels[N];
    graft_metrics                metrics = output_metrics();
    int32_t                      rc = train_two(host, trainer);

    if (rc == GRAFT_OK) rc = host->train->predict(trainer, GRAFT_WEIGHTS_BEST, labels, NULL, &host->error);
    if (rc == GRAFT_OK) rc = host->train->evaluate(trainer, GRAFT_WEIGHTS_BEST, &metrics, &host->error);
    return rc;
}

/* Check how the first two ranks ended, of which the second ran out of memory. The result is NULL or an error in
 * words. */
static const char *train_faults_judge(int clean)
{
    const struct host *a = &hosts.at[0], *b = &hosts.at[1];

    if (!clean) return hosts.error.message;
    if (a->rc != b->rc) return "one rank has another status than the other";
    if (b->ran_out == 0) return a->rc == GRAFT_OK ? NULL : a->error.message;
    if (a->rc != GRAFT_ERR_NOMEM && a->rc != GRAFT_ERR_PEER && a->rc != GRAFT_OK) return a->error.message;
    if (a->rc < 0 && strcmp(a->error.message, b->error.message) != 0) return "the ranks say different things";
    if (a->rc < 0 && (strncmp(a->error.message, "rank 1: ", 8) != 0 || strstr(a->error.message, ": rank") != NULL))
        return a->error.message;
    return NULL;
}

static void test_train_faults_memory(const char *name, const char *const *with, int32_t n_ranks, int sparse)
{
    struct sample sample = { 3 };
    struct plot   plot = { .guilty = 1, .act = act_all, .again = 1 };
    const char   *words = NULL;
    int64_t       k, agreed = 0, parted = 0;

    sample_dataset_init(&plot.set, &sample, N, FEATURES, CLASSES, 0, sparse);
    for (k = 0; k < MOST && words == NULL; k++) {
        plot.fail_at = k;
        words = train_faults_judge(hosts_run(&hosts, n_ranks, with, plot_body, &plot));
        if (!hosts.at[1].ran_out) break;
        agreed += hosts.at[0].rc == GRAFT_ERR_NOMEM;
        parted += hosts.at[0].rc == GRAFT_ERR_PEER;
    }
    ok(words == NULL && agreed > 20 && k < MOST,
       "%s: each of %lld allocations fails in turn; %lld in create(), after which it succeeds, "
       "%lld after it",
       name, (long long)k, (long long)agreed, (long long)parted);
    if (words != NULL) diag("allocation %lld: %s", (long long)k, words);
    sample_dataset_fini(&plot.set);
}

int main(void)
{
    static const char *const gcn[] = { "layers=2",        "hidden=8",  "epochs=9",          "model=gcn",
                                       "halo.timeout=20", "threads=1", "input_dropout=0.2", "sparse_input=yes",
                                       "partition=hash",  NULL };
    static const char *const gat[] = { "layers=2",        "hidden=8",  "epochs=9", "model=gat",
                                       "halo.timeout=20", "threads=1", "heads=2",  NULL };
    static const char *const gin[] = { "hidden=8",  "epochs=9",       "model=gin",      "halo.timeout=20",
                                       "threads=1", "symmetrize=yes", "order=rcm",      "self_loops=yes",
                                       "layers=3",  "reuse_input=no", "partition=hash", NULL };
    static const char *const labels[] = { "layers=2",        "hidden=8",  "epochs=9",       "model=sage",
                                          "halo.timeout=20", "threads=1", "label_rate=0.5", NULL };
    static const char *const held[] = { "layers=3",        "hidden=8",  "epochs=9",         "model=gcn",
                                        "halo.timeout=20", "threads=1", "parallel=feature", "symmetrize=yes",
                                        "partition=hash",  NULL };
    static const char *const streamed[] = { "layers=3",        "hidden=8",  "epochs=9",         "model=sage",
                                            "halo.timeout=20", "threads=1", "parallel=feature", "feature.graph=stream",
                                            "dropout=0",       NULL };

    static const char *const grid[] = { "layers=2",        "hidden=8",  "epochs=9",      "aggregator=max",
                                        "halo.timeout=20", "threads=1", "parallel=grid", "feature.graph=stream",
                                        "partition=hash",  NULL };

    alarm(170);
    test_create();
    test_options();
    test_words();
    test_without_place();
    test_between(settings);
    test_between(async);
    test_between(streamed);
    test_late(hasty);
    test_late(hasty_async);
    test_train_faults_memory("sage", settings, 2, 0);
    test_train_faults_memory("sage, asynchronous", async, 2, 0);
    test_train_faults_memory("gcn with sparse features", gcn, 2, 1);
    test_train_faults_memory("gat", gat, 2, 0);
    test_train_faults_memory("sage with labels as input", labels, 2, 0);
    test_train_faults_memory("gin of a graph made symmetric, in another order", gin, 2, 0);
    test_train_faults_memory("gcn with shared columns", held, 2, 0);
    test_train_faults_memory("sage with shared columns and edges that are received", streamed, 2, 0);
    test_train_faults_memory("maxima with groups that share columns", grid, 4, 0);
    return done();
}
