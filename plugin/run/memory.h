/* Memory of a setup: its plan, the arrays of the layers, and passes that need less of them.
 *
 * plan.c    the budget, before anything is made      spans.c    space for the profile
 * arrays.c  arrays of the layers for batches, and for evaluations between them
 * by_rows.c evaluations and predictions in blocks of rows
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/scratch.h"
#include "run/setup.h"

/** Outputs of a layer for all vertices, during a pass in blocks of rows. */
struct gr_stored {
    const float      *x; /* [rows x out] in one of these: */
    float            *memory;
    struct gr_scratch file;
};

/** Temporary arrays of the layers in training by minibatch, and in passes by blocks of rows; see arrays.c. */
struct gr_batch_arrays {
    struct gr_budget   budget;
    int64_t            charged[GR_USES]; /* its bytes in the budget of the setup */
    struct gr_capacity most;             /* their capacity; 0: none */
    struct gr_stored   stored[GR_LAYERS_MAX];
    float             *features;      /* of all rows, for an evaluation; NULL: features are read as they are */
    int64_t            sources_bytes; /* in the budget, for the search of the sources of blocks */
};

/** Plan the budget before any of it is used: all memory except for the parts of graph and features whose size depends
 *  on receptive fields. Refuse a plan that cannot fit. replan() plans the layers again, when graph and features
 *  exist. */
int32_t            gr_setup_plan(struct gr_setup *setup, graft_error *error);
int32_t            gr_setup_replan(struct gr_setup *setup, graft_error *error);
/** Planned bytes, with or without recompute. */
double             gr_setup_planned(struct gr_setup *setup, int recompute);
/** The known sizes of the arrays of the layers. */
struct gr_capacity gr_setup_capacity(const struct gr_setup *setup);
/** Bytes for an evaluation of all rows at once. */
double             gr_setup_evaluation_bytes(struct gr_setup *setup);

/** Allocate the arrays of the layers for an evaluation, instead of the arrays of batches; until fini(). Collective.
 *  \return OK; ERR_NOMEM. */
int32_t gr_setup_arrays_for_all(struct gr_setup *setup, graft_error *error);
/** Allocate arrays of the layers for the blocks of a batch, whose other memory has `used` bytes.
 *  \return OK; ERR_NOMEM: on this rank only, and there are no arrays. */
int32_t gr_setup_arrays_for_batch(struct gr_setup *setup, const struct gr_block *blocks, int64_t used,
                                  graft_error *error);
int32_t gr_setup_arrays_for_blocks(struct gr_setup *setup, const struct gr_capacity *capacity, graft_error *error);
void    gr_setup_arrays_fini(struct gr_setup *setup);
/** Free the stored outputs of layer l. */
void    gr_setup_arrays_drop_stored(struct gr_setup *setup, int32_t l);

/** Whether evaluations and predictions go in blocks of rows, by option eval.blocks; and such a pass. */
int     gr_setup_goes_by_rows(struct gr_setup *setup);
int32_t gr_setup_by_rows_forward(struct gr_setup *setup, graft_error *error);
/** Check that a file of the outputs of a layer can be made in the folder eval.blocks=FOLDER, if it is set and has an
 *  effect. \return OK; ERR_IO. */
int32_t gr_setup_by_rows_check_folder(const struct gr_setup *setup, graft_error *error);

/** Space for the spans of a step on all threads of the run, if option 'profile' asks for them. */
int32_t               gr_setup_spans_init(struct gr_setup *setup, graft_error *error);
/** Allocate space for the spans of one more step on the present number of threads; in an epoch of batches all spans are
 *  kept. reset(): forget all spans before. */
int32_t               gr_setup_spans_reserve(struct gr_setup *setup, graft_error *error);
static inline int32_t gr_setup_spans_reset(struct gr_setup *setup, graft_error *error)
{
    gr_profile_reset(&setup->run.profile);
    return setup->run.profile.spans != NULL ? gr_setup_spans_reserve(setup, error) : GRAFT_OK;
}
/** Bytes of the spans of a step; 0 without option 'profile'. */
double gr_setup_spans_need(const struct gr_setup *setup);
