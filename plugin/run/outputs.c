/* Checks the host's arrays for the outputs of a prediction, and fills them from logits.
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
    rc = gr_kernel_dense_check(out, name, error);
    if (rc < 0 || (out->dtype == GRAFT_F32 && out->n_rows == rows && out->n_cols == classes)) return rc;
    return gr_fail(error, GRAFT_ERR_ARG, "%s are %lld x %lld of dtype %d; expected %lld x %lld of GRAFT_F32 (1)", name,
                   (long long)out->n_rows, (long long)out->n_cols, out->dtype, (long long)rows, (long long)classes);
}

int32_t gr_setup_check_outputs(const struct gr_setup *s, const struct gr_outputs *o, graft_error *error)
{
    GR_TRY(check_output(s, o, o->logits, "logits", error));
    GR_TRY(check_output(s, o, o->probabilities, "probabilities", error));
    if (gr_is_regression(&s->model.config) && (o->labels != NULL || o->probabilities != NULL))
        return gr_fail(error, GRAFT_ERR_ARG, "%s are given, but with loss %s there are no classes; expected NULL",
                       o->labels != NULL ? "labels" : "probabilities", gr_loss_name(s->model.config.loss.kind));
    return GRAFT_OK;
}

/* Compute the probabilities of the classes of a vertex: of one class among all, or of each class separately. */
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

/* Write the outputs of a list of vertices. place[v] is the row with the logits of vertex v, if the setup has an order
 * of its own. */
static int32_t give_list(const struct gr_setup *s, const struct gr_outputs *o, graft_error *error)
{
    const float  *logits = gr_run_logits(&s->run);
    const int64_t rows = s->derived.reach[s->model.config.n_layers];
    int64_t      *place = NULL;
    int32_t       rc = GRAFT_OK;

    if (s->derived.row != NULL) GR_TRY_DONE(GR_NEW(s->context, place, s->data.n, error));
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

/* Labels or logits of the rows that this rank owns, and of the rows of its slice. They are copied to the host's arrays
 * when nothing can fail any more. */
struct rows {
    void *owned, *slice;
};

static int32_t rows_init(const struct gr_setup *s, int64_t n_owned, int64_t bytes, struct rows *r, graft_error *error)
{
    char   *memory = NULL;
    int32_t rc = GR_NEW(s->context, memory, (n_owned + s->data.over->n_slice) * bytes, error);

    r->owned = memory;
    r->slice = rc == GRAFT_OK ? memory + n_owned * bytes : NULL;
    return rc;
}

static int32_t give_over_ranks(struct gr_setup *s, const float *logits, const struct gr_outputs *o, graft_error *error)
{
    const int64_t classes = s->data.given.n_classes, row_bytes = classes * (int64_t)sizeof *logits;
    int           wants_labels = o->labels != NULL, wants_logits = o->logits != NULL || o->probabilities != NULL;
    const int     moves = s->derived.row != NULL; /* 0: logits already are in the order of owned rows */
    struct rows   labels = { 0 }, rows = { 0 };
    int32_t       rc = GRAFT_OK;

    GR_ASSERT(s->data.n == s->data.over->n_owned);
    GR_TRY_DONE(gr_strategy_any(s->run.strategy, &wants_labels, error));
    GR_TRY_DONE(gr_strategy_any(s->run.strategy, &wants_logits, error));
    if (wants_labels) rc = rows_init(s, s->data.n, sizeof *o->labels, &labels, error);
    if (wants_logits && rc == GRAFT_OK) rc = rows_init(s, moves ? s->data.n : 0, row_bytes, &rows, error);
    GR_TRY_DONE(gr_strategy_agree(s->run.strategy, rc, error));
    for (int64_t v = 0; v < s->data.n; v++) {
        const int64_t row = gr_vertex(s->derived.row, v);

        if (wants_labels) ((int32_t *)labels.owned)[row] = (int32_t)gr_argmax(logits + v * classes, classes);
        if (wants_logits && moves)
            memcpy((float *)rows.owned + row * classes, logits + v * classes, (uint64_t)row_bytes);
    }
    if (wants_labels)
        GR_TRY_DONE(gr_dataset_return_rows(&s->data, labels.owned, sizeof *o->labels, labels.slice, error));
    if (wants_logits)
        GR_TRY_DONE(gr_dataset_return_rows(&s->data, moves ? rows.owned : logits, row_bytes, rows.slice, error));
    for (int64_t i = 0; i < output_rows(s, o); i++) {
        const int64_t row = o->vertices != NULL ? o->vertices[i] - gr_dataset_first(&s->data) : i;

        if (o->labels != NULL) o->labels[i] = ((int32_t *)labels.slice)[row];
        if (wants_logits) put_row(s, o, i, (float *)rows.slice + row * classes);
    }
done:
    gr_free(s->context, labels.owned);
    gr_free(s->context, rows.owned);
    return rc;
}

int32_t gr_setup_give(struct gr_setup *s, const struct gr_outputs *o, graft_error *error)
{
    const float *logits = gr_run_logits(&s->run);

    if (s->data.over != NULL) return give_over_ranks(s, logits, o, error);
    GR_ASSERT(s->given == NULL || !gr_setup_masks_rows(s) || !s->run.input.is_constant);
    if (o->vertices != NULL) return give_list(s, o, error);
    for (int64_t i = 0; i < s->data.n; i++)
        put_all(s, o, gr_vertex(s->derived.row, i), logits + i * s->data.given.n_classes);
    return GRAFT_OK;
}
