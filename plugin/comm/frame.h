/* What stands before the bytes of a message, so that one that is cut, changed, late or another one is found out.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GR_COMM_FRAME_H
#define GR_COMM_FRAME_H

#include "graft_base.h"

enum { GR_FRAME_MAGIC = 0x46417247 }; /* "GrAF" */
enum gr_direction { GR_FORWARD, GR_BACKWARD };

/** 64 bytes. The sender fills what stands below the blank line, gr_frame_seal() the rest. */
struct gr_frame {
    uint32_t magic;
    uint32_t abi;
    uint32_t crc; /* CRC32C of the other fields and of the bytes behind */

    uint32_t channel; /* first tag of the object it belongs to */
    int32_t  from;    /* rank */
    int32_t  layer;
    int16_t  direction;
    int16_t  bits;     /* of an element */
    int16_t  semiring; /* of rows that are aggregated, and how; see graft_aggregate_args */
    int16_t  flags;
    int64_t  epoch;
    int64_t  rows;
    int64_t  width; /* elements of a row */
    uint64_t bytes; /* behind the frame */
};

/** `payload` has frame->bytes; NULL if none. */
void gr_frame_seal(struct gr_frame *frame, const void *payload);

/** The same for bytes whose CRC32C is known. */
void gr_frame_seal_crc(struct gr_frame *frame, uint32_t payload_crc);

/** Compare what came with what was expected, all fields but the CRC: before the bytes behind it are looked at.
 *  \return OK; ERR_FORMAT: the sentence names the rank, what was found, and what was expected. */
int32_t gr_frame_check(const struct gr_frame *found, const struct gr_frame *expected, graft_error *error);

/** Check the CRC of a frame that gr_frame_check() passed. \return OK; ERR_FORMAT. */
int32_t gr_frame_check_payload(const struct gr_frame *found, const void *payload, graft_error *error);

/** The same for bytes whose CRC32C is known. */
int32_t gr_frame_check_crc(const struct gr_frame *found, uint32_t payload_crc, graft_error *error);

#endif
