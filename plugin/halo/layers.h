/* Data of exchanges that are stored between epochs, for each layer and direction: adaptive widths, and stale rows.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "halo/history.h"
#include "halo/options.h"
#include "halo/row_bits.h"

/** One layer in one direction. */
struct gr_halo_layer {
    int32_t            number;
    enum gr_direction  direction;
    int                is_adaptive, is_stale;
    const int64_t     *start[GR_SIDES]; /* [n_ranks + 1] rows by rank */
    int64_t            rows[GR_SIDES];  /* of all ranks */
    struct gr_row_bits bits;            /* if it is adaptive */
    struct gr_history  history;         /* if it is asynchronous */
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

/** Not collective, but all ranks call both in the same order, also after a failure of a rank. Neither allocates memory
 *  for rows. gr_halo_layers_fini() is always required. \return OK; ERR_NOMEM. */
int32_t gr_halo_layers_init(const graft_context *context, struct gr_comm *comm, int32_t n_layers,
                            struct gr_halo_layers *layers, graft_error *error);
/** Add a layer in both directions. \param[in] start  [n_ranks + 1] of rows sent and received forward; they outlive the
 *  layers. */
int32_t gr_halo_layers_add(struct gr_halo_layers *layers, int32_t number, const int64_t *const start[GR_SIDES],
                           graft_error *error);
/** Waits for messages in flight, whose memory must still exist. */
void    gr_halo_layers_fini(struct gr_halo_layers *layers);

/** The layer in one direction; NULL if no data are stored for it. */
struct gr_halo_layer *gr_halo_layers_find(const struct gr_halo_layers *layers, int32_t number,
                                          enum gr_direction direction);

/** Allocate memory for rows of a layer in one direction; NULL needs none. Stale rows of another width are dropped. Not
 *  collective. \return OK; ERR_NOMEM. */
int32_t gr_halo_layer_reserve(struct gr_halo_layer *layer, int64_t width, graft_dtype dtype, graft_error *error);
/** The same in both directions; a missing layer needs no memory. */
int32_t gr_halo_layers_reserve(struct gr_halo_layers *layers, int32_t number, int64_t width, graft_dtype dtype,
                               graft_error *error);
/** Bytes of that memory. */
int64_t gr_halo_layers_need(const struct gr_halo_layers *layers, int32_t number, int64_t width, graft_dtype dtype);
/** Bytes of all layers. */
int64_t gr_halo_layers_bytes(const struct gr_halo_layers *layers);

/** Drop all stale rows. Waits for messages in flight. Not collective, but all ranks call it. */
void gr_halo_layers_forget(struct gr_halo_layers *layers);
/** The same, and forget adaptive widths. */
void gr_halo_layers_reset(struct gr_halo_layers *layers);

/** Add the seconds of the exchanges of all layers. */
void gr_halo_layers_add_seconds(const struct gr_halo_layers *layers, double *wait, double *exchange);
