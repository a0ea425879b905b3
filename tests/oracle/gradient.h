/* Checks of gradients: a step of a trainer compared with the gradient of its oracle.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GRADIENT_H
#define GRADIENT_H

#include "training.h"

/* The contract has no call for gradients, but SGD without momentum shows them: w' = w - lr g, so g = (w - w') / lr. The
 * float w' is rounded by at most 2^-24 of |w| + |lr g|. With lr = 1024 and |w| < 2, that is an error of g below 2^-24
 * |g| + 2^-33, while the largest gradient of every tensor is above 1e-3, by the choice of training_init(): a relative
 * error below 2e-7. A power of two adds no rounding. */
#define GRADIENT_RATE 1024.0

/** Check gradients and loss of the first epoch, whose learning rate must be GRADIENT_RATE; with dropout or labels of a
 *  second epoch too, from the same weights, which must draw differently. */
void gradient_check(const graft_api *api, const struct training_case *what);

#endif
