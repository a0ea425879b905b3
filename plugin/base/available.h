/* How much memory there is to be had.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GR_BASE_AVAILABLE_H
#define GR_BASE_AVAILABLE_H

#include <stdint.h>

/** Bytes that can be had without swapping: what Linux says of the machine, or of the container, if that is less. */
int64_t gr_memory_available(void);

/** Bytes that are left to the container whose control group, of version 2, is this folder: its limit less what it uses,
 *  but for pages of files that can go at once. INT64_MAX if it has no limit. */
int64_t gr_memory_container(const char *folder);

#endif
