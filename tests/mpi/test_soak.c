/* Checks that memory, file descriptors and allocations do not grow in long training over ranks. "test_soak EPOCHS"
 * trains over 3 ranks that are threads of this process, bound to one processor, where queues of messages get longest;
 * under mpiexec each process is a rank. EPOCHS are divided among trainers with all codecs, with and without staleness,
 * after a warm-up of all of them. Prints TAP. By hand:
 *
 *     GRAFT_LIBRARY=build/libgraft.so build/tests/mpi/test_soak 20000
 *     GRAFT_LIBRARY=build/libgraft.so mpiexec.mpich -n 3 build/tests/mpi/test_soak 2000
 * SPDX-License-Identifier: Apache-2.0 */
#include "graft_load.h"
#include "harness/hosts.h"
#include "harness/outputs.h"
#include "harness/tap.h"
#include "oracle/sample.h"

#include <dirent.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

enum { RANKS = 3, N = 200, FEATURES = 40, CLASSES = 4, WARM_UP = 25 };

/* The quantities that may grow after the warm-up: resident memory of the process, because the C library keeps freed
 * memory; messages between threads, which belong to rank 0 and are reused; and requests over MPI, of which the
 * transport keeps the largest number that was ever in flight. */
enum { RSS_GROWTH = 1 << 20, POOL_GROWTH = 1 << 18, REQUEST_GROWTH = 1 << 14 };

/* A rotation needs rows of 32 elements, and adaptive widths need new assignments from time to time. */
static const char *const codecs[] = { "f32",       "bf16",       "q8",    "q4",       "q2",
                                      "q1:minmax", "q1:rotated", "q8/q2", "adaptive", "adaptive/q1" };
enum { CODECS = sizeof codecs / sizeof *codecs, TRAINERS = 2 * CODECS };

static const char *const settings[] = { "epochs=1000000", "layers=2",
                                        "hidden=36",      "threads=1",
                                        "partition=hash", "halo.timeout=60",
                                        "dropout=0.3",    "halo.budget=error:0.05",
                                        "eval_every=5",   NULL };

/* The measurements of a rank; over processes the largest of all ranks. */
struct finding {
    int64_t rss, files;      /* growth of resident memory and of the number of open files of the process, measured by
                              * its first rank */
    int64_t grown[TRAINERS]; /* growth of bytes in use by the library during the life of each trainer */
    int64_t kept;            /* difference of live bytes after the last trainer and after the warm-up */
};

struct soak {
    struct sample_dataset set;
    int64_t               epochs; /* number of epochs of each trainer after the warm-up */
    struct finding        of[HOSTS_MOST];
};

static int64_t resident_bytes(void)
{
    long long pages = 0;
    FILE     *file = fopen("/proc/self/statm", "r");

    if (file == NULL || fscanf(file, "%*d %lld", &pages) != 1) pages = -1;
    if (file != NULL) fclose(file);
    return pages * sysconf(_SC_PAGESIZE);
}

static int soak_files(void)
{
    DIR *folder = opendir("/proc/self/fd");
    int  count = 0;

    if (folder == NULL) return -1;
    while (readdir(folder) != NULL) count++;
    closedir(folder);
    return count;
}

/* Train with one set of options. The last epoch follows the first measurement by a whole period of evaluation and
 * refresh. */
static int32_t train_for(struct host *host, struct soak *soak, int which, int64_t epochs)
{
    graft_epoch         epoch = output_epoch();
    struct host_trainer t = { .graph = NULL };
    char                codec[64];
    int64_t             before = 0;
    int32_t             rc;

    snprintf(codec, sizeof codec, "halo.codec=%s", codecs[which / 2]);
    host_set(host->api, codec);
    host_set(host->api, which % 2 == 1 ? "halo.staleness=1:7" : "halo.staleness=0");
    host_set(host->api, which % 3 == 2 ? "model=gat" : "model=sage");
    rc = host_trainer_create(host, &soak->set.dataset, SLICES_EVEN, &t);
    for (int64_t e = 0; e < epochs + WARM_UP && rc == GRAFT_OK; e++) {
        if (e == WARM_UP) before = atomic_load(&host->live_bytes);
        rc = host->train->epoch(t.trainer, &epoch, &host->error);
    }
    soak->of[host->rank].grown[which] = atomic_load(&host->live_bytes) - before;
    host_trainer_destroy(host, &t);
    return rc;
}

/* Replace the measurements of this process by the largest of all processes. */
static int32_t merge_findings(struct host *host, struct finding *found)
{
    const graft_group_api *t = graft_interface(host->api, GRAFT_GROUP_ID, GRAFT_HAS(graft_group_api, destroy));
    graft_group           *group = NULL;
    int32_t                rc = t->create(host->api->context, &host->transport, &group, &host->error);

    if (rc == GRAFT_OK) rc = t->maximum(group, sizeof *found / sizeof(int64_t), (int64_t *)found, &host->error);
    t->destroy(group);
    return rc;
}

static int32_t soak_body(struct host *host)
{
    struct soak    *soak = host->all->arg;
    struct finding *found = &soak->of[host->rank];
    const int       is_first = host == host->all->at;
    int64_t         before;
    int32_t         rc = GRAFT_OK;

    for (int i = 0; i < TRAINERS && rc == GRAFT_OK; i++) rc = train_for(host, soak, i, WARM_UP);
    before = atomic_load(&host->live_bytes);
    if (is_first) found->rss = -resident_bytes();
    if (is_first) found->files = -soak_files();
    for (int i = 0; i < TRAINERS && rc == GRAFT_OK; i++) rc = train_for(host, soak, i, soak->epochs);
    if (is_first) found->rss += resident_bytes();
    if (is_first) found->files += soak_files();
    found->kept = atomic_load(&host->live_bytes) - before;
    return rc == GRAFT_OK && host->all->n_ranks < host->n_ranks ? merge_findings(host, found) : rc;
}

static void report(const struct hosts *hosts, const struct soak *soak)
{
    ok(soak->of[0].rss <= RSS_GROWTH, "resident memory is flat over %lld epochs of %d trainers: %.2f MB, then %+.2f",
       (long long)soak->epochs * TRAINERS, TRAINERS, 1e-6 * (double)(resident_bytes() - soak->of[0].rss),
       1e-6 * (double)soak->of[0].rss);
    ok(soak->of[0].files == 0, "descriptors are: %d, then %+lld", soak_files(), (long long)soak->of[0].files);
    for (int i = 0; i < hosts->n_ranks; i++) {
        const struct finding *found = &soak->of[i];
        const int64_t         most = hosts->n_ranks == 1 ? REQUEST_GROWTH : i == 0 ? POOL_GROWTH : 0;
        int                   wrong = 0;

        for (int k = 0; k < TRAINERS; k++) {
            if (found->grown[k] <= most) continue;
            wrong++;
            diag("halo.codec=%s, staleness %d: %lld bytes", codecs[k / 2], k % 2, (long long)found->grown[k]);
        }
        ok(wrong == 0 && found->kept <= most, "%s allocates nothing that it keeps: %lld bytes",
           hosts->n_ranks == 1 ? "each rank" : "one rank", (long long)found->kept);
    }
}

int main(int argc, char **argv)
{
    static struct hosts hosts;
    static struct soak  soak;
    const int64_t       epochs = argc > 1 ? strtoll(argv[1], NULL, 10) : 0;
    struct sample       sample = { 15 };

    if (epochs < 1) {
        fprintf(stderr, "usage: test_soak EPOCHS\n");
        return 2;
    }
    sample_dataset_init(&soak.set, &sample, N, FEATURES, CLASSES, 0, 0);
    soak.epochs = (epochs + TRAINERS - 1) / TRAINERS;
    if (hosts_are_launched()) {
        hosts_run_launched(&hosts, settings, soak_body, &soak);
    } else {
        cpu_set_t one;

        CPU_ZERO(&one);
        CPU_SET(sched_getcpu(), &one);
        sched_setaffinity(0, sizeof one, &one);
        hosts_run(&hosts, RANKS, settings, soak_body, &soak);
    }
    if (hosts.at[0].rank == 0) {
        ok_fault("ranks train", hosts_fault(&hosts));
        report(&hosts, &soak);
    } else if (hosts_fault(&hosts) != NULL) {
        diag("%s", hosts_fault(&hosts));
    }
    sample_dataset_fini(&soak.set);
    return hosts.at[0].rank == 0 ? done() : 0;
}
