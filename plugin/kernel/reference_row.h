/* Computes one row of a masked product as the interface defines it. Included once for each type REAL of elements.
 * SPDX-License-Identifier: Apache-2.0 */

/* Columns are processed in strips, so that the sums fit on the stack and run() allocates nothing. */
struct NAME(strip) {
    REAL    z[STRIP];
    int64_t winner[STRIP];
};

static void NAME(sum_row)(const graft_csr *a, const graft_mxm_args *args, int64_t row, int64_t j0, int64_t n,
                          struct NAME(strip) * strip)
{
    const int times = args->semiring == GRAFT_PLUS_TIMES && a->values != NULL;

    for (int64_t j = 0; j < n; j++) strip->z[j] = 0;
    for (int64_t e = a->row_ptr[row]; e < a->row_ptr[row + 1]; e++) {
        const int64_t at = column(a, e) * args->b->stride + j0;
        const REAL    w = times ? ((const REAL *)a->values)[e] : 1;

        for (int64_t j = 0; j < n; j++) strip->z[j] += w * NAME(element)(args->b, at + j);
    }
}

/* Compute the maxima, or the minima as maxima of negated values. Of equal values the first wins, and a NaN wins over
 * any number. */
static void NAME(extreme_row)(const graft_csr *a, const graft_mxm_args *args, int64_t row, int64_t j0, int64_t n,
                              struct NAME(strip) * strip)
{
    const int  times = (args->semiring == GRAFT_MAX_TIMES || args->semiring == GRAFT_MIN_TIMES) && a->values != NULL;
    const REAL sign = gr_semiring_is_max(args->semiring) ? 1 : -1;

    for (int64_t e = a->row_ptr[row]; e < a->row_ptr[row + 1]; e++) {
        const int64_t k = column(a, e);
        const int64_t at = k * args->b->stride + j0;
        const REAL    w = times ? ((const REAL *)a->values)[e] : 1;

        for (int64_t j = 0; j < n; j++) {
            const REAL v = w * NAME(element)(args->b, at + j);
            if (e == a->row_ptr[row] || NAME(wins)(v, strip->z[j], sign)) {
                strip->z[j] = v;
                strip->winner[j] = k;
            }
        }
    }
}

/* Apply bias, residual, ReLU and dropout to z. *through is 1 unless ReLU or dropout made the element 0. */
static REAL NAME(epilogue)(const graft_mxm_args *args, int64_t row, int64_t j, REAL z, int *through)
{
    const graft_epilogue *e = args->epilogue;
    const int64_t         vertex = e->vertex != NULL ? e->vertex[row] : row;
    const uint32_t        threshold = gr_dropout_threshold(e->dropout);

    if (e->bias != NULL) z += ((const REAL *)e->bias)[j];
    if (e->residual != NULL) z += ((const REAL *)e->residual->data)[row * e->residual->stride + j];
    *through = gr_dropout_kept(e->dropout_key, vertex, j / 8, threshold) >> (j & 7) & 1;
    if (e->flags & GRAFT_EPILOGUE_RELU) *through &= !(z <= 0);
    return *through ? z * (REAL)gr_dropout_scale(threshold) : 0;
}

/* Write z to element (row, j) of C, or the value that graft_mxm_api.run() specifies for a row without entries. */
static void NAME(store)(const graft_csr *a, const graft_mxm_args *args, int64_t row, int64_t j, REAL z, int64_t winner)
{
    REAL      *c = (REAL *)args->c->data + row * args->c->stride + j;
    const int  allowed = gr_mask_allows(args->mask, row, j);
    const int  empty = a->row_ptr[row] == a->row_ptr[row + 1] && args->epilogue == NULL;
    const REAL sign = gr_semiring_is_max(args->semiring) ? 1 : -1;

    if (args->epilogue != NULL) {
        int through;

        z = NAME(epilogue)(args, row, j, z, &through);
        put_bit(args->epilogue, row, j, allowed && through);
    }
    if (!allowed) {
        if (!(args->flags & GRAFT_MXM_REPLACE)) return;
        *c = 0;
        winner = -1;
    } else if (!(args->flags & GRAFT_MXM_ACCUMULATE)) {
        *c = empty ? 0 : z;
        if (empty) winner = -1;
    } else if (empty) {
        return;
    } else if (gr_semiring_is_sum(args->semiring)) {
        *c += z;
    } else if (NAME(wins)(z, *c, sign)) {
        *c = z;
    } else {
        return;
    }
    put_winner(a, args, row, j, winner);
}

static void NAME(row)(const graft_csr *a, const graft_mxm_args *args, int64_t row)
{
    const int  has = a->row_ptr[row] < a->row_ptr[row + 1], sum = gr_semiring_is_sum(args->semiring);
    const REAL scale = args->row_scale != NULL ? ((const REAL *)args->row_scale)[row] : 1;
    struct NAME(strip) strip;

    for (int64_t j0 = 0; j0 < args->c->n_cols; j0 += STRIP) {
        const int64_t n = args->c->n_cols - j0 < STRIP ? args->c->n_cols - j0 : STRIP;

        (sum ? NAME(sum_row) : NAME(extreme_row))(a, args, row, j0, n, &strip);
        for (int64_t j = 0; j < n; j++) {
            NAME(store)(a, args, row, j0 + j, has ? scale * strip.z[j] : 0, has && !sum ? strip.winner[j] : -1);
        }
    }
}
