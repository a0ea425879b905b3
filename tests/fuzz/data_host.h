/* A host of graft.data/1 that checks memory, open files, errno and outputs after each call, for the tests of the
 * readers.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef DATA_HOST_H
#define DATA_HOST_H

#include "data_ranks.h"
#include "harness/tap.h"

static struct memory memory = MEMORY_INIT;

static char                  last_log[512];
static const graft_api      *api;
static const graft_data_api *data;
static graft_context        *context;

static void keep_log(void *self, graft_log_level level, const char *message)
{
    (void)self;
    if (level == GRAFT_LOG_INFO) snprintf(last_log, sizeof last_log, "%s", message);
}

static int open_files(void)
{
    DIR *list = opendir("/proc/self/fd");
    int  count = 0;

    files_check(list != NULL, "/proc/self/fd");
    while (readdir(list) != NULL) count++;
    closedir(list);
    return count;
}

/** Open a data set that must be refused. The result is NULL if it is refused with this status and a message that has
 * all the words (up to NULL), nothing leaks, and outputs and errno are unchanged. Otherwise the result says what is
 * wrong. */
static const char *refusal(const char *path, int32_t status, const char *const *words)
{
    static char   fault[1024];
    graft_data   *untouched = (graft_data *)&memory, *out = untouched;
    graft_error   error = GRAFT_INIT(graft_error);
    const int64_t live = memory.live_bytes;
    const int     files = open_files();
    int32_t       rc;

    errno = 4711;
    rc = data->open(context, path, &out, &error);
    if (rc == GRAFT_OK) data->close(out);
    snprintf(fault, sizeof fault, "status %d, message: %s", rc, error.message);
    if (rc != status || error.code != status || out != untouched) return fault;
    if (errno != 4711) return "errno was changed";
    if (memory.live_bytes != live) return "memory leaked";
    if (open_files() != files) return "a file stayed open";
    for (; *words != NULL; words++) {
        if (strstr(error.message, *words) == NULL) return fault;
    }
    return NULL;
}

/** Check the same when several ranks open it. */
static const char *refusal_by_ranks(const char *path, int32_t status, const char *const *words)
{
    const char *fault = NULL;

    for (int i = 0; i < CREW_COUNTS && fault == NULL; i++) {
        const int64_t live = memory.live_bytes + crew_live();
        const int     files = open_files();

        crew_aim(path);
        crew_open(api, crew_counts[i]);
        fault = crew_refusal_fault(crew_counts[i], status, words);
        crew_close(crew_counts[i]);
        if (fault == NULL && memory.live_bytes + crew_live() != live) fault = "ranks leaked memory";
        if (fault == NULL && open_files() != files) fault = "a file of a rank stayed open";
    }
    return fault;
}

/** Let ranks read `path`, and compare their slices with the whole. The result is NULL, or says what is wrong. */
static const char *data_host_slices_fault(const char *path, const graft_dataset *whole)
{
    const char *fault = NULL;

    for (int i = 0; i < CREW_COUNTS && fault == NULL; i++) {
        crew_aim(path);
        crew_open(api, crew_counts[i]);
        fault = crew_fault(whole, crew_counts[i]);
        crew_close(crew_counts[i]);
    }
    return fault;
}

UNUSED static void refused(const char *what, const char *path, int32_t status, const char *const *words)
{
    const char *fault = refusal(path, status, words);

    if (fault == NULL) fault = refusal_by_ranks(path, status, words);
    ok_or(fault == NULL, fault, "%s is refused", what);
}

#define REFUSED(what, path, status, ...) refused(what, path, status, (const char *const[]){ __VA_ARGS__, NULL })

/** Open a data set that must be accepted and must be the same on ranks. If it is not, print a comment line and return
 * NULL. */
UNUSED static graft_data *opened(const char *path)
{
    graft_data *out = NULL;
    graft_error error = GRAFT_INIT(graft_error);
    const char *fault;

    last_log[0] = '\0';
    if (data->open(context, path, &out, &error) < 0) {
        diag("%s", error.message);
        return NULL;
    }
    fault = data_host_slices_fault(path, data->view(out));
    if (fault == NULL) return out;
    diag("%s", fault);
    data->close(out);
    return NULL;
}

/** A graph as text. For example "2: 0<1 1<0=2.5" has two vertices; 0 gathers from 1, and 1 gathers from 0 with value
 * 2.5. */
UNUSED static const char *graph_text(const graft_csr *graph)
{
    static char text[512];
    int         used = snprintf(text, sizeof text, "%lld:", (long long)graph->n_rows);

    for (int64_t row = 0; row < graph->n_rows; row++) {
        for (int64_t i = graph->row_ptr[row]; i < graph->row_ptr[row + 1]; i++) {
            used += snprintf(text + used, sizeof text - (size_t)used, " %lld<%d", (long long)row,
                             ((const int32_t *)graph->col_idx)[i]);
            if (graph->values == NULL) continue;
            used += snprintf(text + used, sizeof text - (size_t)used, "=%g", (double)((const float *)graph->values)[i]);
        }
    }
    return text;
}

/** Whether the graph in `path` is the square matrix whose entry (i, j) is expected[i * n + j], where 0 means none. */
UNUSED static int is_matrix(const char *path, const float *expected, int64_t n)
{
    graft_data      *out = opened(path);
    const graft_csr *graph = out != NULL ? data->view(out)->graph : NULL;
    int              same = graph != NULL && graph->n_rows == n && graph->n_cols == n;

    for (int64_t row = 0; same && row < n; row++) {
        int64_t i = graph->row_ptr[row];

        for (int64_t col = 0; col < n; col++) {
            if (expected[row * n + col] == 0) continue;
            same &= i < graph->row_ptr[row + 1] && ((const int32_t *)graph->col_idx)[i] == col &&
                    (graph->values == NULL || ((const float *)graph->values)[i] == expected[row * n + col]);
            i++;
        }
        same &= i == graph->row_ptr[row + 1];
    }
    data->close(out);
    return same;
}

/** Open `path` and check its graph. */
UNUSED static void reads_as(const char *what, const char *path, const char *expected)
{
    graft_data *out = opened(path);
    const char *text = out != NULL ? graph_text(data->view(out)->graph) : "nothing";

    if (!ok(strcmp(text, expected) == 0, "%s is read", what)) diag("found %s, expected %s", text, expected);
    data->close(out);
}

/** Read every prefix of a file, and the file with one more byte. The prefixes listed as `valid` must give the same data
 * as the whole file. */
UNUSED static void check_truncations(const struct data_folder *folder, const char *name, const char *path, int valid)
{
    static char       bytes[4096];
    const char *const words[] = { name, NULL };
    FILE             *file = fopen(folder_path(folder, name), "rb");
    const size_t      count = file != NULL ? fread(bytes, 1, sizeof bytes - 1, file) : 0;
    int               faults = 0;

    files_check(file != NULL && count > 0 && fclose(file) == 0, name);
    for (size_t n = 0; n + (size_t)valid < count; n++) {
        const char *fault;

        write_file(folder, name, bytes, n);
        fault = refusal(path, GRAFT_ERR_FORMAT, words);
        if (fault == NULL && n % 3 == 0) fault = refusal_by_ranks(path, GRAFT_ERR_FORMAT, words);
        if (fault != NULL && faults++ == 0) diag("cut after %zu bytes: %s", n, fault);
    }
    ok(faults == 0, "%s cut after each of its %zu bytes is refused", name, count);
    bytes[count] = '1';
    write_file(folder, name, bytes, count + 1);
    REFUSED("one byte more", path, GRAFT_ERR_FORMAT, name);
}

/** Make every allocation fail in turn. */
UNUSED static void check_out_of_memory(const char *what, const char *path)
{
    static const char *const words[] = { "no memory", NULL };
    int64_t                  failures = 0;
    const char              *fault = NULL;
    graft_data              *out = NULL;

    for (; fault == NULL && failures < 1000; failures++) {
        memory.act_at = memory.calls + failures;
        if (data->open(context, path, &out, NULL) == GRAFT_OK) break;
        memory.act_at = memory.calls + failures;
        fault = refusal(path, GRAFT_ERR_NOMEM, words);
    }
    memory.act_at = -1;
    if (!ok(fault == NULL && failures > 3 && out != NULL, "%s: each of %lld allocations may fail", what,
            (long long)failures)) {
        diag("%s", fault != NULL ? fault : "it never opened");
    }
    data->close(out);
}

/** Load the library and open a context with this host. If that fails, print a message and return 0. */
static int host_begin(void)
{
    graft_host  host = GRAFT_INIT(graft_host);
    graft_error error = GRAFT_INIT(graft_error);

    host.self = &memory;
    host.log = keep_log;
    host.allocate = data_allocate;
    host.deallocate = data_deallocate;
    if (graft_load(getenv("GRAFT_LIBRARY"), &host, &api, &error) < 0) {
        printf("Bail out! %s\n", error.message);
        return 0;
    }
    context = api->context;
    data = api->get_interface(context, GRAFT_DATA_ID);
    crew_begin();
    return ok(data != NULL && data->size >= sizeof *data, "the library has " GRAFT_DATA_ID);
}

UNUSED static void host_end(void)
{
    crew_end(api);
    api->close(context);
    ok(memory.live_bytes + crew_live() == 0, "no memory is left after close");
}

#endif
