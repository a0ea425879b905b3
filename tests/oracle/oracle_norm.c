/* Normalises between the layers of a model: LayerNorm normalises rows and BatchNorm columns.
 * SPDX-License-Identifier: Apache-2.0 */
#include "oracle.h"

#include <math.h>

void oracle_layer_norm(int64_t n, int64_t width, const double *gain, const double *shift, double *z)
{
    for (int64_t v = 0; v < n; v++) {
        double *row = &z[v * width], mean = 0, variance = 0;
        for (int64_t j = 0; j < width; j++) mean += row[j] / (double)width;
        for (int64_t j = 0; j < width; j++) variance += (row[j] - mean) * (row[j] - mean) / (double)width;
        for (int64_t j = 0; j < width; j++) row[j] = (row[j] - mean) / sqrt(variance + 1e-5) * gain[j] + shift[j];
    }
}

void oracle_batch_norm(const struct oracle_model *model, int32_t l, int training, const double *gain,
                       const double *shift, double *z)
{
    const int64_t  width = model->width[l + 1];
    const uint8_t *in = model->in_batch[l];

    for (int64_t j = 0; j < width; j++) {
        double mean = 0, variance = 0, count = 0;

        for (int64_t v = 0; v < model->n; v++) count += in == NULL || in[v];
        for (int64_t v = 0; v < model->n; v++) mean += in == NULL || in[v] ? z[v * width + j] / count : 0;
        for (int64_t v = 0; v < model->n; v++)
            variance += in == NULL || in[v] ? (z[v * width + j] - mean) * (z[v * width + j] - mean) / count : 0;
        if (training) {
            model->batch[0][l][j] = mean;
            model->batch[1][l][j] = variance * count / (count - 1);
        } else {
            mean = model->running[0][l][j];
            variance = model->running[1][l][j];
        }
        for (int64_t v = 0; v < model->n; v++)
            z[v * width + j] = (z[v * width + j] - mean) / sqrt(variance + 1e-5) * gain[j] + shift[j];
    }
}
