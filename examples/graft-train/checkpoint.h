/* Checkpoints: the state of a trainer in a file in a folder, as graft_model.h describes it.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CHECKPOINT_H
#define CHECKPOINT_H

#include "library.h"

#define CHECKPOINT_FILE "checkpoint.safetensors"

/** Path of the checkpoint in a folder, to be freed; NULL when out of memory. */
char *checkpoint_path(const char *folder);

/** Create the folder if needed, and check that a file can be written in it. */
int32_t checkpoint_prepare(const char *folder, graft_error *error);

/** Write the state into the folder: rank 0 the checkpoint, another rank a file of its own if it has caches. Ranks do not
 *  agree on the status. */
int32_t checkpoint_write(const struct library *library, graft_trainer *trainer, int32_t rank, const char *folder,
                         graft_error *error);

/** What a checkpoint said of itself. */
struct checkpoint_facts {
    int64_t epoch;            /* completed epochs */
    char    differences[512]; /* options that differ and do not prevent loading, or "" */
    int     has_caches;       /* rank 0: it has caches; another rank: the trainer has got those of its own file */
};

/** Check a checkpoint and load it into the trainer. Over ranks (transport is not NULL) the first one reads it, and all
 *  call this. */
int32_t checkpoint_read(const struct library *library, const graft_transport *transport, int32_t rank,
                        graft_trainer *trainer, const char *folder, struct checkpoint_facts *facts, graft_error *error);

#endif
