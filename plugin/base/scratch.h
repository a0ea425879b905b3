/* A nameless file for an array that is written in pieces and read in any order. The system may write its pages to the
 * disk and drop them from memory, so the array may be larger than memory.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/error.h"

/** A scratch file. A zeroed struct has no file. */
struct gr_scratch {
    int         has_file;
    int         fd;
    const void *data; /* [bytes] contents, mapped for reading */
    int64_t     bytes;
};

/** Create a file of this size in `folder`. gr_scratch_fini() or the end of the process removes it. \return OK; ERR_IO
 *  (errno in native_code). */
int32_t gr_scratch_init(struct gr_scratch *scratch, const char *folder, int64_t bytes, graft_error *error);
/** Write a piece at `offset`. \return OK; ERR_IO (such as a full disk). */
int32_t gr_scratch_write(const struct gr_scratch *scratch, int64_t offset, const void *from, int64_t bytes,
                         graft_error *error);
void    gr_scratch_fini(struct gr_scratch *scratch);
