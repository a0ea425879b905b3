/* The available memory and processors of the machine or container.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

/** Bytes that can be allocated without swapping: the available memory of the machine, or of the container if it is
 *  less. */
int64_t gr_memory_available(void);

/** Processors whose time the container of this process may use (cpu.max of its cgroup), rounded up. INT64_MAX if it has
 *  no quota. */
int64_t gr_processors_quota(void);

/** Bytes left to the container whose cgroup (version 1 or 2) is this folder: its limit minus its use, not counting file
 *  pages that can be dropped. INT64_MAX if it has no limit. */
int64_t gr_memory_container(const char *folder);

/** The same for its processors. */
int64_t gr_processors_container(const char *folder);

/** The least limit of the groups of a process, which `list` names (/proc/self/cgroup), and of those around them, in the
 *  folders below `root`. INT64_MAX if there is none. */
int64_t gr_available_cgroup_limit(const char *list, const char *root, const char *controller,
                                  int64_t (*limit)(const char *folder));

/** Bytes that the process may still map, by its limits of address space and of data (ulimit -v, -d). INT64_MAX if it
 *  has none. */
int64_t gr_available_address_space(void);
