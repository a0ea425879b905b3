/* The places of encoded and raw rows of a message, for messages.c and the assignment of widths.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "halo/messages.h"

/** The codec of an exchange. */
struct gr_codec gr_halo_messages_codec(const struct gr_messages *messages, const struct gr_exchange_args *args);

/** The encoded rows begin to end - 1 of a side. */
struct gr_payload gr_halo_messages_encoded(const struct gr_messages *messages, enum gr_side side, int64_t begin,
                                           int64_t end);

/** Set widths->at of rows `width` elements wide. */
void gr_halo_row_widths_lay_out(const struct gr_row_widths *widths, const int64_t rows[GR_SIDES], int64_t width);

/** Set messages->sent after all rows are encoded. */
void gr_halo_messages_count_sent(struct gr_messages *messages);
