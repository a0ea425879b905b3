/* Writes and checks the headers of messages.
 * SPDX-License-Identifier: Apache-2.0 */
#include "comm/frame.h"

#include "base/assert.h"
#include "base/crc.h"
#include "base/error.h"

_Static_assert(sizeof(struct gr_frame) == 64, "a frame has no padding: all of it is in the CRC");

static uint32_t frame_crc(const struct gr_frame *frame, uint32_t payload_crc)
{
    struct gr_frame without = *frame;

    without.crc = 0;
    return gr_crc_join(gr_crc(0, &without, sizeof without), payload_crc, frame->bytes);
}

static uint32_t payload_crc_of(const struct gr_frame *frame, const void *payload)
{
    return frame->bytes > 0 ? gr_crc(0, payload, frame->bytes) : 0;
}

void gr_comm_frame_seal_crc(struct gr_frame *frame, uint32_t payload_crc)
{
    GR_ASSERT(frame->rows >= 0 && frame->width >= 0);
    frame->magic = GR_FRAME_MAGIC;
    frame->abi = GRAFT_ABI_VERSION;
    frame->crc = frame_crc(frame, payload_crc);
}

void gr_comm_frame_seal(struct gr_frame *frame, const void *payload)
{
    gr_comm_frame_seal_crc(frame, payload_crc_of(frame, payload));
}

const char *gr_comm_frame_epoch_name(const struct gr_frame *frame)
{
    return frame->flags & GR_FRAME_OF_CALL ? "call" : "epoch";
}

static int32_t report_field(const struct gr_frame *expected, const char *what, int64_t found, int64_t wanted,
                            graft_error *error)
{
    return gr_fail(error, GRAFT_ERR_FORMAT,
                   "the message from rank %d has %s %lld, expected %lld (%s %lld, layer %d, %s)", expected->from, what,
                   (long long)found, (long long)wanted, gr_comm_frame_epoch_name(expected), (long long)expected->epoch,
                   expected->layer, expected->direction == GR_FORWARD ? "forward" : "backward");
}

int32_t gr_comm_frame_check(const struct gr_frame *f, const struct gr_frame *e, graft_error *error)
{
    if (f->magic != GR_FRAME_MAGIC)
        return gr_fail(error, GRAFT_ERR_FORMAT, "the message from rank %d begins with 0x%08x, expected 0x%08x", e->from,
                       f->magic, (unsigned)GR_FRAME_MAGIC);
    if (f->abi != GRAFT_ABI_VERSION) return report_field(e, "ABI version", f->abi, GRAFT_ABI_VERSION, error);
    if (f->channel != e->channel) return report_field(e, "channel", f->channel, e->channel, error);
    if (f->from != e->from) return report_field(e, "sender", f->from, e->from, error);
    if (f->epoch != e->epoch) return report_field(e, gr_comm_frame_epoch_name(e), f->epoch, e->epoch, error);
    if (f->layer != e->layer) return report_field(e, "layer", f->layer, e->layer, error);
    if (f->direction != e->direction) return report_field(e, "direction", f->direction, e->direction, error);
    if (f->semiring != e->semiring) return report_field(e, "semiring", f->semiring, e->semiring, error);
    if (f->flags != e->flags) return report_field(e, "flags", f->flags, e->flags, error);
    if (f->rows != e->rows) return report_field(e, "rows", f->rows, e->rows, error);
    if (f->width != e->width) return report_field(e, "width", f->width, e->width, error);
    if (f->bits != e->bits) return report_field(e, "bits", f->bits, e->bits, error);
    if (f->bytes != e->bytes) return report_field(e, "bytes", (int64_t)f->bytes, (int64_t)e->bytes, error);
    return GRAFT_OK;
}

int32_t gr_comm_frame_check_payload(const struct gr_frame *found, const void *payload, graft_error *error)
{
    return gr_comm_frame_check_crc(found, payload_crc_of(found, payload), error);
}

int32_t gr_comm_frame_check_crc(const struct gr_frame *found, uint32_t payload_crc, graft_error *error)
{
    const uint32_t crc = frame_crc(found, payload_crc);

    if (crc == found->crc) return GRAFT_OK;
    return gr_fail(error, GRAFT_ERR_FORMAT,
                   "the message from rank %d was changed in transit: its CRC32C is 0x%08x, expected 0x%08x "
                   "(%s %lld, layer %d, %llu bytes)",
                   found->from, crc, found->crc, gr_comm_frame_epoch_name(found), (long long)found->epoch, found->layer,
                   (unsigned long long)found->bytes);
}
