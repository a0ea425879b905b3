/* A file that appears complete or not at all: written under a temporary name, flushed to the disk, then renamed. The
 * temporary file of a process that was killed is removed by the next one.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef OUTPUT_FILE_H
#define OUTPUT_FILE_H

#include "problem.h"

#include <stdio.h>

struct output_file {
    FILE *stream;
    char *path;
    char *temporary; /* NULL for a device or a pipe, which is written in place: a rename would replace it */
};

/** Open for writing. Where `path` is a symbolic link, its target is replaced, or created. On failure nothing is left to
 *  abort. */
int32_t output_begin(struct output_file *file, const char *path, graft_error *error);

/** Move the file to its path. Fails if any write has failed; then the old file is unchanged. */
int32_t output_end(struct output_file *file, graft_error *error);

/** Discard the file; legal after output_end() and on a zeroed struct. */
void output_abort(struct output_file *file);

/** Check that the file could be written, without changing anything. */
int32_t output_check(const char *path, graft_error *error);

#endif
