/* Checks that the passes over rows (bias, norm, activation, dropout) of every instruction set of this processor give
 * bitwise identical results, with each norm and order of dropout. That the results are right is for test_gradient and
 * test_layer_options.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/dropout.h"
#include "harness/tap.h"
#include "nn/rows_loops.h"
#include "oracle/oracle.h"
#include "oracle/sample.h"

#include <stdlib.h>
#include <string.h>

enum { ROWS = 37, WIDTH_MOST = 133, KEY = 99, THRESHOLD = 20000 };

/* All outputs of the passes. */
struct results {
    float   z[ROWS * WIDTH_MOST], h[ROWS * WIDTH_MOST], g[ROWS * WIDTH_MOST], mean[ROWS + WIDTH_MOST];
    float   rstd[ROWS + WIDTH_MOST];
    double  partial[GR_PARTIALS * WIDTH_MOST];
    uint8_t bits[ROWS * (WIDTH_MOST + 7) / 8 + ROWS];
};

static void fill_floats(struct sample *sample, float *x, int64_t count)
{
    for (int64_t i = 0; i < count; i++) x[i] = (float)sample_real(sample, -2, 2);
}

/* Run the passes forward and backward on the same numbers each time. */
static void run_passes(const struct gr_rows_loops *loops, int64_t width, int columns, int variant, struct results *o)
{
    float          bias[WIDTH_MOST], gain[WIDTH_MOST], shift[WIDTH_MOST];
    struct sample  sample = { 23 };
    struct gr_rows rows = {
        .n = ROWS,
        .width = width,
        .bias = bias,
        .gain = gain,
        .shift = shift,
        .z = o->z,
        .h = o->h,
        .mean = o->mean,
        .rstd = o->rstd,
        .bits = o->bits,
        .key = KEY,
        .threshold = variant & 1 ? THRESHOLD : 0,
        .drops_first = variant >> 1 & 1,
        .is_elu = variant >> 2 & 1,
        .norms_columns = columns,
    };

    memset(o, 0, sizeof *o);
    fill_floats(&sample, bias, width);
    fill_floats(&sample, gain, width);
    fill_floats(&sample, shift, width);
    fill_floats(&sample, o->mean, ROWS + WIDTH_MOST);
    fill_floats(&sample, o->rstd, ROWS + WIDTH_MOST);
    fill_floats(&sample, o->z, ROWS * width);
    fill_floats(&sample, o->g, ROWS * width);
    loops->forward(&rows, 0, ROWS);
    loops->backward(&rows, o->g, o->partial, 0, ROWS);
}

static void test_passes(int columns, const char *name)
{
    static const int64_t  widths[] = { 1, 7, 8, 9, 15, 16, 17, 24, 32, 45, 128, 133 };
    static struct results generic, other;
    const int             last = (int)gr_processor_isa();
    int                   wrong = 0;

    for (int at = 0; at < 12 * 8; at++) {
        run_passes(gr_nn_rows_loops_for(GR_ISA_GENERIC), widths[at / 8], columns, at % 8, &generic);
        for (int isa = GR_ISA_GENERIC + 1; isa <= last; isa++) {
            if (isa >= GR_ISA_SVE256 && isa != last) continue; /* these loops are for registers of one size */
            run_passes(gr_nn_rows_loops_for((enum gr_isa)isa), widths[at / 8], columns, at % 8, &other);
            if (memcmp(&generic, &other, sizeof generic) == 0) continue;
            if (wrong++ == 0) diag("width %d, variant %d, instruction set %d", (int)widths[at / 8], at % 8, isa);
        }
    }
    ok(wrong == 0, "%s: loops of all instruction sets are bitwise identical", name);
}

int main(void)
{
    test_passes(0, "LayerNorm");
    test_passes(1, "BatchNorm");
    return done();
}
