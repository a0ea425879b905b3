/* Saves and loads files of models. Rank 0 reads a file, and sends first its header and then its arrays to all ranks.
 * Memory for arrays is allocated after it is known that the file has them with the right shapes.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/assert.h"
#include "comm/collective.h"
#include "comm/options.h"
#include "io/checksum.h"
#include "io/tensor_file.h"
#include "snapshot/snapshot.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

/* What is loaded: a file, open on rank 0, and the model that every rank makes from it. */
struct loading {
    graft_context        *context;
    struct gr_comm       *comm;
    struct gr_tensor_file from;
    graft_model          *model; /* the model, which takes over `from.header` */
};

static int32_t progress_in(const struct gr_tensors *header)
{
    if (gr_io_tensors_find(header, "progress.batches") != NULL) return GR_PROGRESS_BATCHES;
    return gr_io_tensors_find(header, "progress.batch") != NULL ? GR_PROGRESS_UNNAMED : GR_PROGRESS_WHOLE;
}

static int item_at(void *state, int32_t index, graft_state_item *item)
{
    graft_error end = { .size = sizeof end };

    return gr_train_state_item(state, index, item, &end) == GRAFT_OK;
}

/* The items of a state, for reading and writing files. `state` must outlive the result. */
static struct gr_state_items items_of(struct gr_state *state)
{
    return (struct gr_state_items){ state, item_at, NULL, "its options say so", "the model's", NULL };
}

/* Check that the file has all items of the model and no others. */
static int32_t check_tensors(const struct loading *l, graft_error *error)
{
    struct gr_state             state = gr_snapshot_state(l->model);
    const struct gr_state_items items = items_of(&state);

    state.n_progress = l->model->n_progress = progress_in(&l->model->header);
    return gr_io_state_file_check(&items, &l->from.file, &l->model->header, error);
}

/* Whether a tensor, the first of its name, is a table with rows of earlier batches. Only a trainer can check the values
 * in it. */
static int is_table(const struct gr_tensors *header, const struct gr_tensor *t)
{
    const graft_state_item item = { .name = t->name };

    return gr_train_state_is_table(&item) && t->dtype == GRAFT_I64 && t->n_dims == 1 &&
           strlen(t->name) < sizeof((struct gr_state_table *)NULL)->name && gr_io_tensors_find(header, t->name) == t;
}

static int32_t list_tables(graft_model *m, graft_error *error)
{
    const struct gr_tensors *header = &m->header;
    int32_t                  count = 0;

    for (int32_t i = 0; i < header->n_tensors; i++) count += is_table(header, &header->tensors[i]);
    if (count == 0 || m->copies < GR_STATE_COPIES) return GRAFT_OK;
    GR_TRY(GR_BUDGET_NEW(&m->budget, GR_USE_MESSAGES, m->tables, count, error));
    for (int32_t i = 0; i < header->n_tensors; i++) {
        const struct gr_tensor *t = &header->tensors[i];
        struct gr_state_table  *table = &m->tables[m->n_tables];

        if (!is_table(header, t)) continue;
        table->words = t->shape[0];
        memcpy(table->name, t->name, strlen(t->name) + 1);
        m->n_tables++;
    }
    return GRAFT_OK;
}

static int32_t describe_loaded(struct loading *l, graft_error *error)
{
    GR_TRY(gr_snapshot_describe(l->context, &l->from.header, l->from.file.name, &l->model, error));
    GR_TRY(list_tables(l->model, error));
    GR_TRY(check_tensors(l, error));
    if (l->comm->rank > 0) l->model->n_tables = 0; /* only rank 0 stores the tables */
    GR_TRY(gr_snapshot_allocate_tables(l->model, error));
    return gr_nn_allocate(&l->model->model.parameters, &l->model->budget, l->model->copies, error);
}

/* Find the array for the tensor with this name, and its item. */
static void *array_of(const graft_model *m, const char *name, graft_state_item *item)
{
    const struct gr_state state = gr_snapshot_state(m);
    graft_error           end = { .size = sizeof end };

    for (int32_t i = 0; gr_train_state_item(&state, i, item, &end) == GRAFT_OK; i++)
        if (strcmp(item->name, name) == 0) return (void *)(uintptr_t)item->data;
    GR_ASSERT(0); /* check_tensors() has found all names */
    return NULL;
}

/* Read all arrays, in the order of the file. */
static int32_t read_arrays(struct loading *l, graft_error *error)
{
    const struct gr_tensors *header = &l->model->header;
    graft_state_item         item = { .size = sizeof item };
    graft_error              reason = { .size = sizeof reason };

    for (int32_t i = 0; i < header->n_tensors; i++) {
        const struct gr_tensor *t = &header->tensors[i];

        GR_TRY(
            gr_io_tensor_file_read(&l->from.file, header, l->from.data, t, array_of(l->model, t->name, &item), error));
        if (gr_train_state_check(&l->model->model, &item, &reason) < 0)
            return gr_fail(error, GRAFT_ERR_FORMAT, "'%s', from byte %lld on: %s", l->from.file.name,
                           (long long)(l->from.data + t->begin), reason.message);
    }
    if (gr_io_tensors_value(header, GR_CHECKSUM_OF_TENSORS) == NULL)
        gr_log(l->context, GRAFT_LOG_WARNING, "'%s' has no checksums: damage of its weights is not noticed",
               l->from.file.name);
    return GRAFT_OK;
}

static int32_t share_arrays(const struct loading *l, graft_error *error)
{
    const struct gr_state state = gr_snapshot_state(l->model);
    graft_state_item      item = { .size = sizeof item };
    graft_error           end = { .size = sizeof end };

    for (int32_t i = 0; gr_train_state_item(&state, i, &item, &end) == GRAFT_OK; i++)
        if (!gr_train_state_is_table(&item))
            GR_TRY(
                gr_comm_broadcast(l->comm, 0, (void *)(uintptr_t)item.data, (uint64_t)gr_nn_item_bytes(&item), error));
    return GRAFT_OK;
}

static int32_t load_file(graft_context *context, struct gr_comm *comm, const char *path, graft_model **model,
                         graft_error *error)
{
    struct loading l = { .context = context, .comm = comm };
    int32_t        rc = GRAFT_OK;

    GR_TRY_DONE(gr_io_tensor_file_open(context, comm, path, &l.from, error));
    GR_TRY_DONE(gr_comm_agree(comm, describe_loaded(&l, error), error));
    if (comm->rank == 0) rc = read_arrays(&l, error);
    GR_TRY_DONE(gr_comm_agree(comm, rc, error));
    GR_TRY_DONE(share_arrays(&l, error));
    /* From now on only the texts of the header are needed. */
    gr_free(context, l.model->header.tensors);
    l.model->header.tensors = NULL;
    l.model->header.n_tensors = 0;
    *model = l.model;
    l.model = NULL;
done:
    gr_io_tensor_file_close(&l.from);
    gr_snapshot_destroy(l.model);
    return rc;
}

/* After a failure caused by the file, find out whether the previous file is good, and append this to the message.
 * Collective. */
static int32_t tell_of_previous(graft_context *context, struct gr_comm *comm, const char *path, int32_t rc,
                                graft_error *error)
{
    graft_error  reason = { .size = sizeof reason };
    graft_model *model = NULL;
    char         previous[PATH_MAX] = "", shown[GR_FILE_NAME];
    const char  *verdict = "there, and could not be checked";
    int32_t      then;
    size_t       length;

    if (rc != GRAFT_ERR_FORMAT && rc != GRAFT_ERR_NOT_FOUND && rc != GRAFT_ERR_IO) return rc;
    if (path != NULL) snprintf(previous, sizeof previous, "%s" GR_SNAPSHOT_PREVIOUS, path);
    then = load_file(context, comm, previous, &model, &reason);
    gr_snapshot_destroy(model);
    if (then == GRAFT_ERR_PEER || then == GRAFT_ERR_CANCELLED) {
        *error = reason;
        return then;
    }
    if (then == GRAFT_ERR_NOT_FOUND) return rc;
    gr_file_show_path(shown, path != NULL ? path : "");
    if (then == GRAFT_ERR_FORMAT || then == GRAFT_ERR_IO) verdict = "not good either";
    length = strlen(error->message);
    snprintf(error->message + length, sizeof error->message - length, "; '%s" GR_SNAPSHOT_PREVIOUS "' is %s", shown,
             then == GRAFT_OK ? "good" : verdict);
    return rc;
}

int32_t gr_snapshot_load(graft_context *context, const graft_transport *transport, const char *path,
                         graft_model **model, graft_error *error)
{
    struct gr_comm *comm = NULL;
    graft_model    *made = NULL;
    int32_t         rc = GRAFT_OK;

    GR_TRY_DONE(gr_comm_create(context, transport, gr_comm_options(context)->timeout, &comm, error));
    if (model == NULL) rc = gr_fail(error, GRAFT_ERR_ARG, "model is null");
    else if (path == NULL && comm->rank == 0) rc = gr_fail(error, GRAFT_ERR_ARG, "path is null");
    GR_TRY_DONE(gr_comm_agree(comm, rc, error));
    rc = load_file(context, comm, path, &made, error);
    GR_TRY_DONE(tell_of_previous(context, comm, path, rc, error));
    *model = made;
done:
    gr_comm_destroy(comm);
    return rc;
}

/* Whether a file has an undamaged header of the safetensors format, and the length that its header requires. No weights
 * are read. */
static int is_whole(graft_context *context, const char *path)
{
    struct gr_tensor_file file;
    graft_error           error = { .size = sizeof error };
    const int             whole = gr_io_tensor_file_open(context, NULL, path, &file, &error) == GRAFT_OK;

    gr_io_tensor_file_close(&file);
    return whole;
}

int32_t gr_snapshot_save(graft_model *m, const char *path, graft_error *error)
{
    struct gr_state             state = gr_snapshot_state(m);
    const struct gr_state_items items = items_of(&state);
    struct gr_tensor_data      *data = NULL;
    struct gr_output            output = { .temporary.fd = -1 };
    char                        previous[PATH_MAX];
    int32_t                     count, rc = GRAFT_OK;

    if (snprintf(previous, sizeof previous, "%s" GR_SNAPSHOT_PREVIOUS, path) >= (int)sizeof previous)
        return gr_output_failed(path, ENAMETOOLONG, error);
    GR_TRY_DONE(gr_io_state_file_list(m->context, &items, 0, &data, &count, error));
    GR_TRY_DONE(
        gr_io_tensor_file_write(m->context, data, count, m->header.pairs, m->header.n_pairs, path, &output, error));
    rc = gr_output_end(&output, is_whole(m->context, path) ? previous : NULL, error);
done:
    gr_output_abort(&output);
    gr_free(m->context, data);
    return rc;
}
