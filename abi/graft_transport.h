/* Transports: they move bytes between ranks. A host fills a graft_transport itself, compiles adapters/mpi/graft_mpi.h
 * in one of its own files, or takes one from "graft.transport/1".
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GRAFT_TRANSPORT_H
#define GRAFT_TRANSPORT_H

#include "graft_host.h"

GRAFT_EXTERN_C_BEGIN

#define GRAFT_TRANSPORT_ID "graft.transport/1"

/** A message in flight, opaque to all but the transport. */
typedef struct graft_request graft_request;

/** Point-to-point messages between ranks 0 to n_ranks - 1. All communication of Graft (sums, halo exchanges, agreement
 *  on errors) consists of these calls, so nothing waits without a deadline. Calls come from one thread at a time, the
 *  thread that called Graft, and never from its OpenMP threads. None is collective, except that close(), and the
 *  creation of the transport, may be. A call that fails fills `error`, which is never NULL. */
typedef struct graft_transport {
    uint32_t    size;
    int32_t     rank;
    int32_t     n_ranks;
    int32_t     tag_max; /**< the largest tag, at least 1023; the smallest is 0 */
    const char *name;    /**< "mpi", "threads", ...; valid until close() */
    void       *self;    /**< passed as the first argument to every function below */

    /** Begin to send `bytes`, 0 or more, to another rank, without waiting for it. Messages from one rank to another
     *  with one tag arrive in the order in which they were begun. `data` must stay unchanged until the request is done.
     *  A message of up to 1024 bytes must complete even if the receiver posts no receive for it.
     *  \param[out] request  Valid until test() reports it done, or cancel().
     *  \return OK; ERR_ARG (no such rank or tag); ERR_NOMEM; ERR_STATE (the library behind the transport has been
     *          finalised, or abandon() was called); ERR_MODULE (the message quotes that library). */
    int32_t (*send)(void *self, int32_t to, int32_t tag, const void *data, uint64_t bytes, graft_request **request,
                    graft_error *error);

    /** Begin to receive a message of exactly `bytes` from another rank. \return as send(). */
    int32_t (*receive)(void *self, int32_t from, int32_t tag, void *data, uint64_t bytes, graft_request **request,
                       graft_error *error);

    /** Progress messages, and test one of them. \param[out] done 1: it is complete, and the request is freed; else 0.
     *  \return OK; ERR_FORMAT (the message has another length: the text has both); ERR_STATE; ERR_MODULE. After a
     *          failure the request can only be passed to cancel(). */
    int32_t (*test)(void *self, graft_request *request, int32_t *done, graft_error *error);

    /** Cancel a request and free it. Does not wait.
     *  \return 1 if its memory is no longer accessed; 0 if it may be, now or later, so that it must stay allocated
     *          until the process ends. */
    int32_t (*cancel)(void *self, graft_request *request);

    /** Free the transport. Called when no request is pending; possibly after the library behind it was finalised. */
    void (*close)(void *self);

    /** NULL, or called when the ranks no longer agree after a failure: messages may be in flight that no rank will
     *  receive. Afterwards only cancel() and close() are useful, and send() and receive() return ERR_STATE. The
     *  communicator, or whatever else separates these messages from others, must not be reused. */
    void (*abandon)(void *self);
} graft_transport;

/** The type of the variable to which graft_communicator.handle points. */
enum {
    GRAFT_MPI_C = 0,      /**< MPI_Comm */
    GRAFT_MPI_FORTRAN = 1 /**< MPI_Fint: an integer communicator of Fortran, or comm%MPI_VAL of module mpi_f08 */
};

/** The host's communicator, for a transport from a module: the address of a variable of type MPI_Comm. The size of that
 *  type distinguishes the two families of MPI. */
typedef struct graft_communicator {
    uint32_t    size;
    uint32_t    bytes;  /**< size of the variable: sizeof(MPI_Comm) or sizeof(MPI_Fint); ignored without a handle */
    const void *handle; /**< &comm, read during the call only; NULL: MPI_COMM_WORLD */
    int32_t     start;  /**< 1: initialise MPI if needed, and then finalise it in close(); for hosts without MPI code */
    uint32_t    reserved;
    int32_t     kind; /**< GRAFT_MPI_... */
    uint32_t    reserved2;
} graft_communicator;

typedef struct graft_transport_api {
    uint32_t size;
    uint32_t reserved;

    /** Create transports between threads of this process: fills transports[0 .. n_ranks - 1], one for each thread, each
     *  to be used in a context of its own. Memory comes from the host of this context, whose allocator must be usable
     *  until the last close(), which frees shared memory; the context may be closed before. If it has no memory for a
     *  message, the ranks stop with ERR_PEER, and the message says so.
     *  \param[in,out] transports  Structs with their sizes set, all the same. Unchanged on failure.
     *  \return OK; ERR_ARG (null; n_ranks below 1 or above 4096; different sizes); ERR_NOMEM.
     *  [one-caller] Not collective. Memory: 1.2 kB for each rank, and for each message of up to 1024 bytes that waits
     *  for its receiver; it is used again, and freed by the last close(). Since 0.1. */
    int32_t (*threads)(graft_context *context, int32_t n_ranks, graft_transport *transports, graft_error *error);

    /** Create a transport with a module of kind "transport".
     *  \param[in]  module        Its name, such as "openmpi" or "mpich"; "auto": the module of the MPI that the process
     *                            has loaded, or, with `start` and no MPI, the MPI of the launcher.
     *  \param[in]  communicator  NULL is the same as a struct of zeros with its size set.
     *  \param[out] transport     A struct with its size set. Unchanged on failure.
     *  \return OK; ERR_ARG (null; a handle that is no address, an unknown kind; the size of another MPI, or of an
     *          integer of Fortran; an intercommunicator); ERR_NOT_FOUND (no such
     *          module, no MPI); ERR_STATE (MPI is not initialised, or is finalised; the process has two MPIs, or
     *          another one than the module or the launcher; this thread may not call MPI); ERR_NOMEM; ERR_MODULE; the
     *          status with which the module refuses.
     *  [one-caller] Collective over the communicator, which is duplicated; so is close(). Both wait inside MPI
     *  (MPI_Init, MPI_Comm_dup, MPI_Allreduce, MPI_Finalize) without a deadline. A rank that ends before its call may
     *  block the others for ever, so work that can fail on one rank alone should follow open(). Graft calls MPI only
     *  from the thread that calls Graft: MPI_THREAD_FUNNELED suffices if that is the main thread. Since 0.1. */
    int32_t (*open)(graft_context *context, const char *module, const graft_communicator *communicator,
                    graft_transport *transport, graft_error *error);
} graft_transport_api;

GRAFT_EXTERN_C_END
#endif
