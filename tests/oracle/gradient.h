/* Checks gradients. One training step of the library is compared with the gradient that the oracle computes by central
 * differences.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GRADIENT_H
#define GRADIENT_H

#include "training.h"

/* The contract has no call that returns gradients, but a step of SGD without momentum shows them: w' = w - lr g, hence
 * g = (w - w') / lr. The float w' is rounded by at most 2^-24 of |w| + |lr g|. With lr = 1024 and |w| < 2 the error of
 * g is below 2^-24 |g| + 2^-33, while training_init() chooses data for which the largest gradient of every tensor is
 * above 1e-3. The relative error is therefore below 2e-7. A learning rate that is a power of two adds no rounding. */
#define GRADIENT_RATE 1024.0

/** Check the gradients and the loss of the first epoch. The learning rate of the case must be GRADIENT_RATE. With
 * dropout or with labels as input, a second epoch is checked too. It starts with the same weights and must draw other
 * random numbers. */
void gradient_check(const graft_api *api, const struct training_case *what);

#endif
