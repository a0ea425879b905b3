/* Tasks: parts of a matrix with about equal numbers of entries.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GR_KERNEL_SIMD_TASKS_H
#define GR_KERNEL_SIMD_TASKS_H

#include "graft_module.h"

/** Entries in a task, about. A row of more than twice as many is a hub. It is cut into segments of this many entries,
 *  whose results are combined in order. The number is fixed, so that the result of a hub does not depend on the
 *  threads. */
enum { GR_TASK_ENTRIES = 8192, GR_TASK_ROWS = 1024 };

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
