/* Checks a host without OpenMP that loads, uses and unloads the library many times, and two contexts at the same time.
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness/tap.h"
#include "scenario.h"

#include "graft_load.h"

#include <time.h>

enum { ROUNDS = 100, WARM = 3, PAUSE_NS = 2000000 };

static struct strict_host host;
static struct scene       scene;
static graft_error        error = { .size = sizeof error };

static int entries(const char *folder)
{
    DIR *list = opendir(folder);
    int  count = 0;

    files_check(list != NULL, folder);
    while (readdir(list) != NULL) count++;
    closedir(list);
    return count;
}

/* Resident memory of the process in pages. */
static long resident(void)
{
    FILE *file = fopen("/proc/self/statm", "r");
    long  size = 0, pages = 0;

    if (file == NULL || fscanf(file, "%ld %ld", &size, &pages) != 2) pages = -1;
    if (file != NULL) fclose(file);
    return pages;
}

/* The kernels that a context has chosen, and its results. */
struct outcome {
    char   mxm[512], trainer[512];
    double loss;
};

static int32_t make_trainer(const graft_api *api, const char *seed, graft_trainer **trainer)
{
    const graft_train_api *train = api->get_interface(api->context, GRAFT_TRAIN_ID);
    int32_t                rc = api->set(api->context, "threads", "2", &error);

    if (rc == GRAFT_OK) rc = api->set(api->context, "seed", seed, &error);
    if (rc == GRAFT_OK) rc = train->create(api->context, &scene.set[SCENE_DENSE].dataset, trainer, &error);
    return rc;
}

static int32_t one_epoch(const graft_api *api, graft_trainer *trainer, struct outcome *outcome)
{
    const graft_train_api *train = api->get_interface(api->context, GRAFT_TRAIN_ID);
    const graft_mxm_api   *mxm = api->get_interface(api->context, GRAFT_MXM_ID);
    graft_epoch            epoch = GRAFT_INIT(graft_epoch);
    int32_t                rc = train->epoch(trainer, &epoch, &error);

    if (rc == GRAFT_OK) rc = train->explain(trainer, outcome->trainer, sizeof outcome->trainer, &error);
    if (rc == GRAFT_OK) rc = mxm->explain(api->context, NULL, outcome->mxm, sizeof outcome->mxm, &error);
    outcome->loss = epoch.loss;
    return rc;
}

/* Train with `count` contexts alternately, and destroy the trainers at the end. */
static int32_t train_in_turns(int count, const graft_api *const *api, const char *const *seed, struct outcome *outcome)
{
    graft_trainer *trainer[2] = { NULL, NULL };
    int32_t        rc = GRAFT_OK;

    for (int i = 0; i < count; i++) outcome[i] = (struct outcome){ .loss = 0 };
    for (int i = 0; i < count && rc == GRAFT_OK; i++) rc = make_trainer(api[i], seed[i], &trainer[i]);
    for (int turn = 0; turn < 3 * count && rc == GRAFT_OK; turn++) {
        rc = one_epoch(api[turn % count], trainer[turn % count], &outcome[turn % count]);
    }
    for (int i = 0; i < count; i++) {
        const graft_train_api *train = api[i]->get_interface(api[i]->context, GRAFT_TRAIN_ID);
        train->destroy(trainer[i]);
    }
    return rc;
}

/* Load, use, close and unload the library. */
static int32_t one_round(struct outcome *outcome)
{
    const char      *path = getenv("GRAFT_LIBRARY");
    const graft_api *api = NULL;
    void            *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    int32_t          rc = graft_load(path, &host.table, &api, &error);

    if (rc == GRAFT_OK) {
        rc = train_in_turns(1, &api, (const char *const[]){ "5" }, outcome);
        api->close(api->context);
    }
    if (library != NULL) {
        dlclose(library);
        dlclose(library); /* graft_load() counts its references itself */
    }
    nanosleep(&(struct timespec){ 0, PAUSE_NS }, NULL);
    return rc;
}

static void test_rounds(void)
{
    struct outcome first, now;
    int            threads = 0, files = 0, differ = 0, failed = 0, leaked = 0;
    long           pages = 0;

    ok(dlsym(RTLD_DEFAULT, "omp_get_max_threads") == NULL, "this host knows no OpenMP");
    for (int round = 0; round < ROUNDS; round++) {
        failed += one_round(&now) != GRAFT_OK;
        leaked += host.live_bytes != 0;
        if (round == 0) first = now;
        differ += memcmp(&first, &now, sizeof now) != 0;
        if (round + 1 != WARM) continue;
        threads = entries("/proc/self/task");
        files = entries("/proc/self/fd");
        pages = resident();
    }
    ok_or(failed == 0, error.message, "%d times load, train, close, unload", ROUNDS);
    ok(differ == 0, "the same kernel, the same module, the same loss every time: %.9g", first.loss);
    ok(leaked == 0 && host.live_blocks == 0, "close gives all memory back");
    ok(entries("/proc/self/task") == threads, "%d threads, and no more", threads - 2);
    ok(entries("/proc/self/fd") == files, "%d files, and no more", files - 2);
#ifdef __SANITIZE_ADDRESS__
    skip(1, "growth by %ld pages says nothing where a sanitizer keeps what is freed", resident() - pages);
#else
    ok(resident() - pages < 256, "the process grew by %ld pages in the last %d rounds", resident() - pages,
       ROUNDS - WARM);
#endif
    ok(dlopen(getenv("GRAFT_LIBRARY"), RTLD_NOW | RTLD_NOLOAD) != NULL, "the library stays, for its threads");
}

/* Run a product with kernel `name`, and one with auto, whose kernel is stored in `taken`. */
static int32_t run_module(const graft_api *api, const char *name, char taken[512])
{
    static float         c[32][2];
    const graft_mxm_api *mxm = api->get_interface(api->context, GRAFT_MXM_ID);
    const graft_csr     *graph = scene.set[SCENE_DENSE].dataset.graph;
    const graft_dense    b = { sizeof b, GRAFT_F32, graph->n_cols, 2, 2, (float[32][2]){ { 1 } } };
    const graft_dense    out = { sizeof out, GRAFT_F32, graph->n_rows, 2, 2, c };
    graft_mxm_args       args = GRAFT_INIT(graft_mxm_args);
    const char *const    kernels[] = { name, "auto" };
    int32_t              rc = mxm->matrix_create(api->context, graph, 0, &args.a, &error);

    args.semiring = GRAFT_PLUS_SECOND;
    args.b = &b;
    args.c = &out;
    for (int i = 0; i < 2 && rc == GRAFT_OK; i++) {
        rc = api->set(api->context, "mxm.kernel", kernels[i], &error);
        if (rc == GRAFT_OK) rc = mxm->run(api->context, &args, &error);
        if (rc == GRAFT_OK) rc = mxm->explain(api->context, NULL, taken, 512, &error);
        if (rc == GRAFT_OK && i == 0 && strncmp(taken, name, strlen(name)) != 0) rc = GRAFT_ERR_MODULE;
    }
    mxm->matrix_destroy(args.a);
    return rc;
}

/* Load the library, run a module from a folder of its own, close and unload. No thread may be left waiting in unmapped
 * code. */
static void test_module_rounds(const char *name)
{
    char               file[64], target[PATH_MAX], taken[2][512] = { "", "" };
    struct data_folder folder;
    int                failed = 0, differ = 0, threads = 0;

    snprintf(file, sizeof file, "graft_kernel_%s.so", name);
    snprintf(target, sizeof target, "%.3000s/%s", getenv("GRAFT_TEST_MODULES"), file);
    if (access(target, R_OK) != 0) {
        skip(3, "kernel %s was not built", name);
        return;
    }
    folder_create(&folder);
    files_check(symlink(target, folder_path(&folder, file)) == 0, file);
    for (int round = 0; round < ROUNDS; round++) {
        const graft_api *api = NULL;
        void            *library = dlopen(getenv("GRAFT_LIBRARY"), RTLD_NOW | RTLD_LOCAL);
        int32_t          rc = graft_load(getenv("GRAFT_LIBRARY"), &host.table, &api, &error);

        if (rc == GRAFT_OK) rc = api->set(api->context, "module.path", folder.path, &error);
        if (rc == GRAFT_OK) rc = run_module(api, name, taken[round > 0]);
        failed += rc != GRAFT_OK || host.live_bytes == 0;
        if (api != NULL) api->close(api->context);
        failed += host.live_bytes != 0;
        differ += round > 0 && strcmp(taken[0], taken[1]) != 0;
        if (round == WARM) threads = entries("/proc/self/task");
        dlclose(library);
        dlclose(library);
    }
    ok_or(failed == 0, error.message, "kernel %s: %d times load, run, close, unload", name, ROUNDS);
    ok(differ == 0 && strncmp(taken[0], name, strlen(name)) == 0, "auto takes the same every time: %s", taken[1]);
    ok(entries("/proc/self/task") == threads, "%d threads, and no more", threads - 2);
    folder_destroy(&folder);
}

static const char *reload_value_of(const graft_api *api, const char *key)
{
    graft_option option = GRAFT_INIT(graft_option);

    for (int32_t i = 0; api->option_info(api->context, i, &option, NULL) == GRAFT_OK; i++) {
        if (strcmp(option.key, key) == 0) return option.value;
    }
    return "";
}

/* Two contexts that are used alternately must give the same results as each alone. */
static void test_two_contexts(void)
{
    const char *const  seed[2] = { "5", "6" };
    struct strict_host hosts[2];
    struct outcome     alone[2], together[2];
    const graft_api   *api[2] = { NULL, NULL };
    int32_t            rc = GRAFT_OK;

    for (int i = 0; i < 2; i++) strict_host_init(&hosts[i]);
    for (int i = 0; i < 2 && rc == GRAFT_OK; i++) {
        rc = graft_load(getenv("GRAFT_LIBRARY"), &hosts[i].table, &api[i], &error);
        if (rc == GRAFT_OK) rc = train_in_turns(1, &api[i], &seed[i], &alone[i]);
        if (rc == GRAFT_OK) api[i]->close(api[i]->context);
    }
    for (int i = 0; i < 2 && rc == GRAFT_OK; i++) {
        rc = graft_load(getenv("GRAFT_LIBRARY"), &hosts[i].table, &api[i], &error);
    }
    if (!ok(rc == GRAFT_OK && api[0] != api[1] && api[0]->context != api[1]->context, "two contexts at a time")) return;
    rc = api[0]->set(api[0]->context, "model", "gcn", &error);
    ok(rc == GRAFT_OK && strcmp(reload_value_of(api[0], "model"), "gcn") == 0 &&
           strcmp(reload_value_of(api[1], "model"), "sage") == 0,
       "an option of one is not an option of the other");
    rc = api[0]->set(api[0]->context, "model", "sage", &error);
    if (rc == GRAFT_OK) rc = train_in_turns(2, api, seed, together);
    ok(rc == GRAFT_OK && alone[0].loss == together[0].loss && alone[1].loss == together[1].loss &&
           alone[0].loss != alone[1].loss,
       "in turns, each gives what it gives alone: %.9g and %.9g", together[0].loss, together[1].loss);
    api[0]->close(api[0]->context);
    ok(hosts[0].live_bytes == 0 && hosts[1].live_bytes > 0, "closing one leaves the other");
    rc = train_in_turns(1, &api[1], &seed[1], &together[1]);
    ok(rc == GRAFT_OK && alone[1].loss == together[1].loss, "which goes on");
    api[1]->close(api[1]->context);
    ok(hosts[1].live_bytes == 0 && hosts[0].fault == NULL && hosts[1].fault == NULL, "and is closed");
}

int main(void)
{
    scene_init(&scene);
    strict_host_init(&host);
    test_rounds();
    test_module_rounds("gomp");
    test_module_rounds("libomp");
    test_two_contexts();
    scene_fini(&scene);
    return done();
}
