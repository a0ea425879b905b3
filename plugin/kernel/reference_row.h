/* One row of a masked product, by definition. Included once for each REAL, which names the type and the functions.
 * SPDX-License-Identifier: Apache-2.0 */

/* Columns are done in strips, so that sums fit on the stack and run() allocates nothing. */
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
        const REAL *b = (const REAL *)args->b->data + column(a, e) * args->b->stride + j0;
        const REAL  w = times ? ((const REAL *)a->values)[e] : 1;

        for (int64_t j = 0; j < n; j++) strip->z[j] += w * b[j];
    }
}

/* Maximum, or minimum as the maximum of what is negated. The first of equal ones wins, and a NaN over any number. */
static void NAME(extreme_row)(const graft_csr *a, const graft_mxm_args *args, int64_t row, int64_t j0, int64_t n,
                              struct NAME(strip) * strip)
{
    const int  times = (args->semiring == GRAFT_MAX_TIMES || args->semiring == GRAFT_MIN_TIMES) && a->values != NULL;
    const REAL sign = args->semiring == GRAFT_MAX_TIMES || args->semiring == GRAFT_MAX_SECOND ? 1 : -1;

    for (int64_t e = a->row_ptr[row]; e < a->row_ptr[row + 1]; e++) {
        const int64_t k = column(a, e);
        const REAL   *b = (const REAL *)args->b->data + k * args->b->stride + j0;
        const REAL    w = times ? ((const REAL *)a->values)[e] : 1;

        for (int64_t j = 0; j < n; j++) {
            const REAL v = w * b[j];
            if (e == a->row_ptr[row] || NAME(wins)(v, strip->z[j], sign)) {
                strip->z[j] = v;
                strip->winner[j] = k;
            }
        }
    }
}

/* Put z into element (row, j) of C, or what stands for "no entry"; see graft_mxm.run(). */
static void NAME(store)(const graft_csr *a, const graft_mxm_args *args, int64_t row, int64_t j, REAL z, int64_t winner)
{
    REAL      *c = (REAL *)args->c->data + row * args->c->stride + j;
    const int  empty = a->row_ptr[row] == a->row_ptr[row + 1];
    const int  sum = args->semiring == GRAFT_PLUS_TIMES || args->semiring == GRAFT_PLUS_SECOND;
    const REAL sign = args->semiring == GRAFT_MAX_TIMES || args->semiring == GRAFT_MAX_SECOND ? 1 : -1;

    if (!gr_mask_allows(args->mask, row, j)) {
        if (!(args->flags & GRAFT_MXM_REPLACE)) return;
        *c = 0;
        winner = -1;
    } else if (!(args->flags & GRAFT_MXM_ACCUMULATE)) {
        *c = empty ? 0 : z;
        if (empty) winner = -1;
    } else if (empty) {
        return;
    } else if (sum) {
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
    const int sum = args->semiring == GRAFT_PLUS_TIMES || args->semiring == GRAFT_PLUS_SECOND;
    struct NAME(strip) strip;

    for (int64_t j0 = 0; j0 < args->c->n_cols; j0 += STRIP) {
        const int64_t n = args->c->n_cols - j0 < STRIP ? args->c->n_cols - j0 : STRIP;

        (sum ? NAME(sum_row) : NAME(extreme_row))(a, args, row, j0, n, &strip);
        for (int64_t j = 0; j < n; j++) {
            const int  has = a->row_ptr[row] < a->row_ptr[row + 1];
            const REAL scale = args->row_scale != NULL ? ((const REAL *)args->row_scale)[row] : 1;

            NAME(store)(a, args, row, j0 + j, has ? scale * strip.z[j] : 0, has && !sum ? strip.winner[j] : -1);
        }
    }
}
