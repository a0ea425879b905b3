/* The table of partition methods; chooses the method with the shortest predicted epoch.
 * SPDX-License-Identifier: Apache-2.0 */
#include "partition/choose.h"

#include "base/assert.h"
#include "base/memory.h"
#include "partition/child.h"

#include <string.h>

#define METHOD(constant, word, whole) { #word, whole, gr_partition_##word },

static const struct {
    const char *name;
    int         whole;
    int32_t (*partition)(const struct gr_partition_input *input, int32_t *mine, graft_error *error);
} methods[GR_PARTITION_METHODS] = { GR_PARTITION_MAP(METHOD) };

const char *gr_partition_name(enum gr_partition_method method)
{
    if (method < GR_PARTITION_METHODS) return methods[method].name;
    return method == GR_PARTITION_AUTO ? "auto" : "given";
}

int gr_partition_needs_whole(enum gr_partition_method method)
{
    return method == GR_PARTITION_AUTO || (method < GR_PARTITION_METHODS && methods[method].whole);
}

int32_t gr_partition_run(enum gr_partition_method method, const struct gr_partition_input *input, int32_t *mine,
                         graft_error *error)
{
    GR_ASSERT(method < GR_PARTITION_METHODS);
    return methods[method].partition(input, mine, error);
}

struct request {
    struct gr_partition_input       input;
    const struct gr_partition_cost *cost;
};

/* Partition with one method, and predict the time of an epoch. */
static int32_t try_method(const struct request *r, enum gr_partition_method method, int32_t *owner, double *seconds,
                          graft_error *error)
{
    const struct gr_partition_input *in = &r->input;
    struct gr_partition_measure      measure;

    if (in->meanwhile != NULL) GR_TRY(in->meanwhile->call(in->meanwhile->arg, error));
    GR_TRY(gr_partition_run(method, in, owner, error));
    GR_TRY(gr_partition_measure_init(in->context, &measure, in->slice, in->parts, owner, error));
    *seconds = gr_partition_seconds(&measure, r->cost);
    gr_partition_measure_fini(in->context, &measure);
    return GRAFT_OK;
}

/* Try one more method. If it is better than all methods before, `best` receives its owners. */
static int32_t try_next(const struct request *r, enum gr_partition_method method, int32_t *owner, int32_t *best,
                        struct gr_partition_choice *choice, struct gr_text *skipped, graft_error *error)
{
    graft_error   refusal = GRAFT_INIT(graft_error);
    double       *seconds = &choice->seconds[method];
    const int32_t rc = try_method(r, method, owner, seconds, &refusal);

    if (gr_partition_goes_on(rc)) {
        gr_text_add(skipped, ", %s not (%.80s)", methods[method].name, refusal.message);
        return GRAFT_OK;
    }
    if (rc < 0) {
        *error = refusal;
        return rc;
    }
    if (method > 0 && *seconds >= choice->seconds[choice->method]) return GRAFT_OK;
    choice->method = method;
    memcpy(best, owner, (size_t)r->input.slice->rows->n_rows * sizeof *best);
    return GRAFT_OK;
}

void gr_partition_list_predictions(const struct gr_partition_choice *choice, int is_relative, struct gr_text *text)
{
    const double seconds = choice->seconds[choice->method], fastest = seconds > 0 ? seconds : 1;
    const char  *before = "";

    gr_text_add(text, "predicted for an epoch%s:", is_relative ? " relative to the fastest" : "");
    for (int k = 0; k < GR_PARTITION_METHODS; k++) {
        if (choice->seconds[k] < 0) continue;
        if (is_relative) gr_text_add(text, "%s %s %.3g", before, methods[k].name, choice->seconds[k] / fastest);
        else gr_text_add(text, "%s %s %.3g s", before, methods[k].name, choice->seconds[k]);
        before = ",";
    }
    gr_text_add(text, "%s; chosen: %s", choice->skipped, methods[choice->method].name);
}

int32_t gr_partition_choose(const graft_context *context, const struct gr_slice *slice, int32_t parts,
                            enum gr_partition_method method, const struct gr_partition_cost *cost,
                            const struct gr_meanwhile *meanwhile, int32_t *owner, struct gr_partition_choice *choice,
                            graft_error *error)
{
    const struct request request = { { .context = context, .slice = slice, .parts = parts, .meanwhile = meanwhile },
                                     cost };
    struct gr_partition_choice made = { .method = GR_PARTITION_BLOCK };
    struct gr_text             why = { made.why, sizeof made.why };
    struct gr_text             skipped = { made.skipped, sizeof made.skipped };
    const int64_t              n = slice->rows->n_rows;
    int32_t                   *tried = NULL, *best = NULL, rc;

    for (int k = 0; k < GR_PARTITION_METHODS; k++) made.seconds[k] = -1;
    GR_TRY_DONE(GR_NEW(context, tried, n, error));
    GR_TRY_DONE(GR_NEW(context, best, n, error));
    if (method != GR_PARTITION_AUTO) {
        made.method = method;
        GR_TRY_DONE(try_method(&request, method, best, &made.seconds[method], error));
        gr_text_add(&why, "predicted for an epoch: %s %.3g s", methods[method].name, made.seconds[method]);
    } else {
        for (int k = 0; k < GR_PARTITION_METHODS; k++)
            GR_TRY_DONE(try_next(&request, (enum gr_partition_method)k, tried, best, &made, &skipped, error));
        gr_partition_list_predictions(&made, 0, &why);
    }
    memcpy(owner, best, (size_t)n * sizeof *owner);
    if (choice != NULL) *choice = made;
done:
    gr_free(context, tried);
    gr_free(context, best);
    return rc;
}
