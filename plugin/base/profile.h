/* Spans of phases, which follow each other, of their parts, and of the threads in each phase.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/team.h"
#include "graft_report.h"

enum { GR_PARTS_OF_PHASE = 12 };

struct gr_part_of_phase {
    const char *phase;
    double      begin, end, waited; /* end -1: as long as the phase */
};

struct gr_profile {
    graft_span *spans; /* [capacity]; NULL: nothing is recorded, and the functions below only compare it with NULL */
    int64_t     count, capacity;
    double      origin;
    double     *times;                               /* [threads x GR_TIMES] of the current phase */
    int         threads;                             /* of `times` */
    struct gr_part_of_phase part[GR_PARTS_OF_PHASE]; /* of the current phase */
    int                     n_parts;

    /* Fields of the next spans: */
    int32_t layer, pass;
    int64_t epoch;
    int     team; /* threads */
};

/** Forget all spans. */
void gr_profile_reset(struct gr_profile *profile);

/** The time now, or 0 if nothing is recorded. */
static inline double gr_profile_begin(const struct gr_profile *profile)
{
    return profile->spans != NULL ? gr_seconds() : 0;
}

/** End a phase that began at `begin`. */
void gr_profile_end(struct gr_profile *profile, const char *phase, double begin, double bytes, double flops);

/** The same for a phase of the calling thread alone. */
void gr_profile_end_alone(struct gr_profile *profile, const char *phase, double begin);

/** A part of the phase that ends next.
 *  \param[in] begin  0: when the part before it ended.  \param[in] end  0: it lasts as long as the phase.
 *  \param[in] waits  All of it was waiting for other ranks. */
void gr_profile_part(struct gr_profile *profile, const char *name, double begin, double end, int waits);
