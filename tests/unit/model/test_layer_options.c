/* Checks options of layers against the oracle: gradients with ELU, with dropout before norm and activation, with
 * dropout of attention, with residual and jumping connections; and that a model file keeps these options.
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness/effort.h"
#include "harness/outputs.h"
#include "harness/tap.h"
#include "oracle/gradient.h"

#include "graft_load.h"
#include "graft_model.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const graft_api *api;

/** Whether a case is tried for a kind of model. Each is for two or three of the seven kinds, which share most of the
 *  code under test. */
static int is_for(enum oracle_kind kind, int which)
{
    return ((int)kind + which) % 3 == 0;
}

/** What follows a hidden layer, with all options that change how its passes over rows run. */
static void test_hidden(enum oracle_kind kind)
{
    for (int which = 1; which < 12; which += case_step()) {
        const struct training_case what = { .kind = kind,
                                            .layers = 2 + which % 2,
                                            .heads = 1 + (kind == ORACLE_GAT && which % 4 == 2),
                                            .n = which % 5 == 4 && kind != ORACLE_GAT ? 60 : 0,
                                            .elu = which % 3 != 2,
                                            .drops_first = which % 4 > 1,
                                            .norm = which / 3 % 3,
                                            .growing = which / 2 % 2,
                                            .dropout = which % 5 == 0 ? 0 : 0.4,
                                            .sparse = which % 7 == 3,
                                            .order = which % 5 == 3 ? "rcm" : NULL,
                                            .unmasked = which / 6,
                                            .recompute = which / 2 % 3 == 1,
                                            .scarce = kind != ORACLE_GAT && which % 5 == 4,
                                            .threads = 1 + which % 3,
                                            .optimizer = { .lr = GRADIENT_RATE } };

        if (is_for(kind, which)) gradient_check(api, &what);
    }
}

/** Residual connections, with all options that change what is stored of input and output. */
static void test_residual(enum oracle_kind kind)
{
    for (int which = 0; which < 8; which += case_step()) {
        const struct training_case what = { .kind = kind,
                                            .layers = 3 + which / 2 % 2,
                                            .n = which % 4 == 3 && kind != ORACLE_GAT ? 60 : 0,
                                            .residual = 1,
                                            .elu = which % 2,
                                            .drops_first = which % 3 == 2,
                                            .norm = which / 3 % 2 ? ORACLE_BATCH_NORM
                                                    /* Otherwise its scores would grow. */
                                                    : kind == ORACLE_GAT ? ORACLE_LAYER_NORM
                                                                         : ORACLE_NO_NORM,
                                            .dropout = which % 4 == 0 ? 0 : 0.4,
                                            .order = which % 4 == 1 ? "rcm" : NULL,
                                            .unmasked = which / 4,
                                            .recompute = which / 2 % 3 == 1,
                                            .scarce = kind != ORACLE_GAT && which % 4 == 3,
                                            .threads = 1 + which % 3,
                                            .optimizer = { .lr = GRADIENT_RATE } };

        if (is_for(kind, which)) gradient_check(api, &what);
    }
}

/** Jumping connections: the last layer reads all hidden layers. */
static void test_jumping(enum oracle_kind kind)
{
    for (int which = 0; which < 8; which += case_step()) {
        const struct training_case what = { .kind = kind,
                                            .layers = 3 + which / 2 % 2,
                                            .heads = 1 + (kind == ORACLE_GAT && which % 3 == 1),
                                            .n = which % 4 == 3 && kind != ORACLE_GAT ? 60 : 0,
                                            .jumping = which % 2 ? "max" : "cat",
                                            .residual = which % 4 == 2, /* outputs that grow would have ties */
                                            .elu = which / 4,
                                            .growing = which / 2 % 2,
                                            .norm = which / 3 % 3,
                                            .dropout = which % 3 == 0 ? 0 : 0.4,
                                            .order = which % 4 == 1 ? "rcm" : NULL,
                                            .unmasked = which / 5,
                                            .recompute = which % 3 == 2,
                                            .scarce = kind != ORACLE_GAT && which % 4 == 3,
                                            .threads = 1 + which % 3,
                                            .optimizer = { .lr = GRADIENT_RATE } };

        if (is_for(kind, which)) gradient_check(api, &what);
    }
}

/** Hidden layers of different widths can have neither a residual connection nor an elementwise maximum. */
static void test_refused(int residual)
{
    struct training_case what = { .kind = ORACLE_SAGE, .layers = 3, .optimizer = { .lr = GRADIENT_RATE } };
    struct training      training;
    graft_error          error = GRAFT_INIT(graft_error);
    const char *const    word = residual ? "'residual'" : "'jumping'";
    int32_t              rc;

    training_init(&training, &what, 1);
    what.residual = residual; /* set after the widths were chosen */
    what.jumping = residual ? NULL : "max";
    rc = training_open(&training, api, &what, &error);
    ok_or(rc == GRAFT_ERR_OPTION && strstr(error.message, word) != NULL, error.message,
          "%s with other widths is refused", word);
    training_fini(&training);
}

/** The options ask for edge values, which the graph does not have. */
static void test_values_missing(void)
{
    struct training_case what = { .kind = ORACLE_GAT, .layers = 2, .optimizer = { .lr = GRADIENT_RATE } };
    struct training      training;
    graft_error          error = GRAFT_INIT(graft_error);
    int32_t              rc;

    training_init(&training, &what, 1);
    what.edge_features = 1;
    rc = training_open(&training, api, &what, &error);
    ok_or(rc == GRAFT_ERR_OPTION && strstr(error.message, "'edge_features'") != NULL &&
              strstr(error.message, "no values") != NULL,
          error.message, "edge_features=values of a graph without values is refused");
    training_fini(&training);
}

/** Dropout of attention, alone and with other dropout, for more heads than a block of draws has. */
static void test_attention(void)
{
    for (int which = 0; which < 8; which += case_step()) {
        const struct training_case what = { .kind = ORACLE_GAT,
                                            .layers = 1 + which % 3,
                                            .heads = which == 7 ? 9 : 1 + which % 2,
                                            .growing = which == 7,
                                            .attention_dropout = which % 4 == 3 ? 0.7 : 0.3,
                                            .elu = which / 2 % 2,
                                            .drops_first = which / 3 % 2,
                                            .norm = which / 4,
                                            .dropout = which % 3 == 1 ? 0.5 : 0,
                                            .prepare = which % 3 == 2,
                                            .order = which % 4 == 1 ? "degree" : NULL,
                                            .recompute = which % 4 > 1,
                                            .threads = 1 + which % 3,
                                            .optimizer = { .lr = GRADIENT_RATE } };

        gradient_check(api, &what);
    }
}

/** Edge values, or rows of an edge feature array, in the scores of gat, with all options that change how rows and
 *  scores are made. */
static void test_edge_features(int array)
{
    for (int which = 0; which < 10; which += case_step()) {
        const struct training_case what = { .kind = ORACLE_GAT,
                                            .layers = 1 + which % 3,
                                            .heads = which == 9 ? 4 : 1 + which % 2,
                                            .growing = which == 9 || which % 4 == 2,
                                            .edge_features = !array,
                                            .edge_array = array,
                                            .attention_dropout = which % 4 == 3 ? 0.4 : 0,
                                            .norm = which / 4 % 2,
                                            .dropout = which % 3 == 1 ? 0.5 : 0,
                                            .prepare = which % 3 == 2,
                                            .order = which % 4 == 1 ? "degree" : NULL,
                                            .label_rate = which == 6 ? 0.5 : 0,
                                            .recompute = which % 5 > 2,
                                            .threads = 1 + which % 3,
                                            .optimizer = { .lr = GRADIENT_RATE } };

        gradient_check(api, &what);
    }
}

/** ReLU and a bias before the attention of gat. */
static void test_attention_input(void)
{
    for (int which = 0; which < 6; which += case_step()) {
        const struct training_case what = { .kind = ORACLE_GAT,
                                            .layers = 1 + which % 3,
                                            .heads = which == 5 ? 5 : 1 + which % 2,
                                            .growing = which == 5,
                                            .inner_relu = 1,
                                            .edge_array = which == 4,
                                            .sparse = which == 3,
                                            .attention_dropout = which % 4 == 1 ? 0.4 : 0,
                                            .norm = which / 2 % 2,
                                            .dropout = which % 3 == 1 ? 0.5 : 0,
                                            .prepare = which % 3 == 2,
                                            .order = which == 1 ? "degree" : NULL,
                                            .recompute = which % 2,
                                            .threads = 1 + which % 3,
                                            .optimizer = { .lr = GRADIENT_RATE } };

        gradient_check(api, &what);
    }
}

/** Save the model of a trainer, change the options of the context, and load it. */
static int32_t load_again(const graft_model_api *models, graft_trainer *trainer, graft_model **model,
                          graft_error *error)
{
    char    path[64];
    int32_t rc = models->create(trainer, GRAFT_MODEL_LAST, model, error);

    snprintf(path, sizeof path, "/tmp/test_layer_options_%d", (int)getpid());
    if (rc == GRAFT_OK) rc = models->save(*model, path, error);
    models->destroy(*model);
    *model = NULL;
    api->set(api->context, "activation", "relu", NULL);
    api->set(api->context, "norm_order", "before_dropout", NULL);
    api->set(api->context, "edge_features", "none", NULL);
    api->set(api->context, "attention_input", "linear", NULL);
    api->set(api->context, "residual", "no", NULL);
    api->set(api->context, "jumping", "none", NULL);
    if (rc == GRAFT_OK) rc = models->load(api->context, NULL, path, model, error);
    unlink(path);
    return rc;
}

/** The predictions of a saved model must be what the oracle computes without dropout. */
static void test_saved(const struct training_case *what)
{
    const graft_model_api *models = api->get_interface(api->context, GRAFT_MODEL_ID);
    struct training        training;
    graft_model           *model = NULL;
    graft_error            error = GRAFT_INIT(graft_error);
    graft_dense            dense = GRAFT_INIT(graft_dense);
    double                *expected, *found, far = 1;
    float                 *logits;
    int64_t                count;
    int32_t                rc;

    training_init(&training, what, 1);
    count = training.model.n * training.model.classes;
    expected = oracle_new(count, sizeof *expected);
    found = oracle_new(count, sizeof *found);
    logits = oracle_new(count, sizeof *logits);
    oracle_model_forward(&training.model, 0, expected, NULL);
    dense = (graft_dense){ sizeof dense,           GRAFT_F32, training.model.n, training.model.classes,
                           training.model.classes, logits };
    rc = training_open(&training, api, what, &error);
    if (rc == GRAFT_OK) rc = load_again(models, training.trainer, &model, &error);
    output_clear_rows(&dense);
    if (rc == GRAFT_OK) rc = models->predict(model, GRAFT_WEIGHTS_LAST, &training.set.dataset, NULL, &dense, &error);
    for (int64_t at = 0; at < count; at++) found[at] = (double)logits[at];
    if (rc == GRAFT_OK) far = training_distance(found, expected, count);
    ok_or(rc == GRAFT_OK && far < 1e-5, error.message, "%s: a saved model predicts within %.1e", training_name(what),
          far);
    models->destroy(model);
    free(expected);
    free(found);
    free(logits);
    training_fini(&training);
}

/** Data sets whose edge features differ from those of the model, or are missing. */
static void test_other_edges(void)
{
    const graft_model_api *models = api->get_interface(api->context, GRAFT_MODEL_ID);
    struct training_case   what = {
          .kind = ORACLE_GAT, .layers = 2, .edge_array = 1, .optimizer = { .lr = GRADIENT_RATE }
    };
    struct training training;
    graft_trainer  *narrow = NULL;
    graft_model    *model = NULL;
    graft_error     error = GRAFT_INIT(graft_error);
    graft_dataset   data;
    graft_dense     features;
    int32_t         rc, found;

    training_init(&training, &what, 1);
    rc = training_open(&training, api, &what, &error);
    if (rc == GRAFT_OK) rc = models->create(training.trainer, GRAFT_MODEL_LAST, &model, &error);
    ok_or(rc == GRAFT_OK, error.message, "a model with an array of edge features");
    data = training.set.dataset;
    features = *data.edge_features;
    features.n_cols--;
    data.edge_features = &features;
    found = models->predict(model, GRAFT_WEIGHTS_LAST, &data, NULL, NULL, &error);
    ok_or(found == GRAFT_ERR_ARG && strstr(error.message, "has 2 edge features, the model has 3") != NULL,
          error.message, "it does not predict with others");
    rc = training.train->create(api->context, &data, &narrow, &error);
    found = rc == GRAFT_OK ? models->apply(model, narrow, &error) : rc;
    ok_or(found == GRAFT_ERR_FORMAT && strstr(error.message, "weight_edge") != NULL, error.message,
          "a trainer does not take it");
    data.edge_features = NULL;
    found = models->predict(model, GRAFT_WEIGHTS_LAST, &data, NULL, NULL, &error);
    ok_or(found == GRAFT_ERR_OPTION && strstr(error.message, "the data set has none") != NULL, error.message,
          "nor without any");
    models->destroy(model);
    training.train->destroy(narrow);
    training_fini(&training);
}

int main(void)
{
    const struct training_case saved[] = {
        { .kind = ORACLE_GAT, .layers = 3, .heads = 2, .elu = 1, .dropout = 0.5, .attention_dropout = 0.4 },
        { .kind = ORACLE_GAT, .layers = 2, .heads = 2, .edge_features = 1, .prepare = 1, .order = "rcm" },
        { .kind = ORACLE_GAT, .layers = 2, .heads = 2, .edge_array = 1, .prepare = 1, .order = "rcm" },
        { .kind = ORACLE_GAT, .layers = 2, .heads = 3, .edge_array = 1 },
        { .kind = ORACLE_GAT, .layers = 2, .heads = 2, .inner_relu = 1, .dropout = 0.5 },
        { .kind = ORACLE_SAGE, .layers = 3, .norm = 1, .elu = 1, .drops_first = 1, .dropout = 0.5 },
        { .kind = ORACLE_GIN, .layers = 4, .residual = 1, .jumping = "cat", .dropout = 0.5 },
        { .kind = ORACLE_GCN, .layers = 3, .jumping = "max", .dropout = 0.5 },
    };
    graft_error error = GRAFT_INIT(graft_error);

    if (!ok(graft_load(getenv("GRAFT_LIBRARY"), NULL, &api, &error) == GRAFT_OK, "the library opens")) {
        diag("%s", error.message);
        return done();
    }
    for (enum oracle_kind kind = ORACLE_MLP; kind <= ORACLE_APPNP; kind++) {
        test_hidden(kind);
        test_residual(kind);
        test_jumping(kind);
    }
    test_refused(0);
    test_refused(1);
    test_attention();
    test_attention_input();
    test_edge_features(0);
    test_edge_features(1);
    test_values_missing();
    test_other_edges();
    for (size_t i = 0; i < sizeof saved / sizeof *saved; i++) test_saved(&saved[i]);
    api->close(api->context);
    return done();
}
