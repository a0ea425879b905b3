/* The functions of a plugin that uses GraphBLAS, as grb_plugins.c calls them.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GRB_PLUGIN_H
#define GRB_PLUGIN_H

#include <GraphBLAS.h>

typedef GrB_Info (*init_function)(GrB_Mode, void *(*)(size_t), void *(*)(size_t, size_t), void *(*)(void *, size_t),
                                  void (*)(void *));
typedef GrB_Info (*product_function)(GrB_Matrix, GrB_Matrix, GrB_BinaryOp, GrB_Semiring, GrB_Matrix, GrB_Matrix,
                                     GrB_Descriptor);

/* How the semiring of a product is made: it is built in; it consists of built-in operators; it consists of operators
 * and a type of the plugin; or it is NULL. */
enum operators { BUILT_IN, OWN_SEMIRING, OWN_TYPE, NO_OPERATORS };

/* Functions of GraphBLAS as the linker resolves them for the plugin. The host calls them. */
init_function    plugin_init_function(void);
product_function plugin_product_function(void);

int plugin_init(void);
int plugin_finalize(void);

/* Multiply with `mxm`, or with a call made by the plugin if that is NULL. \return the weighted sum of the result, or an
 * error code */
double plugin_product(product_function mxm, enum operators operators);

#endif
