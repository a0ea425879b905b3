/* The memory that a rank needs at least, and advice if this is more than the limit.
 * SPDX-License-Identifier: Apache-2.0 */
#include "setup/setup.h"

#include <math.h>
#include <stdio.h>

/* The value of option 'parallel' for the present sharing. */
static const char *mode_of(const struct gr_partition *p)
{
    return p->columns == 1 ? "partition" : p->columns == p->comm->n_ranks ? "feature" : "grid";
}

int32_t gr_ranks_refuse_memory(const struct gr_setup *s, double bytes, const char *advice, graft_error *error)
{
    const struct gr_partition *p = &s->partition;
    char                       mode[64] = "";

    /* With more memory auto may choose another mode, which needs more. */
    if (p->columns > 1 && p->columns < p->comm->n_ranks)
        snprintf(mode, sizeof mode, "parallel=grid, parallel.columns=%d and ", p->columns);
    else if (s->over->compares) snprintf(mode, sizeof mode, "parallel=%s and ", mode_of(p));
    return gr_fail(error, GRAFT_ERR_NOMEM,
                   "with parallel=%s%s a rank needs %.1f MB at least, more than one of them may use; expected option%s "
                   "%smemory.limit=%.0f or more%s",
                   mode_of(p), s->over->compares ? ", which auto has chosen," : "", bytes * 1e-6,
                   mode[0] != '\0' ? "s" : "", mode, ceil(bytes * 1e-6), advice);
}

int64_t gr_ranks_label_columns(const struct gr_setup *s, int32_t l)
{
    return l == 0 && gr_propagates(&s->run) ? s->run.targets.n_classes : 0;
}

void gr_ranks_find_widths(struct gr_setup *s)
{
    struct gr_partition *r = &s->partition;

    for (int32_t l = s->model.config.gathers_from; l < s->model.config.n_layers && r->plan != NULL; l++) {
        const int64_t labels = gr_partition_slice(r, gr_ranks_label_columns(s, l));

        r->columns_of[l] = gr_partition_slice(r, gr_summed_columns(&s->run.layers[l]));
        r->widest[l] = r->columns_of[l] > labels ? r->columns_of[l] : labels;
    }
}

int64_t gr_ranks_widest(const struct gr_setup *s, const graft_plan *plan)
{
    const struct gr_partition *r = &s->partition;
    int64_t                    widest = 0;

    for (int32_t l = s->model.config.gathers_from; l < s->model.config.n_layers; l++)
        if ((plan == r->plan || plan == r->step_plan[l]) && r->widest[l] > widest) widest = r->widest[l];
    return widest;
}

/* Bytes of the slices and messages of shared columns. */
static double transpose_bytes(const struct gr_setup *s)
{
    const struct gr_partition *p = &s->partition;
    int64_t                    widest = gr_propagates(&s->run) ? s->run.targets.n_classes : 0;
    double                     more;

    if (p->columns == 1) return 0;
    for (int32_t l = s->model.config.gathers_from; l < s->model.config.n_layers; l++)
        if (gr_summed_columns(&s->run.layers[l]) > widest) widest = gr_summed_columns(&s->run.layers[l]);
    more = (double)(gr_transpose_need(&p->shared->transpose, widest) - gr_transpose_bytes(&p->shared->transpose));
    return more > 0 ? more : 0;
}

/* Bytes of messages that are not allocated yet. Buffers of a plan are as wide as the widest of its layers. */
static double message_bytes(const struct gr_setup *s)
{
    const struct gr_partition *p = &s->partition;
    double                     bytes;

    if (p->plan == NULL) return 0;
    bytes = gr_partition_need(p->plan, -1, gr_ranks_widest(s, p->plan));
    for (int32_t l = s->model.config.gathers_from; l < s->model.config.n_layers; l++) {
        const graft_plan *plan = p->step_plan[l];
        const int         is_new = plan != p->plan && (l == 0 || plan != p->step_plan[l - 1]);

        if (is_new) bytes += gr_partition_need(plan, -1, gr_ranks_widest(s, plan));
        bytes += (double)gr_halo_layers_need(&plan->layers, l, p->columns_of[l], GRAFT_F32);
    }
    return bytes + transpose_bytes(s);
}

/* Shared columns were checked before their edges existed, when their messages were not known exactly. The arrays of
 * batches are temporary. */
int32_t gr_ranks_check_memory(struct gr_setup *s, graft_error *error)
{
    double  more, most[2];
    int64_t values[3];
    char    advice[64] = "";
    int32_t rc = GRAFT_OK;

    if (s->over == NULL || s->given != NULL) return GRAFT_OK;
    values[1] = -(int64_t)gr_setup_planned(s, 1);
    values[0] = -(int64_t)gr_setup_planned(s, s->model.config.recompute);
    gr_ranks_find_widths(s);
    more = gr_spans_need(s) + (gr_setup_has_batches(s) ? 0 : message_bytes(s));
    for (int i = 0; i < 2; i++) values[i] -= (int64_t)more;
    values[2] = -values[0] <= s->budget.limit;
    GR_TRY(gr_comm_min(s->over->comm, values, 3, error));
    if (values[2]) return GRAFT_OK;
    for (int i = 0; i < 2; i++) most[i] = -(double)values[i];
    if (most[1] < most[0]) snprintf(advice, sizeof advice, "; with recompute=yes %.1f MB", most[1] * 1e-6);
    rc = gr_ranks_refuse_memory(s, most[0], advice, error);
done:
    return rc;
}
