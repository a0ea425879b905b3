/* Dense products: the module chosen for a trainer, and the plain loops that are always there.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GR_DENSE_DENSE_H
#define GR_DENSE_DENSE_H

#include "base/context.h"
#include "graft_module.h"

/** The plain loops, built in: right, and slow. */
extern const graft_module_table gr_dense_reference;

/** The module that option "dense.module" asks for; of "auto", the best one that is usable. A module chosen by name that
 *  is not usable is an error: a slower one in its place would not be noticed. *type is what it will multiply: that of
 *  option "dense.type", or float where it cannot, which is logged, or ERR_UNSUPPORTED with option "strict". */
int32_t gr_dense_choose(graft_context *context, graft_dtype *type, const struct gr_module **module, graft_error *error);

#endif
