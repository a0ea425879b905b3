/* Temporary files in the folder of a file that is being replaced. Each writer has its own name, also on a disk that
 * several machines share, and holds a lock on its file, so that a later writer can detect files left by killed
 * processes.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <limits.h>

/** The suffix of a temporary file is ".BBBBBBBB-RRRRRRRR.tmp", in hexadecimal digits: B is from the boot id of the
 *  machine, and R is random. */
enum { GR_TEMPORARY_SUFFIX = 1 + 8 + 1 + 8 + 4 + 1 };

struct gr_temporary {
    int  fd; /* descriptor, open for writing and locked; -1: not open */
    char suffix[GR_TEMPORARY_SUFFIX];
    char path[PATH_MAX];
};

/** Create and lock a file whose name is `place` with a suffix. \return 0, or errno; then no file is open */
int gr_temporary_create(struct gr_temporary *temporary, const char *place);

/** Move a descriptor above those of the standard streams: a host may have closed those, but may still print to them.
 *  \return fd, or a copy of it, and fd is closed; -1 with errno, also if fd is -1 */
int gr_temporary_above_standard(int fd);

/** Remove temporary files of `place` whose writers have ended: files of this machine since its start that are not
 *  locked, and all others after a day, because locks may not work between machines. */
void gr_temporary_sweep(const char *place);

/** Remove files `name` with a suffix if no file `place` with the same suffix exists. A writer of `place` creates such a
 *  file after its temporary file and removes it before, so its writer has ended. */
void gr_temporary_sweep_second(const char *name, const char *place);
