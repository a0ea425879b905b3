/* A test of dense products. Copies of a shared node are rows of different blocks on different ranks, and their results
 * must be bitwise identical.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/crc.h"
#include "comm/collective.h"
#include "mgn/inside.h"

#include <string.h>

/* The result of products of equal rows: whether all their rows are equal, and the CRC of one. */
struct trial {
    int      alike;
    uint32_t crc;
};

/* Fill x with GR_MGN_ROWS equal rows, followed by different rows of weights. */
static void fill_trial(const struct gr_mgn *g, int64_t in, int64_t count, void *x)
{
    for (int64_t i = 0; i < count; i++) {
        const int64_t  row = i / in, number = row < GR_MGN_ROWS ? i % in : i;
        const uint32_t bits = (uint32_t)number * 2654435761u + 12345;
        const double   value = 1 + (double)bits / 4294967296.0 / 3;

        if (g->blocks.dtype == GRAFT_F64) ((double *)x)[i] = value;
        else ((float *)x)[i] = (float)value;
    }
}

/* Multiply several numbers of equal rows by the same weights, and check that all rows of the results are equal. With
 * `adds` a second product is added to the first. */
static int32_t try_rows(struct gr_mgn *g, int64_t in, int64_t out, int adds, struct trial *trial, graft_error *error)
{
    struct gr_nn_blocks *b = &g->blocks;
    static const int64_t counts[] = { 1, 2, 3, GR_MGN_ROWS / 2 + 1, GR_MGN_ROWS };
    const uint64_t       bytes = (uint64_t)(out * b->element);
    char                *x = NULL, *y = NULL;
    struct gr_nn_matrix  w = { .stride = in, .out = out, .in = in };
    int32_t              rc = GRAFT_OK;

    GR_TRY_DONE(GR_NEW(g->context, x, (GR_MGN_ROWS + out) * in * b->element, error));
    GR_TRY_DONE(GR_NEW(g->context, y, (GR_MGN_ROWS + 1) * out * b->element, error));
    w.at = x + GR_MGN_ROWS * in * b->element;
    fill_trial(g, in, (GR_MGN_ROWS + out) * in, x);
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        memset(y + bytes, 0, GR_MGN_ROWS * bytes);
        for (int k = 0; k <= adds; k++) gr_nn_multiply(b, 0, w, counts[i], x, k, y + bytes);
        if (i == 0) memcpy(y, y + bytes, bytes);
        for (int64_t row = 1; row <= counts[i]; row++) trial->alike &= memcmp(y, y + row * (int64_t)bytes, bytes) == 0;
    }
    trial->crc = gr_crc(trial->crc, y, bytes);
    rc = gr_nn_products_status(b, error);
done:
    gr_free(g->context, x);
    gr_free(g->context, y);
    return rc;
}

static int32_t try_module(struct gr_mgn *g, struct trial *trial, graft_error *error)
{
    const int64_t width = gr_mgn_width(g);

    GR_TRY(try_rows(g, g->shape->n_node_in, width, 0, trial, error));
    GR_TRY(try_rows(g, width, width, 1, trial, error));
    return try_rows(g, width, g->shape->n_out, 0, trial, error);
}

int32_t gr_mgn_products_agree(struct gr_mgn *g, graft_error *error)
{
    struct gr_nn_blocks *b = &g->blocks;
    struct gr_comm      *comm = g->mesh->comm;
    struct trial         trial = { .alike = 1 };
    int64_t              least[2], most[2];
    int32_t              rc = GRAFT_OK;

    if (!b->form.is_whole) return GRAFT_OK;
    GR_TRY(gr_comm_agree(comm, try_module(g, &trial, error), error));
    least[0] = most[0] = trial.alike;
    least[1] = most[1] = trial.crc;
    GR_TRY(gr_comm_min(comm, least, 2, error));
    GR_TRY(gr_comm_max(comm, most, 2, error));
    if (least[0] != 0 && least[1] == most[1]) return GRAFT_OK;
    if (comm->rank == 0)
        gr_log(g->context, GRAFT_LOG_WARNING,
               "plain loops do the products of this network: with dense module %s copies of a shared node would differ "
               "in their last bits%s",
               b->dense->name, least[0] != 0 ? ", because the processors or modules of ranks differ" : "");
    gr_nn_blocks_fini(b);
    rc = gr_nn_use_module(b, gr_module_find(g->context, "dense", gr_dense_reference.name), error);
    return gr_comm_agree(comm, rc, error);
}
