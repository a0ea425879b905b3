/* Checks options that must be the same on all ranks. For each of them two ranks set different values, and all ranks
 * must return one error that names the option, both values and both ranks. The library lists the options and their
 * values.
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness/hosts.h"
#include "harness/tap.h"
#include "oracle/sample.h"

#include "graft_load.h"

#include <string.h>
#include <unistd.h>

enum { RANKS = 3 };

/* An option and two values of it. */
struct difference {
    graft_option                 option;
    char                         values[2][32];
    int32_t                      odd_rank; /* the rank that has the second value */
    const struct sample_dataset *set;
};

static int32_t create_with_difference(struct host *host)
{
    const struct difference *d = host->all->arg;
    struct host_trainer      t;
    char                     setting[128];
    int32_t                  rc;

    snprintf(setting, sizeof setting, "%s=%s", d->option.key, d->values[host->rank == d->odd_rank]);
    host_set(host->api, setting);
    rc = host_trainer_create(host, &d->set->dataset, SLICES_EVEN, &t);
    host_trainer_destroy(host, &t);
    return rc;
}

/* Compare the errors of the ranks. The result is NULL or what is wrong with them. */
static const char *find_fault(const struct hosts *hosts, const struct difference *d)
{
    const char *message = hosts->at[0].error.message;
    char        expected[3][128];

    if (hosts->error.code != 0) return hosts->error.message;
    snprintf(expected[0], sizeof expected[0], "option %s is ", d->option.key);
    snprintf(expected[1], sizeof expected[1], "%s on rank %d", d->values[0], d->odd_rank == 0);
    snprintf(expected[2], sizeof expected[2], "%s on rank %d", d->values[1], d->odd_rank);
    for (int32_t i = 0; i < RANKS; i++) {
        if (hosts->at[i].rc != GRAFT_ERR_ARG) return "a rank returns another status than ERR_ARG";
        if (strcmp(hosts->at[i].error.message, message) != 0) return "the ranks have different messages";
    }
    for (int i = 0; i < 3; i++)
        if (strstr(message, expected[i]) == NULL) return "the message misses the option, or a value and its rank";
    return NULL;
}

static void test_difference(const graft_api *api, struct difference *d)
{
    static const char *const settings[] = { "threads=1", "halo.timeout=20", NULL };
    static struct hosts      hosts;
    const char              *fault;

    if (!host_option_values(api, &d->option, d->values)) {
        ok(0, "two legal values of option %s (%s %s) are found", d->option.key, d->option.type, d->option.range);
        return;
    }
    hosts_run(&hosts, RANKS, settings, create_with_difference, d);
    fault = find_fault(&hosts, d);
    if (!ok(fault == NULL, "%s: %s, but %s on rank %d", d->option.key, d->values[0], d->values[1], d->odd_rank))
        diag("%s: %d: %s", fault, hosts.at[0].rc, hosts.at[0].error.message);
}

int main(void)
{
    struct sample         sample = { 5 };
    struct sample_dataset set;
    struct difference     d = { .set = &set, .option = GRAFT_INIT(graft_option) };
    graft_error           error = GRAFT_INIT(graft_error);
    const graft_api      *api = NULL;
    int                   compared = 0;

    alarm(100);
    sample_dataset_init(&set, &sample, 30, 5, 3, 0, 0);
    if (!ok(graft_load(getenv("GRAFT_LIBRARY"), NULL, &api, &error) == GRAFT_OK, "a context opens")) return done();
    for (int32_t i = 0; api->option_info(api->context, i, &d.option, &error) == GRAFT_OK; i++) {
        if (d.option.scope != GRAFT_SCOPE_SAME) continue;
        d.odd_rank = i % RANKS;
        test_difference(api, &d);
        compared++;
    }
    ok(compared > 30, "%d options must have the same value on all ranks", compared);
    api->close(api->context);
    sample_dataset_fini(&set);
    return done();
}
