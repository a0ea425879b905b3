/* Checks the tables of option history in the state. Training that is cancelled inside an epoch and continued in another
 * context must be bitwise identical to uninterrupted training, also through a file. Invalid tables must be refused
 * without harm. Tables of another graph, order or codec are filled again.
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness/hosts.h"
#include "harness/outputs.h"
#include "harness/state_items.h"
#include "harness/strict_host.h"
#include "harness/tap.h"
#include "oracle/sample.h"

#include "graft_load.h"
#include "graft_model.h"
#include "graft_train.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

enum { N = 300, FEATURES = 7, CLASSES = 4, EPOCHS = 4, RECORD = 20 /* RECORD: bytes of 16 columns in q8 */ };

static const graft_api       *api;
static const graft_train_api *train;
static const graft_model_api *models;
static graft_error            error;
static struct strict_host     host;
static int64_t                cancel_at = -1; /* number of the allocation that asks to cancel the call */
static struct sample          sample = { 31 };
static struct sample_dataset  set;
static char                   path[64];
static const char             HISTORY[] = "history.";

static void *cancel_in_allocate(void *self, uint64_t bytes, uint64_t alignment)
{
    if (cancel_at >= 0 && host.calls == cancel_at) api->cancel(api->context);
    return strict_allocate(self, bytes, alignment);
}

/* -- contexts, trainers, states ----------------------------------------------------------------------------------- */

static void open_context(const char *settings)
{
    if (graft_load(getenv("GRAFT_LIBRARY"), &host.table, &api, &error) != GRAFT_OK)
        printf("Bail out! %s\n", error.message), exit(2);
    train = graft_interface(api, GRAFT_TRAIN_ID, sizeof *train);
    models = graft_interface(api, GRAFT_MODEL_ID, sizeof *models);
    host_set_all(api, "model=sage layers=3 hidden=16 heads=2 propagation=3 dropout=0.3 epochs=4 eval_every=2 threads=1 "
                      "batch_size=20 history=full lr=0.05 partition.program=none");
    host_set_all(api, settings);
}

static void close_context(void)
{
    api->close(api->context);
    api = NULL;
}

static graft_trainer *history_trainer(void)
{
    graft_trainer *trainer = NULL;

    if (train->create(api->context, &set.dataset, &trainer, &error) != GRAFT_OK)
        printf("Bail out! %s\n", error.message), exit(2);
    return trainer;
}

static int32_t set_kept(graft_trainer *trainer, const struct kept_state *kept, int with_tables)
{
    return kept_state_set(kept, with_tables ? NULL : HISTORY, train, trainer, &error);
}

/* -- bitwise identical --------------------------------------------------------------------------------------------- */

struct results {
    double            loss[EPOCHS];
    float             logits[N * CLASSES];
    struct kept_state last;
};

/* Run the epochs from `first` on, and keep losses, predictions and state. */
static void train_from(graft_trainer *trainer, int first, struct results *r)
{
    const graft_dense logits = graft_dense_in(GRAFT_F32, N, CLASSES, r->logits);
    graft_epoch       epoch = output_epoch();

    for (int e = first; e < EPOCHS; e++) {
        output_clear(&r->loss[e], sizeof r->loss[e]);
        if (train->epoch(trainer, &epoch, &error) == GRAFT_OK) r->loss[e] = epoch.loss;
        else diag("%s", error.message);
    }
    output_clear_rows(&logits);
    if (train->predict(trainer, GRAFT_WEIGHTS_LAST, NULL, &logits, &error) != GRAFT_OK) diag("%s", error.message);
    kept_state_take(&r->last, train, trainer);
}

static int same_history(const struct results *a, const struct results *b)
{
    return memcmp(a->loss, b->loss, sizeof a->loss) == 0 && memcmp(a->logits, b->logits, sizeof a->logits) == 0 &&
           same_kept_state(&a->last, &b->last, NULL);
}

/* Cancel the next epoch in its middle. The result is the number of batches that it has completed. */
static int64_t cancel_inside(graft_trainer *trainer, struct kept_state *state)
{
    graft_epoch   epoch = output_epoch();
    const int32_t expected = (cancel_at = host.calls + 150, GRAFT_ERR_CANCELLED);
    const int32_t rc = train->epoch(trainer, &epoch, &error);

    cancel_at = -1;
    kept_state_take(state, train, trainer);
    return rc == expected ? *(const int64_t *)kept_state_find(state, "progress.batch")->data : -1;
}

enum way { BY_ITEMS, BY_FILE, WITHOUT_TABLES };

/* Make a trainer in another context with the state of `from`. */
static graft_trainer *move(graft_trainer *from, const struct kept_state *state, const char *settings, enum way way)
{
    graft_model   *model = NULL;
    graft_trainer *to;
    int32_t        rc = GRAFT_OK;

    if (way == BY_FILE) rc = models->create(from, GRAFT_MODEL_STATE, &model, &error);
    if (rc == GRAFT_OK && way == BY_FILE) rc = models->save(model, path, &error);
    if (model != NULL) models->destroy(model);
    train->destroy(from);
    close_context();
    open_context(settings);
    to = history_trainer();
    model = NULL;
    if (rc == GRAFT_OK && way == BY_FILE) rc = models->load(api->context, NULL, path, &model, &error);
    if (rc == GRAFT_OK) rc = way == BY_FILE ? models->apply(model, to, &error) : set_kept(to, state, way == BY_ITEMS);
    if (model != NULL) models->destroy(model);
    if (rc != GRAFT_OK) diag("%s", error.message);
    return to;
}

static void test_resumed_history(const char *settings)
{
    static struct results whole, moved[3];
    graft_trainer        *trainer;
    int64_t               batches = 0, tables = 0;

    open_context(settings);
    trainer = history_trainer();
    train_from(trainer, 0, &whole);
    train->destroy(trainer);
    for (int way = BY_ITEMS; way <= WITHOUT_TABLES; way++) {
        graft_epoch       epoch = output_epoch();
        struct kept_state state;

        trainer = history_trainer();
        train->epoch(trainer, &epoch, &error);
        moved[way].loss[0] = epoch.loss;
        batches = cancel_inside(trainer, &state);
        trainer = move(trainer, &state, settings, (enum way)way);
        train_from(trainer, 1, &moved[way]);
        train->destroy(trainer);
        for (int32_t i = 0; i < state.n; i++) tables += state_item_begins(&state.item[i], HISTORY);
        kept_state_free(&state);
    }
    ok(batches > 0 && tables > 3 && same_history(&whole, &moved[BY_ITEMS]) && same_history(&whole, &moved[BY_FILE]),
       "%s: a run that is cancelled after %lld batches of an epoch and continued by items or a "
       "file is bitwise identical",
       settings, (long long)batches);
    ok(memcmp(&moved[WITHOUT_TABLES].loss[1], &whole.loss[1], sizeof whole.loss[1]) != 0 &&
           fabs(moved[WITHOUT_TABLES].loss[EPOCHS - 1] / whole.loss[EPOCHS - 1] - 1) < 0.2,
       "%s: without the tables of the state they are filled again, and the loss is similar but "
       "not identical (%.3f, %.3f)",
       settings, moved[WITHOUT_TABLES].loss[EPOCHS - 1], whole.loss[EPOCHS - 1]);
    close_context();
    kept_state_free(&whole.last);
    for (int way = 0; way < 3; way++) kept_state_free(&moved[way].last);
}

/* -- states that cannot be ---------------------------------------------------------------------------------------- */

static const char q8[] = "hec.codec=q8 model=gcn dropout=0";

/* A trainer in the middle of its second epoch, and its state. */
static graft_trainer *halfway(struct kept_state *state)
{
    graft_trainer *trainer = history_trainer();
    graft_epoch    epoch = output_epoch();

    train->epoch(trainer, &epoch, &error);
    if (cancel_inside(trainer, state) <= 0) printf("Bail out! no middle\n"), exit(2);
    return trainer;
}

static int table_is_refused(graft_trainer *trainer, const graft_state_item *item, int32_t code, const char *part)
{
    const int refused = train->state_set(trainer, item, &error) == code && strstr(error.message, part) != NULL;

    if (!refused) diag("%s: %s", item->name, error.message);
    return refused;
}

/* Each invalid table must be refused with a sentence, and the trainer must go on as if nothing had happened. */
static void test_broken_tables(void)
{
    static struct results whole, after;
    struct kept_state     state, good;
    graft_trainer        *trainer;
    graft_state_item      item;
    int                   refused;

    open_context(q8);
    trainer = halfway(&state);
    train_from(trainer, 1, &whole);
    train->destroy(trainer);
    kept_state_free(&state);
    trainer = halfway(&state);
    kept_state_take(&good, train, trainer);
    ((int64_t *)(uintptr_t)kept_state_find(&state, "history.1.batches")->data)[N - 1] = -1;
    refused =
        table_is_refused(trainer, kept_state_find(&state, "history.1.batches"), GRAFT_ERR_FORMAT, "element 299 is -1");
    memset((char *)(uintptr_t)kept_state_find(&state, "history.1.rows")->data + 7 * RECORD, 0xFF, RECORD);
    refused &= table_is_refused(trainer, kept_state_find(&state, "history.1.rows"), GRAFT_ERR_FORMAT,
                                "row 7 is not a valid record");
    ++*(int64_t *)(uintptr_t)kept_state_find(&state, "history.layout")->data;
    refused &=
        table_is_refused(trainer, kept_state_find(&state, "history.layout"), GRAFT_ERR_FORMAT, "of another graph");
    item = *kept_state_find(&good, "history.1.rows");
    item.shape[0]--;
    refused &= table_is_refused(trainer, &item, GRAFT_ERR_FORMAT, "is I64 [749], expected I64 [750]");
    item.name = "history.3.rows";
    refused &= table_is_refused(trainer, &item, GRAFT_ERR_NOT_FOUND, "no state item");
    train_from(trainer, 1, &after);
    ok(refused && same_history(&whole, &after), "invalid tables of stale rows are refused, and nothing has changed");
    train->destroy(trainer);
    close_context();
    kept_state_free(&state);
    kept_state_free(&good);
    kept_state_free(&whole.last);
    kept_state_free(&after.last);
}

/* Random bytes of tables must be refused, or training goes on, perhaps to numbers that are not finite. */
static void test_random_tables(const char *settings)
{
    struct kept_state state;
    int64_t           refused = 0, taken = 0;
    int               fine = 1;

    open_context(settings);
    train->destroy(halfway(&state));
    for (int i = 0; i < 60 && fine; i++) {
        graft_trainer    *trainer = history_trainer();
        graft_epoch       epoch = output_epoch();
        graft_state_item *item;
        unsigned char    *byte, before;
        int32_t           rc;

        do item = &state.item[sample_below(&sample, state.n)];
        while (!state_item_begins(item, HISTORY));
        byte = (unsigned char *)(uintptr_t)item->data + sample_below(&sample, (int64_t)state_item_bytes(item));
        before = *byte;
        *byte ^= (unsigned char)(1 << sample_below(&sample, 8));
        rc = set_kept(trainer, &state, 1);
        refused += rc == GRAFT_ERR_FORMAT;
        taken += rc == GRAFT_OK;
        fine = rc == GRAFT_OK || rc == GRAFT_ERR_FORMAT;
        for (int e = 1; e < EPOCHS && fine; e++) {
            rc = train->epoch(trainer, &epoch, &error);
            fine = rc == GRAFT_OK || rc == GRAFT_ERR_NONFINITE;
        }
        if (!fine) diag("%s: %s", item->name, error.message);
        train->destroy(trainer);
        *byte = before;
    }
    ok(fine && refused > 0 && taken > 0, "%s: tables with a changed bit: %lld are refused, %lld are used", settings,
       (long long)refused, (long long)taken);
    close_context();
    kept_state_free(&state);
}

/* Use the tables of a new trainer that has the rest of a state, of one that has one of them, and of one that had used
 * others. */
static void test_some_tables(void)
{
    static struct results results[3];
    struct kept_state     state;

    open_context(q8);
    train->destroy(halfway(&state));
    for (int i = 0; i < 3; i++) {
        graft_trainer *trainer = history_trainer();
        graft_epoch    epoch = output_epoch();

        if (i == 2) set_kept(trainer, &state, 1);
        if (i == 2) train->epoch(trainer, &epoch, &error);
        set_kept(trainer, &state, 0);
        if (i == 1) train->state_set(trainer, kept_state_find(&state, "history.2.rows"), &error);
        train_from(trainer, 1, &results[i]);
        train->destroy(trainer);
    }
    ok(same_history(&results[0], &results[1]) && same_history(&results[0], &results[2]),
       "if not all tables are set, they are filled again");
    close_context();
    kept_state_free(&state);
    for (int i = 0; i < 3; i++) kept_state_free(&results[i].last);
}

/* Let the last edge begin at a vertex that no other edge of its row has. */
static void change_edge(void)
{
    const graft_csr *a = &set.graph.csr;
    int64_t          row = N - 1, from = 0;

    while (a->row_ptr[row] == a->row_ptr[row + 1]) row--;
    for (int64_t e = a->row_ptr[row]; e < a->row_ptr[row + 1]; e++)
        if ((int64_t)sample_at(a->col_idx, a->index_type, e) == from) from++, e = a->row_ptr[row] - 1;
    sample_put((void *)(uintptr_t)a->col_idx, a->index_type, a->row_ptr[row + 1] - 1, (double)from);
}

/* A file of a state in a trainer that cannot use its tables: they are filled again, and the log has a line about it. */
static void test_other_trainer(const char *settings, void (*change)(void), int logs)
{
    static struct results results[2];
    struct kept_state     state;
    graft_model          *model = NULL;
    graft_trainer        *trainer;
    int32_t               rc;

    open_context(q8);
    trainer = halfway(&state);
    rc = models->create(trainer, GRAFT_MODEL_STATE, &model, &error);
    train->destroy(trainer);
    host_set_all(api, settings);
    if (change != NULL) change();
    for (int i = 0; i < 2 && rc == GRAFT_OK; i++) {
        int64_t lines;

        trainer = history_trainer();
        lines = host.log_lines;
        rc = i == 0 ? models->apply(model, trainer, &error) : set_kept(trainer, &state, 0);
        if (i == 0 && (host.log_lines > lines) != logs) rc = GRAFT_ERR_ARG;
        train_from(trainer, 1, &results[i]);
        train->destroy(trainer);
    }
    if (rc != GRAFT_OK) diag("%s", error.message);
    ok(rc == GRAFT_OK && same_history(&results[0], &results[1]),
       "a state with tables is refused in a trainer with %s%s", settings, change != NULL ? " and another graph" : "");
    models->destroy(model);
    close_context();
    kept_state_free(&state);
    for (int i = 0; i < 2; i++) kept_state_free(&results[i].last);
}

/* -- memory ------------------------------------------------------------------------------------------------------- */

/* Each allocation of create, save, load and apply fails in turn. Afterwards everything must be as if none had. */
static void test_lack_of_memory(void)
{
    static struct results whole, after;
    struct kept_state     state;
    graft_trainer        *trainer;
    int64_t               fails = 0, bytes = 0, most = 0;
    int32_t               rc = GRAFT_ERR_NOMEM;
    int                   fine = 1;

    open_context("hidden=64");
    trainer = halfway(&state);
    for (int32_t i = 0; i < state.n; i++) bytes += (int64_t)state_item_bytes(&state.item[i]);
    for (; rc != GRAFT_OK && fine && fails < 500; fails++) {
        graft_model  *made = NULL, *loaded = NULL;
        const int64_t live = host.live_bytes;

        host.most_bytes = live;
        host.fail_at = host.calls + fails;
        rc = models->create(trainer, GRAFT_MODEL_STATE, &made, &error);
        if (rc == GRAFT_OK) most = host.most_bytes - live;
        if (rc == GRAFT_OK) rc = models->save(made, path, &error);
        if (rc == GRAFT_OK) rc = models->load(api->context, NULL, path, &loaded, &error);
        if (rc == GRAFT_OK) rc = models->apply(loaded, trainer, &error);
        fine = rc == GRAFT_OK || rc == GRAFT_ERR_NOMEM;
        host.fail_at = -1;
        models->destroy(made);
        models->destroy(loaded);
        fine = fine && host.live_bytes == live;
    }
    train_from(trainer, 1, &after);
    train->destroy(trainer);
    kept_state_free(&state);
    trainer = halfway(&state);
    train_from(trainer, 1, &whole);
    ok(fine && rc == GRAFT_OK && fails > 20 && same_history(&whole, &after),
       "%lld allocations fail on the way of a state through a file, and no data or memory is lost", (long long)fails);
    ok(bytes > 200000 && most < bytes + 40000, "a model needs the bytes of the state, %lld of %lld", (long long)most,
       (long long)bytes);
    train->destroy(trainer);
    close_context();
    kept_state_free(&state);
    kept_state_free(&whole.last);
    kept_state_free(&after.last);
}

int main(void)
{
    error = GRAFT_INIT(graft_error);
    strict_host_init(&host);
    host.table.allocate = cancel_in_allocate;
    snprintf(path, sizeof path, "/tmp/graft-history-%d", (int)getpid());
    sample_dataset_init(&set, &sample, N, FEATURES, CLASSES, 0, 0);
    test_resumed_history("hec.codec=f32 threads=2");
    test_resumed_history("hec.codec=bf16 model=gcn order=rcm");
    test_resumed_history("hec.codec=q8 model=gat attention_dropout=0.2");
    test_resumed_history("hec.codec=q4 model=appnp");
    test_resumed_history("hec.codec=f32 sampler=cluster:60 model=gcn");
    test_resumed_history("hec.codec=bf16 sampler=cluster:60 hidden=9,11");
    test_resumed_history("hec.codec=q8 sampler=cluster:60 fanout=5 model=gin");
    test_resumed_history("hec.codec=q4 sampler=cluster:60 sample.ahead=2");
    test_broken_tables();
    test_random_tables("hec.codec=f32");
    test_random_tables("hec.codec=q8");
    test_random_tables("hec.codec=bf16 model=gat");
    test_some_tables();
    test_other_trainer("hec.codec=q4", NULL, 1);
    test_other_trainer("order=degree", NULL, 1);
    test_other_trainer("history=no fanout=4", NULL, 0);
    test_lack_of_memory();
    test_other_trainer("layers=3", change_edge, 1);
    sample_dataset_fini(&set);
    unlink(path);
    ok(host.live_blocks == 0 && host.fault == NULL, "all memory of the trainers is freed (%lld blocks, %s)",
       (long long)host.live_blocks, host.fault != NULL ? host.fault : "no fault");
    return done();
}
