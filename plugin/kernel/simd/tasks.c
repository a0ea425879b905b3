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

/* The row at which a task that begins at `begin` reaches GR_TASK_ENTRIES entries or GR_TASK_ROWS rows; else the last
 * row. */
static int64_t last_row(const graft_csr *a, int64_t begin)
{
    int64_t low = begin, high = begin + GR_TASK_ROWS - 1;

    if (high > a->n_rows - 1) high = a->n_rows - 1;
    if (a->row_ptr[high + 1] - a->row_ptr[begin] < GR_TASK_ENTRIES) return high; /* in a sparse matrix most often */
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;

        if (a->row_ptr[middle + 1] - a->row_ptr[begin] >= GR_TASK_ENTRIES) high = middle;
        else low = middle + 1;
    }
    return low;
}

void gr_tasks_list(const graft_csr *a, struct gr_task_list *list)
{
    list->n_tasks = list->n_hubs = list->n_segments = 0;
    for (int64_t begin = 0, row; begin < a->n_rows; begin = row + 1) {
        row = last_row(a, begin); /* rows before it are too short to be hubs */
        if (a->row_ptr[row + 1] - a->row_ptr[row] > 2 * GR_TASK_ENTRIES) {
            add_rows(list, begin, row);
            add_hub(a, list, row);
        } else {
            add_rows(list, begin, row + 1);
        }
    }
    GR_ASSERT(list->n_tasks >= list->n_segments && list->n_segments >= 2 * list->n_hubs);
}
