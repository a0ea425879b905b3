/* Checks options: their list, the values that each accepts and refuses, suggestions for misspelt names, environment
 * variables, and locales with a decimal comma.
 * SPDX-License-Identifier: Apache-2.0 */
#include "comma_locale.h"
#include "harness/tap.h"
#include "watch.h"

#include <ctype.h>

static struct strict_host host;
static struct subject     s;
static graft_error        error = { .size = sizeof error };

/* Find the option with this key. If there is none, all texts of the result are NULL. */
static graft_option options_find(const char *key)
{
    graft_option option = GRAFT_INIT(graft_option);

    for (int32_t i = 0; s.api.option_info(s.context, i, &option, NULL) == GRAFT_OK; i++) {
        if (strcmp(option.key, key) == 0) return option;
    }
    return GRAFT_INIT(graft_option);
}

/* The value of an option, or NULL. */
static const char *options_value_of(const char *key)
{
    return options_find(key).value;
}

static int comes_from(const char *key, const char *source)
{
    const graft_option option = options_find(key);

    return option.source != NULL && strcmp(option.source, source) == 0;
}

/* Check an option of the list. It must have all texts, accept its present value, and refuse an illegal one. */
static const char *row_fault(const graft_option *option)
{
    static char fault[600];
    const int   free_text = strcmp(option->type, "text") == 0;
    int32_t     rc;

    if (!option->key || !option->type || !option->default_value || !option->range || !option->value || !option->help)
        return "NULL";
    if (option->key[0] == '\0' || option->help[0] == '\0' || strchr(option->help, '\n') != NULL)
        return "empty, or two lines";
    if (strcmp(option->value, option->default_value) != 0) return "its value is not the first";
    if (option->live != 0 && option->live != 1) return "live is neither 0 nor 1";
    rc = s.api.set(s.context, option->key, option->default_value, &error);
    if (rc != GRAFT_OK) return error.message;
    if (free_text) return NULL;
    rc = s.api.set(s.context, option->key, "~odd~", &error);
    snprintf(fault, sizeof fault, "~odd~ gave %d: %s", rc, error.message);
    if (rc != GRAFT_ERR_OPTION || strstr(error.message, option->key) == NULL ||
        strstr(error.message, "~odd~") == NULL) {
        return fault;
    }
    return strcmp(options_value_of(option->key), option->default_value) == 0 ? NULL : "the refused value stuck";
}

static void test_list(void)
{
    static const char *const lasting[] = { "model",   "layers",        "hidden",     "epochs",       "lr",
                                           "dropout", "input_dropout", "norm",       "weight_decay", "optimizer",
                                           "seed",    "threads",       "eval_every", "label_rate" };
    graft_option             option = GRAFT_INIT(graft_option);
    int32_t                  i = 0;

    for (; s.api.option_info(s.context, i, &option, &error) == GRAFT_OK; i++) {
        const char *fault = row_fault(&option);
        ok_or(fault == NULL, fault, "option %s, %s", option.key, option.type);
    }
    ok(i > 20 && s.api.option_info(s.context, i, &option, &error) == GRAFT_ERR_NOT_FOUND &&
           s.api.option_info(s.context, -1, &option, &error) == GRAFT_ERR_NOT_FOUND &&
           s.api.option_info(s.context, INT32_MAX, &option, &error) == GRAFT_ERR_NOT_FOUND &&
           s.api.option_info(s.context, INT32_MIN, &option, &error) == GRAFT_ERR_NOT_FOUND,
       "the list ends after %d", i);
    for (size_t k = 0; k < sizeof lasting / sizeof *lasting; k++) {
        if (options_value_of(lasting[k]) == NULL) ok(0, "there is an option '%s'", lasting[k]);
    }
}

static void takes(const char *key, const char *value, int32_t status)
{
    const int32_t rc = s.api.set(s.context, key, value, &error);
    const int     good = rc == status && (rc != GRAFT_OK || strcmp(options_value_of(key), value) == 0);

    if (!ok(good, "%s = '%s' is %s", key, value, status == GRAFT_OK ? "taken" : "refused"))
        diag("%d: %s", rc, error.message);
}

/* Check that integers are reported in decimal digits. */
static void keeps(const char *key, const char *value, const char *kept)
{
    const int32_t rc = s.api.set(s.context, key, value, &error);

    ok(rc == GRAFT_OK && strcmp(options_value_of(key), kept) == 0, "%s = '%s' is kept as %s", key, value, kept);
}

static void test_values(void)
{
    takes("lr", "0.01", GRAFT_OK);
    takes("lr", "1e-3", GRAFT_OK);
    takes("lr", "0", GRAFT_OK);
    takes("lr", "0,01", GRAFT_ERR_OPTION);
    takes("lr", "0.01x", GRAFT_ERR_OPTION);
    takes("lr", " 0.01", GRAFT_ERR_OPTION);
    takes("lr", "0.01 ", GRAFT_ERR_OPTION);
    takes("lr", "", GRAFT_ERR_OPTION);
    takes("lr", "-0.1", GRAFT_ERR_OPTION);
    takes("lr", "nan", GRAFT_ERR_OPTION);
    takes("lr", "inf", GRAFT_ERR_OPTION);
    takes("lr", "1e400", GRAFT_ERR_OPTION);
    takes("dropout", "0.999", GRAFT_OK);
    takes("dropout", "1", GRAFT_ERR_OPTION);
    takes("label_rate", "0.62", GRAFT_OK);
    takes("label_rate", "1", GRAFT_ERR_OPTION);
    takes("label_rate", "-0.1", GRAFT_ERR_OPTION);
    takes("label_rate", "0", GRAFT_OK);
    takes("layers", "64", GRAFT_OK);
    takes("layers", "0", GRAFT_ERR_OPTION);
    takes("layers", "65", GRAFT_ERR_OPTION);
    takes("layers", "3.0", GRAFT_ERR_OPTION);
    keeps("layers", "1e1", "10");
    takes("layers", "1e9", GRAFT_ERR_OPTION);
    takes("layers", "0x3", GRAFT_ERR_OPTION);
    takes("layers", "3", GRAFT_OK);
    keeps("epochs", "1.5e6", "1500000");
    takes("epochs", "1.55e1", GRAFT_ERR_OPTION);
    takes("epochs", "1e19", GRAFT_ERR_OPTION);
    takes("epochs", "1e", GRAFT_ERR_OPTION);
    takes("halo.codec", "q2/q8", GRAFT_OK);
    takes("halo.codec", "q1:rotated/q1:minmax", GRAFT_OK);
    takes("halo.codec", "f32/adaptive", GRAFT_OK);
    takes("halo.codec", "q2/", GRAFT_ERR_OPTION);
    takes("halo.codec", "/q2", GRAFT_ERR_OPTION);
    takes("halo.codec", "q2/q8/q2", GRAFT_ERR_OPTION);
    takes("halo.codec", "q1:", GRAFT_ERR_OPTION);
    takes("halo.codec", "q2|q4", GRAFT_ERR_OPTION);
    takes("halo.codec", "", GRAFT_ERR_OPTION);
    takes("halo.budget", "bytes:1.5e6", GRAFT_OK);
    takes("halo.budget", "error:0.02", GRAFT_OK);
    takes("halo.budget", "balance:1", GRAFT_OK);
    takes("halo.budget", "balance:1.5", GRAFT_ERR_OPTION);
    takes("halo.budget", "bytes:0", GRAFT_ERR_OPTION);
    takes("halo.budget", "bytes:0.5", GRAFT_ERR_OPTION);
    takes("halo.budget", "error:0", GRAFT_ERR_OPTION);
    takes("halo.budget", "error:", GRAFT_ERR_OPTION);
    takes("halo.budget", "1e6", GRAFT_ERR_OPTION);
    takes("halo.budget", "bytes", GRAFT_ERR_OPTION);
    takes("seed", "9223372036854775807", GRAFT_OK);
    takes("seed", "9223372036854775808", GRAFT_ERR_OPTION);
    takes("seed", "-1", GRAFT_ERR_OPTION);
    takes("hidden", "64,32", GRAFT_OK);
    takes("hidden", "64,", GRAFT_ERR_OPTION);
    takes("hidden", ",64", GRAFT_ERR_OPTION);
    takes("hidden", "64,,32", GRAFT_ERR_OPTION);
    takes("hidden", "0", GRAFT_ERR_OPTION);
    takes("hidden", "99999999999999999999", GRAFT_ERR_OPTION);
    takes("model", "gcn", GRAFT_OK);
    takes("model", "GCN", GRAFT_ERR_OPTION);
    takes("model", "gc", GRAFT_ERR_OPTION);
    takes("model", "sage|gcn", GRAFT_ERR_OPTION);
    takes("model", "|", GRAFT_ERR_OPTION);
    takes("log.level", "debug|info", GRAFT_ERR_OPTION);
    ok(s.api.set(s.context, NULL, "1", &error) == GRAFT_ERR_ARG &&
           s.api.set(s.context, "lr", NULL, &error) == GRAFT_ERR_ARG,
       "null keys and values are refused");
}

static void test_nearest(void)
{
    static const char *const wrong[][2] = { { "modle", "model" },
                                            { "hiden", "hidden" },
                                            { "drop_out", "dropout" },
                                            { "epoch", "epochs" },
                                            { "mxm.kernle", "mxm.kernel" },
                                            { "learning_rate", "option_info()" },
                                            { "nokey", "option_info()" },
                                            { "evalevery", "eval_every" },
                                            { "MXM_KERNEL", "mxm.kernel" },
                                            { "weight-decay", "weight_decay" },
                                            { "", "" } };
    char                     endless[5000];

    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char      quoted[64];
        const int rc = s.api.set(s.context, wrong[i][0], "1", &error);

        snprintf(quoted, sizeof quoted, strchr(wrong[i][1], '(') != NULL ? "%s" : "'%s'", wrong[i][1]);
        if (!ok(rc == GRAFT_ERR_OPTION && (wrong[i][1][0] == '\0' || strstr(error.message, quoted) != NULL),
                "unknown option '%s' is refused, and '%s' named", wrong[i][0], wrong[i][1]))
            diag("%d: %s", rc, error.message);
    }
    ok(s.api.set(s.context, "device", "gpu", &error) == GRAFT_ERR_OPTION && strstr(error.message, "CPUs only") != NULL,
       "a device is answered with what Graft computes on");
    memset(endless, 'x', sizeof endless - 1);
    endless[sizeof endless - 1] = '\0';
    ok(s.api.set(s.context, endless, "1", &error) == GRAFT_ERR_OPTION &&
           s.api.set(s.context, "lr", endless, &error) == GRAFT_ERR_OPTION &&
           s.api.set(s.context, "mxm.kernel", endless, &error) == GRAFT_OK,
       "keys and values of any length are lived with");
}

/* The status of graft_open() with an environment variable. */
static int32_t open_with(const char *variable, const char *value)
{
    struct subject other;
    int32_t        rc;

    setenv(variable, value, 1);
    rc = subject_open(&other, &error);
    unsetenv(variable);
    if (rc == GRAFT_OK) subject_close(&other);
    return rc;
}

/* Every option can be set by an environment variable. A bad value of the variable is an error that names it. */
static void test_environment(void)
{
    graft_option option = GRAFT_INIT(graft_option);

    for (int32_t i = 0; s.api.option_info(s.context, i, &option, NULL) == GRAFT_OK; i++) {
        char      variable[128] = "GRAFT_";
        const int free_text = strcmp(option.type, "text") == 0;

        for (size_t j = 0; j <= strlen(option.key); j++) {
            variable[6 + j] = option.key[j] == '.' ? '_' : (char)toupper((unsigned char)option.key[j]);
        }
        if (free_text ||
            !ok(open_with(variable, "~odd~") == GRAFT_ERR_OPTION && strstr(error.message, variable) != NULL &&
                    open_with(variable, option.default_value) == GRAFT_OK,
                "%s is read", variable)) {
            if (!free_text) diag("%s", error.message);
        }
    }
    setenv("GRAFT_MXM_KERNEL", "from-the-environment", 1);
    subject_close(&s);
    ok(subject_open(&s, &error) == GRAFT_OK && strcmp(options_value_of("mxm.kernel"), "from-the-environment") == 0,
       "a value from the environment is the initial value");
    unsetenv("GRAFT_MXM_KERNEL");
    ok(comes_from("mxm.kernel", "environment") && comes_from("seed", "default"), "the source of a value is reported");
    ok(s.api.set(s.context, "mxm.kernel", "auto", &error) == GRAFT_OK && comes_from("mxm.kernel", "host"),
       "a value that the host sets comes from the host, also the default value");
    ok(s.api.set(s.context, "seed", "x", &error) == GRAFT_ERR_OPTION && comes_from("seed", "default"),
       "a refused value does not");
    ok(open_with("GRAFT_NO_SUCH_OPTION", "1") == GRAFT_OK, "variables of other names are no error");
}

static void test_locale(void)
{
    struct data_folder folder;

    folder_create(&folder);
    if (comma_locale_begin(&folder)) {
        takes("lr", "0.015625", GRAFT_OK);
        takes("lr", "0,015625", GRAFT_ERR_OPTION);
        takes("dropout", "0.75", GRAFT_OK);
        takes("dropout", "1.5", GRAFT_ERR_OPTION);
        takes("teleport", "1e-2", GRAFT_OK);
    } else {
        skip(5, "no locale with a comma can be made here");
    }
    comma_locale_end(&folder);
    folder_destroy(&folder);
}

/* An option of an earlier release is refused with the name of its replacement. */
static void test_removed(void)
{
    static const char *const cases[][2] = { { "schedule_every", "schedule=step:30:0.1" },
                                            { "momentum", "optimizer=sgd:0.9" },
                                            { "halo.drift_limit", "halo.staleness=1:N" },
                                            { "cluster.parts", "sampler=cluster:" },
                                            { "hec.keep", "hec.miss=fetch_keep" },
                                            { "gin_eps", "epsilon is 0" },
                                            { "eval.folder", "eval.blocks=FOLDER" },
                                            { "mgn.width", "hidden" },
                                            { "mgn.steps", "mgn.schedule=cosine" },
                                            { "workers.sparse", "workers=sparse:1" },
                                            { "workers.stages", "workers=sparse:1:16" },
                                            { "class_weights", "loss=softmax:balanced" },
                                            { "label_smoothing", "loss=softmax:0.1" },
                                            { "weight_decay_layers", "weight_decay=0.0005:first" },
                                            { "sample.replace", "neighbour:replace" },
                                            { "hec.life", "hec.rows=1000000:10" },
                                            { "aep.delay", "aep.rows=-1:2" },
                                            { "partition.refine", "partition=given:20" },
                                            { "partition.timeout", "partition=metis:0" },
                                            { "stream.interval", "stream.lag=1:2" } };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const int32_t rc = s.api.set(s.context, cases[i][0], "1", &error);

        ok(rc == GRAFT_ERR_OPTION && strstr(error.message, cases[i][0]) != NULL &&
               strstr(error.message, "was removed: ") != NULL && strstr(error.message, cases[i][1]) != NULL &&
               options_value_of(cases[i][0]) == NULL,
           "%s was removed: %s", cases[i][0], error.message);
    }
}

/* A choice with numbers, such as "step:2:3": each number has a default and a range, and may be left out at the end.
 * Some parts are words that may be left out, and some choices have no word. A folder has a '/'. */
static void test_forms(void)
{
    static const char *const legal[][2] = { { "schedule", "step" },         { "schedule", "step:5" },
                                            { "schedule", "step:1e2:1" },   { "schedule", "cosine" },
                                            { "optimizer", "adam:0:0.5" },  { "loss", "huber:0.25" },
                                            { "halo.budget", "bytes:1e6" }, { "loss", "softmax:balanced" },
                                            { "loss", "softmax:0.5" },      { "loss", "softmax:balanced:0.5" },
                                            { "weight_decay", "5e-4" },     { "weight_decay", "0:first" },
                                            { "hec.rows", "1e3" },          { "hec.rows", "7:1" },
                                            { "partition", "metis:0:1.5" }, { "workers", "auto:32" },
                                            { "eval.blocks", "./" },        { "eval.blocks", "no" } };
    static const char *const odd[][2] = { { "schedule", "step:0" },
                                          { "schedule", "step:2.5" },
                                          { "schedule", "step:5:1.5" },
                                          { "schedule", "step:5:1:1" },
                                          { "schedule", "step:" },
                                          { "schedule", "ste" },
                                          { "schedule", "cosine:1" },
                                          { "optimizer", "sgd:1" },
                                          { "loss", "huber:0" },
                                          { "loss", "huber:nan" },
                                          { "halo.budget", "bytes" },
                                          { "halo.budget", "bytes:0.5" },
                                          { "loss", "softmax:1" },
                                          { "loss", "softmax:0.5:balanced" },
                                          { "loss", "softmax:equal" },
                                          { "loss", "softmax:balanced:" },
                                          { "loss", "mse:balanced" },
                                          { "weight_decay", ":first" },
                                          { "weight_decay", "-1" },
                                          { "weight_decay", "0.1:last" },
                                          { "hec.rows", "0" },
                                          { "hec.rows", "7:0" },
                                          { "hec.rows", "7:1:1" },
                                          { "hec.rows", "all" },
                                          { "partition", "hash:0:0.5" },
                                          { "partition", "metis:1.5" },
                                          { "workers", "2" },
                                          { "workers", "sparse" },
                                          { "workers", "no:1" },
                                          { "eval.blocks", "yess" },
                                          { "eval.blocks", "folder" } };

    for (size_t i = 0; i < sizeof legal / sizeof *legal; i++)
        ok(s.api.set(s.context, legal[i][0], legal[i][1], &error) == GRAFT_OK &&
               strcmp(options_value_of(legal[i][0]), legal[i][1]) == 0,
           "%s=%s", legal[i][0], legal[i][1]);
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++)
        ok(s.api.set(s.context, odd[i][0], odd[i][1], &error) == GRAFT_ERR_OPTION &&
               strstr(error.message, odd[i][1]) != NULL,
           "%s=%s is refused", odd[i][0], odd[i][1]);
}

int main(void)
{
    strict_host_init(&host);
    watch_reset(&host);
    if (!ok(subject_open(&s, &error) == GRAFT_OK, "a context opens")) return done();
    test_list();
    test_values();
    test_nearest();
    test_environment();
    test_locale();
    test_removed();
    test_forms();
    subject_close(&s);
    ok_or(watch.faults == 0 && host.live_bytes == 0, watch.fault, "%lld calls behaved", (long long)watch.calls);
    return done();
}
