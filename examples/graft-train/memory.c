/* Reports the memory of a run. It is estimated before the run, and measured afterwards.
 * SPDX-License-Identifier: Apache-2.0 */
#include "memory.h"

#include <stdio.h>
#include <sys/resource.h>

static int64_t csr_bytes(const graft_csr *csr)
{
    int64_t entries;

    if (csr == NULL) return 0;
    entries = csr->row_ptr[csr->n_rows];
    return 8 * (csr->n_rows + 1) + entries * (csr->index_type == GRAFT_I32 ? 4 : 8) +
           (csr->values == NULL ? 0 : entries * (csr->value_type == GRAFT_F32 ? 4 : 8));
}

static int64_t dataset_bytes(const graft_dataset *d)
{
    const int64_t n = d->flags & GRAFT_DATASET_SLICE ? d->n_slice : d->n_vertices;

    return csr_bytes(d->graph) + csr_bytes(d->sparse_features) +
           (d->features != NULL ? 4 * d->features->n_rows * d->features->stride : 0) + (d->labels != NULL ? 4 * n : 0) +
           (d->targets != NULL ? n * d->n_classes : 0) + (d->split != NULL ? n : 0);
}

static int next_item(const struct run *run, int32_t index, graft_memory_item *item)
{
    *item = GRAFT_INIT(graft_memory_item);
    return run->library.report->memory_item(run->trainer, index, item, NULL) == GRAFT_OK;
}

int64_t memory_reported(const struct run *run)
{
    int64_t           bytes = dataset_bytes(run->dataset);
    graft_memory_item item;

    for (int32_t i = 0; next_item(run, i, &item); i++) bytes += item.bytes;
    return bytes;
}

int64_t memory_peak(void)
{
    struct rusage usage;

    return getrusage(RUSAGE_SELF, &usage) == 0 ? (int64_t)usage.ru_maxrss * 1024 : 0;
}

void memory_print(const struct run *run)
{
    graft_memory_item item;

    printf("\n%-12s  %10s\n", "memory", "MB");
    printf("%-12s  %10.1f  as read from files\n", "data set", (double)dataset_bytes(run->dataset) * 1e-6);
    for (int32_t i = 0; next_item(run, i, &item); i++)
        printf("%-12s  %10.1f  %s\n", item.name, (double)item.bytes * 1e-6, item.help);
    printf("%-12s  %10.1f\n\n", "total", (double)memory_reported(run) * 1e-6);
}

json_t *memory_json(const struct run *run)
{
    json_t           *memory = json_object();
    graft_memory_item item;
    int               bad = json_object_set_new(memory, "data set", json_integer(dataset_bytes(run->dataset))) != 0;

    for (int32_t i = 0; next_item(run, i, &item) && !bad; i++)
        bad = json_object_set_new(memory, item.name, json_integer(item.bytes)) != 0;
    if (!bad) return memory;
    json_decref(memory);
    return NULL;
}
