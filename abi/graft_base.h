/* Graft base: versions, the size rule, status codes, errors, and the words used in every other header.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GRAFT_BASE_H
#define GRAFT_BASE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#define GRAFT_EXTERN_C_BEGIN extern "C" {
#define GRAFT_EXTERN_C_END }
#else
#define GRAFT_EXTERN_C_BEGIN
#define GRAFT_EXTERN_C_END
#endif

/** Marks the one function that libgraft.so, or a module, exports. */
#define GRAFT_API __attribute__((visibility("default")))

/** The revision of the contract in these headers. A host and a library each give a range; see graft_open(). */
#define GRAFT_ABI_VERSION 1u

/* The size rule.
 *
 * Every struct that crosses the border begins with `uint32_t size`, set by whoever provides the memory to sizeof the
 * struct as he compiled it. The reader copies min(size, his own sizeof) and takes what is missing as zero, and zero
 * always means the older behaviour. If more came than he knows, and not all of it is zero, something is asked of him
 * that he cannot do: then the answer is ERR_UNSUPPORTED. Structs grow at the tail only; any other change is a new
 * interface id. Reserved fields are zero. There is no bool, enum, long, size_t or bit-field in such a struct.
 *
 * GRAFT_INIT(T) is a T with every field zero and `size` set. */
#ifdef __cplusplus
template <class T> inline T graft_sized()
{
    T t = T();
    t.size = static_cast<uint32_t>(sizeof(T));
    return t;
}
#define GRAFT_INIT(T) graft_sized<T>()
#else
#define GRAFT_INIT(T) ((T){ .size = (uint32_t)sizeof(T) })
#endif

GRAFT_EXTERN_C_BEGIN

/* Status codes: 0 success, negative failure. One list gives codes, names and texts; values are never reused. */
#define GRAFT_STATUS_MAP(X)                                                                                            \
    X(OK, 0, "success")                                                                                                \
    X(ERR_ARG, -1, "an argument is null, out of range, or does not fit the others")                                    \
    X(ERR_NOMEM, -2, "out of memory")                                                                                  \
    X(ERR_VERSION, -3, "the two sides have no version of the contract in common")                                      \
    X(ERR_UNSUPPORTED, -4, "no module at hand can do this case")                                                       \
    X(ERR_NOT_FOUND, -5, "no such file, module, interface, kernel or item")                                            \
    X(ERR_FORMAT, -6, "a file or a graph contradicts its own description")                                             \
    X(ERR_IO, -7, "reading or writing a file failed")                                                                  \
    X(ERR_OPTION, -8, "an option is unknown or its value is out of range")                                             \
    X(ERR_STATE, -9, "the call does not fit the state of the object")                                                  \
    X(ERR_FORKED, -10, "the process was forked after the context was opened")                                          \
    X(ERR_MODULE, -11, "a module, or the library behind it, failed")                                                   \
    X(ERR_PEER, -12, "a rank failed, or did not answer in time")

#define GRAFT_STATUS_ENUM(name, value, text) GRAFT_##name = (value),
enum { GRAFT_STATUS_MAP(GRAFT_STATUS_ENUM) GRAFT_STATUS_END = 1 };
#undef GRAFT_STATUS_ENUM

/** What went wrong, in the caller's own storage: nothing to free, valid for as long as the caller keeps it, and
 *  usable before the two sides have agreed on a version. Set `size` (GRAFT_INIT), pass the address or NULL.
 *  A failing call writes it whole; a succeeding call leaves it alone. */
typedef struct graft_error {
    uint32_t size;
    int32_t  code;         /**< the status that the call returned */
    int32_t  native_code;  /**< the code of the library behind a module, or errno of a failed file call; else 0 */
    int32_t  rank;         /**< the rank on which it happened; 0 on one process */
    char     where[48];    /**< the public call that failed, such as "graft.mxm/1 run" */
    char     message[448]; /**< a sentence: what was found, what was expected, where. UTF-8, always terminated */
} graft_error;

/* The words of the function comments.
 *
 * Threads      [any-thread]     may be called at any time from any thread.
 *              [one-caller]     one call at a time per context; the host serialises, from whatever threads it likes.
 *              [starts-openmp]  runs a team of up to `threads` OpenMP threads and returns when all of them are idle.
 * Collective   "Not collective": concerns the calling process alone.
 * Ownership    "borrowed until X": the caller keeps it alive and unchanged until X. Every pointer that is not said to
 *              be borrowed for longer is borrowed for the call alone. "owned by X": valid until X is destroyed.
 * Errors       On failure every output is as it was before the call. Every call except close and destroy may return
 *              GRAFT_ERR_FORKED (in a child process of the one that opened the context) beside the codes it lists.
 *              destroy and close return nothing and accept NULL.
 * Text         UTF-8. Numbers in option values use a point, whatever the locale of the host. */

GRAFT_EXTERN_C_END
#endif
