/* Predictions of a run: of all vertices, or of a list.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef PREDICT_H
#define PREDICT_H

#include "run.h"

/** Predict with the saved model if there is one, else with the trainer, and write the files on rank 0. All ranks call
 *  it, and a failure to write is returned on rank 0 only. */
int32_t predict_write(struct run *run, graft_error *error);

#endif
