/* The framed messages of one exchange: at most one to and one from each other rank. A message is a frame and a payload,
 * whose CRC32C is in the frame. A sender may find out that a payload cannot be used after its receive was posted: then
 * its substitute follows, and the frame says so by other bits.
 *
 * Receives are posted first. Messages are sent together or one by one, progress while they are polled during other
 * work, and are waited for. The frame and the CRC of each received message are checked.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/direction.h"
#include "base/memory.h"
#include "base/team.h"
#include "comm/comm.h"
#include "comm/frame.h"
#include "comm/outcome.h"

/** Memory of the caller, which stays until the exchange ends. */
struct gr_payload {
    char    *data;
    uint64_t bytes;
};

/** All messages that are sent, or received. Arrays have n_ranks elements, by rank unless said otherwise. The caller
 *  sets all but the frames. */
struct gr_framed_side {
    int32_t            n;              /* number of messages, none of them with 0 rows */
    int32_t           *peer;           /* rank of each message, beginning after this rank */
    struct gr_frame   *frame;          /* of each message, in the order of peers */
    int64_t           *rows;           /* number of rows, for frames */
    struct gr_payload *payload;        /* of 0 bytes: only the frame is sent */
    struct gr_payload *substitute;     /* of 0 bytes: none */
    uint8_t           *is_substituted; /* the sender sets this before it sends */
};

/** The exchange that has begun. */
struct gr_framed_state {
    struct gr_frame head; /* common fields of its frames */
    int             frames_checked;
    int32_t         n_sent;  /* messages that are sent */
    int             is_sent; /* whether these are all messages */
    int             arrived; /* all is received, and sent */
    int32_t         rc;      /* of gr_comm_framed_poll(), with its error */
    graft_error     error;
    double          send_began_at, sent_at, received_at;
};

struct gr_framed {
    struct gr_comm        *comm; /* NULL: not in use */
    int32_t                channel;
    int16_t                substitute_bits; /* `bits` of a frame whose payload is substituted; 0: none ever is */
    struct gr_framed_side  side[GR_SIDES];
    _Atomic uint32_t      *crc;      /* [n_ranks] of the payloads of one side, by message */
    struct gr_request     *requests; /* [3 n_ranks] for each side */
    struct gr_pool         pool;
    struct gr_outcome     *outcome;          /* of a call, polled with the messages; NULL: none */
    double                 wait_seconds;     /* seconds of only waiting */
    double                 exchange_seconds; /* seconds from the first send to the arrival of the last message */
    struct gr_framed_state begun;
};

/** Not collective, but all ranks call it in the same order, also after a failure of a rank: it takes the next channel
 *  of the comm even if it fails. gr_comm_framed_fini() is always required, after all messages have arrived or the comm
 *  is dead. \return OK; ERR_NOMEM. */
int32_t gr_comm_framed_init(struct gr_framed *framed, struct gr_comm *comm, graft_error *error);
void    gr_comm_framed_fini(struct gr_framed *framed);

/** Begin an exchange, and post the receives of side GR_RECEIVE. The other side is set before it is sent. \return OK;
 *  ERR_PEER. */
int32_t gr_comm_framed_receive(struct gr_framed *framed, const struct gr_frame *head, graft_error *error);

/** Seal and send the unsent messages to the ranks after this rank up to `peer`; rank 0 follows the last rank, and this
 *  rank comes last, so that it stands for all messages. \return OK; ERR_PEER. */
int32_t gr_comm_framed_send_until(struct gr_framed *framed, int32_t peer, struct gr_team team, graft_error *error);

/** Let messages progress; for gr_team and graft_mxm_args. A failure is reported by gr_comm_framed_wait(). */
void gr_comm_framed_poll(void *framed);

/** Wait for all messages, at most as long as option halo.timeout says, and check them. \return OK; ERR_PEER. */
int32_t gr_comm_framed_wait(struct gr_framed *framed, struct gr_team team, graft_error *error);

/** Wait for messages in flight before their memory is freed. A failure ends the comm, and is not reported. */
void gr_comm_framed_drain(struct gr_framed *framed);
