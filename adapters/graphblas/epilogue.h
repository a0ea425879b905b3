/* The operations of graft.mxm after the product: scaling, mask, accumulation and replacement.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef EPILOGUE_H
#define EPILOGUE_H

#include "graft_mxm.h"

/** Write Z [rows x columns of C, contiguous, in the type of C] to args->c, and call args->rows_done. Empty rows of `a`
 * have no entries in Z; if z is NULL, no row has. */
void epilogue_apply(const graft_csr *a, const graft_mxm_args *args, const void *z);

#endif
