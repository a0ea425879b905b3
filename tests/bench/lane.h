/* The lanes of the benchmark. A lane is one kernel with one form of the product, and one line of the printed table.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_LANE_H
#define BENCH_LANE_H

#include "graft_mxm.h"
#include "inputs.h"

enum bench_state { BENCH_READY, BENCH_ABSENT, BENCH_WRONG };

struct bench_lane {
    const char      *kernel, *label;
    enum bench_form  form; /* form whose result this lane must compute */
    enum bench_state state;
    char             note[256]; /* reason why the lane is absent or wrong */
    int              wanted, runs;
    double          *seconds; /* [wanted] times, of which the first `runs` are measured */
    double           median;
    double           bytes; /* bytes of one run in the table; 0 means those of the product */
    void            *self;

    /** Run the lane once. Returns the seconds, or a negative number with the reason in note if the lane cannot run.
     *  With `check`, C has the initial values in `output`, and the result is stored there. Without it, the lane may
     *  overwrite `output` with arbitrary values. */
    double (*run)(struct bench_lane *lane, struct bench_output *output, int check);
};

struct bench_lanes {
    struct bench_lane *at;
    int                count;
};

/** Add a lane, and return a pointer to it, which is valid until the next lane is added. The strings are borrowed. */
struct bench_lane *bench_lanes_add(struct bench_lanes *lanes, const struct bench_lane *lane);
void               bench_lanes_fini(struct bench_lanes *lanes);

/** Interface graft.mxm/1, and the matrices that all kernels share. */
struct bench_graft {
    const graft_api           *api;
    const graft_mxm_api       *mxm;
    const struct bench_inputs *inputs;
    graft_matrix              *matrix, *weighted;
};

void bench_graft_init(struct bench_graft *graft, const graft_api *api, const struct bench_inputs *inputs);
void bench_graft_fini(struct bench_graft *graft);

/** Function `run` of a lane whose self is a bench_graft. The kernel of the lane must compute the product itself,
 *  without delegating it to another kernel. */
double bench_graft_run(struct bench_lane *lane, struct bench_output *output, int check);

/** A plain copy by all threads. Its arrays are larger than the caches. */
struct bench_copy;
struct bench_copy *bench_copy_create(int threads, struct bench_lanes *lanes);
void               bench_copy_destroy(struct bench_copy *copy);

/** GrB_mxm without Graft: lanes "plain_accum", "plain", "mask_bits_50" and "mask_apart" of kernel BENCH_GRB_NAME. They
 *  exist if the benchmark was built with GraphBLAS. */
#define BENCH_GRB_NAME "GrB_mxm"
struct bench_grb;
struct bench_grb *bench_grb_create(const struct bench_inputs *inputs, struct bench_lanes *lanes);
void              bench_grb_destroy(struct bench_grb *grb);

#endif
