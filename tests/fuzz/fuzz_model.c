/* Any bytes as a file of a model: they are loaded or refused, with the file in the message, no more memory is taken
 * than the file is long and 256 kB, and nothing is left behind. What is loaded is saved, and loads again as the same.
 * With -DGRAFT_FUZZ and -fsanitize=fuzzer, a fuzz target; else a test that takes folders of files.
 * SPDX-License-Identifier: Apache-2.0 */
#include "data_memory.h"
#include "graft_load.h"
#include "graft_model.h"
#include "harness/tap.h"

#include <sys/stat.h>

enum { MODEL_OVERHEAD = 256 * 1024 };

static struct memory       memory = MEMORY_INIT;
static const graft_api    *api;
static const graft_models *models;
static struct data_folder  folder;

static void fuzz_begin(void)
{
    graft_host  host = GRAFT_INIT(graft_host);
    graft_error error = GRAFT_INIT(graft_error);

    host.self = &memory;
    host.allocate = data_allocate;
    host.deallocate = data_deallocate;
    if (graft_load(getenv("GRAFT_LIBRARY"), &host, &api, &error) < 0) {
        printf("Bail out! %s\n", error.message);
        exit(2);
    }
    models = graft_interface(api, GRAFT_MODEL_ID, sizeof(graft_models));
    folder_create(&folder);
}

static void fuzz_end(void)
{
    folder_destroy(&folder);
    api->close(api->context);
}

static int64_t item_bytes(const graft_state_item *item)
{
    int64_t bytes = item->dtype == GRAFT_F32 ? 4 : 8;

    for (int32_t d = 0; d < item->n_dims; d++) bytes *= item->shape[d];
    return bytes;
}

/* Saved and loaded, it is the same model. */
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
        if (models->item(again, i, &b, NULL) < 0 || strcmp(a.name, b.name) != 0 || item_bytes(&a) != item_bytes(&b) ||
            memcmp(a.data, b.data, (size_t)item_bytes(&a)) != 0)
            fault = "it is another one";
    }
    models->destroy(again);
    remove(path);
    return fault;
}

/** What went wrong with these bytes, or NULL. */
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
    models->destroy(model);
    return fault == NULL && memory.live_bytes != live ? "memory leaked" : fault;
}

#ifdef GRAFT_FUZZ

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    fuzz_begin();
    atexit(fuzz_end);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    const char *fault = model_fault(bytes, count, 1);

    if (fault != NULL) {
        fprintf(stderr, "%s\n", fault);
        abort();
    }
    return 0;
}

#else

/* Files that are named good-... must load, all others must not. */
static void replay_model(const char *path)
{
    static char  bytes[1 << 20];
    FILE        *file = fopen(path, "rb");
    const char  *name = strrchr(path, '/') != NULL ? strrchr(path, '/') + 1 : path, *fault;
    graft_model *model = NULL;
    size_t       count;
    int          loads;

    files_check(file != NULL, path);
    count = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    fault = model_fault(bytes, count, 1);
    loads = models->load(api->context, NULL, folder_path(&folder, "model"), &model, NULL) == GRAFT_OK;
    models->destroy(model);
    if (fault == NULL && loads != (strncmp(name, "good-", 5) == 0)) fault = loads ? "it is loaded" : "it is refused";
    if (!ok(fault == NULL, "%s", name)) diag("%s", fault);
}

/* Every beginning of a good file, and every byte of it changed. */
static void check_changes(const char *path)
{
    static char bytes[1 << 16], copy[1 << 16];
    FILE       *file = fopen(path, "rb");
    const char *fault = NULL;
    size_t      count, at = 0;

    files_check(file != NULL, path);
    count = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    for (; at < count && fault == NULL; at++) fault = model_fault(bytes, at, 0);
    if (!ok(fault == NULL, "every beginning of a model is refused or loaded")) diag("%zu bytes: %s", at - 1, fault);
    for (at = 0, fault = NULL; at < count && fault == NULL; at++) {
        memcpy(copy, bytes, count);
        copy[at] ^= (char)(1 << (at % 8));
        fault = model_fault(copy, count, 0);
    }
    if (!ok(fault == NULL, "a changed bit in any byte does no harm")) diag("byte %zu: %s", at - 1, fault);
}

int main(int argc, char **argv)
{
    fuzz_begin();
    for (int i = 1; i < argc; i++) {
        struct dirent **items;
        const int       count = scandir(argv[i], &items, NULL, alphasort);

        files_check(count >= 0, argv[i]);
        for (int k = 0; k < count; k++) {
            char name[PATH_MAX];

            snprintf(name, sizeof name, "%.3000s/%s", argv[i], items[k]->d_name);
            if (items[k]->d_name[0] != '.') replay_model(name);
            if (strncmp(items[k]->d_name, "good-state", 10) == 0) check_changes(name);
            free(items[k]);
        }
        free(items);
    }
    fuzz_end();
    ok(memory.live_bytes == 0, "no memory is left after close");
    return done();
}

#endif
