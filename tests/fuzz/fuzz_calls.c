/* Makes sequences of calls of the public interfaces, which the bytes of an input choose. Handles may be right,
 * destroyed, of another type or context, NULL or arbitrary. Structs may have any size. Numbers and options may be
 * wrong, contexts may be closed, and allocations may fail. No call may crash, each failure must have a message, and all
 * memory must be freed.
 * SPDX-License-Identifier: Apache-2.0 */
#include "sequence.h"

#include "graft_codec.h"

static struct sample_dataset sample_set;
static struct data_folder    folder;

void target_begin(void)
{
    struct sample sample = { 5 };

    misuse_init();
    sample_dataset_init(&sample_set, &sample, N, WIDTH, 3, 0, 0);
    folder_create(&folder);
    write_sample(&folder, 0);
}

void target_end(void)
{
    folder_destroy(&folder);
    sample_dataset_fini(&sample_set);
    misuse_fini();
}

/* -- objects ------------------------------------------------------------------------------------------------------ */

static int32_t sequence_make_matrix(struct supply *s, struct misuse *m, int of)
{
    graft_csr     csr = *misuse_graph();
    graft_matrix *made = NULL;
    const uint8_t how = supply_byte(s);
    int32_t       rc;

    if (how % 16 == 1) csr.index_type = (int32_t)odd_number(s);
    if (csr.index_type == GRAFT_I64) csr.index_type = GRAFT_I32; /* the type must fit the arrays */
    if (how % 16 == 2) csr.n_cols = odd_number(s);
    if (how % 16 == 3) csr.row_ptr = NULL;
    if (how % 16 == 4) csr.col_idx = NULL;
    if (how % 16 == 5) csr.n_rows = -1;
    if (how % 16 == 6) rc = m->mxm->matrix_transpose(pick(s, CONTEXT, of), pick(s, MATRIX, of), &made, &m->error);
    else if (how % 16 == 7) rc = m->mxm->matrix_create(pick(s, CONTEXT, of), NULL, 0, &made, &m->error);
    else if (how % 16 == 8) rc = m->mxm->matrix_create(pick(s, CONTEXT, of), &csr, 0, NULL, &m->error);
    else rc = m->mxm->matrix_create(pick(s, CONTEXT, of), resized(s, &csr, sizeof csr), 0, &made, &m->error);
    add_handle(made, MATRIX, of);
    return rc;
}

static graft_dataset any_dataset(struct supply *s, int of)
{
    graft_dataset data = sample_set.dataset;

    switch (supply_byte(s) % 16) {
    case 1: data.n_vertices = odd_number(s); break;
    case 2: data.n_classes = supply_byte(s) % 4; break;
    case 3: data.labels = NULL; break;
    case 4: data.split = NULL; break;
    case 5: data.features = NULL; break;
    case 6: data.graph = NULL; break;
    case 7: data.over = pick(s, GRAPH, of); break;
    case 8: data.flags = (uint32_t)odd_number(s); break;
    case 9: data.over = pick(s, GRAPH, of), data.n_slice = N; break;
    default: break;
    }
    if (data.n_vertices > N) data.n_vertices = N - 1;
    return data;
}

static int32_t sequence_make_trainer(struct supply *s, struct misuse *m, int of)
{
    const graft_dataset data = any_dataset(s, of);
    graft_trainer      *made = NULL;
    const int32_t       rc = m->train->create(pick(s, CONTEXT, of), resized(s, &data, sizeof data),
                                        supply_byte(s) == 7 ? NULL : &made, &m->error);

    add_handle(made, TRAINER, of);
    return rc;
}

static int32_t sequence_make_graph(struct supply *s, struct misuse *m, int of)
{
    static const int32_t owner[N];
    graft_slice          slice = GRAFT_INIT(graft_slice);
    graft_graph         *made = NULL;
    const uint8_t        how = supply_byte(s);
    int32_t              rc;

    slice.n_vertices = how % 16 == 1 ? odd_number(s) : N;
    slice.first_row = how % 16 == 2 ? odd_number(s) : 0;
    slice.rows = how % 16 == 3 ? NULL : misuse_graph();
    slice.owner = how % 16 == 4 ? owner : NULL;
    rc = m->graphs->create(pick(s, CONTEXT, of), NULL, resized(s, &slice, sizeof slice), &made, &m->error);
    add_handle(made, GRAPH, of);
    return rc;
}

static int32_t sequence_make_plan(struct supply *s, struct misuse *m, int of)
{
    graft_plan_args args = GRAFT_INIT(graft_plan_args);
    graft_plan     *made = NULL;
    const uint8_t   how = supply_byte(s);
    int32_t         rc;

    args.flags = how % 8 == 1 ? (uint32_t)odd_number(s) : how & 1;
    args.width = how % 8 == 2 ? odd_number(s) : 0;
    if (args.width > 1000) args.width = 1000;
    args.dtype = how % 8 == 3 ? (int32_t)odd_number(s) : 0;
    args.layers = how % 8 == 4 ? (int32_t)(odd_number(s) % 100) : 0;
    rc = m->aggregate->create(pick(s, GRAPH, of), how & 64 ? NULL : resized(s, &args, sizeof args), &made, &m->error);
    add_handle(made, PLAN, of);
    return rc;
}

static int32_t sequence_make_halo(struct supply *s, struct misuse *m, int of)
{
    graft_halo   *made = NULL;
    const int32_t rc = m->halos->create(pick(s, GRAPH, of), &made, &m->error);

    add_handle(made, HALO, of);
    return rc;
}

static int32_t sequence_make_model(struct supply *s, struct misuse *m, int of)
{
    graft_model  *made = NULL;
    const uint8_t how = supply_byte(s);
    int32_t       rc;

    if (how < 200) rc = m->models->create(pick(s, TRAINER, of), how % 4, &made, &m->error);
    else rc = m->models->load(pick(s, CONTEXT, of), NULL, folder_path(&folder, "model"), &made, &m->error);
    add_handle(made, MODEL, of);
    return rc;
}

static int32_t sequence_make_data(struct supply *s, struct misuse *m, int of)
{
    graft_data   *made = NULL;
    const int32_t rc =
        m->data->open(pick(s, CONTEXT, of), supply_byte(s) % 8 ? folder.path : "/nowhere", &made, &m->error);

    add_handle(made, DATA, of);
    return rc;
}

static int32_t sequence_make_sampler(struct supply *s, struct misuse *m, int of)
{
    const int64_t  seeds[] = { 3, odd_number(s), 12, 8, 0 };
    const uint8_t  how = supply_byte(s);
    graft_sampler *made = NULL;
    const int32_t  rc = m->samples->create(pick(s, CONTEXT, of), pick(s, MATRIX, of), how % 8 == 1 ? NULL : seeds,
                                          how % 8 == 2 ? odd_number(s) % 6 : 1 + how % 5, &made, &m->error);

    add_handle(made, SAMPLER, of);
    return rc;
}

static int32_t (*const makers[CONTEXT])(struct supply *s, struct misuse *m, int of) = {
    [MATRIX] = sequence_make_matrix, [TRAINER] = sequence_make_trainer, [GRAPH] = sequence_make_graph,
    [PLAN] = sequence_make_plan,     [DATA] = sequence_make_data,       [HALO] = sequence_make_halo,
    [MODEL] = sequence_make_model,   [SAMPLER] = sequence_make_sampler,
};

/* -- calls with structs ------------------------------------------------------------------------------------------- */

static int32_t sequence_product(struct supply *s, struct misuse *m, int of)
{
    graft_mxm_args args = m->args;
    graft_dense    b = m->dense_b, c = m->dense_c;
    graft_mask     mask = GRAFT_INIT(graft_mask);
    uint8_t        present[N * WIDTH] = { 1, 3, 5 };

    mask.present = present;
    mask.stride = WIDTH;
    mask.kind = 1 + supply_byte(s) % 3;
    args.a = pick(s, MATRIX, of);
    args.b = &b;
    args.c = &c;
    switch (supply_byte(s) % 16) {
    case 0: args.semiring = (int32_t)odd_number(s); break;
    case 1: args.flags = (uint32_t)odd_number(s); break;
    case 2: b.dtype = (int32_t)odd_number(s) == GRAFT_F64 ? 0 : 77; break;
    case 3: b.n_rows = odd_number(s); break;
    case 4: c.n_cols = odd_number(s); break;
    case 5: b.stride = odd_number(s) < WIDTH ? -3 : WIDTH; break;
    case 6: args.b = NULL; break;
    case 7: args.mask = &mask; break;
    case 8: mask.kind = (int32_t)odd_number(s), args.mask = &mask; break;
    case 9: c.data = b.data; break;
    case 10: args.threads = -(supply_byte(s) & 3); break;
    case 11: args.row_scale = m->b; break;
    case 12: mask.flags = (uint32_t)odd_number(s), args.mask = &mask; break;
    default: break;
    }
    return m->mxm->run(pick(s, CONTEXT, of), resized(s, &args, sizeof args), &m->error);
}

static int32_t sequence_report(struct supply *s, struct misuse *m, int of)
{
    static const union {
        graft_epoch        epoch;
        graft_metrics      metrics;
        graft_graph_info   graph;
        graft_plan_info    plan;
        graft_halo_info    halo;
        graft_model_info   model;
        graft_state_item   item;
        graft_option       option;
        graft_module_entry entry;
        graft_traffic      traffic;
        graft_span         span;
        graft_memory_item  memory;
    } zero;
    const int32_t index = (int32_t)odd_number(s);

    switch (supply_byte(s) % 12) {
    case 0: return m->train->epoch(pick(s, TRAINER, of), resized(s, &zero, sizeof zero.epoch), &m->error);
    case 1: return m->train->evaluate(pick(s, TRAINER, of), index, resized(s, &zero, sizeof zero.metrics), &m->error);
    case 2: return m->graphs->info(pick(s, GRAPH, of), index, resized(s, &zero, sizeof zero.graph), &m->error);
    case 3: return m->aggregate->info(pick(s, PLAN, of), index, resized(s, &zero, sizeof zero.plan), &m->error);
    case 4: return m->halos->info(pick(s, HALO, of), resized(s, &zero, sizeof zero.halo), &m->error);
    case 5: return m->models->info(pick(s, MODEL, of), resized(s, &zero, sizeof zero.model), &m->error);
    case 6: return m->models->item(pick(s, MODEL, of), index, resized(s, &zero, sizeof zero.item), &m->error);
    case 7: return m->api->option_info(pick(s, CONTEXT, of), index, resized(s, &zero, sizeof zero.option), &m->error);
    case 8: return m->api->module_info(pick(s, CONTEXT, of), index, resized(s, &zero, sizeof zero.entry), &m->error);
    case 9: return m->report->traffic(pick(s, TRAINER, of), index, resized(s, &zero, sizeof zero.traffic), &m->error);
    case 10: return m->report->span(pick(s, TRAINER, of), index, resized(s, &zero, sizeof zero.span), &m->error);
    default:
        return m->report->memory_item(pick(s, TRAINER, of), index, resized(s, &zero, sizeof zero.memory), &m->error);
    }
}

/* Copy the state of one trainer or model into another. */
static int32_t sequence_state(struct supply *s, struct misuse *m, int of)
{
    graft_state_item item = GRAFT_INIT(graft_state_item);
    const int32_t    index = supply_byte(s) % 32;
    int32_t          rc;

    if (supply_byte(s) & 1) return m->models->apply(pick(s, MODEL, of), pick(s, TRAINER, of), &m->error);
    rc = supply_byte(s) & 1 ? m->train->state_item(pick(s, TRAINER, of), index, &item, &m->error)
                            : m->models->item(pick(s, MODEL, of), index, &item, &m->error);
    if (rc < 0) return rc;
    switch (supply_byte(s) % 8) {
    case 0: item.dtype = (int32_t)odd_number(s); break;
    case 1: item.n_dims = (int32_t)odd_number(s); break;
    case 2: item.shape[0] = odd_number(s); break;
    case 3: item.data = NULL; break;
    case 4: item.name = supply_byte(s) & 1 ? NULL : "layers.9.weight"; break;
    default: break;
    }
    return m->train->state_set(pick(s, TRAINER, of), resized(s, &item, sizeof item), &m->error);
}

static int32_t sequence_update(struct supply *s, struct misuse *m, int of)
{
    const graft_dataset data = any_dataset(s, of);
    const uint32_t      what = supply_byte(s) % 8 ? supply_byte(s) % 32u : (uint32_t)odd_number(s);

    return m->train->update(pick(s, TRAINER, of), what, resized(s, &data, sizeof data), &m->error);
}

static int32_t sequence_predict(struct supply *s, struct misuse *m, int of)
{
    float               out[N * 3];
    int32_t             labels[N];
    graft_dense         logits = { sizeof logits, GRAFT_F32, N, 3, 3, out };
    const graft_dataset data = any_dataset(s, of);
    const uint8_t       how = supply_byte(s);

    if (how % 8 == 1) logits.n_rows = odd_number(s);
    if (how % 8 == 2) logits.dtype = GRAFT_I32;
    if (how % 8 == 3) logits.stride = -1;
    if (how & 128 && how & 64) {
        const int64_t          vertices[] = { odd_number(s), 1, 0 };
        const graft_prediction list = { .size = sizeof list,
                                        .weights = how & 3,
                                        .dataset = &data,
                                        .vertices = how & 32 ? vertices + 1 : vertices,
                                        .n = how & 32 ? 2 : odd_number(s) % 4,
                                        .labels = labels,
                                        .probabilities = how & 16 ? NULL : &logits };

        return m->models->predict_vertices(pick(s, MODEL, of), resized(s, &list, sizeof list), &m->error);
    }
    if (how & 128)
        return m->models->predict(pick(s, MODEL, of), how & 3, resized(s, &data, sizeof data), labels,
                                  how & 16 ? NULL : &logits, &m->error);
    return m->train->predict(pick(s, TRAINER, of), how & 3, how & 64 ? NULL : labels, how & 16 ? NULL : &logits,
                             &m->error);
}

/* Begin a pass of a plan or a halo. A later call may end it, so its arrays live as long as the sequence. */
static int32_t sequence_pass(struct supply *s, struct misuse *m, int of)
{
    static float         owned[2][N * WIDTH], halo[WIDTH];
    static graft_dense   x, out, none;
    graft_aggregate_args args = GRAFT_INIT(graft_aggregate_args);
    graft_halo_args      pass = GRAFT_INIT(graft_halo_args);
    const uint8_t        how = supply_byte(s);

    x = (graft_dense){ sizeof x, GRAFT_F32, N, WIDTH, WIDTH, owned[0] };
    out = (graft_dense){ sizeof out, GRAFT_F32, N, WIDTH, WIDTH, owned[1] };
    none = (graft_dense){ sizeof none, GRAFT_F32, 0, WIDTH, WIDTH, halo };
    if (how % 8 == 1) x.n_rows = odd_number(s);
    if (how % 8 == 2) out.n_cols = odd_number(s);
    if (how & 32) {
        pass.flags = how % 8 == 3 ? (uint32_t)odd_number(s) : how & 1u;
        pass.owned = &x;
        pass.halo = how % 8 == 4 ? NULL : &none;
        return m->halos->begin(pick(s, HALO, of), resized(s, &pass, sizeof pass), &m->error);
    }
    args.semiring = how % 8 == 3 ? (int32_t)odd_number(s) : GRAFT_PLUS_SECOND;
    args.flags = how % 8 == 4 ? (uint32_t)odd_number(s) : how & 7u;
    args.layer = how % 8 == 5 ? (int32_t)odd_number(s) : 0;
    args.epoch = odd_number(s);
    args.threads = 1;
    args.x = how % 8 == 6 ? NULL : &x;
    args.out = &out;
    return m->aggregate->begin(pick(s, PLAN, of), resized(s, &args, sizeof args), &m->error);
}

static int32_t sequence_redistribute(struct supply *s, struct misuse *m, int of)
{
    static int64_t       rows[2][N];
    graft_redistribution args = GRAFT_INIT(graft_redistribution);
    const uint8_t        how = supply_byte(s);

    args.direction = how % 8 == 1 ? (int32_t)odd_number(s) : 1 + (how & 1);
    args.row_bytes = how % 8 == 2 ? odd_number(s) % 9 : 8;
    args.from = how % 8 == 3 ? NULL : rows[0];
    args.to = how % 8 == 4 ? rows[0] : rows[1];
    args.from_stride = how % 8 == 5 ? odd_number(s) % 9 : 8;
    args.to_stride = 8;
    return m->graphs->redistribute(pick(s, GRAPH, of), resized(s, &args, sizeof args), &m->error);
}

static int32_t sequence_codec(struct supply *s, struct misuse *m, int of)
{
    static float                 values[8 * WIDTH];
    static unsigned char         message[1024];
    static int64_t               unencoded[8], n_unencoded;
    const graft_codec_api *const codec = m->api->get_interface(pick(s, CONTEXT, of), GRAFT_CODEC_ID);
    static const int32_t         widths[] = { 32, 16, 8, 4, 2, 1 };
    graft_dense                  rows = { sizeof rows, GRAFT_F32, 8, WIDTH, WIDTH, values };
    graft_codec_args             args = GRAFT_INIT(graft_codec_args);
    const uint8_t                how = supply_byte(s);

    if (codec == NULL) return GRAFT_OK;
    for (int i = 0; i < 16; i++) supply_bytes(s, &values[i], how & 64 ? sizeof *values : 2);
    if (how & 32) supply_bytes(s, message, 64);
    args.bits = how % 8 == 1 ? (int32_t)odd_number(s) : widths[how % 6];
    args.code = how % 8 == 2 ? (int32_t)odd_number(s) : 1 + (how & 1);
    args.rounding = how % 8 == 3 ? (int32_t)odd_number(s) : 1 + (how >> 7);
    args.threads = 1;
    args.epoch = args.layer = args.first = odd_number(s);
    args.rows = how % 8 == 4 ? NULL : &rows;
    args.message = how % 8 == 5 ? NULL : message;
    args.message_bytes = how % 8 == 6 ? (uint64_t)(odd_number(s) % 1024 + 1024) % 1024 : sizeof message;
    args.unencoded = how & 16 ? unencoded : NULL;
    args.n_unencoded = how & 16 ? &n_unencoded : NULL;
    return (how & 8 ? codec->decode : codec->encode)(pick(s, CONTEXT, of), resized(s, &args, sizeof args), &m->error);
}

static int32_t sequence_edge(struct supply *s, struct misuse *m, int of)
{
    static int32_t indices[8];
    static float   values[2][8 * WIDTH];
    graft_index    index = GRAFT_INIT(graft_index);
    graft_dense    x = m->dense_b, y = { sizeof y, GRAFT_F32, 8, WIDTH, WIDTH, values[0] };
    const uint8_t  how = supply_byte(s);

    for (int i = 0; i < 8; i++) indices[i] = how & 1 ? supply_i32(s) : supply_byte(s) % N;
    index.index_type = how % 8 == 2 ? 99 : GRAFT_I32;
    index.count = how % 8 == 3 ? -1 : 8;
    index.data = how % 8 == 4 ? NULL : indices;
    if (how % 8 == 5) y.n_cols = odd_number(s);
    if (how % 8 == 6) x.n_rows = -1;
    if (how & 64) {
        graft_matrix *made = NULL;
        const int32_t rc = m->edge->index_matrix(pick(s, CONTEXT, of), resized(s, &index, sizeof index),
                                                 how % 8 == 7 ? odd_number(s) % 100 : N, &made, &m->error);

        add_handle(made, MATRIX, of);
        return rc;
    }
    if (how & 128)
        return m->edge->index_add(pick(s, CONTEXT, of), &y, resized(s, &index, sizeof index), &x, 1, &m->error);
    return m->edge->gather_rows(pick(s, CONTEXT, of), &x, resized(s, &index, sizeof index), &y, 1, &m->error);
}

static int32_t sequence_group(struct supply *s, struct misuse *m, int of)
{
    graft_group  *group = NULL;
    int64_t       values[4] = { 1, 2, 3, 4 }, bytes[1] = { 8 };
    const uint8_t how = supply_byte(s);
    int32_t       rc = m->groups->create(pick(s, CONTEXT, of), NULL, &group, &m->error);

    if (rc < 0) return rc;
    switch (how % 6) {
    case 0: rc = m->groups->agree(group, how & 64 ? GRAFT_ERR_IO : 0, &m->error); break;
    case 1: rc = m->groups->sum(group, (int32_t)odd_number(s), supply_byte(s) % 5, values, &m->error); break;
    case 2: rc = m->groups->maximum(group, how & 64 ? -1 : 4, values, &m->error); break;
    case 3: rc = m->groups->gather(group, (int32_t)odd_number(s), bytes, values, values + 2, &m->error); break;
    case 4: rc = m->groups->broadcast(group, (int32_t)odd_number(s), 8, values, &m->error); break;
    default: rc = m->groups->agree(pick(s, CONTEXT, of), 0, &m->error); break;
    }
    m->groups->destroy(group);
    return how % 6 == 0 ? GRAFT_OK : rc; /* this function has no message for the error */
}

static int32_t sequence_sampler(struct supply *s, struct misuse *m, int of)
{
    const int64_t            seeds[] = { 5, odd_number(s), 9, 2 };
    const uint8_t            how = supply_byte(s);
    const graft_sample_batch batch = GRAFT_INIT(graft_sample_batch);
    const graft_sample_block block = GRAFT_INIT(graft_sample_block);
    graft_sampler           *sampler = pick(s, SAMPLER, of);
    int64_t                  n_batches;
    int32_t                  made;

    switch (how % 8) {
    case 0: return m->samples->begin(sampler, odd_number(s), odd_number(s), &n_batches, &m->error);
    case 1:
    case 2: return m->samples->next(sampler, resized(s, &batch, sizeof batch), &m->error);
    case 3: return m->samples->prefetch(sampler, &made, &m->error);
    case 4:
    case 5: return m->samples->block(sampler, how >> 3, resized(s, &block, sizeof block), &m->error);
    default:
        return m->samples->sample(sampler, seeds, how & 128 ? odd_number(s) % 5 : 1 + (how >> 3) % 4, how >> 3 & 3,
                                  resized(s, &batch, sizeof batch), &m->error);
    }
}

static int32_t sequence_option(struct supply *s, struct misuse *m, int of)
{
    static const char *const settings[][2] = {
        { "layers", "1" },
        { "layers", "3" },
        { "hidden", "7" },
        { "model", "gcn" },
        { "model", "gat" },
        { "model", "gin" },
        { "model", "appnp" },
        { "heads", "2" },
        { "label_rate", "0.5" },
        { "recompute", "yes" },
        { "order", "rcm" },
        { "reuse_input", "no" },
        { "loss", "sigmoid" },
        { "halo.staleness", "1" },
        { "halo.codec", "q4" },
        { "mxm.kernel", "reference" },
        { "mxm.kernel", "none" },
        { "partition", "hash" },
        { "partition", "stream" },
        { "profile", "yes" },
        { "memory.limit", "1" },
        { "check", "full" },
        { "check", "args" },
        { "schedule", "cosine" },
        { "symmetrize", "yes" },
        { "epochs", "3" },
        { "lr", "0.5" },
        { "lr", "-1" },
        { "no such", "option" },
        { "optimizer", "sgd" },
        { "eval_every", "2" },
        { "dropout", "0.9" },
        { "hidden", "4" },
        { "model", "sage" },
        { "layers", "2" },
        { "sparse_input", "yes" },
        { "batch_size", "2" },
        { "batch_size", "0" },
        { "fanout", "-1" },
        { "fanout", "2,1" },
        { "sample.weights", "degree" },
        { "sample.weights", "uniform" },
        { "sampler", "neighbour:replace" },
        { "sample.ahead", "3" },
    };
    const char *const *setting = settings[supply_byte(s) % (sizeof settings / sizeof *settings)];

    return m->api->set(pick(s, CONTEXT, of), setting[0], setting[1], &m->error);
}

static int32_t sequence_save(struct supply *s, struct misuse *m, int of)
{
    return m->models->save(pick(s, MODEL, of), folder_path(&folder, supply_byte(s) % 8 ? "model" : "no/model"),
                           &m->error);
}

static int32_t sequence_known(struct supply *s, struct misuse *m, int of)
{
    const struct misuse_call *call = &misuse_calls[supply_byte(s) % misuse_n_calls];
    const int32_t             rc = call->make(m, pick(s, call->kind, of));

    misuse_drop_made(&q.m[0], &q.m[1]);
    return rc;
}

static int32_t sequence_make(struct supply *s, struct misuse *m, int of)
{
    return makers[supply_byte(s) % CONTEXT](s, m, of);
}

static int32_t sequence_destroy(struct supply *s, struct misuse *m, int of)
{
    const enum misuse_kind kind = supply_byte(s) % CONTEXT;

    misuse_destroy(m, pick(s, kind, of), kind);
    return GRAFT_OK;
}

/* Close a context in rare cases, and continue to make calls with it. */
static int32_t sequence_close(struct supply *s, struct misuse *m, int of)
{
    if (supply_byte(s) % 8 != 0) return GRAFT_OK;
    m->api->close(m->context);
    q.is_open[of] = 0;
    return GRAFT_OK;
}

static int32_t (*const calls[])(struct supply *s, struct misuse *m, int of) = {
    sequence_known,   sequence_known,   sequence_known,   sequence_make,   sequence_make,         sequence_make,
    sequence_destroy, sequence_destroy, sequence_product, sequence_report, sequence_report,       sequence_state,
    sequence_update,  sequence_predict, sequence_pass,    sequence_pass,   sequence_codec,        sequence_edge,
    sequence_group,   sequence_option,  sequence_option,  sequence_save,   sequence_redistribute, sequence_close,
    sequence_sampler, sequence_sampler,
};

/* -- the target --------------------------------------------------------------------------------------------------- */

static const char *sequence_play(struct supply *s)
{
    for (int i = 0; i < CALLS && s->at < s->end; i++) {
        const uint8_t  what = supply_byte(s), fails = supply_byte(s);
        const int      of = what >> 7;
        struct misuse *m = &q.m[of];
        int32_t        rc;

        m->error = (graft_error)GRAFT_INIT(graft_error);
        strict_host_fail(&m->strict, fails < 32 ? fails : -1, fails & 1);
        rc = calls[what % (sizeof calls / sizeof *calls)](s, m, of);
        strict_host_fail(&m->strict, -1, 0);
        m->log[0] = '\0';
        if (rc < 0 && (m->error.message[0] == '\0' || m->error.code != rc))
            return misuse_fault("call %d returned %d, and the error has %d: %s", what, rc, m->error.code,
                                m->error.message);
    }
    return NULL;
}

static const char *sequence_close_all(void)
{
    /* The object may belong to the other context. */
    for (int i = q.n - 1; i >= 0; i--)
        for (int of = 0; of < 2; of++) misuse_destroy(&q.m[of], q.pool[i].handle, q.pool[i].kind);
    for (int of = 0; of < 2; of++) {
        if (q.is_open[of]) q.m[of].api->close(q.m[of].context);
        if (q.m[of].strict.fault != NULL) return q.m[of].strict.fault;
        if (q.m[of].strict.live_bytes != 0)
            return misuse_fault("%lld bytes are left", (long long)q.m[of].strict.live_bytes);
    }
    return NULL;
}

const char *target_fault(const uint8_t *bytes, size_t count)
{
    struct supply s = { bytes, bytes + count };
    const char   *fault = NULL, *left;

    q.n = 0;
    for (int of = 0; of < 2; of++) {
        fault = misuse_open(&q.m[of]);
        if (fault != NULL) return fault;
        q.is_open[of] = 1;
        for (int kind = 0; kind < CONTEXT; kind++) add_handle(q.m[of].handle[kind], kind, of);
    }
    fault = sequence_play(&s);
    left = sequence_close_all();
    return fault != NULL ? fault : left;
}
