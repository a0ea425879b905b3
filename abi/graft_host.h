/* Graft host: what a host lends to the library, and graft_open(), the only function that libgraft.so exports.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GRAFT_HOST_H
#define GRAFT_HOST_H

#include "graft_base.h"

GRAFT_EXTERN_C_BEGIN

typedef int32_t graft_log_level;
enum { GRAFT_LOG_DEBUG = 0, GRAFT_LOG_INFO = 1, GRAFT_LOG_WARNING = 2, GRAFT_LOG_ERROR = 3 };

/** What the host lends. Copied by graft_open(); the functions and `self` must stay valid until close().
 *  Any function pointer may be NULL (allocate and deallocate only together), and the whole struct too: then memory
 *  comes from the C library and the log is silent. Nothing of a size that grows with the data is allocated in any
 *  other way, but what the libraries behind modules allocate for themselves. */
typedef struct graft_host {
    uint32_t size;
    uint32_t reserved;
    void    *self; /**< handed back as the first argument of every function below */

    /** Receive one line of log, without a line end. Called only from the thread that called Graft. */
    void (*log)(void *self, graft_log_level level, const char *message);

    /** `bytes` (never 0) of memory aligned to `alignment` (a power of two), or NULL. [any-thread] */
    void *(*allocate)(void *self, uint64_t bytes, uint64_t alignment);

    /** Give back what allocate returned, with the same two numbers. Never called with NULL. [any-thread] */
    void (*deallocate)(void *self, void *memory, uint64_t bytes, uint64_t alignment);

    /** Extension of the host by id ("name/revision"), or NULL if it has none such. */
    const void *(*extension)(void *self, const char *id);
} graft_host;

/** One run of the library: its options, modules and objects. Contexts share nothing with one another. */
typedef struct graft_context graft_context;

/** Description of one option. All texts are owned by the context. */
typedef struct graft_option {
    uint32_t    size;
    int32_t     live;    /**< 1: read at every call; 0: read when an object (a trainer) is created */
    const char *key;     /**< such as "mxm.kernel" */
    const char *type;    /**< "integer", "number", "text", "yes|no", or the choices: "adam|sgd" */
    const char *initial; /**< the value when nobody set one */
    const char *range;   /**< such as "1..64", "0.." or "[0..1)"; empty if the type says it all */
    const char *value;   /**< the value now; valid until the next set() of this key */
    const char *help;    /**< one line */
} graft_option;

/** What is known of one module or built-in. Texts are owned by the context. */
typedef struct graft_module_entry {
    uint32_t    size;
    int32_t     state;  /**< 1 loaded, 0 found and not needed so far, negative: the status why it is not usable */
    const char *kind;   /**< "kernel", "dense" or "transport" */
    const char *name;   /**< "reference", "graphblas", "cblas", ... */
    const char *path;   /**< the file it comes from, empty for what is built in */
    const char *detail; /**< when loaded, what it is; when not usable, the sentence that says why */
} graft_module_entry;

/** The instance calls. Filled by graft_open(), owned by the context: gone after close(). */
typedef struct graft_api {
    uint32_t       size;
    uint32_t       abi;     /**< the version agreed on: the largest that both sides know */
    const char    *version; /**< release of the library, such as "0.1.0" */
    graft_context *context; /**< first argument of everything below */

    /** Free the context and all it lent. Every object made in it must have been destroyed. Joins no thread and
     *  unloads nothing: the library may be opened again. NULL is legal. [one-caller] Not collective. Since 1. */
    void (*close)(graft_context *context);

    /** Table of an interface by id, such as GRAFT_MXM_ID; NULL if this library has none such, which is not an error.
     *  Cast to the struct that the header of the id names. Valid until close(). [any-thread] Not collective. Since 1.
     *  */
    const void *(*get_interface)(graft_context *context, const char *id);

    /** Give an option a value. Options also take their first value from the environment: "mxm.kernel" from
     *  GRAFT_MXM_KERNEL (not in set-user-ID programs). An option is read when its `live` field says.
     *  \return OK; ERR_ARG (null); ERR_OPTION (unknown key: the nearest one is named; value out of range); ERR_NOMEM.
     *  [one-caller] Not collective. Since 1. */
    int32_t (*set)(graft_context *context, const char *key, const char *value, graft_error *error);

    /** Describe option number `index`, counted from 0 in an order fit for display.
     *  \return OK; ERR_ARG (null); ERR_NOT_FOUND past the last. [one-caller] Not collective. Since 1. */
    int32_t (*option_info)(graft_context *context, int32_t index, graft_option *option, graft_error *error);

    /** Load one module file now. Not needed for modules beside libgraft.so or in the folders of option "module.path",
     *  named graft_KIND_NAME.so, which are found by themselves and loaded when first needed. A file that is in use
     *  already is left as it is.
     *  \return OK; ERR_ARG; ERR_NOT_FOUND (no such file); ERR_MODULE (not a
     *          Graft module); ERR_VERSION (ranges do not meet); ERR_STATE (another module of this name is in use);
     *          ERR_NOMEM; what the module itself refuses with. [one-caller] Not collective. Since 1. */
    int32_t (*load_module)(graft_context *context, const char *path, graft_error *error);

    /** Describe module number `index`, built-ins included.
     *  \return OK; ERR_ARG; ERR_NOT_FOUND past the last. [one-caller] Not collective. Since 1. */
    int32_t (*module_info)(graft_context *context, int32_t index, graft_module_entry *entry, graft_error *error);
} graft_api;

/** Open the library: agree on a version and make a context.
 *
 * \param[in]  abi_min, abi_max  The versions the host can drive, both included; GRAFT_ABI_VERSION twice for a host that
 *                               knows one. The largest one known to both sides is taken.
 * \param[in]  host              What the host lends, or NULL. Copied.
 * \param[out] api               The instance calls, owned by the context until api->close(). Untouched on failure.
 * \param[out] error             Optional. Filled on failure, also when the versions do not meet.
 * \return OK; ERR_VERSION (the message names both ranges); ERR_ARG (api null, abi_min > abi_max, host of size 0);
 *         ERR_OPTION (an environment variable GRAFT_... of a known option holds a bad value); ERR_NOMEM.
 * Threads: [any-thread]. Not collective. Memory: some 20 kB from the host's allocator. Prints nothing, keeps errno,
 * starts no thread. Since 1. */
GRAFT_API int32_t graft_open(uint32_t abi_min, uint32_t abi_max, const graft_host *host, const graft_api **api,
                             graft_error *error);

GRAFT_EXTERN_C_END
#endif
