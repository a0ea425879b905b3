/* The passes of loops.h, compiled once for each instruction set: ISA is part of the table's name.
 * SPDX-License-Identifier: Apache-2.0 */
#include "mgn/loops.h"

#include "nn/layer_norm.h"

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)

#define T float
#define TYPED(name) name##_f32
#include "mgn/loops_of_type.h"

#define T double
#define TYPED(name) name##_f64
#include "mgn/loops_of_type.h"

const struct gr_mgn_loops JOIN(gr_mgn_loops_, ISA)[2] = {
    { gather_f32, end_edges_f32, end_edges_back_f32, scatter_f32, collect_f32, add_f32, add_copies_f32 },
    { gather_f64, end_edges_f64, end_edges_back_f64, scatter_f64, collect_f64, add_f64, add_copies_f64 },
};
