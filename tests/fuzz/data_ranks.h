/* Reads the same files on several ranks. Each rank is a thread with its own context and allocator. The slices of the
 * ranks together must be the whole data set, or all ranks must refuse it with the same message.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef DATA_RANKS_H
#define DATA_RANKS_H

#include "data_memory.h"

#include "graft_data.h"
#include "graft_load.h"

#include <pthread.h>

enum { CREW_MOST = 7 };

struct crew_member {
    struct memory         memory;
    graft_context        *context;
    const graft_data_api *interface;
    graft_transport       transport;
    const char           *path; /* the path that this rank reads */
    graft_data          **out;  /* where this rank stores the result; &data by default */
    graft_data           *data;
    graft_error           error;
    int32_t               rc;
    int                   errno_after;
};

static struct crew_member crew[CREW_MOST];
/* How often each rank opens the data set over the same transport. Only the last result is kept. */
static int                crew_repeats = 1;

static graft_data *const crew_untouched = (graft_data *)crew;

/* The numbers of ranks with which the tests read. One rank has no transport. */
#ifdef GRAFT_FUZZ
static const int crew_counts[] = { 2 };
#else
static const int crew_counts[] = { 1, 2, 3, 7 };
#endif
enum { CREW_COUNTS = sizeof crew_counts / sizeof *crew_counts };

static void crew_begin(void)
{
    for (int i = 0; i < CREW_MOST; i++) {
        graft_host       host = GRAFT_INIT(graft_host);
        graft_error      error = GRAFT_INIT(graft_error);
        const graft_api *opened = NULL;

        crew[i].memory = (struct memory)MEMORY_INIT;
        host.self = &crew[i].memory;
        host.allocate = data_allocate;
        host.deallocate = data_deallocate;
        files_check(graft_load(getenv("GRAFT_LIBRARY"), &host, &opened, &error) == GRAFT_OK, error.message);
        crew[i].context = opened->context;
        crew[i].interface = opened->get_interface(opened->context, GRAFT_DATA_ID);
        files_check(opened->set(opened->context, "halo.timeout", "20", NULL) == GRAFT_OK, "halo.timeout");
    }
}

UNUSED static void crew_end(const graft_api *of_any)
{
    for (int i = 0; i < CREW_MOST; i++) of_any->close(crew[i].context);
}

static int64_t crew_live(void)
{
    int64_t live = 0;

    for (int i = 0; i < CREW_MOST; i++) live += crew[i].memory.live_bytes;
    return live;
}

/** Set the path that all ranks read. */
static void crew_aim(const char *path)
{
    for (int i = 0; i < CREW_MOST; i++) {
        crew[i].path = path;
        crew[i].data = crew_untouched;
        crew[i].out = &crew[i].data;
    }
}

static void *crew_work(void *arg)
{
    struct crew_member *m = arg;

    for (int i = 1; i < crew_repeats; i++) {
        const char *path = i % 2 == 0 ? m->path : "/nowhere";

        if (m->interface->open_slice(m->context, &m->transport, path, m->out, NULL) == GRAFT_OK)
            m->interface->close(*m->out);
        *m->out = crew_untouched;
    }
    m->error = (graft_error)GRAFT_INIT(graft_error);
    errno = 4711;
    m->rc = m->interface->open_slice(m->context, m->transport.self != NULL ? &m->transport : NULL, m->path, m->out,
                                     &m->error);
    m->errno_after = errno;
    return NULL;
}

/** Let `n` ranks open their paths over one transport. */
static void crew_open(const graft_api *api, int n)
{
    const graft_transport_api *interface = api->get_interface(api->context, GRAFT_TRANSPORT_ID);
    graft_transport            transports[CREW_MOST];
    pthread_t                  thread[CREW_MOST];

    for (int i = 0; i < CREW_MOST; i++) transports[i] = (graft_transport)GRAFT_INIT(graft_transport);
    if (n > 1) files_check(interface->threads(api->context, n, transports, NULL) == GRAFT_OK, "transports");
    for (int i = 0; i < n; i++) {
        crew[i].transport = transports[i];
        files_check(pthread_create(&thread[i], NULL, crew_work, &crew[i]) == 0, "pthread_create");
    }
    for (int i = 0; i < n; i++) pthread_join(thread[i], NULL);
    for (int i = 0; i < n && n > 1; i++) transports[i].close(transports[i].self);
}

static void crew_close(int n)
{
    for (int i = 0; i < n; i++)
        if (crew[i].rc == GRAFT_OK && crew[i].out != NULL) crew[i].interface->close(crew[i].data);
}

/* Compare rows of a whole matrix with the rows of a slice that begins at row `first`. */
static int same_rows(const graft_csr *whole, const graft_csr *slice, int64_t first)
{
    const int64_t begin = whole->row_ptr[first], count = slice->row_ptr[slice->n_rows];
    int           same = slice->n_cols == whole->n_cols && slice->row_ptr[0] == 0;

    same &= slice->index_type == GRAFT_I32 && (slice->values == NULL) == (whole->values == NULL);
    for (int64_t row = 0; row <= slice->n_rows; row++)
        same &= slice->row_ptr[row] == whole->row_ptr[first + row] - begin;
    if (!same || count == 0) return same;
    same &= memcmp(slice->col_idx, (const int32_t *)whole->col_idx + begin, (size_t)count * 4) == 0;
    if (slice->values == NULL) return same;
    return same & (memcmp(slice->values, (const float *)whole->values + begin, (size_t)count * 4) == 0);
}

/* Do the same for plain arrays. Either both are NULL or neither is. */
static int same_part(const void *whole, const void *slice, int64_t first, int64_t n, size_t row_bytes)
{
    if (whole == NULL || slice == NULL) return whole == slice;
    return memcmp(slice, (const char *)whole + (size_t)first * row_bytes, (size_t)n * row_bytes) == 0;
}

/* Check a slice that must begin at vertex `first`. The result is NULL, or says what is wrong. */
static const char *slice_fault(const graft_dataset *whole, const graft_dataset *slice, int64_t first, int n_ranks)
{
    const int64_t n = slice->n_slice;
    const size_t  features = (size_t)whole->n_features * 4;

    if (slice->first_vertex != first || n < 0 || first + n > whole->n_vertices)
        return "slices do not follow each other";
    if (slice->flags != (n_ranks > 1 ? GRAFT_DATASET_SLICE : 0u)) return "flags";
    if (slice->n_vertices != whole->n_vertices || slice->n_features != whole->n_features ||
        slice->n_classes != whole->n_classes)
        return "another number of vertices, features or classes";
    if (slice->graph->n_rows != n || !same_rows(whole->graph, slice->graph, first)) return "another graph";
    if ((slice->features == NULL) != (whole->features == NULL)) return "features or not";
    if (slice->features != NULL &&
        (slice->features->n_rows != n || !same_part(whole->features->data, slice->features->data, first, n, features)))
        return "other features";
    if ((slice->sparse_features == NULL) != (whole->sparse_features == NULL)) return "sparse features or not";
    if (slice->sparse_features != NULL &&
        (slice->sparse_features->n_rows != n || !same_rows(whole->sparse_features, slice->sparse_features, first)))
        return "other sparse features";
    if (!same_part(whole->labels, slice->labels, first, n, 4)) return "other labels";
    if (!same_part(whole->targets, slice->targets, first, n, (size_t)whole->n_classes)) return "other targets";
    if ((slice->float_targets == NULL) != (whole->float_targets == NULL)) return "float targets or not";
    if (slice->float_targets != NULL &&
        (slice->float_targets->n_rows != n ||
         !same_part(whole->float_targets->data, slice->float_targets->data, first, n, (size_t)whole->n_classes * 4)))
        return "other float targets";
    if ((slice->edge_features == NULL) != (whole->edge_features == NULL)) return "edge features or not";
    if (slice->edge_features != NULL &&
        (slice->edge_features->n_rows != slice->graph->row_ptr[n] ||
         !same_part(whole->edge_features->data, slice->edge_features->data, whole->graph->row_ptr[first],
                    slice->edge_features->n_rows, (size_t)whole->edge_features->n_cols * 4)))
        return "other edge features";
    return same_part(whole->split, slice->split, first, n, 1) ? NULL : "another split";
}

/** Compare the slices that `n` ranks have opened with the whole data set. The result is NULL, or says what is wrong. */
static const char *crew_fault(const graft_dataset *whole, int n)
{
    static char fault[1024];
    int64_t     first = 0;

    for (int i = 0; i < n; i++) {
        const graft_dataset *slice;
        const char          *wrong;

        snprintf(fault, sizeof fault, "rank %d of %d: status %d, %s", i, n, crew[i].rc, crew[i].error.message);
        if (crew[i].rc != GRAFT_OK) return fault;
        slice = crew[i].interface->view(crew[i].data);
        wrong = slice_fault(whole, slice, first, n);
        snprintf(fault, sizeof fault, "rank %d of %d: %s", i, n, wrong != NULL ? wrong : "");
        if (wrong != NULL) return fault;
        first += slice->n_slice;
    }
    return first == whole->n_vertices ? NULL : "vertices are left";
}

/** Check that all of `n` ranks have refused the data set with this status and one message that has all the words, and
 * that outputs are unchanged. If `status` is 0, any status is accepted, but the same one on all ranks. The result is
 * NULL, or says what is wrong. */
static const char *crew_refusal_fault(int n, int32_t status, const char *const *words)
{
    static char fault[1200];

    for (int i = 0; i < n; i++) {
        const struct crew_member *m = &crew[i];

        snprintf(fault, sizeof fault, "rank %d of %d: status %d, %.500s", i, n, m->rc, m->error.message);
        if (m->rc != (status != 0 ? status : crew[0].rc)) return fault;
        if (m->errno_after != 4711) return "errno was changed";
        if (m->rc == GRAFT_OK) continue;
        if (m->error.code != m->rc || m->data != crew_untouched) return fault;
        if (strcmp(m->error.message, crew[0].error.message) != 0 || m->error.rank != crew[0].error.rank) return fault;
        for (const char *const *word = words; word != NULL && *word != NULL; word++)
            if (strstr(m->error.message, *word) == NULL) return fault;
    }
    return NULL;
}

#endif
