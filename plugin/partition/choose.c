/* The table of partition methods, and the choice of the method with the shortest predicted epoch.
 * SPDX-License-Identifier: Apache-2.0 */
#include "partition/choose.h"

#include "base/memory.h"
#include "partition/metis.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *const method_names[GR_PARTITION_METHODS] = { "block", "hash", "stream", "metis" };

/* What is to be cut, and by what it is judged. */
struct request {
    const graft_context            *context;
    const struct gr_slice          *slice;
    int32_t                         parts;
    const struct gr_partition_cost *cost;
    const struct gr_meanwhile      *meanwhile;
};

static int32_t run_method(const struct request *r, enum gr_partition_method method, int32_t *owner, graft_error *error)
{
    static const int64_t before[GR_SHARES];
    int64_t              total[GR_SHARES];

    switch (method) {
    case GR_PARTITION_HASH: gr_partition_hash(0, r->slice->rows->n_rows, r->parts, owner); return GRAFT_OK;
    case GR_PARTITION_STREAM: return gr_partition_stream(r->context, r->slice, r->parts, owner, error);
    case GR_PARTITION_METIS: return gr_partition_metis(r->context, r->slice, r->parts, r->meanwhile, owner, error);
    default:
        gr_slice_total(r->slice, total);
        gr_partition_block(r->slice, before, total, r->parts, owner);
        return GRAFT_OK;
    }
}

/* Partition with one method, and predict the time of an epoch. */
static int32_t try_method(const struct request *r, enum gr_partition_method method, int32_t *owner, double *seconds,
                          graft_error *error)
{
    struct gr_partition_measure measure;
    int32_t                     rc = GRAFT_OK;

    if (r->meanwhile != NULL) GR_TRY(r->meanwhile->call(r->meanwhile->arg, error));
    GR_TRY(run_method(r, method, owner, error));
    GR_TRY(gr_partition_measure_init(r->context, &measure, r->slice, r->parts, owner, error));
    *seconds = gr_partition_seconds(&measure, r->cost);
    gr_partition_measure_fini(r->context, &measure);
done:
    return rc;
}

__attribute__((format(printf, 2, 3))) static void append_reason(struct gr_partition_choice *choice, const char *format,
                                                                ...)
{
    const size_t length = strlen(choice->why);
    va_list      list;

    va_start(list, format);
    vsnprintf(choice->why + length, sizeof choice->why - length, format, list);
    va_end(list);
}

/* Try one more method. If it is better than those before, `best` becomes its owners. */
static int32_t try_next(const struct request *r, enum gr_partition_method method, int32_t *owner, int32_t *best,
                        struct gr_partition_choice *choice, graft_error *error)
{
    graft_error   refusal = GRAFT_INIT(graft_error);
    double       *seconds = &choice->seconds[method];
    const int32_t rc = try_method(r, method, owner, seconds, &refusal);

    if (rc < 0 && method == GR_PARTITION_METIS && rc != GRAFT_ERR_NOMEM && rc != GRAFT_ERR_PEER) {
        append_reason(choice, ", metis not (%.80s)", refusal.message);
        return GRAFT_OK;
    }
    if (rc < 0) {
        *error = refusal;
        return rc;
    }
    append_reason(choice, "%s %s %.3g s", method == 0 ? "" : ",", method_names[method], *seconds);
    if (method > 0 && *seconds >= choice->seconds[choice->method]) return GRAFT_OK;
    choice->method = method;
    memcpy(best, owner, (size_t)r->slice->rows->n_rows * sizeof *best);
    return GRAFT_OK;
}

int32_t gr_partition_choose(const graft_context *context, const struct gr_slice *slice, int32_t parts,
                            enum gr_partition_method method, const struct gr_partition_cost *cost,
                            const struct gr_meanwhile *meanwhile, int32_t *owner, struct gr_partition_choice *choice,
                            graft_error *error)
{
    const struct request       request = { context, slice, parts, cost, meanwhile };
    struct gr_partition_choice made = { .why = "predicted for an epoch:" };
    const int64_t              n = slice->rows->n_rows;
    int32_t                   *tried = NULL, *best = NULL, rc;

    for (int k = 0; k < GR_PARTITION_METHODS; k++) made.seconds[k] = -1;
    GR_TRY(GR_NEW(context, tried, n, error));
    GR_TRY(GR_NEW(context, best, n, error));
    if (method != GR_PARTITION_AUTO) {
        made.method = method;
        GR_TRY(try_method(&request, method, best, &made.seconds[method], error));
        append_reason(&made, " %s %.3g s", method_names[method], made.seconds[method]);
    } else {
        for (int k = 0; k < GR_PARTITION_METHODS; k++)
            GR_TRY(try_next(&request, (enum gr_partition_method)k, tried, best, &made, error));
        append_reason(&made, "; chosen: %s", method_names[made.method]);
    }
    memcpy(owner, best, (size_t)n * sizeof *owner);
    if (choice != NULL) *choice = made;
done:
    gr_free(context, tried);
    gr_free(context, best);
    return rc;
}
