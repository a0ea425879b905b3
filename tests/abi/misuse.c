/* Makes the objects and the calls that misuse.h describes.
 * SPDX-License-Identifier: Apache-2.0 */
#include "misuse.h"

#include "fuzz/data_files.h"
#include "graft_load.h"

#include <stdarg.h>

enum { N = MISUSE_N, WIDTH = MISUSE_WIDTH, CLASSES = 3 };

static struct sample_dataset set;
static struct data_folder    folder;
static const int64_t         seeds[] = { 7, 3, 11 };

const char *misuse_fault(const char *format, ...)
{
    static char fault[1000];
    va_list     list;

    va_start(list, format);
    vsnprintf(fault, sizeof fault, format, list);
    va_end(list);
    return fault;
}

void misuse_init(void)
{
    struct sample sample = { 5 };
    FILE         *file;

    sample_dataset_init(&set, &sample, N, WIDTH, CLASSES, 0, 0);
    folder_create(&folder);
    file = fopen(folder_path(&folder, "graph.mtx"), "w");
    files_check(file != NULL, "graph.mtx");
    fputs("%%MatrixMarket matrix coordinate pattern general\n3 3 2\n1 2\n2 3\n", file);
    fclose(file);
}

void misuse_fini(void)
{
    folder_destroy(&folder);
    sample_dataset_fini(&set);
}

const graft_csr *misuse_graph(void)
{
    return set.dataset.graph;
}

static void keep_line(void *self, graft_log_level level, const char *message)
{
    struct misuse *m = self;
    const size_t   at = strlen(m->log);

    (void)level;
    snprintf(m->log + at, MISUSE_LOG - at, "%s\n", message);
    if (m->at_log != NULL) m->at_log(m);
}

static int32_t make_objects(struct misuse *m)
{
    graft_slice slice = GRAFT_INIT(graft_slice);
    int32_t     rc;

    slice.n_vertices = N;
    slice.rows = set.dataset.graph;
    rc = m->mxm->matrix_create(m->context, set.dataset.graph, 0, (graft_matrix **)&m->handle[MATRIX], &m->error);
    if (rc == GRAFT_OK)
        rc = m->train->create(m->context, &set.dataset, (graft_trainer **)&m->handle[TRAINER], &m->error);
    if (rc == GRAFT_OK) rc = m->graphs->create(m->context, NULL, &slice, (graft_graph **)&m->handle[GRAPH], &m->error);
    if (rc == GRAFT_OK) rc = m->aggregate->create(m->handle[GRAPH], NULL, (graft_plan **)&m->handle[PLAN], &m->error);
    if (rc == GRAFT_OK) rc = m->halos->create(m->handle[GRAPH], (graft_halo **)&m->handle[HALO], &m->error);
    if (rc == GRAFT_OK)
        rc = m->models->create(m->handle[TRAINER], GRAFT_MODEL_LAST, (graft_model **)&m->handle[MODEL], &m->error);
    if (rc == GRAFT_OK)
        rc = m->samples->create(m->context, m->handle[MATRIX], seeds, 3, (graft_sampler **)&m->handle[SAMPLER],
                                &m->error);
    if (rc == GRAFT_OK) rc = m->data->open(m->context, folder.path, (graft_data **)&m->handle[DATA], &m->error);
    return rc;
}

static void set_up_product(struct misuse *m)
{
    m->dense_b = (graft_dense){ sizeof m->dense_b, GRAFT_F32, N, WIDTH, WIDTH, m->b };
    m->dense_c = (graft_dense){ sizeof m->dense_c, GRAFT_F32, N, WIDTH, WIDTH, m->c };
    for (int i = 0; i < N * WIDTH; i++) m->b[i] = (float)(i % 7);
    m->args = GRAFT_INIT(graft_mxm_args);
    m->args.semiring = GRAFT_PLUS_SECOND;
    m->args.threads = 1;
    m->args.a = m->handle[MATRIX];
    m->args.b = &m->dense_b;
    m->args.c = &m->dense_c;
}

const char *misuse_open(struct misuse *m)
{
    memset(m, 0, sizeof *m);
    m->error = GRAFT_INIT(graft_error);
    strict_host_init(&m->strict);
    m->strict.table.log = keep_line;
    if (graft_load(getenv("GRAFT_LIBRARY"), &m->strict.table, &m->api, &m->error) < 0)
        return misuse_fault("%s", m->error.message);
    m->context = m->api->context;
    m->mxm = graft_interface(m->api, GRAFT_MXM_ID, sizeof *m->mxm);
    m->edge = graft_interface(m->api, GRAFT_EDGE_ID, sizeof *m->edge);
    m->train = graft_interface(m->api, GRAFT_TRAIN_ID, sizeof *m->train);
    m->report = graft_interface(m->api, GRAFT_REPORT_ID, sizeof *m->report);
    m->groups = graft_interface(m->api, GRAFT_GROUP_ID, sizeof *m->groups);
    m->graphs = graft_interface(m->api, GRAFT_GRAPH_ID, sizeof *m->graphs);
    m->aggregate = graft_interface(m->api, GRAFT_AGGREGATE_ID, sizeof *m->aggregate);
    m->data = graft_interface(m->api, GRAFT_DATA_ID, sizeof *m->data);
    m->models = graft_interface(m->api, GRAFT_MODEL_ID, sizeof *m->models);
    m->samples = graft_interface(m->api, GRAFT_SAMPLE_ID, sizeof *m->samples);
    m->halos = graft_interface(m->api, GRAFT_HALO_ID, sizeof *m->halos);
    m->transports = graft_interface(m->api, GRAFT_TRANSPORT_ID, GRAFT_HAS(graft_transport_api, threads));
    m->api->set(m->context, "layers", "2", NULL);
    m->api->set(m->context, "hidden", "4", NULL);
    m->api->set(m->context, "threads", "1", NULL);
    m->api->set(m->context, "halo.codec", "adaptive", NULL);
    m->api->set(m->context, "log.level", "warning", NULL);
    if (make_objects(m) < 0) return misuse_fault("objects cannot be made: %s", m->error.message);
    set_up_product(m);
    m->log[0] = '\0';
    return NULL;
}

const char *misuse_close(struct misuse *m)
{
    for (int kind = 0; kind < CONTEXT; kind++) misuse_destroy(m, m->handle[kind], kind);
    m->api->close(m->context);
    if (m->strict.fault != NULL) return m->strict.fault;
    return m->strict.live_bytes == 0 ? NULL : misuse_fault("%lld bytes are left", (long long)m->strict.live_bytes);
}

void *misuse_handle(struct misuse *m, enum misuse_kind kind)
{
    return kind == CONTEXT ? (void *)m->context : m->handle[kind];
}

void misuse_destroy(struct misuse *m, void *handle, enum misuse_kind kind)
{
    switch (kind) {
    case MATRIX: m->mxm->matrix_destroy(handle); break;
    case TRAINER: m->train->destroy(handle); break;
    case GRAPH: m->graphs->destroy(handle); break;
    case PLAN: m->aggregate->destroy(handle); break;
    case MODEL: m->models->destroy(handle); break;
    case SAMPLER: m->samples->destroy(handle); break;
    case HALO: m->halos->destroy(handle); break;
    case DATA: m->data->close(handle); break;
    default: m->api->close(handle);
    }
}

int32_t misuse_train_over(struct misuse *m, void *graph)
{
    graft_dataset  dataset = set.dataset;
    graft_trainer *trainer = NULL;
    const int32_t  saved = m->train->create(m->context, (dataset.over = graph, &dataset), &trainer, &m->error);

    m->train->destroy(trainer);
    return saved;
}

/* Define the function for a call. A call that makes an object must not succeed with a wrong handle. */

#define CALL(name, kind, expression)                                                                                   \
    static int32_t name(struct misuse *m, void *handle)                                                                \
    {                                                                                                                  \
        return (expression);                                                                                           \
    }

static void *none;

void misuse_drop_made(struct misuse *m, struct misuse *other)
{
    for (int kind = 0; kind < CONTEXT && none != NULL; kind++) {
        misuse_destroy(m, none, kind);
        misuse_destroy(other, none, kind);
    }
    none = NULL;
}

static int32_t call_run(struct misuse *m, void *handle)
{
    graft_mxm_args args = m->args;

    args.a = handle;
    return m->mxm->run(m->context, &args, &m->error);
}

static int32_t call_mxm_explain(struct misuse *m, void *handle)
{
    graft_mxm_args args = m->args;
    char           text[64];

    args.a = handle;
    return m->mxm->explain(m->context, &args, text, sizeof text, &m->error);
}

static int32_t call_order(struct misuse *m, void *handle)
{
    int64_t order[N];

    return m->mxm->matrix_order(m->context, handle, "rcm", order, &m->error);
}

static int32_t call_permute(struct misuse *m, void *handle)
{
    int64_t order[N] = { 0 };

    return m->mxm->matrix_permute(m->context, handle, order, (graft_matrix **)&none, &m->error);
}

static int32_t call_values_of(struct misuse *m, void *handle)
{
    return m->mxm->matrix_update_values(m->context, m->handle[MATRIX], NULL, handle, &m->error);
}

static int32_t call_epoch(struct misuse *m, void *handle)
{
    graft_epoch epoch = GRAFT_INIT(graft_epoch);

    return m->train->epoch(handle, &epoch, &m->error);
}

static int32_t call_evaluate(struct misuse *m, void *handle)
{
    graft_metrics metrics = GRAFT_INIT(graft_metrics);

    return m->train->evaluate(handle, GRAFT_WEIGHTS_LAST, &metrics, &m->error);
}

static int32_t call_state_item(struct misuse *m, void *handle)
{
    graft_state_item item = GRAFT_INIT(graft_state_item);

    return m->train->state_item(handle, 0, &item, &m->error);
}

static int32_t call_train_explain(struct misuse *m, void *handle)
{
    char text[64];

    return m->train->explain(handle, text, sizeof text, &m->error);
}

static int32_t call_memory_item(struct misuse *m, void *handle)
{
    graft_memory_item item = GRAFT_INIT(graft_memory_item);

    return m->report->memory_item(handle, 0, &item, &m->error);
}

static int32_t call_update(struct misuse *m, void *handle)
{
    return m->train->update(handle, GRAFT_UPDATE_FEATURES, &set.dataset, &m->error);
}

static int32_t call_graph_info(struct misuse *m, void *handle)
{
    graft_graph_info info = GRAFT_INIT(graft_graph_info);

    return m->graphs->info(handle, -1, &info, &m->error);
}

static int32_t call_graph_explain(struct misuse *m, void *handle)
{
    char text[64];

    return m->graphs->explain(handle, text, sizeof text, &m->error);
}

static int32_t call_redistribute(struct misuse *m, void *handle)
{
    graft_redistribution args = { sizeof args, GRAFT_TO_OWNERS, 4, m->b, 4, m->c, 4 };

    return m->graphs->redistribute(handle, &args, &m->error);
}

/* A graph without values cannot replace them, and returns ERR_STATE too. */
static int32_t call_graph_values(struct misuse *m, void *handle)
{
    return m->graphs->update_values(handle, NULL, &m->error);
}

static int32_t call_plan_create(struct misuse *m, void *handle)
{
    graft_plan   *plan = NULL;
    const int32_t rc = m->aggregate->create(handle, NULL, &plan, &m->error);

    m->aggregate->destroy(plan);
    return rc;
}

static int32_t call_pass(struct misuse *m, void *handle)
{
    graft_aggregate_args args = GRAFT_INIT(graft_aggregate_args);
    int32_t              rc;

    args.semiring = GRAFT_PLUS_SECOND;
    args.x = &m->dense_b;
    args.out = &m->dense_c;
    rc = m->aggregate->begin(handle, &args, &m->error);
    return rc < 0 ? rc : m->aggregate->end(handle, &m->error);
}

static int32_t call_plan_info(struct misuse *m, void *handle)
{
    graft_plan_info info = GRAFT_INIT(graft_plan_info);

    return m->aggregate->info(handle, -1, &info, &m->error);
}

static int32_t call_plan_explain(struct misuse *m, void *handle)
{
    char text[64];

    return m->aggregate->explain(handle, text, sizeof text, &m->error);
}

static int32_t call_halo_info(struct misuse *m, void *handle)
{
    graft_halo_info info = GRAFT_INIT(graft_halo_info);

    return m->halos->info(handle, &info, &m->error);
}

static int32_t call_halo_matrix(struct misuse *m, void *handle)
{
    graft_csr matrix = GRAFT_INIT(graft_csr);

    return m->halos->matrix(handle, &matrix, &m->error);
}

static int32_t call_halo_create(struct misuse *m, void *handle)
{
    graft_halo   *halo = NULL;
    const int32_t rc = m->halos->create(handle, &halo, &m->error);

    m->halos->destroy(halo);
    return rc;
}

static int32_t call_halo_begin(struct misuse *m, void *handle)
{
    graft_halo_args args = GRAFT_INIT(graft_halo_args);

    return m->halos->begin(handle, &args, &m->error);
}

static int32_t call_halo_progress(struct misuse *m, void *handle)
{
    int32_t arrived;

    return m->halos->progress(handle, &arrived, &m->error);
}

static int32_t call_plan_progress(struct misuse *m, void *handle)
{
    int32_t arrived;

    return m->aggregate->progress(handle, &arrived, &m->error);
}

static int32_t call_model_create(struct misuse *m, void *handle)
{
    graft_model  *model = NULL;
    const int32_t rc = m->models->create(handle, GRAFT_MODEL_LAST, &model, &m->error);

    m->models->destroy(model);
    return rc;
}

static int32_t call_model_info(struct misuse *m, void *handle)
{
    graft_model_info info = GRAFT_INIT(graft_model_info);

    return m->models->info(handle, &info, &m->error);
}

static int32_t call_model_item(struct misuse *m, void *handle)
{
    graft_state_item item = GRAFT_INIT(graft_state_item);

    return m->models->item(handle, 0, &item, &m->error);
}

static int32_t call_model_metadata(struct misuse *m, void *handle)
{
    const char *key, *value;

    return m->models->metadata(handle, 0, &key, &value, &m->error);
}

/* Apply the model to a trainer, as long as the model exists. */
static int32_t call_apply_to(struct misuse *m, void *handle)
{
    if (call_model_info(m, m->handle[MODEL]) < 0) return call_epoch(m, handle);
    return m->models->apply(m->handle[MODEL], handle, &m->error);
}

static int32_t call_sampler_next(struct misuse *m, void *handle)
{
    graft_sample_batch batch = GRAFT_INIT(graft_sample_batch);

    return m->samples->next(handle, &batch, &m->error);
}

static int32_t call_sample(struct misuse *m, void *handle)
{
    graft_sample_batch batch = GRAFT_INIT(graft_sample_batch);

    return m->samples->sample(handle, seeds, 2, 0, &batch, &m->error);
}

static int32_t call_sample_block(struct misuse *m, void *handle)
{
    graft_sample_block block = GRAFT_INIT(graft_sample_block);

    return m->samples->block(handle, 0, &block, &m->error);
}

static int32_t call_prefetch(struct misuse *m, void *handle)
{
    int32_t made;

    return m->samples->prefetch(handle, &made, &m->error);
}

static int32_t call_sampler_explain(struct misuse *m, void *handle)
{
    char text[64];

    return m->samples->explain(handle, text, sizeof text, &m->error);
}

static int32_t call_option_info(struct misuse *m, void *handle)
{
    graft_option option = GRAFT_INIT(graft_option);

    return m->api->option_info(handle, 0, &option, &m->error);
}

static int32_t call_module_info(struct misuse *m, void *handle)
{
    graft_module_entry entry = GRAFT_INIT(graft_module_entry);

    return m->api->module_info(handle, 0, &entry, &m->error);
}

static int32_t call_in_context(struct misuse *m, void *handle)
{
    return m->mxm->run(handle, &m->args, &m->error);
}

CALL(call_transpose, MATRIX, m->mxm->matrix_transpose(m->context, handle, (graft_matrix **)&none, &m->error))
CALL(call_values, MATRIX, m->mxm->matrix_update_values(m->context, handle, m->b, NULL, &m->error))
CALL(call_sddmm, MATRIX, m->edge->sddmm(m->context, handle, &m->dense_b, &m->dense_b, &m->dense_c, 1, &m->error))
CALL(call_softmax, MATRIX, m->edge->softmax(m->context, handle, &m->dense_b, &m->dense_c, 1, &m->error))
CALL(call_edge_mxm, MATRIX, m->edge->mxm(m->context, handle, 0, &m->dense_b, NULL, &m->dense_c, 1, &m->error))
CALL(call_sampler, MATRIX, m->samples->create(m->context, handle, seeds, 3, (graft_sampler **)&none, &m->error))
CALL(call_sampler_begin, SAMPLER, m->samples->begin(handle, 1, 0, NULL, &m->error))
CALL(call_predict, TRAINER, m->train->predict(handle, GRAFT_WEIGHTS_LAST, NULL, NULL, &m->error))
CALL(call_end, PLAN, m->aggregate->end(handle, &m->error))
CALL(call_assign_bits, PLAN, m->aggregate->assign_bits(handle, &m->error))
CALL(call_halo_end, HALO, m->halos->end(handle, &m->error))
CALL(call_model_save, MODEL, m->models->save(handle, "/nonexistent/model", &m->error))
CALL(call_model_apply, MODEL, m->models->apply(handle, m->handle[TRAINER], &m->error))
CALL(call_model_predict, MODEL, m->models->predict(handle, 0, &set.dataset, NULL, NULL, &m->error))
static int32_t call_threads(struct misuse *m, void *handle)
{
    graft_transport made[2] = { GRAFT_INIT(graft_transport), GRAFT_INIT(graft_transport) };
    const int32_t   rc = m->transports->threads(handle, 2, made, &m->error);

    for (int i = 0; i < 2 && rc == GRAFT_OK; i++) made[i].close(made[i].self);
    return rc;
}

CALL(call_set, CONTEXT, m->api->set(handle, "lr", "0.5", &m->error))
CALL(call_load_module, CONTEXT, m->api->load_module(handle, "/x.so", &m->error))
CALL(call_create, CONTEXT, m->mxm->matrix_create(handle, set.dataset.graph, 0, (graft_matrix **)&none, &m->error))
CALL(call_open, CONTEXT, m->data->open(handle, folder.path, (graft_data **)&none, &m->error))
CALL(call_train, CONTEXT, m->train->create(handle, &set.dataset, (graft_trainer **)&none, &m->error))

const struct misuse_call misuse_calls[] = {
    { "run", MATRIX, call_run },
    { "mxm explain", MATRIX, call_mxm_explain },
    { "matrix_order", MATRIX, call_order },
    { "matrix_permute", MATRIX, call_permute },
    { "matrix_transpose", MATRIX, call_transpose },
    { "matrix_update_values", MATRIX, call_values },
    { "matrix_update_values of original", MATRIX, call_values_of },
    { "sddmm", MATRIX, call_sddmm },
    { "softmax", MATRIX, call_softmax },
    { "edge mxm", MATRIX, call_edge_mxm },
    { "sampler create", MATRIX, call_sampler },
    { "sampler begin", SAMPLER, call_sampler_begin },
    { "sampler next", SAMPLER, call_sampler_next },
    { "sample", SAMPLER, call_sample },
    { "sample block", SAMPLER, call_sample_block },
    { "sampler explain", SAMPLER, call_sampler_explain },
    { "prefetch", SAMPLER, call_prefetch },
    { "epoch", TRAINER, call_epoch },
    { "evaluate", TRAINER, call_evaluate },
    { "predict", TRAINER, call_predict },
    { "state_item", TRAINER, call_state_item },
    { "memory_item", TRAINER, call_memory_item },
    { "train explain", TRAINER, call_train_explain },
    { "update", TRAINER, call_update },
    { "graph info", GRAPH, call_graph_info },
    { "graph explain", GRAPH, call_graph_explain },
    { "redistribute", GRAPH, call_redistribute },
    { "graph update_values", GRAPH, call_graph_values },
    { "plan create", GRAPH, call_plan_create },
    { "train create over", GRAPH, misuse_train_over },
    { "begin", PLAN, call_pass },
    { "end", PLAN, call_end },
    { "assign_bits", PLAN, call_assign_bits },
    { "halo create", GRAPH, call_halo_create },
    { "halo info", HALO, call_halo_info },
    { "halo matrix", HALO, call_halo_matrix },
    { "halo begin", HALO, call_halo_begin },
    { "halo progress", HALO, call_halo_progress },
    { "halo end", HALO, call_halo_end },
    { "model create", TRAINER, call_model_create },
    { "model apply to", TRAINER, call_apply_to },
    { "model info", MODEL, call_model_info },
    { "model item", MODEL, call_model_item },
    { "model metadata", MODEL, call_model_metadata },
    { "model save", MODEL, call_model_save },
    { "model apply", MODEL, call_model_apply },
    { "model predict", MODEL, call_model_predict },
    { "plan progress", PLAN, call_plan_progress },
    { "plan info", PLAN, call_plan_info },
    { "plan explain", PLAN, call_plan_explain },
    { "set", CONTEXT, call_set },
    { "threads", CONTEXT, call_threads },
    { "option_info", CONTEXT, call_option_info },
    { "load_module", CONTEXT, call_load_module },
    { "module_info", CONTEXT, call_module_info },
    { "matrix_create", CONTEXT, call_create },
    { "run in", CONTEXT, call_in_context },
    { "open", CONTEXT, call_open },
    { "train create", CONTEXT, call_train },
};
const int misuse_n_calls = sizeof misuse_calls / sizeof *misuse_calls;

const char *misuse_works(struct misuse *m, enum misuse_kind kind)
{
    int32_t rc = GRAFT_OK;

    switch (kind) {
    case MATRIX: rc = call_run(m, m->handle[kind]); break;
    case TRAINER: rc = call_epoch(m, m->handle[kind]); break;
    case GRAPH: rc = call_redistribute(m, m->handle[kind]); break;
    case PLAN: rc = call_pass(m, m->handle[kind]); break;
    case MODEL: rc = call_model_info(m, m->handle[kind]); break;
    case SAMPLER: rc = call_sample(m, m->handle[kind]); break;
    case HALO: rc = call_halo_info(m, m->handle[kind]); break;
    case DATA: return m->data->view(m->handle[DATA]) != NULL ? NULL : misuse_fault("the data have no view");
    default: rc = call_set(m, m->context);
    }
    return rc == GRAFT_OK ? NULL : misuse_fault("%s", m->error.message);
}
