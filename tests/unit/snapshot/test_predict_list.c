/* Checks predict_vertices() of graft.model/1: for a list of vertices, in any order and with repeats, it must give the
 * logits that the oracle computes from the weights, the largest of them, and their softmax or sigmoid; in one process
 * and over ranks, where each rank has its own list; for data sets without labels. What one rank asks for wrongly must
 * be refused on all.
 * SPDX-License-Identifier: Apache-2.0 */
#include "graft_model.h"
#include "harness/hosts.h"
#include "harness/outputs.h"
#include "harness/tap.h"
#include "oracle/oracle.h"
#include "oracle/sample.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { N = 97, FEATURES = 7, CLASSES = 4, HIDDEN = 12, EPOCHS = 2, LISTED = 9, GUILTY = 1 };

/* Vertex 0 gathers from all vertices, so it is in no short list. */
static const int64_t LIST[LISTED] = { 90, 5, 41, 5, 2, 96, 33, 41, 64 };

struct list_job {
    struct sample_dataset set;
    struct oracle_model   oracle;
    int                   serial, all; /* whether all vertices are predicted and not the list */
    enum slices           way;
    int64_t               n;         /* number of rows of the arrays below */
    int64_t               vertex[N]; /* [n] vertices */
    float                 logits[N * CLASSES], probabilities[N * CLASSES];
    int32_t               labels[N];
};

/* What one rank asks for, and where in the list it belongs. */
struct request {
    int64_t          vertices[N], place[N], n;
    float            logits[N * CLASSES], probabilities[N * CLASSES];
    int32_t          labels[N];
    graft_dense      out, likely;
    graft_dataset    data;
    graft_prediction args;
};

static int32_t list_wrong(struct host *host, const char *words)
{
    snprintf(host->error.message, sizeof host->error.message, "%s", words);
    return GRAFT_STATUS_END;
}

/* The part of the list in the slice of this rank. The data set has no labels unless the model reads them. */
static void request_init(struct request *r, const struct list_job *job, const graft_dataset *data, int64_t first,
                         int64_t end)
{
    memset(r, 0, sizeof *r);
    for (int64_t i = 0; i < job->n; i++) {
        if (job->vertex[i] < first || job->vertex[i] >= end) continue;
        r->vertices[r->n] = job->vertex[i];
        r->place[r->n++] = i;
    }
    r->out = (graft_dense){ sizeof r->out, GRAFT_F32, r->n, CLASSES, CLASSES, r->logits };
    r->likely = (graft_dense){ sizeof r->likely, GRAFT_F32, r->n, CLASSES, CLASSES, r->probabilities };
    r->data = *data;
    if (job->oracle.options.label_rate == 0) {
        r->data.labels = NULL;
        r->data.targets = NULL;
        r->data.split = NULL;
        r->data.n_classes = 0;
    }
    r->args = (graft_prediction){ .size = sizeof r->args,
                                  .weights = GRAFT_WEIGHTS_LAST,
                                  .dataset = &r->data,
                                  .vertices = job->all ? NULL : r->vertices,
                                  .n = r->n,
                                  .labels = r->labels,
                                  .logits = &r->out,
                                  .probabilities = &r->likely };
}

static void request_store(const struct request *r, struct list_job *job)
{
    for (int64_t i = 0; i < r->n; i++) {
        const int64_t at = r->place[i];

        job->labels[at] = r->labels[i];
        memcpy(job->logits + at * CLASSES, r->logits + i * CLASSES, CLASSES * sizeof *r->logits);
        memcpy(job->probabilities + at * CLASSES, r->probabilities + i * CLASSES, CLASSES * sizeof *r->logits);
    }
}

/* Copy the weights of the model to the oracle. */
static int32_t give_weights(struct host *host, const graft_model_api *models, graft_model *model)
{
    struct list_job *job = host->all->arg;
    graft_state_item item = GRAFT_INIT(graft_state_item);
    int32_t          found = 0;

    for (int32_t i = 0; host->rank == 0 && models->item(model, i, &item, NULL) == GRAFT_OK; i++) {
        struct oracle_tensor *tensor = oracle_model_find(&job->oracle, item.name);

        if (tensor == NULL) continue;
        for (int64_t at = 0; at < tensor->rows * tensor->cols; at++)
            tensor->value[at] = (double)((const float *)item.data)[at];
        found++;
    }
    return host->rank > 0 || found == job->oracle.n_tensors ? GRAFT_OK : list_wrong(host, "the oracle lacks weights");
}

/* Make the request of a rank wrong in one way, and return the words that the error must have. `own` is a vertex of this
 * rank. */
static const char *spoil_list(struct request *r, int which, int64_t own)
{
    static const char *const words[] = { "vertices: element 1 is 97, expected ",
                                         "vertices: element 0 is -1, expected ",
                                         "n is -1, expected 0 or more",
                                         "means all, and n is 1000; expected ",
                                         "probabilities are 50 x ",
                                         "weights is 2" };

    if (which == (int)(sizeof words / sizeof *words)) return NULL;
    r->vertices[0] = which == 1 ? -1 : own;
    r->vertices[1] = N;
    r->likely.n_rows = 50;
    r->args.n = which == 0 ? 2 : which == 2 ? -1 : which == 3 ? 1000 : 1;
    if (which == 3) r->args.vertices = NULL;
    if (which == 4) r->args.probabilities = &r->likely;
    if (which == 5) r->args.weights = 2;
    return words[which];
}

/* One rank asks for something illegal and the others for something legal. All must return one status and one sentence,
 * and leave their outputs as they were. */
static int32_t refuse_lists(struct host *host, const graft_model_api *models, graft_model *model,
                            const struct request *good, int64_t own)
{
    const struct list_job *job = host->all->arg;
    struct request        *r = malloc(sizeof *r);
    const char            *words;
    int32_t                rc = r != NULL ? GRAFT_OK : GRAFT_ERR_NOMEM;

    for (int which = 0; rc == GRAFT_OK; which++) {
        const int many = host->n_ranks > 1, of_list = which < 2 || which == 3;

        *r = *good;
        r->args.dataset = &r->data;
        r->args.vertices = r->vertices;
        r->args.logits = r->args.probabilities = NULL;
        r->args.labels = r->labels;
        words = spoil_list(r, which, own);
        if (words == NULL) break;
        if (host->rank != GUILTY % host->n_ranks) r->args = good->args;
        r->labels[0] = 77;
        if (models->predict_vertices(model, &r->args, &host->error) != GRAFT_ERR_ARG || r->labels[0] != 77 ||
            strstr(host->error.message, words) == NULL || (many && strstr(host->error.message, "rank 1: ") == NULL) ||
            (of_list && !job->serial && strstr(host->error.message, "the slice of this rank") == NULL))
            rc = list_wrong(host, words);
    }
    free(r);
    return rc;
}

static int32_t list_body(struct host *host)
{
    struct list_job       *job = host->all->arg;
    const graft_model_api *models = host->api->get_interface(host->api->context, GRAFT_MODEL_ID);
    struct host_trainer    t = { 0 };
    struct request        *r = malloc(sizeof *r);
    graft_model           *model = NULL;
    graft_epoch            epoch = output_epoch();
    int32_t                rc;

    if (r == NULL) return GRAFT_ERR_NOMEM;
    if (job->serial) {
        t.slice.dataset = job->set.dataset;
        t.slice.end = N;
        rc = host->train->create(host->api->context, &t.slice.dataset, &t.trainer, &host->error);
    } else {
        rc = host_trainer_create(host, &job->set.dataset, job->way, &t);
    }
    for (int i = 0; i < EPOCHS && rc == GRAFT_OK; i++) rc = host->train->epoch(t.trainer, &epoch, &host->error);
    if (rc == GRAFT_OK) rc = models->create(t.trainer, GRAFT_MODEL_LAST, &model, &host->error);
    if (rc == GRAFT_OK) rc = give_weights(host, models, model);
    request_init(r, job, &t.slice.dataset, t.slice.first, t.slice.end);
    if (rc == GRAFT_OK) rc = models->predict_vertices(model, &r->args, &host->error);
    if (rc == GRAFT_OK) request_store(r, job);
    if (rc == GRAFT_OK) rc = refuse_lists(host, models, model, r, t.slice.first);
    models->destroy(model);
    if (job->serial) host->train->destroy(t.trainer);
    else host_trainer_destroy(host, &t);
    free(r);
    return rc;
}

static int is_off(double a, double b)
{
    return !(fabs(a - b) <= 2e-4 * (1 + fabs(b)));
}

static const char *differing_row(const struct list_job *job, int64_t i, const double *expected)
{
    const int     sigmoid = job->oracle.options.loss == ORACLE_SIGMOID;
    const float  *logits = job->logits + i * CLASSES, *likely = job->probabilities + i * CLASSES;
    const int32_t label = job->labels[i];
    double        sum = 0;

    for (int j = 0; j < CLASSES; j++) sum += exp(expected[j]);
    for (int j = 0; j < CLASSES; j++) {
        if (is_off((double)logits[j], expected[j])) return "logits are not those of the oracle";
        if (is_off((double)likely[j], sigmoid ? 1 / (1 + exp(-expected[j])) : exp(expected[j]) / sum))
            return "probabilities are not those of the oracle";
        if (label < 0 || label >= CLASSES || logits[j] > logits[label]) return "a label is not of the largest logit";
    }
    return NULL;
}

static const char *differing_rows(const struct list_job *job)
{
    double     *expected = oracle_new(N * CLASSES, sizeof *expected);
    const char *fault = NULL;

    oracle_model_forward(&job->oracle, 0, expected, NULL);
    for (int64_t i = 0; i < job->n && fault == NULL; i++)
        fault = differing_row(job, i, expected + job->vertex[i] * CLASSES);
    free(expected);
    return fault;
}

struct list_case {
    const char           *settings;
    struct oracle_options options;
    int                   sparse, several, all;
};

static void test_listed(const struct list_case *what, int32_t n_ranks, enum slices way)
{
    static struct hosts    hosts;
    static struct list_job job;
    struct sample          sample = { 11 };
    struct oracle_options  options = what->options;
    const char            *given[HOST_SETTINGS] = { "layers=2", "hidden=12", "epochs=9", "threads=1", "dropout=0" };
    const char            *fault;
    char                   text[160];
    int                    count = 5;

    memset(&job, 0, sizeof job);
    job.serial = n_ranks == 0;
    job.all = what->all;
    job.way = way;
    job.n = what->all ? N : LISTED;
    for (int64_t i = 0; i < job.n; i++) job.vertex[i] = what->all ? i : LIST[i];
    sample_dataset_init(&job.set, &sample, N, FEATURES, CLASSES, what->several, what->sparse);
    options.layers = 2;
    options.hidden[0] = HIDDEN;
    options.norm = 1;
    options.loss = what->several ? ORACLE_SIGMOID : ORACLE_SOFTMAX;
    options.heads = options.kind == ORACLE_GAT ? 2 : 1;
    options.self_loops = options.kind == ORACLE_GCN || options.kind == ORACLE_GAT || options.kind >= ORACLE_SGC;
    oracle_model_init(&job.oracle, &options, &job.set.dataset);
    if (!job.serial) given[count++] = "partition=hash";
    snprintf(text, sizeof text, "%s", what->settings);
    for (char *rest = text, *word; (word = strtok_r(rest, " ", &rest)) != NULL;) given[count++] = word;
    given[count] = NULL;
    hosts_run(&hosts, job.serial ? 1 : n_ranks, given, list_body, &job);
    fault = hosts_fault(&hosts);
    if (fault == NULL) fault = differing_rows(&job);
    ok_or(fault == NULL, fault, "%s%s%s%s on %d ranks", what->settings, what->sparse ? ", sparse features" : "",
          what->several ? ", several classes" : "", what->all ? ", all vertices" : "", n_ranks);
    oracle_model_fini(&job.oracle);
    sample_dataset_fini(&job.set);
}

/* -- what it costs ------------------------------------------------------------------------------------------------- */

enum { MANY = 10000 };

/* A list must need memory for its receptive field, and not for all vertices. */
static int32_t list_cost_body(struct host *host)
{
    const graft_dataset   *data = host->all->arg;
    const graft_model_api *models = host->api->get_interface(host->api->context, GRAFT_MODEL_ID);
    const int64_t          some[] = { 7, 9000 };
    int32_t                labels[2];
    graft_prediction       args = { .size = sizeof args, .dataset = data, .labels = labels };
    graft_trainer         *trainer = NULL;
    graft_model           *model = NULL;
    int32_t                rc = host->train->create(host->api->context, data, &trainer, &host->error);

    if (rc == GRAFT_OK) rc = models->create(trainer, GRAFT_MODEL_LAST, &model, &host->error);
    host->train->destroy(trainer);
    host_set(host->api, "memory.limit=8"); /* in MB; a hidden layer of all vertices takes 10 */
    args.n = MANY;
    if (rc == GRAFT_OK && models->predict_vertices(model, &args, &host->error) != GRAFT_ERR_NOMEM)
        rc = list_wrong(host, "all vertices fit into 8 MB");
    args.vertices = some;
    args.n = 2;
    if (rc == GRAFT_OK) rc = models->predict_vertices(model, &args, &host->error);
    host_set(host->api, "row_masks=no");
    if (rc == GRAFT_OK && models->predict_vertices(model, &args, &host->error) != GRAFT_ERR_NOMEM)
        rc = list_wrong(host, "without row masks two vertices fit into 8 MB");
    models->destroy(model);
    return rc;
}

static void test_list_cost(void)
{
    static struct hosts      hosts;
    static const char *const given[] = { "layers=2", "hidden=256", "threads=2", NULL };
    struct sample            sample = { 5 };
    struct sample_dataset    set;
    const char              *fault;

    sample_dataset_init(&set, &sample, MANY, 1, 2, 0, 0);
    hosts_run(&hosts, 1, given, list_cost_body, &set.dataset);
    fault = hosts_fault(&hosts);
    ok_or(fault == NULL, fault, "two vertices need no memory for all");
    sample_dataset_fini(&set);
}

int main(void)
{
    static const struct list_case cases[] = {
        { "model=sage", { .kind = ORACLE_SAGE }, 0, 0, 0 },
        { "model=sage", { .kind = ORACLE_SAGE }, 0, 1, 1 },
        { "model=gcn symmetrize=yes order=degree", { .kind = ORACLE_GCN, .symmetrize = 1 }, 0, 0, 0 },
        { "model=gat heads=2", { .kind = ORACLE_GAT }, 0, 0, 0 },
        { "model=gin order=rcm", { .kind = ORACLE_GIN }, 0, 1, 0 },
        { "model=gin order=degree", { .kind = ORACLE_GIN }, 0, 0, 1 },
        { "model=mlp", { .kind = ORACLE_MLP }, 0, 0, 0 },
        { "model=sgc propagation=2", { .kind = ORACLE_SGC, .propagation = 2 }, 0, 0, 0 },
        { "model=appnp propagation=2 teleport=0.25",
          { .kind = ORACLE_APPNP, .propagation = 2, .teleport = 0.25 },
          0,
          0,
          0 },
        { "model=gcn normalize_features=yes", { .kind = ORACLE_GCN, .normalize_features = 1 }, 0, 0, 0 },
        { "model=gcn", { .kind = ORACLE_GCN }, 1, 0, 0 },
        { "model=sage label_rate=0.5 row_masks=no", { .kind = ORACLE_SAGE, .label_rate = 0.5 }, 0, 0, 0 },
        { "model=sage label_rate=0.5", { .kind = ORACLE_SAGE, .label_rate = 0.5 }, 0, 1, 0 },
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        test_listed(&cases[i], 0, SLICES_EVEN);
        for (int32_t ranks = 1 + (int32_t)i % 2; ranks <= 3; ranks += 2)
            test_listed(&cases[i], ranks, i % 3 == 2 ? SLICES_ODD : SLICES_EVEN);
    }
    test_list_cost();
    return done();
}
