/* Reads a list of vertices from a file in the .npy format.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef NPY_READ_H
#define NPY_READ_H

#include "problem.h"

/** Read int64 or int32 numbers of shape (count,). The caller frees `*vertices`, which is not NULL even for an empty
 * list.
 *  \return OK; ERR_IO; ERR_FORMAT (wrong type, shape or length of the file); ERR_NOMEM. */
int32_t npy_read_vertices(const char *path, int64_t **vertices, int64_t *count, graft_error *error);

#endif
