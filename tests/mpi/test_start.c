/* Checks a host without any MPI code. Its library starts MPI on request and ends it: "test_start LAUNCHER N", where
 * LAUNCHER is "openmpi", "mpich" or "none", and N is the number of ranks that it started.
 * SPDX-License-Identifier: Apache-2.0 */
#include "graft_load.h"
#include "graft_transport.h"
#include "harness/tap.h"

#include <unistd.h>

static const graft_api           *api;
static const graft_transport_api *transports;
static graft_error                error = { .size = sizeof error };

static int32_t open_by(const char *module, int32_t start, graft_transport *t)
{
    graft_communicator communicator = GRAFT_INIT(graft_communicator);

    communicator.start = start;
    return transports->open(api->context, module, &communicator, t, &error);
}

static int start_refused(int32_t expected, const char *words, int32_t rc)
{
    return rc == expected && strstr(error.message, words) != NULL;
}

/* Send a message around the ring of ranks. */
static int ring(graft_transport *t)
{
    graft_request *request[2] = { NULL, NULL };
    int32_t        done[2] = { 0, 0 }, sent = t->rank + 1, got = -1;
    const int32_t  before = (t->rank + t->n_ranks - 1) % t->n_ranks;

    if (t->n_ranks == 1) return 1;
    if (t->receive(t->self, before, 1, &got, sizeof got, &request[0], &error) < 0 ||
        t->send(t->self, (t->rank + 1) % t->n_ranks, 1, &sent, sizeof sent, &request[1], &error) < 0)
        return 0;
    for (int i = 0; i < 2; i++)
        while (!done[i])
            if (t->test(t->self, request[i], &done[i], &error) < 0) return 0;
    return got == before + 1;
}

static void test_none(void)
{
    graft_transport t = GRAFT_INIT(graft_transport);

    ok(start_refused(GRAFT_ERR_NOT_FOUND, "no launcher", open_by("auto", 1, &t)), "without a launcher: %s",
       error.message);
    if (dlopen("libmpi.so.40", RTLD_NOW | RTLD_LOCAL) == NULL ||
        dlopen("libmpich.so.12", RTLD_NOW | RTLD_LOCAL) == NULL) {
        skip(2, "this needs the libraries of Open MPI and of MPICH");
        return;
    }
    ok(start_refused(GRAFT_ERR_STATE, "two MPIs", open_by("auto", 0, &t)), "with two MPIs: %s", error.message);
    ok(start_refused(GRAFT_ERR_STATE, "two MPIs", open_by("openmpi", 1, &t)), "also for a module that has a name");
}

static void test_launched(const char *launcher, int32_t n)
{
    const char *const other = strcmp(launcher, "mpich") == 0 ? "openmpi" : "mpich";
    graft_transport   t = GRAFT_INIT(graft_transport), again = t;
    const int         wrong = start_refused(GRAFT_ERR_STATE, "launcher", open_by(other, 1, &t));
    const int32_t     rc = open_by("auto", 1, &t);
    int               is_first, passed;

    if (rc < 0) {
        ok(0, "MPI is started: %s", error.message);
        return;
    }
    is_first = t.rank == 0;
    passed = ring(&t) && t.n_ranks == n;
    t.close(t.self);
    if (!passed) fprintf(stderr, "rank %d of %d has another ring\n", t.rank, t.n_ranks);
    if (!is_first) return;
    ok(wrong, "the module of the other MPI is refused under this launcher");
    ok(passed, "%d ranks are started, and a message goes round", n);
    ok(start_refused(GRAFT_ERR_STATE, "finalised", open_by("auto", 1, &again)), "MPI cannot be started twice: %s",
       error.message);
}

int main(int count, char **arguments)
{
    graft_transport t = GRAFT_INIT(graft_transport);
    int             is_none;

    alarm(60);
    if (count < 3 || graft_load(getenv("GRAFT_LIBRARY"), NULL, &api, &error) < 0) return 2;
    transports = graft_interface(api, GRAFT_TRANSPORT_ID, sizeof *transports);
    is_none = strcmp(arguments[1], "none") == 0;
    if (is_none) {
        ok(start_refused(GRAFT_ERR_NOT_FOUND, "has no MPI", open_by("auto", 0, &t)), "without an MPI: %s",
           error.message);
        ok(start_refused(GRAFT_ERR_STATE, "was not asked to start", open_by("mpich", 0, &t)), "nor by a name: %s",
           error.message);
        test_none();
    } else {
        test_launched(arguments[1], (int32_t)strtol(arguments[2], NULL, 10));
    }
    api->close(api->context);
    return tap_count > 0 ? done() : 0;
}
