/* Graft base: versions, the size rule, status codes, errors, and the tags used in all other headers.
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

/** The revision of the contract in these headers. Host and library each state a range; see graft_open(). */
#define GRAFT_ABI_VERSION 1u

/* The size rule.
 *
 * Every struct that crosses the interface begins with `uint32_t size`. The side that provides the memory sets it to
 * sizeof the struct as compiled there. The reader copies min(size, its own sizeof) bytes and takes missing fields as
 * zero, and zero always means the older behaviour. If the struct is longer than the reader knows and the unknown part
 * is not all zero, it requests something that the reader does not have, and the call returns ERR_UNSUPPORTED. Structs
 * grow at the tail only; any other change has a new interface id. Reserved fields are zero. The size of such a struct
 * is a multiple of 8, and it has no bool, enum, long, size_t or bit-field.
 *
 * GRAFT_INIT(T) is a T with every field zero and `size` set. GRAFT_HAS(T, field) is the size that a T has at least if
 * it has `field`: compare it with the `size` of the other side before using the field. */
#define GRAFT_HAS(T, field) (offsetof(T, field) + sizeof(((T *)0)->field))

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
    X(ERR_UNSUPPORTED, -4, "no available module supports this case")                                                   \
    X(ERR_NOT_FOUND, -5, "no such file, module, interface, kernel or item")                                            \
    X(ERR_FORMAT, -6, "a file or a graph contradicts its own description")                                             \
    X(ERR_IO, -7, "reading or writing a file failed")                                                                  \
    X(ERR_OPTION, -8, "an option is unknown or its value is out of range")                                             \
    X(ERR_STATE, -9, "the call does not fit the state of the object")                                                  \
    X(ERR_FORKED, -10, "the process was forked after the context was opened")                                          \
    X(ERR_MODULE, -11, "a module, or the library behind it, failed")                                                   \
    X(ERR_PEER, -12, "a rank failed, or did not answer in time")                                                       \
    X(ERR_CANCELLED, -13, "the host asked to cancel the call")                                                         \
    X(ERR_NONFINITE, -14, "a loss, gradient or weight is not finite")

#define GRAFT_STATUS_ENUM(name, value, text) GRAFT_##name = (value),
enum { GRAFT_STATUS_MAP(GRAFT_STATUS_ENUM) GRAFT_STATUS_END = 1 };
#undef GRAFT_STATUS_ENUM

/** Description of a failure, in storage of the caller: there is nothing to free, and it is usable before a version is
 *  negotiated. The caller sets `size` (GRAFT_INIT) and passes the address, or NULL. A call that fails writes all
 *  fields; a call that succeeds writes none. */
typedef struct graft_error {
    uint32_t size;
    int32_t  code;         /**< the status that the call returned */
    int32_t  native_code;  /**< the code of the library behind a module, or errno of a file operation; else 0 */
    int32_t  rank;         /**< the rank that failed; 0 on one process */
    char     where[48];    /**< the public call that failed, such as "graft.mxm/1 run" */
    char     message[448]; /**< a sentence: what was found, what was expected, where. UTF-8, always terminated */
} graft_error;

/* Tags and conventions of the function comments.
 *
 * Threads      [any-thread]     may be called at any time from any thread.
 *              [one-caller]     one call at a time for each context; the host may call from several threads in turn.
 *              [starts-openmp]  runs a team of up to `threads` OpenMP threads and returns when all of them are idle.
 * Collective   "Collective": all ranks of the transport make the same calls in the same order.
 *              "Not collective": concerns the calling process only.
 * Ownership    "borrowed until X": the caller keeps the memory alive and unchanged until X. A pointer without such a
 *              note is borrowed during the call only. "owned by X": valid until X is destroyed.
 * Errors       After a failure every output is as it was before the call. Every call except close and destroy may
 *              return GRAFT_ERR_FORKED (in a child of the process that opened the context) besides the codes it lists,
 *              and calls with long work GRAFT_ERR_CANCELLED (see graft_api.cancel()),
 *              and GRAFT_ERR_STATE: the object was destroyed, or is of another kind or context; the context was closed;
 *              another call runs in the context, in another thread or in the caller of a callback. Option "check"
 *              decides how much is checked. destroy and close return nothing and accept NULL, and objects that were
 *              destroyed before; during another call they take effect when that call ends.
 * Since        The release of Graft whose library first had the call. 0.1 is the first contract that was frozen.
 * Text         UTF-8. Numbers in option values use a point, whatever the locale of the host. */

GRAFT_EXTERN_C_END
#endif
