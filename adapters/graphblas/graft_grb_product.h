/* Describes a product of GraphBLAS to Graft: its semiring, descriptor and operands, and how its result is written to C.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GRAFT_GRB_PRODUCT_H
#define GRAFT_GRB_PRODUCT_H

#include "graft_grb_lend.h"
#include "graft_grb_state.h"
#include "graft_grb_store.h"

enum { GRAFT_GRB_TIMES = 0, GRAFT_GRB_SECOND = 1, GRAFT_GRB_FIRST = 2, GRAFT_GRB_PAIR = 3 };

/* A semiring that Graft supports: monoid and multiplication of one type. */
struct graft_grb_ring {
    GrB_Type     type;
    GrB_BinaryOp add;
    int          monoid;   /* number of the monoid as in graft_semiring: 0 plus, 1 max, 2 min */
    int          multiply; /* number of the multiplication, GRAFT_GRB_... */
};

GRAFT_GRB_FN int graft_grb_find_op(GrB_BinaryOp op, const GrB_BinaryOp *ops, int count)
{
    for (int i = 0; i < count; i++) {
        if (ops[i] == op) return i;
    }
    return -1;
}

/* Decompose a semiring. \return 1 if Graft supports it */
GRAFT_GRB_FN int graft_grb_read_ring(GrB_Semiring semiring, struct graft_grb_ring *ring)
{
    const GrB_BinaryOp adds[6] = {
        GrB_PLUS_FP32, GrB_MAX_FP32, GrB_MIN_FP32, GrB_PLUS_FP64, GrB_MAX_FP64, GrB_MIN_FP64
    };
    const GrB_BinaryOp multiplies[8] = { GrB_TIMES_FP32, GrB_SECOND_FP32, GrB_FIRST_FP32, GrB_ONEB_FP32,
                                         GrB_TIMES_FP64, GrB_SECOND_FP64, GrB_FIRST_FP64, GrB_ONEB_FP64 };
    GrB_Monoid         monoid = NULL;
    GrB_BinaryOp       multiply = NULL;
    int                i, j;

    if (GxB_Semiring_add(&monoid, semiring) != GrB_SUCCESS) return 0;
    if (GxB_Monoid_operator(&ring->add, monoid) != GrB_SUCCESS) return 0;
    if (GxB_Semiring_multiply(&multiply, semiring) != GrB_SUCCESS) return 0;
    i = graft_grb_find_op(ring->add, adds, 6);
    j = graft_grb_find_op(multiply, multiplies, 8);
    if (i < 0 || j < 0 || i / 3 != j / 4) return 0;
    ring->type = i < 3 ? GrB_FP32 : GrB_FP64;
    ring->monoid = i % 3;
    ring->multiply = j % 4;
    return 1;
}

struct graft_grb_flags {
    int      replace, transpose0, transpose1;
    uint32_t mask; /* flags GRAFT_MASK_... */
};

GRAFT_GRB_FN int graft_grb_read_descriptor(GrB_Descriptor descriptor, struct graft_grb_flags *flags)
{
    int32_t out = 0, mask = 0, in0 = 0, in1 = 0;

    memset(flags, 0, sizeof *flags);
    if (descriptor == NULL) return 1;
    if (GxB_Desc_get_INT32(descriptor, GrB_OUTP, &out) != GrB_SUCCESS) return 0;
    if (GxB_Desc_get_INT32(descriptor, GrB_MASK, &mask) != GrB_SUCCESS) return 0;
    if (GxB_Desc_get_INT32(descriptor, GrB_INP0, &in0) != GrB_SUCCESS) return 0;
    if (GxB_Desc_get_INT32(descriptor, GrB_INP1, &in1) != GrB_SUCCESS) return 0;
    flags->replace = out == GrB_REPLACE;
    flags->transpose0 = in0 == GrB_TRAN;
    flags->transpose1 = in1 == GrB_TRAN;
    flags->mask = (mask & GrB_STRUCTURE ? GRAFT_MASK_STRUCTURE : 0) | (mask & GrB_COMP ? GRAFT_MASK_COMPLEMENT : 0);
    return 1;
}

/* The descriptor of an assignment with the same mask and replacement, which transposes nothing. */
GRAFT_GRB_FN GrB_Descriptor graft_grb_assignment(const struct graft_grb_flags *flags)
{
    const GrB_Descriptor of[2][4] = { { NULL, GrB_DESC_S, GrB_DESC_C, GrB_DESC_SC },
                                      { GrB_DESC_R, GrB_DESC_RS, GrB_DESC_RC, GrB_DESC_RSC } };

    return of[flags->replace != 0][flags->mask & (GRAFT_MASK_STRUCTURE | GRAFT_MASK_COMPLEMENT)];
}

/* A product Z = P D, and C<M> accum= Z. P is `sparse` or its transpose, and D is `dense` or its transpose. With
 * `by_col` C gets the transpose of Z; in this way D P is computed if D is dense and held by column. With `flipped` the
 * dense operand is the first argument of the multiplication. */
struct graft_grb_product {
    GrB_Matrix             c, m, sparse, dense;
    GrB_BinaryOp           accum;
    struct graft_grb_ring  ring;
    struct graft_grb_flags flags;
    int                    sparse_transpose, dense_transpose, by_col, flipped;
    int                    wide; /* D P is computed for a D that is held by row */
    graft_grb_loan         a, b, mask;
    graft_grb_loan         kept; /* matrix `a` without entries of missing rows of `b` */
    graft_grb_view         old;  /* arrays of C before the product */
    int32_t                threads;
    int                    gaps; /* whether Z has rows without entries */
};

/* Whether a result can be moved to C without change. */
GRAFT_GRB_FN int graft_grb_replaces(const struct graft_grb_product *p, const graft_grb_result *result)
{
    int32_t allowed = 0;

    if (p->old.entries > 0 && (p->accum != NULL || (p->m != NULL && !p->flags.replace))) return 0;
    if (p->old.type != result->type) return 0;
    if (p->old.by_col != result->by_col && p->old.n_cols != 1) return 0;
    if (GxB_Matrix_Option_get_INT32(p->c, GxB_SPARSITY_CONTROL, &allowed) != GrB_SUCCESS) return 0;
    return (allowed & (result->b != NULL ? GxB_BITMAP : GxB_FULL)) != 0;
}

/* Assign a computed Z: C<M> accum= Z. */
GRAFT_GRB_FN GrB_Info graft_grb_finish(const struct graft_grb_product *p, graft_grb_result *result)
{
    const GrB_Index m = (GrB_Index)p->old.n_rows, n = (GrB_Index)p->old.n_cols;
    GrB_Matrix      made = NULL;
    GrB_Info        info;

    if (graft_grb_replaces(p, result)) return graft_grb_pack(p->c, p->old.by_col, result);
    info = graft_grb_new_matrix(result, &made);
    if (info == GrB_SUCCESS)
        info = GrB_Matrix_assign(p->c, p->m, p->accum, made, GrB_ALL, m, GrB_ALL, n, graft_grb_assignment(&p->flags));
    GrB_Matrix_free(&made);
    return info;
}

#endif
