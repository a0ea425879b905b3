/* Rows of numbers to and from other ranks in few bits: what goes is encoded, what comes decoded, and in between it is
 * an exchange (halo/exchange.h). With 32 bits rows travel from where they are to where they are wanted.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GR_HALO_WIRE_H
#define GR_HALO_WIRE_H

#include "codec/codec.h"
#include "comm/collective.h"
#include "halo/exchange.h"

enum gr_measuring { GR_MEASURE_NONE, GR_MEASURE_SAMPLE, GR_MEASURE_ALL };

/** What the options say of messages. */
struct gr_wire_format {
    int32_t           bits[2];     /* forward, backward; the most, where they are adaptive */
    int32_t           adaptive[2]; /* each row has bits of its own, see gr_wire_widths */
    int32_t           code[2];     /* of 1 bit; 0: see gr_wire_code() */
    int32_t           rounding[2]; /* 0: see gr_wire_rounding() */
    int32_t           refuses;     /* rows that no code fits are an error */
    enum gr_measuring measuring;
    uint64_t          seed;
};

struct gr_wire_format gr_wire_format(const graft_context *context);

/** Tell the log of options "halo..." that were set and have no effect with the others. Not collective. */
void gr_wire_tell_idle(const graft_context *context);

/** GRAFT_CODEC_... of rows of so many elements in so many bits that go in one direction. */
int32_t gr_wire_code(const struct gr_wire_format *format, int32_t direction, int32_t bits, int64_t width);

/** GRAFT_ROUND_... of rows in so many bits that go in one direction. */
int32_t gr_wire_rounding(const struct gr_wire_format *format, int32_t direction, int32_t bits);

/** Whether all ranks have the same. Collective. \return OK; ERR_ARG, ERR_PEER. */
int32_t gr_wire_compare(const graft_context *context, struct gr_comm *comm, graft_error *error);

/** Rows of a pass by rank, one behind the other without gaps: those of rank q are start[q] to start[q + 1] - 1. */
struct gr_wire_rows {
    const int64_t *start; /* [n_ranks + 1] */
    void          *rows;  /* [rows x width] */
};

/** Bits of every row of a pass, 2 to 8, and where it begins among the bytes of all; of those that go, and that come. */
struct gr_wire_widths {
    uint8_t *bits[2]; /* [rows] */
    int64_t *at[2];   /* [rows + 1] */
    float   *range;   /* [rows that go] written: the largest element less the smallest, roughly; 0 of one in no code */
    float   *squares; /* [rows that go] written: the sum of the squares of its elements */
};

/** What passes have in common, and how rows travel: exact, as they are, whatever the options say. `semiring` and
 *  `flags` say what is made of the rows, to be seen to be the same on both sides; 0 where that is always the same. */
struct gr_wire_pass {
    int32_t                      layer, direction, exact;
    int64_t                      epoch, width;
    graft_dtype                  dtype; /* F32, F64 */
    graft_semiring               semiring;
    uint32_t                     flags;  /* GRAFT_AGGREGATE_... */
    const struct gr_wire_widths *widths; /* for this width, or NULL: all rows alike */
};

/** What passes sent to a rank, and lost on the way. */
struct gr_wire_sent {
    int64_t rows, bytes;    /* without the frames of messages */
    int64_t raw, raw_bytes; /* of these rows, those that went once more as they are, since one fit no code */
    int64_t looked_at;      /* and of these: */
    double  nmse, expected;
};

struct gr_wire {
    const graft_context  *context;
    struct gr_exchange    exchange;
    struct gr_wire_format format;
    int32_t               copies;    /* rows that go may change while they travel, and those that come may be in use */
    struct gr_wire_sent  *sent;      /* [n_ranks] of the pass, by the rank that rows went to */
    int64_t              *at[2][2];  /* [n_ranks + 1] bytes of rows in a message, and as they are; out, in */
    char                 *packed[2]; /* what travels, of rows in a code; out, in */
    int64_t               room[2];   /* bytes of it */
    float                *work;      /* [threads x gr_codec_work()] */
    float                *lost;      /* [rows x 2] nmse and expected of those that were looked at, negative: not */
    int64_t               work_floats, lost_rows;
    struct gr_codec       codec; /* of the pass, and: */
    struct gr_wire_rows   rows[2];

    const struct gr_wire_widths *widths;
};

/** As gr_exchange_init(): not collective, but all ranks come by. gr_wire_fini() is due always. If it `copies`, rows are
 *  written into messages of its own at 32 bits too, and rows that no code fits are an error: they have no other place.
 * \return OK; ERR_NOMEM. */
int32_t gr_wire_init(const graft_context *context, struct gr_comm *comm, int32_t copies, struct gr_wire *wire,
                     graft_error *error);
void    gr_wire_fini(struct gr_wire *wire);

/** Have memory for passes of so many rows on one side and on the other, which go or come. \return OK; ERR_NOMEM. */
int32_t gr_wire_reserve(struct gr_wire *wire, const int64_t rows[2], int64_t width, graft_dtype dtype,
                        graft_error *error);

/** Bytes that it then holds more than without such rows. */
int64_t gr_wire_room(const struct gr_wire *wire, const int64_t rows[2], int64_t width, graft_dtype dtype);

/** Bytes that it holds. */
int64_t gr_wire_bytes(const struct gr_wire *wire);

/** Bytes of a row on its way. */
int64_t gr_wire_row_bytes(const struct gr_wire *wire, const struct gr_wire_pass *pass);

/** Begin: post the receives. What `in` points at stays until the end, and is written by then; by a wire that copies at
 *  the end alone, where wire->rows[1] points then. \return OK; ERR_PEER. */
int32_t gr_wire_receive(struct gr_wire *wire, const struct gr_wire_pass *pass, struct gr_wire_rows in,
                        graft_error *error);

/** What goes is being made in `out`, which stays until the end. */
void gr_wire_out(struct gr_wire *wire, struct gr_wire_rows out);

/** What encodes rows begin to end - 1 of `out`, to be called for every row when it is made and before gr_wire_send(),
 *  with the wire as `arg`, by threads of a team that gr_wire_team() allows. NULL where rows go as they are. */
typedef void (*gr_wire_encoder)(void *arg, int32_t thread, int64_t begin, int64_t end);
gr_wire_encoder gr_wire_encoder_of(const struct gr_wire *wire);

/** The team, of no more threads than there is scratch memory for: a pass may ask for others than option "threads" said
 *  when that was made. Messages are the same for any number. */
struct gr_team gr_wire_team(const struct gr_wire *wire, struct gr_team team);

/** Send what is encoded. \return OK; ERR_PEER; ERR_FORMAT (a row that no code fits, and halo.nonfinite = refuse):
 *  nobody else knows yet. */
int32_t gr_wire_send(struct gr_wire *wire, struct gr_team team, graft_error *error);

/** Wait for all, check and decode it. \return OK; ERR_PEER. */
int32_t gr_wire_end(struct gr_wire *wire, struct gr_team team, graft_error *error);

/** Add what the pass sent, and lost. */
void gr_wire_sent_add(struct gr_wire_sent *sum, const struct gr_wire_sent *sent);

/** Add the seconds of its exchanges, as in struct gr_exchange. */
void gr_wire_seconds(const struct gr_wire *wire, double *wait, double *exchange);

/** Have widths.at[side] for rows so many columns wide. */
void gr_wire_lay_out(const struct gr_wire_widths *widths, const int64_t rows[2], int64_t width);

#endif
