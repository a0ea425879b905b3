/* The memory of a setup: its plan, the arrays of the layers, and evaluations that need less memory.
 *
 * plan.c    the budget, before anything is made      spans.c    space for the profile
 * arrays.c  arrays of the layers for batches, and for evaluations between them by_rows.c evaluations and predictions in
 * blocks of rows
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/scratch.h"
#include "run/setup.h"

/** The outputs of a layer for all vertices, during a pass in blocks of rows. */
struct gr_stored {
    const float      *x; /* [rows x out] the outputs, in `memory` or mapped from `file` */
    float            *memory;
    struct gr_scratch file;
};

/** The temporary arrays of the layers in training by minibatch and in passes by blocks of rows (see arrays.c). */
struct gr_batch_arrays {
    struct gr_budget   budget;
    int64_t            charged[GR_USES]; /* bytes charged to the budget of the setup */
    struct gr_capacity most;             /* capacity of the arrays; 0: there are none */
    struct gr_stored   stored[GR_LAYERS_MAX];
    float             *features;      /* all rows as floats, for an evaluation; NULL: features are read as they are */
    int64_t            sources_bytes; /* bytes charged for finding the sources of blocks */
};

/** Plan the budget before any of it is used, and refuse a plan that does not fit. The plan has all memory, except parts
 *  of graph and features whose size depends on receptive fields. replan() plans the layers again, after graph and
 *  features were made. */
int32_t            gr_setup_plan(struct gr_setup *setup, graft_error *error);
int32_t            gr_setup_replan(struct gr_setup *setup, graft_error *error);
/** The planned bytes of all uses, with or without recompute. */
double             gr_setup_planned(struct gr_setup *setup, int recompute);
/** The sizes of the arrays of the layers, as far as they are known. */
struct gr_capacity gr_setup_capacity(const struct gr_setup *setup);
/** The bytes of the arrays for an evaluation of all rows at once. */
double             gr_setup_evaluation_bytes(struct gr_setup *setup);

/** Allocate the arrays of the layers for an evaluation, in place of those of batches. They exist until fini().
 *  Collective.
 *  \return OK; ERR_NOMEM. */
int32_t gr_setup_arrays_for_all(struct gr_setup *setup, graft_error *error);
/** Allocate the arrays of the layers for the blocks of a batch. `used` are the bytes of all other memory of the batch.
 *  \return OK; ERR_NOMEM: only on this rank, and there are no arrays. */
int32_t gr_setup_arrays_for_batch(struct gr_setup *setup, const struct gr_block *blocks, int64_t used,
                                  graft_error *error);
int32_t gr_setup_arrays_for_blocks(struct gr_setup *setup, const struct gr_capacity *capacity, graft_error *error);
void    gr_setup_arrays_fini(struct gr_setup *setup);
/** Free the stored outputs of layer l. */
void    gr_setup_arrays_drop_stored(struct gr_setup *setup, int32_t l);

/** goes_by_rows(): whether evaluations and predictions run in blocks of rows, by option eval.blocks. by_rows_forward():
 *  run such a pass. */
int     gr_setup_goes_by_rows(struct gr_setup *setup);
int32_t gr_setup_by_rows_forward(struct gr_setup *setup, graft_error *error);
/** Check that a file for the outputs of a layer can be created in the folder of option eval.blocks, if it is a folder
 *  and has an effect. \return OK; ERR_IO. */
int32_t gr_setup_by_rows_check_folder(const struct gr_setup *setup, graft_error *error);

/** Allocate memory for the spans of a step on all threads of the run, if option 'profile' asks for them. */
int32_t               gr_setup_spans_init(struct gr_setup *setup, graft_error *error);
/** Allocate memory for the spans of one more step with the current number of threads: in an epoch of batches the spans
 *  of all steps are kept. reset() deletes all spans before this. */
int32_t               gr_setup_spans_reserve(struct gr_setup *setup, graft_error *error);
static inline int32_t gr_setup_spans_reset(struct gr_setup *setup, graft_error *error)
{
    gr_profile_reset(&setup->run.profile);
    return setup->run.profile.spans != NULL ? gr_setup_spans_reserve(setup, error) : GRAFT_OK;
}
/** The bytes for the spans of a step; 0 without option 'profile'. */
double gr_setup_spans_need(const struct gr_setup *setup);
