/* Data that exchanges store from epoch to epoch, for each layer and direction: adaptive widths, and stale rows.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "halo/history.h"
#include "halo/options.h"
#include "halo/row_bits.h"

/** Stored data of one layer in one direction. */
struct gr_halo_layer {
    int32_t            number;
    enum gr_direction  direction;
    int                is_adaptive, is_stale;
    const int64_t     *start[GR_SIDES]; /* [n_ranks + 1] first row of each rank */
    int64_t            rows[GR_SIDES];  /* number of rows: start[side][n_ranks] */
    struct gr_row_bits bits;            /* if is_adaptive */
    struct gr_history  history;         /* if is_stale */
};

struct gr_halo_layers {
    const graft_context  *context;
    struct gr_comm       *comm;
    int32_t               n_layers;
    struct gr_row_format  format;
    int32_t               adaptive[GR_DIRECTIONS], is_stale;
    double                smoothing;
    struct gr_form        budget; /* option halo.budget, of adaptive widths */
    struct gr_halo_layer *layer;  /* [n_layers x GR_DIRECTIONS]; NULL if no option needs them */
};

/** Initialise `layers` without any layer. Not collective, but all ranks call this function and gr_halo_layers_add() in
 *  the same order, even after one has failed. Neither allocates memory for rows. gr_halo_layers_fini() is always
 *  required. \return OK; ERR_NOMEM. */
int32_t gr_halo_layers_init(const graft_context *context, struct gr_comm *comm, int32_t n_layers,
                            struct gr_halo_layers *layers, graft_error *error);
/** Add a layer in both directions.
 * \param[in] start  [n_ranks + 1] first rows of each rank, of rows sent and received forward; must outlive `layers`. */
int32_t gr_halo_layers_add(struct gr_halo_layers *layers, int32_t number, const int64_t *const start[GR_SIDES],
                           graft_error *error);
/** Free all memory. Waits for messages in flight, so their rows must still exist. */
void    gr_halo_layers_fini(struct gr_halo_layers *layers);

/** Find the data of a layer in one direction. \return NULL if no data are stored for it. */
struct gr_halo_layer *gr_halo_layers_find(const struct gr_halo_layers *layers, int32_t number,
                                          enum gr_direction direction);

/** Allocate memory for rows of a layer in one direction; none if `layer` is NULL. Stale rows of another width are
 *  discarded. Not collective. \return OK; ERR_NOMEM. */
int32_t gr_halo_layer_reserve(struct gr_halo_layer *layer, int64_t width, graft_dtype dtype, graft_error *error);
/** Call gr_halo_layer_reserve() for a layer in both directions. */
int32_t gr_halo_layers_reserve(struct gr_halo_layers *layers, int32_t number, int64_t width, graft_dtype dtype,
                               graft_error *error);
/** Return the bytes that gr_halo_layers_reserve() needs. */
int64_t gr_halo_layers_need(const struct gr_halo_layers *layers, int32_t number, int64_t width, graft_dtype dtype);
/** Return the bytes of memory of all layers. */
int64_t gr_halo_layers_bytes(const struct gr_halo_layers *layers);

/** Discard all stale rows. Waits for messages in flight. Not collective, but all ranks call it. */
void gr_halo_layers_forget(struct gr_halo_layers *layers);
/** Call gr_halo_layers_forget(), and reset all adaptive widths. */
void gr_halo_layers_reset(struct gr_halo_layers *layers);

/** Add to *wait and *exchange the seconds of the exchanges of stale rows. */
void gr_halo_layers_add_seconds(const struct gr_halo_layers *layers, double *wait, double *exchange);
