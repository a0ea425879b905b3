/* The places of encoded and raw rows of a message, for messages.c and the assignment of widths.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "halo/messages.h"

/** The codec of an exchange. */
struct gr_codec gr_halo_messages_codec(const struct gr_messages *messages, const struct gr_exchange_args *args);

/** Set encoded_at and raw_at of a side, the offsets of the rows of each rank. */
void gr_halo_messages_lay_out(struct gr_messages *messages, enum gr_side side);

/** Set widths->at of rows `width` elements wide. */
void gr_halo_row_widths_lay_out(const struct gr_row_widths *widths, const int64_t rows[GR_SIDES], int64_t width);

/** Set messages->sent after all rows are encoded. */
void gr_halo_messages_count_sent(struct gr_messages *messages);

/** Bytes of the raw rows to or from rank q. */
int64_t gr_halo_message_raw_bytes(const struct gr_message_side *side, int32_t q);
