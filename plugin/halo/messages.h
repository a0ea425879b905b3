/* The rows of the messages of one exchange: one message to and one from each rank that shares boundary vertices with
 * this rank. Rows are encoded by the threads that produce them, and decoded after other work. Unquantized rows are sent
 * and received without copies.
 *
 * messages.c   memory, and the bytes of each message      encode.c   encodes and decodes rows, and measures the error
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "comm/framed.h"
#include "halo/format.h"

/** Rows by destination or source rank, without gaps: rank q has rows start[q] to start[q + 1] - 1. */
struct gr_rank_rows {
    const int64_t *start; /* [n_ranks + 1] first row of each rank */
    void          *data;  /* [rows x width] */
};

/** Width in bits of every row of an exchange, 2 to 8, and its offset among the bytes of all rows. */
struct gr_row_widths {
    uint8_t *bits[GR_SIDES]; /* [rows] bits of an element of each row */
    int64_t *at[GR_SIDES];   /* [rows + 1] offset of each row in bytes */
    double  *spread;  /* [rows sent] sums of width * range^2, where range is about (largest - smallest element) */
    double  *squares; /* [rows sent] sums of the squares of a row's elements */
};

/** The fields of an exchange that are equal on all ranks. `semiring` and `flags` say what is computed from the rows; 0:
 *  nothing. */
struct gr_exchange_args {
    int32_t           layer;
    enum gr_direction direction;
    int               exact;  /* rows are sent raw, whatever the options say */
    int               second; /* a second exchange of a layer, which draws other random bits */
    int64_t           epoch, width;
    int64_t           call;  /* number that frames contain in place of the epoch; 0: they contain the epoch */
    graft_dtype       dtype; /* F32, F64 */
    graft_semiring    semiring;
    uint32_t          flags; /* GRAFT_AGGREGATE_... */
};

/** Rows sent to a rank, and their quantization error. */
struct gr_send_stats {
    int64_t rows, bytes;    /* without the frames of messages */
    int64_t raw, raw_bytes; /* rows sent again unquantized, because the code cannot represent a row of the message */
    int64_t sampled_rows;   /* rows whose error was measured */
    double  nmse, expected; /* sums over sampled rows: normalised squared error, and its expectation */
};

/** The rows of all messages that are sent, or received. */
struct gr_message_side {
    struct gr_rank_rows rows;
    char               *encoded;  /* the encoded rows; unused if rows are sent raw */
    int64_t             capacity; /* bytes of `encoded` */
    const int64_t      *spare;    /* [n_ranks] bytes at the end of raw rows that are not sent; NULL: none */
};

/** How the exchange that has begun writes its rows. */
struct gr_messages_exchange {
    struct gr_codec             codec;
    const struct gr_row_widths *widths;    /* NULL: all rows have codec.bits */
    int                         encodes;   /* rows are sent from `encoded`, not from where they are */
    int64_t                     row_bytes; /* bytes of an encoded row of codec.bits */
};

/** Work space of encoding. */
struct gr_messages_work {
    float  *floats;    /* [threads x GR_CODEC_WORK x width] */
    float  *row_error; /* [rows sent x 2] the error and its expectation; negative: not measured */
    int64_t n_floats, row_errors;
};

struct gr_messages {
    const graft_context        *context;
    struct gr_comm             *comm;
    struct gr_row_format        format;
    int                         is_detached; /* see gr_halo_messages_init() */
    struct gr_framed            framed;
    struct gr_message_side      side[GR_SIDES];
    struct gr_send_stats       *sent; /* [n_ranks] statistics of the rows sent to each rank */
    struct gr_messages_work     work;
    struct gr_messages_exchange begun;
};

/** Initialise messages without memory for rows. Not collective, but all ranks call it in the same order, even after a
 *  failure: it takes the next channel of the comm even if it fails. gr_halo_messages_fini() is always required.
 * \param[in] is_detached  The exchange may outlive its rows, so unquantized rows are copied too, and a row that the
 *                         code cannot represent is received as NaN, because there is no space for raw rows.
 * \return OK; ERR_NOMEM. */
int32_t gr_halo_messages_init(const graft_context *context, struct gr_comm *comm, int is_detached,
                              struct gr_messages *messages, graft_error *error);
void    gr_halo_messages_fini(struct gr_messages *messages);

/** Allocate buffers for exchanges of rows[GR_SEND] and rows[GR_RECEIVE] rows, or the other way round. \return OK;
 *  ERR_NOMEM. */
int32_t gr_halo_messages_reserve(struct gr_messages *messages, const int64_t rows[GR_SIDES], int64_t width,
                                 graft_dtype dtype, graft_error *error);
/** Return the bytes that gr_halo_messages_reserve() needs. */
int64_t gr_halo_messages_need(const struct gr_messages *messages, const int64_t rows[GR_SIDES], int64_t width,
                              graft_dtype dtype);
/** Return the bytes of memory of `messages`. */
int64_t gr_halo_messages_bytes(const struct gr_messages *messages);

/** Begin an exchange: post the receives. Raw rows are received in received.data.
 * \param[in] widths  Widths of the rows, which must exist until the end of the exchange; NULL: all equal.
 * \return OK; ERR_PEER. */
int32_t gr_halo_messages_post(struct gr_messages *messages, const struct gr_exchange_args *args,
                              const struct gr_row_widths *widths, struct gr_rank_rows received, graft_error *error);

/** Set the array of the rows to send, before they are computed. It must exist until the end, unless messages are
 *  detached. */
void gr_halo_messages_set_rows(struct gr_messages *messages, struct gr_rank_rows sent);

/** Encode rows begin to end - 1. Unless rows are sent raw, call it once for every row after its computation, in thread
 *  `thread` of a team limited by gr_halo_messages_team(). Messages do not depend on the number of threads. */
void gr_halo_messages_encode(void *messages, int32_t thread, int64_t begin, int64_t end);

/** Return the team, limited to the number of threads that have scratch memory. */
struct gr_team gr_halo_messages_team(const struct gr_messages *messages, struct gr_team team);

/** Call gr_comm_framed_send_until(), after the rows of the messages up to rank `peer` have been encoded. Rows to other
 *  ranks may be computed afterwards. \return As gr_halo_messages_send(), which is always required to send the other
 *  messages. */
int32_t gr_halo_messages_send_until(struct gr_messages *messages, int32_t peer, struct gr_team team,
                                    graft_error *error);

/** Send all messages. gr_comm_framed_poll() lets them progress, and gr_comm_framed_wait() waits for those of other
 *  ranks. \return OK; ERR_PEER; ERR_NONFINITE (this rank alone: option halo.nonfinite=refuse, and the code cannot
 *  represent a row. Unless messages are detached, all rows were sent as with halo.nonfinite=send). */
int32_t gr_halo_messages_send(struct gr_messages *messages, struct gr_team team, graft_error *error);

/** Decode the received rows into rows[rows x width], unless they are raw and already there. \return OK; ERR_PEER. */
int32_t gr_halo_messages_decode(struct gr_messages *messages, void *rows, struct gr_team team, graft_error *error);

/** Return the bytes of a row in a message of an exchange. */
int64_t gr_halo_messages_row_bytes(const struct gr_messages *messages, const struct gr_exchange_args *args);

void gr_halo_send_stats_add(struct gr_send_stats *sum, const struct gr_send_stats *sent);

/** Add to *wait and *exchange the seconds of all exchanges of these messages. */
void gr_halo_messages_add_seconds(const struct gr_messages *messages, double *wait, double *exchange);
