/* Records the time spans of phases, which follow each other, of parts of phases, and of the threads in each phase.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/team.h"
#include "graft_report.h"

enum { GR_PARTS_OF_PHASE = 12 };

struct gr_part_of_phase {
    const char *phase;
    double      begin, end, waited; /* seconds; end -1: the part ends with the phase */
};

struct gr_profile {
    graft_span             *spans; /* [capacity]; NULL: nothing is recorded, and the functions below return at once */
    int64_t                 count, capacity;
    double                  origin;
    double                 *times;                   /* [threads x GR_TIMES] times of threads in the current phase */
    int                     threads;                 /* the number of threads in `times` */
    struct gr_part_of_phase part[GR_PARTS_OF_PHASE]; /* parts of the current phase */
    int                     n_parts;

    /* Values that the next spans get: */
    int32_t layer, pass;
    int64_t epoch;
    int     team; /* number of threads */
};

/** Delete all spans. */
void gr_profile_reset(struct gr_profile *profile);

/** The current time, or 0 if nothing is recorded. */
static inline double gr_profile_begin(const struct gr_profile *profile)
{
    return profile->spans != NULL ? gr_seconds() : 0;
}

/** Record a phase that began at `begin` and ends now. */
void gr_profile_end(struct gr_profile *profile, const char *phase, double begin, double bytes, double flops);

/** Record a phase of the calling thread alone, which began at `begin` and ends now. */
void gr_profile_end_alone(struct gr_profile *profile, const char *phase, double begin);

/** Record a part of the phase whose end is recorded next.
 *  \param[in] begin  0: the end of the previous part.  \param[in] end  0: the end of the phase.
 *  \param[in] waits  1: the whole part was spent waiting for other ranks. */
void gr_profile_part(struct gr_profile *profile, const char *name, double begin, double end, int waits);
