/* Counts the messages of a transport, see harness/counting.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness/counting.h"

#include "comm/calls.h"

#include <string.h>
#include <unistd.h>

/* Each rank is a thread that calls its transport itself, so the counts are thread-local. */
static _Thread_local struct counts *counts;
static _Thread_local int            tired;
static _Thread_local int32_t (*inner_send)(void *, int32_t, int32_t, const void *, uint64_t, graft_request **,
                                           graft_error *);

static void count(int32_t to, const void *data, uint64_t bytes)
{
    struct gr_frame frame = { 0 };

    if (bytes == sizeof frame) memcpy(&frame, data, sizeof frame);
    if (frame.magic == GR_FRAME_MAGIC) {
        counts->odd += counts->last_is_odd;
        counts->last_is_odd = 0;
        counts->item = frame.layer * 2 + frame.direction;
        counts->to = to;
        counts->parts = 0;
        counts->said = (int64_t)frame.bytes;
        counts->messages[counts->item][to]++;
        usleep(1000 * (unsigned)tired);
        tired = 0;
        return;
    }
    counts->parts++;
    counts->last_is_odd = counts->to != to || counts->said != (int64_t)bytes;
    (counts->parts == 1 ? counts->bytes : counts->spare)[counts->item][to] += (int64_t)bytes;
}

static int32_t counting_send(void *self, int32_t to, int32_t tag, const void *data, uint64_t bytes,
                             graft_request **request, graft_error *error)
{
    /* Messages with rows use the first tag of the channel of their plan or halo; other tags are control messages. */
    if (counts != NULL && tag >= GR_TAG_FIRST && (tag - GR_TAG_FIRST) % GR_CHANNEL_TAGS == 0) count(to, data, bytes);
    return inner_send(self, to, tag, data, bytes, request, error);
}

void counting_begin(struct counts *c)
{
    counts = c;
}

void counting_tire(int milliseconds)
{
    tired = milliseconds;
}

void counting_wrap(graft_transport *transport)
{
    inner_send = transport->send;
    transport->send = counting_send;
}
