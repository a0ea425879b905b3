/* The rows of a rank that have neighbours. A vertex without neighbours needs no data of other ranks, so transposes
 * leave it out. In R-MAT graphs this is often half of the vertices.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/budget.h"
#include "dgraph/part.h"

/** The rows of a rank by kind: a row is linked if its vertex has an edge from or to another vertex, else lone. */
struct gr_linked_rows {
    int64_t  n, n_lone;
    int32_t *row, *lone; /* [n] linked and [n_lone] lone rows, ascending; NULL: no rank has lone rows */
};

/** Find the linked rows of a part with all rows. Collective. Always call gr_parallel_linked_rows_fini().
 *  \return OK; ERR_NOMEM: the same on all ranks; ERR_PEER. */
int32_t gr_parallel_linked_rows_init(const struct gr_budget *budget, struct gr_comm *comm, const struct gr_part *part,
                                     struct gr_linked_rows *rows, graft_error *error);
void    gr_parallel_linked_rows_fini(const graft_context *context, struct gr_linked_rows *rows);
int64_t gr_parallel_linked_rows_bytes(const struct gr_linked_rows *rows);

/** Return the row of the rank that is linked row `i`. */
static inline int64_t gr_parallel_linked_row(const struct gr_linked_rows *rows, int64_t i)
{
    return rows->row != NULL ? rows->row[i] : i;
}

/** Return the number of linked rows among the first `n_rows` rows. */
int64_t gr_parallel_linked_rows_among(const struct gr_linked_rows *rows, int64_t n_rows);

/** The part of the graph that has only the linked rows, with indices from 0 on all ranks; if no rank has lone rows, the
 *  whole part. */
struct gr_linked_part {
    struct gr_made_part made;
    int64_t             borrowed; /* bytes borrowed from the budget */
};

/** Create the part of the linked rows. Collective. Always call gr_parallel_linked_part_fini(). \return OK; ERR_NOMEM:
 *  the same on all ranks; ERR_PEER. */
int32_t gr_parallel_linked_part_init(struct gr_budget *budget, struct gr_comm *comm, const struct gr_linked_rows *rows,
                                     const struct gr_part *part, struct gr_linked_part *linked, graft_error *error);
void    gr_parallel_linked_part_fini(struct gr_budget *budget, struct gr_linked_part *linked);
