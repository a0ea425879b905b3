/* The options of networks on meshes, and those that a step of training reads.
 * SPDX-License-Identifier: Apache-2.0 */
#include "network/options.h"

#include "network/network.h"
#include "nn/options.h"

#define GR_OPTIONS_TABLE gr_network_option_table
#define GR_OPTIONS_STRUCT struct gr_network_options
static const struct gr_option_row network_rows[] = { GR_NETWORK_OPTIONS(GR_OPTION_ROW) };
const struct gr_option_table      gr_network_option_table = GR_OPTION_TABLE("networks on meshes", network_rows);

/* Steps of the optimiser so far: the first steps only gather statistics. */
static int64_t changes_so_far(const graft_network *n)
{
    return n->progress.steps > n->options.gather ? n->progress.steps - n->options.gather : 0;
}

struct gr_network_live gr_network_live_options(const graft_network *n)
{
    const struct gr_network_options *o = gr_network_options(n->context);
    const struct gr_nn_schedule      schedule = { .kind = o->steps == 0 ? GR_SCHEDULE_CONSTANT : GR_SCHEDULE_COSINE,
                                                  .rate = o->lr,
                                                  .last = o->lr_end,
                                                  .warmup = o->warmup,
                                                  .steps = o->steps };

    return (struct gr_network_live){ .step = { .method = GR_NN_ADAMW,
                                               .number = changes_so_far(n) + 1,
                                               .rate = gr_nn_rate(&schedule, changes_so_far(n)),
                                               .weight_decay = o->weight_decay,
                                               .beta1 = o->beta1,
                                               .beta2 = o->beta2 },
                                     .clip_norm = gr_training_options(n->context)->clip_norm,
                                     .noise = o->noise,
                                     .noise_correction = o->noise_correction };
}
