/* Guard zones around the outputs of a product, with option check=full. The kernel writes to copies in memory of the
 * library. Guard zones and gaps between rows must be unchanged; then the rows are copied to the host.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/dtype.h"
#include "base/memory.h"
#include "base/options.h"
#include "kernel/kernel.h"

#include <string.h>

enum { GUARD = 4096, PATTERN = 0xB7, AREAS = 3 };

/* One array of the host, and its copy between two guard zones. */
struct area {
    const char *name;
    char       *host, *block; /* NULL: the product has no such array */
    int64_t     rows, row_bytes, stride;
};

struct gr_guard {
    graft_context        *context;
    const graft_mxm_args *args; /* the host's arguments */
    struct area           area[AREAS];
    graft_dense           c;
    graft_epilogue        epilogue;
};

static int64_t length(const struct area *a)
{
    return a->rows > 0 ? (a->rows - 1) * a->stride + a->row_bytes : 0;
}

static void copy_rows(const struct area *a, int to_host, int64_t begin, int64_t end)
{
    for (int64_t row = begin; row < end && a->host != NULL; row++) {
        char *host = a->host + row * a->stride, *ours = a->block + GUARD + row * a->stride;

        memcpy(to_host ? host : ours, to_host ? ours : host, (uint64_t)a->row_bytes);
    }
}

static int32_t area_init(graft_context *context, struct area *a, graft_error *error)
{
    if (a->host == NULL) return GRAFT_OK;
    if (GR_NEW(context, a->block, length(a) + 2 * GUARD, error) < 0) return GRAFT_ERR_NOMEM;
    memset(a->block, PATTERN, (uint64_t)(length(a) + 2 * GUARD));
    copy_rows(a, 0, 0, a->rows);
    return GRAFT_OK;
}

static void rows_done(void *arg, int32_t thread, int64_t begin, int64_t end)
{
    const struct gr_guard *g = arg;

    for (int i = 0; i < AREAS; i++) copy_rows(&g->area[i], 1, begin, end);
    g->args->rows_done(g->args->rows_arg, thread, begin, end);
}

static void describe_areas(struct gr_guard *g)
{
    const graft_mxm_args *args = g->args;
    const graft_dense    *c = args->c;
    const int64_t         element = gr_dtype_bytes(c->dtype), index = gr_dtype_bytes(args->a->csr.index_type);

    g->area[0] = (struct area){ "C", c->data, NULL, c->n_rows, c->n_cols * element, c->stride * element };
    g->area[1] =
        (struct area){ "winner", args->winner, NULL, c->n_rows, c->n_cols * index, args->winner_stride * index };
    if (args->epilogue != NULL)
        g->area[2] = (struct area){ "bits",    (char *)args->epilogue->bits, NULL,
                                    c->n_rows, (c->n_cols + 7) / 8,          args->epilogue->bits_stride };
}

int32_t gr_mxm_guard_begin(graft_context *context, const graft_mxm_args *args, graft_mxm_args *inside,
                           struct gr_guard **guard, graft_error *error)
{
    struct gr_guard *g = NULL;
    int32_t          rc = GRAFT_OK;

    *inside = *args;
    if (gr_base_options(context)->check != GR_CHECK_FULL || args->c->n_rows == 0 || args->c->n_cols == 0)
        return GRAFT_OK;
    GR_TRY_DONE(GR_NEW(context, g, 1, error));
    g->context = context;
    g->args = args;
    describe_areas(g);
    for (int i = 0; i < AREAS; i++) GR_TRY_DONE(area_init(context, &g->area[i], error));
    g->c = *args->c;
    g->c.data = g->area[0].block + GUARD;
    inside->c = &g->c;
    if (args->winner != NULL) inside->winner = g->area[1].block + GUARD;
    if (args->epilogue != NULL && args->epilogue->bits != NULL) {
        g->epilogue = *args->epilogue;
        g->epilogue.bits = (uint8_t *)g->area[2].block + GUARD;
        inside->epilogue = &g->epilogue;
    }
    if (args->rows_done != NULL) {
        inside->rows_done = rows_done;
        inside->rows_arg = g;
    }
    *guard = g;
    g = NULL;
done:
    gr_mxm_guard_end(g);
    return rc;
}

/* Find the first byte of a range that differs from PATTERN; NULL if there is none. */
static const char *find_written(const char *at, int64_t bytes)
{
    for (int64_t i = 0; i < bytes; i++)
        if ((uint8_t)at[i] != PATTERN) return at + i;
    return NULL;
}

static const char *area_written(const struct area *a)
{
    const char *begin = a->block + GUARD, *found = find_written(a->block, GUARD);

    if (found == NULL) found = find_written(begin + length(a), GUARD);
    for (int64_t row = 0; row + 1 < a->rows && found == NULL; row++)
        found = find_written(begin + row * a->stride + a->row_bytes, a->stride - a->row_bytes);
    return found;
}

int32_t gr_mxm_guard_check(const struct gr_guard *g, const char *kernel, graft_error *error)
{
    for (int i = 0; i < AREAS; i++) {
        const struct area *a = &g->area[i];
        const char        *found = a->host != NULL ? area_written(a) : NULL;

        if (found != NULL)
            return gr_fail(error, GRAFT_ERR_MODULE,
                           "kernel %s wrote outside of %s: %lld bytes after its begin, where rows have %lld bytes and "
                           "begin %lld bytes apart",
                           kernel, a->name, (long long)(found - a->block - GUARD), (long long)a->row_bytes,
                           (long long)a->stride);
    }
    return GRAFT_OK;
}

void gr_mxm_guard_finish(const struct gr_guard *g)
{
    for (int i = 0; i < AREAS; i++) copy_rows(&g->area[i], 1, 0, g->area[i].rows);
}

void gr_mxm_guard_end(struct gr_guard *g)
{
    if (g == NULL) return;
    for (int i = 0; i < AREAS; i++) gr_free(g->context, g->area[i].block);
    gr_free(g->context, g);
}
