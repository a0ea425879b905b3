/* The processors on which the calling thread may run. OpenMP changes them with OMP_PROC_BIND and OMP_PLACES: those of
 * the thread that loads it, and those of each thread that starts its first team. Threads of the host keep theirs.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

enum { GR_PROCESSORS_MOST = 8192 }; /* the limit of Linux on x86-64 and aarch64 */

struct gr_affinity {
    int           is_known;
    unsigned long processors[GR_PROCESSORS_MOST / (8 * sizeof(unsigned long))]; /* one bit for each processor */
};

void gr_affinity_save(struct gr_affinity *affinity);

/** For the same thread: restore its processors if they have changed. */
void gr_affinity_restore(const struct gr_affinity *affinity);

/** Whether OpenMP binds threads to processors. Asking may bind the calling thread. */
int gr_affinity_is_at_risk(void);
