/* Functions gr_strategy_ops.report.explain(): print tables of the rows and bytes that ranks send to each other.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "model/strategy.h"

void gr_parallel_explain(const struct gr_strategy *strategy, double seconds, struct gr_text *text);
void gr_parallel_columns_explain(const struct gr_strategy *strategy, double seconds, struct gr_text *text);
