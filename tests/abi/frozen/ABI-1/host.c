/* A host as it was when this folder was frozen: compiled with the headers beside it and run with the library of today.
 * It uses every interface, asks for the last call that its headers have, and keeps marks behind every struct that the
 * library fills. Neither this file nor the headers change; see ledger.txt.
 * SPDX-License-Identifier: Apache-2.0 */
#include "graft.h"
#include "graft_load.h"
#include "harness/tap.h"

#include <stdlib.h>
#include <string.h>

enum { N = 6, WIDTH = 4, CLASSES = 2, GUARD = 64, MARK = 0xA5 };

/* A struct that the library fills, with marks behind it. */
#define GUARDED(T)                                                                                                     \
    struct {                                                                                                           \
        T             it;                                                                                              \
        unsigned char guard[GUARD];                                                                                    \
    }
#define GUARD_INIT(room, T) (memset(&(room), MARK, sizeof(room)), (room).it = GRAFT_INIT(T), &(room).it)

static const graft_api *api;
static graft_error      error;
static int64_t          live;

/* A ring: vertex v gathers from its two neighbours. Features tell odd and even vertices apart, and so do labels. */
static int64_t row_ptr[N + 1];
static int32_t col_idx[2 * N];
static float   features[N][WIDTH];
static int32_t labels[N];
static uint8_t split[N];

static const graft_csr ring = { sizeof ring, GRAFT_I32, 0, 0, N, N, row_ptr, col_idx, NULL };

static int is_whole(const unsigned char *guard)
{
    for (int i = 0; i < GUARD; i++) {
        if (guard[i] != MARK) return 0;
    }
    return 1;
}

static int went_well(int32_t rc, const char *what)
{
    if (!ok(rc == GRAFT_OK, "%s", what)) diag("%d: %s", rc, error.message);
    return rc == GRAFT_OK;
}

static void *frozen_allocate(void *self, uint64_t bytes, uint64_t alignment)
{
    void *memory = aligned_alloc(alignment < 16 ? 16 : alignment, (bytes + 4095) / 4096 * 4096);

    (void)self;
    if (memory != NULL) __atomic_fetch_add(&live, (int64_t)bytes, __ATOMIC_RELAXED);
    return memory;
}

static void frozen_deallocate(void *self, void *memory, uint64_t bytes, uint64_t alignment)
{
    (void)self, (void)alignment;
    __atomic_fetch_sub(&live, (int64_t)bytes, __ATOMIC_RELAXED);
    free(memory);
}

static void frozen_log(void *self, graft_log_level level, const char *message)
{
    (void)self, (void)level, (void)message;
}

static void frozen_data(void)
{
    for (int v = 0; v < N; v++) {
        row_ptr[v + 1] = 2 * (v + 1);
        col_idx[2 * v] = (v + N - 1) % N;
        col_idx[2 * v + 1] = (v + 1) % N;
        for (int j = 0; j < WIDTH; j++) features[v][j] = (float)(v * WIDTH + j);
        labels[v] = v % CLASSES;
        split[v] = (uint8_t)(1 + v / 2);
    }
}

static graft_dense dense_of(void *data, int64_t rows, int64_t width)
{
    graft_dense dense = GRAFT_INIT(graft_dense);

    dense.dtype = GRAFT_F32;
    dense.n_rows = rows;
    dense.n_cols = dense.stride = width;
    dense.data = data;
    return dense;
}

static int is_sum_of_neighbours(float c[N][WIDTH])
{
    for (int v = 0; v < N; v++) {
        for (int j = 0; j < WIDTH; j++) {
            if (c[v][j] != features[(v + N - 1) % N][j] + features[(v + 1) % N][j]) return 0;
        }
    }
    return 1;
}

static void frozen_options(void)
{
    GUARDED(graft_option) option;
    GUARDED(graft_module_entry) entry;
    int32_t count = 0, faults = 0, modules = 0;

    for (; api->option_info(api->context, count, GUARD_INIT(option, graft_option), &error) == GRAFT_OK; count++) {
        faults += !is_whole(option.guard) || option.it.size != sizeof option.it || option.it.needs == NULL;
        faults += api->set(api->context, option.it.key, option.it.value, &error) != GRAFT_OK;
    }
    ok(count > 40 && faults == 0, "%d options are listed, and take the values that they have", count);
    for (; api->module_info(api->context, modules, GUARD_INIT(entry, graft_module_entry), &error) == GRAFT_OK;
         modules++)
        faults += !is_whole(entry.guard) || entry.it.detail == NULL;
    ok(modules > 1 && faults == 0, "%d modules are listed", modules);
}

static void frozen_products(void)
{
    const graft_mxm_api  *mxm = graft_interface(api, GRAFT_MXM_ID, sizeof *mxm);
    const graft_edge_api *edge = graft_interface(api, GRAFT_EDGE_ID, sizeof *edge);
    float                 c[N][WIDTH] = { { 0 } };
    graft_dense           b = dense_of(features, N, WIDTH), out = dense_of(c, N, WIDTH);
    graft_mxm_args        args = GRAFT_INIT(graft_mxm_args);
    graft_index           index = GRAFT_INIT(graft_index);
    graft_matrix         *matrix = NULL;
    int32_t               back[N];

    if (!ok(mxm != NULL && edge != NULL, "products and edges have all calls of this host")) return;
    went_well(mxm->matrix_create(api->context, &ring, 0, &matrix, &error), "a matrix is made");
    args.semiring = GRAFT_PLUS_SECOND;
    args.a = matrix;
    args.b = &b;
    args.c = &out;
    went_well(mxm->run(api->context, &args, &error), "a product runs");
    ok(is_sum_of_neighbours(c), "it is the sum over neighbours");
    mxm->matrix_destroy(matrix);
    for (int v = 0; v < N; v++) back[v] = N - 1 - v;
    index.index_type = GRAFT_I32;
    index.count = N;
    index.data = back;
    went_well(edge->gather_rows(api->context, &b, &index, &out, 0, &error), "rows are gathered");
    ok(c[0][1] == features[N - 1][1] && c[N - 1][0] == features[0][0], "by index");
}

static void frozen_codec(void)
{
    const graft_codec_api *codec = graft_interface(api, GRAFT_CODEC_ID, sizeof *codec);
    int64_t                bytes = 0;

    if (!ok(codec != NULL, "codecs have all calls of this host")) return;
    went_well(codec->row_bytes(api->context, 2, 10, GRAFT_F32, &bytes, &error), "the bytes of a row are counted");
    ok(bytes == 7, "20 bits and 4 bytes of parameters");
}

static void frozen_training(void)
{
    const graft_train_api *train = graft_interface(api, GRAFT_TRAIN_ID, sizeof *train);
    const graft_dense      x = dense_of(features, N, WIDTH);
    graft_dataset          data = GRAFT_INIT(graft_dataset);
    graft_trainer         *trainer = NULL;
    GUARDED(graft_epoch) epoch;
    GUARDED(graft_metrics) metrics;
    GUARDED(graft_state_item) item;
    int32_t predicted[N] = { -1, -1, -1, -1, -1, -1 }, n_items = 0, faults = 0;

    if (!ok(train != NULL, "training has all calls of this host")) return;
    data.n_vertices = N;
    data.n_features = WIDTH;
    data.n_classes = CLASSES;
    data.graph = &ring;
    data.features = &x;
    data.labels = labels;
    data.split = split;
    if (!went_well(train->create(api->context, &data, &trainer, &error), "a trainer is made")) return;
    for (int i = 0; i < 3; i++)
        faults += train->epoch(trainer, GUARD_INIT(epoch, graft_epoch), &error) != GRAFT_OK || !is_whole(epoch.guard);
    ok(faults == 0 && epoch.it.epoch == 3 && epoch.it.loss > 0, "it trains for 3 epochs, loss %g", epoch.it.loss);
    went_well(train->evaluate(trainer, GRAFT_WEIGHTS_LAST, GUARD_INIT(metrics, graft_metrics), &error), "evaluates");
    ok(is_whole(metrics.guard) && metrics.it.epoch == 3, "and fills no more than the struct of this host");
    for (; train->state_item(trainer, n_items, GUARD_INIT(item, graft_state_item), &error) == GRAFT_OK; n_items++)
        faults += !is_whole(item.guard) || train->state_set(trainer, &item.it, &error) != GRAFT_OK;
    ok(n_items > 3 && faults == 0, "%d items of state go out and in again", n_items);
    went_well(train->predict(trainer, GRAFT_WEIGHTS_LAST, predicted, NULL, &error), "predicts");
    for (int v = 0; v < N; v++) faults += predicted[v] < 0 || predicted[v] >= CLASSES;
    ok(faults == 0, "a class for every vertex");
    went_well(train->update(trainer, GRAFT_UPDATE_FEATURES, &data, &error), "and takes features anew");
    train->destroy(trainer);
}

/* This host's transport has one rank, so that nothing is ever sent. */
static int32_t frozen_send(void *self, int32_t to, int32_t tag, const void *data, uint64_t bytes,
                           graft_request **request, graft_error *fault)
{
    (void)self, (void)to, (void)tag, (void)data, (void)bytes, (void)request, (void)fault;
    return GRAFT_ERR_STATE;
}

static int32_t frozen_receive(void *self, int32_t from, int32_t tag, void *data, uint64_t bytes,
                              graft_request **request, graft_error *fault)
{
    (void)self, (void)from, (void)tag, (void)data, (void)bytes, (void)request, (void)fault;
    return GRAFT_ERR_STATE;
}

static int32_t frozen_test(void *self, graft_request *request, int32_t *is_done, graft_error *fault)
{
    (void)self, (void)request, (void)is_done, (void)fault;
    return GRAFT_ERR_STATE;
}

static int32_t frozen_cancel(void *self, graft_request *request)
{
    (void)self, (void)request;
    return 1;
}

static void frozen_close(void *self)
{
    (void)self;
}

static void aggregate_over(const graft_transport *transport, const char *whose)
{
    const graft_graph_api     *graphs = graft_interface(api, GRAFT_GRAPH_ID, sizeof *graphs);
    const graft_aggregate_api *aggregate = graft_interface(api, GRAFT_AGGREGATE_ID, sizeof *aggregate);
    float                      c[N][WIDTH] = { { 0 } };
    const graft_dense          x = dense_of(features, N, WIDTH), out = dense_of(c, N, WIDTH);
    graft_slice                slice = GRAFT_INIT(graft_slice);
    graft_aggregate_args       args = GRAFT_INIT(graft_aggregate_args);
    graft_graph               *graph = NULL;
    graft_plan                *plan = NULL;
    GUARDED(graft_plan_info) info;

    if (!ok(graphs != NULL && aggregate != NULL, "graphs and plans have all calls of this host")) return;
    slice.n_vertices = N;
    slice.rows = &ring;
    args.semiring = GRAFT_PLUS_SECOND;
    args.x = &x;
    args.out = &out;
    went_well(graphs->create(api->context, transport, &slice, &graph, &error), whose);
    went_well(aggregate->create(graph, NULL, &plan, &error), "a plan is made");
    went_well(aggregate->begin(plan, &args, &error), "a pass begins");
    went_well(aggregate->end(plan, &error), "and ends");
    ok(is_sum_of_neighbours(c), "with the sum over neighbours");
    went_well(aggregate->info(plan, -1, GUARD_INIT(info, graft_plan_info), &error), "the plan is described");
    ok(is_whole(info.guard) && info.it.passes == 1, "within the struct of this host");
    aggregate->destroy(plan);
    graphs->destroy(graph);
}

static void frozen_ranks(void)
{
    const graft_transport mine = {
        .size = sizeof mine,
        .n_ranks = 1,
        .tag_max = 1023,
        .name = "none",
        .send = frozen_send,
        .receive = frozen_receive,
        .test = frozen_test,
        .cancel = frozen_cancel,
        .close = frozen_close,
    };
    const graft_transport_api *transports = graft_interface(api, GRAFT_TRANSPORT_ID, sizeof *transports);
    GUARDED(graft_transport) threads;

    aggregate_over(&mine, "a graph is made over the transport of this host");
    if (!ok(transports != NULL, "transports have all calls of this host")) return;
    went_well(transports->threads(api->context, 1, GUARD_INIT(threads, graft_transport), &error), "threads are ranks");
    ok(is_whole(threads.guard) && threads.it.size == sizeof threads.it && threads.it.close != NULL,
       "within the struct of this host");
    aggregate_over(&threads.it, "a graph is made over them");
    threads.it.close(threads.it.self);
}

static void frozen_error(void)
{
    GUARDED(graft_error) small;
    const int32_t rc = api->set(api->context, "no.such", "1", GUARD_INIT(small, graft_error));

    ok(rc == GRAFT_ERR_OPTION && is_whole(small.guard) && small.it.code == GRAFT_ERR_OPTION,
       "an error is told within the struct of this host: %s", small.it.message);
}

int main(int argc, char **argv)
{
    const graft_host host = {
        .size = sizeof host, .log = frozen_log, .allocate = frozen_allocate, .deallocate = frozen_deallocate
    };

    error = GRAFT_INIT(graft_error);
    frozen_data();
    if (!went_well(graft_load(argc > 1 ? argv[1] : getenv("GRAFT_LIBRARY"), &host, &api, &error), "the library opens"))
        return done();
    ok(api->size >= sizeof *api && api->abi == GRAFT_ABI_VERSION, "and speaks version %u", api->abi);
    ok(graft_interface(api, GRAFT_DATA_ID, sizeof(graft_data_api)) != NULL, "data have all calls of this host");
    frozen_options();
    frozen_products();
    frozen_codec();
    frozen_training();
    frozen_ranks();
    frozen_error();
    api->close(api->context);
    ok(live == 0, "no memory is left");
    return done();
}
