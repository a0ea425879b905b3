/* Measures how fast models are saved and loaded, compared with a plain write with fsync() and a plain read of the same
 * number of bytes.
 * SPDX-License-Identifier: Apache-2.0 */
#include "bench.h"
#include "graft_load.h"
#include "graft_model.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char usage[] =
    "usage: bench_model [MB [ROUNDS [FOLDER]]]\n"
    "A model of so many MB of weights (default: 100), in turns with plain files, ROUNDS times (7), in FOLDER (.).";

enum { N = 8, FEATURES = 64, CLASSES = 2, ROUNDS_MOST = 100 };
enum { PLAIN_WRITE, SAVE, PLAIN_READ, LOAD, CASES };
static const char *const case_name[CASES] = { "plain write and fsync", "save", "plain read", "load" };

struct model_bench {
    const graft_api       *api;
    const graft_train_api *train;
    const graft_model_api *models;
    graft_model           *model;
    graft_error            error;
    char                   plain[256], saved[256];
    char                  *bytes; /* contents of the saved file */
    int64_t                count;
    double                 seconds[CASES][ROUNDS_MOST];
};

static void check(const struct model_bench *b, int32_t rc)
{
    if (rc < 0) bench_die("%s", b->error.message);
}

/* Create a model of about `mega_bytes` megabytes. An mlp with two hidden layers of the same width has about width^2
 * weights. */
static void make_model(struct model_bench *b, double mega_bytes)
{
    int64_t        row_ptr[N + 1] = { 0 };
    int32_t        labels[N] = { 0, 1 };
    uint8_t        split[N] = { 1, 1 };
    static float   x[N * FEATURES];
    graft_csr      graph = GRAFT_INIT(graft_csr);
    graft_dense    features = { sizeof features, GRAFT_F32, N, FEATURES, FEATURES, x };
    graft_dataset  data = GRAFT_INIT(graft_dataset);
    graft_trainer *trainer = NULL;
    int64_t        width = 1;
    char           text[32];

    while ((double)(width * (width + FEATURES + CLASSES)) * 4e-6 < mega_bytes) width++;
    snprintf(text, sizeof text, "%lld", (long long)width);
    graph.index_type = GRAFT_I32;
    graph.n_rows = graph.n_cols = N;
    graph.row_ptr = row_ptr;
    graph.col_idx = labels;
    data.n_vertices = N, data.n_features = FEATURES, data.n_classes = CLASSES;
    data.graph = &graph, data.features = &features, data.labels = labels, data.split = split;
    check(b, b->api->set(b->api->context, "model", "mlp", &b->error));
    check(b, b->api->set(b->api->context, "hidden", text, &b->error));
    check(b, b->train->create(b->api->context, &data, &trainer, &b->error));
    check(b, b->models->create(trainer, GRAFT_MODEL_LAST, &b->model, &b->error));
    b->train->destroy(trainer);
}

static void plain_write(const struct model_bench *b)
{
    const int fd = open(b->plain, O_WRONLY | O_CREAT | O_TRUNC, 0666);

    for (int64_t done = 0; fd >= 0 && done < b->count;) {
        const ssize_t more = write(fd, b->bytes + done, (size_t)(b->count - done));

        if (more <= 0) bench_die("'%s' cannot be written", b->plain);
        done += more;
    }
    if (fd < 0 || fsync(fd) != 0 || close(fd) != 0) bench_die("'%s' cannot be written", b->plain);
}

/* Read the plain file into newly allocated memory, because load() reads into the new memory of a model as well. */
static void plain_read(const struct model_bench *b)
{
    char *const to = malloc((size_t)b->count);
    const int   fd = open(b->plain, O_RDONLY);

    for (int64_t done = 0; to != NULL && fd >= 0 && done < b->count;) {
        const ssize_t more = read(fd, to + done, (size_t)(b->count - done));

        if (more <= 0) bench_die("'%s' cannot be read", b->plain);
        done += more;
    }
    if (fd < 0 || to == NULL || close(fd) != 0) bench_die("'%s' cannot be read", b->plain);
    free(to);
}

/* Ask the system to evict the file from its page cache, so that the next read accesses the disk. */
static void drop(const char *path)
{
    const int fd = open(path, O_RDONLY);

    if (fd < 0) return;
    posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    close(fd);
}

static void run_round(struct model_bench *b, int round)
{
    graft_model *loaded = NULL;
    double       at[CASES + 1];

    at[PLAIN_WRITE] = bench_seconds();
    plain_write(b);
    at[SAVE] = bench_seconds();
    check(b, b->models->save(b->model, b->saved, &b->error));
    b->seconds[SAVE][round] = bench_seconds() - at[SAVE];
    b->seconds[PLAIN_WRITE][round] = at[SAVE] - at[PLAIN_WRITE];
    drop(b->plain);
    drop(b->saved);
    at[PLAIN_READ] = bench_seconds();
    plain_read(b);
    at[LOAD] = bench_seconds();
    check(b, b->models->load(b->api->context, NULL, b->saved, &loaded, &b->error));
    b->seconds[LOAD][round] = bench_seconds() - at[LOAD];
    b->seconds[PLAIN_READ][round] = at[LOAD] - at[PLAIN_READ];
    b->models->destroy(loaded);
}

/* Read the bytes of the saved model, which are written to the plain file. */
static void take_bytes(struct model_bench *b)
{
    struct stat status;
    int         fd;

    check(b, b->models->save(b->model, b->saved, &b->error));
    fd = open(b->saved, O_RDONLY);
    if (fd < 0 || fstat(fd, &status) != 0) bench_die("'%s' cannot be read", b->saved);
    b->count = status.st_size;
    b->bytes = bench_new((size_t)b->count, 1, 1);
    if (read(fd, b->bytes, (size_t)b->count) != b->count) bench_die("'%s' cannot be read", b->saved);
    close(fd);
}

int main(int argc, char **argv)
{
    static struct model_bench b;
    const double              mega_bytes = argc > 1 ? atof(argv[1]) : 100;
    const int                 rounds = argc > 2 ? atoi(argv[2]) : 7;
    const char               *folder = argc > 3 ? argv[3] : ".";
    double                    median[CASES];

    b.error.size = sizeof b.error;
    if (!(mega_bytes > 0 && mega_bytes < 1900) || rounds < 1 || rounds > ROUNDS_MOST || argc > 4)
        bench_die("%s", usage);
    snprintf(b.plain, sizeof b.plain, "%.200s/bench_model.plain", folder);
    snprintf(b.saved, sizeof b.saved, "%.200s/bench_model.safetensors", folder);
    check(&b, graft_load(getenv("GRAFT_LIBRARY"), NULL, &b.api, &b.error));
    b.train = graft_interface(b.api, GRAFT_TRAIN_ID, sizeof(graft_train_api));
    b.models = graft_interface(b.api, GRAFT_MODEL_ID, sizeof(graft_model_api));
    make_model(&b, mega_bytes);
    take_bytes(&b);
    for (int round = 0; round < rounds; round++) run_round(&b, round);
    for (int i = 0; i < CASES; i++) {
        median[i] = bench_median(b.seconds[i], rounds);
        printf("%-24s %9.3f ms %8.0f MB/s\n", case_name[i], 1e3 * median[i], (double)b.count * 1e-6 / median[i]);
    }
    printf("save %.0f %% and load %.0f %% of the plain speed\n", 100 * median[PLAIN_WRITE] / median[SAVE],
           100 * median[PLAIN_READ] / median[LOAD]);
    b.models->destroy(b.model);
    b.api->close(b.api->context);
    free(b.bytes);
    unlink(b.plain);
    unlink(b.saved);
    strcat(b.saved, ".previous");
    unlink(b.saved);
    return 0;
}
