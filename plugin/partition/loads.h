/* The loads of parts: current and allowed amounts of every quantity in each part, and the part with the least load.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/memory.h"
#include "partition/partition.h"

/** The largest number of passes. Each move reduces the excess, so passes terminate; more of them gain little. */
enum { GR_RELIEVE_PASSES = 8 };

struct gr_loads {
    int32_t  parts, leaves; /* leaves: the smallest power of two >= parts */
    int64_t  total[GR_SHARES];
    int64_t  allowed[GR_SHARES]; /* largest amount of each quantity in a part, at least 1 */
    int64_t *has;                /* [parts x GR_SHARES] amounts in each part */
    int64_t *own;                /* [parts x GR_SHARES] added by this rank since the ranks last exchanged loads */
    int64_t  scale;              /* factor of `own` in `has` until the next exchange; see joint.h */
    double  *level;              /* [parts] the maximum over the quantities of has / allowed */
    int32_t *winner;             /* [2 leaves] a tournament tree: the part of the least level below each node, or -1 */
    int64_t *count;              /* [parts] neighbours of the current vertex; zero between calls */
    int32_t *touched;            /* [parts] the parts whose count is not zero */

    struct gr_pool pool; /* which has the arrays */
};

/** Initialise with empty parts; `total` is the sum over all vertices. \return OK; ERR_NOMEM */
int32_t gr_partition_loads_init(const graft_context *context, struct gr_loads *loads, const int64_t total[GR_SHARES],
                                int32_t parts, graft_error *error);
void    gr_partition_loads_fini(const graft_context *context, struct gr_loads *loads);

/** Allow `limit` times the mean of each quantity, or the mean rounded up; initially the limit is GR_PARTITION_LIMIT.
 *  The ranks must have exchanged loads since the last change. */
void gr_partition_loads_limit(struct gr_loads *loads, double limit);

/** Make all parts empty. */
void gr_partition_loads_clear(struct gr_loads *loads);

/** Compute levels and tree from loads->has, which other code has changed, and set loads->own to 0. */
void gr_partition_loads_settle(struct gr_loads *loads);

/** Whether a part has more than is allowed. */
int gr_partition_loads_exceed(const struct gr_loads *loads);

/** Add a vertex to a part (sign 1) or remove it (-1). O(log parts). */
void gr_partition_loads_add(struct gr_loads *loads, int32_t part, const int64_t weight[GR_SHARES], int sign);

/** Move a vertex from its owner to another part. */
void gr_partition_loads_move(struct gr_loads *loads, const int64_t weight[GR_SHARES], int32_t *owner, int32_t to);

/** The load that a part would have with the vertex, over the quantities of the vertex. It fits if this is at most 1. */
double gr_partition_loads_with(const struct gr_loads *loads, int32_t part, const int64_t weight[GR_SHARES]);

/** Find the part with the least load; if the vertex does not fit there, the part with the least
 *  gr_partition_loads_with(). */
int32_t gr_partition_loads_least(const struct gr_loads *loads, const int64_t weight[GR_SHARES]);

/** Count the neighbours of a vertex in each part, into loads->count and ->touched, which the caller sets to 0 again.
 *  \return the number of parts that have one */
int32_t gr_partition_loads_count(struct gr_loads *loads, const struct gr_slice *slice, int64_t row,
                                 const int32_t *owner);

/** Find, among the parts that have neighbours of the vertex and into which it fits, the part with the largest number of
 *  neighbours times (1 - gr_partition_loads_with()); of equal ones that with the least load, then the first. Returns -1
 *  if there is none.
 *  \param[in] mine [n_cols] The owners of the columns; -1: none yet. */
int32_t gr_partition_loads_nearest(struct gr_loads *loads, const struct gr_slice *slice, int64_t row,
                                   const int64_t weight[GR_SHARES], const int32_t *mine);

/** Move vertices out of parts that have more than is allowed, while each move reduces the total excess, for at most a
 *  fixed number of passes. No part loses its last vertex. */
void gr_partition_loads_relieve(struct gr_loads *loads, const struct gr_slice *slice, int32_t *mine);

/** Do one of the passes of gr_partition_loads_relieve(). \return the number of vertices moved */
int64_t gr_partition_loads_relieve_pass(struct gr_loads *loads, const struct gr_slice *slice, int32_t *mine);
