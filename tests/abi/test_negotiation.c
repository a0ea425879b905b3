/* Checks graft_open() with version ranges that do and do not overlap, with structs of every size for host and error,
 * the interfaces, and the loader in the header.
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness/strict_host.h"
#include "harness/tap.h"
#include "oracle/sample.h"

#include "graft.h"
#include "graft_load.h"

static graft_open_fn      entry;
static struct strict_host host;

static int load_entry(void)
{
    const char *path = getenv("GRAFT_LIBRARY");
    void       *library = path != NULL ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    void       *symbol = library != NULL ? dlsym(library, "graft_open") : NULL;

    memcpy(&entry, &symbol, sizeof entry);
    return ok(entry != NULL, "libgraft.so has graft_open");
}

/* Open the library with a version range. The result is NULL, or says what is wrong. */
static const char *open_range(uint32_t low, uint32_t high)
{
    static char            fault[1024];
    const graft_api *const mark = (const graft_api *)&host;
    const graft_api       *api = mark;
    graft_error            error = GRAFT_INIT(graft_error);
    const int32_t          expected = low > high ? GRAFT_ERR_ARG : low <= 1 && high >= 1 ? GRAFT_OK : GRAFT_ERR_VERSION;
    const int32_t          rc = entry(low, high, &host.table, &api, &error);
    const uint32_t         agreed = rc == GRAFT_OK ? api->abi : 0;
    char                   numbers[2][16];

    if (rc == GRAFT_OK) api->close(api->context);
    snprintf(fault, sizeof fault, "%u to %u: returned %d, expected %d, message: %s", low, high, rc, expected,
             error.message);
    if (rc != expected || host.live_bytes != 0) return fault;
    if (rc == GRAFT_OK) return agreed != 1 || error.code != 0 ? fault : NULL;
    snprintf(numbers[0], sizeof numbers[0], "%u", low);
    snprintf(numbers[1], sizeof numbers[1], "%u", high);
    if (api != mark || error.code != rc || strcmp(error.where, "graft_open") != 0) return fault;
    if (strstr(error.message, numbers[0]) == NULL || strstr(error.message, numbers[1]) == NULL) return fault;
    if (rc == GRAFT_ERR_VERSION && strstr(error.message, "version 1") == NULL) return fault;
    return NULL;
}

static void test_ranges(void)
{
    static const uint32_t ends[] = { 0, 1, 2, 3, 1000, 0x7FFFFFFFu, 0x80000000u, UINT32_MAX };
    int                   faults = 0;

    for (size_t i = 0; i < 64; i++) {
        const char *fault = open_range(ends[i / 8], ends[i % 8]);
        if (fault != NULL && faults++ == 0) diag("%s", fault);
    }
    ok(faults == 0, "every range of versions is taken, or refused with both ranges in the message");
}

static int32_t negotiation_open_and_close(const graft_host *theirs, graft_error *error)
{
    const graft_api *api = NULL;
    const int32_t    rc = entry(GRAFT_ABI_VERSION, GRAFT_ABI_VERSION, theirs, &api, error);

    if (rc == GRAFT_OK) api->close(api->context);
    return rc;
}

static void test_host_sizes(void)
{
    struct {
        graft_host    host;
        unsigned char tail[64];
    } grown = { .host = host.table };
    graft_error   error = GRAFT_INIT(graft_error);
    const int64_t calls = host.calls;

    grown.host.size = 0;
    ok(negotiation_open_and_close(&grown.host, &error) == GRAFT_ERR_ARG && strstr(error.message, "GRAFT_INIT"),
       "a host of size 0");
    grown.host.size = 4;
    ok(negotiation_open_and_close(&grown.host, &error) == GRAFT_ERR_ARG, "a host of size 4");
    grown.host.size = offsetof(graft_host, allocate) + 4;
    ok(negotiation_open_and_close(&grown.host, &error) == GRAFT_ERR_ARG, "a host that ends within a pointer");
    grown.host.size = 8;
    ok(negotiation_open_and_close(&grown.host, &error) == GRAFT_OK && host.calls == calls,
       "a host of size 8 lends nothing");
    grown.host.size = offsetof(graft_host, allocate);
    ok(negotiation_open_and_close(&grown.host, &error) == GRAFT_OK && host.calls == calls, "a host with a log alone");
    grown.host.size = sizeof(graft_host) - 8;
    ok(negotiation_open_and_close(&grown.host, &error) == GRAFT_OK && host.calls > calls, "a host without extensions");
    grown.host.size = sizeof grown;
    ok(negotiation_open_and_close(&grown.host, &error) == GRAFT_OK, "a host that is newer than the library");
    grown.tail[5] = 1;
    ok(negotiation_open_and_close(&grown.host, &error) == GRAFT_ERR_UNSUPPORTED,
       "a newer one that lends what is not known: %s", error.message);
    grown.host.size = UINT32_MAX;
    ok(negotiation_open_and_close(&grown.host, &error) == GRAFT_ERR_ARG, "a host of no sensible size");
    ok(negotiation_open_and_close(NULL, &error) == GRAFT_OK, "no host");
    grown.host.size = sizeof(graft_host);
    grown.host.deallocate = NULL;
    ok(negotiation_open_and_close(&grown.host, &error) == GRAFT_ERR_ARG && strstr(error.message, "deallocate"),
       "half an allocator");
    ok(host.live_bytes == 0 && host.fault == NULL, "no memory is left");
}

/* Pass an error struct of `size` bytes. The library may write at most that many. */
static int negotiation_error_of(uint32_t size)
{
    union {
        unsigned char bytes[sizeof(graft_error) + 64];
        graft_error   error;
    } out;
    const uint32_t written = size < sizeof(graft_error) ? size : sizeof(graft_error);

    memset(&out, 0xA5, sizeof out);
    out.error.size = size;
    if (entry(7, 9, NULL, (const graft_api **)&(const graft_api *){ NULL }, &out.error) != GRAFT_ERR_VERSION) return 0;
    if (out.error.size != size) return 0;
    for (size_t i = written < 8 ? 4 : written; i < sizeof out; i++) {
        if (out.bytes[i] != 0xA5) return 0;
    }
    if (size >= 8 && out.error.code != GRAFT_ERR_VERSION) return 0;
    if (size > offsetof(graft_error, where) && memchr(out.error.where, 0, written - 16) == NULL) return 0;
    return size <= offsetof(graft_error, message) || memchr(out.error.message, 0, written - 64) != NULL;
}

static void test_error_sizes(void)
{
    int faults = 0;

    for (uint32_t size = 0; size <= sizeof(graft_error) + 64; size++) {
        if (!negotiation_error_of(size) && faults++ == 0) diag("size %u", size);
    }
    ok(faults == 0, "errors of every size are filled as far as they go, and texts have an end");
    ok(entry(7, 9, NULL, (const graft_api **)&(const graft_api *){ NULL }, NULL) == GRAFT_ERR_VERSION,
       "no error struct");
    ok(entry(1, 1, NULL, NULL, NULL) == GRAFT_ERR_ARG, "nowhere to put the api");
}

/* Whether no pointer of a table from byte `from` on is NULL. */
static int no_slot_is_null(const void *table, size_t from, uint32_t size)
{
    for (size_t at = from; at < size; at += sizeof(void *)) {
        void *slot;

        memcpy(&slot, (const char *)table + at, sizeof slot);
        if (slot == NULL) return 0;
    }
    return 1;
}

static void test_tables(void)
{
    static const char *const unknown[] = { "graft.mxm/2",   "graft.mxm/0",   "graft.mxm", "graft.mxm/1 ",
                                           "GRAFT.MXM/1",   "graft.mxm/10",  "",          "/1",
                                           "graft.codec/2", "graft.sample/2" };
    const graft_api         *api = NULL;
    const graft_mxm_api     *mxm;
    const graft_edge_api    *edge;
    const graft_data_api    *data;
    const graft_train_api   *train;
    const graft_codec_api   *codec;
    const graft_sample_api  *samples;
    void (*close_context)(graft_context *);
    int found = 0;

    if (!ok(entry(1, 1, &host.table, &api, NULL) == GRAFT_OK, "a context opens")) return;
    ok(api->size >= sizeof *api && api->abi == 1 && api->version[0] != '\0' && api->context != NULL,
       "the api says what it is: %u bytes, version %u, release %s", api->size, api->abi, api->version);
    ok(no_slot_is_null(api, offsetof(graft_api, close), sizeof *api), "all its calls are there");
    mxm = api->get_interface(api->context, GRAFT_MXM_ID);
    data = api->get_interface(api->context, GRAFT_DATA_ID);
    train = api->get_interface(api->context, GRAFT_TRAIN_ID);
    edge = api->get_interface(api->context, GRAFT_EDGE_ID);
    codec = api->get_interface(api->context, GRAFT_CODEC_ID);
    samples = api->get_interface(api->context, GRAFT_SAMPLE_ID);
    ok(mxm && mxm->size >= sizeof *mxm && no_slot_is_null(mxm, 8, sizeof *mxm), GRAFT_MXM_ID " is whole");
    ok(edge && edge->size >= sizeof *edge && no_slot_is_null(edge, 8, sizeof *edge), GRAFT_EDGE_ID " is whole");
    ok(codec && codec->size >= sizeof *codec && no_slot_is_null(codec, 8, sizeof *codec), GRAFT_CODEC_ID " is whole");
    ok(samples && samples->size >= sizeof *samples && no_slot_is_null(samples, 8, sizeof *samples),
       GRAFT_SAMPLE_ID " is whole");
    ok(data && data->size >= sizeof *data && no_slot_is_null(data, 8, sizeof *data), GRAFT_DATA_ID " is whole");
    ok(train && train->size >= sizeof *train && no_slot_is_null(train, 8, sizeof *train), GRAFT_TRAIN_ID " is whole");
    ok(graft_interface(api, GRAFT_MXM_ID, sizeof *mxm) == mxm &&
           graft_interface(api, GRAFT_MXM_ID, mxm->size + 8) == NULL && graft_interface(api, "graft.no/1", 8) == NULL,
       "graft_interface() looks at the size, too");
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++) {
        if (api->get_interface(api->context, unknown[i]) != NULL && found++ == 0)
            diag("'%s' gives a table", unknown[i]);
    }
    ok(found == 0 && api->get_interface(api->context, NULL) == NULL, "an unknown interface is NULL");
    close_context = api->close;
    close_context(api->context);
    close_context(NULL);
    ok(host.live_bytes == 0, "close leaves no memory, and takes NULL");
}

/* The table of an older library, which ends with run(). */
static const graft_mxm_api older_mxm = { .size = GRAFT_HAS(graft_mxm_api, run) };

static const void *older_interface(graft_context *context, const char *id)
{
    (void)context;
    return strcmp(id, GRAFT_MXM_ID) == 0 ? &older_mxm : NULL;
}

static void test_older_library(void)
{
    const graft_api api = { .size = sizeof api, .get_interface = older_interface };

    ok(graft_interface(&api, GRAFT_MXM_ID, GRAFT_HAS(graft_mxm_api, run)) == &older_mxm &&
           graft_interface(&api, GRAFT_MXM_ID, GRAFT_HAS(graft_mxm_api, matrix_create)) == &older_mxm,
       "a table that ends with run() serves a host that needs no more");
    ok(graft_interface(&api, GRAFT_MXM_ID, GRAFT_HAS(graft_mxm_api, explain)) == NULL &&
           graft_interface(&api, GRAFT_MXM_ID, sizeof older_mxm) == NULL,
       "and not one that needs what follows");
    ok(GRAFT_HAS(graft_train_api, update) == sizeof(graft_train_api) && GRAFT_HAS(graft_api, size) == 4,
       "GRAFT_HAS is where a field ends");
}

static uint32_t negotiation_draw(struct sample *sample)
{
    static const uint32_t edges[] = { 0, 1, 2, 4, 8, 0x7FFFFFFFu, 0x80000000u, UINT32_MAX };
    const int64_t         choice = sample_below(sample, 12);

    return choice < 8    ? edges[choice]
           : choice < 11 ? (uint32_t)sample_below(sample, 700)
                         : (uint32_t)sample_bits(sample);
}

/* Pass random ranges and random sizes of host and error. There must always be a status, as much of the error as fits,
 * and a table only after success. */
static const char *negotiate_at_random(struct sample *sample)
{
    static char            fault[256];
    const graft_api *const mark = (const graft_api *)&host;
    const graft_api       *api = mark;
    const uint32_t         low = negotiation_draw(sample), high = negotiation_draw(sample);
    union {
        graft_host    host;
        unsigned char bytes[4096];
    } theirs = { .host = host.table };
    union {
        graft_error   error;
        unsigned char bytes[4096];
    } said;
    uint32_t size, written;
    int32_t  rc;

    memset(&said, 0xA5, sizeof said);
    theirs.host.size = negotiation_draw(sample);
    said.error.size = size = negotiation_draw(sample);
    rc = entry(low, high, &theirs.host, &api, &said.error);
    snprintf(fault, sizeof fault, "%u to %u, a host of %u bytes, an error of %u: %d", low, high, theirs.host.size, size,
             rc);
    if (rc > 0 || rc < GRAFT_ERR_PEER || (rc == GRAFT_OK) != (api != mark) || said.error.size != size) return fault;
    if (rc == GRAFT_OK) api->close(api->context);
    if (rc < 0 && size >= 8 && said.error.code != rc) return fault;
    written = rc == GRAFT_OK || size < 8 ? 4 : size < sizeof said.error ? size : sizeof said.error;
    for (uint32_t i = written; i < sizeof said; i++) {
        if (said.bytes[i] != 0xA5) return fault;
    }
    return host.live_bytes != 0 || host.fault != NULL ? fault : NULL;
}

static void test_at_random(void)
{
    enum { TIMES = 20000 };
    struct sample sample = { 5 };
    int           faults = 0;

    for (int i = 0; i < TIMES; i++) {
        const char *fault = negotiate_at_random(&sample);
        if (fault != NULL && faults++ == 0) diag("%s", fault);
    }
    ok(faults == 0, "%d openings with ranges and sizes at random end with a status, and keep to the sizes", TIMES);
}

static void test_loader(void)
{
    const graft_api *const mark = (const graft_api *)&host;
    const graft_api       *api = mark;
    graft_error            error = GRAFT_INIT(graft_error), small = { .size = 8 };

    errno = 0x5a;
    ok(graft_load("/nowhere/libgraft.so", NULL, &api, &error) == GRAFT_ERR_NOT_FOUND && api == mark && errno == 0x5a &&
           strstr(error.message, "/nowhere/libgraft.so") != NULL && strstr(error.message, "run path") == NULL,
       "the loader names a library that is not there: %s", error.message);
    ok(graft_load("libgraft-nowhere.so", NULL, &api, &error) == GRAFT_ERR_NOT_FOUND && api == mark &&
           strstr(error.message, "link the program with a run path") != NULL,
       "if a name is not found, the message says what to do");
    ok(graft_load("libm.so.6", NULL, &api, &error) == GRAFT_ERR_VERSION && api == mark &&
           strstr(error.message, "graft_open") != NULL,
       "and one that is another library: %s", error.message);
    ok(graft_load("/nowhere/libgraft.so", NULL, &api, NULL) == GRAFT_ERR_NOT_FOUND &&
           graft_load("/nowhere/libgraft.so", NULL, &api, &small) == GRAFT_ERR_NOT_FOUND && small.code == 0,
       "without an error struct, or with a short one");
    ok(graft_load(getenv("GRAFT_LIBRARY"), &host.table, &api, &error) == GRAFT_OK && api != mark,
       "it opens the library");
    if (api != mark) api->close(api->context);
}

int main(void)
{
    strict_host_init(&host);
    if (!load_entry()) return done();
    test_ranges();
    test_host_sizes();
    test_error_sizes();
    test_tables();
    test_older_library();
    test_loader();
    test_at_random();
    return done();
}
