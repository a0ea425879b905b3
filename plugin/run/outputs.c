/* The outputs of a prediction: checks the arrays of the host, and fills them from logits.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/assert.h"
#include "base/finite.h"
#include "kernel/kernel.h"
#include "run/pass.h"
#include "run/setup.h"

#include <math.h>
#include <string.h>

static int64_t output_rows(const struct gr_setup *s, const struct gr_outputs *o)
{
    return o->vertices != NULL ? o->n : gr_dataset_host_rows(&s->data);
}

static int32_t check_output(const struct gr_setup *s, const struct gr_outputs *o, const graft_dense *out,
                            const char *name, graft_error *error)
{
    const int64_t rows = output_rows(s, o), classes = s->data.given.n_classes;
    int32_t       rc;

    if (out == NULL) return GRAFT_OK;
    rc = gr_dense_check(out, name, error);
    if (rc < 0 || (out->dtype == GRAFT_F32 && out->n_rows == rows && out->n_cols == classes)) return rc;
    return gr_fail(error, GRAFT_ERR_ARG, "%s are %lld x %lld of dtype %d; expected %lld x %lld of GRAFT_F32 (1)", name,
                   (long long)out->n_rows, (long long)out->n_cols, out->dtype, (long long)rows, (long long)classes);
}

int32_t gr_setup_check_outputs(const struct gr_setup *s, const struct gr_outputs *o, graft_error *error)
{
    int32_t rc = GRAFT_OK;

    GR_TRY(check_output(s, o, o->logits, "logits", error));
    GR_TRY(check_output(s, o, o->probabilities, "probabilities", error));
    if (gr_is_regression(&s->model.config) && (o->labels != NULL || o->probabilities != NULL))
        return gr_fail(error, GRAFT_ERR_ARG, "%s are given, but with loss %s there are no classes; expected NULL",
                       o->labels != NULL ? "labels" : "probabilities", gr_loss_name(s->model.config.loss.kind));
done:
    return rc;
}

/* Probabilities of one class among all, or of each class separately. */
static void put_probabilities(const struct gr_setup *s, const float *x, float *out)
{
    const int64_t classes = s->data.given.n_classes;
    const float   highest = x[gr_argmax(x, classes)];
    float         sum = 0;

    if (s->model.config.loss.kind == GR_LOSS_SIGMOID) {
        for (int64_t j = 0; j < classes; j++) {
            const float e = expf(-fabsf(x[j]));

            out[j] = x[j] >= 0 ? 1 / (1 + e) : e / (1 + e);
        }
        return;
    }
    for (int64_t j = 0; j < classes; j++) sum += out[j] = expf(gr_below(x[j], highest));
    for (int64_t j = 0; j < classes; j++) out[j] /= sum;
}

static void put_row(const struct gr_setup *s, const struct gr_outputs *o, int64_t at, const float *logits)
{
    if (o->logits != NULL)
        memcpy((float *)o->logits->data + at * o->logits->stride, logits,
               (uint64_t)s->data.given.n_classes * sizeof *logits);
    if (o->probabilities != NULL)
        put_probabilities(s, logits, (float *)o->probabilities->data + at * o->probabilities->stride);
}

static void put_all(const struct gr_setup *s, const struct gr_outputs *o, int64_t at, const float *logits)
{
    if (o->labels != NULL) o->labels[at] = (int32_t)gr_argmax(logits, s->data.given.n_classes);
    put_row(s, o, at, logits);
}

/* For a list: place[v] is the row of the logits of vertex v, if the setup has a separate order. */
static int32_t give_list(const struct gr_setup *s, const struct gr_outputs *o, graft_error *error)
{
    const float  *logits = gr_run_logits(&s->run);
    const int64_t rows = s->derived.reach[s->model.config.n_layers];
    int64_t      *place = NULL;
    int32_t       rc = GRAFT_OK;

    if (s->derived.row != NULL) GR_TRY(GR_NEW(s->context, place, s->data.n, error));
    for (int64_t i = 0; i < rows && s->derived.row != NULL; i++) place[s->derived.row[i]] = i;
    for (int64_t i = 0; i < o->n; i++) {
        const int64_t row = gr_vertex(place, o->vertices[i]);

        GR_ASSERT(row < rows);
        put_all(s, o, i, logits + row * s->data.given.n_classes);
    }
done:
    gr_free(s->context, place);
    return rc;
}

/* Predictions of this rank, and predictions that are sent to slices and received. */
struct prediction {
    int32_t *mine, *slice; /* labels; outputs are written when nothing can fail afterwards */
    float   *logits;       /* [n x classes] in the order of owners, if the setup has another order */
    float   *rows;
};

static int32_t prediction_init(const struct gr_setup *s, struct prediction *p, int labels, int logits,
                               graft_error *error)
{
    const int64_t classes = s->data.given.n_classes, n_slice = s->data.over->n_slice;
    int32_t       rc = GRAFT_OK;

    if (labels) GR_TRY(GR_NEW(s->context, p->mine, s->data.n, error));
    if (labels) GR_TRY(GR_NEW(s->context, p->slice, n_slice, error));
    if (logits) GR_TRY(GR_NEW(s->context, p->rows, n_slice * classes, error));
    if (logits && s->derived.row != NULL) rc = GR_NEW(s->context, p->logits, s->data.n * classes, error);
done:
    return rc;
}

/* Fill labels and logits in the order of rows of the owner, from the vertices of the setup. */
static void fill_prediction(const struct gr_setup *s, const float *logits, struct prediction *p)
{
    const int64_t classes = s->data.given.n_classes;

    for (int64_t v = 0; v < s->data.n; v++) {
        const int64_t row = gr_vertex(s->derived.row, v);

        if (p->mine != NULL) p->mine[row] = (int32_t)gr_argmax(logits + v * classes, classes);
        if (p->logits != NULL)
            memcpy(p->logits + row * classes, logits + v * classes, (uint64_t)classes * sizeof *logits);
    }
}

static void prediction_fini(const struct gr_setup *s, struct prediction *p)
{
    gr_free(s->context, p->mine);
    gr_free(s->context, p->slice);
    gr_free(s->context, p->logits);
    gr_free(s->context, p->rows);
}

static int32_t give_over_ranks(struct gr_setup *s, const float *logits, const struct gr_outputs *o, graft_error *error)
{
    const int64_t     classes = s->data.given.n_classes, first = s->data.over->first[s->data.over->comm->rank];
    int               wants_labels = o->labels != NULL, wants_logits = o->logits != NULL || o->probabilities != NULL;
    struct prediction p = { 0 };
    int32_t           rc = GRAFT_OK;

    GR_ASSERT(s->data.n == s->data.over->n_owned);
    GR_TRY(gr_strategy_any(s->run.strategy, &wants_labels, error));
    GR_TRY(gr_strategy_any(s->run.strategy, &wants_logits, error));
    GR_TRY(gr_strategy_agree(s->run.strategy, prediction_init(s, &p, wants_labels, wants_logits, error), error));
    fill_prediction(s, logits, &p);
    if (wants_labels) GR_TRY(gr_dataset_return_rows(&s->data, p.mine, 4, p.slice, error));
    if (wants_logits)
        GR_TRY(gr_dataset_return_rows(&s->data, p.logits != NULL ? p.logits : logits, classes * 4, p.rows, error));
    for (int64_t i = 0; i < output_rows(s, o); i++) {
        const int64_t row = o->vertices != NULL ? o->vertices[i] - first : i;

        if (o->labels != NULL) o->labels[i] = p.slice[row];
        if (wants_logits) put_row(s, o, i, p.rows + row * classes);
    }
done:
    prediction_fini(s, &p);
    return rc;
}

int32_t gr_setup_give(struct gr_setup *s, const struct gr_outputs *o, graft_error *error)
{
    const float *logits = gr_run_logits(&s->run);

    if (s->data.over != NULL) return give_over_ranks(s, logits, o, error);
    GR_ASSERT(s->given == NULL || !gr_masks_rows(s) || !s->run.input.is_constant);
    if (o->vertices != NULL) return give_list(s, o, error);
    for (int64_t i = 0; i < s->data.n; i++)
        put_all(s, o, gr_vertex(s->derived.row, i), logits + i * s->data.given.n_classes);
    return GRAFT_OK;
}
