/* Compares training steps of the library with gradients of the oracle, see oracle/gradient.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "gradient.h"

#include "harness/tap.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int is_loss(double found, double expected)
{
    return fabs(found - expected) <= 1e-5 * fmax(1, fabs(expected));
}

/** The largest relative distance between the gradients of library and oracle over all tensors. The name of that tensor
 * is stored in `worst`. */
static double gradient_distance(struct training *training, int number, char worst[48])
{
    double most = 0;

    for (int32_t t = 0; t < training->model.n_tensors; t++) {
        const struct oracle_tensor *tensor = &training->model.tensor[t];
        double                     *found = oracle_new(training_count(tensor), sizeof *found), far = INFINITY;

        if (training_pull(training, "", t, found)) {
            for (int64_t at = 0; at < training_count(tensor); at++)
                found[at] = (tensor->value[at] - found[at]) / GRADIENT_RATE;
            far = training_is_idle(training, t)
                      ? training_largest(found, training_count(tensor))
                      : training_distance(found, training->gradient[number][t], training_count(tensor));
        }
        if (far >= most) snprintf(worst, 48, "%s", tensor->name);
        most = fmax(most, far);
        free(found);
    }
    return most;
}

/** Check one epoch that starts with the weights of the oracle. */
static void gradient_check_epoch(struct training *training, const char *name, int number)
{
    double     *logits = oracle_new(training->model.n * training->model.classes, sizeof *logits), expected, far;
    char        worst[48] = "";
    graft_epoch epoch = GRAFT_INIT(graft_epoch);
    graft_error error = GRAFT_INIT(graft_error);

    oracle_model_drop(&training->model, number);
    oracle_model_forward(&training->model, 1, logits, NULL);
    expected = oracle_model_training_loss(&training->model, logits);
    if (training->train->epoch(training->trainer, &epoch, &error) != GRAFT_OK) {
        ok(0, "%s: epoch %d", name, number);
        diag("%s", error.message);
    } else {
        far = gradient_distance(training, number, worst);
        ok(far <= 1e-4 && is_loss(epoch.loss, expected) && epoch.epoch == number + 1,
           "%s: gradients of epoch %d within %.1e", name, number, far);
        if (far > 1e-4) diag("farthest is %s", worst);
        if (!is_loss(epoch.loss, expected)) diag("loss is %.9g, expected %.9g", epoch.loss, expected);
    }
    free(logits);
}

/** Check the text of explain(): whether sparse features are kept sparse as the case expects, and whether steps compute
 * only some of the rows. */
static void check_gradient_explained(struct training *training, const struct training_case *what)
{
    const int stays = strcmp(what->sparse_input, "yes") == 0;
    char      text[2048] = "";

    training->train->explain(training->trainer, text, sizeof text, NULL);
    ok_or((strstr(text, "multiplied as they are") != NULL) == stays && (strstr(text, "made dense") != NULL) == !stays &&
              (!what->scarce || what->kind == ORACLE_GAT || what->unmasked || strstr(text, "a step needs") != NULL),
          text, "%s: explained", training_name(what));
}

/** With dropout or with labels as input, a second epoch is checked too. It starts with the same weights and must draw
 * other random numbers. */
void gradient_check(const graft_api *api, const struct training_case *what)
{
    struct training training;
    graft_error     error = GRAFT_INIT(graft_error);

    training_init(&training, what, 1);
    if (training_open(&training, api, what, &error) != GRAFT_OK) {
        ok(0, "%s", training_name(what));
        diag("%s", error.message);
    } else {
        if (what->sparse && what->sparse_input != NULL) check_gradient_explained(&training, what);
        gradient_check_epoch(&training, training_name(what), 0);
        if (training_is_drawn(what) && ok(training_push(&training, NULL) == GRAFT_OK, "the same weights again"))
            gradient_check_epoch(&training, training_name(what), 1);
    }
    training_fini(&training);
}
