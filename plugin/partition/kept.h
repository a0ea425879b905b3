/* What one run finds out, and the next one need not: files of a head and a body, written at one stroke and believed
 * only when all of it is there.
 *
 * The head has 64 bytes: 8 that say what the file is, its version among them; the CRC32C of the file with zeros in this
 * place, as uint32; 52 bytes of the kind of file. All is in the order of bytes of x86-64 and aarch64.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GR_PARTITION_KEPT_H
#define GR_PARTITION_KEPT_H

#include "base/file.h"

enum { GR_KEPT_HEAD = 64, GR_KEPT_MAGIC = 8, GR_KEPT_CRC = 8 };

/** Write a file. There is the whole file or, on failure, what was there before: it is written beside, and takes its
 *  name when it is on the disk.
 * \param[in,out] head  [GR_KEPT_HEAD] The CRC is put in.
 * \param[in]     body  [bytes]
 * \return OK; ERR_IO, with errno in native_code. */
int32_t gr_kept_write(const char *path, void *head, const void *body, int64_t bytes, graft_error *error);

/** Whether a file could be written there, to be asked before what it is to hold is made.
 * \return OK; ERR_IO, with errno in native_code. */
int32_t gr_kept_check_place(const char *path, graft_error *error);

/** Open a file and read its head; gr_file_close() is due always.
 * \param[in]  what   "a partition": for messages.
 * \param[in]  magic  [GR_KEPT_MAGIC] That it must begin with.
 * \param[out] head   [GR_KEPT_HEAD] What it says of lengths is not to be trusted before it is held against file->size.
 * \return OK; ERR_NOT_FOUND; ERR_IO; ERR_FORMAT: no such file, or one cut short. */
int32_t gr_kept_open(struct gr_file *file, const char *path, const char *what, const char *magic, void *head,
                     graft_error *error);

/** Read the body, all behind the head, and check the CRC. \return OK; ERR_IO; ERR_FORMAT: damaged. */
int32_t gr_kept_read(const struct gr_file *file, const void *head, void *body, graft_error *error);

#endif
