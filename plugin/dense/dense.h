/* Dense products: the choice of a module, and the reference module.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/context.h"
#include "graft_module.h"

/** The plain loops; built in, and slow. */
extern const graft_module_table gr_dense_reference;

/** Choose the module of option dense.module; with "auto", the usable module with the highest preference. A module
 *  chosen by name must be usable, because a slower replacement would go unnoticed. *type receives the element type of
 *  its products: the type of option dense.type; or float if the module does not support that type, which is logged, or
 *  is an error with option strict.
 *  \return OK; ERR_UNSUPPORTED; the error of the module */
int32_t gr_dense_choose(graft_context *context, graft_dtype *type, const struct gr_module **module, graft_error *error);

/** Choose a module as gr_dense_choose(), but for products of `type`, GRAFT_F32 or GRAFT_F64, whatever option dense.type
 *  says. \return OK; ERR_UNSUPPORTED (the module chosen by name does not multiply it); the error of the module */
int32_t gr_dense_choose_for(graft_context *context, graft_dtype type, const struct gr_module **module,
                            graft_error *error);

/** Compute a product. With option check=full, sampled rows of C are compared with plain loops after the product, so
 *  rows_done() must not change them. \return OK; ERR_MODULE (C is wrong: the message names the module); ERR_NOMEM; the
 *  error of the module. */
int32_t gr_dense_run(graft_context *context, const struct gr_module *module, const graft_gemm *gemm,
                     graft_error *error);
int     gr_dense_verifies(const graft_context *context);
