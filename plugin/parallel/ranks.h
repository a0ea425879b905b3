/* What a trainer does with the other ranks; part of model.h.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GR_PARALLEL_RANKS_H
#define GR_PARALLEL_RANKS_H

/* Trainers over ranks; without ranks all of these do nothing and return GRAFT_OK, or the rc they got. Collective, but
 * where they say that they are not. */
/** Make one outcome of those of all ranks. */
int32_t     gr_ranks_agree(const graft_trainer *trainer, int32_t rc, graft_error *error);
/** Tell the others of a failure that this rank has alone, where they wait for it. */
int32_t     gr_ranks_fail(const graft_trainer *trainer, int32_t rc, graft_error *error);
/** Sums over all ranks, in place. */
int32_t     gr_ranks_sum(const graft_trainer *trainer, double *values, int64_t count, graft_error *error);
int32_t     gr_ranks_sum_gradients(const graft_trainer *trainer, graft_error *error);
/** *here becomes whether it is not 0 on any rank. */
int32_t     gr_ranks_any(const graft_trainer *trainer, int *here, graft_error *error);
/** Whether all are as many epochs on, and have the state that state_set() may have given them since. */
int32_t     gr_ranks_compare_state(graft_trainer *trainer, graft_error *error);
/** Whether all are told to train the same model, and one that ranks can train. */
int32_t     gr_ranks_compare(graft_trainer *trainer, graft_error *error);
/** Move the data set from slices to owners: n is that of this rank from now on. */
int32_t     gr_ranks_take(graft_trainer *trainer, graft_error *error);
/** What gr_model_graph_init() and gr_model_graph_mask() do in one process. */
int32_t     gr_ranks_graph_init(graft_trainer *trainer, graft_error *error);
int32_t     gr_ranks_graph_mask(graft_trainer *trainer, graft_error *error);
/** Follow the level of all ranks to what it gathers from other ranks: vertices of these on level `hop`. */
int32_t     gr_ranks_search(graft_trainer *trainer, struct gr_search *search, int32_t hop, graft_error *error);
/** Not collective: the plan that layer l has in a step. */
graft_plan *gr_ranks_step_plan(const graft_trainer *trainer, int32_t l);
/** Not collective: what that layer sends in a step in one direction, NULL if no option asks to keep something of it. */
struct gr_halo_layer *gr_ranks_halo_layer(const graft_trainer *trainer, int32_t l, enum gr_direction direction);
/** Before a step: decide on adaptive bits by the last one, if it is time. \return as gr_adapt(), and nothing has
 *  changed; the comm lives on but for ERR_PEER. */
int32_t               gr_ranks_adapt(graft_trainer *trainer, graft_error *error);
/** Not collective: a step begins. */
void                  gr_ranks_begin_step(graft_trainer *trainer);
/** A step ends: the loss of all; and, asynchronous, how much rows have drifted, and whether it had its own. */
int32_t               gr_ranks_end_step(graft_trainer *trainer, double *loss, graft_error *error);
/** Not collective: memory for all messages of a step, when it is known how the layers work. */
int32_t               gr_ranks_reserve(const graft_trainer *trainer, graft_error *error);
/** Not collective: bytes for messages, and of what it has of the graph beside the graph over ranks. */
int64_t               gr_ranks_message_bytes(const graft_trainer *trainer);
int64_t               gr_ranks_graph_bytes(const graft_trainer *trainer);
void                  gr_ranks_graph_fini(graft_trainer *trainer);
void                  gr_ranks_fini(graft_trainer *trainer);
/** gr_product_gather() over ranks. */
int32_t gr_ranks_gather(const graft_trainer *trainer, const struct gr_layer *layer, const struct gr_sum *sum,
                        graft_error *error);
/** Of gat, for x[n_seen x width]: begin to fill the rows of others in; or, backward, to add those rows to the owners'
 *  own, as gradients. end() waits for it, and does nothing where none has begun. In a profile, the phase in work has
 *  parts of it: `begin`, what was packed since, and `local`, what else was done since (0: since rows were sent). */
int32_t gr_ranks_halo_begin(graft_trainer *trainer, enum gr_direction direction, float *x, int64_t width, double begin,
                            graft_error *error);
int32_t gr_ranks_halo_end(graft_trainer *trainer, double local, graft_error *error);
/** Logits of the owned vertices, and the classes they say, to the slices of all ranks. Outputs may be NULL. */
int32_t gr_ranks_give(graft_trainer *trainer, const float *logits, int32_t *labels, const graft_dense *out,
                      graft_error *error);

/** Of gat: gr_profile_team(), which lets rows of others move meanwhile. Not collective. */
struct gr_team gr_ranks_team(const graft_trainer *trainer);

/** Not collective: let rows of asynchronous steps move, while something else is done. */
void gr_ranks_poll(void *trainer);

#endif
