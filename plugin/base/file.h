/* A regular file open for reading, and its name for messages.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/error.h"

enum { GR_FILE_NAME = 112 };

struct gr_file {
    int     fd;   /* descriptor; -1: not open */
    int64_t size; /* bytes when it was opened */
    char    name[GR_FILE_NAME];
};

/** Open `path`, relative to the folder `at` (or AT_FDCWD); `shown` is its name in messages ("cora/edges.npy"). \return
 *  OK; ERR_NOT_FOUND; ERR_FORMAT (not a regular file); ERR_IO. After a failure the file is not open. */
int32_t gr_file_open(struct gr_file *file, int at, const char *path, const char *shown, graft_error *error);

/** Read exactly `bytes` from `offset` on. \return OK; ERR_IO */
int32_t gr_file_read(const struct gr_file *file, int64_t offset, void *to, int64_t bytes, graft_error *error);

/** Write all bytes from `offset` on to an open file. \return 0; -1: errno has the reason */
int gr_file_write(int fd, int64_t offset, const void *from, int64_t bytes);

/** Close a file. Has no effect if it is not open. */
void gr_file_close(struct gr_file *file);

/** The text for an errno, independent of the locale. */
const char *gr_file_errno_text(int code);

/** Shorten a path that the user gave for messages: the whole path, or "..." and its end if it is too long. */
void gr_file_show_path(char shown[GR_FILE_NAME], const char *path);

/** Shorten a path for messages: the last two components of folder/file (of folder, if file is NULL), cut to fit. */
void gr_file_show(char shown[GR_FILE_NAME], const char *folder, const char *file);

/** Copy the first bytes of a text for a message, and replace those that are not printable. */
#define GR_FILE_QUOTE 40
const char *gr_file_quote(char quoted[GR_FILE_QUOTE], const char *bytes, int64_t count);
