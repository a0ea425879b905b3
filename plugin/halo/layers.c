/* Data that exchanges store from epoch to epoch.
 * SPDX-License-Identifier: Apache-2.0 */
#include "halo/layers.h"

#include "base/assert.h"
#include "base/memory.h"
#include "halo/options.h"

#include <string.h>

int32_t gr_halo_layers_init(const graft_context *context, struct gr_comm *comm, int32_t n_layers,
                            struct gr_halo_layers *layers, graft_error *error)
{
    *layers = (struct gr_halo_layers){ .context = context, .comm = comm, .n_layers = n_layers };
    layers->format = gr_halo_row_format(context);
    layers->is_stale = gr_halo_options(context)->staleness.word == GR_HALO_STALE;
    layers->smoothing = gr_halo_options(context)->staleness.number[1];
    layers->budget = gr_halo_options(context)->budget;
    for (int d = GR_FORWARD; d < GR_DIRECTIONS; d++) layers->adaptive[d] = layers->format.adaptive[d];
    if (!layers->is_stale && !layers->adaptive[GR_FORWARD] && !layers->adaptive[GR_BACKWARD]) return GRAFT_OK;
    return GR_NEW(context, layers->layer, GR_DIRECTIONS * (int64_t)n_layers, error);
}

static int32_t layer_init(const struct gr_halo_layers *layers, struct gr_halo_layer *layer, graft_error *error)
{
    /* The history comes first, because it takes a channel on all ranks, even if this rank has no memory. */
    if (layer->is_stale)
        GR_TRY(gr_halo_history_init(layers->context, layers->comm, layer->rows, &layer->history, error));
    if (layer->is_adaptive)
        GR_TRY(gr_halo_row_bits_init(layers->context, layer->rows, layers->comm->n_ranks, &layer->bits, error));
    return GRAFT_OK;
}

int32_t gr_halo_layers_add(struct gr_halo_layers *layers, int32_t number, const int64_t *const start[GR_SIDES],
                           graft_error *error)
{
    const int32_t n_ranks = layers->comm->n_ranks;
    int32_t       rc = GRAFT_OK;

    GR_ASSERT(number >= 0 && number < layers->n_layers);
    /* If this rank has no memory for layers, it still takes the channels that other ranks take. */
    for (int d = 0; d < GR_DIRECTIONS && layers->layer == NULL && layers->is_stale; d++) gr_comm_channel(layers->comm);
    if (layers->layer == NULL) return GRAFT_OK;
    for (int d = GR_FORWARD; d < GR_DIRECTIONS; d++) {
        struct gr_halo_layer *layer = &layers->layer[GR_DIRECTIONS * number + d];
        int32_t               layer_rc;

        *layer = (struct gr_halo_layer){ .number = number, .direction = (enum gr_direction)d };
        layer->is_adaptive = layers->adaptive[d];
        layer->is_stale = layers->is_stale;
        for (int side = 0; side < GR_SIDES; side++) {
            layer->start[side] = start[gr_side_of(layer->direction, (enum gr_side)side)];
            layer->rows[side] = layer->start[side][n_ranks];
        }
        layer_rc = layer_init(layers, layer, error);
        if (rc == GRAFT_OK) rc = layer_rc;
    }
    return rc;
}

/* Return the number of elements of layers->layer. */
static int32_t count_halo_layers(const struct gr_halo_layers *layers)
{
    return layers->layer != NULL ? GR_DIRECTIONS * layers->n_layers : 0;
}

void gr_halo_layers_forget(struct gr_halo_layers *layers)
{
    for (int32_t i = 0; i < count_halo_layers(layers); i++) gr_halo_history_forget(&layers->layer[i].history);
}

void gr_halo_layers_reset(struct gr_halo_layers *layers)
{
    gr_halo_layers_forget(layers); /* Messages in flight have the old widths. */
    for (int32_t i = 0; i < count_halo_layers(layers); i++) {
        struct gr_halo_layer *layer = &layers->layer[i];

        if (layer->is_adaptive) gr_halo_row_bits_reset(&layer->bits, layer->rows, layers->comm->n_ranks);
    }
}

void gr_halo_layers_fini(struct gr_halo_layers *layers)
{
    gr_halo_layers_forget(layers);
    for (int32_t i = 0; i < count_halo_layers(layers); i++) {
        gr_halo_history_fini(&layers->layer[i].history);
        gr_pool_fini(layers->context, &layers->layer[i].bits.pool);
    }
    if (layers->layer != NULL) gr_free(layers->context, layers->layer);
    *layers = (struct gr_halo_layers){ 0 };
}

struct gr_halo_layer *gr_halo_layers_find(const struct gr_halo_layers *layers, int32_t number,
                                          enum gr_direction direction)
{
    struct gr_halo_layer *layer;

    if (layers->layer == NULL || number < 0 || number >= layers->n_layers) return NULL;
    layer = &layers->layer[GR_DIRECTIONS * number + (int32_t)direction];
    return layer->is_adaptive || layer->is_stale ? layer : NULL;
}

int32_t gr_halo_layer_reserve(struct gr_halo_layer *layer, int64_t width, graft_dtype dtype, graft_error *error)
{
    if (layer == NULL || !layer->is_stale) return GRAFT_OK;
    return gr_halo_history_reserve(&layer->history, width, dtype, error);
}

int32_t gr_halo_layers_reserve(struct gr_halo_layers *layers, int32_t number, int64_t width, graft_dtype dtype,
                               graft_error *error)
{
    for (int d = GR_FORWARD; d < GR_DIRECTIONS; d++) {
        struct gr_halo_layer *layer = gr_halo_layers_find(layers, number, (enum gr_direction)d);

        GR_TRY(gr_halo_layer_reserve(layer, width, dtype, error));
    }
    return GRAFT_OK;
}

int64_t gr_halo_layers_need(const struct gr_halo_layers *layers, int32_t number, int64_t width, graft_dtype dtype)
{
    int64_t bytes = 0;

    for (int d = GR_FORWARD; d < GR_DIRECTIONS; d++) {
        const struct gr_halo_layer *layer = gr_halo_layers_find(layers, number, (enum gr_direction)d);

        if (layer != NULL && layer->is_stale) bytes += gr_halo_history_need(&layer->history, width, dtype);
    }
    return bytes;
}

int64_t gr_halo_layers_bytes(const struct gr_halo_layers *layers)
{
    int64_t bytes = 0;

    for (int32_t i = 0; i < count_halo_layers(layers); i++) {
        const struct gr_halo_layer *layer = &layers->layer[i];

        bytes += (int64_t)sizeof *layer + gr_halo_history_bytes(&layer->history) + layer->bits.pool.bytes;
    }
    return bytes;
}

void gr_halo_layers_add_seconds(const struct gr_halo_layers *layers, double *wait, double *exchange)
{
    for (int32_t i = 0; i < count_halo_layers(layers); i++)
        gr_halo_messages_add_seconds(&layers->layer[i].history.messages, wait, exchange);
}
