/* Runs of plans and halos with adaptive bit widths (AdaQP): some passes, an assignment of widths from the ranges of the
 * rows, and passes with these widths. Each rank records rows, widths and weights for the checks of the tests.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef ADAPTING_H
#define ADAPTING_H

#include "adaptive/adapt.h"
#include "adaptive/network.h"
#include "harness/spread.h"

enum { WIDTH = 24, LAYERS = 2, LANES = 2 * LAYERS };

/* What one rank saw in the last pass of a lane. A lane is one layer in one direction. Arrays with two elements have the
 * sent rows first, then the received rows. */
struct seen {
    int64_t                 start[2][RANKS_MOST + 1];
    uint8_t                *bits[2];
    float                  *weight[2], *rows[2];
    double                 *probed; /* [received rows] weight of each row, measured by passes with unit vectors */
    int64_t                *vertex; /* [sent rows] global number of each vertex, in forward passes of a halo */
    struct gr_row_bits_flow flow[RANKS_MOST];
    double                  expected_error;
    graft_plan_info         info;       /* counters of the plan */
    double                 *traced[2];  /* [sent rows] for each row the sums of ranges and of squares that the library
                                         * traced */
    double                 *summed[2];  /* [sent rows] the same sums, computed by the test since the last assignment of
                                         * widths */
    double                 *decided[2]; /* [sent rows] the sums from which the library made its last assignment of
                                         * widths */
};

/* One job: it runs passes, assigns bit widths, and runs passes again. A test may vary it by these settings. */
struct adapting_job {
    struct spread     spread;
    int64_t           n;
    int               adapts;      /* number of assignments of widths */
    int               passes;      /* passes before each assignment; 0 means one */
    int               traces;      /* whether rows change from epoch to epoch and the test sums them */
    int               flat_epochs; /* number of epochs at the beginning in which all elements are 1, so that ranges are
                                    * 0 */
    int               halo;        /* whether rows of a halo are exchanged instead of partial sums of a plan */
    int               probes;
    int32_t           starved_rank;
    int               starves; /* which allocation fails while widths are assigned: its number plus 1, or 0 for none */
    int               has_failed; /* whether that allocation has failed */
    const char       *odd[2];     /* an option and its value that only the last rank sets, or NULL */
    /* The cost model of the network, which is used unless its gamma is 0. The theta of a link is multiplied by 1 +
     * sender + 2 * receiver. */
    struct gr_network network;
    struct seen       seen[RANKS_MOST][LANES];
    int64_t           sent;  /* payload bytes of the messages in the last epoch, without frames */
    int64_t           grown; /* number of allocations that the library makes in an epoch after the assignment */
    double            off;   /* relative distance of the last forward pass of layer 0 from the exact product */
};

/** Run the job on n_ranks threads. The return value is NULL, or an error in words. If all ranks returned the same
 *  message this is the error, and *rc is its status. */
const char *adapting_run(struct adapting_job *job, int32_t n_ranks, int32_t *rc);
void        adapting_fini(struct adapting_job *job);

/** Check what must hold after every run: sender and receiver have equal widths and weights, all ranks report the same
 *  number of bytes, and the transport was given that number. The return value is NULL or an error in words. \param[out]
 *  bytes Bytes of an epoch. */
const char *adapting_check(const struct adapting_job *job, int32_t n_ranks, int64_t *bytes);

/** The largest relative quantization error over the lanes in their last pass, weighted by the coefficients of the
 *  rows. */
double adapting_lost(const struct adapting_job *job, int32_t n_ranks);

/** The largest quantization error that the library expects of a lane, if all ranks report the same one; otherwise
 *  NAN. */
double adapting_expected(const struct adapting_job *job, int32_t n_ranks);

/** The number of rows with this width, over all lanes and ranks. */
int64_t adapting_count(const struct adapting_job *job, int32_t n_ranks, int bits);

#endif
