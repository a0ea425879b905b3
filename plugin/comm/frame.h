/* The header of a message, which detects messages that are truncated, changed, outdated or out of place.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/direction.h"
#include "graft_base.h"

enum { GR_FRAME_MAGIC = 0x46417247 }; /* the letters "GrAF" */

enum { GR_FRAME_OF_CALL = 1 << 14 }; /* a flag: `epoch` is the number of a collective call */

/** A header of 64 bytes. gr_comm_frame_seal() sets the fields above the blank line, and the sender those below. */
struct gr_frame {
    uint32_t magic;
    uint32_t abi;
    uint32_t crc; /* CRC32C of the other fields and of the payload */

    uint32_t channel; /* first tag of the object that sends the message */
    int32_t  from;    /* rank that sends the message */
    int32_t  layer;
    int16_t  direction;
    int16_t  bits;     /* bits of an element */
    int16_t  semiring; /* semiring of aggregated rows; see graft_aggregate_args */
    int16_t  flags;
    int64_t  epoch;
    int64_t  rows;
    int64_t  width; /* number of elements in a row */
    uint64_t bytes; /* bytes of the payload */
};

/** What error messages call the number `epoch` of this frame: "epoch" or "call". */
const char *gr_comm_frame_epoch_name(const struct gr_frame *frame);

/** Set magic, abi and crc. `payload` has frame->bytes; NULL: there is none. */
void gr_comm_frame_seal(struct gr_frame *frame, const void *payload);

/** As gr_comm_frame_seal(), for a payload whose CRC32C is known. */
void gr_comm_frame_seal_crc(struct gr_frame *frame, uint32_t payload_crc);

/** Compare all fields but the CRC with the expected ones, before the payload is read.
 *  \return OK; ERR_FORMAT: the message names the rank, the found value and the expected one. */
int32_t gr_comm_frame_check(const struct gr_frame *found, const struct gr_frame *expected, graft_error *error);

/** Check the CRC of a frame that gr_comm_frame_check() passed. \return OK; ERR_FORMAT. */
int32_t gr_comm_frame_check_payload(const struct gr_frame *found, const void *payload, graft_error *error);

/** As gr_comm_frame_check_payload(), for a payload whose CRC32C is known. */
int32_t gr_comm_frame_check_crc(const struct gr_frame *found, uint32_t payload_crc, graft_error *error);
