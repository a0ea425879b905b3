/* A transport over MPI, which a host compiles in one of its own files with its own mpi.h. So no MPI type crosses the
 * interface, and one libgraft.so serves every MPI, also a static one. C or C++; MPI 3.0 or later.
 *
 * A receive is given to MPI when its message has arrived and has the expected length. MPICH reports a message that is
 * too long to the error handler of MPI_COMM_WORLD, which belongs to the host and ends the process by default.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GRAFT_MPI_H
#define GRAFT_MPI_H

#include "graft_transport.h"

#include <limits.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The length of the largest MPI message, because counts are ints. Tests make it small. A message is sent as bytes /
 * chunk MPI messages of this length and a shorter one, possibly empty, so that a wrong length is always detected. */
#ifndef GRAFT_MPI_CHUNK
#define GRAFT_MPI_CHUNK 0x40000000
#endif

/* The number of lists of waiting receives, which are found by peer and tag. */
#define GRAFT_MPI_LISTS 256

#define GRAFT_MPI_INLINE static inline __attribute__((unused))

/* One send or receive. `chunk` has n_chunks elements. */
typedef struct graft_mpi_request {
    struct graft_mpi_request  *next;
    struct graft_mpi_request **link; /* the pointer that points to this request in the list of requests in flight */
    uint64_t                   bytes;
    uint64_t                   n_chunks;
    uint64_t                   n_begun; /* number of chunks that were passed to MPI */
    uint64_t                   n_done;  /* chunks */
    char                      *in;      /* buffer of a receive */
    struct graft_mpi_request  *behind;  /* the next receive in the same list of waiting receives */
    void                      *scratch; /* [found] buffer for a chunk that is too long; otherwise NULL */
    int                        peer;
    int                        tag;
    int                        is_send;
    int                        waits;    /* whether it is in a list of waiting receives, because not all its chunks have
                                          * begun */
    int                        is_wrong; /* whether the last chunk that has begun has an unexpected length */
    int                        found;    /* length of that chunk */
    uint64_t                   total;    /* number of bytes of the message up to the end of that chunk */
    MPI_Request                chunk[1];
} graft_mpi_request;

typedef struct graft_mpi {
    MPI_Comm           comm; /* a duplicate of the host's communicator, owned by the transport */
    int                keyval;
    int                is_closing;
    int                has_ended;    /* whether MPI is finalised, so that none of its functions may be called */
    int                is_over;      /* whether the library has abandoned the transport, so that nothing more is sent */
    int                is_abandoned; /* whether messages may be left, which a later communicator could receive if this
                                      * one was freed */
    int                is_spoiled;   /* whether MPI may still access memory of cancelled requests */
    graft_mpi_request *live;
    graft_mpi_request *spare;                    /* requests of one chunk each, for reuse */
    graft_mpi_request *waiting[GRAFT_MPI_LISTS]; /* lists of waiting receives, in the order in which they were begun */
    graft_host         host;                     /* the allocator; without `allocate` the C library is used */
} graft_mpi;

GRAFT_MPI_INLINE int32_t graft_mpi_fail(graft_error *error, int32_t code, int native, const char *what)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int  length = 0;

    if (error == NULL || error->size < sizeof *error) return code;
    if (native != MPI_SUCCESS) MPI_Error_string(native, text, &length);
    error->code = code;
    error->native_code = native;
    error->rank = 0;
    snprintf(error->message, sizeof error->message, "%.150s%s%.250s", what, length > 0 ? ": " : "", text);
    return code;
}

GRAFT_MPI_INLINE void *graft_mpi_allocate(const graft_host *host, uint64_t bytes)
{
    void *memory = host->allocate != NULL ? host->allocate(host->self, bytes, 64) : malloc((size_t)bytes);

    if (memory != NULL) memset(memory, 0, (size_t)bytes);
    return memory;
}

GRAFT_MPI_INLINE void graft_mpi_deallocate(const graft_host *host, void *memory, uint64_t bytes)
{
    if (memory == NULL) return;
    if (host->deallocate != NULL) host->deallocate(host->self, memory, bytes, 64);
    else free(memory);
}

GRAFT_MPI_INLINE uint64_t graft_mpi_request_bytes(uint64_t n_chunks)
{
    return sizeof(graft_mpi_request) + (n_chunks - 1) * sizeof(MPI_Request);
}

GRAFT_MPI_INLINE graft_mpi_request *graft_mpi_take(graft_mpi *m, uint64_t bytes)
{
    const uint64_t     n_chunks = bytes / GRAFT_MPI_CHUNK + 1;
    graft_mpi_request *r = n_chunks == 1 ? m->spare : NULL;

    if (r != NULL) m->spare = r->next;
    else r = (graft_mpi_request *)graft_mpi_allocate(&m->host, graft_mpi_request_bytes(n_chunks));
    if (r == NULL) return NULL;
    r->bytes = bytes;
    r->n_chunks = n_chunks;
    r->n_begun = r->n_done = 0;
    r->waits = r->is_wrong = r->found = 0;
    r->behind = NULL;
    r->scratch = NULL;
    for (uint64_t i = 0; i < n_chunks; i++) r->chunk[i] = MPI_REQUEST_NULL;
    r->next = m->live;
    r->link = &m->live;
    if (r->next != NULL) r->next->link = &r->next;
    m->live = r;
    return r;
}

GRAFT_MPI_INLINE void graft_mpi_release(graft_mpi *m, graft_mpi_request *r)
{
    *r->link = r->next;
    if (r->next != NULL) r->next->link = r->link;
    if (r->n_chunks > 1) {
        graft_mpi_deallocate(&m->host, r, graft_mpi_request_bytes(r->n_chunks));
        return;
    }
    r->next = m->spare;
    m->spare = r;
}

GRAFT_MPI_INLINE int graft_mpi_length(const graft_mpi_request *r, uint64_t chunk)
{
    return chunk + 1 < r->n_chunks ? GRAFT_MPI_CHUNK : (int)(r->bytes % GRAFT_MPI_CHUNK);
}

GRAFT_MPI_INLINE graft_mpi_request **graft_mpi_list(graft_mpi *m, int peer, int tag)
{
    return &m->waiting[((unsigned)peer * 31u + (unsigned)tag) % GRAFT_MPI_LISTS];
}

/* Make a receive wait for its message, behind those that already wait. */
GRAFT_MPI_INLINE void graft_mpi_enter(graft_mpi *m, graft_mpi_request *r)
{
    graft_mpi_request **link = graft_mpi_list(m, r->peer, r->tag);

    while (*link != NULL) link = &(*link)->behind;
    *link = r;
    r->waits = 1;
}

GRAFT_MPI_INLINE void graft_mpi_remove(graft_mpi *m, graft_mpi_request *r)
{
    graft_mpi_request **link = graft_mpi_list(m, r->peer, r->tag);

    while (*link != r) link = &(*link)->behind;
    *link = r->behind;
    r->waits = 0;
}

/* Test all chunks that MPI has, and return whether it no longer accesses their memory. A receive is passed to MPI only
 * when its message has begun to arrive, and a send cannot be cancelled, so nothing is cancelled here. Each try may
 * yield the processor, so on a busy machine many tries take seconds. Therefore, once one message is left over, for
 * example to a rank that does not answer, the others get only one try each. */
GRAFT_MPI_INLINE int graft_mpi_withdraw(const graft_mpi *m, graft_mpi_request *r)
{
    const int tries = m->is_spoiled ? 1 : 100;
    int       left = 0;

    for (uint64_t i = r->n_done; i < r->n_begun; i++) {
        int done = r->chunk[i] == MPI_REQUEST_NULL;

        for (int k = 0; !done && k < tries; k++)
            if (MPI_Test(&r->chunk[i], &done, MPI_STATUS_IGNORE) != MPI_SUCCESS) break;
        left += !done && r->chunk[i] != MPI_REQUEST_NULL;
    }
    return left == 0;
}

GRAFT_MPI_INLINE int32_t graft_mpi_cancel(void *self, graft_request *request)
{
    graft_mpi         *m = (graft_mpi *)self;
    graft_mpi_request *r = (graft_mpi_request *)(void *)request;
    const int          is_clean = m->has_ended || graft_mpi_withdraw(m, r);

    if (!is_clean) m->is_spoiled = 1;
    if (r->waits) graft_mpi_remove(m, r);
    if (is_clean) graft_mpi_deallocate(&m->host, r->scratch, (uint64_t)r->found);
    graft_mpi_release(m, r);
    return is_clean;
}

/* Make a new request. */
GRAFT_MPI_INLINE int32_t graft_mpi_new(graft_mpi *m, int32_t peer, int32_t tag, uint64_t bytes, graft_mpi_request **out,
                                       graft_error *error)
{
    graft_mpi_request *r;

    if (m->has_ended) return graft_mpi_fail(error, GRAFT_ERR_STATE, MPI_SUCCESS, "MPI is finalised");
    if (m->is_over)
        return graft_mpi_fail(error, GRAFT_ERR_STATE, MPI_SUCCESS,
                              "the transport was abandoned after a failure and cannot be used any more");
    r = graft_mpi_take(m, bytes);
    if (r == NULL) return graft_mpi_fail(error, GRAFT_ERR_NOMEM, MPI_SUCCESS, "no memory for a message of MPI");
    r->peer = peer;
    r->tag = tag;
    *out = r;
    return GRAFT_OK;
}

/* Report a failure of MPI. Messages may be left in the communicator. */
GRAFT_MPI_INLINE int32_t graft_mpi_give_up(graft_mpi *m, int native, const char *what, graft_error *error)
{
    m->is_abandoned = 1;
    return graft_mpi_fail(error, GRAFT_ERR_MODULE, native, what);
}

GRAFT_MPI_INLINE int32_t graft_mpi_send(void *self, int32_t to, int32_t tag, const void *data, uint64_t bytes,
                                        graft_request **request, graft_error *error)
{
    graft_mpi         *m = (graft_mpi *)self;
    graft_mpi_request *r = NULL;
    const char        *out = data != NULL ? (const char *)data : "";
    const int32_t      outcome = graft_mpi_new(m, to, tag, bytes, &r, error);

    if (outcome < 0) return outcome;
    r->is_send = 1;
    for (; r->n_begun < r->n_chunks; r->n_begun++) {
        const int rc = MPI_Isend(out + r->n_begun * GRAFT_MPI_CHUNK, graft_mpi_length(r, r->n_begun), MPI_BYTE, to, tag,
                                 m->comm, &r->chunk[r->n_begun]);

        if (rc == MPI_SUCCESS) continue;
        graft_mpi_give_up(m, rc, "MPI_Isend failed", error);
        r->chunk[r->n_begun] = MPI_REQUEST_NULL;
        graft_mpi_cancel(m, (graft_request *)(void *)r);
        return GRAFT_ERR_MODULE;
    }
    *request = (graft_request *)(void *)r;
    return GRAFT_OK;
}

GRAFT_MPI_INLINE int32_t graft_mpi_receive(void *self, int32_t from, int32_t tag, void *data, uint64_t bytes,
                                           graft_request **request, graft_error *error)
{
    graft_mpi         *m = (graft_mpi *)self;
    graft_mpi_request *r = NULL;
    const int32_t      outcome = graft_mpi_new(m, from, tag, bytes, &r, error);

    if (outcome < 0) return outcome;
    r->is_send = 0;
    r->in = data != NULL ? (char *)data : (char *)self; /* in a message of 0 bytes MPI may refuse a NULL pointer */
    graft_mpi_enter(m, r);
    *request = (graft_request *)(void *)r;
    return GRAFT_OK;
}

/* Pass the next chunk of a receive to MPI if its message has arrived; *begun receives whether it has. A chunk of a
 * wrong length is received too if there is memory, so that its sender does not wait forever. */
GRAFT_MPI_INLINE int32_t graft_mpi_begin_chunk(graft_mpi *m, graft_mpi_request *r, int *begun, graft_error *error)
{
    const int  expected = graft_mpi_length(r, r->n_begun);
    char      *in = r->in + r->n_begun * GRAFT_MPI_CHUNK;
    MPI_Status status;
    int        rc = MPI_Iprobe(r->peer, r->tag, m->comm, begun, &status);

    if (rc != MPI_SUCCESS) return graft_mpi_give_up(m, rc, "MPI_Iprobe failed", error);
    if (!*begun) return GRAFT_OK;
    MPI_Get_count(&status, MPI_BYTE, &r->found);
    r->is_wrong = r->found != expected;
    r->total = r->n_begun * GRAFT_MPI_CHUNK + (uint64_t)r->found;
    if (r->found > expected) {
        r->scratch = graft_mpi_allocate(&m->host, (uint64_t)r->found);
        in = (char *)r->scratch;
        if (in == NULL) return GRAFT_OK;
    }
    rc = MPI_Irecv(in, r->found, MPI_BYTE, r->peer, r->tag, m->comm, &r->chunk[r->n_begun]);
    if (rc != MPI_SUCCESS) {
        r->chunk[r->n_begun] = MPI_REQUEST_NULL;
        return graft_mpi_give_up(m, rc, "MPI_Irecv failed", error);
    }
    r->n_begun++;
    if (r->n_begun == r->n_chunks && !r->is_wrong) graft_mpi_remove(m, r);
    return GRAFT_OK;
}

/* Begin the chunks of a receive that have arrived. Before that, begin those of earlier receives from the same peer with
 * the same tag, because messages are received in order. */
GRAFT_MPI_INLINE int32_t graft_mpi_match(graft_mpi *m, graft_mpi_request *r, graft_error *error)
{
    int begun = 1;

    while (begun && r->waits) {
        graft_mpi_request *first = *graft_mpi_list(m, r->peer, r->tag);
        int32_t            outcome;

        while (first->peer != r->peer || first->tag != r->tag) first = first->behind;
        if (first->is_wrong) return GRAFT_OK;
        outcome = graft_mpi_begin_chunk(m, first, &begun, error);
        if (outcome < 0) return outcome;
    }
    return GRAFT_OK;
}

GRAFT_MPI_INLINE int32_t graft_mpi_test(void *self, graft_request *request, int32_t *done, graft_error *error)
{
    graft_mpi         *m = (graft_mpi *)self;
    graft_mpi_request *r = (graft_mpi_request *)(void *)request;
    char               text[128];

    *done = 0;
    if (m->has_ended) return graft_mpi_fail(error, GRAFT_ERR_STATE, MPI_SUCCESS, "MPI is finalised");
    if (r->waits) {
        const int32_t outcome = graft_mpi_match(m, r, error);

        if (outcome < 0) return outcome;
    }
    while (r->n_done < r->n_begun) {
        int       flag = 0;
        const int rc = MPI_Test(&r->chunk[r->n_done], &flag, MPI_STATUS_IGNORE);

        if (rc != MPI_SUCCESS) {
            r->chunk[r->n_done] = MPI_REQUEST_NULL;
            return graft_mpi_give_up(m, rc, "MPI_Test failed", error);
        }
        if (!flag) return GRAFT_OK;
        r->n_done++;
    }
    if (r->is_wrong) {
        m->is_abandoned = 1;
        snprintf(text, sizeof text, "rank %d sent %llu bytes, expected %llu", r->peer, (unsigned long long)r->total,
                 (unsigned long long)r->bytes);
        return graft_mpi_fail(error, GRAFT_ERR_FORMAT, MPI_SUCCESS, text);
    }
    *done = r->n_done == r->n_chunks;
    if (*done) graft_mpi_release(m, r);
    return GRAFT_OK;
}

/* Test the requests in flight, and free the communicator if there are none left. */
GRAFT_MPI_INLINE void graft_mpi_leave(graft_mpi *m)
{
    for (graft_mpi_request *r = m->live; r != NULL; r = r->next)
        if (!graft_mpi_withdraw(m, r)) m->is_spoiled = 1;
    if (!m->is_spoiled && !m->is_abandoned && m->comm != MPI_COMM_NULL) MPI_Comm_free(&m->comm);
    m->has_ended = 1;
}

GRAFT_MPI_INLINE void graft_mpi_abandon(void *self)
{
    graft_mpi *m = (graft_mpi *)self;

    m->is_over = m->is_abandoned = 1;
}

/* MPI_Finalize() first deletes the attributes of MPI_COMM_SELF, while MPI is still usable. */
GRAFT_MPI_INLINE int graft_mpi_at_end(MPI_Comm comm, int keyval, void *value, void *extra)
{
    graft_mpi *m = (graft_mpi *)value;

    (void)comm, (void)keyval, (void)extra;
    if (!m->is_closing) graft_mpi_leave(m);
    return MPI_SUCCESS;
}

GRAFT_MPI_INLINE void graft_mpi_close(void *self)
{
    graft_mpi       *m = (graft_mpi *)self;
    const graft_host host = m->host;

    m->is_closing = 1;
    if (!m->has_ended) {
        MPI_Comm_delete_attr(MPI_COMM_SELF, m->keyval);
        MPI_Comm_free_keyval(&m->keyval);
        graft_mpi_leave(m);
    }
    while (m->live != NULL) graft_mpi_release(m, m->live);
    while (m->spare != NULL) {
        graft_mpi_request *next = m->spare->next;

        graft_mpi_deallocate(&host, m->spare, graft_mpi_request_bytes(1));
        m->spare = next;
    }
    graft_mpi_deallocate(&host, m, sizeof *m);
}

/* Check that this thread may call MPI, and that the communicator can be used. */
GRAFT_MPI_INLINE int32_t graft_mpi_check(const MPI_Comm *comm, graft_error *error)
{
    int started = 0, ended = 0, level = MPI_THREAD_SINGLE, is_main = 0, is_inter = 0;

    MPI_Initialized(&started);
    if (started) MPI_Finalized(&ended);
    if (!started || ended)
        return graft_mpi_fail(error, GRAFT_ERR_STATE, MPI_SUCCESS,
                              started ? "MPI is finalised" : "MPI is not initialised: call MPI_Init_thread() first");
    MPI_Query_thread(&level);
    MPI_Is_thread_main(&is_main);
    if (level < MPI_THREAD_SERIALIZED && !is_main)
        return graft_mpi_fail(error, GRAFT_ERR_STATE, MPI_SUCCESS,
                              "MPI was initialised for calls from its main thread only, and this is another thread");
    if (comm == NULL) return GRAFT_OK;
    if (*comm == MPI_COMM_NULL)
        return graft_mpi_fail(error, GRAFT_ERR_ARG, MPI_SUCCESS, "the communicator is MPI_COMM_NULL");
    MPI_Comm_test_inter(*comm, &is_inter);
    if (is_inter)
        return graft_mpi_fail(error, GRAFT_ERR_ARG, MPI_SUCCESS,
                              "the communicator is an intercommunicator, expected an intracommunicator");
    return GRAFT_OK;
}

/* Install a hook for the end of MPI, and let all ranks agree on success. */
GRAFT_MPI_INLINE int32_t graft_mpi_join(graft_mpi *m, MPI_Comm copy, graft_error *error)
{
    int mine = m != NULL, all = 0, rc;

    if (m != NULL)
        mine = MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, graft_mpi_at_end, &m->keyval, NULL) == MPI_SUCCESS &&
               MPI_Comm_set_attr(MPI_COMM_SELF, m->keyval, m) == MPI_SUCCESS;
    rc = MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_MIN, copy);
    if (m == NULL) return graft_mpi_fail(error, GRAFT_ERR_NOMEM, MPI_SUCCESS, "no memory for a transport over MPI");
    if (rc != MPI_SUCCESS) return graft_mpi_fail(error, GRAFT_ERR_MODULE, rc, "MPI_Allreduce failed");
    if (!mine) return graft_mpi_fail(error, GRAFT_ERR_MODULE, MPI_SUCCESS, "MPI_COMM_SELF accepts no attribute");
    if (!all) return graft_mpi_fail(error, GRAFT_ERR_PEER, MPI_SUCCESS, "another rank failed to open its transport");
    return GRAFT_OK;
}

GRAFT_MPI_INLINE void graft_mpi_fill(graft_mpi *m, graft_transport *out)
{
    int rank = 0, n_ranks = 1, flag = 0, *tag_max = NULL;

    MPI_Comm_rank(m->comm, &rank);
    MPI_Comm_size(m->comm, &n_ranks);
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &tag_max, &flag);
    out->rank = rank;
    out->n_ranks = n_ranks;
    out->tag_max = flag ? *tag_max : 32767;
    out->name = "mpi";
    out->self = m;
    out->send = graft_mpi_send;
    out->receive = graft_mpi_receive;
    out->test = graft_mpi_test;
    out->cancel = graft_mpi_cancel;
    out->close = graft_mpi_close;
    out->abandon = graft_mpi_abandon;
}

/* Do the same as graft_mpi_transport(), with memory from `host`, or from the C library if it is NULL. */
GRAFT_MPI_INLINE int32_t graft_mpi_open(MPI_Comm comm, const graft_host *host, graft_transport *out, graft_error *error)
{
    MPI_Comm   copy = MPI_COMM_NULL;
    graft_host functions;
    graft_mpi *m;
    int32_t    rc = graft_mpi_check(&comm, error);
    int        native;

    if (rc < 0) return rc;
    memset(&functions, 0, sizeof functions);
    if (host != NULL) functions = *host;
    native = MPI_Comm_dup(comm, &copy);
    if (native != MPI_SUCCESS) return graft_mpi_fail(error, GRAFT_ERR_MODULE, native, "MPI_Comm_dup failed");
    MPI_Comm_set_errhandler(copy, MPI_ERRORS_RETURN);
    m = (graft_mpi *)graft_mpi_allocate(&functions, sizeof *m);
    if (m != NULL) {
        m->host = functions;
        m->comm = copy;
        m->keyval = MPI_KEYVAL_INVALID;
    }
    rc = graft_mpi_join(m, copy, error);
    if (rc == GRAFT_OK) graft_mpi_fill(m, out);
    else if (m != NULL) graft_mpi_close(m);
    else MPI_Comm_free(&copy);
    return rc;
}

/** Create a transport over an MPI communicator. The communicator is duplicated, so the host's own receives no message,
 *  error handler or attribute. Never initialises or finalises MPI. Calls MPI only from the thread that calls Graft;
 *  with MPI_THREAD_SINGLE or MPI_THREAD_FUNNELED that must be the main thread.
 *
 * \param[in]  comm   An intracommunicator, not necessarily of all processes.
 * \param[out] out    A struct with its size set. Unchanged on failure. out->close() frees the duplicate; it may be
 *                    called after MPI_Finalize(), which frees the duplicate by itself; then all calls but close()
 *                    return ERR_STATE. After a failure of a rank the duplicate is kept, so that no later communicator
 *                    receives its messages.
 * \param[out] error  Optional.
 * \return OK; ERR_ARG (null; MPI_COMM_NULL; an intercommunicator); ERR_STATE (MPI is not initialised, or is finalised;
 *         the wrong thread); ERR_NOMEM; ERR_PEER (another rank failed); ERR_MODULE (MPI failed).
 * [one-caller] Collective over comm, and so is close(), unless a rank has failed: then MPI_Finalize() may wait for it
 * for ever, according to the MPI standard, and the process should exit without it. Since 0.1. */
GRAFT_MPI_INLINE int32_t graft_mpi_transport(MPI_Comm comm, graft_transport *out, graft_error *error)
{
    if (out == NULL || out->size < sizeof *out)
        return graft_mpi_fail(error, GRAFT_ERR_ARG, MPI_SUCCESS, "the transport is null or has no size");
    return graft_mpi_open(comm, NULL, out, error);
}

#endif
