/* Options that must be the same on all ranks: each of them, set to two values, is one error that all ranks return, with
 * the option, both values and both ranks. The options and their values come from the library.
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness/hosts.h"
#include "harness/tap.h"
#include "oracle/sample.h"

#include "graft_load.h"

#include <string.h>
#include <unistd.h>

enum { RANKS = 3, TRIED = 20 };

/* An option, and two values of it. */
struct difference {
    graft_option                 option;
    char                         values[2][32];
    int32_t                      odd_rank; /* this rank has the second value */
    const struct sample_dataset *set;
};

/* Words that may be values of an option: those of its type, with a number for the letter of "bytes:N", and some that
 * are values of numbers, lists and texts. Returns how many there are. */
static int candidates(const graft_option *option, char (*words)[32])
{
    static const char *const others[] = { "1", "2", "0", "0.25", "0.75", "simd", "reference" };
    const char              *rest = option->type;
    int                      count = 0;

    while (strchr(option->type, '|') != NULL && *rest != '\0' && count < TRIED) {
        const size_t length = strcspn(rest, "|");
        char        *word = words[count++];

        snprintf(word, sizeof *words, "%.*s", (int)length, rest);
        if (strchr(word, ':') != NULL && word[length - 1] >= 'A' && word[length - 1] <= 'Z') word[length - 1] = '1';
        rest += length + (rest[length] == '|');
    }
    for (size_t i = 0; i < sizeof others / sizeof *others && count < TRIED; i++)
        snprintf(words[count++], sizeof *words, "%s", others[i]);
    return count;
}

/* Choose the first two words that the library accepts. Returns 0 if there are none. */
static int choose_values(const graft_api *api, struct difference *d)
{
    graft_error error = GRAFT_INIT(graft_error);
    char        words[TRIED][32];
    const int   count = candidates(&d->option, words);
    int         found = 0;

    for (int i = 0; i < count && found < 2; i++)
        if (api->set(api->context, d->option.key, words[i], &error) == GRAFT_OK)
            memcpy(d->values[found++], words[i], sizeof *words);
    return found == 2;
}

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

/* What is wrong with the errors of the ranks, or NULL. */
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

    if (!choose_values(api, d)) {
        ok(0, "two values of option %s (%s %s) are found", d->option.key, d->option.type, d->option.range);
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
    ok(compared > 30, "%d options must be the same on all ranks", compared);
    api->close(api->context);
    sample_dataset_fini(&set);
    return done();
}
