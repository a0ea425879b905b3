/* Plans and halos with adaptive bits, for tests: some passes, bits for what they send, passes again; and what ranks
 * then have is looked at.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef ADAPTING_H
#define ADAPTING_H

#include "adaptive/adapt.h"
#include "adaptive/network.h"
#include "harness/spread.h"

enum { WIDTH = 24, LAYERS = 2, LANES = 2 * LAYERS };

/* What a rank had of a lane in its last pass: out, in. */
struct seen {
    int64_t                 start[2][RANKS_MOST + 1];
    uint8_t                *bits[2];
    float                  *weight[2], *rows[2];
    double                 *probed; /* [rows that came] their weights by unit vectors */
    int64_t                *vertex; /* [rows that went] of a halo, forward */
    struct gr_row_bits_flow flow[RANKS_MOST];
    double                  expected_error;
    graft_plan_info         info; /* of the plan */
};

/* Passes, bits for what they send, and passes again. */
struct adapting_job {
    struct spread     spread;
    int64_t           n;
    int               adapts;      /* times */
    int               flat_epochs; /* first ones, of which all elements are 1 */
    int               halo;        /* rows of a halo and not a plan */
    int               probes;
    int32_t           starved_rank;
    int               starves;    /* 1 + the allocation of it that fails when bits are decided on; 0: none */
    int               has_failed; /* it did */
    const char       *odd[2];     /* option that the last rank has otherwise */
    struct gr_network network;    /* gamma not 0: in place of what is measured, theta times 1 + sender + 2 receivers */
    struct seen       seen[RANKS_MOST][LANES];
    int64_t           sent;  /* bytes of messages in the last epoch, without frames */
    int64_t           grown; /* allocations in an epoch after bits were decided on */
    double            off;   /* of the last forward pass of layer 0 from the exact one, by its length */
};

/** Run it. Returns NULL, or what is wrong: the words of the ranks, if all say the same, with *rc. */
const char *adapting_run(struct adapting_job *job, int32_t n_ranks, int32_t *rc);
void        adapting_fini(struct adapting_job *job);

/** What must hold after every run: bits and weights are the same on both sides, all ranks know what bytes they come to,
 *  and the transport had so many. Returns NULL, or what is wrong. \param[out] bytes  Of an epoch. */
const char *adapting_check(const struct adapting_job *job, int32_t n_ranks, int64_t *bytes);

/** The largest share of weight |x|^2 that a lane lost in its last pass. */
double adapting_lost(const struct adapting_job *job, int32_t n_ranks);

/** The largest that a lane was expected to lose, if all ranks say the same; else NAN. */
double adapting_expected(const struct adapting_job *job, int32_t n_ranks);

/** Rows of so many bits, of all lanes and ranks. */
int64_t adapting_count(const struct adapting_job *job, int32_t n_ranks, int bits);

#endif
