/* Sorting of integers.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GR_BASE_SORT_H
#define GR_BASE_SORT_H

#include "base/context.h"

/** Sort keys from 0 to `most` and remove duplicates; *count becomes the number left. \return OK; ERR_NOMEM */
int32_t gr_sort_unique(const graft_context *context, int64_t *keys, int64_t most, int64_t *count, graft_error *error);

#endif
