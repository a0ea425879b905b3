/* A dense module whose products are too large by a thousandth of a percent, which option check must find.
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#define MODULE_NAME "wrong"
#define MODULE_DESCRIPTION "a little too large, for tests"
#define MODULE_FACTOR 1.00001f
#define PRODUCTS_A_SECOND INFINITY

#include "plain_dense.h"
