/* Cutting a matrix into tasks of equal numbers of entries.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernel/simd/tasks.h"

#include "base/assert.h"

static void add_rows(struct gr_task_list *list, int64_t row, int64_t row_end)
{
    if (row == row_end) return;
    if (list->tasks != NULL) {
        list->tasks[list->n_tasks] = (struct gr_task){ .row = row, .row_end = row_end, .segment = -1 };
    }
    list->n_tasks++;
}

static void add_hub(const graft_csr *a, struct gr_task_list *list, int64_t row)
{
    const int64_t end = a->row_ptr[row + 1];
    const int64_t first = list->n_segments;

    for (int64_t e = a->row_ptr[row]; e < end; e += GR_TASK_ENTRIES) {
        if (list->tasks != NULL) {
            list->tasks[list->n_tasks] = (struct gr_task){ .row = row,
                                                           .begin = e,
                                                           .end = e + GR_TASK_ENTRIES < end ? e + GR_TASK_ENTRIES : end,
                                                           .segment = list->n_segments };
        }
        list->n_tasks++;
        list->n_segments++;
    }
    if (list->hubs != NULL) list->hubs[list->n_hubs] = (struct gr_hub){ row, first, list->n_segments - first };
    list->n_hubs++;
}

void gr_tasks_list(const graft_csr *a, struct gr_task_list *list)
{
    int64_t begin = 0;

    list->n_tasks = list->n_hubs = list->n_segments = 0;
    for (int64_t row = 0; row < a->n_rows; row++) {
        if (a->row_ptr[row + 1] - a->row_ptr[row] > 2 * GR_TASK_ENTRIES) {
            add_rows(list, begin, row);
            add_hub(a, list, row);
            begin = row + 1;
        } else if (a->row_ptr[row + 1] - a->row_ptr[begin] >= GR_TASK_ENTRIES || row + 1 - begin == GR_TASK_ROWS) {
            add_rows(list, begin, row + 1);
            begin = row + 1;
        }
    }
    add_rows(list, begin, a->n_rows);
    GR_ASSERT(list->n_tasks >= list->n_segments && list->n_segments >= 2 * list->n_hubs);
}
