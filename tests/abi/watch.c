/* Wraps the tables of the library, see watch.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "watched.h"

#include "graft_load.h"

#include <stdarg.h>

struct watch watch;

static graft_api             api; /* table of the library; all contexts have the same functions */
static const graft_mxm_api  *mxm;
static const graft_edge_api *edge;
static const graft_data_api *data;

enum { ERRNO_MARK = 0x5a };

static const char *current;
static graft_error error_before;
static int64_t     live_before;
static int         again;

void watch_blame(const char *format, ...)
{
    va_list list;

    if (watch.faults++ > 0) return;
    va_start(list, format);
    vsnprintf(watch.fault, sizeof watch.fault, format, list);
    va_end(list);
}

void watch_reset(struct strict_host *host)
{
    watch.host = host;
    watch.retry = watch.faults = again = 0;
    watch.fault[0] = '\0';
}

void watch_begin(const char *call, const graft_error *error)
{
    current = call;
    watch.calls++;
    if (error != NULL) error_before = *error;
    if (watch.host != NULL) live_before = watch.host->live_bytes;
    if (watch.before != NULL) watch.before();
    errno = ERRNO_MARK;
}

static void check_error(int32_t rc, const graft_error *error)
{
    if (error == NULL) return;
    if (rc == GRAFT_OK) {
        if (memcmp(error, &error_before, sizeof *error) != 0) watch_blame("%s: a success changed the error", current);
        return;
    }
    if (error->code != rc) watch_blame("%s: returned %d, error.code is %d", current, rc, error->code);
    if (error->size != error_before.size) watch_blame("%s: error.size was changed", current);
    if (memchr(error->message, '\0', sizeof error->message) == NULL) watch_blame("%s: message has no end", current);
    else if (strlen(error->message) < 8) watch_blame("%s: message is '%s'", current, error->message);
    if (memchr(error->where, '\0', sizeof error->where) == NULL) watch_blame("%s: where has no end", current);
    else if (strcmp(current, error->where) != 0) watch_blame("%s: where is '%s'", current, error->where);
}

int watch_end(int32_t rc, const graft_error *error, int untouched, int flags)
{
    const int starved = rc == GRAFT_ERR_NOMEM && watch.host != NULL && watch.host->failed > 0;

    if (errno != ERRNO_MARK) watch_blame("%s: errno was changed to %d", current, errno);
    if (watch.after != NULL) watch.after(current);
    if (watch.host != NULL && watch.host->fault != NULL) watch_blame("%s: %s", current, watch.host->fault);
    if (rc > 0) watch_blame("%s: returned %d", current, rc);
    check_error(rc, error);
    if (rc < 0 && !untouched) watch_blame("%s: failed with %d and changed its output", current, rc);
    if (starved && !(flags & MAY_KEEP) && watch.host->live_bytes != live_before) {
        watch_blame("%s: out of memory, it kept %lld bytes", current,
                    (long long)(watch.host->live_bytes - live_before));
    }
    if (starved && again) watch_blame("%s: out of memory again, although there is memory", current);
    if (again && rc < 0 && !starved) watch_blame("%s: out of memory at first, then %d", current, rc);
    again = starved && watch.retry && !again && !(flags & NOT_TWICE);
    return again;
}

static void api_close(graft_context *context)
{
    WATCHED_VOID("graft close", api.close(context));
}

static const void *api_get_interface(graft_context *context, const char *id)
{
    const void *found = NULL;

    WATCHED_VOID("graft get_interface", found = api.get_interface(context, id));
    return found;
}

/* Read the value of an option; it is "" if there is no such option. */
static void read_value(graft_context *context, const char *key, char value[256])
{
    graft_option option = GRAFT_INIT(graft_option);

    value[0] = '\0';
    for (int32_t i = 0; api.option_info(context, i, &option, NULL) == GRAFT_OK; i++) {
        if (key != NULL && strcmp(option.key, key) == 0) snprintf(value, 256, "%s", option.value);
    }
}

static int32_t api_set(graft_context *context, const char *key, const char *value, graft_error *error)
{
    char    before[256], after[256];
    int32_t rc;

    read_value(context, key, before);
    WATCHED("graft set", error, api.set(context, key, value, error),
            (read_value(context, key, after), strcmp(before, after) == 0), MAY_KEEP);
    return rc;
}

static int32_t api_option_info(graft_context *context, int32_t index, graft_option *option, graft_error *error)
{
    const graft_option copy = option != NULL ? *option : (graft_option){ 0 };
    int32_t            rc;

    WATCHED("graft option_info", error, api.option_info(context, index, option, error),
            watch_same(option, &copy, sizeof copy), 0);
    return rc;
}

static int32_t api_load_module(graft_context *context, const char *path, graft_error *error)
{
    int32_t rc;

    WATCHED("graft load_module", error, api.load_module(context, path, error), 1, MAY_KEEP);
    return rc;
}

static void api_cancel(graft_context *context)
{
    WATCHED_VOID("graft cancel", api.cancel(context));
}

static int32_t api_module_info(graft_context *context, int32_t index, graft_module_entry *entry, graft_error *error)
{
    const graft_module_entry copy = entry != NULL ? *entry : (graft_module_entry){ 0 };
    int32_t                  rc;

    WATCHED("graft module_info", error, api.module_info(context, index, entry, error),
            watch_same(entry, &copy, sizeof copy), 0);
    return rc;
}

static int32_t matrix_create(graft_context *context, const graft_csr *csr, int32_t trust, graft_matrix **matrix,
                             graft_error *error)
{
    graft_matrix *const copy = matrix != NULL ? *matrix : NULL;
    int32_t             rc;

    WATCHED("graft.mxm/1 matrix_create", error, mxm->matrix_create(context, csr, trust, matrix, error),
            watch_same(matrix, &copy, sizeof copy), 0);
    return rc;
}

static int32_t matrix_transpose(graft_context *context, const graft_matrix *matrix, graft_matrix **transpose,
                                graft_error *error)
{
    graft_matrix *const copy = transpose != NULL ? *transpose : NULL;
    int32_t             rc;

    WATCHED("graft.mxm/1 matrix_transpose", error, mxm->matrix_transpose(context, matrix, transpose, error),
            watch_same(transpose, &copy, sizeof copy), 0);
    return rc;
}

static int32_t matrix_order(graft_context *context, const graft_matrix *matrix, const char *method, int64_t *order,
                            graft_error *error)
{
    const int64_t copy = order != NULL ? order[0] : 0;
    int32_t       rc;

    WATCHED("graft.mxm/1 matrix_order", error, mxm->matrix_order(context, matrix, method, order, error),
            watch_same(order, &copy, sizeof copy), 0);
    return rc;
}

static int32_t matrix_permute(graft_context *context, const graft_matrix *matrix, const int64_t *order,
                              graft_matrix **permuted, graft_error *error)
{
    graft_matrix *const copy = permuted != NULL ? *permuted : NULL;
    int32_t             rc;

    WATCHED("graft.mxm/1 matrix_permute", error, mxm->matrix_permute(context, matrix, order, permuted, error),
            watch_same(permuted, &copy, sizeof copy), 0);
    return rc;
}

static int64_t matrix_bytes(const graft_matrix *matrix)
{
    int64_t bytes = 0;

    WATCHED_VOID("graft.mxm/1 matrix_bytes", bytes = mxm->matrix_bytes(matrix));
    return bytes;
}

static void matrix_destroy(graft_matrix *matrix)
{
    WATCHED_VOID("graft.mxm/1 matrix_destroy", mxm->matrix_destroy(matrix));
}

static size_t element_bytes(graft_dtype dtype)
{
    return dtype == GRAFT_F64 ? 8 : dtype == GRAFT_BF16 ? 2 : 4;
}

void *watch_copy_dense(const graft_dense *dense, size_t *bytes)
{
    void *copy = NULL;

    *bytes = 0;
    if (dense == NULL || dense->size < sizeof *dense || dense->data == NULL) return NULL;
    if (dense->n_rows < 1 || dense->n_rows > 4096 || dense->stride < 1 || dense->stride > 4096) return NULL;
    *bytes = (size_t)((dense->n_rows - 1) * dense->stride + dense->n_cols) * element_bytes(dense->dtype);
    copy = malloc(*bytes);
    if (copy != NULL) memcpy(copy, dense->data, *bytes);
    return copy;
}

static int32_t watch_run(graft_context *context, const graft_mxm_args *args, graft_error *error)
{
    const graft_dense *c = args != NULL && args->size >= sizeof *args ? args->c : NULL;
    size_t             bytes;
    void              *copy = watch_copy_dense(c, &bytes);
    int32_t            rc;

    WATCHED("graft.mxm/1 run", error, mxm->run(context, args, error),
            copy == NULL || memcmp(copy, c->data, bytes) == 0 || rc == GRAFT_ERR_MODULE, MAY_KEEP);
    free(copy);
    return rc;
}

static int32_t mxm_explain(graft_context *context, const graft_mxm_args *args, char *text, uint64_t capacity,
                           graft_error *error)
{
    const char copy = text != NULL ? text[0] : '\0';
    int32_t    rc;

    WATCHED("graft.mxm/1 explain", error, mxm->explain(context, args, text, capacity, error),
            watch_same(text, &copy, 1), MAY_KEEP);
    return rc;
}

/* Make a call whose output is the elements of a dense matrix. */
#define WATCHED_DENSE(call, error, expression, dense, flags)                                                           \
    size_t  bytes;                                                                                                     \
    void   *copy = watch_copy_dense(dense, &bytes);                                                                    \
    int32_t rc;                                                                                                        \
                                                                                                                       \
    WATCHED(call, error, expression, copy == NULL || memcmp(copy, (dense)->data, bytes) == 0, flags);                  \
    free(copy);                                                                                                        \
    return rc

static int32_t convert(graft_context *context, const graft_dense *from, const graft_dense *to, graft_error *error)
{
    WATCHED_DENSE("graft.mxm/1 convert", error, mxm->convert(context, from, to, error), to, 0);
}

static int32_t mxm_matrix_update_values(graft_context *context, graft_matrix *matrix, const void *values,
                                        const graft_matrix *original, graft_error *error)
{
    int32_t rc;

    WATCHED("graft.mxm/1 matrix_update_values", error,
            mxm->matrix_update_values(context, matrix, values, original, error), 1, 0);
    return rc;
}

static const graft_mxm_api watched_mxm = {
    .size = sizeof watched_mxm,
    .matrix_create = matrix_create,
    .matrix_transpose = matrix_transpose,
    .matrix_order = matrix_order,
    .matrix_permute = matrix_permute,
    .matrix_bytes = matrix_bytes,
    .matrix_destroy = matrix_destroy,
    .run = watch_run,
    .explain = mxm_explain,
    .convert = convert,
    .matrix_update_values = mxm_matrix_update_values,
};

static int32_t gather_rows(graft_context *context, const graft_dense *x, const graft_index *index,
                           const graft_dense *out, int32_t threads, graft_error *error)
{
    WATCHED_DENSE("graft.edge/1 gather_rows", error, edge->gather_rows(context, x, index, out, threads, error), out, 0);
}

static int32_t index_add(graft_context *context, const graft_dense *x, const graft_index *index, const graft_dense *out,
                         int32_t threads, graft_error *error)
{
    WATCHED_DENSE("graft.edge/1 index_add", error, edge->index_add(context, x, index, out, threads, error), out, 0);
}

static int32_t index_matrix(graft_context *context, const graft_index *index, int64_t n, graft_matrix **matrix,
                            graft_error *error)
{
    graft_matrix *const copy = matrix != NULL ? *matrix : NULL;
    int32_t             rc;

    WATCHED("graft.edge/1 index_matrix", error, edge->index_matrix(context, index, n, matrix, error),
            watch_same(matrix, &copy, sizeof copy), 0);
    return rc;
}

static int32_t sddmm(graft_context *context, graft_matrix *a, const graft_dense *x, const graft_dense *y,
                     const graft_dense *out, int32_t threads, graft_error *error)
{
    WATCHED_DENSE("graft.edge/1 sddmm", error, edge->sddmm(context, a, x, y, out, threads, error), out, 0);
}

static int32_t edge_softmax(graft_context *context, graft_matrix *a, const graft_dense *s, const graft_dense *out,
                            int32_t threads, graft_error *error)
{
    WATCHED_DENSE("graft.edge/1 softmax", error, edge->softmax(context, a, s, out, threads, error), out, 0);
}

static int32_t softmax_backward(graft_context *context, graft_matrix *a, const graft_dense *p, const graft_dense *dp,
                                const graft_dense *ds, int32_t threads, graft_error *error)
{
    WATCHED_DENSE("graft.edge/1 softmax_backward", error, edge->softmax_backward(context, a, p, dp, ds, threads, error),
                  ds, 0);
}

static int32_t edge_mxm(graft_context *context, graft_matrix *a, uint32_t flags, const graft_dense *w,
                        const graft_dense *y, const graft_dense *out, int32_t threads, graft_error *error)
{
    WATCHED_DENSE("graft.edge/1 mxm", error, edge->mxm(context, a, flags, w, y, out, threads, error), out, 0);
}

static const graft_edge_api watched_edge = {
    .size = sizeof watched_edge,
    .gather_rows = gather_rows,
    .index_add = index_add,
    .sddmm = sddmm,
    .softmax = edge_softmax,
    .softmax_backward = softmax_backward,
    .mxm = edge_mxm,
    .index_matrix = index_matrix,
};

static int32_t data_open(graft_context *context, const char *path, graft_data **out, graft_error *error)
{
    graft_data *const copy = out != NULL ? *out : NULL;
    int32_t           rc;

    WATCHED("graft.data/1 open", error, data->open(context, path, out, error), watch_same(out, &copy, sizeof copy), 0);
    return rc;
}

static int32_t data_open_slice(graft_context *context, const graft_transport *over, const char *path, graft_data **out,
                               graft_error *error)
{
    graft_data *const copy = out != NULL ? *out : NULL;
    int32_t           rc;

    WATCHED("graft.data/1 open_slice", error, data->open_slice(context, over, path, out, error),
            watch_same(out, &copy, sizeof copy), 0);
    return rc;
}

static const graft_dataset *data_view(const graft_data *opened)
{
    const graft_dataset *view = NULL;

    WATCHED_VOID("graft.data/1 view", view = data->view(opened));
    return view;
}

static void data_close(graft_data *opened)
{
    WATCHED_VOID("graft.data/1 close", data->close(opened));
}

static const graft_data_api watched_data = {
    .size = sizeof watched_data,
    .open = data_open,
    .view = data_view,
    .close = data_close,
    .open_slice = data_open_slice,
};

void watch_check_whole(const char *id, const void *table, size_t size)
{
    for (size_t at = 8; at < size; at += sizeof(void *)) {
        void *slot;

        memcpy(&slot, (const char *)table + at, sizeof slot);
        if (slot == NULL) watch_blame("the watch lacks call number %zu of %s", (at - 8) / sizeof slot, id);
    }
}

int32_t subject_open(struct subject *subject, graft_error *error)
{
    const graft_host *host = watch.host != NULL ? &watch.host->table : NULL;
    const graft_api  *opened = NULL;
    int32_t           rc;

    WATCHED("graft_open", error, graft_load(getenv("GRAFT_LIBRARY"), host, &opened, error), opened == NULL, 0);
    if (rc < 0) return rc;
    api = *opened;
    mxm = api.get_interface(api.context, GRAFT_MXM_ID);
    edge = api.get_interface(api.context, GRAFT_EDGE_ID);
    data = api.get_interface(api.context, GRAFT_DATA_ID);
    subject->context = api.context;
    subject->api = api;
    subject->api.close = api_close;
    subject->api.get_interface = api_get_interface;
    subject->api.set = api_set;
    subject->api.option_info = api_option_info;
    subject->api.load_module = api_load_module;
    subject->api.module_info = api_module_info;
    subject->api.cancel = api_cancel;
    subject->mxm = &watched_mxm;
    subject->edge = &watched_edge;
    subject->data = &watched_data;
    watch_ranks(subject, &api);
    watch_models(subject, &api);
    watch_samples(subject, &api);
    watch_train(subject, &api);
    watch_check_whole(GRAFT_MXM_ID, &watched_mxm, sizeof watched_mxm);
    watch_check_whole(GRAFT_EDGE_ID, &watched_edge, sizeof watched_edge);
    watch_check_whole(GRAFT_DATA_ID, &watched_data, sizeof watched_data);
    return GRAFT_OK;
}

void subject_close(struct subject *subject)
{
    subject->api.close(subject->context);
}
