/* Prints the table of results and writes their JSON file.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_REPORT_H
#define BENCH_REPORT_H

#include "lane.h"

/** Print the table. The medians of all lanes must have been computed. */
void bench_report_print(const struct bench_lanes *lanes, const struct bench_inputs *inputs);

/** Write [{"kernel","form","width","threads","seconds_median","gb_per_s"}, ...] with one object for each lane that ran.
 *  Exits if the file cannot be written. */
void bench_report_json(const struct bench_lanes *lanes, const struct bench_inputs *inputs, const char *path);

#endif
