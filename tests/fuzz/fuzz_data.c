/* Any bytes as a Matrix Market file and as every .npy file of a data set: they are read or refused, what is read is
 * what graft_data.h says it is, and nothing is left behind. With -DGRAFT_FUZZ and -fsanitize=fuzzer, a fuzz target;
 * else a test that takes files, or folders of files, as arguments.
 * SPDX-License-Identifier: Apache-2.0 */
#include "data_host.h"

#include <math.h>
#include <sys/stat.h>

/* Each of these is the input in one folder, beside good files. */
static const char *const parts[] = {
    "edges.npy",
    "features.npy",
    "features_csr_indptr.npy",
    "features_csr_indices.npy",
    "features_csr_data.npy",
    "labels.npy",
    "split.npy",
    "features_csr_shape.npy",
    "targets.npy",
};
enum { PARTS = sizeof parts / sizeof *parts };

static struct data_folder input, folders[PARTS];

static void create_all(void)
{
    folders_in_memory();
    folder_create(&input);
    for (int i = 0; i < PARTS; i++) {
        char target[PATH_MAX + 256];

        folder_create(&folders[i]);
        write_sample(&folders[i], strncmp(parts[i], "features_csr", 12) == 0);
        snprintf(target, sizeof target, "%s", folder_path(&input, "input"));
        if (strcmp(parts[i], "targets.npy") == 0) /* they take the place of labels */
            files_check(remove(folder_path(&folders[i], "labels.npy")) == 0, "labels.npy");
        else files_check(remove(folder_path(&folders[i], parts[i])) == 0, parts[i]);
        files_check(symlink(target, folder_path(&folders[i], parts[i])) == 0, parts[i]);
    }
}

static void destroy_all(void)
{
    for (int i = 0; i < PARTS; i++) folder_destroy(&folders[i]);
    folder_destroy(&input);
}

static const char *csr_fault(const graft_csr *csr, int strict)
{
    const int32_t *columns = csr->col_idx;
    const float   *values = csr->values;

    if (csr->row_ptr[0] != 0) return "row pointers do not begin at 0";
    for (int64_t row = 0; row < csr->n_rows; row++) {
        if (csr->row_ptr[row + 1] < csr->row_ptr[row]) return "row pointers fall";
        for (int64_t i = csr->row_ptr[row]; i < csr->row_ptr[row + 1]; i++) {
            if (columns[i] < 0 || columns[i] >= csr->n_cols) return "a column is out of range";
            if (strict && i > csr->row_ptr[row] && columns[i] <= columns[i - 1]) return "columns do not rise";
            if (values != NULL && !isfinite(values[i])) return "a value is not finite";
        }
    }
    return NULL;
}

static const char *set_fault(const graft_dataset *set)
{
    const int64_t n = set->n_vertices;

    if (set->graph->n_rows != n || set->graph->n_cols != n) return "the graph has another number of vertices";
    if (set->features != NULL) {
        const float *features = set->features->data;

        if (set->features->n_rows != n) return "features have another number of rows";
        for (int64_t i = 0; i < n * set->n_features; i++) {
            if (!isfinite(features[i])) return "a feature is not finite";
        }
    }
    if (set->sparse_features != NULL) {
        if (set->sparse_features->n_rows != n) return "sparse features have another number of rows";
        if (csr_fault(set->sparse_features, 0) != NULL) return csr_fault(set->sparse_features, 0);
    }
    for (int64_t v = 0; v < n; v++) {
        if (set->labels != NULL && (set->labels[v] < -1 || set->labels[v] >= set->n_classes)) return "a label is wrong";
        if (set->split != NULL && set->split[v] > GRAFT_SPLIT_TEST) return "a split is wrong";
        for (int64_t c = 0; set->targets != NULL && c < set->n_classes; c++) {
            if (set->targets[v * set->n_classes + c] > 1) return "a target is wrong";
        }
        for (int64_t c = 0; set->float_targets != NULL && c < set->n_classes; c++) {
            if (isinf(((const float *)set->float_targets->data)[v * set->n_classes + c])) return "a target is infinite";
        }
    }
    return csr_fault(set->graph, 1);
}

static const char *open_fault(const char *path)
{
    const int64_t live = memory.live_bytes;
    graft_data   *out = NULL;
    graft_error   error = GRAFT_INIT(graft_error);
    const int32_t rc = data->open(context, path, &out, &error);
    const char   *fault = NULL;

    if (rc == GRAFT_OK) fault = set_fault(data->view(out));
    else if (rc != GRAFT_ERR_FORMAT && rc != GRAFT_ERR_NOMEM) fault = "another status than FORMAT or NOMEM";
    else if (rc == GRAFT_ERR_FORMAT && strstr(error.message, "graft-data-") == NULL) fault = "no file in the message";
    if (fault == NULL && rc == GRAFT_OK) fault = data_host_slices_fault(path, data->view(out));
    else if (fault == NULL) fault = refusal_by_ranks(path, rc == GRAFT_ERR_NOMEM ? 0 : rc, NULL); /* parts may fit */
    data->close(context, out);
    return fault == NULL && memory.live_bytes != live ? "memory leaked" : fault;
}

/** What went wrong with these bytes, or NULL. */
static const char *input_fault(const void *bytes, size_t count)
{
    const char *fault = NULL;

    write_file(&input, "input", bytes, count);
    if (count == 0 || *(const unsigned char *)bytes != 0x93) return open_fault(folder_path(&input, "input"));
    for (int i = 0; i < PARTS && fault == NULL; i++) fault = open_fault(folders[i].path);
    return fault;
}

#ifdef GRAFT_FUZZ

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    if (!host_begin()) exit(2);
    memory.too_large = (uint64_t)1 << 22; /* so that every input is done in no time */
    for (int i = 0; i < CREW_MOST; i++) crew[i].memory.too_large = memory.too_large;
    create_all();
    atexit(destroy_all);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    const char *fault = input_fault(bytes, count);

    if (fault != NULL) {
        fprintf(stderr, "%s\n", fault);
        abort();
    }
    return 0;
}

#else

static void replay_file(const char *path)
{
    static char bytes[1 << 20];
    FILE       *file = fopen(path, "rb");
    size_t      count;
    const char *fault;

    files_check(file != NULL, path);
    count = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    fault = input_fault(bytes, count);
    if (!ok(fault == NULL, "%s", strrchr(path, '/') != NULL ? strrchr(path, '/') + 1 : path)) diag("%s", fault);
}

static void replay(const char *path)
{
    struct stat     status;
    struct dirent **items;
    int             count;

    files_check(stat(path, &status) == 0, path);
    if (!S_ISDIR(status.st_mode)) {
        replay_file(path);
        return;
    }
    count = scandir(path, &items, NULL, alphasort);
    files_check(count >= 0, path);
    for (int i = 0; i < count; i++) {
        char name[PATH_MAX];

        snprintf(name, sizeof name, "%.3000s/%s", path, items[i]->d_name);
        if (items[i]->d_name[0] != '.') replay_file(name);
        free(items[i]);
    }
    free(items);
}

int main(int argc, char **argv)
{
    if (!host_begin()) return done();
    create_all();
    for (int i = 1; i < argc; i++) replay(argv[i]);
    destroy_all();
    host_end();
    return done();
}

#endif
