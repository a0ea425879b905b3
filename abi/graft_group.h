/* "graft.group/1": collective calls of the host over the ranks of a transport.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GRAFT_GROUP_H
#define GRAFT_GROUP_H

#include "graft_matrix.h"
#include "graft_transport.h"

GRAFT_EXTERN_C_BEGIN

#define GRAFT_GROUP_ID "graft.group/1"

/** The ranks of a transport, for collective calls of the host. */
typedef struct graft_group graft_group;

/* Collective calls for hosts, over a transport that distributed objects of the same context may use too: all ranks
 * make the same collective calls, of hosts and of the library, in the same order. A wait for another rank ends
 * after option "halo.timeout"; README.md has the largest duration of a call. The ranks agree on the status: if
 * arguments are invalid or memory is short on one rank, or if ranks make different calls of this table or pass
 * different counts, types or roots, all return the same status (ERR_ARG, ERR_NOMEM) and message of the lowest such
 * rank, and may continue. ERR_PEER: a rank failed, did not answer in time, or makes a call of another table; then
 * the transport can only be closed. After any failure outputs are unchanged. */
typedef struct graft_group_api {
    uint32_t size;
    uint32_t reserved;

    /** Create a group of the ranks of a transport. \param[in] transport  Borrowed until destroy(); NULL: one rank.
     * \return OK; ERR_ARG (null, an invalid transport); ERR_NOMEM; ERR_VERSION (ranks of different releases); ERR_PEER.
     * [one-caller] Collective. Memory: about 4 kB and 1 kB for each rank. Since 0.2. */
    int32_t (*create)(graft_context *context, const graft_transport *transport, graft_group **group,
                      graft_error *error);

    /** Agree on a status: each rank passes its own, any negative number being a failure, whose sentence is in
     *  error->message. All return the status of the lowest rank that failed, with "rank r: " before its sentence and r
     *  in error->rank; or OK.
     * \return OK; the status of a rank; ERR_ARG (null); ERR_PEER. [one-caller] Collective. Memory: none. Since 0.2. */
    int32_t (*agree)(graft_group *group, int32_t status, graft_error *error);

    /** Compute sums over all ranks, bitwise identical on all ranks and in every run with this number of ranks.
     * \param[in]     dtype   GRAFT_F32 (added in double), GRAFT_F64 or GRAFT_I64 (modulo 2^64)
     * \param[in,out] values  [count] the values of this rank; then the sums.
     * \return OK; ERR_ARG (null, dtype, count); ERR_NOMEM; ERR_PEER. [one-caller] Collective. Memory: 16 bytes a
     * value during the call, of which half is kept. Since 0.2. */
    int32_t (*sum)(graft_group *group, graft_dtype dtype, int64_t count, void *values, graft_error *error);

    /** Compute the maximum of each element over all ranks. \param[in,out] values  [count]
     * \return as sum(). [one-caller] Collective. Memory: as sum(). Since 0.2. */
    int32_t (*maximum)(graft_group *group, int64_t count, int64_t *values, graft_error *error);

    /** Gather arrays of bytes, in the order of ranks.
     * \param[in]  root   The rank that receives; -1: all ranks.
     * \param[in]  bytes  [n_ranks] sizes of the arrays of all ranks, the same on all ranks
     * \param[in]  mine   [bytes[rank]] the array of this rank
     * \param[out] all    The arrays one after the other; NULL on ranks that do not receive.
     * \return OK; ERR_ARG (null, no such rank, sizes); ERR_NOMEM; ERR_PEER. [one-caller] Collective. Memory during the
     * call: the size of the arrays. Since 0.2. */
    int32_t (*gather)(graft_group *group, int32_t root, const int64_t *bytes, const void *mine, void *all,
                      graft_error *error);

    /** Send the bytes of rank `root` to all ranks. \param[in,out] data  [bytes], the same number on all ranks
     * \return as gather(). [one-caller] Collective. Memory: `bytes` during the call. Since 0.2. */
    int32_t (*broadcast)(graft_group *group, int32_t root, int64_t bytes, void *data, graft_error *error);

    /** Free the group. NULL is legal. Sends nothing. [one-caller] Not collective. Since 0.2. */
    void (*destroy)(graft_group *group);
} graft_group_api;

GRAFT_EXTERN_C_END
#endif
