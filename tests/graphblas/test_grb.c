/* graft_grb.h in a host of GraphBLAS: random products against GrB_mxm, what is copied, and what is left to it.
 * SPDX-License-Identifier: Apache-2.0 */
#include "graphblas/graft_grb.h"
#include "random_calls.h"

#include "harness/tap.h"

static graft_grb grb;
static int       taken;

static GrB_Info mxm(GrB_Matrix c, GrB_Matrix m, GrB_BinaryOp accum, GrB_Semiring s, GrB_Matrix a, GrB_Matrix b,
                    GrB_Descriptor d)
{
    const GrB_Info info = graft_grb_mxm(&grb, c, m, accum, s, a, b, d);

    taken += grb.taken;
    return info;
}

static GrB_Info mxv(GrB_Vector w, GrB_Vector m, GrB_BinaryOp accum, GrB_Semiring s, GrB_Matrix a, GrB_Vector u,
                    GrB_Descriptor d)
{
    const GrB_Info info = graft_grb_mxv(&grb, w, m, accum, s, a, u, d);

    taken += grb.taken;
    return info;
}

static GrB_Info vxm(GrB_Vector w, GrB_Vector m, GrB_BinaryOp accum, GrB_Semiring s, GrB_Vector u, GrB_Matrix a,
                    GrB_Descriptor d)
{
    const GrB_Info info = graft_grb_vxm(&grb, w, m, accum, s, u, a, d);

    taken += grb.taken;
    return info;
}

static const struct products plain = { GrB_mxm, GrB_mxv, GrB_vxm }, tested = { mxm, mxv, vxm };

static void test_random(int calls)
{
    char fault[300];
    int  wrong = 0;

    taken = 0;
    for (int number = 0; number < calls && wrong < 5; number++) {
        if (random_call((uint64_t)number, &tested, &plain, fault, sizeof fault)) continue;
        wrong++;
        diag("call %d (%s): %s", number, grb.taken ? "taken" : grb.why, fault);
    }
    ok(wrong == 0, "%d random calls give what GrB_mxm gives", calls);
    ok(taken > calls / 5, "Graft computed %d of them", taken);
}

int main(int argc, char **argv)
{
    const graft_api *api = NULL;

    GrB_init(GrB_NONBLOCKING);
    if (!ok(graft_load(getenv("GRAFT_LIBRARY"), NULL, &api, NULL) == GRAFT_OK, "the library is opened")) return done();
    ok(graft_grb_begin(&grb, api) == GrB_SUCCESS, "a host of GraphBLAS begins");
    grb.least_work = 0;
    test_random(argc > 1 ? atoi(argv[1]) : 5000);
    api->close(api->context);
    GrB_finalize();
    return done();
}
