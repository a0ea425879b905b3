/* The kinds of models. To add a kind, write a file with its struct gr_model_kind, and add its word to GR_KIND_MAP of
 * model/options.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "model/kind.h"
#include "base/assert.h"

#define KIND(constant, word) &gr_kind_##word,
static const struct gr_model_kind *const kinds[GR_KINDS] = { GR_KIND_MAP(KIND) };

const struct gr_model_kind *gr_model_kind(enum gr_kind kind)
{
    GR_ASSERT(kind < GR_KINDS);
    return kinds[kind];
}
