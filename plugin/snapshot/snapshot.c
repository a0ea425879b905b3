/* Makes models from trainers or from texts, and applies them to trainers.
 * SPDX-License-Identifier: Apache-2.0 */
#include "snapshot/snapshot.h"

#include "base/assert.h"
#include "base/option_row.h"
#include "base/options.h"
#include "model/options.h"
#include "nn/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char MODEL_PREFIX[] = "model.", TRAINING_PREFIX[] = "training.";
static const char EDGE_FEATURES_KEY[] = "n_edge_features";

static int is_of_model(const struct gr_option_row *row)
{
    return row->table == &gr_shape_option_table || row->table == &gr_model_option_table ||
           row->table == &gr_data_option_table || (row->flags & GR_PREDICTS) != 0;
}

/* -- the texts of a trainer's model ------------------------------------------------------------------------------ */

/* The metadata of a model. If `pairs` is NULL, they are only counted. */
struct texts {
    struct gr_tensor_pair *pairs;
    int32_t                n;
    char                  *to;
    int64_t                bytes;
};

static const char *add_text(struct texts *t, const char *first, const char *second)
{
    const size_t one = strlen(first), two = strlen(second) + 1;
    char        *text = NULL;

    if (t->to != NULL) {
        text = t->to + t->bytes;
        memcpy(text, first, one);
        memcpy(text + one, second, two);
    }
    t->bytes += (int64_t)(one + two);
    return text;
}

static void add_pair(struct texts *t, const char *prefix, const char *key, const char *value)
{
    const char *const full = add_text(t, prefix, key), *const copy = add_text(t, value, "");

    if (t->pairs != NULL) t->pairs[t->n] = (struct gr_tensor_pair){ full, copy };
    t->n++;
}

static void add_number(struct texts *t, const char *key, int64_t number)
{
    char digits[24];

    snprintf(digits, sizeof digits, "%lld", (long long)number);
    add_pair(t, "", key, digits);
}

/* Add all options of the trainer. Live options have their current values, others those of the creation of the
 * trainer. */
static void add_options(struct texts *t, const graft_trainer *trainer)
{
    const graft_context        *context = trainer->setup.context;
    const struct gr_option_row *row;

    for (int32_t i = 0; (row = gr_option_at(&context->options, i)) != NULL; i++) {
        const char *value = gr_options_copied(trainer->options, row->key);

        if (value == NULL) continue;
        if (row->flags & GR_LIVE) value = gr_option_text(context, row);
        if (strcmp(row->key, "loss") == 0) value = gr_loss_name(trainer->setup.model.config.loss.kind);
        add_pair(t, is_of_model(row) ? MODEL_PREFIX : TRAINING_PREFIX, row->key, value);
    }
}

static void add_all(struct texts *t, const graft_trainer *trainer, int32_t what)
{
    const struct gr_progress *p = &trainer->progress;
    const int                 best = what == GRAFT_MODEL_BEST && gr_train_progress_has_best(p);

    add_pair(t, "", "format", GRAFT_MODEL_ID);
    add_pair(t, "", "content", what == GRAFT_MODEL_STATE ? "state" : "weights");
    add_pair(t, "", "release", GRAFT_RELEASE);
    add_number(t, "epoch", best ? p->best_epoch : p->epoch);
    add_number(t, "n_vertices", trainer->setup.data.given.n_vertices);
    add_number(t, "n_features", trainer->setup.data.given.n_features);
    add_number(t, "n_classes", trainer->setup.data.given.n_classes);
    if (trainer->setup.model.config.attention.edge_array)
        add_number(t, EDGE_FEATURES_KEY, trainer->setup.model.config.attention.edge_features);
    add_options(t, trainer);
}

static int32_t make_texts(const graft_trainer *trainer, int32_t what, struct gr_tensors *header, graft_error *error)
{
    graft_context *const context = trainer->setup.context;
    struct texts         t = { 0 };

    add_all(&t, trainer, what);
    header->context = context;
    GR_TRY(GR_NEW(context, header->text, t.bytes, error));
    GR_TRY(GR_NEW(context, header->pairs, t.n, error));
    t = (struct texts){ .pairs = header->pairs, .to = header->text };
    add_all(&t, trainer, what);
    header->n_pairs = t.n;
    return GRAFT_OK;
}

/* -- a model from its texts -------------------------------------------------------------------------------------- */

/* Read a count of at least `least` from the metadata. */
static int32_t read_count(const struct gr_tensors *header, const char *shown, const char *key, int64_t least,
                          int64_t *count, graft_error *error)
{
    const char *text = gr_io_tensors_value(header, key);

    *count = 0;
    for (const char *at = text; at != NULL && *at != '\0'; at++) {
        if (*at < '0' || *at > '9' || at - text > 17) text = NULL;
        else *count = *count * 10 + (*at - '0');
        if (text == NULL) break;
    }
    if (text != NULL && *text != '\0' && *count >= least) return GRAFT_OK;
    return gr_fail(error, GRAFT_ERR_FORMAT, "'%s': '%s' in the metadata is '%.32s', expected a count", shown, key,
                   gr_io_tensors_value(header, key) != NULL ? gr_io_tensors_value(header, key) : "missing");
}

static int32_t read_option(const struct gr_tensors *header, const char *shown, const struct gr_tensor_pair *pair,
                           struct gr_options *options, graft_error *error)
{
    const char *key = pair->key + strlen(MODEL_PREFIX), *release = gr_io_tensors_value(header, "release");
    const struct gr_option_row     *row = gr_option_find(options, key);
    const struct gr_removed_option *removed = gr_option_removed(options, key);

    if (removed != NULL && gr_option_is_harmless(removed, pair->value)) return GRAFT_OK;
    if (removed != NULL)
        return gr_fail(error, GRAFT_ERR_UNSUPPORTED, "'%s': the model has option '%.40s', which was removed: %s", shown,
                       key, removed->advice);
    if (row == NULL || row->type == GR_TYPE_TEXT || !is_of_model(row))
        return gr_fail(error, GRAFT_ERR_UNSUPPORTED,
                       "'%s': the model has option '%.40s', which release %s does not have; the file is of release "
                       "%.20s",
                       shown, key, GRAFT_RELEASE, release != NULL ? release : "unknown");
    if (gr_option_set_value(options, row, pair->value)) return GRAFT_OK;
    return gr_fail(error, GRAFT_ERR_FORMAT, "'%s': option '%s' of the model is '%.40s', expected %s%s", shown, key,
                   pair->value, row->type == GR_TYPE_CHOICE ? "one of " : "a number in ", row->domain);
}

static int32_t read_options(const struct gr_tensors *header, const char *shown, struct gr_options *options,
                            graft_error *error)
{
    for (int32_t i = 0; i < header->n_pairs; i++)
        if (strncmp(header->pairs[i].key, MODEL_PREFIX, strlen(MODEL_PREFIX)) == 0)
            GR_TRY(read_option(header, shown, &header->pairs[i], options, error));
    return GRAFT_OK;
}

/* Read the number of edge features of a model that uses the data set's. */
static int32_t read_edge_count(const graft_model *m, const char *shown, graft_dense *edge_features, graft_error *error)
{
    const struct gr_model_options *options = gr_options_of(&m->options, &gr_model_option_table);
    int32_t                        rc;

    if (!gr_model_kind(options->kind)->attends || options->edge_features != GR_EDGE_FEATURES_ARRAY) return GRAFT_OK;
    rc = read_count(&m->header, shown, EDGE_FEATURES_KEY, 1, &edge_features->n_cols, error);
    if (rc < 0 || edge_features->n_cols <= INT32_MAX) return rc;
    return gr_fail(error, GRAFT_ERR_FORMAT, "'%s': %lld edge features are too many", shown,
                   (long long)edge_features->n_cols);
}

/* Set the kind and the widths of a model, and the shapes of its parameters, from the metadata. */
static int32_t describe_model(graft_model *m, const char *shown, graft_error *error)
{
    const struct gr_tensors *header = &m->header;
    const char              *format = gr_io_tensors_value(header, "format");
    const char              *content = gr_io_tensors_value(header, "content");
    graft_dense              edge_features = { .size = sizeof edge_features };
    graft_dataset            shape = { .size = sizeof shape, .n_vertices = 1, .edge_features = &edge_features };
    graft_error              reason = { .size = sizeof reason };

    if (format == NULL || content == NULL)
        return gr_fail(error, GRAFT_ERR_FORMAT, "'%s' is no model of Graft: its metadata have no '%s'", shown,
                       format == NULL ? "format" : "content");
    if (strcmp(format, GRAFT_MODEL_ID) != 0)
        return gr_fail(error, GRAFT_ERR_FORMAT,
                       "'%s' is no model of Graft: 'format' in its metadata is '%.32s', expected '%s'", shown, format,
                       GRAFT_MODEL_ID);
    if (strcmp(content, "weights") != 0 && strcmp(content, "state") != 0)
        return gr_fail(error, GRAFT_ERR_FORMAT, "'%s': 'content' in the metadata is '%.32s', expected weights or state",
                       shown, content);
    m->copies = strcmp(content, "state") == 0 ? GR_STATE_COPIES : 1;
    GR_TRY(read_count(header, shown, "epoch", 0, &m->progress.epoch, error));
    GR_TRY(read_count(header, shown, "n_features", 1, &shape.n_features, error));
    GR_TRY(read_count(header, shown, "n_classes", 1, &shape.n_classes, error));
    GR_TRY(read_options(header, shown, &m->options, error));
    GR_TRY(read_edge_count(m, shown, &edge_features, error));
    if (shape.n_features > INT32_MAX || shape.n_classes > INT32_MAX)
        return gr_fail(error, GRAFT_ERR_FORMAT, "'%s': %lld features and %lld classes are too many", shown,
                       (long long)shape.n_features, (long long)shape.n_classes);
    if (gr_model_config_read(&m->options, &shape, &m->model.config, &reason) < 0)
        return gr_fail(error, GRAFT_ERR_FORMAT, "'%s': %s", shown, reason.message);
    return gr_model_describe(&m->model, &m->budget, error);
}

int32_t gr_snapshot_describe(graft_context *context, struct gr_tensors *header, const char *shown, graft_model **model,
                             graft_error *error)
{
    graft_model *m = NULL;
    int32_t      rc = GRAFT_OK;

    GR_TRY_DONE(GR_NEW(context, m, 1, error));
    m->context = context;
    m->header = *header;
    *header = (struct gr_tensors){ 0 };
    gr_budget_init(&m->budget, context, 1000000 * gr_base_options(context)->memory_limit);
    GR_TRY_DONE(gr_options_init_values(context, &m->options, error));
    GR_TRY_DONE(describe_model(m, shown, error));
    *model = m;
    m = NULL;
done:
    gr_snapshot_destroy(m);
    return rc;
}

void gr_snapshot_destroy(graft_model *m)
{
    if (m == NULL) return;
    gr_budget_fini(&m->budget);
    gr_options_fini(&m->options);
    gr_io_tensors_fini(&m->header);
    gr_free(m->context, m);
}

/* -- out of a trainer and into one ------------------------------------------------------------------------------- */

static void copy_weights(graft_model *m, const graft_trainer *trainer, int best)
{
    GR_ASSERT(m->model.parameters.count == trainer->setup.model.parameters.count);
    for (int32_t i = 0; i < m->model.parameters.count; i++) {
        const struct gr_parameter *from = &trainer->setup.model.parameters.list[i];
        struct gr_parameter       *to = &m->model.parameters.list[i];
        const uint64_t             bytes = (uint64_t)(to->rows * to->cols) * sizeof *to->value;

        memcpy(to->value, best ? from->best : from->value, bytes);
        if (m->copies == 1) continue;
        memcpy(to->best, from->best, bytes);
        if (i >= m->model.parameters.n_trained) continue;
        memcpy(to->m, from->m, bytes);
        memcpy(to->v, from->v, bytes);
    }
}

int32_t gr_snapshot_allocate_tables(graft_model *m, graft_error *error)
{
    for (int32_t i = 0; i < m->n_tables; i++)
        GR_TRY(GR_BUDGET_NEW(&m->budget, GR_USE_MESSAGES, m->tables[i].data, m->tables[i].words, error));
    return GRAFT_OK;
}

static int32_t copy_batch_tables(graft_model *m, const graft_trainer *trainer, graft_error *error)
{
    const struct gr_state state = gr_trainer_state(trainer);

    if (state.n_tables == 0) return GRAFT_OK;
    GR_TRY(GR_BUDGET_NEW(&m->budget, GR_USE_MESSAGES, m->tables, state.n_tables, error));
    memcpy(m->tables, state.tables, (uint64_t)state.n_tables * sizeof *m->tables);
    m->n_tables = state.n_tables;
    GR_TRY(gr_snapshot_allocate_tables(m, error));
    for (int32_t i = 0; i < m->n_tables; i++)
        memcpy(m->tables[i].data, state.tables[i].data, (uint64_t)m->tables[i].words * sizeof *m->tables[i].data);
    return GRAFT_OK;
}

int32_t gr_snapshot_create(graft_trainer *trainer, int32_t what, graft_model **model, graft_error *error)
{
    graft_context *const context = trainer->setup.context;
    struct gr_tensors    header = { 0 };
    graft_model         *m = NULL;
    int32_t              rc = GRAFT_OK;

    if (what < GRAFT_MODEL_LAST || what > GRAFT_MODEL_STATE)
        return gr_fail(error, GRAFT_ERR_ARG, "what is %d, expected one of GRAFT_MODEL_... (0 to 2)", what);
    GR_TRY_DONE(make_texts(trainer, what, &header, error));
    GR_TRY_DONE(gr_snapshot_describe(context, &header, "the trainer", &m, error));
    GR_TRY_DONE(gr_nn_allocate(&m->model.parameters, &m->budget, m->copies, error));
    if (what == GRAFT_MODEL_STATE) GR_TRY_DONE(copy_batch_tables(m, trainer, error));
    copy_weights(m, trainer, what == GRAFT_MODEL_BEST && gr_train_progress_has_best(&trainer->progress));
    m->n_progress = gr_trainer_state(trainer).n_progress;
    if (what == GRAFT_MODEL_STATE) m->progress = trainer->progress;
    *model = m;
    m = NULL;
done:
    gr_snapshot_destroy(m);
    gr_io_tensors_fini(&header);
    return rc;
}

/* Warn if the cosine schedule of the learning rate will continue with another number of epochs. Over ranks only rank 0
 * warns. */
static void warn_of_epochs(const graft_model *m, const graft_trainer *trainer)
{
    const graft_context *context = trainer->setup.context;
    const char          *then = gr_io_tensors_value(&m->header, "training.epochs");
    int64_t              epochs;

    if (then == NULL || m->copies != GR_STATE_COPIES ||
        gr_training_options(context)->schedule.word != GR_SCHEDULE_COSINE)
        return;
    if (trainer->setup.data.over != NULL && trainer->setup.data.over->comm->rank != 0) return;
    epochs = strtoll(then, NULL, 10);
    if (epochs == gr_training_options(context)->epochs) return;
    gr_log(context, GRAFT_LOG_WARNING,
           "the state is of a run of %lld epochs, and option 'epochs' is %lld: with schedule=cosine the learning rate "
           "now follows another curve",
           (long long)epochs, (long long)gr_training_options(context)->epochs);
}

/* Check that the trainer and the model agree on options with which weights of the same shapes give other results. */
static int32_t check_same_options(const graft_model *m, const graft_trainer *trainer, graft_error *error)
{
    const graft_context *context = trainer->setup.context;
    const uint32_t       tables =
        gr_options_bit(context, &gr_shape_option_table) | gr_options_bit(context, &gr_model_option_table);
    const struct gr_option_row *row;

    for (int32_t i = 0; (row = gr_option_at(&m->options, i)) != NULL; i++) {
        const char           *ours = gr_options_copied(trainer->options, row->key), *theirs;
        char                  key[64];
        union gr_option_value of_trainer;

        if (row->table != &gr_shape_option_table && row->table != &gr_model_option_table) continue;
        if (row->type == GR_TYPE_WIDTHS || (row->flags & GR_TRAINS) != 0) continue;
        if (!gr_option_has_effect(&m->options, row, tables, 1)) continue;
        if (!gr_option_parse(row, ours, &of_trainer)) continue;
        if (memcmp(gr_option_value(&m->options, row), &of_trainer, gr_option_bytes(row)) == 0) continue;
        snprintf(key, sizeof key, "%s%s", MODEL_PREFIX, row->key);
        theirs = gr_io_tensors_value(&m->header, key);
        return gr_fail(error, GRAFT_ERR_FORMAT,
                       "option '%s' of the model is %.40s%s, and the trainer has %.40s: the same weights would "
                       "compute something else",
                       row->key, theirs != NULL ? theirs : row->default_value,
                       theirs != NULL ? "" : " (its default; the file does not say)", ours);
    }
    return GRAFT_OK;
}

/* Warn if options about the data differ. This is no error, because another host may have prepared its data itself. */
static void warn_of_data(const graft_model *m, const graft_trainer *trainer)
{
    const struct gr_config *from = &m->model.config, *to = &trainer->setup.model.config;
    const struct {
        const char *key;
        int         theirs, ours;
    } options[] = { { "normalize_features", from->data.normalize_features, to->data.normalize_features },
                    { "symmetrize", from->data.symmetrize, to->data.symmetrize },
                    { "self_loops", from->data.self_loops, to->data.self_loops } };
    const size_t count = to->kind->gathers ? sizeof options / sizeof *options : 1;

    for (size_t i = 0; i < count; i++) {
        if (!options[i].theirs == !options[i].ours) continue;
        gr_log(trainer->setup.context, GRAFT_LOG_WARNING,
               "option '%s' of the model is %s, and the trainer has %s: predictions will differ unless the data "
               "make up for it",
               options[i].key, options[i].theirs ? "yes" : "no", options[i].ours ? "yes" : "no");
    }
}

/* Whether the trainer can use the tables with rows of earlier batches. If not, it continues as from a state without
 * tables. */
static int takes_tables(const graft_model *m, graft_trainer *trainer)
{
    const struct gr_batch_strategy *strategy = trainer->batches != NULL ? trainer->batches->strategy : NULL;
    const struct gr_state           state = gr_snapshot_state(m);
    graft_state_item                item = { .size = sizeof item }, theirs = item;
    graft_error                     reason = { .size = sizeof reason }, end = reason;
    int32_t                         rc = GRAFT_OK;

    if (m->n_tables == 0 || strategy == NULL || strategy->n_tables == 0) return 0;
    if (m->n_tables != strategy->n_tables)
        rc = gr_fail(&reason, GRAFT_ERR_FORMAT, "there are %d arrays of them, expected %d", m->n_tables,
                     strategy->n_tables);
    for (int32_t i = 0; rc == GRAFT_OK && gr_train_state_item(&state, i, &item, &end) == GRAFT_OK; i++) {
        if (!gr_train_state_is_table(&item)) continue;
        rc = gr_trainer_state_find(trainer, &item, &theirs, &reason);
        if (rc == GRAFT_OK && theirs.data == strategy->table[0].data)
            rc = gr_trainer_state_check(trainer, &item, &theirs, &reason);
    }
    if (rc < 0)
        gr_log(trainer->setup.context, GRAFT_LOG_WARNING, "rows of earlier batches in the state are not used; %s: %s",
               trainer->batches->mode->refills, reason.message);
    return rc == GRAFT_OK;
}

/* Check that the trainer has the items of a state. Only a trainer can check the values of tables. */
static int32_t check_items(const struct gr_state *state, graft_trainer *trainer, graft_error *error)
{
    graft_state_item item = { .size = sizeof item }, theirs = item;
    graft_error      end = { .size = sizeof end };

    for (int32_t i = 0; gr_train_state_item(state, i, &item, &end) == GRAFT_OK; i++)
        if (gr_trainer_state_find(trainer, &item, &theirs, error) < 0 ||
            (gr_train_state_is_table(&item) && gr_trainer_state_check(trainer, &item, &theirs, error) < 0))
            return error->code = GRAFT_ERR_FORMAT;
    return GRAFT_OK;
}

int32_t gr_snapshot_apply(graft_model *m, graft_trainer *trainer, graft_error *error)
{
    const struct gr_config *from = &m->model.config, *to = &trainer->setup.model.config;
    struct gr_state         state = gr_snapshot_state(m);
    graft_state_item        item = { .size = sizeof item }, theirs = item;
    graft_error             end = { .size = sizeof end };

    if (from->width[0] != to->width[0] || from->width[from->n_layers] != to->width[to->n_layers])
        return gr_fail(error, GRAFT_ERR_ARG,
                       "the model has %lld features and %lld classes, the trainer %lld features and %lld classes",
                       (long long)from->width[0], (long long)from->width[from->n_layers], (long long)to->width[0],
                       (long long)to->width[to->n_layers]);
    if (m->model.parameters.count != trainer->setup.model.parameters.count)
        return gr_fail(error, GRAFT_ERR_FORMAT, "the model (%s) has %d weights and biases, the trainer (%s) has %d",
                       from->kind->name, m->model.parameters.count, to->kind->name,
                       trainer->setup.model.parameters.count);
    state.n_tables = 0;
    GR_TRY(check_items(&state, trainer, error));
    GR_TRY(check_same_options(m, trainer, error));
    if (takes_tables(m, trainer)) state.n_tables = m->n_tables;
    GR_TRY(check_items(&state, trainer, error));
    gr_train_minibatches_restart(trainer); /* unless the state says otherwise, an epoch begins with its first batch */
    if (trainer->batches != NULL) gr_train_batch_tables_unset(trainer->batches);
    for (int32_t i = 0; gr_train_state_item(&state, i, &item, &end) == GRAFT_OK; i++) {
        GR_TRY(gr_trainer_state_find(trainer, &item, &theirs, error));
        gr_trainer_state_copy(trainer, &item, &theirs);
    }
    warn_of_epochs(m, trainer);
    warn_of_data(m, trainer);
    return GRAFT_OK;
}

void gr_snapshot_info(const graft_model *m, graft_model_info *info)
{
    const struct gr_config *config = &m->model.config;

    info->has_state = m->copies == GR_STATE_COPIES;
    info->n_layers = config->n_layers;
    info->n_metadata = m->header.n_pairs;
    info->kind = config->kind->name;
    info->widths = config->width;
    info->n_features = config->width[0];
    info->n_classes = config->width[config->n_layers];
    for (int32_t i = 0; i < m->model.parameters.n_trained; i++)
        info->n_weights += m->model.parameters.list[i].rows * m->model.parameters.list[i].cols;
    info->epoch = m->progress.epoch;
}

int32_t gr_snapshot_metadata(const graft_model *m, int32_t index, const char **key, const char **value,
                             graft_error *error)
{
    if (index < 0 || index >= m->header.n_pairs)
        return gr_fail(error, GRAFT_ERR_NOT_FOUND, "text %d of the metadata, which has %d", index, m->header.n_pairs);
    *key = m->header.pairs[index].key;
    *value = m->header.pairs[index].value;
    return GRAFT_OK;
}
