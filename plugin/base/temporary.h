/* Temporary files beside a file that is being replaced. Each writer has its own name, also on a disk that several
 * machines share, and holds a lock on its file, so that a later writer can detect files left by killed processes.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <limits.h>

/** The suffix of a temporary file is ".BBBBBBBB-RRRRRRRR.tmp", in hexadecimal digits. The first number is
 *  from the boot id of the machine, the second one is random. */
enum { GR_TEMPORARY_SUFFIX = 1 + 8 + 1 + 8 + 4 + 1 };

struct gr_temporary {
    int  fd; /* open for writing, and locked; -1: not open */
    char suffix[GR_TEMPORARY_SUFFIX];
    char path[PATH_MAX];
};

/** Create a file named as `place` with a suffix. \return 0, or an errno; then it is not open. */
int gr_temporary_create(struct gr_temporary *temporary, const char *place);

/** A descriptor above the standard files, which a host may have closed although it still prints. \return fd, or its
 *  copy, fd being closed; -1 and errno, also for fd -1 */
int gr_temporary_above_standard(int fd);

/** Remove the temporary files of `place` whose writers have ended: unlocked files of this machine since its start, and
 *  other files after a day, because locks may not work between machines. */
void gr_temporary_sweep(const char *place);

/** Remove names that are `name` with a suffix, where `place` with the same suffix is gone: a writer of `place` makes
 *  such a name after its temporary file, and removes it before. */
void gr_temporary_sweep_second(const char *name, const char *place);
