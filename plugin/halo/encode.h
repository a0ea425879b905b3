/* The codec of an exchange, and the places of encoded rows in messages. For messages.c and row_bits.c.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "halo/messages.h"

/** Return the codec of the rows of an exchange. */
struct gr_codec gr_halo_messages_codec(const struct gr_messages *messages, const struct gr_exchange_args *args);

/** Return the bytes of the encoded rows begin to end - 1 of a side. */
struct gr_payload gr_halo_messages_encoded(const struct gr_messages *messages, enum gr_side side, int64_t begin,
                                           int64_t end);

/** Compute widths->at, the offsets of encoded rows, for rows of `width` elements. */
void gr_halo_row_widths_lay_out(const struct gr_row_widths *widths, const int64_t rows[GR_SIDES], int64_t width);

/** Compute messages->sent, the statistics of the rows sent, after all rows are encoded. */
void gr_halo_messages_count_sent(struct gr_messages *messages);
