/* The format of rows in messages, chosen by options halo.*.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/direction.h"
#include "codec/codec.h"
#include "comm/collective.h"
#include "halo/options.h"

struct gr_row_format {
    int32_t                 bits[GR_DIRECTIONS];     /* of an element; the most, if widths are adaptive */
    int32_t                 adaptive[GR_DIRECTIONS]; /* each row has its own width, see gr_row_widths */
    int32_t                 code[GR_DIRECTIONS];     /* 0: see gr_halo_row_format_code() */
    int32_t                 rounding[GR_DIRECTIONS]; /* 0: see gr_halo_row_format_rounding() */
    int32_t                 refuses;                 /* a row that the code cannot represent is an error */
    enum gr_halo_statistics measuring;               /* of which rows the quantization error is measured */
    uint64_t                seed;
};

struct gr_row_format gr_halo_row_format(const graft_context *context);

/** Return the code, GRAFT_CODEC_..., of rows of `width` elements with this number of bits in one direction. */
int32_t gr_halo_row_format_code(const struct gr_row_format *format, enum gr_direction direction, int32_t bits,
                                int64_t width);

/** Return the rounding, GRAFT_ROUND_..., of rows with this number of bits in one direction. */
int32_t gr_halo_row_format_rounding(const struct gr_row_format *format, enum gr_direction direction, int32_t bits);
