/* The table and the JSON file of results.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_REPORT_H
#define BENCH_REPORT_H

#include "lane.h"

/** Print the table. The medians must be there. */
void bench_report_print(const struct bench_lanes *lanes, const struct bench_inputs *inputs);

/** Write [{"kernel","form","width","threads","seconds_median","gb_per_s"}, ...], one for each lane that ran, or die. */
void bench_report_json(const struct bench_lanes *lanes, const struct bench_inputs *inputs, const char *path);

#endif
