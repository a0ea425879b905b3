/* Chooses the bits of each group of rows that minimise quantization error and waits: the bi-objective problem of AdaQP,
 * solved without an external solver.
 *
 * Groups belong to channels, one for each pair of ranks in an exchange, and channels to exchanges (one layer in one
 * direction). With b bits, of 2, 4 and 8, group g has the variance v_g / (2^b - 1)^2; channel c takes gamma_c + theta_c
 * * bytes seconds, and an exchange as long as its slowest channel. The objective is lambda V / (V_2 - V_8) + (1 -
 * lambda) T / (T_8 - T_2), where V is the sum of the variances of all groups, T is the sum of the times of all
 * exchanges, and V_b and T_b are the sums with b bits everywhere.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/context.h"

struct gr_assign_group {
    int64_t rows;
    double  variance; /* v, at least 0: the error with a step as wide as the range of each row */
    int32_t channel;
    int32_t bits; /* the result: 2, 4 or 8 */
};

struct gr_assign_channel {
    int64_t width; /* elements of a row */
    double  gamma, theta;
    int32_t exchange;
};

struct gr_assign {
    struct gr_assign_group         *groups;
    const struct gr_assign_channel *channels;
    int64_t                         n_groups;
    int64_t                         besides; /* bytes of other rows, which count towards a limit of bytes */
    int32_t                         n_channels, n_exchanges;
};

/** The cost of an assignment. */
struct gr_assign_cost {
    double  variance, seconds; /* V and T */
    int64_t bytes;             /* bytes of all rows, with parameters */
};

/** Compute the cost of the current bits of the groups. \return OK; ERR_NOMEM. */
int32_t gr_adaptive_assign_cost(const graft_context *context, const struct gr_assign *assign,
                                struct gr_assign_cost *cost, graft_error *error);

/** Minimise the objective, lambda from 0 to 1. Each channel first upgrades the groups that save the most variance per
 *  byte; the deadline of an exchange is the best of the times at which one of its channels has finished an upgrade;
 *  then all upgrades are taken that end before the deadline. O(n log n); each channel differs from the optimum by at
 *  most one group.
 * \return OK; ERR_NOMEM. */
int32_t gr_adaptive_assign_balance(const graft_context *context, const struct gr_assign *assign, double lambda,
                                   graft_error *error);

/** Minimise the variance within a limit of bytes; or the bytes within a limit of variance.
 *  \return OK; ERR_OPTION (the smallest possible value exceeds the limit: the message has it); ERR_NOMEM. On failure
 *          bits are unchanged. */
int32_t gr_adaptive_assign_within_bytes(const graft_context *context, const struct gr_assign *assign, int64_t bytes,
                                        graft_error *error);
int32_t gr_adaptive_assign_within_variance(const graft_context *context, const struct gr_assign *assign,
                                           double variance, graft_error *error);
