/* Sums and extrema over the edges of a group, block by block (edges.h). A block that is not stored on this rank is
 * received from its owner, during the product of the block before it. Besides its own block, a rank has memory for two
 * blocks.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/profile.h"
#include "comm/frame.h"
#include "kernel/kernel.h"
#include "parallel/edges.h"

/** The parts of a message. */
enum { GR_BLOCK_FRAME, GR_BLOCK_COUNTS, GR_BLOCK_COLUMNS, GR_BLOCK_VALUES, GR_BLOCK_PARTS };

/** A message in transit. */
struct gr_block_message {
    struct gr_frame   frame;
    struct gr_request requests[GR_BLOCK_PARTS];
};

/** Memory for a received block. */
struct gr_block_space {
    int32_t *count, *column; /* [most_rows] and [most_entries] as in gr_edge_block */
    float   *values;         /* [most_entries], or NULL */
};

/** The matrices of the stored blocks of a set, or of their first rows. */
struct gr_held_blocks {
    const struct gr_edge_set *set;
    int32_t                   rows;    /* rows, as a prefix of the grid */
    int64_t                  *row_ptr; /* row pointers of all matrices; NULL: those of GR_ALL_ROWS are used */
    graft_matrix            **a;       /* [ranks of the group] matrices; NULL: not stored */
};

/** Which rows a sum computes: those of layer l in a step (slot l), or all rows (GR_ALL_ROWS). */
enum { GR_ALL_ROWS = GR_LAYERS_MAX, GR_ROW_SLOTS };

/** The arguments of a sum over blocks. */
struct gr_block_sum {
    const struct gr_edge_set *set;
    int32_t                   slot;          /* a layer, or GR_ALL_ROWS */
    int32_t                   rows, columns; /* rows of the result, and of the input, as prefixes of the grid */
    int64_t                   width;         /* number of columns of all slices together */
    int32_t                   layer;
    enum gr_direction         direction;
    int64_t                   epoch;
    int                       alone; /* a repeat: no block is sent or received */
    const float              *x;     /* [(rows of the group + beyond) x columns of this rank] the input */
    graft_semiring            semiring;
    int32_t                  *winner; /* [rows of the group x columns] columns of extrema, block by block; or NULL */
    int                       threads;
    double                   *times;
};

/** The messages of a sum. */
struct gr_block_transit {
    struct gr_block_message in[2], out[2];
    uint32_t                crc;    /* CRC of the block of this rank */
    int32_t                 n_sent; /* ranks to which this rank's block was sent, or which do not need it */
    int32_t                 next;   /* distance to the rank whose block is received next */
    int32_t                 n_posted, n_received; /* numbers of posted receives, and of received blocks */
};

struct gr_blocks {
    graft_context        *context;
    struct gr_pool        pool; /* owner of all arrays, except those of the sets */
    struct gr_comm       *comm;
    const struct gr_grid *grid;
    int32_t               channel;
    int                   streams; /* the blocks of other ranks are not stored, but received in each sum */
    int64_t               beyond;  /* number of columns of blocks after the rows of the group */
    struct gr_edge_sets   sets;
    struct gr_held_blocks held[GR_DIRECTIONS][GR_ROW_SLOTS];
    graft_matrix         *a;       /* matrix of a received block */
    int64_t              *row_ptr; /* [most_rows + 1] row pointers of `a` */
    int64_t               most_rows, most_entries;
    struct gr_block_space received[2];

    /* Fields of the sum that has begun: */
    struct gr_block_sum     sum;
    struct gr_block_transit transit;
    double                  seconds; /* time spent in products */
    void (*poll)(void *arg);         /* called during products to let other messages progress */
    void *poll_arg;
};

/** Initialise `blocks` without edges, and take a channel of `comm`. Not collective, but all ranks call it in the same
 *  order, even after a failure of one of them. Always call gr_parallel_blocks_fini(). */
void gr_parallel_blocks_init(graft_context *context, struct gr_comm *comm, const struct gr_grid *grid, int64_t beyond,
                             struct gr_blocks *blocks);
void gr_parallel_blocks_fini(struct gr_blocks *blocks);
/** Gather and store the blocks of the group, or with `streams` allocate memory for two received blocks, after all sets
 *  were created. Collective. \return OK; ERR_NOMEM: the same on all ranks; ERR_PEER. */
int32_t gr_parallel_blocks_choose(const struct gr_budget *budget, struct gr_blocks *blocks, int streams,
                                  graft_error *error);
/** If blocks are stored, create the matrices of a layer that computes only the rows of a prefix; their transpose is in
 *  sets.back. Not collective.
 *  \return OK; ERR_NOMEM. */
int32_t gr_parallel_blocks_mask(struct gr_blocks *blocks, int32_t layer, int32_t prefix, graft_error *error);
/** Exchange the sets for sets with other values. Cannot fail. */
void    gr_parallel_blocks_swap(struct gr_blocks *blocks, struct gr_edge_sets *sets);
/** bytes(): return the current bytes of memory. need(): return the bytes that are needed if the blocks of other ranks
 *  are stored, or with `streams` received. */
int64_t gr_parallel_blocks_bytes(const struct gr_blocks *blocks);
int64_t gr_parallel_blocks_need(const struct gr_blocks *blocks, int streams);

/** Begin a sum, and the exchange of the first block. \return OK; ERR_PEER. */
int32_t gr_parallel_blocks_begin(struct gr_blocks *blocks, const struct gr_block_sum *sum, graft_error *error);
/** Compute out[rows x columns of this rank], the sums of the rows of a rank of the group, in the order of that rank.
 *  Called for each rank after this one in cyclic order, except ranks without rows; this rank is the last, and ends the
 *  sum. \return OK; ERR_PEER; errors of the kernel. */
int32_t gr_parallel_blocks_multiply(void *blocks, int32_t rank, float *out, graft_error *error);

/** Return the bytes of blocks that a rank receives in this sum, or sends; 0 if blocks are stored. */
int64_t gr_parallel_blocks_traffic(const struct gr_blocks *blocks, const struct gr_block_sum *sum, int32_t rank,
                                   int sends);
