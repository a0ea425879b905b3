/* Tasks: parts of a matrix with about equal numbers of entries.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GR_KERNEL_SIMD_TASKS_H
#define GR_KERNEL_SIMD_TASKS_H

#include "graft_module.h"

#include "base/limits.h"

/** A row of more than 2 GR_TASK_ENTRIES entries is a hub, which is cut into segments. */

/** Rows row .. row_end-1; or, if segment >= 0, entries begin .. end-1 of hub `row`. */
struct gr_task {
    int64_t row, row_end;
    int64_t begin, end;
    int64_t segment; /* -1: whole rows */
};

struct gr_hub {
    int64_t row, first_segment, n_segments;
};

/** Count tasks, hubs and segments of a matrix. Where the arrays are not NULL, fill them too. */
struct gr_task_list {
    int64_t         n_tasks, n_hubs, n_segments;
    struct gr_task *tasks;
    struct gr_hub  *hubs;
};
void gr_tasks_list(const graft_csr *a, struct gr_task_list *list);

#endif
