/* Division of edges into tasks, at the boundaries of targets.
 * SPDX-License-Identifier: Apache-2.0 */
#include "mgn/inside.h"

/* Find the end of the task that begins at node `begin`. It has one node, or several with at most GR_MGN_ROWS edges. */
static int64_t end_of_task(const graft_mesh *mesh, int64_t begin)
{
    int64_t end = begin + 1;

    while (end < mesh->n_nodes && end - begin < GR_MGN_ROWS &&
           mesh->edges.row_ptr[end + 1] - mesh->edges.row_ptr[begin] <= GR_MGN_ROWS)
        end++;
    return end;
}

/* Whether the task with targets begin to end - 1 is one of the first, see struct gr_mgn_tasks. *copy is the first
 * shared node that is not before `begin`; tasks are passed in order. */
static int is_first_task(const graft_mesh *mesh, int64_t begin, int64_t end, int64_t *copy)
{
    if (mesh->kind == GRAFT_MESH_SHARED) {
        int64_t before = *copy;

        while (*copy < mesh->copies.count && mesh->copies.node[*copy] < end) ++*copy;
        return *copy > before;
    }
    for (int64_t k = mesh->edges.row_ptr[begin]; k < mesh->edges.row_ptr[end]; k++)
        if (mesh->edges.source[k] >= mesh->n_nodes) return 0;
    return 1;
}

int32_t gr_mgn_cut(struct gr_mgn *g, graft_error *error)
{
    const graft_mesh    *mesh = g->mesh;
    struct gr_mgn_tasks *tasks = &g->tasks;
    int64_t              copy = 0, n_last = 0;

    for (int64_t begin = 0; begin < mesh->n_nodes; begin = end_of_task(mesh, begin)) tasks->count++;
    GR_TRY(GR_POOL_NEW(g->context, &g->memory, tasks->target, tasks->count + 1, error));
    GR_TRY(GR_POOL_NEW(g->context, &g->memory, tasks->order, tasks->count, error));
    for (int64_t i = 0; i < tasks->count; i++) {
        const int64_t begin = tasks->target[i], end = tasks->target[i + 1] = end_of_task(mesh, begin);

        if (is_first_task(mesh, begin, end, &copy)) tasks->order[tasks->n_first++] = (int32_t)i;
        else tasks->order[tasks->count - ++n_last] = (int32_t)i;
    }
    return GRAFT_OK;
}
