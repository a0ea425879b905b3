/* Rows of numbers to and from other ranks while this one does something else: receives are posted, rows sent, polled
 * for, waited for and checked. What fails in here ends the comm.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GR_HALO_EXCHANGE_H
#define GR_HALO_EXCHANGE_H

#include "base/team.h"
#include "comm/comm.h"
#include "comm/frame.h"

/** Rows by the rank that they go to or come from: those of rank q are start[q] to start[q + 1] - 1, and its bytes at[q]
 *  to at[q + 1] - 1 behind `rows`. */
struct gr_exchange_side {
    const int64_t *start, *at; /* [n_ranks + 1] */
    char          *rows;
};

struct gr_exchange {
    struct gr_comm    *comm;
    int32_t            channel;
    struct gr_frame   *frame_in, *frame_out; /* [n_ranks] by message */
    int32_t           *from, *to;            /* [n_ranks] the rank of each message */
    _Atomic uint32_t  *crc;                  /* [n_ranks] of its rows */
    uint8_t           *plain_in, *plain_out; /* [n_ranks] by message: its rows go as they are; see `spare` */
    struct gr_request *requests;             /* [6 * n_ranks] see request_of() */
    double             wait_seconds;         /* in which this rank did nothing else */
    double             exchange_seconds;     /* between sends and the arrival of all */

    /* Of the exchange that has begun: */
    struct gr_frame         head; /* what its frames have in common */
    struct gr_exchange_side in, out;
    int32_t                 spare_bits; /* of an element, of rows that no code fits; 0: there is a code for all */
    struct gr_exchange_side spare_in, spare_out; /* where these come to, and go from */
    int32_t                 n_in, n_out;         /* messages */
    int                     checked;             /* frames have come and are right */
    int                     arrived;             /* all has come, and gone */
    int32_t                 rc;                  /* of what failed meanwhile */
    graft_error             error;
    double                  began;  /* when the first message was to be sent; and when: */
    double                  packed; /* all that go were sent */
    double                  came;   /* the end had all that come */
};

/** Not collective, but all ranks come by, whatever failed on one of them just before: it takes the next channel of the
 *  comm, also where it fails. What fails leaves it to be freed with gr_exchange_fini(). \return OK; ERR_NOMEM. */
int32_t gr_exchange_init(const graft_context *context, struct gr_comm *comm, struct gr_exchange *x, graft_error *error);
/** Of zeros it does nothing. */
void    gr_exchange_fini(const graft_context *context, struct gr_exchange *x);

/** Bytes that it holds. */
int64_t gr_exchange_bytes(int32_t n_ranks);

/** Begin: post the receives. `head` has epoch, layer, direction, bits and width; `in` stays until the end.
 *  \return OK; ERR_PEER. */
int32_t gr_exchange_receive(struct gr_exchange *x, const struct gr_frame *head, struct gr_exchange_side in,
                            graft_error *error);

/** After it: messages may have a third part, rows of `bits` for each element, where no code fits the rows of the second
 *  one: x->plain_out[i], set before gr_exchange_send(), and plain_in[i] at the end, say of which messages. */
void gr_exchange_spare(struct gr_exchange *x, int32_t bits, struct gr_exchange_side in, struct gr_exchange_side out);

/** What goes: x->to[0] to to[n_out - 1] are the ranks of the messages. */
void gr_exchange_out(struct gr_exchange *x, struct gr_exchange_side out);

/** Seal and send it. \return OK; ERR_PEER. */
int32_t gr_exchange_send(struct gr_exchange *x, struct gr_team team, graft_error *error);

/** Let messages move; for gr_team and graft_mxm_args. It keeps what fails for the end. */
void gr_exchange_poll(void *exchange);

/** Wait for all, and check what came. \return OK; ERR_PEER. */
int32_t gr_exchange_end(struct gr_exchange *x, struct gr_team team, graft_error *error);

/** Wait for what is on its way, to no end: before its memory goes. What fails in it ends the comm. */
void gr_exchange_drain(struct gr_exchange *x);

#endif
