/* Writes a graph to .npy files (NumPy format 1.0: a text header whose length is a multiple of 64 bytes, and the
 * numbers). SPDX-License-Identifier: Apache-2.0 */
#include "bench.h"
#include "graph.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct npy {
    char  path[4096];
    FILE *file;
};

static void npy_begin(struct npy *npy, const char *folder, const char *name, const char *type, const char *shape)
{
    /* The magic string, the version, and the length of the text in little-endian order. Together with the text and its
     * line end they fill 128 bytes. */
    const unsigned char start[10] = { 0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, 118, 0 };
    char                header[118];

    snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", type, shape);
    snprintf(npy->path, sizeof npy->path, "%s/%s", folder, name);
    npy->file = fopen(npy->path, "wb");
    if (npy->file == NULL) bench_die("cannot write '%s': %s", npy->path, strerror(errno));
    fwrite(start, 1, sizeof start, npy->file);
    fprintf(npy->file, "%-117s\n", header);
}

static void npy_add(struct npy *npy, const void *data, size_t bytes)
{
    fwrite(data, 1, bytes, npy->file);
}

static void npy_end(struct npy *npy)
{
    const int failed = ferror(npy->file);

    if (fclose(npy->file) != 0 || failed) bench_die("writing '%s' failed: %s", npy->path, strerror(errno));
}

/** Write edges.npy. Its first row has the source of each entry, which is its column. Its second row has the target,
 *  which is its row. */
static void export_edges(const struct bench_graph *graph, const char *folder)
{
    struct npy npy;
    char       shape[64];

    snprintf(shape, sizeof shape, "2, %" PRId64, graph->nnz);
    npy_begin(&npy, folder, "edges.npy", "<i4", shape);
    npy_add(&npy, graph->col_idx, (size_t)graph->nnz * sizeof *graph->col_idx);
    for (int64_t row = 0; row < graph->n; row++) {
        const int32_t destination = (int32_t)row;
        for (int64_t e = graph->row_ptr[row]; e < graph->row_ptr[row + 1]; e++)
            npy_add(&npy, &destination, sizeof destination);
    }
    npy_end(&npy);
}

void bench_graph_export(const struct bench_graph *graph, const char *folder)
{
    const int32_t unlabelled = -1;
    struct npy    npy;
    char          shape[64];

    if (mkdir(folder, 0777) != 0 && errno != EEXIST) bench_die("cannot make '%s': %s", folder, strerror(errno));
    export_edges(graph, folder);

    snprintf(shape, sizeof shape, "%" PRId64 ",", graph->n);
    npy_begin(&npy, folder, "labels.npy", "<i4", shape);
    for (int64_t row = 0; row < graph->n; row++) npy_add(&npy, &unlabelled, sizeof unlabelled);
    npy_end(&npy);

    snprintf(shape, sizeof shape, "%" PRId64 ",", graph->n + 1);
    npy_begin(&npy, folder, "indptr.npy", "<i8", shape);
    npy_add(&npy, graph->row_ptr, ((size_t)graph->n + 1) * sizeof *graph->row_ptr);
    npy_end(&npy);
}
