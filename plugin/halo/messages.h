/* The messages of one exchange: one to and one from each rank that shares boundary vertices with this rank. A message
 * is a frame and its rows, quantized or raw. Receives are posted first, rows are encoded by the threads that produce
 * them, sent, and waited for and decoded after other work. Unquantized rows are sent and received without copies.
 *
 * messages.c   frames, requests, CRCs      encode.c   rows and their records, and the quantization error
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/team.h"
#include "comm/comm.h"
#include "comm/frame.h"
#include "comm/outcome.h"
#include "halo/format.h"

enum gr_side { GR_SEND, GR_RECEIVE, GR_SIDES };

/** The side whose rows are sent, or received, in a direction, where sides are counted forward: backward, the same rows
 *  go the other way. */
static inline enum gr_side gr_side_of(enum gr_direction direction, enum gr_side side)
{
    return direction == GR_FORWARD ? side : side == GR_SEND ? GR_RECEIVE : GR_SEND;
}

/** Rows by destination or source rank, without gaps: rank q has rows start[q] to start[q + 1] - 1. */
struct gr_rank_rows {
    const int64_t *start; /* [n_ranks + 1] */
    void          *data;  /* [rows x width] */
};

/** Width in bits of every row of an exchange, 2 to 8, and its offset among the bytes of all rows. */
struct gr_row_widths {
    uint8_t *bits[GR_SIDES]; /* [rows] */
    int64_t *at[GR_SIDES];   /* [rows + 1] */
    double  *spread;  /* [rows sent] added to: width times the square of (largest element less smallest), about */
    double  *squares; /* [rows sent] added to: the sum of the squares of its elements */
};

/** The fields of an exchange that are equal on all ranks. `semiring` and `flags` describe the computation on the rows,
 *  or are 0. */
struct gr_exchange_args {
    int32_t           layer;
    enum gr_direction direction;
    int               exact;  /* rows are sent raw, whatever the options say */
    int               second; /* a second exchange of a layer, which draws other random bits */
    int64_t           epoch, width;
    int64_t           call;  /* a number that frames have in place of the epoch; 0: the epoch */
    graft_dtype       dtype; /* F32, F64 */
    graft_semiring    semiring;
    uint32_t          flags; /* GRAFT_AGGREGATE_... */
};

/** Rows sent to a rank, and their quantization error. */
struct gr_send_stats {
    int64_t rows, bytes;    /* without the frames of messages */
    int64_t raw, raw_bytes; /* rows sent again unquantized, because a row of their message has no code */
    int64_t sampled_rows;   /* rows whose error was measured; the sums over these rows follow */
    double  nmse, expected;
};

/** All messages that are sent, or received. */
struct gr_message_side {
    struct gr_rank_rows rows;
    char               *encoded;    /* the rows in a code; unused if they are sent raw */
    int64_t             capacity;   /* bytes of `encoded` */
    int64_t            *encoded_at; /* [n_ranks + 1] bytes before the encoded rows of each rank */
    int64_t            *raw_at;     /* [n_ranks + 1] the same for raw rows */
    int32_t             n;          /* number of messages, and for each message: */
    int32_t            *peer;       /* [n_ranks] */
    struct gr_frame    *frame;      /* [n_ranks] */
    uint8_t            *has_raw;    /* [n_ranks] by rank: raw rows follow, because an encoded row has no code */
    const int64_t      *spare;      /* [n_ranks] bytes at the end of raw rows that do not travel; NULL: none */
};

/** The exchange that has begun. */
struct gr_messages_exchange {
    struct gr_codec             codec;
    const struct gr_row_widths *widths; /* NULL: all rows have codec.bits */
    struct gr_frame             head;   /* common fields of its frames */
    int                         frames_checked;
    int32_t                     n_sent;  /* messages, and: */
    int                         is_sent; /* all of them */
    int                         arrived; /* all is received, and sent */
    int32_t                     rc;      /* of gr_halo_messages_poll(), and: */
    graft_error                 error;
    double                      send_began_at, sent_at, received_at;
};

/** Work space of encoding. */
struct gr_messages_work {
    float  *floats;    /* [threads x gr_codec_work()] */
    float  *row_error; /* [rows sent x 2] nmse and its expectation; negative: not measured */
    int64_t n_floats, row_errors;
};

struct gr_messages {
    const graft_context        *context;
    struct gr_comm             *comm;
    int32_t                     channel;
    struct gr_row_format        format;
    int                         is_detached; /* see gr_halo_messages_init() */
    struct gr_message_side      side[GR_SIDES];
    _Atomic uint32_t           *crc;      /* [n_ranks] of the rows of a message */
    struct gr_request          *requests; /* see request_of() */
    struct gr_send_stats       *sent;     /* [n_ranks] of the exchange, by receiver */
    struct gr_messages_work     work;
    struct gr_outcome          *outcome;          /* of a call, polled with the messages; NULL: none */
    double                      wait_seconds;     /* seconds of only waiting */
    double                      exchange_seconds; /* seconds from the first send to the arrival of the last message */
    struct gr_messages_exchange begun;
};

/** Not collective, but all ranks call it in the same order, also after a failure of a rank: it takes the next channel
 *  of the comm even if it fails. gr_halo_messages_fini() is always required.
 * \param[in] is_detached  The exchange may outlive its rows: rows of 32 bits are copied into buffers too, and a row
 *                         without a code is received as NaN, because it has no space for raw rows.
 * \return OK; ERR_NOMEM. */
int32_t gr_halo_messages_init(const graft_context *context, struct gr_comm *comm, int is_detached,
                              struct gr_messages *messages, graft_error *error);
void    gr_halo_messages_fini(struct gr_messages *messages);

/** Allocate buffers for exchanges of rows[GR_SEND] and rows[GR_RECEIVE] rows, or the other way round. \return OK;
 *  ERR_NOMEM. */
int32_t gr_halo_messages_reserve(struct gr_messages *messages, const int64_t rows[GR_SIDES], int64_t width,
                                 graft_dtype dtype, graft_error *error);
/** Bytes of these buffers. */
int64_t gr_halo_messages_need(const struct gr_messages *messages, const int64_t rows[GR_SIDES], int64_t width,
                              graft_dtype dtype);
/** Bytes that it holds. */
int64_t gr_halo_messages_bytes(const struct gr_messages *messages);

/** Begin an exchange: post the receives. gr_halo_messages_decode() writes received.data, unless it gets another array.
 * \param[in] widths  Widths of the rows; NULL: all equal. They stay until the end.
 * \return OK; ERR_PEER. */
int32_t gr_halo_messages_post(struct gr_messages *messages, const struct gr_exchange_args *args,
                              const struct gr_row_widths *widths, struct gr_rank_rows received, graft_error *error);

/** Name the rows to send, before they are computed. They stay until the end, unless messages are detached. */
void gr_halo_messages_set_rows(struct gr_messages *messages, struct gr_rank_rows sent);

/** Encode rows begin to end - 1. Required once for every row after its computation, unless rows are sent raw, by thread
 *  `thread` of a team that gr_halo_messages_team() allows. Messages are the same for any number of threads. */
void gr_halo_messages_encode(void *messages, int32_t thread, int64_t begin, int64_t end);
int  gr_halo_messages_are_encoded(const struct gr_messages *messages);

/** The team, limited to the number of threads with scratch memory. */
struct gr_team gr_halo_messages_team(const struct gr_messages *messages, struct gr_team team);

/** Seal and send the unsent messages to the ranks after this rank up to `peer`; rank 0 follows the last rank. Their
 *  rows have been encoded. Rows to other ranks may be computed afterwards. \return as gr_halo_messages_send(), which is
 *  always required for the other messages. */
int32_t gr_halo_messages_send_until(struct gr_messages *messages, int32_t peer, struct gr_team team,
                                    graft_error *error);

/** Seal and send. \return OK; ERR_PEER; ERR_NONFINITE (this rank alone: a row without a code, if such rows are refused.
 *  All was sent, rows without a code as with option halo.nonfinite=send, unless messages are detached). */
int32_t gr_halo_messages_send(struct gr_messages *messages, struct gr_team team, graft_error *error);

/** Let messages progress; for gr_team and graft_mxm_args. A failure is reported by gr_halo_messages_wait(). */
void gr_halo_messages_poll(void *messages);

/** Wait for all messages, at most as long as option halo.timeout says, and check them. \return OK; ERR_PEER. */
int32_t gr_halo_messages_wait(struct gr_messages *messages, struct gr_team team, graft_error *error);

/** Decode the received rows into rows[rows x width], unless they are raw and already there. \return OK; ERR_PEER. */
int32_t gr_halo_messages_decode(struct gr_messages *messages, void *rows, struct gr_team team, graft_error *error);

/** Wait for messages in flight before their memory is freed. A failure ends the comm, and is not reported. */
void gr_halo_messages_drain(struct gr_messages *messages);

/** Bytes of a row in a message of an exchange. */
int64_t gr_halo_messages_row_bytes(const struct gr_messages *messages, const struct gr_exchange_args *args);

void gr_halo_send_stats_add(struct gr_send_stats *sum, const struct gr_send_stats *sent);

/** Add the seconds of all exchanges. */
void gr_halo_messages_add_seconds(const struct gr_messages *messages, double *wait, double *exchange);
