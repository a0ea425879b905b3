/* The jobs that harness/jobs.h describes: small programs of a host that make every collective call of the library.
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness/jobs.h"
#include "harness/outputs.h"

#include "fuzz/data_files.h"
#include "graft_aggregate.h"
#include "graft_halo.h"
#include "graft_load.h"
#include "graft_model.h"

#include <math.h>

enum { N = 40, FEATURES = 5, CLASSES = 3, WIDTH = 3 };

#define TRY(expression)                                                                                                \
    do {                                                                                                               \
        rc = (expression);                                                                                             \
        if (rc < 0) goto done;                                                                                         \
    } while (0)

void job_input_init(struct job_input *in, const char *folder, int creates)
{
    struct sample      sample = { 5 };
    struct data_folder made;

    memset(in, 0, sizeof *in);
    sample_dataset_init(&in->set, &sample, N, FEATURES, CLASSES, 0, 0);
    test_mesh_init(&in->mesh, &sample, SHAPE_TRIANGLES, 4, 1, INT64_C(1) << 41);
    snprintf(in->folder, sizeof in->folder, "%s", folder);
    snprintf(made.path, sizeof made.path, "%s", folder);
    if (creates) write_sample(&made, 1);
}

void job_input_fini(struct job_input *in)
{
    sample_dataset_fini(&in->set);
    test_mesh_fini(&in->mesh);
}

static void job_digest(struct job_run *run, const void *data, uint64_t bytes)
{
    for (uint64_t i = 0; i < bytes; i++)
        run->digest = (run->digest ^ ((const unsigned char *)data)[i]) * 1099511628211u;
}

static void file_of_run(const struct job_run *run, const char *end, char path[512])
{
    snprintf(path, 512, "%s/%s.%s", run->in->folder, run->tag, end);
}

static const void *table(const struct job_run *run, const char *id)
{
    return graft_interface(run->host.api, id, 0);
}

/* Set an option on this rank. All ranks then agree whether all of them could set it. */
static int32_t set_text(struct job_run *run, const char *key, const char *value)
{
    const graft_group_api *t = table(run, GRAFT_GROUP_ID);
    const int32_t          rc = run->host.api->set(run->host.api->context, key, value, &run->host.error);

    return t->agree(run->group, rc, &run->host.error);
}

/* The collective calls that a host makes for its own purposes: broadcast, sum, maximum, gather. At the end one call
 * fails on the last rank, and all ranks must report this. */
static int32_t job_of_calls(struct job_run *run)
{
    const graft_group_api *t = table(run, GRAFT_GROUP_ID);
    struct host           *h = &run->host;
    const int32_t          n = h->n_ranks, r = h->rank;
    float                  sum[37];
    int64_t                whole[300], most[2] = { r, -r }, bytes[HOSTS_MOST];
    char                   mine[700], all[HOSTS_MOST * 700], text[16] = "no";
    graft_error            failed = GRAFT_INIT(graft_error);
    int32_t                rc;

    for (int i = 0; i < 37; i++) sum[i] = 1 / (float)(i + r + 1);
    for (int i = 0; i < 300; i++) whole[i] = i * (r + 1);
    memset(mine, 'a' + r, sizeof mine);
    for (int32_t q = 0; q < n; q++) bytes[q] = 350 * q;
    TRY(t->sum(run->group, GRAFT_F32, 37, sum, &h->error));
    TRY(t->sum(run->group, GRAFT_I64, 300, whole, &h->error));
    TRY(t->maximum(run->group, 2, most, &h->error));
    TRY(t->gather(run->group, -1, bytes, mine, all, &h->error));
    job_digest(run, all, (uint64_t)(350 * n * (n - 1) / 2));
    TRY(t->gather(run->group, n - 1, bytes, mine, r == n - 1 ? all : NULL, &h->error));
    if (r == n - 1) job_digest(run, all, (uint64_t)(350 * n * (n - 1) / 2));
    if (r == n - 1) snprintf(text, sizeof text, "yes");
    TRY(t->broadcast(run->group, n - 1, sizeof text, text, &h->error));
    job_digest(run, sum, sizeof sum);
    job_digest(run, whole, sizeof whole);
    job_digest(run, most, sizeof most);
    job_digest(run, text, sizeof text);
    snprintf(failed.message, sizeof failed.message, "no disk");
    rc = t->agree(run->group, r == n - 1 ? GRAFT_ERR_IO : GRAFT_OK, &failed);
    if (rc == GRAFT_ERR_IO) {
        job_digest(run, failed.message, sizeof failed.message);
        return GRAFT_OK;
    }
    h->error = failed;
    if (rc == GRAFT_OK) rc = GRAFT_STATUS_END;
done:
    return rc;
}

/* Make the distributed graph from the slice of this rank. */
static int32_t job_graph(struct job_run *run, struct host_slice *slice, graft_graph **graph)
{
    struct host *h = &run->host;

    host_slice_init(slice, &run->in->set.dataset, SLICES_EVEN, h->rank, h->n_ranks);
    return h->graphs->create(h->api->context, &h->transport, &slice->slice, graph, &h->error);
}

/* Make a graph, whose owners come from a file if the job has that option, and move rows to their owners and back. */
static int32_t job_of_graph(struct job_run *run)
{
    struct host         *h = &run->host;
    struct host_slice    slice;
    graft_graph         *graph = NULL;
    graft_graph_info     info = GRAFT_INIT(graft_graph_info);
    graft_redistribution there = GRAFT_INIT(graft_redistribution), back = there;
    int64_t              owned[N], rows[N];
    int32_t              rc;

    for (int64_t i = 0; i < N; i++) rows[i] = 7 * i;
    TRY(job_graph(run, &slice, &graph));
    TRY(h->graphs->info(graph, h->rank, &info, &h->error));
    there.direction = GRAFT_TO_OWNERS;
    back.direction = GRAFT_TO_SLICES;
    there.row_bytes = there.from_stride = there.to_stride = sizeof(int64_t);
    back.row_bytes = back.from_stride = back.to_stride = sizeof(int64_t);
    there.from = rows + slice.first, back.to = rows + slice.first;
    there.to = owned, back.from = owned;
    TRY(h->graphs->redistribute(graph, &there, &h->error));
    job_digest(run, owned, (uint64_t)info.n_owned * sizeof *owned);
    TRY(h->graphs->redistribute(graph, &back, &h->error));
    job_digest(run, rows, sizeof rows);
    job_digest(run, h->graphs->owned(graph), (uint64_t)info.n_owned * sizeof(int64_t));
done:
    h->graphs->destroy(graph);
    host_slice_fini(&slice);
    return rc;
}

/* Write the owners of a graph to a file, and make a second graph that reads them. */
static int32_t job_of_owners(struct job_run *run)
{
    char    path[512];
    int32_t rc = GRAFT_OK;

    file_of_run(run, "owners", path);
    if (run->host.rank == 0) unlink(path);
    TRY(set_text(run, "partition.file", path));
    TRY(job_of_graph(run));
    rc = job_of_graph(run);
done:
    return rc;
}

static int32_t job_of_partitioner(struct job_run *run)
{
    int32_t rc;

    TRY(set_text(run, "partition.program", run->in->partitioner));
    rc = job_of_graph(run);
done:
    return rc;
}

/* Exchange rows of the halo, and return sums to the owners of the rows. */
static int32_t job_of_halo(struct job_run *run)
{
    const graft_halo_api *halos = table(run, GRAFT_HALO_ID);
    struct host          *h = &run->host;
    struct host_slice     slice;
    graft_graph          *graph = NULL;
    graft_halo           *halo = NULL;
    graft_halo_info       info = GRAFT_INIT(graft_halo_info);
    graft_halo_args       args = GRAFT_INIT(graft_halo_args);
    float                 own[N * WIDTH], outer[N * WIDTH] = { 0 };
    int32_t               rc;

    TRY(job_graph(run, &slice, &graph));
    TRY(halos->create(graph, &halo, &h->error));
    TRY(halos->info(halo, &info, &h->error));
    for (int64_t i = 0; i < info.n_owned * WIDTH; i++) own[i] = (float)((i + h->rank) % 17) / 7;
    args.owned = &(graft_dense){ sizeof(graft_dense), GRAFT_F32, info.n_owned, WIDTH, WIDTH, own };
    args.halo = &(graft_dense){ sizeof(graft_dense), GRAFT_F32, info.n_halo, WIDTH, WIDTH, outer };
    for (int pass = 0; pass < 3; pass++) {
        args.flags = pass == 1 ? GRAFT_HALO_SUM : pass == 2 ? GRAFT_HALO_EXACT : 0;
        TRY(halos->begin(halo, &args, &h->error));
        TRY(halos->end(halo, &h->error));
        job_digest(run, own, (uint64_t)info.n_owned * WIDTH * sizeof *own);
        job_digest(run, outer, (uint64_t)info.n_halo * WIDTH * sizeof *outer);
    }
done:
    halos->destroy(halo);
    h->graphs->destroy(graph);
    host_slice_fini(&slice);
    return rc;
}

/* Make forward and transposed passes of a plan in two epochs. With adaptive widths the plan assigns new widths between
 * the epochs. */
static int32_t job_of_passes(struct job_run *run)
{
    const graft_aggregate_api *aggregate = table(run, GRAFT_AGGREGATE_ID);
    struct host               *h = &run->host;
    struct host_slice          slice;
    graft_graph               *graph = NULL;
    graft_plan                *plan = NULL;
    graft_graph_info           info = GRAFT_INIT(graft_graph_info);
    graft_plan_args            wish = GRAFT_INIT(graft_plan_args);
    float                      x[N * WIDTH], out[N * WIDTH];
    int32_t                    rc;

    TRY(job_graph(run, &slice, &graph));
    TRY(h->graphs->info(graph, h->rank, &info, &h->error));
    wish.flags = GRAFT_PLAN_TRANSPOSED;
    TRY(aggregate->create(graph, &wish, &plan, &h->error));
    for (int64_t i = 0; i < info.n_owned * WIDTH; i++) x[i] = sinf((float)(i + 100 * h->rank));
    for (int pass = 0; pass < 6; pass++) {
        const graft_dense    in = { sizeof in, GRAFT_F32, info.n_owned, WIDTH, WIDTH, x };
        const graft_dense    result = { sizeof result, GRAFT_F32, info.n_owned, WIDTH, WIDTH, out };
        graft_aggregate_args args = GRAFT_INIT(graft_aggregate_args);

        args.semiring = GRAFT_PLUS_TIMES;
        args.flags = pass % 2 ? GRAFT_AGGREGATE_TRANSPOSE : 0;
        if (pass >= 4) args.flags |= GRAFT_AGGREGATE_SYNCHRONOUS;
        args.epoch = pass / 2;
        args.x = &in;
        args.out = &result;
        TRY(aggregate->begin(plan, &args, &h->error));
        TRY(aggregate->end(plan, &h->error));
        job_digest(run, out, (uint64_t)info.n_owned * WIDTH * sizeof *out);
        if (pass == 1 && strstr(run->job->settings, "adaptive") != NULL) TRY(aggregate->assign_bits(plan, &h->error));
    }
done:
    aggregate->destroy(plan);
    h->graphs->destroy(graph);
    host_slice_fini(&slice);
    return rc;
}

static int32_t job_epoch(struct job_run *run, graft_trainer *trainer)
{
    graft_epoch   epoch = output_epoch();
    const int32_t rc = run->host.train->epoch(trainer, &epoch, &run->host.error);

    job_digest(run, &epoch.loss, sizeof epoch.loss);
    return rc;
}

static void digest_logits(struct job_run *run, const float *logits, const struct host_slice *slice)
{
    job_digest(run, logits, (uint64_t)(slice->end - slice->first) * CLASSES * sizeof *logits);
}

static graft_dense job_logits(const struct host_slice *slice, float *logits)
{
    return (graft_dense){ sizeof(graft_dense), GRAFT_F32, slice->end - slice->first, CLASSES, CLASSES, logits };
}

/* Train some epochs, evaluate, predict, replace data of the trainer, and change options of its messages. */
static int32_t job_of_training(struct job_run *run)
{
    struct host        *h = &run->host;
    struct host_trainer t;
    graft_metrics       metrics = output_metrics();
    float               logits[N * CLASSES];
    graft_dense         out;
    int32_t             rc;

    TRY(host_trainer_create(h, &run->in->set.dataset, SLICES_EVEN, &t));
    out = job_logits(&t.slice, logits);
    TRY(job_epoch(run, t.trainer));
    TRY(job_epoch(run, t.trainer));
    TRY(h->train->evaluate(t.trainer, GRAFT_WEIGHTS_BEST, &metrics, &h->error));
    job_digest(run, &metrics.validation_loss, sizeof metrics.validation_loss);
    TRY(h->train->update(t.trainer, GRAFT_UPDATE_FEATURES | GRAFT_UPDATE_LABELS, &t.slice.dataset, &h->error));
    TRY(job_epoch(run, t.trainer));
    TRY(set_text(run, "halo.codec", "q4"));
    TRY(job_epoch(run, t.trainer));
    TRY(h->train->predict(t.trainer, GRAFT_WEIGHTS_LAST, NULL, &out, &h->error));
    digest_logits(run, logits, &t.slice);
done:
    host_trainer_destroy(h, &t);
    return rc;
}

/* Let rank 0 save a model, and let all ranks know whether it could. */
static int32_t save_model(struct job_run *run, const graft_model_api *models, graft_trainer *trainer, const char *path)
{
    const graft_group_api *t = table(run, GRAFT_GROUP_ID);
    graft_model           *model = NULL;
    int32_t                rc = models->create(trainer, GRAFT_MODEL_STATE, &model, &run->host.error);

    if (rc == GRAFT_OK && run->host.rank == 0) rc = models->save(model, path, &run->host.error);
    models->destroy(model);
    return rc == GRAFT_ERR_PEER ? rc : t->agree(run->group, rc, &run->host.error);
}

/* Take a model out of a trainer, save it, load it, predict with it, and apply it to the trainer again. */
static int32_t job_of_model(struct job_run *run)
{
    const graft_model_api *models = table(run, GRAFT_MODEL_ID);
    struct host           *h = &run->host;
    struct host_trainer    t;
    graft_model           *model = NULL;
    float                  logits[N * CLASSES];
    graft_dense            out;
    graft_prediction       list;
    char                   path[512];
    int32_t                rc;

    file_of_run(run, "model", path);
    TRY(host_trainer_create(h, &run->in->set.dataset, SLICES_EVEN, &t));
    out = job_logits(&t.slice, logits);
    TRY(job_epoch(run, t.trainer));
    TRY(save_model(run, models, t.trainer, path));
    TRY(models->load(h->api->context, &h->transport, path, &model, &h->error));
    list =
        (graft_prediction){ .size = sizeof list, .dataset = &t.slice.dataset, .n = out.n_rows, .probabilities = &out };
    TRY(models->predict_vertices(model, &list, &h->error));
    digest_logits(run, logits, &t.slice);
    TRY(models->apply(model, t.trainer, &h->error));
    TRY(job_epoch(run, t.trainer));
done:
    models->destroy(model);
    host_trainer_destroy(h, &t);
    return rc;
}

/* Read a data set, of which each rank gets a slice. */
static int32_t job_of_data(struct job_run *run)
{
    const graft_data_api *data = table(run, GRAFT_DATA_ID);
    struct host          *h = &run->host;
    graft_data           *opened = NULL;
    const graft_dataset  *view;
    int32_t               rc;

    TRY(data->open_slice(h->api->context, &h->transport, run->in->folder, &opened, &h->error));
    view = data->view(opened);
    job_digest(run, &view->n_slice, sizeof view->n_slice);
    if (view->n_slice > 0) job_digest(run, view->labels, (uint64_t)view->n_slice * sizeof *view->labels);
done:
    data->close(opened);
    return rc;
}

/* Make a mesh with ghosts and one with shared nodes, and add to the digest what create() has found in each. */
static int32_t job_of_mesh(struct job_run *run)
{
    const graft_mesh_api *meshes = table(run, GRAFT_MESH_ID);
    struct host          *h = &run->host;
    int32_t               rc = GRAFT_OK;

    for (int kind = 0; kind < 2 && rc == GRAFT_OK; kind++) {
        struct sample    sample = { 3 };
        struct mesh_cut  cut;
        struct mesh_part part;
        graft_mesh      *mesh = NULL;
        graft_mesh_info  info = GRAFT_INIT(graft_mesh_info);
        graft_mesh_view  view = GRAFT_INIT(graft_mesh_view);

        mesh_cut_init(&cut, &run->in->mesh, &sample, h->n_ranks, kind == 0 ? CUT_OWNERS : CUT_SHARED | CUT_REPEATS);
        mesh_part_init(&part, &cut, h->rank);
        rc = meshes->create(h->api->context, &h->transport, &part.args, &mesh, &h->error);
        if (rc == GRAFT_OK) rc = meshes->info(mesh, -1, &info, &h->error);
        if (rc == GRAFT_OK) rc = meshes->view(mesh, &view, &h->error);
        info.bytes = 0;
        job_digest(run, &info, sizeof info);
        job_digest(run, view.node_of, (uint64_t)view.n_rows * sizeof *view.node_of);
        job_digest(run, view.source, (uint64_t)view.n_edges * sizeof *view.source);
        job_digest(run, view.position, (uint64_t)(view.n_sources * view.dim) * sizeof *view.position);
        job_digest(run, view.halo_node, (uint64_t)view.n_halo * sizeof *view.halo_node);
        meshes->destroy(mesh);
        mesh_part_fini(&part);
        mesh_cut_fini(&cut);
    }
    return rc;
}

const struct job jobs[] = {
    { "collective calls", "", job_of_calls },
    { "slices of a data set", "", job_of_data },
    { "partition by stream", "partition=stream", job_of_graph },
    { "partition by a program", "partition=metis", job_of_partitioner },
    { "a file of owners", "partition=hash", job_of_owners },
    { "halo", "partition=hash halo.codec=q8", job_of_halo },
    { "meshes", "", job_of_mesh },
    { "passes", "partition=block halo.cover=hybrid", job_of_passes },
    { "adaptive passes with stale rows", "halo.codec=adaptive halo.staleness=1 halo.budget=error:0.1", job_of_passes },
    { "training", "model=sage partition=hash halo.codec=q8", job_of_training },
    { "training with stale rows",
      "model=gcn halo.codec=adaptive halo.staleness=1 "
      "halo.budget=error:0.1:2",
      job_of_training },
    { "training by minibatch", "model=sage layers=3 partition=hash batch_size=4 fanout=3 aep.codec=q8 aep.rows=3",
      job_of_training },
    { "training of gat by minibatch", "model=gat heads=2 batch_size=5 fanout=-1 aep.rows=-1:2 hec.miss=fetch",
      job_of_training },
    { "training by minibatch with fetched rows",
      "model=gcn layers=3 partition=hash batch_size=4 fanout=3 hec.miss=fetch_keep aep.rows=2 "
      "sample.weights=degree",
      job_of_training },
    { "training of gat", "model=gat heads=2 symmetrize=yes halo.staleness=1", job_of_training },
    { "a model", "model=gin partition=block", job_of_model },
};
const int n_jobs = sizeof jobs / sizeof *jobs;

int job_is_possible(const struct job *job, const struct job_input *in)
{
    return job->play != job_of_partitioner || in->partitioner != NULL;
}

void job_configure(const struct job *job, struct job_run *run)
{
    host_set_all(run->host.api, "layers=2 hidden=6 epochs=9 threads=1 dropout=0");
    host_set_all(run->host.api, job->settings);
}

int32_t job_play(const struct job *job, struct job_run *run)
{
    const graft_group_api *t = table(run, GRAFT_GROUP_ID);
    struct host           *h = &run->host;
    int32_t                rc;

    run->job = job;
    run->digest = 14695981039346656037u;
    h->error = GRAFT_INIT(graft_error);
    h->graphs = table(run, GRAFT_GRAPH_ID);
    h->train = table(run, GRAFT_TRAIN_ID);
    h->report = table(run, GRAFT_REPORT_ID);
    rc = t->create(h->api->context, &h->transport, &run->group, &h->error);
    if (rc == GRAFT_OK) rc = job->play(run);
    if (run->others_failed != NULL && run->others_failed(run->arg, rc) && rc == GRAFT_OK)
        rc = t->agree(run->group, GRAFT_OK, &h->error);
    t->destroy(run->group);
    run->group = NULL;
    return rc;
}
