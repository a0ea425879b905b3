/* Plans and halos with adaptive widths, for tests: some passes, an assignment of widths, passes again, and a record of
 * the results of each rank.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef ADAPTING_H
#define ADAPTING_H

#include "adaptive/adapt.h"
#include "adaptive/network.h"
#include "harness/spread.h"

enum { WIDTH = 24, LAYERS = 2, LANES = 2 * LAYERS };

/* The rows of a lane (a layer in one direction) in the last pass of a rank: sent, received. */
struct seen {
    int64_t                 start[2][RANKS_MOST + 1];
    uint8_t                *bits[2];
    float                  *weight[2], *rows[2];
    double                 *probed; /* [received rows] weights of the rows, from unit vectors */
    int64_t                *vertex; /* [sent rows] of a halo, forward */
    struct gr_row_bits_flow flow[RANKS_MOST];
    double                  expected_error;
    graft_plan_info         info;      /* of the plan */
    double                 *traced[2]; /* [sent rows] sums of ranges and squares, from the library */
    double *summed[2];  /* [sent rows] the same, computed from the rows of passes since the last decision */
    double *decided[2]; /* [sent rows] the sums at the last decision */
};

/* Passes, an assignment of widths, and passes again. */
struct adapting_job {
    struct spread     spread;
    int64_t           n;
    int               adapts;      /* times */
    int               passes;      /* before each time; 0: one */
    int               traces;      /* rows change from epoch to epoch, and are summed */
    int               flat_epochs; /* the first epochs, in which all elements are 1 */
    int               halo;        /* rows of a halo instead of a plan */
    int               probes;
    int32_t           starved_rank;
    int               starves;    /* 1 + the allocation that fails while widths are assigned; 0: none */
    int               has_failed; /* the allocation has failed */
    const char       *odd[2];     /* an option, and a value that only the last rank has */
    struct gr_network network;    /* used if its gamma is not 0; theta times 1 + sender + 2 receivers */
    struct seen       seen[RANKS_MOST][LANES];
    int64_t           sent;  /* bytes of messages in the last epoch, without frames */
    int64_t           grown; /* allocations in an epoch after widths were assigned */
    double            off;   /* relative distance of the last forward pass of layer 0 from the exact one */
};

/** Run it. Returns NULL, or an error in words: the message of the ranks, if all have the same, and its status in
 *  *rc. */
const char *adapting_run(struct adapting_job *job, int32_t n_ranks, int32_t *rc);
void        adapting_fini(struct adapting_job *job);

/** What must hold after every run: both sides have equal widths and weights, all ranks report equal bytes, and
 *  the transport received these bytes. Returns NULL, or an error in words. \param[out] bytes Of an epoch. */
const char *adapting_check(const struct adapting_job *job, int32_t n_ranks, int64_t *bytes);

/** The largest relative quantization error of a lane, weighted, in its last pass. */
double adapting_lost(const struct adapting_job *job, int32_t n_ranks);

/** The largest expected quantization error of a lane, if all ranks report the same; else NAN. */
double adapting_expected(const struct adapting_job *job, int32_t n_ranks);

/** The number of rows with this width, of all lanes and ranks. */
int64_t adapting_count(const struct adapting_job *job, int32_t n_ranks, int bits);

#endif
