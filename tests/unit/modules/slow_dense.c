/* A dense module that is as slow as a remote accelerator, has one state, and may be called by one thread at a time. For
 * test_workers_modules.
 * SPDX-License-Identifier: Apache-2.0 */
#define MODULE_NAME "slow"
#define MODULE_DESCRIPTION "an accelerator that sleeps, for tests"
#define MODULE_FACTOR 1
#define PRODUCTS_A_SECOND 2e8

#include "plain_dense.h"
