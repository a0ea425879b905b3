/* How many threads the system starts. OpenMP ends the process if it cannot start one.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GR_BASE_PROBE_H
#define GR_BASE_PROBE_H

/** Start so many threads beside the calling one, all at the same time, and end them. \return how many there were */
int gr_probe_threads(int wanted);

#endif
