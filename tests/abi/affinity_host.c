/* A host without OpenMP that prints the processors on which its threads may run: affinity_host LIBRARY. The first
 * thread prints one line before it loads the library, one after that, and one after a call. The second thread makes a
 * call with several OpenMP threads and prints one line before and one after it. The last line is the number of threads
 * of the process.
 * SPDX-License-Identifier: Apache-2.0 */
#include "graft_load.h"
#include "graft_mxm.h"

#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

enum { ROWS = 4000, WIDTH = 64 };

static const graft_api *api;
static graft_error      error = { .size = sizeof error };

static void say(const char *when)
{
    cpu_set_t here;

    printf("%s:", when);
    if (sched_getaffinity(0, sizeof here, &here) != 0) perror("sched_getaffinity");
    for (int i = 0; i < CPU_SETSIZE; i++)
        if (CPU_ISSET(i, &here)) printf(" %d", i);
    printf("\n");
}

static int tasks(void)
{
    DIR *list = opendir("/proc/self/task");
    int  count = -2; /* the entries "." and ".." are not counted */

    if (list == NULL) return 0;
    while (readdir(list) != NULL) count++;
    closedir(list);
    return count;
}

/* A product large enough for two threads. */
static int32_t affinity_call(void)
{
    static float         b[ROWS][WIDTH], c[ROWS][WIDTH];
    static int64_t       row_ptr[ROWS + 1];
    static int32_t       col_idx[ROWS];
    const graft_mxm_api *mxm = graft_interface(api, GRAFT_MXM_ID, sizeof *mxm);
    const graft_dense    from = graft_dense_in(GRAFT_F32, ROWS, WIDTH, b);
    graft_dense          to = from;
    graft_csr            graph = GRAFT_INIT(graft_csr);
    graft_mxm_args       args = GRAFT_INIT(graft_mxm_args);
    graft_matrix        *matrix = NULL;
    int32_t              rc;

    for (int32_t i = 0; i < ROWS; i++) {
        col_idx[i] = i;
        row_ptr[i + 1] = i + 1;
    }
    graph.index_type = GRAFT_I32;
    graph.n_rows = graph.n_cols = ROWS;
    graph.row_ptr = row_ptr;
    graph.col_idx = col_idx;
    to.data = c;
    rc = mxm->matrix_create(api->context, &graph, 0, &matrix, &error);
    args.semiring = GRAFT_PLUS_SECOND;
    args.a = matrix;
    args.b = &from;
    args.c = &to;
    args.threads = 2;
    if (rc == GRAFT_OK) rc = mxm->run(api->context, &args, &error);
    mxm->matrix_destroy(matrix);
    return rc;
}

static void *second_thread(void *failed)
{
    say("second, before");
    if (affinity_call() < 0) *(int *)failed = 1;
    say("second, called");
    return NULL;
}

int main(int argc, char **argv)
{
    int       failed = 0;
    pthread_t thread;

    say("first, before");
    if (graft_load(argc > 1 ? argv[1] : NULL, NULL, &api, &error) < 0) goto done;
    say("first, loaded");
    if (affinity_call() < 0) goto done;
    say("first, called");
    failed = pthread_create(&thread, NULL, second_thread, &failed) != 0 || pthread_join(thread, NULL) != 0 || failed;
    printf("threads: %d\n", tasks());
    api->close(api->context);
    if (failed == 0) return 0;
done:
    printf("%s\n", error.message);
    return 1;
}
