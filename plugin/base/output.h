/* A file that appears complete or not at all: it is written under a temporary name, flushed to the disk, and then
 * renamed.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/error.h"
#include "base/temporary.h"

struct gr_output {
    int64_t     written;
    const char *path;            /* of the caller */
    char        place[PATH_MAX]; /* the file to replace: `path`, or the target of its symbolic links */

    struct gr_temporary temporary;
};

/** Begin a file of this size, and remove files left by killed processes. Where `path` is a symbolic link, its
 *  target is replaced, or created. Several writers of one path do not disturb each other: the
 *  file of the last writer to end stays. \return OK; ERR_IO (also if there is a folder, device or pipe at `path`). */
int32_t gr_output_begin(struct gr_output *output, const char *path, int64_t bytes, graft_error *error);

/** Append. \return OK; ERR_IO. */
int32_t gr_output_write(struct gr_output *output, const void *from, int64_t bytes, graft_error *error);

/** Put the file in its place. If there was a file, there is a complete file at every moment, the old or the new one.
 *  \param[in] previous  The new name of the old file, by a hard link, or by a copy if there are no links; NULL: it is
 *  replaced. After a failure the old file is unchanged. \return OK; ERR_IO. */
int32_t gr_output_end(struct gr_output *output, const char *previous, graft_error *error);

/** Discard a file that gr_output_end() did not put in its place. Legal after every other call. */
void gr_output_abort(struct gr_output *output);

/** The folder of a path, for messages and checks. */
void gr_output_folder(char folder[PATH_MAX], const char *path);

/** Whether the process may write a file of this size; if not, errno is EFBIG. Writing more would end the host by a
 *  signal. */
int gr_output_fits(int64_t bytes);

/** ERR_IO with errno, for a path that cannot be written. */
int32_t gr_output_failed(const char *path, int code, graft_error *error);
