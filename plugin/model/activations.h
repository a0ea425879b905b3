/* The arrays of layers: those of every kind, and those for which a kind asks.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/budget.h"
#include "model/block.h"
#include "model/model.h"

/** The forward pass of a layer has two steps. The first computes the arrays that the backward pass needs besides input
 *  and Z; the second computes Z with its bias. */
enum gr_step { GR_STEP_BEGIN, GR_STEP_Z, GR_STEPS };

/** How long a layer needs the contents of an array. */
enum gr_life {
    GR_LIFE_KEPT,       /* from the forward pass of a layer to its backward pass */
    GR_LIFE_RECOMPUTED, /* from the forward pass to the backward pass; but with option recompute all layers share one
                         * array, whose contents are computed again from the input of the layer */
    GR_LIFE_SHARED      /* all layers share one array; the kind decides what it contains between their passes */
};

/** Properties of an array of a layer. */
struct gr_array_shape {
    const char  *name; /* name in errors of allocation */
    uint64_t     element_bytes;
    enum gr_use  use;
    enum gr_life life;
};

/** The arrays that layers of all kinds have. */
enum gr_array {
    GR_ARRAY_GATHERED,
    GR_ARRAY_Z,
    GR_ARRAY_H,
    GR_ARRAY_OUTPUT,
    GR_ARRAY_JOINED,
    GR_ARRAY_MEAN,
    GR_ARRAY_RSTD,
    GR_ARRAY_BITS,
    GR_ARRAYS
};

enum { GR_OWN_ARRAYS = 12 };

/** The state of one layer on a block: results of its forward pass for the backward pass. */
struct gr_activations {
    int32_t                index;
    const struct gr_layer *layer;
    const struct gr_block *block;                    /* block of the current pass */
    int64_t                count[GR_ARRAYS];         /* elements of each array; 0: there is none */
    int64_t                own_count[GR_OWN_ARRAYS]; /* elements of each array in `own` */
    int                    shared[GR_STEPS]; /* other layers use the arrays of this step too: option recompute */
    int                    aggregate_first;  /* the layer computes (A H) W instead of A (H W) */
    int                    awaits_halo;      /* rows of the halo have not been received and used yet */
    const float           *gathered_of;      /* the constant input of `gathered`, or NULL */
    float                 *gathered;         /* [n_dst x in] aggregated input, if aggregate_first */
    float                 *z;                /* [n_dst x out] result of the layer before norm */
    float                 *mean, *rstd;      /* [n_dst] mean and 1 / deviation of rows; BatchNorm: [out] of columns */
    uint8_t               *bits;             /* [n_dst x (out+7)/8] 1: activation and dropout keep the element */
    float                 *h; /* [n_dst x out] z after norm, activation and dropout; without norm it overwrites z */
    float *output; /* [n_dst x out] input of the next layer: h; an array of its own for option residual with ELU */
    float *joined; /* [n_src x in] input made of several outputs, for option jumping: run/layers.c */
    void  *own[GR_OWN_ARRAYS]; /* arrays in the table of the kind, by index; NULL: not used */
};

/** The number of columns of the rows that a layer sums over neighbours. */
static inline int64_t gr_summed_columns(const struct gr_activations *a)
{
    return a->aggregate_first ? a->layer->in : a->layer->out;
}

/** The sizes that the arrays of a run must have. */
struct gr_capacity {
    int64_t rows;          /* number of destinations of a layer */
    int64_t seen;          /* number of columns of the edges: sources and halo */
    int     predicts;      /* there is no backward pass */
    int     reads_history; /* blocks of batches also have rows of earlier batches, after their own rows */
    int64_t edges;         /* number of edges, for attention */
    int64_t winner_words;  /* words of 32 bits in a column index, for winners; 0: the strategy stores the winners */
    int64_t gradient_rows; /* number of rows of a step that have gradients */
    int64_t label_rows;    /* the value of gr_labels.rows */
    int64_t measured;      /* number of vertices whose losses are computed, if more than `seen` */
    struct gr_layer_size {
        int64_t rows, seen, edges;
    } layer[GR_LAYERS_MAX]; /* sizes for each block of a batch; all 0: the sizes above */
};
