/* Loads arbitrary bytes as a model file. They must be loaded, or refused with the path in the message. Loading may need
 * no more memory than the length of the file and 256 kB, and none may leak. A model that is loaded is saved, and must
 * load again as the same model. A file with checksums must be refused if any bit or byte is changed, removed or added.
 * SPDX-License-Identifier: Apache-2.0 */
#define TARGET_REPLAYS replay_model
#include "graft_model.h"
#include "harness/state_items.h"
#include "target.h"

enum { MODEL_OVERHEAD = 288 * 1024 };

static struct memory          memory = MEMORY_INIT;
static const graft_api       *api;
static const graft_model_api *models;
static struct data_folder     folder;
static char                   refusal[512]; /* message of the last load, or an empty text if it succeeded */

void target_begin(void)
{
    api = target_load(&memory);
    models = graft_interface(api, GRAFT_MODEL_ID, sizeof(graft_model_api));
    folder_create(&folder);
}

void target_end(void)
{
    folder_destroy(&folder);
    api->close(api->context);
    ok(memory.live_bytes == 0, "no memory is left after close");
}

/* Save and load the model. It must be the same afterwards. */
static const char *again_fault(graft_model *model)
{
    graft_model     *again = NULL;
    graft_state_item a = GRAFT_INIT(graft_state_item), b = a;
    const char      *fault = NULL;
    char             path[PATH_MAX + 256];

    snprintf(path, sizeof path, "%s", folder_path(&folder, "again"));
    if (models->save(model, path, NULL) < 0 || models->load(api->context, NULL, path, &again, NULL) < 0)
        return "what was loaded cannot be saved and loaded again";
    for (int32_t i = 0; fault == NULL && models->item(model, i, &a, NULL) == GRAFT_OK; i++) {
        if (models->item(again, i, &b, NULL) < 0 || !same_state_item(&a, &b)) fault = "it is another one";
    }
    models->destroy(again);
    remove(path);
    return fault;
}

/** Load these bytes. The result is NULL, or says what went wrong. */
static const char *model_fault(const void *bytes, size_t count, int saves)
{
    const int64_t live = memory.live_bytes;
    graft_model  *model = NULL;
    graft_error   error = GRAFT_INIT(graft_error);
    const char   *fault = NULL;
    int32_t       rc;

    write_file(&folder, "model", bytes, count);
    memory.most_bytes = live;
    rc = models->load(api->context, NULL, folder_path(&folder, "model"), &model, &error);
    if (memory.most_bytes - live > (int64_t)count + MODEL_OVERHEAD) fault = "more memory than the file is long";
    else if (rc == GRAFT_OK) fault = saves ? again_fault(model) : NULL;
    else if (rc != GRAFT_ERR_FORMAT && rc != GRAFT_ERR_UNSUPPORTED) fault = "another status than FORMAT or UNSUPPORTED";
    else if (strstr(error.message, "model'") == NULL) fault = "no file in the message";
    snprintf(refusal, sizeof refusal, "%s", rc < 0 ? error.message : "");
    models->destroy(model);
    return fault == NULL && memory.live_bytes != live ? "memory leaked" : fault;
}

/* Load the input, and a copy in which the keys of checksums are renamed, so that the code after the checksums is
 * reached. */
const char *target_fault(const uint8_t *bytes, size_t count)
{
    static const char key[] = "\"crc32c";
    const char       *fault = model_fault(bytes, count, 1);
    char             *copy = malloc(count + 1), *at = copy;

    files_check(copy != NULL, "malloc");
    memcpy(copy, bytes, count);
    while ((at = memmem(at, count - (size_t)(at - copy), key, sizeof key - 1)) != NULL) *++at = 'k';
    if (fault == NULL && memcmp(copy, bytes, count) != 0) fault = model_fault(copy, count, 1);
    free(copy);
    return fault;
}

#ifndef GRAFT_FUZZ

/* Check that these bytes are refused, and that the message names a position. If the first difference from the good
 * file, at `at`, is in a tensor, the position must be right. */
static const char *refusal_fault(const void *bytes, size_t count, size_t at)
{
    static char fault[600];
    const char *wrong = model_fault(bytes, count, 0), *place = strstr(refusal, "from byte ");
    long long   begin, end;

    if (wrong != NULL) return wrong;
    if (refusal[0] == '\0') return "it is loaded";
    if (strstr(refusal, "byte ") != NULL &&
        (place == NULL || sscanf(place, "from byte %lld to byte %lld", &begin, &end) != 2 ||
         (begin <= (long long)at && (long long)at < end)))
        return NULL;
    snprintf(fault, sizeof fault, "no place, or another one: %s", refusal);
    return fault;
}

struct change {
    const char *what;
    int         tries; /* number of changes for each byte */
    /* The function that writes the changed copy of the `count` bytes to `to`. It returns the length of the copy. */
    size_t (*make)(char *to, const uint8_t *bytes, size_t count, size_t at, int try);
};

static size_t flip_bit(char *to, const uint8_t *bytes, size_t count, size_t at, int try)
{
    memcpy(to, bytes, count);
    to[at] = (char)(to[at] ^ 1 << try);
    return count;
}

static size_t cut_off(char *to, const uint8_t *bytes, size_t count, size_t at, int try)
{
    (void)count, (void)try;
    memcpy(to, bytes, at);
    return at;
}

static size_t remove_byte(char *to, const uint8_t *bytes, size_t count, size_t at, int try)
{
    (void)try;
    memcpy(to, bytes, at);
    memcpy(to + at, bytes + at + 1, count - at - 1);
    return count - 1;
}

/* Insert a byte before this one, or after it. */
static size_t insert_byte(char *to, const uint8_t *bytes, size_t count, size_t at, int try)
{
    const char   inserted[] = { 0, ' ', '\t', (char)bytes[at], ',' };
    const size_t place = try == 5 ? at + 1 : at;

    memcpy(to, bytes, place);
    to[place] = try == 5 ? ' ' : inserted[try];
    memcpy(to + place + 1, bytes + place, count - place);
    return count + 1;
}

/* Make all changes of one bit or byte of a file with checksums; in a large file, only at every seventh byte. */
static void check_changes(const char *name, const uint8_t *bytes, size_t count)
{
    static const struct change changes[] = { { "a flipped bit", 8, flip_bit },
                                             { "a cut", 1, cut_off },
                                             { "a missing byte", 1, remove_byte },
                                             { "an added byte", 6, insert_byte } };
    const size_t               step = count > 3000 ? 7 : 1;
    char                      *copy = malloc(count + 1);

    files_check(copy != NULL, "malloc");
    for (size_t k = 0; k < sizeof changes / sizeof *changes; k++) {
        const struct change *c = &changes[k];
        const char          *fault = NULL;
        size_t               i = 0, tries = count * (size_t)c->tries;

        for (; i < tries && fault == NULL; i += step) {
            const size_t at = i / (size_t)c->tries;

            fault = refusal_fault(copy, c->make(copy, bytes, count, at, (int)(i % (size_t)c->tries)), at);
        }
        if (!ok(fault == NULL, "%s: %s is refused, of %zu tries", name, c->what, tries / step))
            diag("byte %zu: %s", (i - step) / (size_t)c->tries, fault);
    }
    free(copy);
}

/* Whether this is a good file with checksums. */
static int is_sealed(const char *name)
{
    return strncmp(name, "good-", 5) == 0 && strstr(name, "foreign") == NULL;
}

/* Files whose names begin with good- must load, and all others must be refused. */
static void replay_model(const char *path, const uint8_t *bytes, size_t count)
{
    const char *name = strrchr(path, '/') != NULL ? strrchr(path, '/') + 1 : path, *fault = target_fault(bytes, count);
    int         loads;

    if (fault == NULL) fault = model_fault(bytes, count, 1);
    loads = refusal[0] == '\0';
    if (fault == NULL && loads != (strncmp(name, "good-", 5) == 0)) fault = loads ? "it is loaded" : refusal;
    ok_or(fault == NULL, fault, "%s", name);
    if (is_sealed(name)) check_changes(name, bytes, count);
}

#endif
