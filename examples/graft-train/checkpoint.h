/* Checkpoints. A checkpoint is a file in a folder with the state of a trainer, in the format of graft_model.h.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef CHECKPOINT_H
#define CHECKPOINT_H

#include "library.h"

#define CHECKPOINT_FILE "checkpoint.safetensors"

/** Returns the path of the checkpoint in a folder, which the caller frees, or NULL when out of memory. */
char *checkpoint_path(const char *folder);

/** Create the folder if needed, and check that a file can be written in it. */
int32_t checkpoint_prepare(const char *folder, graft_error *error);

/** Write the state to the folder. Rank 0 writes the checkpoint. Each other rank that has caches writes a separate file.
 *  The returned status applies to this rank only. */
int32_t checkpoint_write(const struct library *library, graft_trainer *trainer, int32_t rank, const char *folder,
                         graft_error *error);

/** Returns whether the state of a trainer has caches. */
int checkpoint_has_caches(const struct library *library, graft_trainer *trainer);

/** Information about a checkpoint that was read. */
struct checkpoint_facts {
    char        differences[512]; /* options that differ and do not prevent loading, or "" */
    int         has_caches;       /* whether it has caches; set on rank 0 */
    graft_error no_caches;        /* on other ranks: why the caches were not loaded, or code OK */
};

/** Check a checkpoint and load it into the trainer. Over ranks (transport is not NULL) all ranks call this function,
 *  and rank 0 reads the checkpoint. */
int32_t checkpoint_read(const struct library *library, const graft_transport *transport, int32_t rank,
                        graft_trainer *trainer, const char *folder, struct checkpoint_facts *facts, graft_error *error);

#endif
