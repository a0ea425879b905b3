/* Checkpoints of a stream: a file for each rank, with the network, counters, pairs, and states. The files of all ranks
 * are written under temporary names before any is renamed. load() compares the data that must be equal on all ranks.
 * SPDX-License-Identifier: Apache-2.0 */
#include "network/file.h"
#include "base/crc.h"
#include "base/memory.h"
#include "comm/collective.h"
#include "stream/stream.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#define STREAM_ARCHITECTURE "graft.stream/1"

enum { TEXTS = GR_NETWORK_TEXTS + 9, TENSORS = 4, PAIR_COLUMNS = 3 };

/* The texts in the metadata of a file: those of the network, and then those of the stream. */
struct texts {
    struct gr_network_texts network;
    char                    value[TEXTS - GR_NETWORK_TEXTS][24];
    struct gr_tensor_pair   pair[TEXTS];
};

static void describe_stream(const graft_stream *s, struct texts *t)
{
    const struct gr_comm *comm = s->network->mesh->comm;
    const uint32_t        nodes = gr_crc(0, s->network->mesh->id, (uint64_t)(8 * s->network->mesh->n_nodes));
    const struct {
        const char *key;
        long long   number;
    } rows[] = {
        { "stream.rank", comm->rank },
        { "stream.ranks", comm->n_ranks },
        { "stream.mesh", nodes },
        { "stream.policy", s->options.policy },
        { "stream.lag", gr_stream_lag(s) },
        { "stream.interval", gr_stream_interval(s) },
        { "stream.batch", s->options.batch },
        { "stream.holdout", s->options.holdout },
        { "stream.capacity", s->train.capacity },
    };

    gr_network_texts(s->network, &t->network);
    memcpy(t->pair, t->network.pair, sizeof t->network.pair);
    for (int k = 0; k < TEXTS - GR_NETWORK_TEXTS; k++) {
        snprintf(t->value[k], sizeof t->value[k], "%lld", rows[k].number);
        t->pair[GR_NETWORK_TEXTS + k] = (struct gr_tensor_pair){ rows[k].key, t->value[k] };
    }
}

/* The counters of a stream in a file, all int64_t. */
struct numbers {
    struct gr_stream_counters counters;
    int64_t                   train_seen, held_seen, train_count, held_count, waiting;
};

enum { NUMBERS = sizeof(struct numbers) / sizeof(int64_t), VALUES = 3 };
_Static_assert(sizeof(struct numbers) % sizeof(int64_t) == 0, "numbers are int64");

/* The data of a stream in a file. */
struct contents {
    struct numbers numbers;
    double         values[VALUES];
    int64_t       *pairs;  /* [(pairs + waiting inputs) x PAIR_COLUMNS] two states, and stride or `due` */
    void         **states; /* [n_states] memory of each state */
    int64_t        n_states;
};

static int64_t pair_rows(const struct numbers *n)
{
    return n->train_count + n->held_count + n->waiting;
}

/* List the slots that are in use as states, and pairs with the indices of their states in this list. */
static int32_t list_contents(const graft_stream *s, struct gr_pool *pool, struct contents *c, graft_error *error)
{
    int32_t *number = NULL;
    int64_t *to;

    c->numbers =
        (struct numbers){ s->counters, s->train.seen, s->held.seen, s->train.count, s->held.count, s->n_waiting };
    c->values[0] = s->validation;
    c->values[1] = s->best;
    c->values[2] = s->time;
    GR_TRY(GR_POOL_NEW(s->context, pool, number, s->slots.most, error));
    GR_TRY(GR_POOL_NEW(s->context, pool, c->states, s->slots.most, error));
    GR_TRY(GR_POOL_NEW(s->context, pool, c->pairs, PAIR_COLUMNS * pair_rows(&c->numbers), error));
    for (int32_t k = 0; k < s->slots.count; k++) {
        number[k] = (int32_t)c->n_states;
        if (s->slots.uses[k] > 0) c->states[c->n_states++] = s->slots.state[k];
    }
    to = c->pairs;
    for (int32_t k = 0; k < s->train.count + s->held.count; k++, to += PAIR_COLUMNS) {
        const struct gr_stream_pair *p = k < s->train.count ? &s->train.pair[k] : &s->held.pair[k - s->train.count];

        to[0] = number[p->input];
        to[1] = number[p->target];
        to[2] = p->stride;
    }
    for (int32_t k = 0; k < s->n_waiting; k++, to += PAIR_COLUMNS) {
        to[0] = to[1] = number[s->waiting[k].slot];
        to[2] = s->waiting[k].due;
    }
    return GRAFT_OK;
}

/* The tensors of a stream in a file. Their shapes follow from struct contents. */
enum { TENSOR_NUMBERS, TENSOR_VALUES, TENSOR_PAIRS, TENSOR_STATES };

static void list_tensors(const graft_stream *s, struct contents *c, struct gr_tensor_data data[TENSORS])
{
    const graft_dtype dtype = s->network->parameters.dtype;
    const int64_t     elements = s->slots.bytes / gr_nn_bytes(dtype);

    data[TENSOR_NUMBERS] = (struct gr_tensor_data){ "stream.numbers", GRAFT_I64, 1, { NUMBERS }, &c->numbers, NULL };
    data[TENSOR_VALUES] = (struct gr_tensor_data){ "stream.values", GRAFT_F64, 1, { VALUES }, c->values, NULL };
    data[TENSOR_PAIRS] = (struct gr_tensor_data){
        "stream.pairs", GRAFT_I64, 2, { pair_rows(&c->numbers), PAIR_COLUMNS }, c->pairs, NULL
    };
    data[TENSOR_STATES] = (struct gr_tensor_data){ "stream.states",           dtype, 2,
                                                   { c->n_states, elements }, NULL,  (const void *const *)c->states };
}

static int32_t path_of_rank(const graft_stream *s, const char *path, char of_rank[PATH_MAX], graft_error *error)
{
    if (snprintf(of_rank, PATH_MAX, "%s.%d", path, s->network->mesh->comm->rank) < PATH_MAX) return GRAFT_OK;
    return gr_fail(error, GRAFT_ERR_IO, "the path has %zu characters, more than the system takes", strlen(path));
}

static int32_t write_checkpoint(graft_stream *s, const char *path, struct gr_output *output, graft_error *error)
{
    const struct gr_state_items items = gr_network_items(s->network, NULL);
    const int32_t               had_moments = s->network->training.has_moments;
    struct contents             c = { .n_states = 0 };
    struct gr_tensor_data      *data = NULL;
    struct gr_pool              pool = { NULL, 0 };
    struct texts                texts;
    int32_t                     count, rc = GRAFT_OK;

    GR_TRY_DONE(gr_network_reserve_moments(s->network, error));
    s->network->training.has_moments = 1; /* so that a file always has these arrays */
    GR_TRY_DONE(list_contents(s, &pool, &c, error));
    GR_TRY_DONE(gr_io_state_file_list(s->context, &items, TENSORS, &data, &count, error));
    list_tensors(s, &c, data + count);
    count += TENSORS;
    describe_stream(s, &texts);
    rc = gr_io_tensor_file_write(s->context, data, count, texts.pair, TEXTS, path, output, error);
done:
    gr_free(s->context, data);
    gr_pool_fini(s->context, &pool);
    s->network->training.has_moments = had_moments;
    return rc;
}

int32_t gr_stream_save(graft_stream *s, int32_t rc, const char *path, graft_error *error)
{
    struct gr_output output = { .temporary.fd = -1 };
    struct gr_comm  *comm = s->network->mesh->comm;
    char             of_rank[PATH_MAX];

    GR_TRY_DONE(gr_network_agree(s->network, rc, s->counters.offered, error));
    rc = path_of_rank(s, path, of_rank, error);
    if (rc == GRAFT_OK) rc = write_checkpoint(s, of_rank, &output, error);
    GR_TRY_DONE(gr_comm_agree(comm, rc, error));
    rc = gr_comm_agree_on(comm, gr_output_end(&output, NULL, error), error);
done:
    gr_output_abort(&output);
    return rc;
}

/* The data that are read from a checkpoint, before they replace those of the stream. */
struct checkpoint {
    struct gr_tensor_file from;
    struct gr_pool        pool;
    struct contents       contents;
    struct gr_slots       slots;
    void                **items; /* copies of the items of the network */
};

static int32_t check_stream_texts(const graft_stream *s, const struct gr_tensor_file *from, graft_error *error)
{
    struct texts texts;

    describe_stream(s, &texts);
    for (int k = 0; k < TEXTS; k++) {
        const char *found = gr_io_tensors_value(&from->header, texts.pair[k].key);

        if (found != NULL && strcmp(found, texts.pair[k].value) == 0) continue;
        return gr_fail(error, GRAFT_ERR_FORMAT,
                       "'%s': '%s' is '%.24s' in its metadata, but '%s' here; a checkpoint continues with the same "
                       "mesh, ranks and options",
                       from->file.name, texts.pair[k].key, found != NULL ? found : "", texts.pair[k].value);
    }
    return GRAFT_OK;
}

/* Read a tensor of the stream, whose shape follows from the contents that were read before. */
static int32_t read_tensor(const graft_stream *s, struct checkpoint *c, int which, void *to, graft_error *error)
{
    struct gr_tensor_data   data[TENSORS];
    const struct gr_tensor *found;
    struct gr_tensor        expected;

    list_tensors(s, &c->contents, data);
    expected = (struct gr_tensor){ .name = data[which].name, .dtype = data[which].dtype, .n_dims = data[which].n_dims };
    memcpy(expected.shape, data[which].shape, sizeof expected.shape);
    GR_TRY(gr_io_tensor_file_find(&c->from.file, &c->from.header, &expected, "a checkpoint of this stream has it",
                                  &found, error));
    return gr_io_tensor_file_read(&c->from.file, &c->from.header, c->from.data, found, to, error);
}

static int32_t refuse_checkpoint(const struct checkpoint *c, const char *what, graft_error *error)
{
    return gr_fail(error, GRAFT_ERR_FORMAT, "'%s': %s do not belong to a stream with these options", c->from.file.name,
                   what);
}

/* The largest legal counter: counting continues from the values in the file. */
static const int64_t COUNTER_MOST = (int64_t)1 << 62;

static int32_t check_numbers(const graft_stream *s, const struct checkpoint *c, graft_error *error)
{
    const struct numbers *n = &c->contents.numbers;
    const int64_t        *all = (const int64_t *)n;

    for (size_t k = 0; k < NUMBERS; k++)
        if (all[k] < 0 || all[k] > COUNTER_MOST) return refuse_checkpoint(c, "its numbers", error);
    if (n->train_count > s->train.capacity || n->held_count > s->held.capacity || n->waiting > s->waiting_most - 1 ||
        n->train_seen < n->train_count || n->held_seen < n->held_count)
        return refuse_checkpoint(c, "its numbers", error);
    return GRAFT_OK;
}

/* Whether the pair whose target has position `due` began before position `end`, at a position where pairs begin. */
static int has_begun(const graft_stream *s, int64_t due, int64_t end)
{
    const int64_t begun = due - gr_stream_lag(s);

    return begun >= 0 && begun < end && begun % gr_stream_interval(s) == 0;
}

/* Check that pairs refer to existing states, and that inputs wait in the order of their targets. */
static int32_t check_pairs_of(const graft_stream *s, const struct checkpoint *c, graft_error *error)
{
    const struct numbers *n = &c->contents.numbers;
    const int64_t         pairs = n->train_count + n->held_count;
    int64_t               due = n->counters.position - 1;

    for (int64_t k = 0; k < pair_rows(n); k++) {
        const int64_t *row = c->contents.pairs + k * PAIR_COLUMNS;

        if (row[0] < 0 || row[1] < 0 || row[0] >= c->contents.n_states || row[1] >= c->contents.n_states)
            return refuse_checkpoint(c, "its pairs", error);
        if (k < pairs ? row[2] != s->network->columns.in && row[2] != s->network->columns.out
                      : row[2] <= due || !has_begun(s, row[2], n->counters.position))
            return refuse_checkpoint(c, "its pairs", error);
        if (k >= pairs) due = row[2];
    }
    return GRAFT_OK;
}

/* Read states into new slots, in the order of the file. */
static int32_t read_states(graft_stream *s, struct checkpoint *c, graft_error *error)
{
    const struct gr_tensor *found = gr_io_tensors_find(&c->from.header, "stream.states");
    char                   *all = NULL;
    int32_t                 rc = GRAFT_OK;

    if (found != NULL && found->n_dims == 2) c->contents.n_states = found->shape[0];
    c->slots.bytes = s->slots.bytes;
    c->slots.most = s->slots.most;
    if (c->contents.n_states > c->slots.most) return refuse_checkpoint(c, "its states", error);
    GR_TRY_DONE(gr_stream_slots_init(s->context, &c->slots, error));
    GR_TRY_DONE(gr_stream_slots_reserve(s->context, &c->slots, (int32_t)c->contents.n_states, error));
    GR_TRY_DONE(GR_NEW(s->context, all, c->contents.n_states * s->slots.bytes, error));
    GR_TRY_DONE(read_tensor(s, c, TENSOR_STATES, all, error));
    for (int64_t k = 0; k < c->contents.n_states; k++)
        memcpy(c->slots.state[k], all + k * s->slots.bytes, (size_t)s->slots.bytes);
    c->slots.n_unused = 0; /* take_checkpoint() counts uses and lists unused slots */
done:
    gr_free(s->context, all);
    return rc;
}

static int32_t read_checkpoint(graft_stream *s, const char *path, struct checkpoint *c, graft_error *error)
{
    graft_network              *n = s->network;
    const struct gr_state_items items = gr_network_items(n, "stream.");
    struct numbers             *numbers = &c->contents.numbers;

    GR_TRY(gr_io_tensor_file_open(s->context, NULL, path, &c->from, error));
    GR_TRY(check_stream_texts(s, &c->from, error));
    GR_TRY(gr_network_reserve_moments(n, error));
    n->training.has_moments = 1;
    GR_TRY(gr_io_state_file_check(&items, &c->from.file, &c->from.header, error));
    GR_TRY(GR_POOL_NEW(s->context, &c->pool, c->items, 4 * n->parameters.count + 3 * GR_STATISTICS + 1, error));
    GR_TRY(gr_network_read_items(n, &c->from, &c->pool, c->items, error));
    GR_TRY(read_tensor(s, c, TENSOR_NUMBERS, numbers, error));
    GR_TRY(read_tensor(s, c, TENSOR_VALUES, c->contents.values, error));
    GR_TRY(check_numbers(s, c, error));
    GR_TRY(GR_POOL_NEW(s->context, &c->pool, c->contents.pairs, PAIR_COLUMNS * pair_rows(numbers), error));
    GR_TRY(read_tensor(s, c, TENSOR_PAIRS, c->contents.pairs, error));
    GR_TRY(read_states(s, c, error));
    return check_pairs_of(s, c, error);
}

/* Check that the files of all ranks come from one save(): counters and weights are equal. */
static int32_t compare_checkpoints(graft_stream *s, struct checkpoint *c, graft_error *error)
{
    const struct numbers *n = &c->contents.numbers;
    graft_state_item      item = { .size = sizeof item };
    graft_error           end = { .size = sizeof end };
    uint32_t              crc = gr_crc(0, n, sizeof *n);
    int64_t               least, most;

    for (int32_t i = 0; gr_network_state_item(s->network, i, &item, &end) == GRAFT_OK; i++)
        if (c->items[i] != NULL) crc = gr_crc(crc, c->items[i], (uint64_t)gr_nn_item_bytes(&item));
    least = most = crc;
    GR_TRY(gr_comm_min(s->network->mesh->comm, &least, 1, error));
    GR_TRY(gr_comm_max(s->network->mesh->comm, &most, 1, error));
    if (least != most)
        return gr_fail(
            error, GRAFT_ERR_FORMAT,
            "the files of the ranks do not belong together: their counters or weights differ, so they are of "
            "different times");
    return GRAFT_OK;
}

/* Replace the data of the stream by those of the checkpoint. */
static void take_checkpoint(graft_stream *s, struct checkpoint *c)
{
    const struct numbers *n = &c->contents.numbers;
    const int64_t        *row = c->contents.pairs;
    struct gr_slots       old = s->slots;

    gr_network_take_items(s->network, c->items);
    s->slots = c->slots;
    c->slots = old;
    for (int64_t k = 0; k < pair_rows(n); k++, row += PAIR_COLUMNS) {
        const struct gr_stream_pair pair = { (int32_t)row[0], (int32_t)row[1], row[2] };

        gr_stream_slots_use(&s->slots, pair.input);
        if (k < n->train_count) s->train.pair[k] = pair;
        else if (k < n->train_count + n->held_count) s->held.pair[k - n->train_count] = pair;
        else s->waiting[k - n->train_count - n->held_count] = (struct gr_waiting){ pair.input, row[2] };
        if (k < n->train_count + n->held_count) gr_stream_slots_use(&s->slots, pair.target);
    }
    for (int32_t k = s->slots.count - 1; k >= 0; k--)
        if (s->slots.uses[k] == 0) s->slots.unused[s->slots.n_unused++] = k;
    s->counters = n->counters;
    s->train.seen = n->train_seen;
    s->held.seen = n->held_seen;
    s->train.count = (int32_t)n->train_count;
    s->held.count = (int32_t)n->held_count;
    s->n_waiting = (int32_t)n->waiting;
    s->validation = c->contents.values[0];
    s->best = c->contents.values[1];
    s->time = c->contents.values[2];
}

int32_t gr_stream_load(graft_stream *s, int32_t rc, const char *path, graft_error *error)
{
    const int32_t     had_moments = s->network->training.has_moments;
    struct checkpoint c = { .from = { .file = { .fd = -1 } } };
    struct gr_comm   *comm = s->network->mesh->comm;
    char              of_rank[PATH_MAX];

    if (rc == GRAFT_OK) rc = gr_network_check_idle(s->network, error);
    GR_TRY_DONE(gr_network_agree(s->network, rc, s->counters.offered, error));
    rc = path_of_rank(s, path, of_rank, error);
    if (rc == GRAFT_OK) rc = read_checkpoint(s, of_rank, &c, error);
    GR_TRY_DONE(gr_comm_agree(comm, rc, error));
    GR_TRY_DONE(compare_checkpoints(s, &c, error));
    take_checkpoint(s, &c);
done:
    if (rc < 0) s->network->training.has_moments = had_moments;
    gr_pool_fini(s->context, &c.slots.pool);
    gr_pool_fini(s->context, &c.pool);
    gr_io_tensor_file_close(&c.from);
    return rc;
}
