/* How rows are written in messages, as the options say.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GR_HALO_FORMAT_H
#define GR_HALO_FORMAT_H

#include "base/direction.h"
#include "codec/codec.h"
#include "comm/collective.h"

/** Of which rows the quantization error is measured. */
enum gr_measuring { GR_MEASURE_NONE, GR_MEASURE_SAMPLE, GR_MEASURE_ALL };

struct gr_wire_format {
    int32_t           bits[GR_DIRECTIONS];     /* the most of any row, where widths are adaptive */
    int32_t           adaptive[GR_DIRECTIONS]; /* each row has a width of its own, see gr_row_widths */
    int32_t           code[GR_DIRECTIONS];     /* of 1 bit; 0: see gr_wire_code() */
    int32_t           rounding[GR_DIRECTIONS]; /* 0: see gr_wire_rounding() */
    int32_t           refuses;                 /* a row that fits no code is an error */
    enum gr_measuring measuring;
    uint64_t          seed;
};

struct gr_wire_format gr_wire_format(const graft_context *context);

/** Tell the log of options "halo..." that were set and have no effect with the others. Not collective. */
void gr_wire_tell_idle(const graft_context *context);

/** GRAFT_CODEC_... of rows of `width` elements in so many bits in one direction. */
int32_t gr_wire_code(const struct gr_wire_format *format, enum gr_direction direction, int32_t bits, int64_t width);

/** GRAFT_ROUND_... of rows in so many bits in one direction. */
int32_t gr_wire_rounding(const struct gr_wire_format *format, enum gr_direction direction, int32_t bits);

/** Whether all ranks have the same. Collective. \return OK; ERR_ARG, ERR_PEER. */
int32_t gr_wire_compare(const graft_context *context, struct gr_comm *comm, graft_error *error);

#endif
