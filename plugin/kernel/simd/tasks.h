/* Tasks: parts of a matrix with about equal work. Where a task begins is found when a thread takes it, in the first
 * product of a matrix, so that no pass over the row pointers precedes a product.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "graft_module.h"

#include "base/limits.h"

#include <stdatomic.h>

/** A row of more than 2 GR_TASK_ENTRIES entries. It is in no task, but cut into segments of GR_TASK_ENTRIES entries. */
struct gr_hub {
    int64_t row, first_segment, n_segments;
};

/** The work of a row is the number of its entries plus this number. */
enum { GR_ROW_ENTRIES = GR_TASK_ENTRIES / GR_TASK_ROWS };

/** The work before row i is w(i) = row_ptr[i] + GR_ROW_ENTRIES i. Task t has the rows with GR_TASK_ENTRIES t <= w(i) <
 *  GR_TASK_ENTRIES (t + 1), which are at most GR_TASK_ROWS. */
struct gr_task_list {
    int64_t          n_tasks, most_hubs, n_segments;
    int              complete; /* whether all hubs are known, because a product has found them or there can be none */
    _Atomic int64_t  n_hubs;
    _Atomic int64_t *first_rows; /* [n_tasks + 1] first row of each task; 0 where it is not known yet */
    struct gr_hub   *hubs;       /* [most_hubs] */
};

/** Count the tasks, and the most hubs that a matrix of its size may have. */
void gr_kernel_tasks_count(const graft_csr *a, struct gr_task_list *list);

/** The first row of a task; for a task without rows, of the next task that has rows. [any-thread] */
int64_t gr_kernel_task_first(const graft_csr *a, struct gr_task_list *list, int64_t task);

/** Record the first row of a task, which is known when the task before it is done. [any-thread] */
static inline void gr_kernel_task_set_first(struct gr_task_list *list, int64_t task, int64_t row)
{
    atomic_store_explicit(&list->first_rows[task], row, memory_order_relaxed);
}

/** Record a hub, unless all hubs are known. Call it once for each hub. [any-thread] */
void gr_kernel_task_add_hub(struct gr_task_list *list, int64_t row);

/** Number the segments of the hubs, after all tasks have been done once. */
void gr_kernel_tasks_end(const graft_csr *a, struct gr_task_list *list);

/** The work before a row whose first entry is `entry`. */
static inline int64_t gr_work_before(int64_t entry, int64_t row)
{
    return entry + (int64_t)GR_ROW_ENTRIES * row;
}

static inline int gr_is_hub(int64_t entries)
{
    return entries > 2 * (int64_t)GR_TASK_ENTRIES;
}
