/* Turns rows of a rank, which have all columns, into slices of columns of all rows of its group, and back. Source:
 * MixGCN, section 3.1.2, Algorithm 2.
 *
 * A message is a matrix: rows of the sender in the columns of the receiver, or the other way round. Its elements are
 * sent in records of GR_RECORD elements. The last record is padded if it is quantized or stale; otherwise it has only
 * the remaining elements. Quantization parameters belong to a record, because with parameters for each row of a narrow
 * slice half of the bytes would be parameters. Each message is sent as soon as it is packed, and is in flight while the
 * next one is packed.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "halo/exchange.h"
#include "model/product.h"
#include "parallel/grid.h"

enum { GR_RECORD = 128 };

/** The transposes of a layer in a step: [0] of the inputs of its forward sums, [1] of their results. Backward the same
 *  rows are transposed in the opposite direction. */
struct gr_turned_layer {
    int32_t prefix[2];
    int64_t width;
};

struct gr_transpose {
    const graft_context    *context;
    struct gr_pool          pool; /* owner of all arrays, except records and slices */
    const struct gr_grid   *grid;
    int32_t                 n_layers;
    struct gr_turned_layer *of_layer; /* [n_layers] */
    struct gr_messages      messages; /* messages of transposes without stored records */
    struct gr_halo_layers   layers;   /* stale records: of sources by layer, then of results by layer */
    int64_t                *kept; /* [2 n_layers x GR_SIDES x (n_ranks + 1)] first record of each rank in `layers` */
    struct gr_exchange      exchange;             /* the last exchange */
    int64_t                *start[GR_SIDES];      /* [n_ranks + 1] first record of each rank */
    int64_t                *spare[GR_SIDES];      /* [n_ranks] bytes of padding in the last record of each rank */
    float                  *record[GR_SIDES];     /* [records x GR_RECORD] records of the current exchange */
    float                  *slice[2];             /* [rows x columns] slices of the input and the result of a sum */
    int64_t                 rows[2];              /* rows of each slice */
    int64_t                 records, elements[2]; /* capacities of `record` and `slice` */
};

/** The rows and columns of one sum. */
struct gr_transposed {
    int32_t                 prefix;      /* the rows, as a prefix of the grid */
    int64_t                 width;       /* number of columns of all slices together */
    int                     of_result;   /* the rows are results of a forward sum (or their gradients), else inputs */
    int                     stateless;   /* not a step of the layer: its records are never stale */
    int                     synchronous; /* uses its own records, not stale ones */
    struct gr_exchange_args args;        /* arguments except width and type */

    /* For transposes to rows: the data of lone rows, whose sums have no terms except self-loops. */
    int32_t          given;      /* rows that sum->x has, as a prefix of the grid */
    const graft_csr *local;      /* the edges between vertices of this rank */
    int              of_extrema; /* extrema: values of edges do not count */

    /* For transposes to rows: compute the rows of a rank in the columns of this rank; called last for this rank, even
     * if it has no rows. NULL: the rows are in slice[1], in the order of the group. */
    int32_t (*make)(void *arg, int32_t rank, float *out, graft_error *error);
    void  *make_arg;
    float *own; /* memory for the rows of this rank that make() computes */
};

/** Initialise transposes without memory for rows. Not collective, but all ranks call it in the same order, even after a
 *  failure of one of them. Always call gr_parallel_transpose_fini().
 *  \param[in] rows  Rows of the slices of inputs, at least the rows of the group, and of results.
 *  \return OK; ERR_NOMEM. */
int32_t gr_parallel_transpose_init(const graft_context *context, struct gr_comm *comm, const struct gr_grid *grid,
                                   int32_t n_layers, const int64_t rows[2], struct gr_transpose *t, graft_error *error);
/** Free all memory. Waits for messages in flight. */
void    gr_parallel_transpose_fini(struct gr_transpose *t);
/** Initialise `layers`, the stored records of the transposes of t->of_layer, if options need them: t->layers, or its
 *  replacement. Not collective, but all ranks call it in the same order, even after a failure of one of them.
 *  Always call gr_halo_layers_fini(). \return OK; ERR_NOMEM. */
int32_t gr_parallel_transpose_layers_init(const struct gr_transpose *t, struct gr_halo_layers *layers,
                                          graft_error *error);
/** Allocate memory for the records of `layers`. Not collective. \return OK; ERR_NOMEM. */
int32_t gr_parallel_transpose_layers_reserve(const struct gr_transpose *t, struct gr_halo_layers *layers,
                                             graft_error *error);
int64_t gr_parallel_transpose_layers_need(const struct gr_transpose *t, const struct gr_halo_layers *layers);
/** Allocate memory for rows of `width` columns, in addition to earlier widths: on a rank, the slice of a wider row may
 *  be narrower. Not collective. \return OK; ERR_NOMEM. */
int32_t gr_parallel_transpose_reserve(struct gr_transpose *t, int64_t width, graft_error *error);
/** bytes(): return the current bytes of memory. need(): return the bytes after gr_parallel_transpose_reserve(). */
int64_t gr_parallel_transpose_bytes(const struct gr_transpose *t);
int64_t gr_parallel_transpose_need(const struct gr_transpose *t, int64_t width);

/** Return the number of elements of a message: rows of one rank in the columns of another rank of its group. */
static inline int64_t gr_parallel_transpose_elements(const struct gr_grid *grid, const struct gr_transposed *what,
                                                     int32_t rows_of, int32_t columns_of)
{
    return gr_parallel_grid_rows_of(grid, rows_of, what->prefix) *
           gr_parallel_grid_slice_width(grid, what->width, columns_of % grid->columns);
}

/** Return the bytes of a message of `elements` elements in records of `record` bytes. */
static inline int64_t gr_parallel_transpose_message_bytes(const struct gr_messages *messages, int64_t elements,
                                                          int64_t record)
{
    if (!messages->begun.encodes) return elements * (int64_t)sizeof(float);
    return (elements + GR_RECORD - 1) / GR_RECORD * record;
}

/** Begin or end a transpose to columns: slice[0] receives the columns of this rank of x[rows x width] of all ranks of
 *  the group. After begin() x is no longer needed. Collective. \return OK; ERR_PEER; ERR_NONFINITE as
 *  gr_halo_messages_send(). */
int32_t gr_parallel_transpose_columns_begin(struct gr_transpose *t, const struct gr_transposed *what,
                                            const struct gr_sum *sum, struct gr_team team, graft_error *error);
int32_t gr_parallel_transpose_columns_end(struct gr_transpose *t, const struct gr_transposed *what,
                                          const struct gr_sum *sum, struct gr_team team, graft_error *error);
/** Transpose to rows: sum->out = diag(sum->scale) (rows of this rank in slice[1] of all ranks of the group), or with
 *  sum->add it is added to sum->out. With what->make, rows are sent to a rank as soon as they are computed. Collective.
 *  \return As gr_parallel_transpose_columns_begin(). */
int32_t gr_parallel_transpose_to_rows(struct gr_transpose *t, const struct gr_transposed *what,
                                      const struct gr_sum *sum, struct gr_team team, graft_error *error);

/** Add the rows of a rank in slice[1], which are in the order of the group, to out. */
void gr_parallel_transpose_add_result(const struct gr_transpose *t, const struct gr_transposed *what, int32_t rank,
                                      float *out, struct gr_team team);
