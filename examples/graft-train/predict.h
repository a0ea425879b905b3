/* Predictions for all vertices, or for a list of vertices.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PREDICT_H
#define PREDICT_H

#include "run.h"

/** Predict with the saved model if there is one, or else with the trainer, and write the files on rank 0. All ranks
 *  call this function. A failure to write is returned on rank 0 only. */
int32_t predict_write(struct run *run, graft_error *error);

#endif
