/* The note of a module file, read without loading the file.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GR_BASE_MODULE_NOTE_H
#define GR_BASE_MODULE_NOTE_H

#include "graft_module.h"

/** Read the graft_module_note of an ELF file. No code of the file runs, and reads are bounded whatever its contents.
 *  \return 1; 0 if the file has no note; ERR_MODULE with the reason in error if it cannot be loaded: not a regular file
 *  or shared library, another processor, or a damaged note */
int32_t gr_module_note_read(const char *path, graft_module_note *note, graft_error *error);

/** Whether this library and this processor meet the note. \return OK; ERR_VERSION; ERR_UNSUPPORTED */
int32_t gr_module_note_check(const graft_module_note *note, graft_error *error);

#endif
