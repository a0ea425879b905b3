/* What graft.mxm does behind the product itself: scale, mask, accumulate, replace.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef EPILOGUE_H
#define EPILOGUE_H

#include "graft_mxm.h"

/** Put Z [rows x columns of C, without gaps, of its type] into args->c, and tell args->rows_done. Where row i of `a` is
 *  empty, and where z is NULL, Z has no entry. */
void epilogue_apply(const graft_csr *a, const graft_mxm_args *args, const void *z);

#endif
