/* The options of the exchange of boundary rows.
 * SPDX-License-Identifier: Apache-2.0 */
#include "halo/options.h"

#define GR_OPTIONS_TABLE gr_halo_option_table
#define GR_OPTIONS_STRUCT struct gr_halo_options
static const struct gr_option_row halo_rows[] = { GR_HALO_OPTIONS(GR_OPTION_ROW) };
const struct gr_option_table      gr_halo_option_table = GR_OPTION_TABLE("halo exchange", halo_rows);

struct gr_halo_codec gr_halo_codec_of(const struct gr_halo_options *options, enum gr_direction direction)
{
#define CODEC_MEMBERS(word, bits, adaptive, code) { bits, adaptive, code },
    static const struct gr_halo_codec codecs[] = { GR_CODEC_MAP(CODEC_MEMBERS) };

    return codecs[options->codec.word[direction]];
}
