/* Cuts a matrix into tasks of about equal work.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernel/simd/tasks.h"

#include "base/assert.h"

void gr_kernel_tasks_count(const graft_csr *a, struct gr_task_list *list)
{
    list->n_tasks = (gr_work_before(a->row_ptr[a->n_rows], a->n_rows) + GR_TASK_ENTRIES - 1) / GR_TASK_ENTRIES;
    list->most_hubs = a->row_ptr[a->n_rows] / (2 * GR_TASK_ENTRIES);
    list->complete = list->most_hubs == 0;
}

/* Find the first row of low .. high-1 with at least `work` before it; high if there is none. */
static int64_t find_task_row(const graft_csr *a, int64_t low, int64_t high, int64_t work)
{
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;

        if (gr_work_before(a->row_ptr[middle], middle) < work) low = middle + 1;
        else high = middle;
    }
    return low;
}

int64_t gr_kernel_task_first(const graft_csr *a, struct gr_task_list *list, int64_t task)
{
    int64_t row, low, high = a->n_rows;

    GR_ASSERT(task <= list->n_tasks);
    row = atomic_load_explicit(&list->first_rows[task], memory_order_relaxed);
    if (task == 0 || row > 0) return row; /* other tasks do not begin at row 0, which has no work before it */
    low = atomic_load_explicit(&list->first_rows[task - 1], memory_order_relaxed);
    if ((low > 0 || task == 1) && high - low > GR_TASK_ROWS) high = low + GR_TASK_ROWS;
    row = find_task_row(a, low, high, task * GR_TASK_ENTRIES);
    gr_kernel_task_set_first(list, task, row);
    return row;
}

void gr_kernel_task_add_hub(struct gr_task_list *list, int64_t row)
{
    int64_t at;

    if (list->complete) return;
    at = atomic_fetch_add_explicit(&list->n_hubs, 1, memory_order_relaxed);
    GR_ASSERT(at < list->most_hubs);
    list->hubs[at].row = row;
}

void gr_kernel_tasks_end(const graft_csr *a, struct gr_task_list *list)
{
    list->complete = 1;
    list->n_segments = 0;
    for (int64_t i = 0; i < list->n_hubs; i++) {
        struct gr_hub *hub = &list->hubs[i];
        const int64_t  entries = a->row_ptr[hub->row + 1] - a->row_ptr[hub->row];

        hub->first_segment = list->n_segments;
        hub->n_segments = (entries + GR_TASK_ENTRIES - 1) / GR_TASK_ENTRIES;
        list->n_segments += hub->n_segments;
    }
}
