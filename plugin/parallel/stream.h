/* Sums and extrema over the edges of a group, block by block (edges.h). A block that is not held comes from its owner:
 * it travels during the product of the block before it. Beside its own block, a rank has two blocks at a time.
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

/** Space for a received block. */
struct gr_block_space {
    int32_t *count, *column; /* [most_rows] and [most_entries] */
    float   *values;         /* [most_entries], or NULL */
};

/** The matrices of the held blocks of a set, or of their first rows. */
struct gr_held_blocks {
    const struct gr_edge_set *set;
    int32_t                   rows;    /* prefix of the grid */
    int64_t                  *row_ptr; /* of all matrices; NULL: the row pointers of all rows */
    graft_matrix            **a;       /* [ranks of the group]; NULL: not held */
};

/** The rows of a sum: the rows of a layer in a step, or all rows. */
enum { GR_ALL_ROWS = GR_LAYERS_MAX, GR_ROW_SLOTS };

/** A sum over blocks. */
struct gr_block_sum {
    const struct gr_edge_set *set;
    int32_t                   slot;          /* a layer, or GR_ALL_ROWS */
    int32_t                   rows, columns; /* prefixes of the grid: of its result, and of its input */
    int64_t                   width;         /* of all slices */
    int32_t                   layer;
    enum gr_direction         direction;
    int64_t                   epoch;
    int                       alone; /* no other rank computes it */
    const float              *x;     /* [rows of the group and `beyond` x columns of this rank] */
    graft_semiring            semiring;
    int32_t                  *winner; /* [rows of the group x columns], block by block; NULL: not needed */
    int                       threads;
    double                   *times;
};

/** The messages of a sum. */
struct gr_block_transit {
    struct gr_block_message in[2], out[2];
    uint32_t                crc;                  /* of the block of this rank */
    int32_t                 n_sent;               /* ranks after this rank that have received it or do not need it */
    int32_t                 next;                 /* the rank, counted from this rank, whose block is received next */
    int32_t                 n_posted, n_received; /* posted receives, and received blocks */
};

struct gr_blocks {
    graft_context        *context;
    struct gr_pool        pool; /* all arrays but those of the sets */
    struct gr_comm       *comm;
    const struct gr_grid *grid;
    int32_t               channel;
    int                   streams; /* it holds no blocks of others */
    int64_t               beyond;  /* columns of blocks after the rows of the group */
    struct gr_edge_sets   sets;
    struct gr_held_blocks held[GR_DIRECTIONS][GR_ROW_SLOTS];
    graft_matrix         *a;       /* of a received block, with: */
    int64_t              *row_ptr; /* [most_rows + 1] */
    int64_t               most_rows, most_entries;
    struct gr_block_space received[2];

    /* The sum that has begun: */
    struct gr_block_sum     sum;
    struct gr_block_transit transit;
    double                  seconds; /* in products */
    void (*poll)(void *arg);         /* other messages, during products */
    void *poll_arg;
};

/** Take the channel of `comm`. Not collective, but all ranks call it in the same order, even after a failure of one of
 *  them. Always call gr_parallel_blocks_fini(). */
void gr_parallel_blocks_init(graft_context *context, struct gr_comm *comm, const struct gr_grid *grid, int64_t beyond,
                             struct gr_blocks *blocks);
void gr_parallel_blocks_fini(struct gr_blocks *blocks);
/** Hold the blocks of the group, or with `streams` allocate memory for two received blocks, after all sets are made.
 *  Collective. \return OK; ERR_NOMEM: the same on all ranks; ERR_PEER. */
int32_t gr_parallel_blocks_choose(const struct gr_budget *budget, struct gr_blocks *blocks, int streams,
                                  graft_error *error);
/** If blocks are held, make the matrices for a layer whose transposed rows are in sets.back. Not collective.
 *  \return OK; ERR_NOMEM. */
int32_t gr_parallel_blocks_mask(struct gr_blocks *blocks, int32_t layer, int32_t prefix, graft_error *error);
/** Replace the sets by sets with other values. Cannot fail. */
void    gr_parallel_blocks_swap(struct gr_blocks *blocks, struct gr_edge_sets *sets);
/** Held bytes; and the bytes with the blocks of other ranks, or (`streams`) without them. */
int64_t gr_parallel_blocks_bytes(const struct gr_blocks *blocks);
int64_t gr_parallel_blocks_need(const struct gr_blocks *blocks, int streams);

/** Begin a sum: the first block travels. \return OK; ERR_PEER. */
int32_t gr_parallel_blocks_begin(struct gr_blocks *blocks, const struct gr_block_sum *sum, graft_error *error);
/** out[rows x columns of this rank] = the rows of a rank of the group, in its order. Ranks are called in their order
 *  after this rank; ranks without rows are left out. This rank is the last, and ends the sum. \return OK; ERR_PEER;
 *  errors of the kernel. */
int32_t gr_parallel_blocks_multiply(void *blocks, int32_t rank, float *out, graft_error *error);

/** Bytes of blocks that a rank receives in this sum, or sends; 0 if blocks are held. */
int64_t gr_parallel_blocks_traffic(const struct gr_blocks *blocks, const struct gr_block_sum *sum, int32_t rank,
                                   int sends);
