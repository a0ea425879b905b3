/* How rows are written in messages, as the options say.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/direction.h"
#include "codec/codec.h"
#include "comm/collective.h"
#include "halo/options.h"

struct gr_row_format {
    int32_t                 bits[GR_DIRECTIONS];     /* the largest width of a row, if widths are adaptive */
    int32_t                 adaptive[GR_DIRECTIONS]; /* each row has its own width, see gr_row_widths */
    int32_t                 code[GR_DIRECTIONS];     /* 0: see gr_halo_row_format_code() */
    int32_t                 rounding[GR_DIRECTIONS]; /* 0: see gr_halo_row_format_rounding() */
    int32_t                 refuses;                 /* a row without a code is an error */
    enum gr_halo_statistics measuring;               /* rows whose quantization error is measured */
    uint64_t                seed;
};

struct gr_row_format gr_halo_row_format(const graft_context *context);

/** GRAFT_CODEC_... of rows of `width` elements with this number of bits in one direction. */
int32_t gr_halo_row_format_code(const struct gr_row_format *format, enum gr_direction direction, int32_t bits,
                                int64_t width);

/** GRAFT_ROUND_... of rows with this number of bits in one direction. */
int32_t gr_halo_row_format_rounding(const struct gr_row_format *format, enum gr_direction direction, int32_t bits);
