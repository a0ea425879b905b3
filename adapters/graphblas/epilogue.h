/* The operations of graft.mxm after the product: scale, mask, accumulate, replace.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef EPILOGUE_H
#define EPILOGUE_H

#include "graft_mxm.h"

/** Write Z [rows x columns of C, contiguous, of the type of C] to args->c, and call args->rows_done. Z has no entry in
 *  empty rows of `a`, nor if z is NULL. */
void epilogue_apply(const graft_csr *a, const graft_mxm_args *args, const void *z);

#endif
