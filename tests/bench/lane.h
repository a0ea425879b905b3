/* Lanes, which are measured side by side. A lane is one kernel in one form, and one line of the table.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_LANE_H
#define BENCH_LANE_H

#include "graft_mxm.h"
#include "inputs.h"

enum bench_state { BENCH_READY, BENCH_ABSENT, BENCH_WRONG };

struct bench_lane {
    const char      *kernel, *label;
    enum bench_form  form; /* whose result this lane must have */
    enum bench_state state;
    char             note[256]; /* why it is absent or wrong */
    int              wanted, runs;
    double          *seconds; /* [wanted], the first `runs` of them measured */
    double           median;
    double           bytes; /* bytes of one run for the table; 0: those of the product */
    void            *self;

    /** Run once and give the seconds; negative, with the reason in note, if it cannot be done. For a check, C begins as
     *  it is in `output` and ends there; else `output` is scratch. */
    double (*run)(struct bench_lane *lane, struct bench_output *output, int check);
};

struct bench_lanes {
    struct bench_lane *at;
    int                count;
};

/** Add a lane and return it; valid until the next one is added. The texts are borrowed. */
struct bench_lane *bench_lanes_add(struct bench_lanes *lanes, const struct bench_lane *lane);
void               bench_lanes_fini(struct bench_lanes *lanes);

/** graft.mxm/1 with the matrices that all kernels share. */
struct bench_graft {
    const graft_api           *api;
    const graft_mxm_api       *mxm;
    const struct bench_inputs *inputs;
    graft_matrix              *matrix, *weighted;
};

void bench_graft_init(struct bench_graft *graft, const graft_api *api, const struct bench_inputs *inputs);
void bench_graft_fini(struct bench_graft *graft);

/** `run` of a lane whose self is a bench_graft: the kernel of the lane, which must do it itself. */
double bench_graft_run(struct bench_lane *lane, struct bench_output *output, int check);

/** A plain copy by all threads, of arrays that no cache holds. */
struct bench_copy;
struct bench_copy *bench_copy_create(int threads, struct bench_lanes *lanes);
void               bench_copy_destroy(struct bench_copy *copy);

/** GrB_mxm called without Graft: lanes "plain_accum", "plain", "mask_bits_50" and "mask_apart" of kernel
 *  BENCH_GRB_NAME. There where the benchmark was built with GraphBLAS. */
#define BENCH_GRB_NAME "GrB_mxm"
struct bench_grb;
struct bench_grb *bench_grb_create(const struct bench_inputs *inputs, struct bench_lanes *lanes);
void              bench_grb_destroy(struct bench_grb *grb);

#endif
