/* How many bits each group of rows of a message gets, so that little is lost and nobody waits long: the bi-objective of
 * AdaQP, solved without a solver.
 *
 * Groups belong to channels, one for each pair of ranks in an exchange, and channels to exchanges (one layer in one
 * direction). With b bits, of 2, 4 and 8, group g loses v_g / (2^b - 1)^2 and takes bytes; channel c takes time gamma_c
 * + theta_c * bytes, and an exchange as long as its slowest channel. Wanted is the least of lambda V / (V_2 - V_8) + (1
 * - lambda) T / (T_8 - T_2) for the sum V of what groups lose and T of what exchanges take, where V_b and T_b are with
 * b bits everywhere.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GR_ADAPTIVE_ASSIGN_H
#define GR_ADAPTIVE_ASSIGN_H

#include "base/context.h"

struct gr_assign_group {
    int64_t rows;
    double  variance; /* v, at least 0: what is lost with a step as long as the range of each row */
    int32_t channel;
    int32_t bits; /* written: 2, 4 or 8 */
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
    int64_t                         besides; /* bytes of other rows, which count for a limit of bytes */
    int32_t                         n_channels, n_exchanges;
};

/** What a choice of bits comes to. */
struct gr_assign_cost {
    double  variance, seconds; /* V and T */
    int64_t bytes;             /* of all rows, with parameters */
};

/** Of the bits that groups have. \return OK; ERR_NOMEM. */
int32_t gr_assign_cost(const graft_context *context, const struct gr_assign *assign, struct gr_assign_cost *cost,
                       graft_error *error);

/** Minimise the objective, lambda from 0 to 1. The deadline of an exchange is found among those at which a channel has
 *  just done an upgrade, where each channel does those first that save most variance for a byte; what still fits before
 *  the deadline is added. O(n log n); within a group of the optimum for each channel.
 * \return OK; ERR_NOMEM. */
int32_t gr_assign_balance(const graft_context *context, const struct gr_assign *assign, double lambda,
                          graft_error *error);

/** Lose as little as possible in at most so many bytes; or send as few as possible and lose at most so much.
 * \return OK; ERR_OPTION (not even the fewest bytes, or the least loss, are as few: the sentence says what they are);
 *         ERR_NOMEM. Bits are as they were on failure. */
int32_t gr_assign_within_bytes(const graft_context *context, const struct gr_assign *assign, int64_t bytes,
                               graft_error *error);
int32_t gr_assign_within_variance(const graft_context *context, const struct gr_assign *assign, double variance,
                                  graft_error *error);

#endif
