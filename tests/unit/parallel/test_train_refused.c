/* Checks that what ranks with shared columns cannot do is refused on all ranks, with one sentence that names the option
 * and the value it expects. Nothing may be made then, and a trainer that refuses a change must go on.
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness/hosts.h"
#include "harness/outputs.h"
#include "harness/tap.h"
#include "oracle/sample.h"

#include <string.h>
#include <unistd.h>

enum { N = 60, FEATURES = 6, CLASSES = 3, RANKS = 4 };

struct refusal {
    const char *settings, *change; /* options at first, and set later in the context of a trainer; "" for none */
    const char *words;             /* words of the error; NULL if there must be none */
};

#define WHOLE_ROWS                                                                                                     \
    "which splits columns of sums over neighbours, but attention reads whole rows; expected parallel=partition"
#define NO_WIDTHS                                                                                                      \
    "where a record has elements of several rows, whose ranges decide no width; expected another halo.codec than "     \
    "adaptive"
#define DIVISOR ", expected a divisor of the 4 ranks, such as 2"

static const struct refusal refusals[] = {
    { "parallel=feature model=gat", "", "option 'parallel' is feature, " WHOLE_ROWS },
    { "parallel=grid model=gat", "", "option 'parallel' is grid, " WHOLE_ROWS },
    { "parallel=grid aggregator=max", "", NULL },
    { "parallel=feature aggregator=max feature.graph=stream", "halo.codec=q8", NULL },
    { "parallel=grid aggregator=max feature.graph=stream", "halo.codec=q8", NULL },
    { "parallel=feature aggregator=min", "", NULL },
    { "parallel=grid aggregator=min feature.graph=stream", "halo.codec=q8", NULL },
    { "parallel=grid aggregator=min", "halo.codec=adaptive", "option 'parallel' is grid, " NO_WIDTHS },
    { "parallel=feature feature.graph=stream", "halo.codec=q8", NULL },
    { "parallel=grid:3", "", "option 'parallel' is grid:3" DIVISOR },
    { "parallel=grid:8", "", "option 'parallel' is grid:8" DIVISOR },
    { "parallel=feature halo.codec=adaptive", "", "option 'parallel' is feature, " NO_WIDTHS },
    { "parallel=grid halo.codec=q4/adaptive", "", "option 'parallel' is grid, " NO_WIDTHS },
    { "parallel=feature", "halo.codec=adaptive/q8", "option 'parallel' is feature, " NO_WIDTHS },
    { "parallel=grid", "halo.codec=adaptive", "option 'parallel' is grid, " NO_WIDTHS },
    /* With one column this is partition parallelism. */
    { "parallel=grid:1 model=gat", "", NULL },
    { "parallel=grid:1 aggregator=max", "halo.codec=adaptive", NULL },
    { "parallel=grid:1 aggregator=min", "halo.codec=adaptive", NULL },
    { "parallel=grid:4", "halo.codec=q4", NULL },
};

struct job {
    const struct sample_dataset *set;
    const struct refusal        *refusal;
    char                         words[RANKS][512];
    int32_t                      code[RANKS], made[RANKS], continues[RANKS];
};

/* Train an epoch with the change, and one without it. */
static int32_t change_and_continue(struct host *host, const struct host_trainer *t, struct job *job)
{
    graft_epoch epoch = output_epoch();
    int32_t     rc = host->train->epoch(t->trainer, &epoch, &host->error);

    if (rc < 0 || job->refusal->change[0] == '\0') return rc;
    host_set(host->api, job->refusal->change);
    rc = host->train->epoch(t->trainer, &epoch, &host->error);
    host_set_all(host->api, "halo.codec=f32 halo.staleness=0");
    job->continues[host->rank] = host->train->epoch(t->trainer, &epoch, NULL) == GRAFT_OK;
    return rc;
}

static int32_t shared_refusal_body(struct host *host)
{
    struct job *const   job = host->all->arg;
    struct host_trainer t;
    int32_t             rc;

    host_set_all(host->api, job->refusal->settings);
    rc = host_trainer_create(host, &job->set->dataset, SLICES_EVEN, &t);
    job->made[host->rank] = t.trainer != NULL;
    if (rc == GRAFT_OK) rc = change_and_continue(host, &t, job);
    job->code[host->rank] = rc;
    snprintf(job->words[host->rank], sizeof job->words[host->rank], "%s", rc < 0 ? host->error.message : "");
    host_trainer_destroy(host, &t);
    return GRAFT_OK;
}

static void test_shared_refusal(const struct sample_dataset *set, const struct refusal *refusal)
{
    static const char *const settings[] = { "layers=2", "hidden=8", "threads=1", "halo.timeout=60", NULL };
    static struct hosts      hosts;
    struct job               job = { .set = set, .refusal = refusal };
    const int32_t            expected = refusal->words != NULL ? GRAFT_ERR_OPTION : GRAFT_OK;
    const int                changes = refusal->change[0] != '\0';
    int                      right = hosts_run(&hosts, RANKS, settings, shared_refusal_body, &job);

    for (int32_t q = 0; q < RANKS; q++) {
        const char *words = refusal->words != NULL ? refusal->words : "";

        right = right && job.code[q] == expected && strstr(job.words[q], words) != NULL;
        right = right && job.made[q] == (changes || refusal->words == NULL) && job.continues[q] == changes;
    }
    ok(right, "%s%s%s: %s", refusal->settings, changes ? ", then " : "", refusal->change,
       refusal->words != NULL ? "refused" : "allowed");
    for (int32_t q = 0; q < RANKS && !right; q++)
        diag("rank %d: status %d, made %d, continues %d, '%s'", q, job.code[q], job.made[q], job.continues[q],
             job.words[q]);
    if (hosts_fault(&hosts) != NULL) diag("%s", hosts_fault(&hosts));
}

int main(void)
{
    struct sample_dataset set;
    struct sample         sample = { 17 };

    alarm(300); /* it is slow under a sanitizer */
    sample_dataset_init(&set, &sample, N, FEATURES, CLASSES, 0, 0);
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) test_shared_refusal(&set, &refusals[i]);
    sample_dataset_fini(&set);
    return done();
}
