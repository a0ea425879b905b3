/* A file that appears complete or not at all: it is written under a temporary name, flushed to the disk, and then
 * renamed.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/error.h"
#include "base/temporary.h"

struct gr_output {
    int64_t     written;
    const char *path;            /* path that the caller gave; not copied */
    char        place[PATH_MAX]; /* the file to replace: `path`, or the target of its symbolic links */

    struct gr_temporary temporary;
};

/** Begin to write a file of this size, and remove temporary files of killed processes. If `path` is a symbolic link,
 *  its target is replaced or created. Several writers of one path do not disturb each other: the file of the last one
 *  that ends remains. \return OK; ERR_IO (also if there is a folder, device or pipe at `path`). */
int32_t gr_output_begin(struct gr_output *output, const char *path, int64_t bytes, graft_error *error);

/** Append to the file. \return OK; ERR_IO. */
int32_t gr_output_write(struct gr_output *output, const void *from, int64_t bytes, graft_error *error);

/** Give the file its name. It replaces an existing file at once, so at every moment there is a complete file, the old
 *  or the new one.
 *  \param[in] previous  The path at which the old file is kept, as a hard link, or as a copy if there are no links;
 *  NULL: it is not kept.
 *  \return OK; ERR_IO; then the old file is unchanged. */
int32_t gr_output_end(struct gr_output *output, const char *previous, graft_error *error);

/** Remove a file for which gr_output_end() was not called or failed. Legal after every other call. */
void gr_output_abort(struct gr_output *output);

/** The folder that contains a path, for messages and checks. */
void gr_output_folder(char folder[PATH_MAX], const char *path);

/** Whether the limits of the process allow a file of this size; if not, errno is EFBIG, and writing the file would end
 *  the process by a signal. */
int gr_output_fits(int64_t bytes);

/** Report errno `code` for a path that cannot be written. \return ERR_IO */
int32_t gr_output_failed(const char *path, int code, graft_error *error);
