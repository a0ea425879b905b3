/* Checks ELU in passes over rows: relative errors of the function and of its derivative, from the smallest to the
 * largest numbers. The loops of every instruction set must give bitwise identical results.
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness/tap.h"
#include "nn/rows.h"

#include <math.h>
#include <string.h>

enum { N = 400, WIDTH = 24, COUNT = N * WIDTH };

/* Fill an array with negative numbers from 1e-30 to 100 and as many positive ones. Numbers of the same magnitude are
 * neighbours. */
static void fill_numbers(float *z)
{
    for (int i = 0; i < COUNT; i++) z[i] = (float)pow(10, -30 + 32.0 * i / (COUNT - 1)) * (i % 2 ? -1.0f : 1.0f);
}

/* Run the forward pass, and the backward pass with a gradient of 1. */
static void run(enum gr_isa isa, float *h, float *slope)
{
    static float                   z[COUNT], bias[WIDTH], bias_gradient[WIDTH];
    static uint8_t                 bits[COUNT / 8];
    static double                  partial[GR_PARTIALS * WIDTH * (N / GR_CHUNK_ROWS + 1)];
    static _Atomic int64_t         left[N / GR_CHUNK_ROWS + 1];
    static struct gr_rows_backward pass;
    const struct gr_rows_gradient  gradient = { .g = slope, .bias = bias_gradient, .partial = partial };
    struct gr_rows rows = { .n = N, .width = WIDTH, .team = { .threads = 1 }, .bias = bias, .z = z, .h = h };

    fill_numbers(z);
    rows.bits = bits;
    rows.isa = isa;
    rows.is_elu = 1;
    gr_nn_rows_forward(&rows);
    for (int i = 0; i < COUNT; i++) slope[i] = 1;
    pass.rows = rows;
    pass.gradient = gradient;
    pass.left = left;
    gr_nn_rows_backward_begin(&pass);
    gr_nn_rows_backward_end(&pass);
}

/* The largest relative error. Where the exact value is below the normal floats the error counts relative to the
 * smallest normal one. */
static double worst(const float *found, double (*exact)(double))
{
    static float z[COUNT];
    double       most = 0;

    fill_numbers(z);
    for (int i = 0; i < COUNT; i++) {
        const double expected = exact((double)z[i]);

        most = fmax(most, fabs((double)found[i] - expected) / fmax(fabs(expected), 1e-30));
    }
    return most;
}

static double exact_elu(double x)
{
    return x > 0 ? x : expm1(x);
}

/* The exact derivative. In float it is the value plus one, so its error counts relative to 1. */
static double slope_of(double x)
{
    return x > 0 ? 1 : exp(x);
}

static double worst_slope(const float *found)
{
    static float z[COUNT];
    double       most = 0;

    fill_numbers(z);
    for (int i = 0; i < COUNT; i++) most = fmax(most, fabs((double)found[i] - slope_of((double)z[i])));
    return most;
}

int main(void)
{
    static float h[COUNT], slope[COUNT], first[COUNT];
    const int    last = (int)gr_processor_isa();

    for (int isa = GR_ISA_GENERIC; isa <= last; isa++) {
        double far;

        run((enum gr_isa)isa, h, slope);
        far = worst(h, exact_elu);
        ok(far < 5e-7, "instruction set %d: ELU is within %.1e of its exact value", isa, far);
        far = worst_slope(slope);
        ok(far < 2e-7, "instruction set %d: the derivative of ELU is within %.1e of its exact value", isa, far);
        if (isa == GR_ISA_GENERIC) memcpy(first, h, sizeof h);
        else
            ok(memcmp(first, h, sizeof h) == 0, "instruction set %d: ELU is bitwise identical to the generic loops",
               isa);
    }
    return done();
}
