/* The options of networks on meshes, and the settings that a training step reads.
 * SPDX-License-Identifier: Apache-2.0 */
#include "network/options.h"

#include "network/network.h"
#include "nn/options.h"

#define GR_OPTIONS_TABLE gr_network_option_table
#define GR_OPTIONS_STRUCT struct gr_network_options
static const struct gr_option_row network_rows[] = { GR_NETWORK_OPTIONS(GR_OPTION_ROW) };
const struct gr_option_table      gr_network_option_table = GR_OPTION_TABLE("networks on meshes", network_rows);

/* The default of option lr for networks on meshes. */
static const double DEFAULT_RATE = 0.001;

/* The number of steps of the optimiser so far. The first training steps may only gather statistics. */
static int64_t changes_so_far(const graft_network *n)
{
    const int64_t gathering = gr_network_gathering_steps(n);

    return n->progress.steps > gathering ? n->progress.steps - gathering : 0;
}

static struct gr_nn_schedule schedule_of(const graft_network *n, double rate)
{
    const struct gr_form *form = &gr_network_options(n->context)->schedule;

    if (form->word == GR_MGN_SCHEDULE_CONSTANT)
        return (
            struct gr_nn_schedule){ .kind = GR_SCHEDULE_CONSTANT, .rate = rate, .warmup = (int64_t)form->number[0] };
    return (struct gr_nn_schedule){ .kind = GR_SCHEDULE_COSINE,
                                    .rate = rate,
                                    .steps = (int64_t)form->number[0],
                                    .last = form->number[1],
                                    .warmup = (int64_t)form->number[2] };
}

struct gr_network_live gr_network_live_options(const graft_network *n)
{
    const struct gr_network_options  *o = gr_network_options(n->context);
    const struct gr_training_options *t = gr_training_options(n->context);
    const struct gr_nn_schedule       schedule =
        schedule_of(n, gr_option_is_default(n->context, "lr") ? DEFAULT_RATE : t->lr);

    return (struct gr_network_live){ .step = { .method = t->optimizer.word == GR_SGD ? GR_NN_SGD : GR_NN_ADAMW,
                                               .number = changes_so_far(n) + 1,
                                               .rate = gr_nn_rate(&schedule, changes_so_far(n)),
                                               .weight_decay = t->weight_decay.number[0],
                                               .momentum = t->optimizer.number[0],
                                               .beta1 = t->optimizer.number[0],
                                               .beta2 = t->optimizer.number[1] },
                                     .clip_norm = t->clip_norm,
                                     .noise = o->noise };
}
