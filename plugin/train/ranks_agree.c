/* Over ranks: what must be the same on all of them, and failures of one of them.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/crc.h"
#include "train/train.h"

#include <string.h>

int32_t gr_ranks_fail(graft_trainer *t, int32_t rc, graft_error *error)
{
    if (t->over == NULL || rc >= 0 || rc == GRAFT_ERR_PEER) return rc;
    return gr_comm_fail(t->over->comm, error);
}

static uint64_t digest_of(graft_trainer *t)
{
    graft_error      error = { .size = sizeof error };
    graft_state_item item = { .size = sizeof item };
    uint32_t         crc = 0;

    for (int32_t i = 0; gr_trainer_state_item(t, i, &item, &error) == GRAFT_OK; i++) {
        const int64_t elements = item.shape[0] * (item.n_dims == 2 ? item.shape[1] : 1);

        crc = gr_crc(crc, item.data, (uint64_t)elements * (item.dtype == GRAFT_F32 ? 4 : 8));
    }
    return crc;
}

int32_t gr_ranks_compare_state(graft_trainer *t, graft_error *error)
{
    static const char *const names[] = { "the number of epochs behind", "whether state_set() was called",
                                         "the state (by its CRC32C) after state_set()" };
    int32_t                  rc = GRAFT_OK;

    if (t->over == NULL || t->over->comm->n_ranks == 1) return GRAFT_OK;
    GR_TRY(gr_comm_compare(t->over->comm, names,
                           (const uint64_t[]){ (uint64_t)t->progress.epoch, (uint64_t)t->state_is_set,
                                               t->state_is_set ? digest_of(t) : 0 },
                           3, error));
    if (t->state_is_set) gr_partition_forget(&t->partition);
    t->state_is_set = 0;
done:
    return rc;
}

static uint64_t bits_of(double value)
{
    uint64_t bits;

    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static uint64_t crc_of(const char *text)
{
    return gr_crc(0, text, strlen(text));
}

/* Options that are the same if they are the same words. */
static const struct {
    const char       *name;
    enum gr_option_id id;
} words[] = {
    { "option norm", GR_OPTION_NORM },
    { "option optimizer", GR_OPTION_OPTIMIZER },
    { "option weight_decay_layers", GR_OPTION_WEIGHT_DECAY_LAYERS },
    { "option symmetrize", GR_OPTION_SYMMETRIZE },
    { "option order", GR_OPTION_ORDER },
    { "option row_masks", GR_OPTION_ROW_MASKS },
    { "option normalize_features", GR_OPTION_NORMALIZE_FEATURES },
    { "option reuse_input", GR_OPTION_REUSE_INPUT },
    { "option sparse_input", GR_OPTION_SPARSE_INPUT },
    { "option recompute", GR_OPTION_RECOMPUTE },
    { "option mxm.kernel", GR_OPTION_MXM_KERNEL },
    { "option dense.module", GR_OPTION_DENSE_MODULE },
    { "option dense.type", GR_OPTION_DENSE_TYPE },
    { "option strict", GR_OPTION_STRICT },
    { "option halo.bits_evaluation", GR_OPTION_HALO_BITS_EVALUATION },
};

enum { WORDS = sizeof words / sizeof words[0], BESIDES = 5 };

struct items {
    int32_t     count;
    const char *names[GR_COMPARE_MAX], *texts[GR_COMPARE_MAX];
    uint64_t    values[GR_COMPARE_MAX];
};

static void add(struct items *items, const char *name, uint64_t value, const char *text)
{
    items->names[items->count] = name;
    items->values[items->count] = value;
    items->texts[items->count++] = text;
}

/* Options that may be written in several ways: the same if they come to the same. */
static void add_values(const graft_trainer *t, struct items *items)
{
    const struct gr_config *c = &t->model.config;
    const struct {
        const char       *name;
        enum gr_option_id id;
        uint64_t          value;
    } values[] = {
        { "option layers", GR_OPTION_LAYERS, (uint64_t)c->n_layers },
        { "option heads", GR_OPTION_HEADS, (uint64_t)c->heads },
        { "option epochs", GR_OPTION_EPOCHS, (uint64_t)c->epochs },
        { "option eval_every", GR_OPTION_EVAL_EVERY, (uint64_t)c->eval_every },
        { "option lr", GR_OPTION_LR, bits_of(c->lr) },
        { "option dropout", GR_OPTION_DROPOUT, bits_of(c->dropout) },
        { "option input_dropout", GR_OPTION_INPUT_DROPOUT, bits_of(c->input_dropout) },
        { "option label_rate", GR_OPTION_LABEL_RATE, bits_of(c->label_rate) },
        { "option weight_decay", GR_OPTION_WEIGHT_DECAY, bits_of(c->weight_decay) },
        { "option momentum", GR_OPTION_MOMENTUM, bits_of(c->momentum) },
        { "option gin_eps", GR_OPTION_GIN_EPS, bits_of(c->gin_eps) },
        { "option seed", GR_OPTION_SEED, c->seed },
        { "option self_loops", GR_OPTION_SELF_LOOPS, (uint64_t)c->self_loops },
    };

    _Static_assert(sizeof values / sizeof values[0] + WORDS + BESIDES <= GR_COMPARE_MAX, "there is room for all");
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++)
        add(items, values[i].name, values[i].value, gr_option_text(t->context, values[i].id));
}

static void add_words(const graft_trainer *t, struct items *items)
{
    for (size_t i = 0; i < WORDS; i++) {
        const char *text = gr_option_text(t->context, words[i].id);

        add(items, words[i].name, crc_of(text), text);
    }
}

/* All that must be the same for ranks to train one model. */
static int32_t compare_options(const graft_trainer *t, graft_error *error)
{
    const struct gr_config *c = &t->model.config;
    const char             *model = gr_option_text(t->context, GR_OPTION_MODEL);
    const char             *hidden = gr_option_text(t->context, GR_OPTION_HIDDEN);
    struct items            items = { 0 };

    add(&items, "the number of features", (uint64_t)t->data.n_features, NULL);
    add(&items, "the number of classes", (uint64_t)t->data.n_classes, NULL);
    add(&items, "option model", crc_of(model), model);
    add(&items, "the loss", (uint64_t)c->sigmoid, c->sigmoid ? "sigmoid" : "softmax");
    add_values(t, &items);
    add(&items, "option hidden", gr_crc(0, c->width, (uint64_t)(c->n_layers + 1) * sizeof c->width[0]), hidden);
    add_words(t, &items);
    return gr_comm_compare_texts(t->over->comm, items.names, items.values, items.texts, items.count, error);
}

/* With loss "auto", targets make it a sigmoid; a rank that has no rows to give goes by those that have. */
static int32_t settle_loss(graft_trainer *t, graft_error *error)
{
    const int has_rows = t->over->n_slice > 0;
    int       sigmoid = has_rows && t->model.config.sigmoid;
    int32_t   rc = GRAFT_OK;

    GR_TRY(gr_strategy_any(t->run.strategy, &sigmoid, error));
    if (!has_rows && gr_option_is(t->context, GR_OPTION_LOSS, "auto")) t->model.config.sigmoid = sigmoid;
done:
    return rc;
}

int32_t gr_ranks_compare(graft_trainer *t, graft_error *error)
{
    int32_t rc = GRAFT_OK;

    if (t->over == NULL) return GRAFT_OK;
    GR_TRY(settle_loss(t, error));
    GR_TRY(compare_options(t, error));
    GR_TRY(gr_wire_compare(t->context, t->over->comm, error));
    GR_TRY(gr_lanes_compare(t->context, t->over->comm, error));
    if (t->over->comm->rank == 0) gr_wire_tell_idle(t->context);
done:
    return rc;
}
