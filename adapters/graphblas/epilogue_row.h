/* The epilogue of one row. This file is included once for each type REAL.
 * SPDX-License-Identifier: Apache-2.0 */

/* Compute the new values of n elements of C where the mask allows them. */
static void NAME(values)(const graft_mxm_args *args, int empty, REAL scale, const REAL *z, const REAL *c, int64_t n,
                         REAL *value)
{
    const int  accumulate = (args->flags & GRAFT_MXM_ACCUMULATE) != 0;
    const int  sum = args->semiring == GRAFT_PLUS_TIMES || args->semiring == GRAFT_PLUS_SECOND;
    const REAL sign = args->semiring == GRAFT_MAX_TIMES || args->semiring == GRAFT_MAX_SECOND ? 1 : -1;

    if (empty) {
        for (int64_t j = 0; j < n; j++) value[j] = accumulate ? c[j] : 0;
        return;
    }
    for (int64_t j = 0; j < n; j++) value[j] = scale * z[j];
    if (!accumulate) return;
    if (sum) {
        for (int64_t j = 0; j < n; j++) value[j] += c[j];
    } else {
        for (int64_t j = 0; j < n; j++) { /* A NaN is larger than any number. */
            const int stays = (c[j] != c[j]) | (sign * value[j] <= sign * c[j]);

            value[j] = stays ? c[j] : value[j];
        }
    }
}

static void NAME(row)(const graft_mxm_args *args, int empty, int64_t row, const REAL *z)
{
    const REAL scale = args->row_scale != NULL ? ((const REAL *)args->row_scale)[row] : 1;
    const int  replace = (args->flags & GRAFT_MXM_REPLACE) != 0;
    REAL       value[STRIP];
    uint8_t    allowed[STRIP];

    for (int64_t j0 = 0; j0 < args->c->n_cols; j0 += STRIP) {
        const int64_t n = args->c->n_cols - j0 < STRIP ? args->c->n_cols - j0 : STRIP;
        REAL         *c = (REAL *)args->c->data + row * args->c->stride + j0;

        look_up(args->mask, row, j0, n, allowed);
        NAME(values)(args, empty, scale, empty ? NULL : z + j0, c, n, value);
        for (int64_t j = 0; j < n; j++) c[j] = allowed[j] ? value[j] : replace ? 0 : c[j];
    }
}
