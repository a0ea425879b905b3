/* Information about the launcher of this process, from environment variables.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef LAUNCH_H
#define LAUNCH_H

#include "problem.h"

/** launch_size() returns the number of processes that a launcher of Open MPI or MPICH has started, or 1 without such a
 *  launcher. launch_rank() returns the rank of this process, or 0. */
int launch_size(void);
int launch_rank(void);

/** Returns whether such a launcher has started this process, even if there is only one process. Some launchers connect
 *  rank 0 to a terminal that no user sees. */
int launch_is_known(void);

/** Check that the launcher itself has started this process, and that no unsupported launcher has started several
 *  copies. Each copy would train alone, and all would write the same files. \return OK; ERR_STATE, whose
 *  message has the variables. */
int32_t launch_check(graft_error *error);

#endif
