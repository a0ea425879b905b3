/* Checks files that several threads and processes write and read at the same time: two threads with contexts of their
 * own and two processes, with one partition.file and one path of a model. Temporary names must not collide even if
 * random numbers are equal, as may happen on machines that share a disk. test_shared_files [ROUNDS]
 * SPDX-License-Identifier: Apache-2.0 */
#include "graft_load.h"
#include "graft_model.h"
#include "harness/files.h"
#include "harness/hosts.h"
#include "harness/tap.h"
#include "oracle/oracle.h"
#include "oracle/sample.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { N = 40, FEATURES = 5, CLASSES = 3, WORKERS = 4, RANKS = 2 };

/* Memory that all processes share. */
struct shared {
    pthread_barrier_t barrier;
    _Atomic int       failed;
    char              message[512];
};

static struct shared        *shared;
static struct sample_dataset set;
static char                  folder[64], owners[128], model_file[128];
static int                   rounds;
static enum { DISTINCT, FEW, NONE } numbers;

/* Replaces the function of the C library, also for libgraft.so: it returns one of four numbers, or none at all. */
ssize_t getrandom(void *to, size_t bytes, unsigned flags)
{
    static _Atomic unsigned calls;

    if (numbers == DISTINCT) return syscall(SYS_getrandom, to, bytes, flags);
    if (numbers == NONE) return errno = ENOSYS, -1;
    memset(to, (int)(atomic_fetch_add(&calls, 1) % 4), bytes);
    return (ssize_t)bytes;
}

/* Replaces the function of the C library: thread ids are equal, as they can be on two machines. */
pid_t gettid(void)
{
    return 77;
}

/* Replaces the function of the C library, as the disk is not tested here. */
int fsync(int fd)
{
    (void)fd;
    return 0;
}

static void file_of(int worker, char path[128])
{
    snprintf(path, 128, "%s/seed.%d", folder, worker);
}

static int32_t first_weight_of(const struct host *host, const char *path, float *weight, graft_error *error)
{
    const graft_model_api *models = graft_interface(host->api, GRAFT_MODEL_ID, sizeof *models);
    graft_state_item       item = GRAFT_INIT(graft_state_item);
    graft_model           *model = NULL;
    int32_t                rc = models->load(host->api->context, NULL, path, &model, error);

    *weight = NAN;
    if (rc == GRAFT_OK) rc = models->item(model, 0, &item, error);
    if (rc == GRAFT_OK) *weight = ((const float *)item.data)[0];
    models->destroy(model);
    return rc;
}

/* Save the model of a worker under the common path, and load what is there then, which must be the model of some
 * worker. */
static int32_t save_and_check(struct host *host, int worker)
{
    const graft_model_api *models = graft_interface(host->api, GRAFT_MODEL_ID, sizeof *models);
    graft_model           *model = NULL;
    char                   path[128];
    float                  found, expected;
    int32_t                rc;

    file_of(worker, path);
    rc = models->load(host->api->context, NULL, path, &model, &host->error);
    if (rc == GRAFT_OK) rc = models->save(model, model_file, &host->error);
    models->destroy(model);
    if (rc == GRAFT_OK) rc = first_weight_of(host, model_file, &found, &host->error);
    for (int w = 0; w < WORKERS && rc == GRAFT_OK; w++) {
        file_of(w, path);
        rc = first_weight_of(host, path, &expected, &host->error);
        if (found == expected) return rc;
    }
    if (rc < 0) return rc;
    snprintf(host->error.message, sizeof host->error.message, "the weights are those of no worker");
    return GRAFT_ERR_FORMAT;
}

static int32_t shared_body(struct host *host)
{
    struct host_slice slice;
    graft_graph      *graph = NULL;
    int32_t           rc;

    host_slice_init(&slice, &set.dataset, SLICES_EVEN, host->rank, host->n_ranks);
    rc = host->graphs->create(host->api->context, &host->transport, &slice.slice, &graph, &host->error);
    host->graphs->destroy(graph);
    host_slice_fini(&slice);
    if (rc == GRAFT_OK && host->rank == 0) rc = save_and_check(host, *(const int *)host->all->arg);
    return rc;
}

static void *shared_files_work(void *arg)
{
    const int         worker = *(int *)arg;
    struct hosts     *hosts = calloc(1, sizeof *hosts);
    char              file[160];
    const char *const settings[] = { "partition=hash", file, "threads=1", NULL };

    snprintf(file, sizeof file, "partition.file=%s", owners);
    for (int round = 0; round < rounds; round++) {
        const char *fault;

        if (worker == 0) unlink(owners);
        pthread_barrier_wait(&shared->barrier);
        hosts_run(hosts, RANKS, settings, shared_body, arg);
        fault = hosts_fault(hosts);
        if (fault != NULL && atomic_fetch_add(&shared->failed, 1) == 0)
            snprintf(shared->message, sizeof shared->message, "round %d, worker %d: %.400s", round, worker, fault);
        pthread_barrier_wait(&shared->barrier);
    }
    free(hosts);
    return NULL;
}

static void run_workers(void)
{
    int       number[WORKERS] = { 0, 1, 2, 3 }, status;
    pthread_t thread[2];
    pid_t     child[2];

    for (int i = 0; i < 2; i++) {
        child[i] = fork();
        if (child[i] == 0) {
            shared_files_work(&number[2 + i]);
            _exit(0);
        }
    }
    for (int i = 0; i < 2; i++)
        if (pthread_create(&thread[i], NULL, shared_files_work, &number[i]) != 0) exit(2);
    for (int i = 0; i < 2; i++) pthread_join(thread[i], NULL);
    for (int i = 0; i < 2; i++)
        if (waitpid(child[i], &status, 0) != child[i] || status != 0) atomic_fetch_add(&shared->failed, 1000);
}

static void test_shared(const char *who, int count)
{
    rounds = count;
    atomic_store(&shared->failed, 0);
    run_workers();
    if (!ok(atomic_load(&shared->failed) == 0,
            "%d rounds of two threads and two processes%s: all write and read complete files", rounds, who))
        diag("%d failed; the first: %s", atomic_load(&shared->failed), shared->message);
}

/* Make the models in a process of its own. */
static void make_models(void)
{
    const graft_api       *api = NULL;
    graft_error            error = GRAFT_INIT(graft_error);
    const graft_train_api *train;
    const graft_model_api *models;

    if (graft_load(getenv("GRAFT_LIBRARY"), NULL, &api, &error) < 0) exit(2);
    train = graft_interface(api, GRAFT_TRAIN_ID, sizeof *train);
    models = graft_interface(api, GRAFT_MODEL_ID, sizeof *models);
    for (int worker = 0; worker < WORKERS; worker++) {
        graft_trainer *trainer = NULL;
        graft_model   *model = NULL;
        char           path[128], seed[32];

        snprintf(seed, sizeof seed, "seed=%d", worker);
        host_set(api, seed);
        host_set_all(api, "layers=2 hidden=4 threads=1");
        file_of(worker, path);
        if (train->create(api->context, &set.dataset, &trainer, &error) < 0 ||
            models->create(trainer, GRAFT_MODEL_STATE, &model, &error) < 0 || models->save(model, path, &error) < 0)
            printf("Bail out! %s\n", error.message), exit(2);
        models->destroy(model);
        train->destroy(trainer);
    }
    api->close(api->context);
}

int main(int argc, char **argv)
{
    const int             total = argc > 1 ? atoi(argv[1]) : 200;
    struct sample         sample = { 3 };
    pthread_barrierattr_t attributes;

    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) return 2;
    pthread_barrierattr_init(&attributes);
    pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_barrier_init(&shared->barrier, &attributes, WORKERS);
    sample_dataset_init(&set, &sample, N, FEATURES, CLASSES, 0, 0);
    snprintf(folder, sizeof folder, "/tmp/graft-shared-XXXXXX");
    if (mkdtemp(folder) == NULL) return 2;
    snprintf(owners, sizeof owners, "%s/owners", folder);
    snprintf(model_file, sizeof model_file, "%s/model", folder);
    make_models();
    test_shared("", (total + 4) / 5);
    numbers = FEW;
    test_shared(" with four numbers", total);
    numbers = NONE;
    test_shared(" without random numbers", (total + 4) / 5);
    ok(files_in(folder) == WORKERS + 3, "no temporary file is left in the folder");
    remove_folder(folder);
    sample_dataset_fini(&set);
    return done();
}
