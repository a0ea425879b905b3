/* Checks the small jobs of abi/scenario.h when memory runs out. Every allocation fails in turn, alone and together with
 * all later ones. The call must return an error, leave its outputs unchanged and free what it allocated. If it is
 * repeated, it must succeed. After close() no memory may be left.
 * SPDX-License-Identifier: Apache-2.0 */
#include "abi/scenario.h"
#include "harness/tap.h"

enum { MOST = 5000 };

static struct strict_host host;
static struct scene       scene;

/* Run the job while allocation number k fails. The result is whether an allocation failed. */
static int oom_play(const struct scenario *scenario, int64_t k, int on)
{
    graft_error   error = GRAFT_INIT(graft_error);
    const int64_t blocks = host.live_blocks;
    int64_t       failed;
    int32_t       rc;

    watch.host = &host;
    watch.retry = !on;
    strict_host_fail(&host, k, on);
    rc = scenario_play(scenario, &scene, &error);
    failed = host.failed;
    strict_host_fail(&host, -1, 0);
    if (rc != GRAFT_OK && rc != GRAFT_ERR_NOMEM) watch_blame("status %d: %s", rc, error.message);
    if (rc == GRAFT_ERR_NOMEM && failed == 0) watch_blame("out of memory, and there was memory: %s", error.message);
    if (host.live_blocks != blocks) watch_blame("%lld blocks are left", (long long)(host.live_blocks - blocks));
    return failed > 0;
}

static void sweep(const struct scenario *scenario, int on)
{
    int64_t k = 0;

    watch_reset(&host);
    while (k < MOST && oom_play(scenario, k, on) && watch.faults == 0) k++;
    if (!ok(watch.faults == 0 && k > 3 && k < MOST, "%s: %s of %lld allocations may fail%s", scenario->name,
            on ? "any" : "each", (long long)k, on ? ", and all after it" : "")) {
        diag("allocation %lld: %s", (long long)k, watch.fault);
    }
}

int main(void)
{
    setenv("GRAFT_THREADS", "1",
           1); /* one thread unless a job sets another number, because teams take time to start and to wait */
    strict_host_init(&host);
    scene_init(&scene);
    for (int i = 0; i < n_scenarios; i++) {
        sweep(&scenarios[i], 0);
        sweep(&scenarios[i], 1);
    }
    ok(host.fault == NULL, "the allocator was used as it should be");
    scene_fini(&scene);
    return done();
}
