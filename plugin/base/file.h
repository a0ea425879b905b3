/* A regular file, open for reading, and the name that messages call it by.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GR_BASE_FILE_H
#define GR_BASE_FILE_H

#include "base/error.h"

enum { GR_FILE_NAME = 112 };

struct gr_file {
    int     fd;   /* -1: not open */
    int64_t size; /* bytes, when it was opened */
    char    name[GR_FILE_NAME];
};

/** Open `path`, relative to the folder `at` (or AT_FDCWD), which messages call `shown` ("cora/edges.npy").
 *  ERR_NOT_FOUND if there is none, ERR_FORMAT if it is no regular file, ERR_IO otherwise. It is not open then. */
int32_t gr_file_open(struct gr_file *file, int at, const char *path, const char *shown, graft_error *error);

/** Read exactly `bytes` from `offset` on. */
int32_t gr_file_read(const struct gr_file *file, int64_t offset, void *to, int64_t bytes, graft_error *error);

/** Close it if it is open. */
void gr_file_close(struct gr_file *file);

/** What errno means, without regard to the locale. */
const char *gr_file_errno_text(int code);

/** Name for messages of a file that the user named: all of its path, or "..." and its end if that does not fit. */
void gr_file_show_path(char shown[GR_FILE_NAME], const char *path);

/** Name for messages: the last two parts of folder/file (or of folder alone, if file is NULL), no more than fit. */
void gr_file_show(char shown[GR_FILE_NAME], const char *folder, const char *file);

/** Copy of some bytes of a file that can stand in a message: short, and every byte a printable character. */
#define GR_FILE_QUOTE 40
const char *gr_file_quote(char quoted[GR_FILE_QUOTE], const char *bytes, int64_t count);

#endif
