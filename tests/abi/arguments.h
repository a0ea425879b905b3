/* Groups of calls that must be refused. Each group runs in a child process, so that a crash is one failed check.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef ARGUMENTS_H
#define ARGUMENTS_H

#include "harness/child.h"
#include "harness/tap.h"
#include "oracle/sample.h"
#include "watch.h"

#include <math.h>
#include <sys/mman.h>

enum { N = 9, FEATURES = 4, CLASSES = 3, DOING = 256 };

static struct strict_host    host;
static struct subject        s;
static struct sample_dataset set;
static graft_error           error = { .size = sizeof error };
static char                 *doing; /* name of the current call; the parent reads it if the child dies */

/* Expect a call to return `status`. */
#define REFUSED(status, call) (snprintf(doing, DOING, "%s", #call), arguments_judge((status), (call)))

static void arguments_judge(int32_t expected, int32_t rc)
{
    if (rc != expected)
        watch_blame("%s returned %d, expected %d: %s", doing, rc, expected, rc < 0 ? error.message : "");
}

#define NUMBER(array) (sizeof(array) / sizeof *(array))

/* The result of a group of calls: NULL or an error in words. */
static const char *end_of_group(void)
{
    subject_close(&s);
    if (host.live_bytes != 0) watch_blame("%lld bytes are left", (long long)host.live_bytes);
    return watch.faults > 0 ? watch.fault : NULL;
}

struct group {
    const char *name;
    const char *(*check)(const void *arg);
    const void *arg;
};

static const char *in_context(const void *arg)
{
    const struct group *group = arg;

    watch_reset(&host);
    if (subject_open(&s, &error) < 0) return error.message;
    return group->check(group->arg);
}

static int run_groups(const struct group *groups, size_t count)
{
    struct sample sample = { 11 };

    doing = mmap(NULL, DOING, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (doing == MAP_FAILED) return 2;
    strict_host_init(&host);
    sample_dataset_init(&set, &sample, N, FEATURES, CLASSES, 0, 0);
    for (size_t i = 0; i < count; i++) {
        const char *fault = in_child(in_context, &groups[i]);

        if (!ok(fault == NULL, "%s", groups[i].name)) diag("%s; the last call was %s", fault, doing);
    }
    sample_dataset_fini(&set);
    return done();
}

#endif
