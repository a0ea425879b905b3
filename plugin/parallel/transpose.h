/* Rows of a rank, which have all columns, become slices of columns of all rows of its group, and the other way round.
 * Source: MixGCN, section 3.1.2, Algorithm 2.
 *
 * A message is a matrix: rows of the sender in the columns of the receiver, or the other way round. Its elements travel
 * as records of GR_RECORD elements. In a code, and in stale rows, the last record is padded; as floats it has only the
 * remaining elements. Codes have parameters for each record. With parameters for each row of a narrow slice, half of
 * the bytes would be parameters. Messages are made one after the other, and each is sent at once: it travels while the
 * next is made.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "halo/exchange.h"
#include "model/product.h"
#include "parallel/grid.h"

enum { GR_RECORD = 128 };

/** The transposes of a layer in a step: of the inputs of its sums forward, and of their results. Backward the same rows
 *  are turned the other way. */
struct gr_turned_layer {
    int32_t prefix[2];
    int64_t width;
};

struct gr_transpose {
    const graft_context    *context;
    struct gr_pool          pool; /* all arrays but records and slices */
    const struct gr_grid   *grid;
    int32_t                 n_layers;
    struct gr_turned_layer *of_layer; /* [n_layers] */
    struct gr_messages      messages; /* of transposes without stored records */
    struct gr_halo_layers   layers;   /* stale records: of sources by layer, then of results by layer */
    int64_t                *kept;     /* [2 n_layers x GR_SIDES x (n_ranks + 1)] the records of `layers` by rank */
    struct gr_exchange      exchange; /* the last one */
    int64_t                *start[GR_SIDES];  /* [n_ranks + 1] of the records of each rank */
    int64_t                *spare[GR_SIDES];  /* [n_ranks] bytes of padding in the last record of each rank */
    float                  *record[GR_SIDES]; /* [records x GR_RECORD] */
    float                  *slice[2];         /* [rows x columns] of the input and the result of a sum, with: */
    int64_t                 rows[2];
    int64_t                 records, elements[2]; /* of each side, and of each slice: that fit the memory */
};

/** The rows and columns of one sum. */
struct gr_transposed {
    int32_t                 prefix;      /* of the grid: the rows */
    int64_t                 width;       /* columns of all slices */
    int                     of_result;   /* of the forward pass: the result of its sum is turned, else its input */
    int                     stateless;   /* it is not a step of its layer, and its records are never stale */
    int                     synchronous; /* it waits for its own records */
    struct gr_exchange_args args;        /* without width and type */

    /* To rows, for lone rows, whose only terms are their loops: */
    int32_t          given;      /* prefix of the rows with a row of sum->x */
    const graft_csr *local;      /* all rows of this rank, from its own */
    int              of_extrema; /* which take no values */

    /* To rows: compute the rows of a rank in the columns of this rank; called last for this rank, even if it has no
     * rows. NULL: they are in slice[1], in the order of the group. */
    int32_t (*make)(void *arg, int32_t rank, float *out, graft_error *error);
    void  *make_arg;
    float *own; /* place for the rows of this rank */
};

/** Not collective, but all ranks call it in the same order, even after a failure of one of them.
 *  Always call gr_parallel_transpose_fini().
 *  \param[in] rows  Of the slices of the input, at least the rows of the group, and of the result.
 *  \return OK; ERR_NOMEM. */
int32_t gr_parallel_transpose_init(const graft_context *context, struct gr_comm *comm, const struct gr_grid *grid,
                                   int32_t n_layers, const int64_t rows[2], struct gr_transpose *t, graft_error *error);
/** Waits for messages in flight. */
void    gr_parallel_transpose_fini(struct gr_transpose *t);
/** Make the stored records of the transposes of t->of_layer, if options ask for them: t->layers, or their replacement.
 *  Not collective, but all ranks call it in the same order, even after a failure of one of them. gr_halo_layers_fini()
 *  is always due. \return OK; ERR_NOMEM. */
int32_t gr_parallel_transpose_layers_init(const struct gr_transpose *t, struct gr_halo_layers *layers,
                                          graft_error *error);
/** Allocate memory for their records. Not collective. \return OK; ERR_NOMEM. */
int32_t gr_parallel_transpose_layers_reserve(const struct gr_transpose *t, struct gr_halo_layers *layers,
                                             graft_error *error);
int64_t gr_parallel_transpose_layers_need(const struct gr_transpose *t, const struct gr_halo_layers *layers);
/** Allocate memory for rows of `width` columns, and of earlier widths. A slice of a wider row may be narrower. Not
 *  collective. \return OK; ERR_NOMEM. */
int32_t gr_parallel_transpose_reserve(struct gr_transpose *t, int64_t width, graft_error *error);
/** Held bytes, and the bytes after gr_parallel_transpose_reserve(). */
int64_t gr_parallel_transpose_bytes(const struct gr_transpose *t);
int64_t gr_parallel_transpose_need(const struct gr_transpose *t, int64_t width);

/** Elements of a message: rows of one rank in the columns of another rank of its group. */
static inline int64_t gr_parallel_transpose_elements(const struct gr_grid *grid, const struct gr_transposed *what,
                                                     int32_t rows_of, int32_t columns_of)
{
    return gr_parallel_grid_rows_of(grid, rows_of, what->prefix) *
           gr_parallel_grid_slice_width(grid, what->width, columns_of % grid->columns);
}

/** Bytes of a message of `elements` elements in records of `record` bytes. */
static inline int64_t gr_parallel_transpose_message_bytes(const struct gr_messages *messages, int64_t elements,
                                                          int64_t record)
{
    if (!messages->begun.encodes) return elements * (int64_t)sizeof(float);
    return (elements + GR_RECORD - 1) / GR_RECORD * record;
}

/** slice[0] = columns of x[rows of this rank x width], from all ranks of the group. After begin() x is no longer
 *  needed. Collective. \return OK; ERR_PEER; ERR_FORMAT as gr_halo_exchange_send(). */
int32_t gr_parallel_transpose_columns_begin(struct gr_transpose *t, const struct gr_transposed *what,
                                            const struct gr_sum *sum, struct gr_team team, graft_error *error);
int32_t gr_parallel_transpose_columns_end(struct gr_transpose *t, const struct gr_transposed *what,
                                          const struct gr_sum *sum, struct gr_team team, graft_error *error);
/** sum->out = diag(sum->scale) times the rows of this rank in slice[1] of all ranks of the group, or added to it. With
 *  what->make, rows are sent to a rank as soon as they are computed. Collective. \return as above. */
int32_t gr_parallel_transpose_to_rows(struct gr_transpose *t, const struct gr_transposed *what,
                                      const struct gr_sum *sum, struct gr_team team, graft_error *error);

/** out += rows of a rank in slice[1], which are in the order of the group. */
void gr_parallel_transpose_add_result(const struct gr_transpose *t, const struct gr_transposed *what, int32_t rank,
                                      float *out, struct gr_team team);
