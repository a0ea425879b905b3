/* The struct of an iterator in versions 7 to 9, in which all integers have 64 bits.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GRAFT_GRB_DROPIN_ITERATOR_64_H
#define GRAFT_GRB_DROPIN_ITERATOR_64_H

struct GB_Iterator_opaque {
    int64_t        pstart, pend, p, k;
    size_t         header_size;
    int64_t        pmax, avlen, avdim, anvec;
    const int64_t *Ap, *Ah;
    const int8_t  *Ab;
    const int64_t *Ai;
    const void    *Ax;
    size_t         type_size;
    int            A_sparsity;
    bool           iso, by_col;
};

#endif
