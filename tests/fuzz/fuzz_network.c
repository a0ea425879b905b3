/* Loads files of networks and of streams, which are arbitrary bytes or a good file with changes. After an error the
 * state items of the network must be unchanged. After success the network must be able to infer, to train, and to be
 * saved.
 * SPDX-License-Identifier: Apache-2.0 */
#include "draft/graft_stream.h"
#include "target.h"

enum { NODES = 4, FILE_MOST = 65536 };
enum what { ANY_BYTES, OF_NETWORK, OF_STREAM };

static struct memory            memory = MEMORY_INIT;
static const graft_api         *api;
static const graft_mesh_api    *meshes;
static const graft_network_api *networks;
static const graft_stream_api  *streams;
static struct data_folder       folder;
static double                   values[NODES] = { 0, 1, 3, 2 };
static uint8_t                  good[3][FILE_MOST];
static size_t                   good_bytes[3];
static int                      is_loaded; /* whether the last file was loaded */

static graft_field one_column(double *data)
{
    graft_field f = GRAFT_INIT(graft_field);

    f.dtype = GRAFT_F64;
    f.n_rows = NODES;
    f.n_columns = 1;
    f.data = data;
    return f;
}

struct objects {
    graft_mesh    *mesh;
    graft_network *network;
    graft_stream  *stream;
};

static void make_trained(struct objects *o)
{
    static const int32_t from[] = { 0, 1, 2, 3, 1, 2, 3, 0 }, to[] = { 1, 2, 3, 0, 0, 1, 2, 3 };
    graft_mesh_args      args = GRAFT_INIT(graft_mesh_args);
    graft_network_args   of_network = GRAFT_INIT(graft_network_args);
    graft_field          x = one_column(values);
    graft_error          error = GRAFT_INIT(graft_error);

    memset(o, 0, sizeof *o);
    args.kind = GRAFT_MESH_GHOSTS;
    args.dim = 1;
    args.n_rows = NODES;
    args.coordinates = &x;
    args.index_type = GRAFT_I32;
    args.n_edges = 8;
    args.edge_sources = from;
    args.edge_targets = to;
    of_network.predicts = GRAFT_PREDICTS_CHANGE;
    of_network.n_in = of_network.n_out = 1;
    files_check(meshes->create(api->context, NULL, &args, &o->mesh, &error) == GRAFT_OK, error.message);
    files_check(networks->create(o->mesh, &of_network, &o->network, &error) == GRAFT_OK, error.message);
    files_check(streams->create(o->network, &o->stream, &error) == GRAFT_OK, error.message);
}

static void free_objects(struct objects *o)
{
    streams->destroy(o->stream);
    networks->destroy(o->network);
    meshes->destroy(o->mesh);
}

/* Use the objects. The result is the first status that is neither OK nor ERR_NONFINITE. */
static int32_t use_objects(const struct objects *o, int count)
{
    int32_t rc = GRAFT_OK;

    for (int k = 0; k < count && rc == GRAFT_OK; k++) {
        double              state[NODES], result[NODES];
        graft_field         input = one_column(state), output = one_column(result);
        graft_sample_state  sample = GRAFT_INIT(graft_sample_state);
        graft_stream_status status = GRAFT_INIT(graft_stream_status);

        for (int i = 0; i < NODES; i++) state[i] = values[(i + k) % NODES];
        sample.input = &input;
        sample.time = k;
        rc = networks->begin(o->network, &input, NULL);
        if (rc == GRAFT_OK) rc = networks->end(o->network, &output, NULL);
        if (rc == GRAFT_OK) rc = streams->offer(o->stream, &sample, NULL);
        if (rc == GRAFT_OK) rc = streams->step(o->stream, 1000, 1, &status, NULL);
        if (rc == GRAFT_ERR_NONFINITE) rc = GRAFT_OK;
    }
    return rc;
}

static size_t read_good(const char *name, uint8_t *to)
{
    FILE  *file = fopen(folder_path(&folder, name), "rb");
    size_t count;

    files_check(file != NULL, name);
    count = fread(to, 1, FILE_MOST, file);
    files_check(count > 0 && count < FILE_MOST, "the size of a good file");
    fclose(file);
    return count;
}

void target_end(void)
{
    folder_destroy(&folder);
    api->close(api->context);
    ok(memory.live_bytes == 0, "no memory is left after close");
}

/* A hash of all state items. */
static uint64_t sum_items(graft_network *network)
{
    graft_state_item item = GRAFT_INIT(graft_state_item);
    uint64_t         sum = 1469598103934665603u;

    for (int32_t k = 0; networks->state_item(network, k, &item, NULL) == GRAFT_OK; k++) {
        int64_t count = item.dtype == GRAFT_F32 ? 4 : 8;

        for (int32_t d = 0; d < item.n_dims; d++) count *= item.shape[d];
        for (int64_t i = 0; i < count; i++) sum = (sum ^ ((const uint8_t *)item.data)[i]) * 1099511628211u;
        sum = (sum ^ (uint64_t)k) * 1099511628211u;
    }
    return sum;
}

static const char *load_fault(const uint8_t *bytes, size_t count, int is_stream)
{
    const int64_t  live = memory.live_bytes;
    graft_error    error = GRAFT_INIT(graft_error);
    struct objects o;
    const char    *fault = NULL;
    uint64_t       before;
    int32_t        rc;

    write_file(&folder, "file.0", bytes, count);
    make_trained(&o);
    before = sum_items(o.network);
    rc = is_stream ? streams->load(o.stream, folder_path(&folder, "file"), &error)
                   : networks->load(o.network, folder_path(&folder, "file.0"), &error);
    is_loaded = rc == GRAFT_OK;
    if (rc < 0 && sum_items(o.network) != before) fault = "a refusal changed the network";
    else if (rc < 0 && rc != GRAFT_ERR_FORMAT && rc != GRAFT_ERR_UNSUPPORTED) fault = "another status than FORMAT";
    else if (rc < 0 && error.message[0] == '\0') fault = "no sentence";
    if (fault == NULL && use_objects(&o, 4) < 0) fault = "the network cannot be used";
    if (fault == NULL && networks->save(o.network, folder_path(&folder, "again"), NULL) < 0) fault = "no save";
    free_objects(&o);
    return fault == NULL && memory.live_bytes != live ? "memory leaked" : fault;
}

void target_begin(void)
{
    static const char *const settings[][2] = { { "hidden", "2" },         { "layers", "1" },
                                               { "mgn.linear", "1" },     { "stream.memory", "1" },
                                               { "stream.lag", "1" },     { "stream.batch", "2" },
                                               { "stream.holdout", "3" }, { "mgn.statistics", "gather:1" },
                                               { "threads", "1" } };
    struct objects           o;

    api = target_load(&memory);
    meshes = graft_interface(api, GRAFT_MESH_ID, sizeof(graft_mesh_api));
    networks = graft_interface(api, GRAFT_NETWORK_ID, sizeof(graft_network_api));
    streams = graft_interface(api, GRAFT_STREAM_ID, sizeof(graft_stream_api));
    for (size_t k = 0; k < sizeof settings / sizeof *settings; k++)
        files_check(api->set(api->context, settings[k][0], settings[k][1], NULL) == GRAFT_OK, settings[k][0]);
    folder_create(&folder);
    make_trained(&o);
    files_check(use_objects(&o, 6) == GRAFT_OK, "a network that is used");
    files_check(networks->save(o.network, folder_path(&folder, "good"), NULL) == GRAFT_OK, "save of a network");
    files_check(streams->save(o.stream, folder_path(&folder, "good"), NULL) == GRAFT_OK, "save of a stream");
    good_bytes[OF_NETWORK] = read_good("good", good[OF_NETWORK]);
    good_bytes[OF_STREAM] = read_good("good.0", good[OF_STREAM]);
    free_objects(&o);
    for (int k = OF_NETWORK; k <= OF_STREAM; k++)
        files_check(load_fault(good[k], good_bytes[k], k == OF_STREAM) == NULL && is_loaded, "a good file");
}

/* Rename the keys of checksums, so that the code after the checksums is reached. */
static void hide_checksums(uint8_t *bytes, size_t count)
{
    static const char key[] = "\"crc32c";
    uint8_t          *at = bytes;

    while ((at = memmem(at, count - (size_t)(at - bytes), key, sizeof key - 1)) != NULL) *++at = 'k';
}

/* Change a good file. Each change has a position, an operation, and one byte or eight. */
static size_t change_good(struct supply *s, enum what what, uint8_t *to)
{
    size_t count = good_bytes[what];

    memcpy(to, good[what], count);
    while (s->at < s->end && count > 8) {
        const size_t  at = ((size_t)supply_byte(s) << 8 | supply_byte(s)) % (count - 8);
        const uint8_t how = supply_byte(s) % 5;

        if (how == 0) to[at] = supply_byte(s);
        else if (how == 1) supply_bytes(s, to + at, 8);
        else if (how == 2) to[at] = (uint8_t)(to[at] ^ 1 << supply_byte(s) % 8);
        else if (how == 3) memmove(to + at, to + at + 1, --count - at);
        else if (supply_byte(s) == 255) count = at;
    }
    return count;
}

const char *target_fault(const uint8_t *bytes, size_t count)
{
    struct supply   s = { bytes, bytes + count };
    const enum what what = (enum what)(supply_byte(&s) % 3);
    uint8_t        *file = malloc(FILE_MOST);
    const char     *fault;
    size_t          size = 0;

    files_check(file != NULL, "malloc");
    if (what != ANY_BYTES) size = change_good(&s, what, file);
    while (what == ANY_BYTES && s.at < s.end && size < FILE_MOST) file[size++] = supply_byte(&s);
    fault = load_fault(file, size, what == OF_STREAM);
    hide_checksums(file, size);
    if (fault == NULL) fault = load_fault(file, size, what == OF_STREAM);
    free(file);
    return fault;
}
