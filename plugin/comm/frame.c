/* Frames: filling and checking.
 * SPDX-License-Identifier: Apache-2.0 */
#include "comm/frame.h"

#include "base/crc.h"
#include "base/error.h"

_Static_assert(sizeof(struct gr_frame) == 64, "a frame has no padding: all of it is in the CRC");

static uint32_t crc_of(const struct gr_frame *frame, uint32_t payload_crc)
{
    struct gr_frame without = *frame;

    without.crc = 0;
    return gr_crc_join(gr_crc(0, &without, sizeof without), payload_crc, frame->bytes);
}

static uint32_t crc_behind(const struct gr_frame *frame, const void *payload)
{
    return frame->bytes > 0 ? gr_crc(0, payload, frame->bytes) : 0;
}

void gr_frame_seal_crc(struct gr_frame *frame, uint32_t payload_crc)
{
    frame->magic = GR_FRAME_MAGIC;
    frame->abi = GRAFT_ABI_VERSION;
    frame->crc = crc_of(frame, payload_crc);
}

void gr_frame_seal(struct gr_frame *frame, const void *payload)
{
    gr_frame_seal_crc(frame, crc_behind(frame, payload));
}

static int32_t differs(const struct gr_frame *expected, const char *what, int64_t found, int64_t wanted,
                       graft_error *error)
{
    return gr_fail(error, GRAFT_ERR_FORMAT,
                   "the message from rank %d says %s %lld, expected %lld (epoch %lld, layer %d, %s)", expected->from,
                   what, (long long)found, (long long)wanted, (long long)expected->epoch, expected->layer,
                   expected->direction == GR_FORWARD ? "forward" : "backward");
}

int32_t gr_frame_check(const struct gr_frame *f, const struct gr_frame *e, graft_error *error)
{
    if (f->magic != GR_FRAME_MAGIC)
        return gr_fail(error, GRAFT_ERR_FORMAT, "the message from rank %d begins with 0x%08x, expected 0x%08x", e->from,
                       f->magic, (unsigned)GR_FRAME_MAGIC);
    if (f->abi != GRAFT_ABI_VERSION) return differs(e, "version of the contract", f->abi, GRAFT_ABI_VERSION, error);
    if (f->channel != e->channel) return differs(e, "channel", f->channel, e->channel, error);
    if (f->from != e->from) return differs(e, "sender", f->from, e->from, error);
    if (f->epoch != e->epoch) return differs(e, "epoch", f->epoch, e->epoch, error);
    if (f->layer != e->layer) return differs(e, "layer", f->layer, e->layer, error);
    if (f->direction != e->direction) return differs(e, "direction", f->direction, e->direction, error);
    if (f->semiring != e->semiring) return differs(e, "semiring", f->semiring, e->semiring, error);
    if (f->flags != e->flags) return differs(e, "flags", f->flags, e->flags, error);
    if (f->rows != e->rows) return differs(e, "rows", f->rows, e->rows, error);
    if (f->width != e->width) return differs(e, "width", f->width, e->width, error);
    if (f->bits != e->bits) return differs(e, "bits", f->bits, e->bits, error);
    if (f->bytes != e->bytes) return differs(e, "bytes", (int64_t)f->bytes, (int64_t)e->bytes, error);
    return GRAFT_OK;
}

int32_t gr_frame_check_payload(const struct gr_frame *found, const void *payload, graft_error *error)
{
    return gr_frame_check_crc(found, crc_behind(found, payload), error);
}

int32_t gr_frame_check_crc(const struct gr_frame *found, uint32_t payload_crc, graft_error *error)
{
    const uint32_t crc = crc_of(found, payload_crc);

    if (crc == found->crc) return GRAFT_OK;
    return gr_fail(error, GRAFT_ERR_FORMAT,
                   "the message from rank %d was changed on its way: its CRC32C is 0x%08x, expected 0x%08x "
                   "(epoch %lld, layer %d, %llu bytes)",
                   found->from, crc, found->crc, (long long)found->epoch, found->layer,
                   (unsigned long long)found->bytes);
}
