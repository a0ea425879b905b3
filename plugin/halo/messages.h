/* The rows of the messages of one exchange: one to and one from each rank that shares boundary vertices with this rank.
 * Rows are encoded by the threads that produce them, and decoded after other work. Unquantized rows are sent and
 * received without copies.
 *
 * messages.c   memory, payloads      encode.c   rows and their records, and the quantization error
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "comm/framed.h"
#include "halo/format.h"

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

/** The rows of all messages that are sent, or received. */
struct gr_message_side {
    struct gr_rank_rows rows;
    char               *encoded;  /* the rows in a code; unused if they are sent raw */
    int64_t             capacity; /* bytes of `encoded` */
    const int64_t      *spare;    /* [n_ranks] bytes at the end of raw rows that do not travel; NULL: none */
};

/** How the exchange that has begun writes its rows. */
struct gr_messages_exchange {
    struct gr_codec             codec;
    const struct gr_row_widths *widths;    /* NULL: all rows have codec.bits */
    int                         encodes;   /* rows are sent in a code, not where they are */
    int64_t                     row_bytes; /* of an encoded row of codec.bits */
};

/** Work space of encoding. */
struct gr_messages_work {
    float  *floats;    /* [threads x GR_CODEC_WORK x width] */
    float  *row_error; /* [rows sent x 2] nmse and its expectation; negative: not measured */
    int64_t n_floats, row_errors;
};

struct gr_messages {
    const graft_context        *context;
    struct gr_comm             *comm;
    struct gr_row_format        format;
    int                         is_detached; /* see gr_halo_messages_init() */
    struct gr_framed            framed;
    struct gr_message_side      side[GR_SIDES];
    struct gr_send_stats       *sent; /* [n_ranks] of the exchange, by receiver */
    struct gr_messages_work     work;
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

/** The team, limited to the number of threads with scratch memory. */
struct gr_team gr_halo_messages_team(const struct gr_messages *messages, struct gr_team team);

/** gr_comm_framed_send_until(), after the rows of these messages have been encoded. Rows to other ranks may be computed
 *  afterwards. \return as gr_halo_messages_send(), which is always required for the other messages. */
int32_t gr_halo_messages_send_until(struct gr_messages *messages, int32_t peer, struct gr_team team,
                                    graft_error *error);

/** Send all messages. gr_comm_framed_poll() lets them progress, and gr_comm_framed_wait() waits for those of other
 *  ranks. \return OK; ERR_PEER; ERR_NONFINITE (this rank alone: a row without a code, if such rows are refused. All
 *  was sent, rows without a code as with option halo.nonfinite=send, unless messages are detached). */
int32_t gr_halo_messages_send(struct gr_messages *messages, struct gr_team team, graft_error *error);

/** Decode the received rows into rows[rows x width], unless they are raw and already there. \return OK; ERR_PEER. */
int32_t gr_halo_messages_decode(struct gr_messages *messages, void *rows, struct gr_team team, graft_error *error);

/** Bytes of a row in a message of an exchange. */
int64_t gr_halo_messages_row_bytes(const struct gr_messages *messages, const struct gr_exchange_args *args);

void gr_halo_send_stats_add(struct gr_send_stats *sum, const struct gr_send_stats *sent);

/** Add the seconds of all exchanges. */
void gr_halo_messages_add_seconds(const struct gr_messages *messages, double *wait, double *exchange);
