/* Decides by options what a setup does.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/option_row.h"
#include "model/options.h"
#include "nn/options.h"
#include "run/pass.h"
#include "run/setup.h"
#include "sample/options.h"

#include <string.h>

int gr_setup_has_batches(const struct gr_setup *s)
{
    return s->given == NULL && gr_sample_options(s->context)->batch_size > 0;
}

int gr_setup_has_history(const struct gr_setup *s)
{
    return gr_setup_has_batches(s) && gr_sample_options(s->context)->history == GR_HISTORY_FULL &&
           s->model.config.kind->gathers;
}

uint32_t gr_setup_groups(const struct gr_setup *s)
{
    static const struct gr_option_table *const of_training[] = { &gr_shape_option_table,    &gr_model_option_table,
                                                                 &gr_training_option_table, &gr_loss_option_table,
                                                                 &gr_data_option_table,     &gr_sample_option_table };
    uint32_t                                   bits = 0;

    if (s->given == NULL) return ~0u;
    for (size_t i = 0; i < sizeof of_training / sizeof *of_training; i++)
        bits |= gr_options_bit(s->context, of_training[i]);
    return ~bits;
}

int gr_setup_copies_features(const struct gr_setup *s)
{
    if (s->data.features.x.dtype != GRAFT_F32 && !s->widens_rows) return 1;
    return s->model.config.data.normalize_features || gr_setup_is_ordered(s);
}

int gr_setup_reads_rows(const struct gr_setup *s)
{
    return gr_setup_has_batches(s) && s->data.over == NULL && s->run.targets.split != NULL &&
           !gr_setup_copies_features(s);
}

int gr_setup_can_go_by_rows(const struct gr_setup *s)
{
    const struct gr_resource_options *options = gr_resource_options(s->context);
    const int                         is_alone = s->data.over == NULL && (s->given != NULL || gr_setup_has_batches(s));

    return is_alone && strcmp(options->eval_blocks, "no") != 0 && options->workers.word == GR_WORKERS_NO &&
           s->model.config.label_rate == 0;
}

/* Whether the setup predicts few vertices, so that it computes only the rows in their receptive field, in a separate
 * order. It does not with labels as input, whose vertices come first in training, or with sparse features, which have
 * parts only for a step and for all rows. */
static int predicts_few(const struct gr_setup *s)
{
    const struct gr_outputs *outputs = s->given->outputs;

    return outputs->vertices != NULL && outputs->n > 0 && s->data.over == NULL && s->data.given.features != NULL &&
           !gr_propagates(&s->run);
}

int gr_setup_masks_rows(const struct gr_setup *s)
{
    if (!s->model.config.data.row_masks || s->model.config.kind->attends) return 0;
    if (s->strategy->all_rows) return 0;
    if (s->given != NULL) return predicts_few(s);
    return s->run.targets.n_train > 0;
}

int gr_setup_is_ordered(const struct gr_setup *s)
{
    return s->derived.row != NULL || (s->model.config.kind->gathers && s->model.config.data.order != GR_ORDER_GIVEN);
}

int32_t gr_setup_first_masked(const struct gr_setup *s)
{
    return s->run.input.is_constant && !gr_propagates(&s->run);
}

/* The last layer whose input must have all rows in a step, because statistics of BatchNorm are over all vertices; -1:
 * none. Predictions use running statistics. */
static int32_t last_complete(const struct gr_setup *s)
{
    int32_t last = -1;

    for (int32_t l = 0; l < s->model.config.n_layers && s->given == NULL; l++)
        if (gr_has_batch_norm(&s->run, &s->model.layers[l])) last = l + 1;
    return last;
}

static int uses_values(const struct gr_setup *s)
{
    const struct gr_config         *config = &s->model.config;
    const struct gr_sample_options *sampling = gr_sample_options(s->context);

    if (gr_setup_has_batches(s) && config->kind->gathers && sampling->weights == GR_SAMPLE_BY_EDGE) return 1;
    if (config->kind->attends) return config->attention.edge_features > 0 && !config->attention.edge_array;
    return config->kind->gathers && config->extremum == 0;
}

struct gr_derived_wish gr_setup_wish(struct gr_setup *s)
{
    const struct gr_outputs *list = s->given != NULL ? s->given->outputs : NULL;

    return (struct gr_derived_wish){
        .targets = &s->run.targets,
        .list = list != NULL ? list->vertices : NULL,
        .n_list = list != NULL ? list->n : 0,
        .predicts = s->given != NULL,
        .has_batches = gr_setup_has_batches(s),
        .masks_rows = gr_setup_masks_rows(s),
        .reads_halo = s->strategy->reads_halo,
        .uses_values = uses_values(s),
        .complete = last_complete(s),
    };
}
