/* Checks a data set that was opened, or the error message if it was refused.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef DATA_FAULT_H
#define DATA_FAULT_H

#include "data_host.h"

#include <math.h>

/* Whether several ranks read an input too. In a fuzzing engine most inputs are read by one rank only, because starting
 * threads takes longer than everything else. */
static int goes_to_ranks(const uint8_t *bytes, size_t count)
{
#ifdef GRAFT_FUZZ
    uint32_t sum = 0;

    for (size_t i = 0; i < count; i++) sum = sum * 31 + bytes[i];
    return sum % 256 == 0;
#else
    (void)bytes, (void)count;
    return 1;
#endif
}

static const char *csr_fault(const graft_csr *csr, int strict)
{
    const int32_t *columns = csr->col_idx;
    const float   *values = csr->values;

    if (csr->row_ptr[0] != 0) return "row pointers do not begin at 0";
    for (int64_t row = 0; row < csr->n_rows; row++) {
        if (csr->row_ptr[row + 1] < csr->row_ptr[row]) return "row pointers fall";
        for (int64_t i = csr->row_ptr[row]; i < csr->row_ptr[row + 1]; i++) {
            if (columns[i] < 0 || columns[i] >= csr->n_cols) return "a column is out of range";
            if (strict && i > csr->row_ptr[row] && columns[i] <= columns[i - 1]) return "columns do not rise";
            if (values != NULL && !isfinite(values[i])) return "a value is not finite";
        }
    }
    return NULL;
}

static const char *set_fault(const graft_dataset *set)
{
    const int64_t n = set->n_vertices;

    if (set->graph->n_rows != n || set->graph->n_cols != n) return "the graph has another number of vertices";
    if (set->features != NULL) {
        const float *features = set->features->data;

        if (set->features->n_rows != n) return "features have another number of rows";
        for (int64_t i = 0; i < n * set->n_features; i++) {
            if (!isfinite(features[i])) return "a feature is not finite";
        }
    }
    if (set->edge_features != NULL) {
        const int64_t count = set->edge_features->n_rows * set->edge_features->n_cols;

        if (set->edge_features->n_rows != set->graph->row_ptr[n]) return "edge features have another number of rows";
        for (int64_t i = 0; i < count; i++)
            if (!isfinite(((const float *)set->edge_features->data)[i])) return "an edge feature is not finite";
    }
    if (set->sparse_features != NULL) {
        if (set->sparse_features->n_rows != n) return "sparse features have another number of rows";
        if (csr_fault(set->sparse_features, 0) != NULL) return csr_fault(set->sparse_features, 0);
    }
    for (int64_t v = 0; v < n; v++) {
        if (set->labels != NULL && (set->labels[v] < -1 || set->labels[v] >= set->n_classes)) return "a label is wrong";
        if (set->split != NULL && set->split[v] > GRAFT_SPLIT_TEST) return "a split is wrong";
        for (int64_t c = 0; set->targets != NULL && c < set->n_classes; c++) {
            if (set->targets[v * set->n_classes + c] > 1) return "a target is wrong";
        }
        for (int64_t c = 0; set->float_targets != NULL && c < set->n_classes; c++) {
            if (isinf(((const float *)set->float_targets->data)[v * set->n_classes + c])) return "a target is infinite";
        }
    }
    return csr_fault(set->graph, 1);
}

/** Open `path`. The result is NULL, or says what is wrong. */
static const char *open_fault(const char *path, int by_ranks)
{
    const int64_t live = memory.live_bytes;
    graft_data   *out = NULL;
    graft_error   error = GRAFT_INIT(graft_error);
    const int32_t rc = data->open(context, path, &out, &error);
    const char   *fault = NULL;

    if (rc == GRAFT_OK) fault = set_fault(data->view(out));
    else if (rc != GRAFT_ERR_FORMAT && rc != GRAFT_ERR_NOMEM && rc != GRAFT_ERR_NOT_FOUND) fault = "another status";
    else if (rc == GRAFT_ERR_FORMAT && strstr(error.message, "graft-data-") == NULL) fault = "no file in the message";
    if (!by_ranks || fault != NULL) (void)0;
    else if (rc == GRAFT_OK) fault = data_host_slices_fault(path, data->view(out));
    /* The whole data set does not fit into memory, but the slices of ranks may. */
    else fault = refusal_by_ranks(path, rc == GRAFT_ERR_NOMEM ? 0 : rc, NULL);
    data->close(out);
    return fault == NULL && memory.live_bytes != live ? "memory leaked" : fault;
}

/** Refuse large allocations, so that no input of a fuzzing engine takes long. */
static void refuse_large_memory(void)
{
#ifdef GRAFT_FUZZ
    memory.too_large = (uint64_t)1 << 22;
    for (int i = 0; i < CREW_MOST; i++) crew[i].memory.too_large = memory.too_large;
#endif
}

#endif
