/* What the environment tells of the launcher of this process.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef LAUNCH_H
#define LAUNCH_H

#include "problem.h"

/** The number of processes that a launcher of Open MPI or MPICH has started, and the rank of this one; 1 and 0 without
 *  such a launcher. */
int launch_size(void);
int launch_rank(void);

/** Whether such a launcher has started this process, even as the only one. Some give rank 0 a terminal that no user
 *  sees. */
int launch_is_known(void);

/** Check that this process is one of those that the launcher has started, and that no other launcher has started
 *  several copies, which would all train alone and write the same files. \return OK; ERR_STATE with the variables. */
int32_t launch_check(graft_error *error);

#endif
