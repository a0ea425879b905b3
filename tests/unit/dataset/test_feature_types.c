/* Checks dense features of 16 and 8 bits. Training, evaluation and prediction must be bitwise identical to those with
 * the same values as floats, which the test computes from the definition of each type: in full-graph training, by
 * minibatch, in another vertex order, over ranks, and after update(). Batches over ranks must keep copies of the narrow
 * type. Illegal types, scales and values must be refused.
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness/hosts.h"
#include "harness/outputs.h"
#include "harness/tap.h"
#include "oracle/sample.h"

#include "graft_load.h"
#include "graft_model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { N = 120, FEATURES = 7, STRIDE = 9, CLASSES = 3, EPOCHS = 2, TYPES = 3 };

static const graft_dtype types[TYPES] = { GRAFT_F16, GRAFT_BF16, GRAFT_U8 };
static const char *const names[TYPES] = { "float16", "bfloat16", "uint8" };

static struct sample sample = { 29 };
static uint16_t      halves[N * STRIDE];
static uint8_t       bytes[N * STRIDE];
static float         floats[N * STRIDE], scale[FEATURES], zero[FEATURES];

/* -- the definition of each type ---------------------------------------------------------------------------------- */

/* The value of a 16-bit number by IEEE 754-2008, section 3.4: half precision has 5 bits of exponent and 10 of fraction,
 * bfloat16 has 8 and 7. */
static double half_value(uint16_t bits, int exponent_bits)
{
    const int    fraction_bits = 15 - exponent_bits, bias = (1 << (exponent_bits - 1)) - 1;
    const int    exponent = (bits & 0x7FFF) >> fraction_bits, fraction = bits & ((1 << fraction_bits) - 1);
    const double sign = bits >> 15 ? -1 : 1;

    if (exponent == 0) return sign * ldexp(fraction, 1 - bias - fraction_bits);
    return sign * ldexp((1 << fraction_bits) + fraction, exponent - bias - fraction_bits);
}

/* Fill arrays of a type, and the floats that they stand for. Some values are subnormal, zero or -0. */
static void fill_types(graft_dtype type, uint64_t seed)
{
    struct sample draws = { seed };
    const int     exponent_bits = type == GRAFT_F16 ? 5 : 8;
    const int64_t middle = type == GRAFT_F16 ? 15 : 127;

    for (int j = 0; j < FEATURES; j++) {
        scale[j] = (float)sample_real(&draws, -0.02, 0.02);
        zero[j] = (float)sample_real(&draws, 0, 255);
    }
    for (int64_t i = 0; i < N * STRIDE; i++) {
        const int64_t exponent = sample_below(&draws, 9) == 0 ? 0 : middle - 3 + sample_below(&draws, 4);
        const int     fraction_bits = 15 - exponent_bits;

        halves[i] = (uint16_t)(sample_below(&draws, 2) << 15 | exponent << fraction_bits |
                               sample_below(&draws, (int64_t)1 << fraction_bits));
        bytes[i] = (uint8_t)sample_below(&draws, 256);
        floats[i] = (float)half_value(halves[i], exponent_bits);
        if (type == GRAFT_U8 && i % STRIDE < FEATURES) {
            const volatile float shifted = (float)bytes[i] - zero[i % STRIDE]; /* rounded to float here */

            floats[i] = scale[i % STRIDE] * shifted;
        }
    }
}

/* -- the same as with floats -------------------------------------------------------------------------------------- */

struct job {
    graft_dataset data;
    const char   *settings, *later; /* options, and options set after create() */
    graft_dtype   type;             /* 0 for floats */
    int           is_updated;
    enum slices   way;
    int64_t       bytes[2]; /* bytes of features in the trainer of the first rank before and after training */
    float         logits[N * CLASSES], saved[N * CLASSES];
    double        loss[EPOCHS];
};

static void give_features(struct job *job, graft_dataset *data, graft_dense *x, int64_t first, int64_t n)
{
    *x = graft_dense_in(job->type != 0 ? job->type : GRAFT_F32, n, FEATURES, floats + first * STRIDE);
    if (job->type == GRAFT_U8) x->data = bytes + first * STRIDE;
    else if (job->type != 0) x->data = halves + first * STRIDE;
    x->stride = STRIDE;
    data->features = x;
    data->feature_scale = job->type == GRAFT_U8 ? scale : NULL;
    data->feature_zero = job->type == GRAFT_U8 ? zero : NULL;
    if (n > 0) return;
    x->dtype = GRAFT_F32; /* a rank without rows need not know the type */
    data->feature_scale = data->feature_zero = NULL;
}

static int64_t feature_bytes(const struct host *host, graft_trainer *trainer)
{
    graft_memory_item item = GRAFT_INIT(graft_memory_item);

    for (int32_t i = 0; host->report->memory_item(trainer, i, &item, NULL) == GRAFT_OK; i++)
        if (strcmp(item.name, "features") == 0) return item.bytes;
    return -1;
}

/* Prepare the data set of a rank; a single rank has a data set of one process. */
static int32_t begin_rank(struct host *host, struct host_slice *slice, graft_graph **graph)
{
    struct job *job = host->all->arg;
    int32_t     rc = GRAFT_OK;

    host_set_all(host->api, job->settings);
    host_slice_init(slice, &job->data, job->way, host->rank, host->n_ranks);
    if (host->n_ranks == 1) {
        slice->dataset = job->data;
        return GRAFT_OK;
    }
    rc = host->graphs->create(host->api->context, &host->transport, &slice->slice, graph, &host->error);
    slice->dataset.over = *graph;
    return rc;
}

static int32_t train_and_predict(struct host *host, graft_trainer *trainer, struct job *job, const graft_dense *logits)
{
    graft_epoch epoch = output_epoch();
    int32_t     rc = GRAFT_OK;

    for (int e = 0; e < EPOCHS && rc == GRAFT_OK; e++) {
        rc = host->train->epoch(trainer, &epoch, &host->error);
        if (host->rank == 0) job->loss[e] = epoch.loss;
    }
    output_clear_rows(logits);
    return rc == GRAFT_OK ? host->train->predict(trainer, GRAFT_WEIGHTS_LAST, NULL, logits, &host->error) : rc;
}

static int32_t run_features(struct host *host)
{
    struct job            *job = host->all->arg;
    const graft_model_api *models = graft_interface(host->api, GRAFT_MODEL_ID, sizeof *models);
    graft_dense            x, logits, saved;
    graft_prediction       wish = GRAFT_INIT(graft_prediction);
    graft_graph           *graph = NULL;
    graft_trainer         *trainer = NULL;
    graft_model           *model = NULL;
    struct host_slice      slice;
    int32_t                rc = begin_rank(host, &slice, &graph);
    const int64_t          first = slice.first, n = slice.end - slice.first;

    give_features(job, &slice.dataset, &x, first, n);
    logits = graft_dense_in(GRAFT_F32, n, CLASSES, job->logits + first * CLASSES);
    saved = graft_dense_in(GRAFT_F32, n, CLASSES, job->saved + first * CLASSES);
    if (rc == GRAFT_OK) rc = host->train->create(host->api->context, &slice.dataset, &trainer, &host->error);
    if (rc == GRAFT_OK && host->rank == 0) job->bytes[0] = feature_bytes(host, trainer);
    if (rc == GRAFT_OK && job->later != NULL) host_set_all(host->api, job->later);
    if (rc == GRAFT_OK && job->is_updated) {
        fill_types(job->is_updated, 8);
        rc = host->train->update(trainer, GRAFT_UPDATE_FEATURES, &slice.dataset, &host->error);
    }
    if (rc == GRAFT_OK) rc = train_and_predict(host, trainer, job, &logits);
    if (rc == GRAFT_OK && host->rank == 0) job->bytes[1] = feature_bytes(host, trainer);
    if (rc == GRAFT_OK) rc = models->create(trainer, 0, &model, &host->error);
    wish.dataset = &slice.dataset;
    wish.n = n;
    wish.logits = &saved;
    output_clear_rows(&saved);
    if (rc == GRAFT_OK) rc = models->predict_vertices(model, &wish, &host->error);
    models->destroy(model);
    host->train->destroy(trainer);
    host->graphs->destroy(graph);
    host_slice_fini(&slice);
    return rc;
}

/* Copies of batches over ranks must be narrow before, between and after evaluations. */
static void check_feature_bytes(const struct job *typed, const struct job *plain, int n_ranks)
{
    enum { ROUNDING = 400 };
    const int64_t element = typed->type == GRAFT_U8 ? 1 : 2, most = plain->bytes[0] * element / 4 + ROUNDING;

    if (n_ranks == 1 || strstr(typed->settings, "batch_size") == NULL) return;
    if (strstr(typed->settings, "order") != NULL || strstr(typed->settings, "normalize") != NULL) return;
    ok(typed->bytes[0] > 0 && typed->bytes[0] <= most && typed->bytes[1] == typed->bytes[0],
       "%s: features take %lld bytes, afterwards %lld, at most %lld; as floats they take %lld", typed->settings,
       (long long)typed->bytes[0], (long long)typed->bytes[1], (long long)most, (long long)plain->bytes[0]);
}

static const char *later; /* options, NULL for none */

/* Run `n_ranks` ranks with slices of a kind. With `updates` update() replaces the features. */
static void test_types_of_slices(const struct sample_dataset *set, int n_ranks, enum slices way, const char *settings,
                                 int updates)
{
    static struct job        typed, plain;
    static struct hosts      hosts;
    static const char *const none[] = { NULL };

    for (int t = 0; t < TYPES; t++) {
        const char *fault;

        typed = (struct job){ .data = set->dataset,
                              .settings = settings,
                              .later = later,
                              .type = types[t],
                              .is_updated = updates ? types[t] : 0,
                              .way = way };
        plain = typed;
        plain.type = 0;
        fill_types(types[t], 3);
        hosts_run(&hosts, n_ranks, none, run_features, &typed);
        fault = hosts_fault(&hosts);
        if (fault != NULL) diag("%s: %s", names[t], fault);
        fill_types(types[t], 3);
        if (fault == NULL) hosts_run(&hosts, n_ranks, none, run_features, &plain);
        if (fault == NULL) fault = hosts_fault(&hosts);
        ok(fault == NULL && typed.loss[0] > 0 && memcmp(typed.loss, plain.loss, sizeof plain.loss) == 0 &&
               memcmp(typed.logits, plain.logits, sizeof plain.logits) == 0 &&
               memcmp(typed.saved, plain.saved, sizeof plain.saved) == 0,
           "%s, %d rank%s, %s%s: training is bitwise identical to that with floats", names[t], n_ranks,
           n_ranks > 1 ? "s" : "", settings, updates ? ", update()" : "");
        check_feature_bytes(&typed, &plain, n_ranks);
    }
}

static void test_types(const struct sample_dataset *set, int n_ranks, const char *settings, int updates)
{
    test_types_of_slices(set, n_ranks, SLICES_EVEN, settings, updates);
}

/* -- refusals ----------------------------------------------------------------------------------------------------- */

static const graft_api *api;
static graft_error      error;

static void refuse_features(graft_dataset *data, int32_t expected, const char *said, const char *what)
{
    const graft_train_api *train = graft_interface(api, GRAFT_TRAIN_ID, sizeof *train);
    graft_trainer         *trainer = NULL;
    const int32_t          rc = train->create(api->context, data, &trainer, &error);

    ok(rc == expected && trainer == NULL && strstr(error.message, said) != NULL, "%s: %s", what, error.message);
    train->destroy(trainer);
}

static void test_bad_types(const struct sample_dataset *set)
{
    graft_dataset data = set->dataset;
    graft_dense   x;
    struct job    job = { .type = GRAFT_U8 };

    error = (graft_error)GRAFT_INIT(graft_error);
    if (graft_load(getenv("GRAFT_LIBRARY"), NULL, &api, &error) < 0) {
        ok(0, "the library opens: %s", error.message);
        return;
    }
    fill_types(GRAFT_U8, 3);
    give_features(&job, &data, &x, 0, N);
    x.dtype = GRAFT_I32;
    refuse_features(&data, GRAFT_ERR_ARG, "features have dtype 3, expected", "a type that is none of features");
    x.dtype = GRAFT_U8;
    data.feature_zero = NULL;
    refuse_features(&data, GRAFT_ERR_ARG, "feature_zero null", "uint8 without zero");
    data.feature_zero = zero;
    x.dtype = GRAFT_F16;
    refuse_features(&data, GRAFT_ERR_ARG, "none with other types", "float16 with a scale");
    x.dtype = GRAFT_U8;
    scale[3] = (float)NAN;
    refuse_features(&data, GRAFT_ERR_FORMAT, "of column 3 are nan", "a scale that is NaN");
    scale[3] = 3e38f;
    refuse_features(&data, GRAFT_ERR_FORMAT, "of column 3", "a scale with which values are infinite");
    scale[3] = 1;
    x.stride = FEATURES - 1;
    refuse_features(&data, GRAFT_ERR_ARG, "stride", "rows that overlap");
    for (int t = 0; t < 2; t++) {
        fill_types(types[t], 3);
        job.type = types[t];
        give_features(&job, &data, &x, 0, N);
        halves[17 * STRIDE + 2] = types[t] == GRAFT_F16 ? 0x7C01 : 0xFF80;
        refuse_features(&data, GRAFT_ERR_FORMAT, "features of vertex 17: column 2 is ", names[t]);
    }
    api->close(api->context);
}

/* -- ranks that differ -------------------------------------------------------------------------------------------- */

#define RANKS_SETTINGS "epochs=5 hidden=8 partition=hash batch_size=10 fanout=4"

/* What the last rank has different from the others. */
enum fault { FAULT_VALUE, FAULT_TYPE, FAULT_SCALE, FAULT_UPDATED_VALUE, FAULT_UPDATED_SCALE };

struct faulty {
    struct job  job; /* first member, for begin_rank() */
    enum fault  fault;
    graft_error said[HOSTS_MOST];
    double      loss; /* loss of an epoch after a refused update() */
};

static float    other_scale[FEATURES];
static uint16_t bad_halves[N * STRIDE];

static void spoil_last_rank(const struct host *host, enum fault fault, graft_dataset *data, graft_dense *x,
                            int64_t first)
{
    if (host->rank + 1 < host->n_ranks) return;
    if (fault == FAULT_VALUE || fault == FAULT_UPDATED_VALUE) x->data = bad_halves + first * STRIDE;
    if (fault == FAULT_TYPE) x->dtype = GRAFT_BF16;
    if (fault == FAULT_SCALE || fault == FAULT_UPDATED_SCALE) data->feature_scale = other_scale;
}

static int32_t refuse_on_ranks(struct host *host)
{
    struct faulty    *f = host->all->arg;
    const int         updates = f->fault >= FAULT_UPDATED_VALUE;
    graft_dense       x, other;
    graft_graph      *graph = NULL;
    graft_trainer    *trainer = NULL;
    struct host_slice slice;
    graft_epoch       epoch = output_epoch();
    graft_error      *said = &f->said[host->rank];
    graft_dataset     spoilt;
    int32_t           rc = begin_rank(host, &slice, &graph);

    *said = (graft_error)GRAFT_INIT(graft_error);
    give_features(&f->job, &slice.dataset, &x, slice.first, slice.end - slice.first);
    spoilt = slice.dataset;
    other = x;
    spoilt.features = &other;
    spoil_last_rank(host, f->fault, &spoilt, &other, slice.first);
    if (rc == GRAFT_OK && !updates) host->train->create(host->api->context, &spoilt, &trainer, said);
    if (rc == GRAFT_OK && updates) {
        rc = host->train->create(host->api->context, &slice.dataset, &trainer, &host->error);
        if (rc == GRAFT_OK) host->train->update(trainer, GRAFT_UPDATE_FEATURES, &spoilt, said);
        if (rc == GRAFT_OK) rc = host->train->epoch(trainer, &epoch, &host->error);
        if (host->rank == 0) f->loss = epoch.loss;
    }
    host->train->destroy(trainer);
    host->graphs->destroy(graph);
    host_slice_fini(&slice);
    return rc;
}

static void test_faults(const struct sample_dataset *set)
{
    enum { RANKS = 3 };
    static const struct {
        enum fault  fault;
        graft_dtype type;
        int32_t     code;
        const char *said;
    } cases[] = {
        { FAULT_VALUE, GRAFT_F16, GRAFT_ERR_FORMAT, "features of vertex 117: column 2 is nan, expected" },
        { FAULT_TYPE, GRAFT_F16, GRAFT_ERR_ARG, "features have dtype 6; expected 7, which rank 0 has" },
        { FAULT_SCALE, GRAFT_U8, GRAFT_ERR_ARG, "differs from rank 0" },
        { FAULT_UPDATED_VALUE, GRAFT_F16, GRAFT_ERR_FORMAT, "features of vertex 117: column 2 is nan, expected" },
        { FAULT_UPDATED_SCALE, GRAFT_U8, GRAFT_ERR_ARG, "differs from rank 0" },
    };
    static struct faulty     f;
    static struct job        plain;
    static struct hosts      hosts;
    static const char *const none[] = { NULL };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *fault;
        int         agreed = 1;

        fill_types(cases[i].type, 3);
        memcpy(bad_halves, halves, sizeof halves);
        bad_halves[117 * STRIDE + 2] = 0x7C01;
        memcpy(other_scale, scale, sizeof scale);
        other_scale[3] = 0.5f;
        plain = (struct job){ .data = set->dataset, .settings = RANKS_SETTINGS, .type = cases[i].type };
        f = (struct faulty){ .job = plain, .fault = cases[i].fault };
        hosts_run(&hosts, RANKS, none, refuse_on_ranks, &f);
        fault = hosts_fault(&hosts);
        for (int p = 0; p < RANKS; p++)
            agreed = agreed && f.said[p].code == cases[i].code && f.said[p].rank == RANKS - 1 &&
                     strstr(f.said[p].message, cases[i].said) != NULL;
        ok(fault == NULL && agreed, "fault number %d on the last rank is refused: %s", (int)i,
           fault != NULL ? fault : f.said[0].message);
        if (fault != NULL || cases[i].fault < FAULT_UPDATED_VALUE) continue;
        hosts_run(&hosts, RANKS, none, run_features, &plain);
        ok(hosts_fault(&hosts) == NULL && f.loss == plain.loss[0], "after a refused update() the trainer is unchanged");
    }
}

/* -- folders ------------------------------------------------------------------------------------------------------ */

static void write_features(const char *folder, const char *name, const char *type, int64_t rows, int64_t columns,
                           const void *from, size_t row_bytes, size_t stride)
{
    char  path[200], header[129] = { 0 };
    FILE *file;

    snprintf(path, sizeof path, "%s/%s", folder, name);
    memset(header, ' ', 128);
    memcpy(header, "\x93NUMPY\1\0\x76\0", 10);
    if (columns > 0)
        snprintf(header + 10, 110, "{'descr': '%s', 'fortran_order': False, 'shape': (%d, %d), }", type, (int)rows,
                 (int)columns);
    else snprintf(header + 10, 110, "{'descr': '%s', 'fortran_order': False, 'shape': (%d,), }", type, (int)rows);
    header[strlen(header + 10) + 10] = ' ';
    header[127] = '\n';
    file = fopen(path, "wb");
    if (file == NULL) return;
    fwrite(header, 1, 128, file);
    for (int64_t i = 0; i < rows; i++) fwrite((const char *)from + (size_t)i * stride, 1, row_bytes, file);
    fclose(file);
}

/* Whether the features of an opened folder are those of `job`. */
static int same_features(const graft_dataset *set, const struct job *job)
{
    const graft_dense *x = set->features;
    const size_t       element = job->type == GRAFT_U8 ? 1 : 2;
    int                same = x != NULL && x->dtype == job->type && x->n_rows == N && x->n_cols == FEATURES;

    for (int64_t i = 0; i < N && same; i++)
        same = memcmp((const char *)x->data + (size_t)(i * x->stride) * element,
                      (job->type == GRAFT_U8 ? (const char *)bytes : (const char *)halves) +
                          (size_t)(i * STRIDE) * element,
                      FEATURES * element) == 0;
    if (job->type == GRAFT_U8)
        same = same && memcmp(set->feature_scale, scale, sizeof scale) == 0 &&
               memcmp(set->feature_zero, zero, sizeof zero) == 0;
    return same;
}

static void test_folder(const char *batch_size)
{
    static const char *const descr[TYPES] = { "<f2", "<V2", "|u1" };
    static const int64_t     edges[2][2] = { { 0, 1 }, { 1, N - 1 } };
    const graft_data_api    *table;
    char                     folder[] = "/tmp/graft-feature-types-XXXXXX", command[100];

    error = (graft_error)GRAFT_INIT(graft_error);
    if (mkdtemp(folder) == NULL || graft_load(getenv("GRAFT_LIBRARY"), NULL, &api, &error) < 0) {
        ok(0, "the library opens: %s", error.message);
        return;
    }
    table = graft_interface(api, GRAFT_DATA_ID, sizeof *table);
    host_set_all(api, batch_size);
    write_features(folder, "edges.npy", "<i8", 2, 2, edges, sizeof edges[0], sizeof edges[0]);
    for (int t = 0; t < TYPES; t++) {
        struct job   job = { .type = types[t] };
        const size_t element = types[t] == GRAFT_U8 ? 1 : 2;
        graft_data  *data = NULL;
        int32_t      rc;

        fill_types(types[t], 3);
        write_features(folder, "features.npy", descr[t], N, FEATURES,
                       types[t] == GRAFT_U8 ? (const void *)bytes : (const void *)halves, FEATURES * element,
                       STRIDE * element);
        if (types[t] == GRAFT_U8) {
            rc = table->open(api->context, folder, &data, &error);
            ok(rc == GRAFT_ERR_NOT_FOUND && strstr(error.message, "no feature_scale.npy") != NULL,
               "8-bit features without feature_scale.npy are refused: %s", error.message);
            write_features(folder, "feature_scale.npy", "<f4", FEATURES, 0, scale, 4, 4);
            write_features(folder, "feature_zero.npy", "<f4", FEATURES, 0, zero, 4, 4);
        }
        rc = table->open(api->context, folder, &data, &error);
        ok_or(rc == GRAFT_OK && same_features(table->view(data), &job), rc != GRAFT_OK ? error.message : NULL,
              "%s from a folder, %s", names[t], batch_size);
        table->close(data);
    }
    write_features(folder, "feature_zero.npy", "<f4", FEATURES - 1, 0, zero, 4, 4);
    ok(table->open(api->context, folder, &(graft_data *){ NULL }, &error) == GRAFT_ERR_FORMAT, "%s", error.message);
    api->close(api->context);
    snprintf(command, sizeof command, "rm -r %s", folder);
    ok(system(command) == 0, "the folder of the test is removed");
}

/* -- slices of a folder ------------------------------------------------------------------------------------------- */

struct folder_job {
    const char *path, *batch_size;
    int32_t     opened[HOSTS_MOST], same[HOSTS_MOST];
    graft_error said[HOSTS_MOST]; /* errors of create() */
};

static int32_t open_slice(struct host *host)
{
    struct folder_job    *job = host->all->arg;
    const graft_data_api *table = graft_interface(host->api, GRAFT_DATA_ID, sizeof *table);
    graft_error          *said = &job->said[host->rank];
    graft_data           *data = NULL;
    graft_graph          *graph = NULL;
    graft_trainer        *trainer = NULL;
    graft_dataset         set;
    graft_slice           slice = GRAFT_INIT(graft_slice);
    int32_t               rc;

    *said = (graft_error)GRAFT_INIT(graft_error);
    host_set_all(host->api, job->batch_size);
    rc = table->open_slice(host->api->context, &host->transport, job->path, &data, said);
    job->opened[host->rank] = rc;
    if (rc < 0) return GRAFT_OK;
    set = *table->view(data);
    job->same[host->rank] = 1;
    for (int64_t v = 0; v < set.n_slice; v++)
        job->same[host->rank] &= memcmp((const uint16_t *)set.features->data + v * set.features->stride,
                                        halves + (set.first_vertex + v) * STRIDE, FEATURES * sizeof *halves) == 0;
    slice.n_vertices = set.n_vertices;
    slice.first_row = set.first_vertex;
    slice.rows = set.graph;
    rc = host->graphs->create(host->api->context, &host->transport, &slice, &graph, &host->error);
    set.over = graph;
    if (rc == GRAFT_OK) host->train->create(host->api->context, &set, &trainer, said);
    host->train->destroy(trainer);
    host->graphs->destroy(graph);
    table->close(data);
    return rc;
}

/* A mapped slice is checked by create(), and a slice that is read is checked by open_slice(). Either must fail on all
 * ranks. */
static void test_folder_slices(void)
{
    enum { RANKS = 3 };
    static const int64_t     edges[2][2] = { { 0, 1 }, { 1, N - 1 } };
    static const char *const none[] = { NULL };
    static struct hosts      hosts;
    static int32_t           labels[N];
    static uint8_t           split[N];
    struct folder_job        job = { 0 };
    char                     folder[] = "/tmp/graft-feature-slices-XXXXXX", command[100];

    if (mkdtemp(folder) == NULL) {
        ok(0, "a folder for the test is made");
        return;
    }
    fill_types(GRAFT_F16, 3);
    halves[117 * STRIDE + 2] = 0x7C01;
    memset(split, 1, sizeof split);
    write_features(folder, "edges.npy", "<i8", 2, 2, edges, sizeof edges[0], sizeof edges[0]);
    write_features(folder, "features.npy", "<f2", N, FEATURES, halves, FEATURES * sizeof *halves,
                   STRIDE * sizeof *halves);
    write_features(folder, "labels.npy", "<i4", N, 0, labels, 4, 4);
    write_features(folder, "split.npy", "|u1", N, 0, split, 1, 1);
    job.path = folder;
    for (int maps = 0; maps < 2; maps++) {
        int good = 1;

        job.batch_size = maps ? "batch_size=10" : "batch_size=0";
        hosts_run(&hosts, RANKS, none, open_slice, &job);
        for (int p = 0; p < RANKS; p++)
            good = good && job.opened[p] == (maps ? GRAFT_OK : GRAFT_ERR_FORMAT) && (!maps || job.same[p]) &&
                   job.said[p].code == GRAFT_ERR_FORMAT && job.said[p].rank == RANKS - 1 &&
                   strstr(job.said[p].message, maps ? "vertex 117" : "row 117") != NULL;
        ok_or(hosts_fault(&hosts) == NULL && good, hosts_fault(&hosts), "slices, %s: %s", job.batch_size,
              job.said[0].message);
    }
    snprintf(command, sizeof command, "rm -r %s", folder);
    ok(system(command) == 0, "the folder of the test is removed");
}

int main(void)
{
    struct sample_dataset set;

    sample_dataset_init(&set, &sample, N, FEATURES, CLASSES, 0, 0);
    test_types(&set, 1, "epochs=5 hidden=8", 0);
    test_types(&set, 1, "epochs=5 hidden=8 order=rcm normalize_features=yes input_dropout=0.2 model=gcn", 1);
    test_types(&set, 1, "epochs=5 hidden=8 batch_size=25 fanout=3", 0);
    test_types(&set, 1, "epochs=5 hidden=8 batch_size=25 fanout=3 eval.blocks=yes", 1);
    test_types(&set, 1, "epochs=5 hidden=8 batch_size=25 eval.blocks=no", 0);
    test_types(&set, 1, "epochs=5 hidden=8 batch_size=25 history=full", 0);
    later = "eval.blocks=no"; /* evaluations need all rows as floats, which they did not when the trainer was made */
    test_types(&set, 1, "epochs=5 hidden=8 batch_size=25 fanout=3 eval.blocks=yes", 0);
    test_types(&set, 1, "epochs=5 hidden=8 batch_size=25 fanout=3", 1);
    later = NULL;
    test_types(&set, 3, "epochs=5 hidden=8 partition=hash", 1);
    test_types(&set, 3, "epochs=5 hidden=8 partition=hash order=rcm normalize_features=yes", 1);
    test_types(&set, 2, "epochs=5 hidden=8 partition=hash batch_size=20 fanout=4", 0);
    test_types(&set, 3, "epochs=5 hidden=8 partition=hash batch_size=10 fanout=4 input_dropout=0.2 model=gat", 1);
    test_types(&set, 4, "epochs=5 hidden=8 partition=hash batch_size=8 fanout=4 hec.miss=fetch aep.rows=0", 1);
    test_types(&set, 2, "epochs=5 hidden=8 partition=hash batch_size=20 order=rcm", 1);
    test_types(&set, 2, "epochs=5 hidden=8 partition=hash batch_size=20 normalize_features=yes", 1);
    test_types_of_slices(&set, 2, SLICES_LAST, "epochs=5 hidden=8 partition=hash batch_size=20 fanout=4", 1);
    test_types_of_slices(&set, 3, SLICES_FIRST, "epochs=5 hidden=8 partition=hash", 1);
    test_bad_types(&set);
    test_faults(&set);
    test_folder("batch_size=0");
    test_folder("batch_size=10");
    test_folder_slices();
    sample_dataset_fini(&set);
    return done();
}
