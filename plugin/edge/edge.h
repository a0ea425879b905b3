/* Edge operators: gathering and adding rows by index, and attention on the edges. graft_edge.h gives the formulas.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/team.h"
#include "graft_edge.h"
#include "graph/csr.h"
#include "kernel/kernel.h"

/** The transpose of a matrix, and for each of its entries the index of the original entry. */
struct gr_edge_map {
    struct gr_csr csr;
    int64_t      *entry; /* [entries] */
};

/** The bytes that the first gr_edge_map() of this matrix allocates. */
int64_t gr_edge_map_bytes(const graft_csr *csr);

/** Get the map of a matrix. The first call makes it; it is freed with the matrix. \return OK; ERR_NOMEM */
int32_t gr_edge_map(graft_matrix *a, const struct gr_edge_map **map, graft_error *error);

/** A subset of the rows of a matrix: rows whose `kind` has one of `bits`, or, with `others`, none of them. All rows if
 *  kind is NULL. */
struct gr_edge_some {
    const uint8_t *kind; /* [rows] */
    uint8_t        bits;
    int            others;
};

static inline int gr_edge_has(const struct gr_edge_some *some, int64_t row)
{
    return some == NULL || some->kind == NULL || ((some->kind[row] & some->bits) == 0) == some->others;
}

static inline int64_t gr_edge_number(const graft_index *index, int64_t i)
{
    return index->index_type == GRAFT_I32 ? ((const int32_t *)index->data)[i] : ((const int64_t *)index->data)[i];
}

/** Sort an index of n rows into a matrix [n x count] without values, with an entry (index[i], i) for each i. The
 *  entries of a row are in the order of i. \return OK; ERR_NOMEM. [starts-openmp] */
int32_t gr_edge_sort_index(const graft_context *context, const graft_index *index, int64_t n, int threads,
                           struct gr_csr *sorted, graft_error *error);

/* The operators. Their operands have been checked. With a map, gr_edge_mxm() multiplies by the transpose. `some`,
 * unless NULL, restricts the operator to some rows of a (or of the transpose); other rows of `out` are not written.
 * [starts-openmp] */
void gr_edge_gather_rows(const graft_dense *x, const graft_index *index, const graft_dense *out, int threads);
void gr_edge_index_add(const graft_context *context, const graft_dense *x, const graft_index *index,
                       const graft_dense *out, int threads);
void gr_edge_sddmm(const graft_csr *a, const graft_dense *x, const graft_dense *y, const graft_dense *out,
                   const struct gr_edge_some *some, struct gr_team team);
void gr_edge_softmax(const graft_csr *a, const graft_dense *s, const graft_dense *p, const struct gr_edge_some *some,
                     struct gr_team team);
void gr_edge_softmax_backward(const graft_csr *a, const graft_dense *p, const graft_dense *dp, const graft_dense *ds,
                              const struct gr_edge_some *some, struct gr_team team);
void gr_edge_mxm(const graft_csr *a, const struct gr_edge_map *map, const graft_dense *w, const graft_dense *y,
                 const graft_dense *out, const struct gr_edge_some *some, struct gr_team team);

/* Checks of the operands; graft_edge.h lists the errors. \return OK; ERR_ARG */
int32_t gr_edge_check_index(const graft_index *index, int64_t n, int threads, graft_error *error);
int32_t gr_edge_check_gather_rows(const graft_dense *x, const graft_index *index, const graft_dense *out, int threads,
                                  graft_error *error);
int32_t gr_edge_check_index_add(const graft_dense *x, const graft_index *index, const graft_dense *out, int threads,
                                graft_error *error);
int32_t gr_edge_check_sddmm(const graft_csr *a, const graft_dense *x, const graft_dense *y, const graft_dense *out,
                            graft_error *error);
int32_t gr_edge_check_softmax(const graft_csr *a, const graft_dense *s, const graft_dense *p, graft_error *error);
int32_t gr_edge_check_softmax_backward(const graft_csr *a, const graft_dense *p, const graft_dense *dp,
                                       const graft_dense *ds, graft_error *error);
/** Check the operands of gr_edge_mxm(), where y may be NULL. */
int32_t gr_edge_check_mxm(const graft_csr *a, uint32_t flags, const graft_dense *w, const graft_dense *y,
                          const graft_dense *out, graft_error *error);
