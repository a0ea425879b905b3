/* Writes and reads checkpoints. A checkpoint has the whole state of a trainer, in the file format of graft.model/1.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE 1 /* program_invocation_short_name */
#include "checkpoint.h"
#include "output_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

char *checkpoint_path(const char *folder)
{
    char *path = NULL;

    return asprintf(&path, "%s/%s", folder, CHECKPOINT_FILE) < 0 ? NULL : path;
}

int32_t checkpoint_prepare(const char *folder, graft_error *error)
{
    char   *path = checkpoint_path(folder);
    int32_t rc = GRAFT_OK;

    if (path == NULL) return problem_memory(error, "the name of the checkpoint");
    if (mkdir(folder, 0777) != 0 && errno != EEXIST) rc = problem_errno(error, "make the folder", folder);
    else rc = output_check(path, error);
    free(path);
    return rc;
}

/** Returns the path of the file of a rank in a folder, which the caller frees, or NULL when out of memory. */
static char *path_of_rank(const char *folder, int32_t rank)
{
    char *path = NULL;

    if (rank == 0) return checkpoint_path(folder);
    return asprintf(&path, "%s/checkpoint.rank-%d.safetensors", folder, (int)rank) < 0 ? NULL : path;
}

static int is_cache(const graft_state_item *item)
{
    return strncmp(item->name, "caches.", strlen("caches.")) == 0;
}

int checkpoint_has_caches(const struct library *library, graft_trainer *trainer)
{
    graft_state_item item = GRAFT_INIT(graft_state_item);

    for (int32_t i = 0; library->train->state_item(trainer, i, &item, NULL) == GRAFT_OK; i++)
        if (is_cache(&item)) return 1;
    return 0;
}

int32_t checkpoint_write(const struct library *library, graft_trainer *trainer, int32_t rank, const char *folder,
                         graft_error *error)
{
    graft_model *model = NULL;
    char        *path;
    int32_t      rc;

    if (rank > 0 && !checkpoint_has_caches(library, trainer)) return GRAFT_OK;
    path = path_of_rank(folder, rank);
    TRY(path != NULL ? GRAFT_OK : problem_memory(error, "the name of the checkpoint"));
    TRY(library->models->create(trainer, GRAFT_MODEL_STATE, &model, error));
    if (rank > 0) (void)mkdir(folder, 0777); /* rank 0 has created the folder, unless ranks do not share disks */
    rc = library->models->save(model, path, error);
done:
    library->models->destroy(model);
    free(path);
    return rc;
}

/** Returns the number of bytes of the data of a state item. */
static size_t item_bytes(const graft_state_item *item)
{
    size_t bytes = item->dtype == GRAFT_F32 ? 4 : 8;

    for (int32_t d = 0; d < item->n_dims; d++) bytes *= (size_t)item->shape[d];
    return bytes;
}

/** Returns whether the file of a rank was saved at the same time as the checkpoint. Then all items except the caches
 *  are equal. */
static int belongs_to(const struct library *library, graft_model *own, graft_model *checkpoint)
{
    graft_state_item ours = GRAFT_INIT(graft_state_item), theirs = GRAFT_INIT(graft_state_item);

    for (int32_t i = 0; library->models->item(checkpoint, i, &theirs, NULL) == GRAFT_OK; i++)
        if (library->models->item(own, i, &ours, NULL) < 0 || strcmp(ours.name, theirs.name) != 0 ||
            item_bytes(&ours) != item_bytes(&theirs) || memcmp(ours.data, theirs.data, item_bytes(&ours)) != 0)
            return 0;
    return 1;
}

static int has_caches(const struct library *library, graft_model *model)
{
    graft_state_item item = GRAFT_INIT(graft_state_item);

    for (int32_t i = 0; library->models->item(model, i, &item, NULL) == GRAFT_OK; i++)
        if (is_cache(&item)) return 1;
    return 0;
}

/** Load the caches in the file of this rank into its trainer. The rank is not 0. \return Also ERR_NOT_FOUND: the file
 *  does not exist; ERR_FORMAT: the caches have the wrong size, or belong to another run or epoch. */
static int32_t take_caches(const struct library *library, graft_trainer *trainer, int32_t rank, const char *folder,
                           graft_model *checkpoint, graft_error *error)
{
    graft_model     *own = NULL;
    graft_state_item item = GRAFT_INIT(graft_state_item);
    char            *path = path_of_rank(folder, rank);
    int32_t          rc = GRAFT_OK;

    if (path == NULL) return problem_memory(error, "the name of the checkpoint");
    if (access(path, F_OK) != 0) rc = problem(error, GRAFT_ERR_NOT_FOUND, "there is no file '%s'", path);
    TRY(rc);
    TRY(library->models->load(library->api->context, NULL, path, &own, error));
    if (!belongs_to(library, own, checkpoint))
        rc = problem(error, GRAFT_ERR_FORMAT, "'%s' and '" CHECKPOINT_FILE "' are of different runs or epochs", path);
    for (int32_t i = 0; rc == GRAFT_OK && library->models->item(own, i, &item, NULL) == GRAFT_OK; i++)
        if (is_cache(&item)) rc = library->train->state_set(trainer, &item, error);
    if (rc == GRAFT_OK && !checkpoint_has_caches(library, trainer))
        rc = problem(error, GRAFT_ERR_FORMAT, "'%s' has not all caches", path);
done:
    library->models->destroy(own);
    free(path);
    return rc;
}

/** Returns the value of an option when the model was saved, or NULL if the file does not contain the option. */
static const char *value_then(const struct library *library, graft_model *model, const char *key)
{
    static const char *const PREFIXES[] = { "model.", "training." };
    const char              *found, *value;

    for (int32_t i = 0; library->models->metadata(model, i, &found, &value, NULL) == GRAFT_OK; i++)
        for (size_t p = 0; p < sizeof PREFIXES / sizeof *PREFIXES; p++)
            if (strncmp(found, PREFIXES[p], strlen(PREFIXES[p])) == 0 && strcmp(found + strlen(PREFIXES[p]), key) == 0)
                return value;
    return NULL;
}

/** Describe the options that differ from those of the saved model. A different number of epochs is intended, and the
 *  file has the resolved values of options that are "auto", so neither is reported. */
static void describe_differences(const struct library *library, graft_model *model, char *text, size_t capacity)
{
    graft_option option = GRAFT_INIT(graft_option);
    size_t       used = 0;

    *text = '\0';
    for (int32_t i = 0; library->api->option_info(library->api->context, i, &option, NULL) >= 0; i++) {
        const char *then = value_then(library, model, option.key);

        if (then != NULL && strcmp(option.key, "epochs") != 0 && strcmp(option.value, "auto") != 0 &&
            strcmp(then, option.value) != 0 && used < capacity)
            used += (size_t)snprintf(text + used, capacity - used, "%s%s=%.32s (now %.32s)", used > 0 ? ", " : "",
                                     option.key, then, option.value);
        option = GRAFT_INIT(graft_option);
    }
}

int32_t checkpoint_read(const struct library *library, const graft_transport *transport, int32_t rank,
                        graft_trainer *trainer, const char *folder, struct checkpoint_facts *facts, graft_error *error)
{
    graft_model     *model = NULL;
    graft_model_info info = GRAFT_INIT(graft_model_info);
    graft_error      refusal = GRAFT_INIT(graft_error);
    char            *path = checkpoint_path(folder);
    int32_t          rc;

    TRY(path != NULL ? GRAFT_OK : problem_memory(error, "the name of the checkpoint"));
    TRY(library->models->load(library->api->context, transport, path, &model, error));
    TRY(library->models->info(model, &info, error));
    if (!info.has_state)
        rc = problem(error, GRAFT_ERR_FORMAT, "'%s' has only weights, not the state of a training", path);
    TRY(rc);
    describe_differences(library, model, facts->differences, sizeof facts->differences);
    facts->no_caches = GRAFT_INIT(graft_error);
    rc = library->models->apply(model, trainer, &refusal);
    if (rc < 0)
        rc = problem(error, rc, "'%s': %s%s%s", path, refusal.message,
                     *facts->differences != '\0' ? "; the checkpoint was made with " : "", facts->differences);
    facts->has_caches = rank == 0 && has_caches(library, model);
    if (rc == GRAFT_OK && rank > 0) (void)take_caches(library, trainer, rank, folder, model, &facts->no_caches);
done:
    library->models->destroy(model);
    free(path);
    return rc;
}
