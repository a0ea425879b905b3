/* Checks the size rule for each struct that crosses the interface: with fewer fields, unchanged, and with 64 more
 * bytes. Results must be the same, nothing may be written after an output, and unknown input that is not zero must be
 * refused. test_sizes.c has the structs of products and of training, test_negotiation.c those of graft_open().
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness/tap.h"
#include "watch.h"

#include "draft/graft_stream.h"
#include "graft_load.h"

enum { N = 6, WIDTH = 4, CLASSES = 2, ROOM = 1024, TAIL = 64, MARK = 0xA5 };

/* A struct between two areas with a known pattern. */
struct room {
    _Alignas(64) unsigned char bytes[ROOM];
};

static const graft_api           *api;
static const graft_mxm_api       *mxm;
static const graft_edge_api      *edge;
static const graft_codec_api     *codec;
static const graft_graph_api     *graphs;
static const graft_aggregate_api *aggregate;
static const graft_train_api     *train;
static const graft_report_api    *report;
static graft_error                error;
static graft_transport            transport;
static graft_graph               *graph;
static graft_plan                *plan;
static const graft_halo_api      *halos;
static const graft_model_api     *models;
static const graft_sample_api    *samples;
static const graft_transport_api *transports;
static const graft_mesh_api      *meshes;
static graft_mesh                *mesh;
static const graft_network_api   *networks;
static const graft_stream_api    *streams;
static graft_network             *network;
static graft_stream              *stream;
static graft_sampler             *sampler;
static graft_trainer             *trainer;
static graft_halo                *halo;
static graft_model               *model;

static int64_t     row_ptr[N + 1];
static int32_t     col_idx[2 * N], labels[N], reversed[N];
static uint8_t     split[N];
static float       features[N][WIDTH], result[N][WIDTH];
static graft_csr   ring;
static graft_dense x, out;

static void fill(void)
{
    for (int v = 0; v < N; v++) {
        row_ptr[v + 1] = 2 * (v + 1);
        col_idx[2 * v] = (v + N - 1) % N;
        col_idx[2 * v + 1] = (v + 1) % N;
        for (int j = 0; j < WIDTH; j++) features[v][j] = (float)(v * WIDTH + j);
        labels[v] = v % CLASSES;
        split[v] = (uint8_t)(1 + v / 2);
        reversed[v] = N - 1 - v;
    }
    ring = (graft_csr){ sizeof ring, GRAFT_I32, 0, 0, N, N, row_ptr, col_idx, NULL, NULL };
    x = (graft_dense){ sizeof x, GRAFT_F32, N, WIDTH, WIDTH, features };
    out = (graft_dense){ sizeof out, GRAFT_F32, N, WIDTH, WIDTH, result };
}

/* Copy a struct so that it claims `size` bytes and has the byte `tail` everywhere after its known fields. */
static void *place_struct(struct room *room, const void *original, size_t bytes, size_t size, int tail)
{
    const uint32_t said = (uint32_t)size;

    memset(room->bytes, MARK, ROOM);
    memcpy(room->bytes, original, bytes);
    if (size > bytes) memset(room->bytes + bytes, tail, size - bytes);
    memcpy(room->bytes, &said, sizeof said);
    return room->bytes;
}

/* Check an input struct: the call must end with `status` if everything from byte `cut` on is missing, and must succeed
 * if the struct is longer. */
static void try_input(const char *name, const void *original, size_t bytes, size_t cut, int32_t status,
                      int32_t (*call)(const void *input))
{
    struct room room, before;
    float       expected[N][WIDTH];
    int32_t     rc;

    memset(result, 0, sizeof result);
    rc = call(place_struct(&room, original, bytes, bytes, 0));
    memcpy(expected, result, sizeof result);
    ok_or(rc == GRAFT_OK, error.message, "a %s is taken", name);
    for (int i = 0; i < 2; i++) {
        const size_t  size = i == 0 ? cut : bytes + TAIL;
        const int32_t wanted = i == 0 ? status : GRAFT_OK;

        place_struct(&room, original, bytes, size, 0);
        before = room;
        memset(result, 0, sizeof result);
        rc = call(room.bytes);
        if (!ok(rc == wanted && (rc < 0 || memcmp(result, expected, sizeof result) == 0) &&
                    memcmp(&room, &before, sizeof room) == 0,
                "one of %zu bytes in place of %zu gives %s and is not written to", size, bytes,
                wanted == GRAFT_OK ? "the same" : "an error"))
            diag("%d: %s", rc, error.message);
    }
    rc = call(place_struct(&room, original, bytes, bytes + TAIL, MARK));
    ok(rc == GRAFT_ERR_UNSUPPORTED, "what a newer one asks for is refused");
}

/* Check an output struct: nothing may be written after its end, and its contents are the same for every size. */
static void try_output(const char *name, size_t bytes, int32_t (*call)(void *output))
{
    static const unsigned char nothing[ROOM];
    struct room                whole, room;
    int32_t                    rc = call(place_struct(&whole, nothing, bytes, bytes, 0));

    ok_or(rc == GRAFT_OK, error.message, "a %s is filled", name);
    for (int i = 0; i < 2; i++) {
        const size_t size = i == 0 ? bytes - 8 : bytes + TAIL, end = i == 0 ? size : bytes;
        int          good;

        rc = call(place_struct(&room, nothing, bytes, size, MARK));
        good = rc == GRAFT_OK && memcmp(room.bytes + 8, whole.bytes + 8, end - 8) == 0;
        for (size_t at = end; at < ROOM; at++) good = good && room.bytes[at] == (at < bytes ? 0 : MARK);
        if (!ok(good, "one of %zu bytes in place of %zu is filled as far as both go", size, bytes))
            diag("%d: %s", rc, error.message);
    }
}

static int32_t run_epilogue(const void *input)
{
    graft_mxm_args args = GRAFT_INIT(graft_mxm_args);
    graft_matrix  *matrix = NULL;
    int32_t        rc = mxm->matrix_create(api->context, &ring, 0, &matrix, &error);

    args.semiring = GRAFT_PLUS_SECOND;
    args.a = matrix;
    args.b = &x;
    args.c = &out;
    args.epilogue = input;
    if (rc == GRAFT_OK) rc = mxm->run(api->context, &args, &error);
    mxm->matrix_destroy(matrix);
    return rc;
}

static int32_t gather_by(const void *input)
{
    return edge->gather_rows(api->context, &x, input, &out, 0, &error);
}

static int32_t encode(const void *input)
{
    return codec->encode(api->context, input, &error);
}

static int32_t encode_counting(void *output)
{
    graft_codec_args args = GRAFT_INIT(graft_codec_args);
    unsigned char    message[N * 16];

    args.bits = 2;
    args.code = GRAFT_CODEC_MINMAX;
    args.rounding = GRAFT_ROUND_NEAREST;
    args.rows = &x;
    args.message = message;
    args.message_bytes = sizeof message;
    args.error = output;
    return codec->encode(api->context, &args, &error);
}

static int32_t open_transport_of(const void *input)
{
    graft_transport made = GRAFT_INIT(graft_transport);

    return transports->open(api->context, "nosuch", input, &made, &error);
}

static int32_t create_graph_of(const void *input)
{
    graft_graph  *made = NULL;
    const int32_t rc = graphs->create(api->context, &transport, input, &made, &error);

    graphs->destroy(made);
    return rc;
}

static int32_t create_graph_over(const void *input)
{
    const graft_slice slice = { .size = sizeof slice, .n_vertices = N, .rows = &ring };
    graft_graph      *made = NULL;
    const int32_t     rc = graphs->create(api->context, input, &slice, &made, &error);

    graphs->destroy(made);
    return rc;
}

static int32_t redistribute_by(const void *input)
{
    return graphs->redistribute(graph, input, &error);
}

static int32_t create_plan_of(const void *input)
{
    graft_plan   *made = NULL;
    const int32_t rc = aggregate->create(graph, input, &made, &error);

    aggregate->destroy(made);
    return rc;
}

static int32_t pass_of(const void *input)
{
    const int32_t rc = aggregate->begin(plan, input, &error);

    return rc < 0 ? rc : aggregate->end(plan, &error);
}

static int32_t pass_of_halo(const void *input)
{
    const int32_t rc = halos->begin(halo, input, &error);

    return rc < 0 ? rc : halos->end(halo, &error);
}

static int32_t read_halo_info(void *output)
{
    return halos->info(halo, output, &error);
}

static int32_t predict_by(const void *input)
{
    return models->predict_vertices(model, input, &error);
}

static int32_t read_model_info(void *output)
{
    return models->info(model, output, &error);
}

static int32_t draw_batch(void *output)
{
    const int64_t seeds[] = { 4, 1 };

    return samples->sample(sampler, seeds, 2, GRAFT_SAMPLE_ALL, output, &error);
}

static int32_t read_block(void *output)
{
    return samples->block(sampler, 0, output, &error);
}

static int32_t read_graph_info(void *output)
{
    return graphs->info(graph, 0, output, &error);
}

static int32_t read_plan_info(void *output)
{
    return aggregate->info(plan, 0, output, &error);
}

static int32_t read_span(void *output)
{
    return report->span(trainer, 0, output, &error);
}

static int32_t read_memory_item(void *output)
{
    return report->memory_item(trainer, 0, output, &error);
}

static int32_t read_traffic(void *output)
{
    return report->traffic(trainer, 0, output, &error);
}

static int32_t read_traffic_item(void *output)
{
    return report->traffic_item(trainer, 0, 0, output, &error);
}

static int32_t read_traffic_pair(void *output)
{
    return report->traffic_pair(trainer, 0, 0, output, &error);
}

static int32_t read_cache_item(void *output)
{
    return report->cache_item(trainer, 0, 0, output, &error);
}

static void test_local_structs(void)
{
    static unsigned char   message[N * 16];
    const graft_epilogue   epilogue = { .size = sizeof epilogue, .flags = GRAFT_EPILOGUE_RELU, .bias = features };
    const graft_index      index = { sizeof index, GRAFT_I32, N, reversed };
    const graft_codec_args args = { .size = sizeof args,
                                    .bits = 8,
                                    .code = GRAFT_CODEC_MINMAX,
                                    .rows = &x,
                                    .rounding = GRAFT_ROUND_NEAREST,
                                    .message = message,
                                    .message_bytes = sizeof message };

    try_input("graft_epilogue", &epilogue, sizeof epilogue, sizeof epilogue - 8, GRAFT_OK, run_epilogue);
    try_input("graft_index", &index, sizeof index, offsetof(graft_index, data), GRAFT_ERR_ARG, gather_by);
    try_input("graft_codec_args", &args, sizeof args, sizeof args - 8, GRAFT_OK, encode);
    try_output("graft_codec_error", sizeof(graft_codec_error), encode_counting);
}

static void test_sample_structs(void)
{
    graft_matrix *matrix = NULL;

    if (!ok(mxm->matrix_create(api->context, &ring, 0, &matrix, &error) == GRAFT_OK &&
                samples->create(api->context, matrix, NULL, 0, &sampler, &error) == GRAFT_OK,
            "a sampler of a graph"))
        return;
    try_output("graft_sample_batch", sizeof(graft_sample_batch), draw_batch);
    try_output("graft_sample_block", sizeof(graft_sample_block), read_block);
    samples->destroy(sampler);
    mxm->matrix_destroy(matrix);
}

/* The module does not exist, which is reported only after the struct was read. */
static void test_communicator(void)
{
    const graft_communicator none = GRAFT_INIT(graft_communicator);
    struct room              room;

    ok(open_transport_of(place_struct(&room, &none, sizeof none, sizeof none, 0)) == GRAFT_ERR_NOT_FOUND &&
           open_transport_of(place_struct(&room, &none, sizeof none, sizeof none - 8, 0)) == GRAFT_ERR_NOT_FOUND &&
           open_transport_of(place_struct(&room, &none, sizeof none, sizeof none + TAIL, 0)) == GRAFT_ERR_NOT_FOUND,
       "a graft_communicator of any size is read");
    ok(open_transport_of(place_struct(&room, &none, sizeof none, sizeof none + TAIL, MARK)) == GRAFT_ERR_UNSUPPORTED,
       "what a newer one asks for is refused");
}

static void test_halo_structs(void)
{
    const graft_dense     none = { sizeof none, GRAFT_F32, 0, WIDTH, WIDTH, result };
    const graft_halo_args pass = { .size = sizeof pass, .owned = &x, .halo = &none };

    if (!ok(halos->create(graph, &halo, &error) == GRAFT_OK, "a halo over one rank")) return;
    try_input("graft_halo_args", &pass, sizeof pass, offsetof(graft_halo_args, halo), GRAFT_ERR_ARG, pass_of_halo);
    try_output("graft_halo_info", sizeof(graft_halo_info), read_halo_info);
    halos->destroy(halo);
}

/* A mesh of N nodes on a line. */
static graft_field     line_x;
static graft_mesh_args line;

static void fill_line(void)
{
    static const double  x_of[N] = { 0, 1, 2, 3, 4, 5 };
    static const int32_t node[2 * N - 2] = { 0, 1, 1, 2, 2, 3, 3, 4, 4, 5 };

    line_x = (graft_field){ sizeof line_x, GRAFT_F64, N, 1, 0, 0, (void *)(uintptr_t)x_of };
    line = (graft_mesh_args){ .size = sizeof line, .kind = GRAFT_MESH_GHOSTS, .dim = 1, .n_rows = N };
    line.coordinates = &line_x;
    line.index_type = GRAFT_I32;
    line.n_cells = N - 1;
    line.cell_type = GRAFT_CELL_LINE;
    line.cell_nodes = node;
}

static int32_t create_mesh_of(const void *input)
{
    graft_mesh   *made = NULL;
    const int32_t rc = meshes->create(api->context, NULL, input, &made, &error);

    meshes->destroy(made);
    return rc;
}

static int32_t create_mesh_at(const void *input)
{
    graft_mesh_args args = line;

    args.coordinates = input;
    return create_mesh_of(&args);
}

static int32_t read_mesh_info(void *output)
{
    return meshes->info(mesh, 0, output, &error);
}

static int32_t read_mesh_view(void *output)
{
    return meshes->view(mesh, output, &error);
}

/* States of two columns on the nodes of the line, and an array for results. */
static double      line_in[N][2], line_out[N];
static graft_field line_state, line_target;

static int32_t create_network_of(const void *input)
{
    graft_network *made = NULL;
    const int32_t  rc = networks->create(mesh, input, &made, &error);

    networks->destroy(made);
    return rc;
}

static int32_t train_with_pair(const void *input)
{
    return networks->train(network, input, 1, NULL, &error);
}

static int32_t roll_out(const void *input)
{
    return networks->rollout(network, input, &error);
}

static int32_t read_network_info(void *output)
{
    return networks->info(network, output, &error);
}

/* Before any pass: all times are 0. */
static int32_t read_network_times(void *output)
{
    return networks->times(network, 0, GRAFT_PASS_FORWARD, output, &error);
}

static int32_t train_for_step(void *output)
{
    const graft_pair pair = { sizeof pair, 0, &line_state, &line_target };
    int64_t          done_before = 1; /* after this step the statistics stay unchanged */
    graft_state_item step = { .size = sizeof step, .dtype = GRAFT_I64, .name = "progress.step", .n_dims = 1 };

    step.shape[0] = 1;
    step.data = &done_before;
    return networks->state_set(network, &step, &error) < 0 ? error.code
                                                           : networks->train(network, &pair, 1, output, &error);
}

static int32_t offer_a_state(const void *input)
{
    return streams->offer(stream, input, &error);
}

static int32_t read_stream_status(void *output)
{
    return streams->status(stream, output, &error);
}

static void test_network_structs(void)
{
    const graft_network_args args = { .size = sizeof args, .predicts = GRAFT_PREDICTS_CHANGE, .n_in = 2, .n_out = 1 };
    const graft_pair         pair = { sizeof pair, 0, &line_state, &line_target };
    const graft_rollout rollout = { .size = sizeof rollout, .steps = 2, .initial = &line_state, .state = &line_state };
    const graft_sample_state state = { .size = sizeof state, .input = &line_state, .target = &line_target };

    line_state = (graft_field){ sizeof line_state, GRAFT_F64, N, 2, 0, 0, line_in };
    line_target = (graft_field){ sizeof line_target, GRAFT_F64, N, 1, 0, 0, line_out };
    api->set(api->context, "hidden", "4", &error);
    api->set(api->context, "layers", "1", &error);
    api->set(api->context, "lr", "0", &error); /* without learning, each step has the same results */
    api->set(api->context, "mgn.statistics", "train:1", &error);
    api->set(api->context, "profile", "yes", &error);
    try_input("graft_network_args", &args, sizeof args, offsetof(graft_network_args, constant), GRAFT_OK,
              create_network_of);
    if (!ok(networks->create(mesh, &args, &network, &error) == GRAFT_OK &&
                streams->create(network, &stream, &error) == GRAFT_OK,
            "a network and its stream"))
        return;
    api->set(api->context, "profile", "no", &error);
    try_output("graft_network_times", sizeof(graft_network_times), read_network_times);
    try_input("graft_pair", &pair, sizeof pair, offsetof(graft_pair, target), GRAFT_ERR_ARG, train_with_pair);
    try_input("graft_rollout", &rollout, sizeof rollout, offsetof(graft_rollout, state), GRAFT_ERR_ARG, roll_out);
    try_input("graft_sample_state", &state, sizeof state, offsetof(graft_sample_state, input), GRAFT_ERR_ARG,
              offer_a_state);
    try_output("graft_network_info", sizeof(graft_network_info), read_network_info);
    try_output("graft_network_step", sizeof(graft_network_step), train_for_step);
    try_output("graft_stream_status", sizeof(graft_stream_status), read_stream_status);
    streams->destroy(stream);
    networks->destroy(network);
}

static void test_mesh_structs(void)
{
    fill_line();
    try_input("graft_mesh_args", &line, sizeof line, offsetof(graft_mesh_args, n_edges), GRAFT_OK, create_mesh_of);
    try_input("graft_field", &line_x, sizeof line_x, offsetof(graft_field, data), GRAFT_ERR_ARG, create_mesh_at);
    if (!ok(meshes->create(api->context, NULL, &line, &mesh, &error) == GRAFT_OK, "a mesh of one rank")) return;
    try_output("graft_mesh_info", sizeof(graft_mesh_info), read_mesh_info);
    try_output("graft_mesh_view", sizeof(graft_mesh_view), read_mesh_view);
    test_network_structs();
    meshes->destroy(mesh);
}

static void test_rank_structs(void)
{
    const graft_slice          slice = { .size = sizeof slice, .n_vertices = N, .rows = &ring };
    const graft_redistribution moved = { sizeof moved,       GRAFT_TO_OWNERS, sizeof features[0], features,
                                         sizeof features[0], result,          sizeof result[0] };
    const graft_plan_args      shape = { .size = sizeof shape, .width = WIDTH };
    const graft_aggregate_args pass = { .size = sizeof pass, .semiring = GRAFT_PLUS_SECOND, .x = &x, .out = &out };

    try_input("graft_transport", &transport, sizeof transport, sizeof transport - 8, GRAFT_OK, create_graph_over);
    try_input("graft_slice", &slice, sizeof slice, sizeof slice - 8, GRAFT_OK, create_graph_of);
    if (!ok(graphs->create(api->context, &transport, &slice, &graph, &error) == GRAFT_OK &&
                aggregate->create(graph, NULL, &plan, &error) == GRAFT_OK,
            "a graph and a plan over one rank"))
        return;
    try_input("graft_redistribution", &moved, sizeof moved, offsetof(graft_redistribution, to_stride), GRAFT_ERR_ARG,
              redistribute_by);
    try_input("graft_plan_args", &shape, sizeof shape, sizeof shape - 8, GRAFT_OK, create_plan_of);
    try_input("graft_aggregate_args", &pass, sizeof pass, sizeof pass - 8, GRAFT_OK, pass_of);
    try_output("graft_graph_info", sizeof(graft_graph_info), read_graph_info);
    try_output("graft_plan_info", sizeof(graft_plan_info), read_plan_info);
}

static void test_reports(void)
{
    const graft_dataset    data = { .size = sizeof data,
                                    .n_vertices = N,
                                    .n_features = WIDTH,
                                    .n_classes = CLASSES,
                                    .features = &x,
                                    .labels = labels,
                                    .split = split,
                                    .over = graph };
    const int64_t          first = 0;
    const graft_prediction list = { .size = sizeof list, .dataset = &data, .vertices = &first, .n = 1 };
    graft_epoch            epoch = GRAFT_INIT(graft_epoch);

    api->set(api->context, "profile", "yes", &error);
    api->set(api->context, "layers", "3", &error);
    api->set(api->context, "batch_size", "1", &error); /* with batches, a trainer over ranks has caches */
    if (!ok(train->create(api->context, &data, &trainer, &error) == GRAFT_OK &&
                train->epoch(trainer, &epoch, &error) == GRAFT_OK,
            "a trainer over one rank")) {
        diag("%s", error.message);
        return;
    }
    try_output("graft_span", sizeof(graft_span), read_span);
    try_output("graft_memory_item", sizeof(graft_memory_item), read_memory_item);
    try_output("graft_traffic", sizeof(graft_traffic), read_traffic);
    try_output("graft_traffic_item", sizeof(graft_traffic_item), read_traffic_item);
    try_output("graft_traffic_pair", sizeof(graft_traffic_pair), read_traffic_pair);
    try_output("graft_cache_item", sizeof(graft_cache_item), read_cache_item);
    if (!ok(models->create(trainer, GRAFT_MODEL_LAST, &model, &error) == GRAFT_OK, "a model of it")) return;
    try_output("graft_model_info", sizeof(graft_model_info), read_model_info);
    try_input("graft_prediction", &list, sizeof list, offsetof(graft_prediction, probabilities), GRAFT_OK, predict_by);
    models->destroy(model);
}

int main(void)
{
    error = GRAFT_INIT(graft_error);
    transport = GRAFT_INIT(graft_transport);
    fill();
    if (!ok(graft_load(getenv("GRAFT_LIBRARY"), NULL, &api, &error) == GRAFT_OK, "the library opens")) return done();
    mxm = graft_interface(api, GRAFT_MXM_ID, sizeof *mxm);
    edge = graft_interface(api, GRAFT_EDGE_ID, sizeof *edge);
    codec = graft_interface(api, GRAFT_CODEC_ID, sizeof *codec);
    graphs = graft_interface(api, GRAFT_GRAPH_ID, sizeof *graphs);
    aggregate = graft_interface(api, GRAFT_AGGREGATE_ID, sizeof *aggregate);
    train = graft_interface(api, GRAFT_TRAIN_ID, sizeof *train);
    report = graft_interface(api, GRAFT_REPORT_ID, sizeof *report);
    transports = graft_interface(api, GRAFT_TRANSPORT_ID, sizeof *transports);
    halos = graft_interface(api, GRAFT_HALO_ID, sizeof *halos);
    models = graft_interface(api, GRAFT_MODEL_ID, sizeof *models);
    samples = graft_interface(api, GRAFT_SAMPLE_ID, sizeof *samples);
    meshes = graft_interface(api, GRAFT_MESH_ID, sizeof *meshes);
    networks = graft_interface(api, GRAFT_NETWORK_ID, sizeof *networks);
    streams = graft_interface(api, GRAFT_STREAM_ID, sizeof *streams);
    if (!ok(mxm && edge && codec && graphs && aggregate && train && transports && halos && models && samples && meshes,
            "and has its tables"))
        return done();
    ok(transports->threads(api->context, 1, &transport, &error) == GRAFT_OK, "one rank");
    test_local_structs();
    test_mesh_structs();
    test_sample_structs();
    test_communicator();
    test_rank_structs();
    test_halo_structs();
    test_reports();
    train->destroy(trainer);
    aggregate->destroy(plan);
    graphs->destroy(graph);
    transport.close(transport.self);
    api->close(api->context);
    return done();
}
