/* A host for test_resources.py that requests more threads than the system can start: team_host
 * together|ranks|again|second. It prints how many threads each trainer has.
 *
 *   together   each of 3 threads is a rank, and they train
 *   ranks      the same, but each rank makes its first call alone
 *   again      one thread opens a context, closes it, and opens another one
 *   second     a second thread continues training in the context of the first
 * SPDX-License-Identifier: Apache-2.0 */
#include "graft_edge.h"
#include "graft_load.h"
#include "graft_train.h"
#include "harness/hosts.h"
#include "harness/outputs.h"
#include "oracle/oracle.h"
#include "oracle/sample.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RANKS = 3, VERTICES = 1500, FEATURES = 40, CLASSES = 3 };

static const char *const     settings[] = { "layers=2", "hidden=64", "threads=4", NULL };
static struct sample_dataset set;

/* The number of threads that a trainer says it uses; -1 for an error. */
static int train_twice(const graft_train_api *train, graft_trainer *trainer, graft_error *error)
{
    graft_epoch epoch = output_epoch();
    char        text[8192], *said;
    int         threads = -1;

    for (int i = 0; i < 2; i++)
        if (train->epoch(trainer, &epoch, error) < 0) return -1;
    if (train->explain(trainer, text, sizeof text, error) < 0) return -1;
    said = strstr(text, " threads\n");
    while (said != NULL && said > text && *said != ';') said--;
    if (said != NULL) sscanf(said, "; %d threads", &threads);
    return threads;
}

/* Make a call that needs no team. */
static int32_t gather_one(const graft_api *api, graft_error *error)
{
    const graft_edge_api *edge = graft_interface(api, GRAFT_EDGE_ID, sizeof *edge);
    const int32_t         row = 0;
    const float           in = 1;
    float                 out = 0;
    graft_index           index = GRAFT_INIT(graft_index);
    const graft_dense     from = graft_dense_in(GRAFT_F32, 1, 1, &in);
    graft_dense           to = from;

    index.index_type = GRAFT_I32;
    index.count = 1;
    index.data = &row;
    to.data = &out;
    return edge->gather_rows(api->context, &from, &index, &to, 0, error);
}

static pthread_barrier_t all_run; /* no rank may take the thread of another one */
static int               threads_of[RANKS];

static int32_t rank_body(struct host *host)
{
    static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;
    const int             *in_turn = host->all->arg;
    struct host_trainer    t;
    int32_t                rc = GRAFT_OK;

    pthread_barrier_wait(&all_run);
    pthread_mutex_lock(&one_at_a_time);
    if (*in_turn) rc = gather_one(host->api, &host->error);
    pthread_mutex_unlock(&one_at_a_time);
    if (rc == GRAFT_OK) rc = host_trainer_create(host, &set.dataset, SLICES_EVEN, &t);
    if (rc < 0) return rc;
    threads_of[host->rank] = train_twice(host->train, t.trainer, &host->error);
    host_trainer_destroy(host, &t);
    return GRAFT_OK;
}

static void ranks(int in_turn)
{
    static struct hosts hosts;

    pthread_barrier_init(&all_run, NULL, RANKS);
    hosts_run(&hosts, RANKS, settings, rank_body, &in_turn);
    if (hosts_fault(&hosts) != NULL) printf("%s\n", hosts_fault(&hosts));
    printf("threads %d %d %d\n", threads_of[0], threads_of[1], threads_of[2]);
}

struct alone {
    const graft_api       *api;
    const graft_train_api *train;
    graft_trainer         *trainer;
    graft_error            error;
    int                    threads;
};

static void open_alone(struct alone *alone)
{
    *alone = (struct alone){ .error = GRAFT_INIT(graft_error), .threads = -1 };
    if (graft_load(getenv("GRAFT_LIBRARY"), NULL, &alone->api, &alone->error) < 0) exit(2);
    for (const char *const *setting = settings; *setting != NULL; setting++) host_set(alone->api, *setting);
    alone->train = graft_interface(alone->api, GRAFT_TRAIN_ID, sizeof *alone->train);
    if (alone->train->create(alone->api->context, &set.dataset, &alone->trainer, &alone->error) < 0) exit(2);
}

static void close_alone(struct alone *alone)
{
    alone->train->destroy(alone->trainer);
    alone->api->close(alone->api->context);
}

static void *train_alone(void *arg)
{
    struct alone *alone = arg;

    alone->threads = train_twice(alone->train, alone->trainer, &alone->error);
    return NULL;
}

static void again(void)
{
    for (int i = 0; i < 2; i++) {
        struct alone alone;

        open_alone(&alone);
        train_alone(&alone);
        printf("threads %d\n", alone.threads);
        close_alone(&alone);
    }
}

static void second(void)
{
    struct alone alone;
    pthread_t    thread;

    open_alone(&alone);
    train_alone(&alone);
    printf("threads %d\n", alone.threads);
    if (pthread_create(&thread, NULL, train_alone, &alone) == 0) {
        pthread_join(thread, NULL);
        printf("threads %d\n", alone.threads);
    }
    close_alone(&alone);
}

int main(int argc, char **argv)
{
    struct sample sample = { 3 };

    if (argc != 2) return 2;
    sample_dataset_init(&set, &sample, VERTICES, FEATURES, CLASSES, 0, 0);
    if (strcmp(argv[1], "together") == 0) ranks(0);
    else if (strcmp(argv[1], "ranks") == 0) ranks(1);
    else if (strcmp(argv[1], "again") == 0) again();
    else second();
    sample_dataset_fini(&set);
    printf("alive\n");
    return 0;
}
