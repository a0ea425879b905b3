/* The available memory and processors of the machine or container.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

/** Bytes that can be allocated without swapping: the available memory of the machine, or of the container if it is
 *  less. */
int64_t gr_memory_available(void);

/** The number of processors whose time the container of this process may use (cpu.max of its cgroup), rounded up.
 *  INT64_MAX if there is no quota. */
int64_t gr_processors_quota(void);

/** The bytes that the container may still use: its limit minus its use, not counting file pages that can be dropped.
 *  `folder` is the folder of its cgroup (version 1 or 2). INT64_MAX if it has no limit. */
int64_t gr_memory_container(const char *folder);

/** The number of processors that the container with this folder may use, rounded up. INT64_MAX if it has no quota. */
int64_t gr_processors_container(const char *folder);

/** The least value of limit() for the cgroups of a process, which the file `list` (/proc/self/cgroup) names, and for
 *  all groups that contain them. Their folders are below `root`. INT64_MAX if there is no limit. */
int64_t gr_available_cgroup_limit(const char *list, const char *root, const char *controller,
                                  int64_t (*limit)(const char *folder));

/** The bytes that the process may still map before it reaches its limit of address space or of data (ulimit -v, -d).
 *  INT64_MAX if it has neither. */
int64_t gr_available_address_space(void);
