/* Checkpoints: the state of a trainer in a file in the safetensors format.
 *
 * 8 bytes: length of the header, little-endian. The header: a JSON object that maps the name of each tensor to its
 * "dtype", "shape" and "data_offsets" (begin and end, counted from the end of the header), padded with spaces; its
 * "__metadata__" maps texts to texts: "format", "version", and "option.KEY" for each option. Then the tensors.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CHECKPOINT_H
#define CHECKPOINT_H

#include "library.h"

#define CHECKPOINT_FILE "checkpoint.safetensors"

/** In the metadata, the key of an option is this and the key of the option. */
#define CHECKPOINT_OPTION "option."

/** Path of the checkpoint in a folder, to be freed; NULL when out of memory. */
char *checkpoint_path(const char *folder);

/** Create the folder if needed, and check that a file can be written in it. */
int32_t checkpoint_prepare(const char *folder, graft_error *error);

/** Write the state into the folder. */
int32_t checkpoint_write(const struct library *library, graft_trainer *trainer, const char *folder, graft_error *error);

/** Check a checkpoint and load it into the trainer. `warning` [capacity] receives the options that differ and do not
 *  prevent loading, or "". After a failure in the middle the trainer can only be destroyed. */
int32_t checkpoint_read(const struct library *library, graft_trainer *trainer, const char *folder, char *warning,
                        size_t capacity, graft_error *error);

#endif
