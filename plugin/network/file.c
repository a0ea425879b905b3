/* Files of networks: safetensors with all items of the state, and texts that describe the network.
 * SPDX-License-Identifier: Apache-2.0 */
#include "network/file.h"
#include "comm/collective.h"
#include "io/checksum.h"
#include "io/tensor_file.h"
#include "network/options.h"

#include <stdio.h>
#include <string.h>

void gr_network_texts(const graft_network *n, struct gr_network_texts *t)
{
    static const char *const         sums[] = { "update", "new", "old" };
    const struct gr_network_options *o = &n->options;
    const struct gr_mgn_options     *of = &n->shape.options;
    const struct {
        const char *key;
        long long   number;
        const char *word;
    } rows[GR_NETWORK_TEXTS] = {
        { "architecture", 0, GR_NETWORK_ARCHITECTURE },
        { "predicts", 0, n->predicts == GRAFT_PREDICTS_CHANGE ? "change" : "value" },
        { "n_in", n->columns.in, NULL },
        { "n_out", n->columns.out, NULL },
        { "n_constant", n->columns.constant, NULL },
        { "dim", n->mesh->space.dim, NULL },
        { "mgn.width", of->width, NULL },
        { "mgn.layers", of->layers, NULL },
        { "mgn.linear", of->linear, NULL },
        { "mgn.activation", 0, of->is_elu ? "elu" : "relu" },
        { "mgn.norm", 0, of->has_norm ? "yes" : "no" },
        { "mgn.sum", 0, sums[o->sum] },
        { "mgn.edges", 0, o->edges == GR_MGN_EDGES_ENCODED ? "encoded" : "carried" },
        { "mgn.edge_scale", 0, o->edge_scale == GR_EDGE_SCALE_LONGEST ? "longest" : "statistics" },
        { "mgn.residual", 0, n->columns.adds_input ? "yes" : "no" },
    };

    for (int k = 0; k < GR_NETWORK_TEXTS; k++) {
        if (rows[k].word != NULL) snprintf(t->value[k], sizeof t->value[k], "%s", rows[k].word);
        else snprintf(t->value[k], sizeof t->value[k], "%lld", rows[k].number);
        t->pair[k] = (struct gr_tensor_pair){ rows[k].key, t->value[k] };
    }
}

/* Whether the file has an item whose name begins with `prefix`. */
static int has_any(const struct gr_tensors *header, const char *prefix)
{
    for (int32_t i = 0; i < header->n_tensors; i++)
        if (strncmp(header->tensors[i].name, prefix, strlen(prefix)) == 0) return 1;
    return 0;
}

/* The prefixes of kinds of items that may be missing in a file. The network then keeps its own. */
static const char *const optional[] = { "statistics.", "optimizer.", "progress." };

/* Whether the network keeps its own item of this name, because the file has no item of its kind. */
static int stays(const struct gr_tensors *header, const char *name)
{
    for (size_t k = 0; k < sizeof optional / sizeof *optional; k++)
        if (strncmp(name, optional[k], strlen(optional[k])) == 0) return !has_any(header, optional[k]);
    return 0;
}

/* Get item `index` of a file. Gradients, which are the last items of the state, are not saved. Returns 0 after the
 * last. */
static int item_at(void *network, int32_t index, graft_state_item *item)
{
    graft_error end = { .size = sizeof end };

    return gr_network_state_item(network, index, item, &end) == GRAFT_OK && strncmp(item->name, "gradient.", 9) != 0;
}

struct gr_state_items gr_network_items(graft_network *n, const char *others)
{
    return (struct gr_state_items){ n, item_at, stays, "the options of this network say so", "this network's", others };
}

/* Write the file, on rank 0. */
static int32_t write_file(graft_network *n, const char *path, graft_error *error)
{
    const struct gr_state_items items = gr_network_items(n, NULL);
    struct gr_network_texts     texts;
    struct gr_tensor_data      *data = NULL;
    struct gr_output            output = { .temporary.fd = -1 };
    int32_t                     count, rc = GRAFT_OK;

    gr_network_texts(n, &texts);
    GR_TRY_DONE(gr_io_state_file_list(n->context, &items, 0, &data, &count, error));
    GR_TRY_DONE(gr_io_tensor_file_write(n->context, data, count, texts.pair, GR_NETWORK_TEXTS, path, &output, error));
    rc = gr_output_end(&output, NULL, error);
done:
    gr_output_abort(&output);
    gr_free(n->context, data);
    return rc;
}

int32_t gr_network_save(graft_network *n, int32_t rc, const char *path, graft_error *error)
{
    GR_TRY(gr_network_agree(n, rc, 0, error));
    if (n->mesh->comm->rank == 0) rc = write_file(n, path, error);
    return gr_comm_agree_on(n->mesh->comm, rc, error);
}

/* Check that the metadata of a file describe this network. Files of other programs, without these texts, are
 * accepted. Returns OK; ERR_FORMAT. */
static int32_t check_texts(const graft_network *n, const struct gr_tensors *header, const char *shown,
                           graft_error *error)
{
    struct gr_network_texts texts;
    const char             *found;

    gr_network_texts(n, &texts);
    if (gr_io_tensors_value(header, "architecture") == NULL) return GRAFT_OK; /* a file of another program */
    for (int k = 0; k < GR_NETWORK_TEXTS; k++) {
        found = gr_io_tensors_value(header, texts.pair[k].key);
        if (found != NULL && strcmp(found, texts.value[k]) == 0) continue;
        return gr_fail(error, GRAFT_ERR_FORMAT, "'%s': '%s' is '%.64s' in its metadata, but this network has '%s'",
                       shown, texts.pair[k].key, found != NULL ? found : "", texts.value[k]);
    }
    return GRAFT_OK;
}

int32_t gr_network_read_items(graft_network *n, const struct gr_tensor_file *from, struct gr_pool *pool, void **copies,
                              graft_error *error)
{
    const struct gr_tensors *header = &from->header;
    graft_state_item         item = { .size = sizeof item };
    int32_t                  rc = GRAFT_OK;

    for (int32_t i = 0; item_at(n, i, &item); i++) {
        const struct gr_tensor *t = gr_io_tensors_find(header, item.name);

        copies[i] = NULL;
        if (t == NULL || stays(header, item.name)) continue;
        copies[i] = gr_pool_new(n->context, pool, t->end - t->begin, 1, item.name, error);
        if (copies[i] == NULL) return GRAFT_ERR_NOMEM;
        if (from->file.fd < 0) continue;
        GR_TRY_DONE(gr_io_tensor_file_read(&from->file, header, from->data, t, copies[i], error));
        item.data = copies[i];
        rc = gr_network_check_values(&item, error);
        if (rc < 0) return rc;
    }
done:
    return rc;
}

void gr_network_take_items(graft_network *n, void *const *copies)
{
    graft_state_item item = { .size = sizeof item };

    n->training.has_gradient = 0;
    for (int32_t i = 0; item_at(n, i, &item); i++)
        if (copies[i] != NULL) memcpy((void *)(uintptr_t)item.data, copies[i], (size_t)gr_nn_item_bytes(&item));
    gr_network_state_changed(n);
}

/* Broadcast the arrays that rank 0 has read. */
static int32_t share_items(graft_network *n, void *const *copies, graft_error *error)
{
    graft_state_item item = { .size = sizeof item };

    for (int32_t i = 0; item_at(n, i, &item); i++)
        if (copies[i] != NULL)
            GR_TRY(gr_comm_broadcast(n->mesh->comm, 0, copies[i], (uint64_t)gr_nn_item_bytes(&item), error));
    return GRAFT_OK;
}

/* Check that the file describes this network, and allocate moments if it has them. */
static int32_t check_file(graft_network *n, const struct gr_tensor_file *from, graft_error *error)
{
    const struct gr_state_items items = gr_network_items(n, NULL);

    GR_TRY(check_texts(n, &from->header, from->file.name, error));
    if (has_any(&from->header, "optimizer.")) {
        GR_TRY(gr_network_reserve_moments(n, error));
        n->training.has_moments = 1;
    }
    return gr_io_state_file_check(&items, &from->file, &from->header, error);
}

/* Whether the file has all items that state_set() can set. */
static int has_whole_state(const graft_network *n, const struct gr_tensors *header)
{
    return has_any(header, "statistics.") && has_any(header, "progress.") &&
           (has_any(header, "optimizer.") || !n->training.has_moments);
}

int32_t gr_network_load(graft_network *n, int32_t rc, const char *path, graft_error *error)
{
    const int32_t         had_moments = n->training.has_moments;
    struct gr_tensor_file from = { .file = { .fd = -1 } };
    struct gr_comm       *comm = n->mesh->comm;
    struct gr_pool        pool = { NULL, 0 };
    void                **copies = NULL;

    GR_TRY_DONE(gr_comm_agree(comm, rc, error)); /* unlike gr_network_agree(), this does not compare states,
                                               which may differ before the file is loaded */
    GR_TRY_DONE(gr_io_tensor_file_open(n->context, comm, path, &from, error));
    rc = check_file(n, &from, error);
    if (rc == GRAFT_OK)
        rc = GR_POOL_NEW(n->context, &pool, copies, 4 * n->parameters.count + 3 * GR_STATISTICS + 1, error);
    if (rc == GRAFT_OK) rc = gr_network_read_items(n, &from, &pool, copies, error);
    GR_TRY_DONE(gr_comm_agree(comm, rc, error));
    GR_TRY_DONE(share_items(n, copies, error));
    if (comm->rank == 0 && gr_io_tensors_value(&from.header, GR_CHECKSUM_OF_TENSORS) == NULL)
        gr_log(n->context, GRAFT_LOG_WARNING, "'%s' has no checksums: damage of its weights is not noticed",
               from.file.name);
    gr_network_take_items(n, copies);
    if (has_whole_state(n, &from.header)) n->progress.digest = 0;
done:
    if (rc < 0) n->training.has_moments = had_moments;
    gr_pool_fini(n->context, &pool);
    gr_io_tensor_file_close(&from);
    return rc;
}
