/* Runs hosts as threads, see harness/hosts.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness/hosts.h"
#include "harness/state_items.h"

#include "graft_load.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

const char *const slices_name[SLICES] = { "even", "all on rank 0", "all on the last rank", "on every other rank" };

enum { TRIED = 20 };

static void *host_allocate(void *self, uint64_t bytes, uint64_t alignment)
{
    struct host *host = self;
    int64_t      live, peak;

    if (atomic_load(&host->fail_at) >= 0 && atomic_fetch_sub(&host->fail_at, 1) == 0) {
        host->ran_out = 1;
        return NULL;
    }
    live = atomic_fetch_add(&host->live_bytes, (int64_t)bytes) + (int64_t)bytes;
    peak = atomic_load(&host->peak_bytes);
    while (peak < live && !atomic_compare_exchange_weak(&host->peak_bytes, &peak, live)) continue;
    return aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
}

static void host_deallocate(void *self, void *memory, uint64_t bytes, uint64_t alignment)
{
    struct host *host = self;

    (void)alignment;
    atomic_fetch_sub(&host->live_bytes, (int64_t)bytes);
    free(memory);
}

static void keep_warning(void *self, graft_log_level level, const char *message)
{
    struct host *host = self;
    const size_t length = strlen(host->warnings);

    if (level >= GRAFT_LOG_WARNING) snprintf(host->warnings + length, sizeof host->warnings - length, "%s\n", message);
}

static void bail_out(const char *message)
{
    printf("Bail out! %s\n", message);
    exit(2);
}

void host_set(const graft_api *api, const char *setting)
{
    const char *value = strchr(setting, '=') + 1;
    char        key[64];
    graft_error error = GRAFT_INIT(graft_error);

    snprintf(key, sizeof key, "%.*s", (int)(value - setting - 1), setting);
    if (api->set(api->context, key, value, &error) != GRAFT_OK) bail_out(error.message);
}

void host_set_all(const graft_api *api, const char *settings)
{
    char text[512], *rest = text;

    if (snprintf(text, sizeof text, "%s", settings) >= (int)sizeof text) bail_out("too many settings");
    for (char *setting; (setting = strtok_r(rest, " ", &rest)) != NULL;) host_set(api, setting);
}

/* Derive a value from a part of an option's type: from "step:1..=30", whose number has a default, the value "step", and
 * from "bytes:1.." the value "bytes:1". */
static void word_of(const char *type, size_t length, char word[32])
{
    const char *const end = type + length;
    const char       *at = type + strcspn(type, ":|");

    snprintf(word, 32, "%.*s", (int)(at - type), type);
    while (at < end && *at == ':') {
        const size_t number = strcspn(at + 1, ":|");

        if (memchr(at + 1, '=', number) != NULL) break;
        strncat(word, ":1", 31 - strlen(word));
        at += 1 + number;
    }
}

/* Collect texts that may be values of an option: the words of its type, and then some numbers and names of kernels. The
 * result is their number. */
static int candidates(const graft_option *option, char (*words)[32])
{
    static const char *const others[] = { "1", "2", "0", "0.25", "0.75", "simd", "reference" };
    const char              *rest = option->type;
    int                      count = 0;

    while (strchr(option->type, '|') != NULL && *rest != '\0' && count < TRIED) {
        const size_t length = strcspn(rest, "|");

        word_of(rest, length, words[count++]);
        rest += length + (rest[length] == '|');
    }
    for (size_t i = 0; i < sizeof others / sizeof *others && count < TRIED; i++)
        snprintf(words[count++], sizeof *words, "%s", others[i]);
    return count;
}

int host_option_values(const graft_api *api, const graft_option *option, char values[2][32])
{
    char      words[TRIED][32];
    const int count = candidates(option, words);
    int       found = 0;

    for (int i = 0; i < count && found < 2; i++)
        if (api->set(api->context, option->key, words[i], NULL) == GRAFT_OK)
            memcpy(values[found++], words[i], sizeof *words);
    return found == 2;
}

static double seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void *run_host(void *arg)
{
    struct host *host = arg;
    const double begin = seconds();

    host->rc = host->all->body(host);
    host->seconds = seconds() - begin;
    return NULL;
}

static void open_host(struct host *host, const char *const *settings)
{
    graft_host ours = GRAFT_INIT(graft_host);

    ours.self = host;
    ours.log = keep_warning;
    ours.allocate = host_allocate;
    ours.deallocate = host_deallocate;
    host->error = GRAFT_INIT(graft_error);
    atomic_store(&host->fail_at, -1);
    if (graft_load(getenv("GRAFT_LIBRARY"), &ours, &host->api, &host->error) < 0) bail_out(host->error.message);
    host->graphs = graft_interface(host->api, GRAFT_GRAPH_ID, sizeof *host->graphs);
    host->train = graft_interface(host->api, GRAFT_TRAIN_ID, sizeof *host->train);
    host->report = graft_interface(host->api, GRAFT_REPORT_ID, sizeof *host->report);
    if (host->graphs == NULL || host->train == NULL) bail_out("an interface is missing");
    for (; *settings != NULL; settings++) host_set(host->api, *settings);
}

static void run_bodies(struct hosts *hosts)
{
    pthread_t thread[HOSTS_MOST];

    for (int32_t i = 0; i < hosts->n_ranks; i++)
        if (pthread_create(&thread[i], NULL, run_host, &hosts->at[i]) != 0) bail_out("no thread");
    for (int32_t i = 0; i < hosts->n_ranks; i++) pthread_join(thread[i], NULL);
}

/* Close the transports before the contexts. Afterwards all memory of each context must be freed. */
static void close_hosts(struct hosts *hosts)
{
    for (int32_t i = 0; i < hosts->n_ranks; i++) {
        atomic_store(&hosts->at[i].fail_at, -1);
        hosts->at[i].transport.close(hosts->at[i].transport.self);
    }
    for (int32_t i = 0; i < hosts->n_ranks; i++) {
        const graft_api *api = hosts->at[i].api;

        api->close(api->context);
        if (atomic_load(&hosts->at[i].live_bytes) == 0) continue;
        hosts->error.code = GRAFT_ERR_NOMEM;
        snprintf(hosts->error.message, sizeof hosts->error.message, "%lld bytes of rank %d are left",
                 (long long)atomic_load(&hosts->at[i].live_bytes), hosts->at[i].rank);
    }
}

int hosts_run(struct hosts *hosts, int32_t n_ranks, const char *const *settings, int32_t (*body)(struct host *host),
              void *arg)
{
    const graft_transport_api *transports;
    graft_transport            transport[HOSTS_MOST];

    *hosts = (struct hosts){ .n_ranks = n_ranks, .body = body, .arg = arg, .error = GRAFT_INIT(graft_error) };
    for (int32_t i = 0; i < n_ranks; i++) {
        hosts->at[i] = (struct host){ .all = hosts, .rank = i, .n_ranks = n_ranks };
        transport[i] = GRAFT_INIT(graft_transport);
        open_host(&hosts->at[i], settings);
    }
    transports = graft_interface(hosts->at[0].api, GRAFT_TRANSPORT_ID, sizeof *transports);
    if (transports->threads(hosts->at[0].api->context, n_ranks, transport, &hosts->error) < 0)
        bail_out(hosts->error.message);
    for (int32_t i = 0; i < n_ranks; i++) hosts->at[i].transport = transport[i];
    run_bodies(hosts);
    close_hosts(hosts);
    return hosts->error.code == 0;
}

int hosts_meet(struct host *host)
{
    const int32_t n = host->all->n_ranks;
    const int     all = (atomic_fetch_add(&host->all->n_here, 1) / n + 1) * n;

    for (int i = 0; i < 100000 && atomic_load(&host->all->n_here) < all; i++) usleep(50);
    return atomic_load(&host->all->n_here) >= all;
}

int hosts_are_launched(void)
{
    return getenv("OMPI_COMM_WORLD_SIZE") != NULL || getenv("PMI_SIZE") != NULL;
}

int hosts_run_launched(struct hosts *hosts, const char *const *settings, int32_t (*body)(struct host *host), void *arg)
{
    const graft_transport_api *transports;
    graft_communicator         all = GRAFT_INIT(graft_communicator);
    struct host               *host = hosts->at;

    *hosts = (struct hosts){ .n_ranks = 1, .body = body, .arg = arg, .error = GRAFT_INIT(graft_error) };
    host->all = hosts;
    host->transport = GRAFT_INIT(graft_transport);
    open_host(host, settings);
    transports = graft_interface(host->api, GRAFT_TRANSPORT_ID, sizeof *transports);
    all.start = 1;
    if (transports->open(host->api->context, "auto", &all, &host->transport, &hosts->error) < 0)
        bail_out(hosts->error.message);
    host->rank = host->transport.rank;
    host->n_ranks = host->transport.n_ranks;
    run_host(host);
    close_hosts(hosts);
    return hosts->error.code == 0;
}

static void find_range(enum slices way, int64_t n, int32_t n_ranks, int32_t rank, int64_t *first, int64_t *end)
{
    const int64_t odd = n_ranks / 2;

    *first = *end = 0;
    if (way == SLICES_EVEN || n_ranks == 1) {
        *first = n * rank / n_ranks;
        *end = n * (rank + 1) / n_ranks;
    } else if (way == SLICES_FIRST) {
        *first = rank == 0 ? 0 : n;
        *end = n;
    } else if (way == SLICES_LAST) {
        *end = rank == n_ranks - 1 ? n : 0;
    } else {
        *first = rank / 2 < odd ? n * (rank / 2) / odd : n;
        *end = rank % 2 == 1 ? n * (rank / 2 + 1) / odd : *first;
    }
}

/* Rows `first` up to end - 1 of a matrix, with their own row pointers. */
static graft_csr part_of(const graft_csr *whole, int64_t first, int64_t end, int64_t **ends)
{
    const int64_t index = whole->index_type == GRAFT_I32 ? 4 : 8, value = whole->value_type == GRAFT_F64 ? 8 : 4;
    graft_csr     part = *whole;

    *ends = calloc((size_t)(end - first) + 1, sizeof **ends);
    if (*ends == NULL) bail_out("out of memory");
    for (int64_t i = 0; i <= end - first; i++) (*ends)[i] = whole->row_ptr[first + i] - whole->row_ptr[first];
    part.n_rows = end - first;
    part.row_ptr = *ends;
    part.col_idx = (const char *)whole->col_idx + whole->row_ptr[first] * index;
    if (whole->values != NULL) part.values = (const char *)whole->values + whole->row_ptr[first] * value;
    return part;
}

void host_slice_init(struct host_slice *s, const graft_dataset *whole, enum slices way, int32_t rank, int32_t n_ranks)
{
    int64_t first, end;

    *s = (struct host_slice){ .dataset = *whole };
    find_range(way, whole->n_vertices, n_ranks, rank, &first, &end);
    s->first = first;
    s->end = end;
    s->rows = part_of(whole->graph, first, end, &s->row_ends);
    s->slice = GRAFT_INIT(graft_slice);
    s->slice.n_vertices = whole->n_vertices;
    s->slice.first_row = first;
    s->slice.rows = end > first ? &s->rows : NULL;
    s->dataset.graph = NULL;
    if (whole->features != NULL) {
        s->features = *whole->features;
        s->features.n_rows = end - first;
        s->features.data = (float *)s->features.data + first * s->features.stride;
        s->dataset.features = &s->features;
    } else {
        s->sparse = part_of(whole->sparse_features, first, end, &s->sparse_ends);
        s->dataset.sparse_features = &s->sparse;
    }
    if (whole->labels != NULL) s->dataset.labels = whole->labels + first;
    if (whole->targets != NULL) s->dataset.targets = whole->targets + first * whole->n_classes;
    if (whole->float_targets != NULL) {
        s->float_targets = *whole->float_targets;
        s->float_targets.n_rows = end - first;
        s->float_targets.data = (float *)s->float_targets.data + first * s->float_targets.stride;
        s->dataset.float_targets = end > first ? &s->float_targets : NULL;
    }
    if (whole->split != NULL) s->dataset.split = whole->split + first;
    if (whole->edge_features != NULL && whole->edge_features->n_rows == whole->graph->row_ptr[whole->n_vertices]) {
        s->edge_features = *whole->edge_features;
        s->edge_features.n_rows = whole->graph->row_ptr[end] - whole->graph->row_ptr[first];
        s->edge_features.data = (float *)s->edge_features.data + whole->graph->row_ptr[first] * s->edge_features.stride;
        s->dataset.edge_features = &s->edge_features;
    }
}

void host_slice_fini(struct host_slice *s)
{
    free(s->row_ends);
    free(s->sparse_ends);
}

int32_t host_trainer_create(struct host *host, const graft_dataset *whole, enum slices way, struct host_trainer *t)
{
    int32_t rc;

    *t = (struct host_trainer){ .graph = NULL };
    host_slice_init(&t->slice, whole, way, host->rank, host->n_ranks);
    rc = host->graphs->create(host->api->context, &host->transport, &t->slice.slice, &t->graph, &host->error);
    t->slice.dataset.over = t->graph;
    if (rc == GRAFT_OK) rc = host->train->create(host->api->context, &t->slice.dataset, &t->trainer, &host->error);
    return rc;
}

void host_trainer_destroy(const struct host *host, struct host_trainer *t)
{
    host->train->destroy(t->trainer);
    host->graphs->destroy(t->graph);
    host_slice_fini(&t->slice);
}

int32_t host_copy_state(struct host *host, graft_trainer *from, graft_trainer *to)
{
    graft_state_item item = GRAFT_INIT(graft_state_item);
    int32_t          rc = GRAFT_OK;

    for (int32_t i = 0; rc == GRAFT_OK && host->train->state_item(from, i, &item, NULL) == GRAFT_OK; i++)
        rc = host->train->state_set(to, &item, &host->error);
    return rc;
}

int host_same_state(const graft_train_api *train, graft_trainer *a, graft_trainer *b)
{
    graft_state_item left = GRAFT_INIT(graft_state_item), right = GRAFT_INIT(graft_state_item);
    int32_t          i;

    for (i = 0; train->state_item(a, i, &left, NULL) == GRAFT_OK; i++) {
        if (train->state_item(b, i, &right, NULL) != GRAFT_OK) return 0;
        if (same_state_item(&left, &right)) continue;
        printf("# %s differs\n", left.name);
        return 0;
    }
    return i > 8 && train->state_item(b, i, &right, NULL) != GRAFT_OK;
}

const char *hosts_fault(const struct hosts *hosts)
{
    if (hosts->error.code != 0) return hosts->error.message;
    for (int32_t i = 0; i < hosts->n_ranks; i++)
        if (hosts->at[i].rc != GRAFT_OK) return hosts->at[i].error.message;
    return NULL;
}
