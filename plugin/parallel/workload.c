/* Finds the work of the ranks of a graph in an epoch, according to the options.
 * SPDX-License-Identifier: Apache-2.0 */
#include "parallel/workload.h"

#include "halo/format.h"
#include "halo/options.h"
#include "model/kind.h"
#include "model/options.h"
#include "nn/options.h"
#include "sample/options.h"

/* Return why parallel=auto can only divide rows with these options; NULL: it compares all ways. */
static const char *refusal(const graft_context *context, const struct gr_model_kind *kind, graft_semiring extremum)
{
    const struct gr_row_format format = gr_halo_row_format(context);

    if (gr_sample_options(context)->batch_size > 0) return "a batch has only vertices of its rank";
    if (!kind->gathers) return "mlp has no sums over neighbours";
    if (kind->attends) return "attention reads whole rows";
    if (extremum != 0) return "the cost of columns is not predicted for maxima and minima";
    if (gr_halo_options(context)->staleness.word == GR_HALO_STALE)
        return "sums of stale shared columns are two epochs old";
    if (format.adaptive[GR_FORWARD] || format.adaptive[GR_BACKWARD])
        return "a record of shared columns has elements of several rows, whose ranges decide no adaptive width";
    if (format.bits[GR_FORWARD] < 8 || format.bits[GR_BACKWARD] < 8)
        return "shared columns quantize each row twice in a sum, for which fewer than 8 bits are too few";
    return NULL;
}

struct gr_workload gr_parallel_workload_of(const graft_context *context)
{
    const struct gr_model_options *model = gr_model_options(context);
    const struct gr_shape_options *shape = gr_shape_options(context);
    const struct gr_model_kind    *kind = gr_model_kind(model->kind);
    const graft_semiring           extremum = gr_model_extremum(model);

    return (struct gr_workload){ .shares_rows = refusal(context, kind, extremum),
                                 .layers = (int32_t)shape->layers,
                                 .hidden = shape->hidden,
                                 .gathers = kind->gathers,
                                 .reads_rows = kind->attends || extremum != 0 };
}
