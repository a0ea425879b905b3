/* The available memory of the machine or container.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GR_BASE_AVAILABLE_H
#define GR_BASE_AVAILABLE_H

#include <stdint.h>

/** Bytes that can be allocated without swapping: the available memory of the machine, or of the container if it is
 *  less. */
int64_t gr_memory_available(void);

/** Bytes left to the container whose cgroup (version 2) is this folder: its limit minus its use, not counting file
 *  pages that can be dropped. INT64_MAX if it has no limit. */
int64_t gr_memory_container(const char *folder);

/** Bytes that the process may still map, by its limits of address space and of data (ulimit -v, -d). INT64_MAX if it
 *  has none. */
int64_t gr_address_space_left(void);

#endif
