/* Transports: what moves bytes between ranks. A host fills a graft_transport by itself, compiles
 * adapters/mpi/graft_mpi.h in one of its own files, or takes one from "graft.transport/1".
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GRAFT_TRANSPORT_H
#define GRAFT_TRANSPORT_H

#include "graft_host.h"

GRAFT_EXTERN_C_BEGIN

#define GRAFT_TRANSPORT_ID "graft.transport/1"

/** A message on its way; what it is, the transport knows. */
typedef struct graft_request graft_request;

/** Ranks 0 to n_ranks - 1 that can send bytes to one another. All that Graft does between ranks (sums, exchanges of
 *  halos, agreement on errors) is made of these calls, so that none of it waits without a deadline. Calls come from one
 *  thread at a time, the one that called Graft, and never from its OpenMP threads. None of them is collective; what the
 *  supplier does before, and close(), may be. Calls fill `error`, which is never NULL, when they fail. */
typedef struct graft_transport {
    uint32_t    size;
    int32_t     rank;
    int32_t     n_ranks;
    int32_t     tag_max; /**< tags are 0 to tag_max; 1023 at least */
    const char *name;    /**< "mpi", "threads", ...; valid until close() */
    void       *self;    /**< first argument of every function below */

    /** Begin to send `bytes`, 0 or more, to another rank; never waits for it. Messages from one rank to another under
     *  one tag arrive in the order in which they were begun. `data` must stay as it is until test() says done. Messages
     *  of up to 1024 bytes must get through although the other rank never asks for them before this one ends.
     *  \param[out] request  Until test() says done, or cancel().
     *  \return OK; ERR_ARG (no such rank or tag); ERR_NOMEM; ERR_STATE (the library behind it has ended, or
     *          abandon() was called); ERR_MODULE (the message tells what that library said). */
    int32_t (*send)(void *self, int32_t to, int32_t tag, const void *data, uint64_t bytes, graft_request **request,
                    graft_error *error);

    /** Begin to receive a message of exactly `bytes` from another rank. \return as send(). */
    int32_t (*receive)(void *self, int32_t from, int32_t tag, void *data, uint64_t bytes, graft_request **request,
                       graft_error *error);

    /** Let messages move, and see whether one has. \param[out] done 1: it has, and the request is gone; else 0.
     *  \return OK; ERR_FORMAT (a message of another length came: found and expected in the text), ERR_STATE or
     *          ERR_MODULE: the request is of no use any more, and is there until cancel(). */
    int32_t (*test)(void *self, graft_request *request, int32_t *done, graft_error *error);

    /** Forget a request, which is gone then. Does not wait.
     *  \return 1 if its bytes are touched no more; 0 if they may be, now or later, so that they must stay where they
     *          are for the life of the process. */
    int32_t (*cancel)(void *self, graft_request *request);

    /** Free it; no request is left. May be called after the library behind it has ended. */
    void (*close)(void *self);

    /** Or NULL. The ranks have parted after a failure: messages may be on their way that nobody will receive. Only
     *  cancel() and close() are of use then, send() and receive() answer ERR_STATE. What tells these messages from
     *  those of others must not be used again. */
    void (*abandon)(void *self);
} graft_transport;

/** The host's communicator, for a transport that comes from a module: the address of a variable of type MPI_Comm. The
 *  size of that type tells the two families of MPI apart. */
typedef struct graft_communicator {
    uint32_t    size;
    uint32_t    bytes;  /**< sizeof(MPI_Comm); not read without a handle */
    const void *handle; /**< &comm, read during the call alone; NULL: MPI_COMM_WORLD */
    int32_t     start;  /**< 1: start MPI if nobody has, and end it at close(); for hosts without any MPI code */
    uint32_t    reserved;
} graft_communicator;

typedef struct graft_transports {
    uint32_t size;
    uint32_t reserved;

    /** Ranks that are threads of this process: fills transports[0 .. n_ranks - 1], one for each thread, to be used in a
     *  context of its own. Memory is that of the host of this context, whose allocator must live until the last
     *  close(), which frees what they share; the context may be closed before.
     *  \param[in,out] transports  Structs with their sizes set, all the same. Untouched on failure.
     *  \return OK; ERR_ARG (null; n_ranks below 1 or above 4096; sizes that differ); ERR_NOMEM.
     *  [one-caller] Not collective. Memory: about 1.2 kB for each rank and each message on its way. Since 1. */
    int32_t (*threads)(graft_context *context, int32_t n_ranks, graft_transport *transports, graft_error *error);

    /** A transport from a module of kind "transport".
     *  \param[in]  module        Its name, such as "openmpi" or "mpich"; "auto": the one of the MPI that the process
     *                            has loaded, or with `start`, if it has none, the one that the launcher belongs to.
     *  \param[in]  communicator  Or NULL: as one that is zero but for its size.
     *  \param[out] transport     A struct with its size set. Untouched on failure.
     *  \return OK; ERR_ARG (null; sizeof(MPI_Comm) of another MPI; no communicator of one group); ERR_NOT_FOUND (no
     *          such module, no MPI); ERR_STATE (MPI has not started, or has ended; two MPIs, or another than that of
     *          the module or of the launcher, are in the process; this is not the thread that may call MPI);
     *          ERR_NOMEM; ERR_MODULE; what the module refuses with.
     *  [one-caller] Collective over the communicator, which is duplicated; so is close(). Both wait in MPI itself
     *  (MPI_Init, MPI_Comm_dup, MPI_Allreduce, MPI_Finalize), without a deadline: a rank that ends before it calls may
     *  leave the others there for ever, so what can fail on one rank alone is better done after open(). Graft calls MPI
     *  from the thread that calls Graft, so MPI_THREAD_FUNNELED is enough if that is the main thread; where MPI was
     *  started with MPI_THREAD_SINGLE, Graft's other threads do not call it either. Since 1. */
    int32_t (*open)(graft_context *context, const char *module, const graft_communicator *communicator,
                    graft_transport *transport, graft_error *error);
} graft_transports;

GRAFT_EXTERN_C_END
#endif
