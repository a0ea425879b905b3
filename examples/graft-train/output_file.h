/* Atomic output files. A file is written under a temporary name, flushed to the disk, and then renamed, so that it is
 * either complete or absent. If a process is killed, the next process removes its temporary file.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef OUTPUT_FILE_H
#define OUTPUT_FILE_H

#include "problem.h"

#include <stdio.h>

struct output_file {
    FILE *stream;
    char *path;
    char *temporary; /* NULL for a device or a pipe, which is written in place, because renaming would replace it */
};

/** Open a file for writing. If `path` is a symbolic link, its target is replaced or created. After a failure
 *  output_abort() is not necessary. */
int32_t output_begin(struct output_file *file, const char *path, graft_error *error);

/** Move the file to its path. The function fails if any write has failed, and leaves the old file unchanged. */
int32_t output_end(struct output_file *file, graft_error *error);

/** Discard the file. A call after output_end() or on a zeroed struct has no effect. */
void output_abort(struct output_file *file);

/** Check that the file could be written, without changing anything. */
int32_t output_check(const char *path, graft_error *error);

#endif
