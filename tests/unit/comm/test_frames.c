/* Checks messages: CRC32C against its definition bit by bit, frames, and rows whose checksums are made and checked in
 * pieces while other messages travel. A message with a wrong byte must be refused.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "base/crc.h"
#include "halo/exchange.h"
#include "harness/faulty.h"
#include "harness/lcg.h"
#include "harness/ranks.h"
#include "harness/tap.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BUFFER = 200000 };

/* CRC32C bit by bit, from its definition. */
static uint32_t crc_by_bits(const unsigned char *data, uint64_t bytes)
{
    uint32_t crc = 0xFFFFFFFFu;

    for (uint64_t i = 0; i < bytes; i++) {
        crc ^= data[i];
        for (int bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >> 1) ^ 0x82F63B78u : crc >> 1;
    }
    return ~crc;
}

static void test_crc(void)
{
    static unsigned char data[BUFFER];
    static const int     lengths[] = { 0, 1, 7, 8, 9, 64, 511, 512, 1000, 24575, 24576, 24583, 99999, BUFFER };
    uint32_t             state = 1, wrong = 0;

    for (int i = 0; i < BUFFER; i++) data[i] = (unsigned char)lcg_next(&state);
    ok(gr_crc(0, "123456789", 9) == 0xE3069283u && gr_crc_plain(0, "123456789", 9) == 0xE3069283u,
       "the CRC32C of the standard text has its check value");
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        const int      length = lengths[i], cut = length / 3;
        const uint32_t crc = crc_by_bits(data, (uint64_t)length);

        wrong += gr_crc(0, data, (uint64_t)length) != crc;
        wrong += gr_crc_plain(0, data, (uint64_t)length) != crc;
        wrong += gr_crc(gr_crc(0, data, (uint64_t)cut), data + cut, (uint64_t)(length - cut)) != crc;
        wrong += gr_crc_join(gr_crc(0, data, (uint64_t)cut), gr_crc(0, data + cut, (uint64_t)(length - cut)),
                             (uint64_t)(length - cut)) != crc;
    }
    ok(wrong == 0, "CRCs of data of any length, in pieces and joined, equal the definition (%u wrong)", wrong);
    for (int from = 0; from < 16; from++) {
        for (int length = 0; length < 600; length++)
            wrong += gr_crc(7, data + from, (uint64_t)length) != gr_crc_plain(7, data + from, (uint64_t)length);
        for (int length = 24550; length < 24650; length++)
            wrong += gr_crc(7, data + from, (uint64_t)length) != gr_crc_plain(7, data + from, (uint64_t)length);
    }
    ok(wrong == 0, "CRCs from any address are equal with and without the CRC instruction (%u wrong)", wrong);
}

static void test_frames(void)
{
    unsigned char         payload[48] = "some rows", bytes[sizeof(struct gr_frame)];
    const struct gr_frame sent = { .channel = 24,
                                   .from = 3,
                                   .layer = 1,
                                   .direction = GR_BACKWARD,
                                   .bits = 8,
                                   .epoch = 17,
                                   .rows = 4,
                                   .width = 12,
                                   .bytes = sizeof payload };
    struct gr_frame       frame = sent, late = sent;
    graft_error           error = GRAFT_INIT(graft_error);
    int                   passed = 0;

    gr_comm_frame_seal(&frame, payload);
    ok(gr_comm_frame_check(&frame, &sent, &error) == GRAFT_OK &&
           gr_comm_frame_check_payload(&frame, payload, &error) == GRAFT_OK,
       "a correct frame is accepted");
    for (size_t bit = 0; bit < 8 * sizeof frame; bit++) {
        struct gr_frame flipped;

        memcpy(bytes, &frame, sizeof frame);
        bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
        memcpy(&flipped, bytes, sizeof frame);
        passed += gr_comm_frame_check(&flipped, &sent, &error) == GRAFT_OK &&
                  gr_comm_frame_check_payload(&flipped, payload, &error) == GRAFT_OK;
    }
    ok(passed == 0, "a frame with any flipped bit is refused (%d are accepted)", passed);
    for (size_t bit = 0; bit < 8 * sizeof payload; bit++) {
        payload[bit / 8] ^= (unsigned char)(1 << bit % 8);
        passed += gr_comm_frame_check_payload(&frame, payload, &error) == GRAFT_OK;
        payload[bit / 8] ^= (unsigned char)(1 << bit % 8);
    }
    ok(passed == 0 && strstr(error.message, "rank 3") != NULL && strstr(error.message, "CRC32C") != NULL,
       "a payload with any flipped bit is refused: %s", error.message);
    late.epoch = 16;
    gr_comm_frame_seal(&late, payload);
    ok(gr_comm_frame_check(&late, &sent, &error) == GRAFT_ERR_FORMAT && strstr(error.message, "rank 3") != NULL &&
           strstr(error.message, "epoch 16, expected 17") != NULL,
       "a frame of another epoch is refused: %s", error.message);
    late = sent;
    late.bytes = sizeof payload - 8;
    gr_comm_frame_seal(&late, payload);
    ok(gr_comm_frame_check(&late, &sent, &error) == GRAFT_ERR_FORMAT && strstr(error.message, "bytes 40, expected 48"),
       "a frame with fewer bytes is refused: %s", error.message);
}

#define TRY(expression)                                                                                                \
    do {                                                                                                               \
        rc = (expression);                                                                                             \
        if (rc < 0) return rc;                                                                                         \
    } while (0)

/* Send rows of some megabytes to each other rank, whose checksums several threads make and check in pieces. */
static int32_t large_rows(struct rank *r)
{
    enum { WIDTH = 333, EACH = 2500 };
    const int32_t                 n = r->n_ranks;
    int64_t                       start[RANKS_MOST + 1] = { 0 }, place;
    struct gr_messages            m = { 0 };
    const struct gr_framed_side  *in = &m.framed.side[GR_RECEIVE];
    const struct gr_exchange_args args = { .layer = 1, .epoch = 9, .width = WIDTH, .dtype = GRAFT_F32 };
    double                        times[3 * GR_TIMES] = { 0 };
    const struct gr_team          team = { .threads = *(int *)r->all->arg, .times = times };
    float                        *rows[2];
    int32_t                       rc;

    for (int32_t q = 0; q < n; q++) start[q + 1] = start[q] + (q == r->rank ? 0 : EACH + q + r->rank);
    for (int i = 0; i < 2; i++) rows[i] = calloc((size_t)(start[n] * WIDTH), sizeof(float));
    for (place = 0; place < start[n] * WIDTH; place++) rows[0][place] = (float)(r->rank * 1000000 + place % 4099);
    TRY(gr_comm_create(r->context, &r->transport, r->all->timeout, &r->comm, &r->error));
    rc = gr_halo_messages_init(r->context, r->comm, 0, &m, &r->error);
    if (rc == GRAFT_OK) rc = gr_halo_messages_post(&m, &args, NULL, (struct gr_rank_rows){ start, rows[1] }, &r->error);
    if (rc == GRAFT_OK) gr_halo_messages_set_rows(&m, (struct gr_rank_rows){ start, rows[0] });
    if (rc == GRAFT_OK) rc = gr_halo_messages_send(&m, team, &r->error);
    if (rc == GRAFT_OK && !(times[GR_TIME_END] > 0 && times[GR_TIME_END] <= m.framed.begun.send_began_at &&
                            m.framed.begun.send_began_at <= m.framed.begun.sent_at))
        rank_blame(r, "the exchange began %g s before the rows were sealed",
                   times[GR_TIME_END] - m.framed.begun.send_began_at);
    if (rc == GRAFT_OK) rc = gr_comm_framed_wait(&m.framed, team, &r->error);
    for (int32_t i = 0; i < in->n && rc == GRAFT_OK; i++) {
        const float *from = rows[1] + start[in->peer[i]] * WIDTH;

        rc = gr_comm_frame_check_payload(&in->frame[i], from, &r->error); /* check the whole message at once */
        if (from[0] < (float)(in->peer[i] * 1000000) || from[0] >= (float)(in->peer[i] * 1000000 + 4099))
            rank_blame(r, "rows from rank %d begin with %g", in->peer[i], (double)from[0]);
    }
    gr_halo_messages_fini(&m);
    for (int i = 0; i < 2; i++) free(rows[i]);
    return rc;
}

static void test_large_rows(int threads)
{
    static struct ranks ranks;
    const char         *fault;

    ranks_init(&ranks, 4, 20, large_rows, &threads);
    ranks_run(&ranks);
    fault = ranks_fini_well(&ranks);
    ok(fault == NULL, "rows of several megabytes are sealed by %d threads%s%s", threads, fault != NULL ? ": " : "",
       fault != NULL ? fault : "");
}

/* Each rank sends a row to each other one, over a transport that delivers late. */
enum { HOLD = 40 };

struct few {
    struct gr_messages m;
    int64_t            start[RANKS_MOST + 1], at[RANKS_MOST + 1];
    char               out[RANKS_MOST * 8], in[RANKS_MOST * 8];
};

static int32_t few_begin(struct rank *r, struct few *f)
{
    const struct gr_exchange_args args = { .width = 2, .dtype = GRAFT_F32 };
    int32_t                       rc;

    TRY(gr_halo_messages_post(&f->m, &args, NULL, (struct gr_rank_rows){ f->start, f->in }, &r->error));
    gr_halo_messages_set_rows(&f->m, (struct gr_rank_rows){ f->start, f->out });
    TRY(gr_halo_messages_send(&f->m, (struct gr_team){ .threads = 1 }, &r->error));
    return rc;
}

static int32_t few_end(struct rank *r, struct few *f)
{
    int32_t rc;

    TRY(gr_comm_framed_wait(&f->m.framed, (struct gr_team){ .threads = 1 }, &r->error));
    for (int32_t q = 0; q < r->n_ranks; q++)
        if (q != r->rank && f->in[f->at[q] + 3] != q + 1) rank_blame(r, "the row from rank %d is wrong", q);
    return rc;
}

/* All messages arrive during other work, so that no time is spent waiting. Not every poll looks for notices of
 * cancellation. */
static int32_t poll_rows(struct rank *r, struct few *f)
{
    const struct faulty *transport = r->transport.self;
    const int64_t        listens = transport->listens;
    const double         begin = gr_seconds();
    int64_t              polls = 0;
    int32_t              rc;

    TRY(few_begin(r, f));
    for (; !f->m.framed.begun.arrived && gr_seconds() - begin < 10; polls++) gr_comm_framed_poll(&f->m.framed);
    if (!f->m.framed.begun.arrived || polls < HOLD)
        rank_blame(r, "messages did not arrive, in %lld polls", (long long)polls);
    if ((double)(transport->listens - listens) > (r->n_ranks - 1) * ((gr_seconds() - begin) * 1000 + 2))
        rank_blame(r, "listened %lld times in %g s", (long long)(transport->listens - listens), gr_seconds() - begin);
    TRY(few_end(r, f));
    if (f->m.framed.wait_seconds != 0 || !(f->m.framed.exchange_seconds > 0))
        rank_blame(r, "waited for what was there");
    return rc;
}

/* The last rank is late, and all others wait for it. */
static int32_t await_rows(struct rank *r, struct few *f)
{
    const int late = r->rank == r->n_ranks - 1;
    int32_t   rc;

    TRY(gr_comm_barrier(r->comm, &r->error));
    if (late) usleep(300000);
    TRY(few_begin(r, f));
    TRY(few_end(r, f));
    if (!late && !(f->m.framed.wait_seconds > 0.05))
        rank_blame(r, "waited for 0.3 s, of which %g are counted", f->m.framed.wait_seconds);
    if (f->m.framed.wait_seconds > f->m.framed.exchange_seconds)
        rank_blame(r, "waited longer than there was an exchange");
    return rc;
}

/* The first rank makes and sends its messages one by one, after those of the others have arrived. Its exchange must not
 * end before it has sent all. */
static int32_t send_in_turn(struct rank *r, struct few *f)
{
    const struct gr_exchange_args args = { .width = 2, .dtype = GRAFT_F32 };
    const double                  begin = gr_seconds();
    const struct gr_team          team = { .threads = 1 };
    int32_t                       rc;

    if (r->rank > 0) {
        TRY(few_begin(r, f));
        return few_end(r, f);
    }
    memset(f->out, 0, sizeof f->out);
    TRY(gr_halo_messages_post(&f->m, &args, NULL, (struct gr_rank_rows){ f->start, f->in }, &r->error));
    gr_halo_messages_set_rows(&f->m, (struct gr_rank_rows){ f->start, f->out });
    while (!f->m.framed.begun.arrived && gr_seconds() - begin < 0.3) gr_comm_framed_poll(&f->m.framed);
    for (int32_t q = 1; q < r->n_ranks; q++) {
        memset(f->out + f->at[q], 1, 8);
        TRY(gr_halo_messages_send_until(&f->m, q, team, &r->error));
        gr_comm_framed_poll(&f->m.framed);
        if (f->m.framed.begun.arrived || f->m.framed.begun.n_sent != q)
            rank_blame(r, "%d messages are sent, expected %d", f->m.framed.begun.n_sent, q);
    }
    TRY(gr_halo_messages_send(&f->m, team, &r->error));
    return few_end(r, f);
}

static int32_t late_rows(struct rank *r)
{
    struct few *f = calloc(1, sizeof *f);
    int32_t     rc = gr_comm_create(r->context, &r->transport, r->all->timeout, &r->comm, &r->error);

    for (int32_t q = 0; q < r->n_ranks; q++) {
        f->start[q + 1] = f->start[q] + (q != r->rank);
        f->at[q + 1] = 8 * f->start[q + 1];
    }
    memset(f->out, r->rank + 1, sizeof f->out);
    if (rc == GRAFT_OK) rc = gr_halo_messages_init(r->context, r->comm, 0, &f->m, &r->error);
    if (rc == GRAFT_OK) rc = poll_rows(r, f);
    if (rc == GRAFT_OK) rc = await_rows(r, f);
    if (rc == GRAFT_OK) rc = gr_comm_barrier(r->comm, &r->error);
    if (rc == GRAFT_OK) rc = send_in_turn(r, f);
    if (rc == GRAFT_OK) rc = gr_comm_barrier(r->comm, &r->error);
    gr_halo_messages_fini(&f->m);
    free(f);
    return rc;
}

static void test_late_rows(void)
{
    static struct ranks  ranks;
    static struct faulty faulty[3];
    const char          *fault;

    ranks_init(&ranks, 3, 20, late_rows, NULL);
    for (int32_t i = 0; i < 3; i++) {
        faulty[i] = (struct faulty){ .inner = ranks.at[i].transport, .hold = HOLD };
        ranks.at[i].transport = faulty_wrap(&faulty[i]);
    }
    ranks_run(&ranks);
    fault = ranks_fini_well(&ranks);
    ok(fault == NULL, "rows that arrive late are polled for, and end() waits for them%s%s", fault != NULL ? ": " : "",
       fault != NULL ? fault : "");
}

int main(void)
{
    alarm(100);
    test_crc();
    test_frames();
    test_large_rows(1);
    test_large_rows(3);
    test_late_rows();
    return done();
}
