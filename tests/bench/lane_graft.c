/* Lanes whose products call graft.mxm/1, and the list of all lanes.
 * SPDX-License-Identifier: Apache-2.0 */
#include "bench.h"
#include "lane.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct bench_lane *bench_lanes_add(struct bench_lanes *lanes, const struct bench_lane *lane)
{
    struct bench_lane *grown = realloc(lanes->at, ((size_t)lanes->count + 1) * sizeof *grown);

    if (grown == NULL) bench_die("no memory for %d lanes", lanes->count + 1);
    lanes->at = grown;
    grown[lanes->count] = *lane;
    return &grown[lanes->count++];
}

void bench_lanes_fini(struct bench_lanes *lanes)
{
    for (int i = 0; i < lanes->count; i++) free(lanes->at[i].seconds);
    free(lanes->at);
}

static graft_matrix *lane_graft_make_matrix(const struct bench_graft *graft, const float *weights)
{
    const struct bench_graph *graph = graft->inputs->graph;
    graft_error               error = GRAFT_INIT(graft_error);
    graft_csr                 csr = GRAFT_INIT(graft_csr);
    graft_matrix             *matrix = NULL;

    csr.index_type = GRAFT_I32;
    csr.value_type = weights != NULL ? GRAFT_F32 : 0;
    csr.n_rows = csr.n_cols = graph->n;
    csr.row_ptr = graph->row_ptr;
    csr.col_idx = graph->col_idx;
    csr.values = weights;
    if (graft->mxm->matrix_create(graft->api->context, &csr, 0, &matrix, &error) < 0) bench_die("%s", error.message);
    return matrix;
}

void bench_graft_init(struct bench_graft *graft, const graft_api *api, const struct bench_inputs *inputs)
{
    *graft = (struct bench_graft){ .api = api, .inputs = inputs };
    graft->mxm = api->get_interface(api->context, GRAFT_MXM_ID);
    if (graft->mxm == NULL) bench_die("this library has no %s", GRAFT_MXM_ID);
    graft->matrix = lane_graft_make_matrix(graft, NULL);
    graft->weighted = lane_graft_make_matrix(graft, inputs->weights);
}

void bench_graft_fini(struct bench_graft *graft)
{
    graft->mxm->matrix_destroy(graft->matrix);
    graft->mxm->matrix_destroy(graft->weighted);
}

/** The arguments of one form, and the structs to which they point. */
struct call {
    graft_mxm_args args;
    graft_dense    b, c;
    graft_mask     mask;
};

static void lane_graft_set_mask(struct call *call, const struct bench_inputs *inputs, graft_mask_kind kind)
{
    call->mask = GRAFT_INIT(graft_mask);
    call->mask.kind = kind;
    call->mask.present = kind == GRAFT_MASK_ROWS ? inputs->rows : inputs->bits;
    call->mask.stride = kind == GRAFT_MASK_ROWS ? 0 : inputs->bits_stride;
    call->args.mask = &call->mask;
}

static void set_form(struct call *call, const struct bench_graft *graft, enum bench_form form,
                     struct bench_output *output)
{
    const struct bench_inputs *inputs = graft->inputs;

    switch (form) {
    case BENCH_MASK_BITS: lane_graft_set_mask(call, inputs, GRAFT_MASK_BITS); break;
    case BENCH_MASK_ROWS: lane_graft_set_mask(call, inputs, GRAFT_MASK_ROWS); break;
    case BENCH_MEAN: call->args.row_scale = inputs->one_over_degree; break;
    case BENCH_MAX: call->args.semiring = GRAFT_MAX_SECOND; break;
    case BENCH_MAX_WINNER:
        call->args.semiring = GRAFT_MAX_SECOND;
        call->args.winner = output->winner;
        call->args.winner_stride = inputs->width;
        break;
    case BENCH_BF16:
        call->b.dtype = GRAFT_BF16;
        call->b.data = inputs->b_bf16;
        break;
    case BENCH_WEIGHTED:
        call->args.semiring = GRAFT_PLUS_TIMES;
        call->args.a = graft->weighted;
        break;
    default: break;
    }
}

static void make_call(struct call *call, const struct bench_graft *graft, enum bench_form form,
                      struct bench_output *output)
{
    const struct bench_inputs *inputs = graft->inputs;

    call->b = GRAFT_INIT(graft_dense);
    call->b.dtype = GRAFT_F32;
    call->b.n_rows = inputs->graph->n;
    call->b.n_cols = call->b.stride = inputs->width;
    call->c = call->b;
    call->b.stride = inputs->stride;
    call->b.data = inputs->b;
    call->c.data = output->c;
    call->args = GRAFT_INIT(graft_mxm_args);
    call->args.semiring = GRAFT_PLUS_SECOND;
    call->args.threads = inputs->threads;
    call->args.a = graft->matrix;
    call->args.b = &call->b;
    call->args.c = &call->c;
    set_form(call, graft, form, output);
}

/** Returns whether explain() reports that the kernel of the lane computed the last product itself. Otherwise the reason
 *  is written to note. */
static int ran_itself(struct bench_lane *lane, const struct bench_graft *graft)
{
    const size_t length = strlen(lane->kernel);
    char         text[512] = "";
    const char  *reason;

    graft->mxm->explain(graft->api->context, NULL, text, sizeof text, NULL);
    if (strncmp(text, lane->kernel, length) == 0 && text[length] == ' ') return 1;
    reason = strchr(text, '\n') != NULL ? strchr(text, '\n') + 1 : text;
    snprintf(lane->note, sizeof lane->note, "another kernel stood in: %.*s", (int)strcspn(reason, "\n"), reason);
    return 0;
}

double bench_graft_run(struct bench_lane *lane, struct bench_output *output, int check)
{
    const struct bench_graft *graft = lane->self;
    graft_error               error = GRAFT_INIT(graft_error);
    struct call               call;
    double                    seconds;
    int32_t                   rc;

    (void)check; /* the product writes directly into the output */
    make_call(&call, graft, lane->form, output);
    rc = graft->api->set(graft->api->context, "mxm.kernel", lane->kernel, &error);
    seconds = -bench_seconds();
    if (rc == GRAFT_OK) rc = graft->mxm->run(graft->api->context, &call.args, &error);
    seconds += bench_seconds();
    if (rc == GRAFT_OK) return ran_itself(lane, graft) ? seconds : -1;
    snprintf(lane->note, sizeof lane->note, "%.*s", (int)strcspn(error.message, "\n"), error.message);
    return -1;
}
