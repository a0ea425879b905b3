/* Checkpoints: the whole state of a trainer in a file of graft.model/1.
 * SPDX-License-Identifier: Apache-2.0 */
#include "checkpoint.h"
#include "output_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

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

int32_t checkpoint_write(const struct library *library, graft_trainer *trainer, const char *folder, graft_error *error)
{
    graft_model *model = NULL;
    char        *path = checkpoint_path(folder);
    int32_t      rc;

    TRY(path != NULL ? GRAFT_OK : problem_memory(error, "the name of the checkpoint"));
    TRY(library->models->create(trainer, GRAFT_MODEL_STATE, &model, error));
    rc = library->models->save(model, path, error);
done:
    library->models->destroy(model);
    free(path);
    return rc;
}

/** The value that an option had when the model was made; NULL if the file does not say. */
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

/** The options that differ from those with which the model was made. The number of epochs is meant to; "auto" was
 *  resolved. */
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

int32_t checkpoint_read(const struct library *library, const graft_transport *transport, graft_trainer *trainer,
                        const char *folder, struct checkpoint_facts *facts, graft_error *error)
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
        rc = problem(error, GRAFT_ERR_FORMAT, "'%s' has weights alone, not the state of a training", path);
    TRY(rc);
    describe_differences(library, model, facts->differences, sizeof facts->differences);
    facts->epoch = info.epoch;
    rc = library->models->apply(model, trainer, &refusal);
    if (rc < 0)
        rc = problem(error, rc, "'%s': %s%s%s", path, refusal.message,
                     *facts->differences != '\0' ? "; the checkpoint was made with " : "", facts->differences);
done:
    library->models->destroy(model);
    free(path);
    return rc;
}
