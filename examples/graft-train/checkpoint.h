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

/** Write the state into the folder: rank 0 the checkpoint, another rank a file of its own if it has caches. The status
 *  is of this rank only. */
int32_t checkpoint_write(const struct library *library, graft_trainer *trainer, int32_t rank, const char *folder,
                         graft_error *error);

/** Whether the state of a trainer has caches. */
int checkpoint_has_caches(const struct library *library, graft_trainer *trainer);

/** What a checkpoint said of itself. */
struct checkpoint_facts {
    char        differences[512]; /* options that differ and do not prevent loading, or "" */
    int         has_caches;       /* on rank 0 */
    graft_error no_caches;        /* on rank > 0: why its trainer could not take its caches, or code OK */
};

/** Check a checkpoint and load it into the trainer. Over ranks (transport is not NULL) the first one reads it, and all
 *  call this. */
int32_t checkpoint_read(const struct library *library, const graft_transport *transport, int32_t rank,
                        graft_trainer *trainer, const char *folder, struct checkpoint_facts *facts, graft_error *error);

#endif
