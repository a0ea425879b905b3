/* The work of the ranks of a graph in an epoch, according to the options.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "dgraph/graph.h"

struct gr_workload gr_parallel_workload_of(const graft_context *context);
