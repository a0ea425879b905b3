/* Saves and restores the processors of the calling thread.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/affinity.h"

#include <omp.h>
#include <sched.h>
#include <string.h>

static int read_mask(struct gr_affinity *affinity)
{
    memset(affinity->processors, 0, sizeof affinity->processors);
    return sched_getaffinity(0, sizeof affinity->processors, (cpu_set_t *)affinity->processors) == 0;
}

void gr_affinity_save(struct gr_affinity *affinity)
{
    affinity->is_known = read_mask(affinity);
}

void gr_affinity_restore(const struct gr_affinity *affinity)
{
    struct gr_affinity now;

    if (!affinity->is_known || !read_mask(&now)) return;
    if (memcmp(now.processors, affinity->processors, sizeof now.processors) == 0) return;
    (void)sched_setaffinity(0, sizeof affinity->processors, (const cpu_set_t *)affinity->processors);
}

int gr_affinity_is_at_risk(void)
{
    return omp_get_proc_bind() != omp_proc_bind_false;
}
