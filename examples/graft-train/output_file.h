/* A file that appears whole or not at all: written under a temporary name, flushed to the disk, then renamed.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef OUTPUT_FILE_H
#define OUTPUT_FILE_H

#include "problem.h"

#include <stdio.h>

struct output_file {
    FILE *stream;
    char *path;
    char *temporary; /* NULL when path is a device or a pipe, which is written in place: a rename would replace it */
};

/** Open for writing. On failure nothing is left to abort. */
int32_t output_begin(struct output_file *file, const char *path, graft_error *error);

/** Put the file into its place. Fails if any write before has failed; then the old file is as it was. */
int32_t output_end(struct output_file *file, graft_error *error);

/** Give up; legal after output_end() and on a zeroed struct. */
void output_abort(struct output_file *file);

/** Find out whether the file could be written, leaving no trace. */
int32_t output_check(const char *path, graft_error *error);

#endif
