/* Strategy `serial`: all vertices are in one process. It has no state except its table.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GR_PARALLEL_SERIAL_H
#define GR_PARALLEL_SERIAL_H

#include "model/strategy.h"

extern const struct gr_strategy_ops gr_serial_ops;

#endif
