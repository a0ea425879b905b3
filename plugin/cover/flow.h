/* Covers of least price.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GR_COVER_FLOW_H
#define GR_COVER_FLOW_H

#include "cover/cover.h"

/** As gr_cover_find() with GR_COVER_WEIGHTED. */
int32_t gr_flow_cover(const graft_context *context, const struct gr_cut *cut, uint8_t *source_in, uint8_t *target_in,
                      int64_t *size, graft_error *error);

#endif
