/* Fills memory before the library writes into it, so that a test notices if it was not written.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef OUTPUTS_H
#define OUTPUTS_H

#include "graft_train.h"

#include <stdatomic.h>
#include <string.h>

__attribute__((weak)) atomic_uint outputs_filled; /* a counter that all files share */

/** Fill an output of the library before the call that writes it. Each call uses another byte between 0xC0 and 0xFF. Two
 * outputs that were not written therefore differ, whereas zeroed ones would be equal. As a number, the filling is
 * negative or NaN in every type. */
static inline void output_clear(void *output, size_t bytes)
{
    memset(output, 0xFF - (int)(atomic_fetch_add(&outputs_filled, 1) % 0x40), bytes);
}

/** Fill the elements of a matrix of floats in the same way. The gaps between its rows stay unchanged. */
__attribute__((unused)) static void output_clear_rows(const graft_dense *out)
{
    for (int64_t i = 0; i < out->n_rows; i++)
        output_clear((float *)out->data + i * out->stride, (size_t)out->n_cols * sizeof(float));
}

/** An initialised struct for the results of the next epoch, whose numbers are filled by output_clear(). */
__attribute__((unused)) static graft_epoch output_epoch(void)
{
    graft_epoch epoch = GRAFT_INIT(graft_epoch);

    output_clear(&epoch.loss, sizeof epoch.loss);
    output_clear(&epoch.train_accuracy, 5 * sizeof(double)); /* the members train_accuracy up to drift */
    output_clear(&epoch.learning_rate, 7 * sizeof(double));  /* the members learning_rate up to test_r2 */
    output_clear(&epoch.gradient_norm, sizeof epoch.gradient_norm);
    return epoch;
}

/** The same for the results of an evaluation. */
__attribute__((unused)) static graft_metrics output_metrics(void)
{
    graft_metrics metrics = GRAFT_INIT(graft_metrics);

    output_clear(&metrics.train_accuracy, 12 * sizeof(double)); /* the members train_accuracy up to test_r2 */
    return metrics;
}

#endif
