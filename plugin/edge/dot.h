/* The dot product of two vectors, bitwise identical for every size of registers. Included once for each type REAL.
 * SPDX-License-Identifier: Apache-2.0 */

typedef REAL EDGE(eight) __attribute__((vector_size(8 * sizeof(REAL))));

/* Compute eight sums, the first of columns 0, 8, 16, ..., and then add them. */
INLINE REAL EDGE(dot)(const REAL *x, const REAL *y, int64_t width)
{
    EDGE(eight) sum = { 0 };
    REAL    tail = 0;
    int64_t c = 0;

    for (; c + 8 <= width; c += 8) {
        EDGE(eight) a, b;

        memcpy(&a, x + c, sizeof a);
        memcpy(&b, y + c, sizeof b);
        sum += a * b;
    }
    for (; c < width; c++) tail += x[c] * y[c];
    return (((sum[0] + sum[4]) + (sum[2] + sum[6])) + ((sum[1] + sum[5]) + (sum[3] + sum[7]))) + tail;
}
