/* Checks the state of graft_network.h in one process: items and files, what is refused and leaves the state as it was,
 * and memory.
 * SPDX-License-Identifier: Apache-2.0 */
#include "graft_load.h"
#include "harness/files.h"
#include "harness/networks.h"
#include "harness/tap.h"
#include "oracle/oracle.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

#define TINY "hidden=4 layers=1 mgn.linear=1 norm=none model.type=f64"
#define SMALL "hidden=8 layers=3 mgn.linear=2"

static struct test_mesh    mesh;
static struct network_case scene;

static int32_t refuses(struct host *host, int32_t rc, int32_t code, const char *part)
{
    if (rc == code && strstr(host->error.message, part) != NULL) return GRAFT_OK;
    return network_blame(host, "status %d where %d was expected, with '%s': %.200s", rc, code, part,
                         host->error.message);
}

/* A refused step must not change the state. A NaN in a target that is not read must be accepted. */
static int32_t refuse_nonfinite(struct host *host, struct network_rank *n)
{
    graft_network_step step = GRAFT_INIT(graft_network_step);
    graft_field        input = network_state(n, NETWORK_IN, 0), target = network_state(n, NETWORK_OUT, 1);
    graft_pair         pair[2] = { GRAFT_INIT(graft_pair), GRAFT_INIT(graft_pair) };
    uint64_t           before;
    int64_t            free_row = 0, bound_row = 0;

    for (int k = 0; k < 2; k++) pair[k].input = &input, pair[k].target = &target;
    while (!network_is_free(&scene, n->part.node[free_row])) free_row++;
    while (network_is_free(&scene, n->part.node[bound_row])) bound_row++;
    network_field_put(&target, bound_row, 1, (double)NAN);
    NETWORK_CHECK(n->networks->train(n->network, pair, 2, &step, &host->error) == GRAFT_OK);
    before = network_digest(n);
    network_field_put(&target, free_row, 1, (double)NAN);
    NETWORK_CHECK(refuses(host, n->networks->train(n->network, pair, 2, &step, &host->error), GRAFT_ERR_NONFINITE,
                          "target has nan") == GRAFT_OK);
    network_field_put(&target, free_row, 1, 1);
    network_field_put(&input, bound_row, 2, INFINITY);
    NETWORK_CHECK(refuses(host, n->networks->train(n->network, pair, 2, &step, &host->error), GRAFT_ERR_NONFINITE,
                          "input has inf") == GRAFT_OK);
    network_field_put(&input, bound_row, 2, 1e300); /* the square of this number overflows */
    NETWORK_CHECK(n->networks->train(n->network, pair, 2, &step, &host->error) == GRAFT_ERR_NONFINITE);
    NETWORK_CHECK(network_digest(n) == before);
    free(input.data), free(target.data);
    return GRAFT_OK;
}

/* After create() and the first step no call may allocate: the next allocation would fail. */
static int32_t allocate_nothing(struct host *host, struct network_rank *n)
{
    graft_network_step step = GRAFT_INIT(graft_network_step);
    graft_field        input = network_state(n, NETWORK_IN, 0), output = network_field(n, NETWORK_OUT);
    graft_rollout      rollout = GRAFT_INIT(graft_rollout);

    rollout.steps = 3;
    rollout.initial = rollout.state = &input;
    atomic_store(&host->fail_at, 0);
    NETWORK_CHECK(n->networks->begin(n->network, &input, &host->error) == GRAFT_OK);
    NETWORK_CHECK(n->networks->end(n->network, &output, &host->error) == GRAFT_OK);
    NETWORK_CHECK(n->networks->rollout(n->network, &rollout, &host->error) == GRAFT_OK);
    NETWORK_CHECK(network_train(host, n, 0, 1, &step) == GRAFT_ERR_NOMEM);
    atomic_store(&host->fail_at, -1);
    NETWORK_CHECK(network_train(host, n, 0, 1, &step) == GRAFT_OK);
    atomic_store(&host->fail_at, 0);
    NETWORK_CHECK(network_train(host, n, 0, 1, &step) == GRAFT_OK && step.step == 2);
    atomic_store(&host->fail_at, -1);
    free(input.data), free(output.data);
    return GRAFT_OK;
}

static const char *file_path;

/* Write a file for the next test. */
static int32_t write_body(struct host *host)
{
    struct network_rank n;
    int32_t             rc = network_rank_init(host, &scene, &n);

    if (rc == GRAFT_OK) rc = n.networks->save(n.network, file_path, &host->error);
    network_rank_fini(&n);
    return rc;
}

/* Let each allocation of create(), of the first step, and of load() fail in turn. */
static int32_t fail_each(struct host *host)
{
    int32_t rc = GRAFT_ERR_NOMEM;

    for (int64_t k = 0; rc == GRAFT_ERR_NOMEM && k < 2000; k++) {
        struct network_rank n;
        graft_network_step  step = GRAFT_INIT(graft_network_step);

        atomic_store(&host->fail_at, k);
        rc = network_rank_init(host, &scene, &n);
        if (rc == GRAFT_OK) rc = network_train(host, &n, 0, 1, &step);
        if (rc == GRAFT_OK) rc = n.networks->load(n.network, file_path, &host->error);
        if (rc == GRAFT_OK) rc = n.networks->save(n.network, file_path, &host->error);
        if (rc == GRAFT_OK && k < 40) rc = network_blame(host, "only %d allocations may fail", (int)k);
        network_rank_fini(&n);
    }
    atomic_store(&host->fail_at, -1);
    return rc;
}

/* A file must have the whole state. Another kind of network must refuse it, and so must everyone if it is damaged. */
static int32_t save_and_go_on(struct host *host, struct network_rank *n)
{
    graft_network_step step = GRAFT_INIT(graft_network_step);
    graft_network     *other = NULL;
    uint64_t           saved, now;
    double             losses[2];
    FILE              *file;

    for (int k = 0; k < 3; k++) NETWORK_CHECK(network_train(host, n, k, k + 1, &step) == GRAFT_OK);
    NETWORK_CHECK(n->networks->save(n->network, file_path, &host->error) == GRAFT_OK);
    saved = network_digest(n);
    for (int k = 0; k < 2; k++) NETWORK_CHECK(network_train(host, n, k, k + 1, &step) == GRAFT_OK);
    losses[0] = step.loss;
    NETWORK_CHECK((now = network_digest(n)) != saved);
    NETWORK_CHECK(n->networks->load(n->network, file_path, &host->error) == GRAFT_OK && network_digest(n) == saved);
    for (int k = 0; k < 2; k++) NETWORK_CHECK(network_train(host, n, k, k + 1, &step) == GRAFT_OK);
    NETWORK_CHECK(network_digest(n) == now && step.loss == losses[0]);

    host_set(host->api, "mgn.sum=old");
    NETWORK_CHECK(n->networks->create(n->mesh, &n->args, &other, &host->error) == GRAFT_OK);
    NETWORK_CHECK(refuses(host, n->networks->load(other, file_path, &host->error), GRAFT_ERR_FORMAT,
                          "'mgn.sum' is 'update' in its metadata, but this network has 'old'") == GRAFT_OK);
    NETWORK_CHECK(refuses(host, n->networks->load(other, "/nonexistent/file", &host->error), GRAFT_ERR_NOT_FOUND,
                          "nonexistent") == GRAFT_OK);
    NETWORK_CHECK(refuses(host, n->networks->save(other, "/nonexistent/file", &host->error), GRAFT_ERR_IO,
                          "nonexistent") == GRAFT_OK);
    n->networks->destroy(other);
    file = fopen(file_path, "r+");
    NETWORK_CHECK(file != NULL && fseek(file, -100, SEEK_END) == 0 && fputc(77, file) == 77 && fclose(file) == 0);
    NETWORK_CHECK(refuses(host, n->networks->load(n->network, file_path, &host->error), GRAFT_ERR_FORMAT,
                          "is damaged") == GRAFT_OK);
    NETWORK_CHECK(network_digest(n) == now);
    NETWORK_CHECK(n->networks->save(n->network, file_path, &host->error) == GRAFT_OK);
    return GRAFT_OK;
}

/* Set state items. Wrong items must be refused, and new statistics of edges must change the standardised edges. */
static int32_t set_items(struct host *host, struct network_rank *n)
{
    graft_state_item item = GRAFT_INIT(graft_state_item), wrong;
    graft_field      input = network_state(n, NETWORK_IN, 0), output[2];
    double           values[64] = { 0 };
    const uint64_t   before = network_digest(n);

    NETWORK_CHECK(n->networks->state_item(n->network, 0, &item, &host->error) == GRAFT_OK);
    NETWORK_CHECK(strcmp(item.name, "node_encoder.0.weight") == 0 && item.shape[0] == 8 && item.shape[1] == 4);
    item.data = values;
    wrong = item;
    wrong.name = "node_encoder.9.weight";
    NETWORK_CHECK(refuses(host, n->networks->state_set(n->network, &wrong, &host->error), GRAFT_ERR_NOT_FOUND,
                          "9.weight") == GRAFT_OK);
    wrong = item;
    wrong.shape[1] = 5;
    NETWORK_CHECK(refuses(host, n->networks->state_set(n->network, &wrong, &host->error), GRAFT_ERR_FORMAT,
                          "is F64 [8, 5], expected F64 [8, 4]") == GRAFT_OK);
    values[7] = (double)NAN;
    NETWORK_CHECK(refuses(host, n->networks->state_set(n->network, &item, &host->error), GRAFT_ERR_FORMAT,
                          "has nan at element 7") == GRAFT_OK);
    NETWORK_CHECK(network_digest(n) == before);
    values[7] = 0;
    item =
        (graft_state_item){ .size = sizeof item, .dtype = GRAFT_F64, .name = "statistics.edge.squares", .n_dims = 1 };
    item.shape[0] = 3;
    values[0] = values[1] = values[2] = 1e4;
    item.data = values;
    for (int k = 0; k < 2; k++) {
        output[k] = network_field(n, NETWORK_OUT);
        NETWORK_CHECK(n->networks->begin(n->network, &input, &host->error) == GRAFT_OK);
        NETWORK_CHECK(n->networks->state_set(n->network, &item, &host->error) == GRAFT_ERR_STATE);
        NETWORK_CHECK(n->networks->begin(n->network, &input, &host->error) == GRAFT_ERR_STATE);
        NETWORK_CHECK(n->networks->end(n->network, &output[k], &host->error) == GRAFT_OK);
        NETWORK_CHECK(n->networks->end(n->network, &output[k], &host->error) == GRAFT_ERR_STATE);
        NETWORK_CHECK(n->networks->state_set(n->network, &item, &host->error) == GRAFT_OK);
    }
    NETWORK_CHECK(memcmp(output[0].data, output[1].data, (size_t)output[0].n_rows * 2 * sizeof(double)) != 0);
    free(input.data), free(output[0].data), free(output[1].data);
    return GRAFT_OK;
}

/* The state must have moments of the optimiser from the first step on, but not after only a gradient or a refused
 * call. */
static int32_t refuse_moments(struct host *host, struct network_rank *n)
{
    graft_state_item item = { .size = sizeof item, .dtype = GRAFT_F64, .name = "optimizer.m.decoder.0.bias" };
    graft_field      input = network_state(n, NETWORK_IN, 0), target = network_state(n, NETWORK_OUT, 1);
    graft_pair       pair = GRAFT_INIT(graft_pair);
    double           loss, values[64] = { 0 };
    int64_t          steps = INT64_MAX;

    pair.input = &input, pair.target = &target;
    NETWORK_CHECK(n->networks->gradient(n->network, &pair, &loss, &host->error) == GRAFT_OK);
    NETWORK_CHECK(network_pull(n, "optimizer.m.decoder.0.bias", values) == 0);
    item.n_dims = 1;
    item.shape[0] = 7;
    item.data = values;
    NETWORK_CHECK(refuses(host, n->networks->state_set(n->network, &item, &host->error), GRAFT_ERR_FORMAT,
                          "is F64 [7], expected F64 [2]") == GRAFT_OK);
    NETWORK_CHECK(n->networks->load(n->network, file_path, &host->error) == GRAFT_ERR_FORMAT);
    NETWORK_CHECK(network_pull(n, "optimizer.v.decoder.0.bias", values) == 0);
    item.shape[0] = 2;
    NETWORK_CHECK(n->networks->state_set(n->network, &item, &host->error) == GRAFT_OK);
    NETWORK_CHECK(network_pull(n, "optimizer.m.decoder.0.bias", values) == 2);
    NETWORK_CHECK(network_pull(n, "optimizer.v.decoder.0.bias", values) == 2);
    item = (graft_state_item){ .size = sizeof item, .dtype = GRAFT_I64, .name = "progress.step", .n_dims = 1 };
    item.shape[0] = 1;
    item.data = &steps;
    NETWORK_CHECK(refuses(host, n->networks->state_set(n->network, &item, &host->error), GRAFT_ERR_FORMAT,
                          "0 to 2^62") == GRAFT_OK);
    free(input.data), free(target.data);
    return GRAFT_OK;
}

/* If memory is insufficient for training, the call must free what it has allocated, and inference must still work. */
static int32_t refuse_training(struct host *host, struct network_rank *n)
{
    graft_network_info info = GRAFT_INIT(graft_network_info);
    graft_field        input = network_state(n, NETWORK_IN, 0), output = network_field(n, NETWORK_OUT);

    for (int k = 0; k < 2; k++) {
        NETWORK_CHECK(refuses(host, network_train(host, n, 0, 1, NULL), GRAFT_ERR_NOMEM, "training: ") == GRAFT_OK);
        NETWORK_CHECK(strstr(host->error.message, " 0.0") == NULL); /* items of no bytes are not listed */
        NETWORK_CHECK(n->networks->info(n->network, &info, &host->error) == GRAFT_OK && info.bytes <= 1000000);
    }
    NETWORK_CHECK(n->networks->begin(n->network, &input, &host->error) == GRAFT_OK);
    NETWORK_CHECK(n->networks->end(n->network, &output, &host->error) == GRAFT_OK);
    free(input.data), free(output.data);
    return GRAFT_OK;
}

static void test_memory_limit(struct sample *sample)
{
    struct test_mesh large;

    test_mesh_init(&large, sample, SHAPE_TRIANGLES, 30, 0, 100000);
    network_test(&scene, &large, 1, 0, "training does not fit", TINY " memory.limit=1", refuse_training);
    test_mesh_fini(&large);
}

static void test_network_files(void)
{
    static char folder[] = "/tmp/graft-network-XXXXXX", path[64], other[64];

    if (!ok(mkdtemp(folder) != NULL, "a folder for the test is made")) return;
    snprintf(path, sizeof path, "%s/network.safetensors", folder);
    snprintf(other, sizeof other, "%s/small.safetensors", folder);
    file_path = path;
    scene.predicts = GRAFT_PREDICTS_CHANGE;
    network_test(&scene, &mesh, 1, 0, "files", SMALL, save_and_go_on);
    scene.predicts = GRAFT_PREDICTS_VALUE;
    network_test(&scene, &mesh, 1, 0, "files of doubles", SMALL " model.type=f64 norm=none", save_and_go_on);
    scene.predicts = GRAFT_PREDICTS_CHANGE;
    network_test(&scene, &mesh, 1, 0, "moments", TINY, refuse_moments);
    file_path = other;
    scene.predicts = GRAFT_PREDICTS_CHANGE;
    ok_fault("a small file of a network is saved", network_run(&scene, &mesh, 1, 0, TINY, write_body));
    ok_fault("each allocation of loading and saving a network fails in turn",
             network_run(&scene, &mesh, 1, 0, TINY, fail_each));
    ok(files_in(folder) == 2, "the folder has only the files that were saved");
    remove_folder(folder);
}

int main(void)
{
    struct sample sample = { 5 };

    alarm(200);
    test_mesh_init(&mesh, &sample, SHAPE_TRIANGLES, 5, 0, 1000);
    scene.has_boundary = 1;
    scene.dtype = GRAFT_F64;
    scene.predicts = GRAFT_PREDICTS_CHANGE;
    network_test(&scene, &mesh, 1, 0, "a pair that is not finite", SMALL " model.type=f64", refuse_nonfinite);
    network_test(&scene, &mesh, 1, 0, "memory", SMALL, allocate_nothing);
    test_memory_limit(&sample);
    network_test(&scene, &mesh, 1, 0, "items", SMALL " model.type=f64", set_items);
    test_network_files();
    test_mesh_fini(&mesh);
    return done();
}
