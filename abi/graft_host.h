/* Graft host: what a host provides to the library, and graft_open(), the only function that libgraft.so exports.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GRAFT_HOST_H
#define GRAFT_HOST_H

#include "graft_base.h"

GRAFT_EXTERN_C_BEGIN

typedef int32_t graft_log_level;
enum { GRAFT_LOG_DEBUG = 0, GRAFT_LOG_INFO = 1, GRAFT_LOG_WARNING = 2, GRAFT_LOG_ERROR = 3 };

/* Flags of graft_host. */
enum {
    /** Read no variables of the environment, neither GRAFT_... nor PATH, and pass none to programs that the library
     *  starts. Set-user-ID and set-group-ID programs always behave as if this were set. */
    GRAFT_HOST_NO_ENVIRONMENT = 1,
    /** The host starts the libraries behind modules itself, such as GraphBLAS with GrB_init(). Modules use them once
     *  the host has started them, and never start them. For hosts that load such a library after graft_open(). */
    GRAFT_HOST_STARTS_LIBRARIES = 2
};

/** Functions of the host. graft_open() copies the struct; the functions and `self` must stay valid until close(). Any
 *  function pointer may be NULL (allocate and deallocate only together), and so may the pointer to the struct: then
 *  memory comes from the C library and nothing is logged. All memory whose size grows with the data is allocated
 *  through these functions, except for memory that the libraries behind modules allocate themselves. */
typedef struct graft_host {
    uint32_t size;
    uint32_t reserved;
    void    *self; /**< passed as the first argument to every function below */

    /** Receive one line of log, without a line end. Called only from the thread that called Graft. */
    void (*log)(void *self, graft_log_level level, const char *message);

    /** Allocate `bytes` (never 0) of memory aligned to `alignment` (a power of two), or return NULL. [any-thread] */
    void *(*allocate)(void *self, uint64_t bytes, uint64_t alignment);

    /** Free memory that allocate returned, with the same two numbers. Never called with NULL. [any-thread] */
    void (*deallocate)(void *self, void *memory, uint64_t bytes, uint64_t alignment);

    /** Return an extension of the host by id ("name/revision"), or NULL if the host does not have it. */
    const void *(*extension)(void *self, const char *id);

    uint64_t flags; /**< 0, or GRAFT_HOST_... A library that does not know a flag refuses to open */
} graft_host;

/** One instance of the library: its options, modules and objects. Contexts share nothing. */
typedef struct graft_context graft_context;

/** How an option is read over ranks. SAME: all ranks must have the same value, which is compared when an object over
 *  ranks is created. EACH: every rank has its own value. ROOT: only rank 0 reads it. */
typedef int32_t graft_option_scope;
enum { GRAFT_SCOPE_SAME = 0, GRAFT_SCOPE_EACH = 1, GRAFT_SCOPE_ROOT = 2 };

/** Description of one option. All texts are owned by the context. */
typedef struct graft_option {
    uint32_t    size;
    int32_t     live;          /**< 1: read at every call; 0: read when an object is created, which keeps it */
    const char *key;           /**< such as "mxm.kernel" */
    const char *type;          /**< "integer", "number", "text", or the legal words: "adam|sgd" */
    const char *default_value; /**< the default value */
    const char *range;         /**< such as "1..64", "0.." or "[0..1)"; empty if the type says it all */
    const char *value;         /**< the current value; valid until the next set() of this key */
    const char *help;          /**< one line */

    const char        *group; /**< the group of options, such as "training" */
    const char        *needs; /**< when it has an effect, such as "model=gat" or "processes>1"; empty: always */
    graft_option_scope scope;
    int32_t            usual; /**< 1: of interest to most users; 0: for experts */

    const char *source; /**< where the value comes from: "default", "environment", or "host" for set() */
} graft_option;

/** Description of one module or built-in. Texts are owned by the context. */
typedef struct graft_module_entry {
    uint32_t    size;
    int32_t     state;  /**< 1: loaded, 0: found and not needed so far, negative: the status that makes it unusable */
    const char *kind;   /**< "kernel", "dense" or "transport" */
    const char *name;   /**< "reference", "graphblas", "cblas", ... */
    const char *path;   /**< the file that it was loaded from; empty for built-ins */
    const char *detail; /**< a description of a loaded module, or the reason why it is unusable */

    int32_t preference; /**< the order in which "auto" tries modules: see graft_module.h */
    int32_t noted;      /**< 1: the file has a note; 0: it has none, or is built in */
} graft_module_entry;

/** The calls of a context. Filled by graft_open(), owned by the library. Until 256 contexts that were opened later are
 *  closed it can be read after close(). Its `context` is none then, so that close() and cancel() do nothing, and calls
 *  return ERR_STATE. */
typedef struct graft_api {
    uint32_t       size;
    uint32_t       abi;     /**< the negotiated version: the largest that both sides know */
    const char    *version; /**< release of the library, such as "0.2.0" */
    graft_context *context; /**< first argument of all calls of the context */

    /** Free the context and everything that it owns. Objects created in it should have been destroyed. If some were
     *  not, a line in the log counts them by type, and the context is freed with the last of them: until then their
     *  destroy() works, in any order, all other calls return ERR_STATE, and allocate and deallocate must stay
     *  valid. Nothing is logged after close(). Joins no thread and unloads nothing; the library may be opened again.
     *  NULL is legal, and so is a context that was closed.
     *  [one-caller] Not collective. Since 0.1. */
    void (*close)(graft_context *context);

    /** Return the table of an interface by id, such as GRAFT_MXM_ID, or NULL if this library does not have it, which is
     *  not an error. The caller casts it to the struct in the header of the id. Owned by the context.
     *  [any-thread] Not collective. Since 0.1. */
    const void *(*get_interface)(graft_context *context, const char *id);

    /** Set an option. Options also take their initial value from the environment: "mxm.kernel" from GRAFT_MXM_KERNEL
     *  (see GRAFT_HOST_NO_ENVIRONMENT). The field `live` of graft_option says when an option is read. An option that is
     *  not live cannot be set to another value while an object of the context that has read it is alive. Graphs read
     *  group "partition" and halo.timeout, networks and streams group "mesh models", and trainers the other groups.
     *  Plans and halos read seed and group "halo exchange" at create() only, also its `live` options.
     *  \return OK; ERR_ARG (null); ERR_OPTION (an unknown key, with the nearest one in the message, or a value out of
     *          range); ERR_STATE (an object keeps another value; the option is as before); ERR_NOMEM.
     *          [one-caller] Not collective. Since 0.1. */
    int32_t (*set)(graft_context *context, const char *key, const char *value, graft_error *error);

    /** Describe option number `index`, counted from 0 in an order for display.
     *  \return OK; ERR_ARG (null); ERR_NOT_FOUND past the last. [one-caller] Not collective. Since 0.1. */
    int32_t (*option_info)(graft_context *context, int32_t index, graft_option *option, graft_error *error);

    /** Load one module file now. Modules named graft_KIND_NAME.so in the folders of option "module.path", next to
     *  libgraft.so, or in the folder `graft` there need no such call: they are found, and loaded when first needed. If
     *  several files have the same name, the first one in this order of folders is used. Setting "module.path" starts a
     *  new search, except for modules in use. Loading a file that is in use has no effect.
     *  \return OK; ERR_ARG (null); ERR_NOT_FOUND (no such file); ERR_MODULE (not a Graft module); ERR_VERSION (the
     *          version ranges do not overlap); ERR_STATE (a module of this name is built in, or in use);
     *          ERR_UNSUPPORTED (it needs another processor); ERR_NOMEM; the status with which the module refuses.
     *          [one-caller] Not collective. Since 0.1. */
    int32_t (*load_module)(graft_context *context, const char *path, graft_error *error);

    /** Describe module number `index`, built-ins included.
     *  \return OK; ERR_ARG (null); ERR_NOT_FOUND past the last. [one-caller] Not collective. Since 0.1. */
    int32_t (*module_info)(graft_context *context, int32_t index, graft_module_entry *entry, graft_error *error);

    /** Ask to cancel the call that runs in this context, or the next one: an atomic store, also legal in a signal
     *  handler and in the log callback. create(), epoch(), and all calls over ranks that agree on errors check for the
     *  request; other calls complete. The call that finds the request returns ERR_CANCELLED, on all ranks with the same
     *  message and the requesting rank in error->rank, and clears the request.
     *
     *  One process checks between the steps of create() and between the layers of epoch(). Ranks check where they
     *  agree: between the steps of create(), while METIS runs (within 2 seconds), and before weights change in epoch().
     *  A cancelled create() creates nothing. A cancelled epoch() leaves weights, optimiser and epoch as they were, and
     *  the result of the next epoch() is bitwise what the cancelled one would have given. A request that comes too late
     *  ends the next call that checks for it. The same holds while epoch() repeats epochs (option
     *  on_nonfinite=restore), because these are completed first. NULL is legal. [any-thread] Not collective. Since
     *  0.2. */
    void (*cancel)(graft_context *context);
} graft_api;

/** Open the library: negotiate a version and create a context.
 *
 * \param[in]  abi_min, abi_max  The range of versions that the host knows, inclusive; GRAFT_ABI_VERSION twice for a
 *                               host that knows one. The largest version known to both sides is used.
 * \param[in]  host              Functions of the host, or NULL. Copied.
 * \param[out] api               The calls of the context, for use until api->close(). Unchanged on failure.
 * \param[out] error             Optional. Filled on failure, also if the version ranges do not overlap.
 * \return OK; ERR_VERSION (the message has both ranges); ERR_ARG (api null, abi_min > abi_max, host of size 0);
 *         ERR_UNSUPPORTED (a flag of the host that this library does not know);
 *         ERR_OPTION (an environment variable GRAFT_... of a known option has an illegal value); ERR_NOMEM.
 * Threads: [any-thread]. Not collective. Memory: about 25 kB from the host's allocator, 20 kB more
 * during the call, and 128 bytes for `api` from the C library. The log has a warning for each variable GRAFT_... that
 * nothing reads. Starts no thread. Since 0.1. */
GRAFT_API int32_t graft_open(uint32_t abi_min, uint32_t abi_max, const graft_host *host, const graft_api **api,
                             graft_error *error);

GRAFT_EXTERN_C_END
#endif
