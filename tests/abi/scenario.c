/* Small jobs that use the library as hosts do, see scenario.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "scenario.h"

enum { VERTICES = 14, FEATURES = 5, CLASSES = 3, ROWS = 12, INNER = 9, WIDTH = 5, HEADS = 2, ENTRIES = 256 };

#define TRY(expression)                                                                                                \
    do {                                                                                                               \
        rc = (expression);                                                                                             \
        if (rc < 0) goto done;                                                                                         \
    } while (0)

static const char market_text[] = "%%MatrixMarket matrix coordinate real general\n% weights that have no comma\n"
                                  "4 4 4\n1 2 0.5\n2 1 0.25\n3 1 1e-1\n4 4 2\n";

void scene_init(struct scene *scene)
{
    struct sample sample = { 2024 };
    const char   *modules = getenv("GRAFT_TEST_MODULES");
    char          target[PATH_MAX];

    for (int set = 0; set < SCENE_SETS; set++) {
        sample_dataset_init(&scene->set[set], &sample, VERTICES, FEATURES, CLASSES, set == SCENE_TARGETS,
                            set == SCENE_SPARSE);
    }
    sample_csr_init(&scene->a, &sample, ROWS, INNER, GRAFT_I32, GRAFT_F32, 1);
    folder_create(&scene->dense);
    folder_create(&scene->sparse);
    folder_create(&scene->market);
    folder_create(&scene->modules);
    write_sample(&scene->dense, 0);
    write_sample(&scene->sparse, 1);
    write_file(&scene->market, "graph.mtx", market_text, sizeof market_text - 1);
    if (modules == NULL) return;
    snprintf(target, sizeof target, "%.3000s/graft_kernel_good.so", modules);
    files_check(symlink(target, folder_path(&scene->modules, "graft_kernel_good.so")) == 0, target);
}

void scene_fini(struct scene *scene)
{
    for (int set = 0; set < SCENE_SETS; set++) sample_dataset_fini(&scene->set[set]);
    sample_csr_fini(&scene->a);
    folder_destroy(&scene->dense);
    folder_destroy(&scene->sparse);
    folder_destroy(&scene->market);
    folder_destroy(&scene->modules);
}

/* The name of usable kernel number `index`. The result is 0 if there are fewer. */
static int kernel_name(struct subject *s, int index, char name[64])
{
    graft_module_entry entry = GRAFT_INIT(graft_module_entry);

    for (int32_t i = 0; s->api.module_info(s->context, i, &entry, NULL) == GRAFT_OK; i++) {
        if (strcmp(entry.kind, "kernel") != 0 || entry.state < 0 || index-- > 0) continue;
        snprintf(name, 64, "%s", entry.name);
        return 1;
    }
    return 0;
}

/* Count the modules that are listed without a path, which are built in. */
static int count_built_in(struct subject *s)
{
    graft_module_entry entry = GRAFT_INIT(graft_module_entry);
    int                count = 0;

    for (int32_t i = 0; s->api.module_info(s->context, i, &entry, NULL) == GRAFT_OK; i++)
        count += entry.path[0] == '\0';
    return count;
}

static int32_t play_context(const struct scenario *scenario, struct scene *scene, struct subject *s, graft_error *error)
{
    graft_option       option = GRAFT_INIT(graft_option);
    graft_module_entry entry = GRAFT_INIT(graft_module_entry);
    char               path[PATH_MAX + 256];
    const int          built_in = count_built_in(s);
    int32_t            rc;

    (void)scenario;
    if (s->api.get_interface(s->context, "graft.nothing/1") != NULL) watch_blame("an interface that there is not");
    TRY(s->api.option_info(s->context, 0, &option, error));
    TRY(s->api.set(s->context, "hidden", "32,16", error));
    TRY(s->api.set(s->context, "lr", "0.25", error));
    TRY(s->api.module_info(s->context, 0, &entry, error));
    TRY(s->api.set(s->context, "module.path", scene->modules.path, error));
    if (count_built_in(s) != built_in) watch_blame("a module was found that has no path");
    if (getenv("GRAFT_TEST_MODULES") == NULL) goto done;
    snprintf(path, sizeof path, "%s", folder_path(&scene->modules, "graft_kernel_good.so"));
    TRY(s->api.load_module(s->context, path, error));
done:
    return rc;
}

/* The operands of a product of scene->a. */
struct operands {
    float          b[INNER][WIDTH], c[ROWS][WIDTH], scale[ROWS], bias[WIDTH];
    uint16_t       half[INNER][WIDTH];
    int32_t        winner[ROWS][WIDTH];
    uint8_t        present[ROWS][WIDTH], bits[ROWS];
    graft_dense    dense_b, dense_c, dense_half;
    graft_mask     mask;
    graft_epilogue epilogue;
    graft_mxm_args args;
};

static void operands_init(struct operands *o, graft_matrix *matrix)
{
    *o = (struct operands){ .mask = GRAFT_INIT(graft_mask), .epilogue = GRAFT_INIT(graft_epilogue) };
    for (int i = 0; i < INNER * WIDTH; i++) o->b[i / WIDTH][i % WIDTH] = (float)(i % 7) / 4;
    for (int i = 0; i < ROWS * WIDTH; i++) o->present[i / WIDTH][i % WIDTH] = i % 3 == 0;
    o->dense_b = (graft_dense){ sizeof o->dense_b, GRAFT_F32, INNER, WIDTH, WIDTH, o->b };
    o->dense_c = (graft_dense){ sizeof o->dense_c, GRAFT_F32, ROWS, WIDTH, WIDTH, o->c };
    o->dense_half = (graft_dense){ sizeof o->dense_half, GRAFT_BF16, INNER, WIDTH, WIDTH, o->half };
    o->mask.kind = GRAFT_MASK_BYTES;
    o->mask.stride = WIDTH;
    o->mask.present = &o->present[0][0];
    o->epilogue.flags = GRAFT_EPILOGUE_RELU;
    o->epilogue.bias = o->bias;
    o->epilogue.residual = &o->dense_c;
    o->epilogue.dropout = 0.25;
    o->epilogue.bits = o->bits;
    o->epilogue.bits_stride = 1;
    o->args = GRAFT_INIT(graft_mxm_args);
    o->args.semiring = GRAFT_PLUS_TIMES;
    o->args.a = matrix;
    o->args.b = &o->dense_b;
    o->args.c = &o->dense_c;
}

static void scenario_count_rows(void *arg, int32_t thread, int64_t begin, int64_t end)
{
    (void)thread;
    *(_Atomic int64_t *)arg += end - begin;
}

/* Make products with one matrix: a plain one; one that is masked, scaled and accumulated; a maximum with winners; one
 * in bfloat16 with an epilogue. */
static int32_t run_products(struct subject *s, graft_matrix *matrix, graft_error *error)
{
    struct operands o;
    char            text[512];
    _Atomic int64_t rows = 0;
    int32_t         rc;

    operands_init(&o, matrix);
    TRY(s->mxm->explain(s->context, &o.args, text, sizeof text, error));
    TRY(s->mxm->run(s->context, &o.args, error));
    o.args.mask = &o.mask;
    o.args.row_scale = o.scale;
    o.args.flags = GRAFT_MXM_ACCUMULATE;
    TRY(s->mxm->run(s->context, &o.args, error));
    o.args.semiring = GRAFT_MAX_TIMES;
    o.args.flags = GRAFT_MXM_REPLACE;
    o.args.winner = o.winner;
    o.args.winner_stride = WIDTH;
    o.args.rows_done = scenario_count_rows;
    o.args.rows_arg = &rows;
    TRY(s->mxm->run(s->context, &o.args, error));
    if (rows != ROWS) watch_blame("rows_done receives %lld rows, not %d", (long long)rows, ROWS);
    TRY(s->mxm->convert(s->context, &o.dense_b, &o.dense_half, error));
    operands_init(&o, matrix);
    o.args.b = &o.dense_half;
    o.args.epilogue = &o.epilogue;
    TRY(s->mxm->run(s->context, &o.args, error));
    TRY(s->mxm->explain(s->context, NULL, text, sizeof text, error));
done:
    return rc;
}

static int32_t products_by(struct scene *scene, struct subject *s, const char *kernel, graft_error *error)
{
    graft_matrix *matrix = NULL;
    int32_t       rc;

    TRY(s->api.set(s->context, "mxm.kernel", kernel, error));
    TRY(s->mxm->matrix_create(s->context, &scene->a.csr, 0, &matrix, error));
    TRY(run_products(s, matrix, error));
    if (s->mxm->matrix_bytes(matrix) < 0) watch_blame("a matrix has less than no bytes");
done:
    s->mxm->matrix_destroy(matrix);
    return rc;
}

static int32_t play_products(const struct scenario *scenario, struct scene *scene, struct subject *s,
                             graft_error *error)
{
    graft_matrix *matrix = NULL, *transpose = NULL;
    char          kernel[64];
    int32_t       rc;

    (void)scenario;
    TRY(s->api.set(s->context, "module.path", scene->modules.path, error));
    TRY(s->mxm->matrix_create(s->context, &scene->a.csr, 0, &matrix, error));
    TRY(s->mxm->matrix_transpose(s->context, matrix, &transpose, error));
    for (int i = 0; kernel_name(s, i, kernel); i++) TRY(products_by(scene, s, kernel, error));
done:
    s->mxm->matrix_destroy(transpose);
    s->mxm->matrix_destroy(matrix);
    return rc;
}

static int32_t play_orders(const struct scenario *scenario, struct scene *scene, struct subject *s, graft_error *error)
{
    static const char *const methods[] = { "degree", "rcm", "community" };
    graft_matrix            *matrix = NULL, *permuted = NULL;
    int64_t                  order[VERTICES];
    int32_t                  rc;

    TRY(s->mxm->matrix_create(s->context, scene->set[scenario->set].dataset.graph, 0, &matrix, error));
    for (int i = 0; i < 3; i++) {
        TRY(s->mxm->matrix_order(s->context, matrix, methods[i], order, error));
        TRY(s->mxm->matrix_permute(s->context, matrix, order, &permuted, error));
        s->mxm->matrix_destroy(permuted);
        permuted = NULL;
    }
done:
    s->mxm->matrix_destroy(matrix);
    return rc;
}

/* Compute attention over the entries of scene->a, forward and backward, and gather rows by index. */
static int32_t use_edges(struct scene *scene, struct subject *s, graft_matrix *matrix, graft_error *error)
{
    static float         x[ROWS][2 * HEADS], y[INNER][2 * HEADS], scores[ENTRIES][HEADS], weights[ENTRIES][HEADS];
    static const int32_t rows[4] = { 3, 0, 3, 8 };
    const int64_t        entries = scene->a.csr.row_ptr[ROWS];
    const graft_dense    dense_x = { sizeof dense_x, GRAFT_F32, ROWS, 2 * HEADS, 2 * HEADS, x };
    const graft_dense    dense_y = { sizeof dense_y, GRAFT_F32, INNER, 2 * HEADS, 2 * HEADS, y };
    const graft_dense    dense_s = { sizeof dense_s, GRAFT_F32, entries, HEADS, HEADS, scores };
    const graft_dense    dense_w = { sizeof dense_w, GRAFT_F32, entries, HEADS, HEADS, weights };
    const graft_dense    four = { sizeof four, GRAFT_F32, 4, 2 * HEADS, 2 * HEADS, scores };
    graft_index          index = GRAFT_INIT(graft_index);
    graft_matrix        *sorted = NULL;
    int32_t              rc;

    index.index_type = GRAFT_I32;
    index.count = 4;
    index.data = rows;
    TRY(s->edge->sddmm(s->context, matrix, &dense_x, &dense_y, &dense_s, 0, error));
    TRY(s->edge->softmax(s->context, matrix, &dense_s, &dense_w, 0, error));
    TRY(s->edge->mxm(s->context, matrix, 0, &dense_w, &dense_y, &dense_x, 0, error));
    TRY(s->edge->mxm(s->context, matrix, GRAFT_EDGE_TRANSPOSE, &dense_w, &dense_x, &dense_y, 0, error));
    TRY(s->edge->softmax_backward(s->context, matrix, &dense_w, &dense_s, &dense_s, 0, error));
    TRY(s->edge->gather_rows(s->context, &dense_x, &index, &four, 0, error));
    TRY(s->edge->index_add(s->context, &four, &index, &dense_x, 0, error));
    TRY(s->edge->index_matrix(s->context, &index, dense_x.n_rows, &sorted, error));
done:
    s->mxm->matrix_destroy(sorted);
    return rc;
}

static int32_t play_edges(const struct scenario *scenario, struct scene *scene, struct subject *s, graft_error *error)
{
    graft_matrix *matrix = NULL;
    int32_t       rc;

    (void)scenario;
    TRY(s->mxm->matrix_create(s->context, &scene->a.csr, 0, &matrix, error));
    rc = use_edges(scene, s, matrix, error);
done:
    s->mxm->matrix_destroy(matrix);
    return rc;
}

/* Encode rows as messages, and decode them. */
static int32_t play_codec(const struct scenario *scenario, struct scene *scene, struct subject *s, graft_error *error)
{
    static float      x[ROWS][WIDTH];
    unsigned char     message[ROWS * (WIDTH + 4)];
    const graft_dense rows = { sizeof rows, GRAFT_F32, ROWS, WIDTH, WIDTH, x };
    graft_codec_error lost = GRAFT_INIT(graft_codec_error);
    graft_codec_args  args = GRAFT_INIT(graft_codec_args);
    int64_t           row_bytes = 0;
    int32_t           rc;

    (void)scenario;
    (void)scene;
    for (int i = 0; i < ROWS; i++) x[i][i % WIDTH] = (float)i;
    args.bits = 4;
    args.code = GRAFT_CODEC_MINMAX;
    args.rounding = GRAFT_ROUND_STOCHASTIC;
    args.rows = &rows;
    args.message = message;
    args.message_bytes = sizeof message;
    args.error = &lost;
    TRY(s->codec->row_bytes(s->context, args.bits, WIDTH, GRAFT_F32, &row_bytes, error));
    if (row_bytes != (WIDTH + 1) / 2 + 4) watch_blame("a row of 4 bits has %lld bytes", (long long)row_bytes);
    TRY(s->codec->encode(s->context, &args, error));
    TRY(s->codec->decode(s->context, &args, error));
    if (lost.rows != ROWS) watch_blame("the error is that of %lld rows", (long long)lost.rows);
done:
    return rc;
}

static int32_t scenario_open_and_close(struct subject *s, const char *path, int slice, float weight, graft_error *error)
{
    graft_data          *data = NULL;
    const graft_dataset *set;
    int32_t              rc;

    if (slice) TRY(s->data->open_slice(s->context, NULL, path, &data, error));
    else TRY(s->data->open(s->context, path, &data, error));
    set = s->data->view(data);
    if (set == NULL || set->n_vertices != 4) watch_blame("%s: it does not hold what it should", path);
    else if (weight > 0 && *(const float *)set->graph->values != weight) watch_blame("%s: another weight", path);
done:
    s->data->close(data);
    return rc;
}

static int32_t play_data(const struct scenario *scenario, struct scene *scene, struct subject *s, graft_error *error)
{
    char    file[PATH_MAX + 256];
    int32_t rc;

    (void)scenario;
    snprintf(file, sizeof file, "%s", folder_path(&scene->market, "graph.mtx"));
    TRY(scenario_open_and_close(s, scene->dense.path, 0, 0, error));
    TRY(scenario_open_and_close(s, scene->sparse.path, 1, 0, error));
    TRY(scenario_open_and_close(s, scene->market.path, 0, 0.5f, error));
    TRY(scenario_open_and_close(s, file, 1, 0.5f, error));
done:
    return rc;
}

/* Make each call of a trainer once. */
static int32_t use_trainer(struct scene *scene, struct subject *s, graft_trainer *trainer, graft_error *error)
{
    static float      values[VERTICES][CLASSES];
    int32_t           labels[VERTICES];
    const graft_dense logits = { sizeof logits, GRAFT_F32, VERTICES, CLASSES, CLASSES, values };
    graft_epoch       epoch = GRAFT_INIT(graft_epoch);
    graft_metrics     metrics = GRAFT_INIT(graft_metrics);
    graft_state_item  item = GRAFT_INIT(graft_state_item);
    graft_span        span = GRAFT_INIT(graft_span);
    graft_memory_item use = GRAFT_INIT(graft_memory_item);
    char              text[1024];
    int32_t           rc;

    TRY(s->train->epoch(trainer, &epoch, error));
    TRY(s->train->epoch(trainer, &epoch, error));
    rc = s->report->span(trainer, 0, &span, error);
    if (rc < 0 && rc != GRAFT_ERR_STATE) goto done; /* without option profile there are no spans to read */
    scene->loss = epoch.loss;
    TRY(s->train->evaluate(trainer, GRAFT_WEIGHTS_BEST, &metrics, error));
    TRY(s->train->predict(trainer, GRAFT_WEIGHTS_LAST, labels, &logits, error));
    TRY(s->train->state_item(trainer, 0, &item, error));
    TRY(s->train->state_set(trainer, &item, error));
    TRY(s->train->explain(trainer, text, sizeof text, error));
    TRY(s->report->memory_item(trainer, 0, &use, error));
done:
    return rc;
}

static int32_t play_training(const struct scenario *scenario, struct scene *scene, struct subject *s,
                             graft_error *error)
{
    graft_trainer *trainer = NULL;
    int32_t        rc;

    TRY(s->train->create(s->context, &scene->set[scenario->set].dataset, &trainer, error));
    TRY(use_trainer(scene, s, trainer, error));
    rc = scenario_use_model(s, trainer, &scene->set[scenario->set].dataset, error);
done:
    s->train->destroy(trainer);
    return rc;
}

/* Make each call of a graph with one rank, which needs no transport. */
static int32_t use_graph(struct subject *s, graft_graph *graph, graft_plan **plan, graft_error *error)
{
    static float               x[VERTICES][WIDTH], out[VERTICES][WIDTH];
    const graft_dense          dense_x = { sizeof dense_x, GRAFT_F32, VERTICES, WIDTH, WIDTH, x };
    const graft_dense          dense_out = { sizeof dense_out, GRAFT_F32, VERTICES, WIDTH, WIDTH, out };
    const graft_redistribution rows = { sizeof rows, GRAFT_TO_OWNERS, sizeof x[0], out, sizeof x[0], x, sizeof x[0] };
    graft_plan_args            wish = GRAFT_INIT(graft_plan_args);
    graft_aggregate_args       args = GRAFT_INIT(graft_aggregate_args);
    graft_graph_info           of_graph = GRAFT_INIT(graft_graph_info);
    graft_plan_info            of_plan = GRAFT_INIT(graft_plan_info);
    char                       text[1024];
    int32_t                    rc;

    wish.flags = GRAFT_PLAN_TRANSPOSED;
    wish.width = WIDTH;
    args.semiring = GRAFT_PLUS_TIMES;
    args.x = &dense_x;
    args.out = &dense_out;
    TRY(s->graph->info(graph, 0, &of_graph, error));
    TRY(s->graph->explain(graph, text, sizeof text, error));
    TRY(s->graph->redistribute(graph, &rows, error));
    if (s->graph->owned(graph)[VERTICES - 1] != VERTICES - 1) watch_blame("one rank does not own the last vertex");
    TRY(s->aggregate->create(graph, &wish, plan, error));
    TRY(s->aggregate->begin(*plan, &args, error));
    TRY(s->aggregate->end(*plan, error));
    args.flags = GRAFT_AGGREGATE_TRANSPOSE;
    TRY(s->aggregate->begin(*plan, &args, error));
    TRY(s->aggregate->end(*plan, error));
    TRY(s->aggregate->assign_bits(*plan, error));
    TRY(s->aggregate->begin(*plan, &args, error));
    TRY(s->aggregate->end(*plan, error));
    TRY(s->aggregate->info(*plan, -1, &of_plan, error));
    TRY(s->aggregate->explain(*plan, text, sizeof text, error));
done:
    return rc;
}

static int32_t play_graph(const struct scenario *scenario, struct scene *scene, struct subject *s, graft_error *error)
{
    graft_slice  slice = GRAFT_INIT(graft_slice);
    graft_graph *graph = NULL;
    graft_plan  *plan = NULL;
    int32_t      rc;

    slice.n_vertices = VERTICES;
    slice.rows = scene->set[scenario->set].dataset.graph;
    TRY(s->graph->create(s->context, NULL, &slice, &graph, error));
    rc = use_graph(s, graph, &plan, error);
done:
    s->graph->destroy(graph); /* the plan keeps the graph alive */
    s->aggregate->destroy(plan);
    return rc;
}

/* Train over the ranks of a graph, which has one rank. */
static int32_t play_over_ranks(const struct scenario *scenario, struct scene *scene, struct subject *s,
                               graft_error *error)
{
    graft_dataset  set = scene->set[scenario->set].dataset;
    graft_slice    slice = GRAFT_INIT(graft_slice);
    graft_traffic  traffic = GRAFT_INIT(graft_traffic);
    graft_trainer *trainer = NULL;
    int32_t        rc;

    graft_traffic_item item = GRAFT_INIT(graft_traffic_item);
    graft_traffic_pair pair = GRAFT_INIT(graft_traffic_pair);

    slice.n_vertices = VERTICES;
    slice.rows = set.graph;
    TRY(s->graph->create(s->context, NULL, &slice, &set.over, error));
    TRY(s->train->create(s->context, &set, &trainer, error));
    TRY(use_trainer(scene, s, trainer, error));
    TRY(s->report->traffic(trainer, -1, &traffic, error));
    TRY(s->report->traffic_item(trainer, 0, 0, &item, error));
    TRY(s->report->traffic_pair(trainer, 0, 0, &pair, error));
    if (pair.bytes != 0) watch_blame("one rank sends itself %lld bytes", (long long)pair.bytes);
    if (item.bytes != 0) watch_blame("one rank receives %lld bytes", (long long)item.bytes);
    if (traffic.halo_rows != 0) watch_blame("one rank has a halo of %lld rows", (long long)traffic.halo_rows);
done:
    s->graph->destroy(set.over); /* the trainer keeps the graph alive */
    s->train->destroy(trainer);
    return rc;
}

const struct scenario scenarios[] = {
    { .name = "options and modules", .play = play_context },
    { .name = "products", .play = play_products, .settings = { { "threads", "2" } } },
    { .name = "products, verified", .play = play_products, .settings = { { "threads", "1" }, { "mxm.verify", "3" } } },
    { .name = "orders", .play = play_orders },
    { .name = "edges", .play = play_edges, .settings = { { "threads", "2" } } },
    { .name = "quantized messages", .play = play_codec, .settings = { { "threads", "2" } } },
    { .name = "data sets", .play = play_data },
    { .name = "ranks as threads", .play = scenario_transport },
    { .name = "batches, some of them made ahead",
      .play = scenario_sample_batches,
      .settings = { { "layers", "2" }, { "fanout", "3,2" }, { "batch_size", "2" }, { "threads", "2" } } },
    { .name = "batches drawn in proportion to degrees",
      .play = scenario_sample_batches,
      .settings = { { "layers", "3" },
                    { "fanout", "3" },
                    { "sample.weights", "degree" },
                    { "sampler", "neighbour:replace" },
                    { "sample.ahead", "1" },
                    { "threads", "1" } } },
    { .name = "a graph over one rank",
      .play = play_graph,
      .settings = { { "threads", "2" },
                    { "partition", "hash" },
                    { "halo.cover", "pre" },
                    { "halo.codec", "adaptive" } } },
    { .name = "sage", .play = play_training, .settings = { { "hidden", "6" }, { "threads", "2" } } },
    { .name = "sage by batches",
      .play = play_training,
      .settings = { { "hidden", "6" }, { "batch_size", "3" }, { "fanout", "2" }, { "threads", "2" } } },
    { .name = "gcn over one rank, sparse features",
      .play = play_over_ranks,
      .set = SCENE_SPARSE,
      .settings = { { "model", "gcn" }, { "sparse_input", "yes" }, { "partition", "block" }, { "profile", "yes" } } },
    { .name = "gat over one rank, several classes at once",
      .play = play_over_ranks,
      .set = SCENE_TARGETS,
      .settings = { { "model", "gat" }, { "heads", "2" }, { "hidden", "6" }, { "edge_features", "array" } } },
    { .name = "sage over one rank, labels as input",
      .play = play_over_ranks,
      .settings = { { "label_rate", "0.5" },
                    { "hidden", "6" },
                    { "profile", "yes" },
                    { "halo.codec", "f32/adaptive" },
                    { "halo.budget", "balance:0.5:1" } } },
    { .name = "gin, several classes at once as input",
      .play = play_training,
      .set = SCENE_TARGETS,
      .settings = { { "model", "gin" }, { "label_rate", "0.5" }, { "hidden", "6" }, { "reuse_input", "no" } } },
    { .name = "sage, sparse features, input dropout",
      .play = play_training,
      .set = SCENE_SPARSE,
      .settings = { { "hidden", "6" },
                    { "input_dropout", "0.5" },
                    { "normalize_features", "yes" },
                    { "sparse_input", "yes" } } },
    { .name = "gin, sparse features made dense, input dropout",
      .play = play_training,
      .set = SCENE_SPARSE,
      .settings = { { "model", "gin" }, { "hidden", "6" }, { "input_dropout", "0.5" }, { "sparse_input", "no" } } },
    { .name = "gcn, symmetrised, features normalised",
      .play = play_training,
      .settings = { { "model", "gcn" },
                    { "hidden", "4" },
                    { "symmetrize", "yes" },
                    { "normalize_features", "yes" },
                    { "recompute", "yes" } } },
    { .name = "gcn, sparse features, no norm, decay of the first layer",
      .play = play_training,
      .set = SCENE_SPARSE,
      .settings = { { "model", "gcn" },
                    { "norm", "none" },
                    { "weight_decay", "0.1" },
                    { "weight_decay", "0.0005:first" } } },
    { .name = "gat with an array of edge features",
      .play = play_training,
      .settings = { { "model", "gat" }, { "hidden", "4" }, { "edge_features", "array" }, { "symmetrize", "yes" } } },
    { .name = "gin, several classes at once, input dropout",
      .play = play_training,
      .set = SCENE_TARGETS,
      .settings = { { "model", "gin" },
                    { "input_dropout", "0.5" },
                    { "self_loops", "yes" },
                    { "hidden", "5" },
                    { "order", "rcm" },
                    { "profile", "yes" } } },
    { .name = "gat",
      .play = play_training,
      .settings = { { "model", "gat" }, { "heads", "2" }, { "hidden", "6" }, { "input_dropout", "0.1" } } },
    { .name = "mlp by sgd",
      .play = play_training,
      .settings = { { "model", "mlp" }, { "optimizer", "sgd:0.9" }, { "input_dropout", "0.1" } } },
    { .name = "sage by the plain loops",
      .play = play_training,
      .settings = { { "mxm.kernel", "reference" },
                    { "dense.module", "reference" },
                    { "threads", "1" },
                    { "layers", "2" } } },
};
const int n_scenarios = (int)(sizeof scenarios / sizeof *scenarios);

int32_t scenario_play(const struct scenario *scenario, struct scene *scene, graft_error *error)
{
    struct subject subject;
    int32_t        rc = subject_open(&subject, error);

    if (rc < 0) return rc;
    for (int i = 0; i < 6 && scenario->settings[i][0] != NULL && rc == GRAFT_OK; i++) {
        rc = subject.api.set(subject.context, scenario->settings[i][0], scenario->settings[i][1], error);
    }
    if (rc == GRAFT_OK) rc = scenario->play(scenario, scene, &subject, error);
    subject_close(&subject);
    return rc;
}
