/* Receives arbitrary bytes from other ranks, as frames and payloads of collective calls and as notices. A frame may be
 * accepted only if all of it is as expected. A collective call returns values, or an error with a message, and frees
 * all memory.
 *
 * The first byte of an input selects the test: with bit 0, the two functions that check a frame; otherwise collective
 * calls of 2 to 4 ranks, of which this process is one. The other ranks send bytes of the input. If a byte of the input
 * says so, they send the frame and payload that this rank sent last, with their own rank as sender, so that the calls
 * continue.
 * SPDX-License-Identifier: Apache-2.0 */
#include "target.h"

#include "base/crc.h"
#include "comm/collective.h"
#include "comm/frame.h"

static struct memory memory = MEMORY_INIT;
static graft_context context;

void target_begin(void)
{
    context.host.self = &memory;
    context.host.allocate = data_allocate;
    context.host.deallocate = data_deallocate;
}

void target_end(void)
{
    ok(memory.live_bytes == 0, "no memory is left");
}

/* -- a frame ----------------------------------------------------------------------------------------------------- */

static const char *frame_fault(struct supply *s)
{
    struct gr_frame found, expected;
    graft_error     error = GRAFT_INIT(graft_error);
    const uint8_t   change = supply_byte(s);
    size_t          rest;
    uint32_t        crc;
    int             same;

    supply_bytes(s, &found, sizeof found);
    expected = found;
    if (change & 1) supply_bytes(s, (char *)&expected + change % sizeof expected, 1);
    if (change & 2) found.magic = GR_FRAME_MAGIC;
    if (change & 2) found.abi = GRAFT_ABI_VERSION;
    if (expected.direction != GR_FORWARD) expected.direction = GR_BACKWARD;
    rest = (size_t)(s->end - s->at);
    same = found.magic == GR_FRAME_MAGIC && found.abi == GRAFT_ABI_VERSION &&
           memcmp(&found.channel, &expected.channel, sizeof found - offsetof(struct gr_frame, channel)) == 0;
    if ((gr_comm_frame_check(&found, &expected, &error) == GRAFT_OK) != same)
        return "a wrong frame passes, or a right one not";
    if (!same && error.message[0] == '\0') return "no sentence";
    if (found.bytes > rest) found.bytes = rest;
    if ((change & 4) && found.rows >= 0 && found.width >= 0) gr_comm_frame_seal(&found, s->at);
    crc = found.crc;
    found.crc = 0;
    same = crc == gr_crc_plain(gr_crc_plain(0, &found, sizeof found), s->at, found.bytes);
    found.crc = crc;
    return (gr_comm_frame_check_payload(&found, s->at, &error) == GRAFT_OK) == same ? NULL
                                                                                    : "a wrong CRC passes, or not";
}

/* -- a transport with the other ranks ------------------------------------------------------------------------------ */

enum { PENDING = 256, RANKS = 4, PAYLOAD = 1024 };

enum request_state { FREE, SENT, AWAITED, ARRIVED };

struct graft_request {
    enum request_state state;
    int                peer, tag;
    void              *data;
    uint64_t           bytes;
};

struct others {
    struct supply       *s;
    struct graft_request request[PENDING];
    struct gr_frame      last; /* the frame that this rank has sent last */
    uint8_t              payload[PAYLOAD];
};

static int32_t begin_request(struct others *o, struct graft_request request, graft_request **made, graft_error *error)
{
    for (int i = 0; i < PENDING; i++) {
        if (o->request[i].state != FREE) continue;
        o->request[i] = request;
        *made = &o->request[i];
        return GRAFT_OK;
    }
    error->code = GRAFT_ERR_NOMEM;
    snprintf(error->message, sizeof error->message, "no more requests");
    return GRAFT_ERR_NOMEM;
}

static int32_t others_send(void *self, int32_t to, int32_t tag, const void *data, uint64_t bytes,
                           graft_request **request, graft_error *error)
{
    struct others *o = self;

    if (bytes == sizeof o->last && tag != GR_TAG_CONTROL) memcpy(&o->last, data, sizeof o->last);
    else memcpy(o->payload, data, bytes < PAYLOAD ? bytes : PAYLOAD);
    return begin_request(o, (struct graft_request){ SENT, to, tag, NULL, bytes }, request, error);
}

static int32_t others_receive(void *self, int32_t from, int32_t tag, void *data, uint64_t bytes,
                              graft_request **request, graft_error *error)
{
    return begin_request(self, (struct graft_request){ AWAITED, from, tag, data, bytes }, request, error);
}

/* The receive for the payload that follows a frame. It is the next receive from the same rank. */
static struct graft_request *payload_of(struct others *o, const struct graft_request *frame)
{
    for (int i = 0; i < PENDING; i++) {
        struct graft_request *r = &o->request[i];

        if (r != frame && r->state == AWAITED && r->peer == frame->peer && r->tag == frame->tag) return r;
    }
    return NULL;
}

static void deliver_frame(struct others *o, struct graft_request *r, uint8_t how)
{
    struct gr_frame       frame = o->last;
    struct graft_request *payload = payload_of(o, r);

    frame.from = r->peer;
    frame.bytes = payload != NULL ? payload->bytes : 0;
    frame.width = (int64_t)frame.bytes;
    if (frame.rows < 0) frame.rows = 0; /* the last message may not have been a frame */
    if (payload != NULL) {
        if (how & 2) memcpy(payload->data, o->payload, payload->bytes < PAYLOAD ? payload->bytes : PAYLOAD);
        else supply_bytes(o->s, payload->data, payload->bytes);
        payload->state = ARRIVED;
    }
    gr_comm_frame_seal(&frame, payload != NULL ? payload->data : NULL);
    if (how & 4) ((uint8_t *)&frame)[supply_byte(o->s) % sizeof frame] ^= supply_byte(o->s);
    memcpy(r->data, &frame, sizeof frame);
}

static int32_t others_test(void *self, graft_request *r, int32_t *done, graft_error *error)
{
    struct others *o = self;
    const int      arrives = r->state == AWAITED;
    const uint8_t  how = arrives ? supply_byte(o->s) : 0;

    if (how == 255 || (arrives && o->s->at >= o->s->end)) {
        error->code = GRAFT_ERR_FORMAT;
        snprintf(error->message, sizeof error->message, "the message has another length");
        return GRAFT_ERR_FORMAT;
    }
    if (how == 254 || (arrives && r->tag == GR_TAG_CONTROL && how % 8 != 0)) return GRAFT_OK; /* notices are rare */
    if (arrives && r->bytes == sizeof o->last && (how & 1)) deliver_frame(o, r, how);
    else if (arrives) supply_bytes(o->s, r->data, r->bytes);
    r->state = FREE;
    *done = 1;
    return GRAFT_OK;
}

static int32_t others_cancel(void *self, graft_request *r)
{
    (void)self;
    r->state = FREE;
    return 1;
}

static void others_close(void *self)
{
    (void)self;
}

static int32_t call_of_group(struct gr_comm *comm, uint8_t which, graft_error *error)
{
    static const int64_t bytes[RANKS] = { 8, 0, 16, 8 };
    int64_t              values[16] = { 1, 2, 3 }, others[16 * RANKS];
    const int32_t        root = which / 16 % comm->n_ranks;

    switch (which % 8) {
    case 0: return gr_comm_agree(comm, which & 64 ? gr_fail(error, GRAFT_ERR_IO, "a disk") : 0, error);
    case 1: return gr_comm_sum_f64(comm, (double *)values, which / 16, error);
    case 2: return gr_comm_sum_i64(comm, values, which / 16, error);
    case 3: return gr_comm_max(comm, values, which / 16, error);
    case 4: return gr_comm_gather(comm, which & 128 ? -1 : root, values, bytes, others, error);
    case 5: return gr_comm_broadcast(comm, root, values, which / 2, error);
    case 6: return gr_comm_allgather(comm, values, which / 2, others, error);
    default: return gr_comm_alltoall(comm, values, which / 16 * 2, others, error);
    }
}

static const char *group_fault(struct supply *s, int32_t n)
{
    static struct others  o;
    const graft_transport t = { .size = sizeof t,
                                .rank = supply_byte(s) % n,
                                .n_ranks = n,
                                .tag_max = 1023,
                                .name = "others",
                                .self = &o,
                                .send = others_send,
                                .receive = others_receive,
                                .test = others_test,
                                .cancel = others_cancel,
                                .close = others_close };
    graft_error           error = GRAFT_INIT(graft_error);
    struct gr_comm       *comm = NULL;
    int32_t               rc;

    o = (struct others){ .s = s };
    rc = gr_comm_create(&context, &t, 0.0005, &comm, &error);
    for (int i = 0; i < 8 && rc == GRAFT_OK && s->at < s->end; i++) {
        error = (graft_error)GRAFT_INIT(graft_error);
        rc = call_of_group(comm, supply_byte(s), &error);
    }
    gr_comm_destroy(comm);
    if (rc < 0 && error.message[0] == '\0') return "a failure without a sentence";
    for (int i = 0; i < PENDING; i++)
        if (o.request[i].state != FREE) return "a request is left";
    return context.comms != NULL ? "a comm is left" : NULL;
}

const char *target_fault(const uint8_t *bytes, size_t count)
{
    struct supply s = { bytes, bytes + count };
    const int64_t live = memory.live_bytes;
    const uint8_t what = supply_byte(&s);
    const char   *fault = what & 1 ? frame_fault(&s) : group_fault(&s, 2 + what / 2 % 3);

    return fault == NULL && memory.live_bytes != live ? "memory leaked" : fault;
}
