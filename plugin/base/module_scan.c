/* Finds module files in folders.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/context.h"
#include "base/environment.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/module.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The results of a search, which replace the unused modules of the context. */
struct gr_search {
    graft_context    *context;
    struct gr_modules found;
};

/* Whether the name of a file is that of a module: [lib]graft_*.so, possibly followed by a version. */
static int looks_like_module(const char *file)
{
    const char *end = strstr(file, ".so");

    if (strncmp(file, "lib", 3) == 0) file += 3;
    return strncmp(file, "graft_", 6) == 0 && end != NULL &&
           (end[3] == '\0' || (end[3] == '.' && isdigit((unsigned char)end[4])));
}

/* Split "graft_KIND_NAME.so" into kind and name. \return NULL, or a text that says what is wrong with the name */
static const char *split_file_name(const char *file, char kind[16], char name[32])
{
    int used = 0;

    if (sscanf(file, "graft_%15[a-z]_%31[a-z0-9].so%n", kind, name, &used) != 2 || used <= 0 || file[used] != '\0')
        return "a module is named graft_KIND_NAME.so, with 1 to 31 letters a to z and digits as NAME";
    if (strcmp(kind, "kernel") == 0 || strcmp(kind, "dense") == 0 || strcmp(kind, "transport") == 0) return NULL;
    return "its name has none of the kinds kernel, dense and transport";
}

/* Whether a built-in module, a module in use, or a module found before has this name. Unless it is the same file, this
 * is logged. */
static int is_taken(struct gr_search *search, const char *kind, const char *name, const char *path)
{
    const struct gr_module *other = gr_module_find(search->context, kind, name);

    if (other != NULL && other->path == NULL) {
        gr_log(search->context, GRAFT_LOG_WARNING, "skipped %s: %s '%s' is built in, and nothing replaces it", path,
               kind, name);
        return 1;
    }
    if (other == NULL || other->status != 1) other = gr_module_find_in(&search->found, kind, name);
    if (other == NULL) return 0;
    if (strcmp(other->path, path) != 0)
        gr_log(search->context, GRAFT_LOG_INFO, "skipped %s: %s '%s' %s %s", path, kind, name,
               other->status == 1 ? "is in use from" : "was found before in", other->path);
    return 1;
}

/* Read the note of a file into the module: its preference, or the reason why it is not usable. */
static void take_note(const graft_context *context, struct gr_module *module)
{
    graft_error error = { .size = sizeof error };

    module->status = gr_module_examine(module, &error);
    if (module->status == GRAFT_OK) return;
    snprintf(module->detail, sizeof module->detail, "%s", error.message);
    gr_log(context, GRAFT_LOG_INFO, "skipped %s: %s", module->path, module->detail);
}

static int32_t add_file(struct gr_search *search, const char *path, const char *kind, const char *name,
                        graft_error *error)
{
    struct gr_module *module = &search->found.at[search->found.count];
    int32_t           rc;

    if (search->found.count == GR_MODULE_MAX) {
        gr_log(search->context, GRAFT_LOG_WARNING, "skipped %s: %d modules were found, which is the maximum", path,
               GR_MODULE_MAX);
        return GRAFT_OK;
    }
    *module = (struct gr_module){ .path = NULL };
    rc = gr_text_copy(search->context, &module->path, path, error);
    if (rc < 0) return rc;
    search->found.count++;
    gr_module_set_name(module, kind, name);
    take_note(search->context, module);
    return GRAFT_OK;
}

/* Add the modules of a folder by absolute path, because the host may change its current directory before they are
 * loaded. A folder that cannot be read counts as empty. */
static int32_t scan_folder(struct gr_search *search, const char *folder, graft_error *error)
{
    char           real[PATH_MAX];
    int32_t        rc = GRAFT_OK;
    DIR           *stream = realpath(folder, real) != NULL ? opendir(real) : NULL;
    struct dirent *entry;

    while (stream != NULL && (entry = readdir(stream)) != NULL) {
        char        path[PATH_MAX], kind[16], name[32];
        const char *fault;

        if (!looks_like_module(entry->d_name)) continue;
        if (snprintf(path, sizeof path, "%s/%s", real, entry->d_name) >= (int)sizeof path) continue;
        fault = split_file_name(entry->d_name, kind, name);
        if (fault != NULL) gr_log(search->context, GRAFT_LOG_INFO, "skipped %s: %s", path, fault);
        else if (!is_taken(search, kind, name, path)) GR_TRY_DONE(add_file(search, path, kind, name, error));
    }
done:
    if (stream != NULL) closedir(stream);
    return rc;
}

/* Search the folders of option module.path, then the folder of the library, then its subfolder "graft", where modules
 * are installed. */
static int32_t scan_folders(struct gr_search *search, const char *path, graft_error *error)
{
    char folder[PATH_MAX];

    while (*path != '\0') {
        const size_t length = strcspn(path, ":");
        if (length > 0 && length < sizeof folder) {
            memcpy(folder, path, length);
            folder[length] = '\0';
            if (access(folder, R_OK | X_OK) != 0)
                gr_log(search->context, GRAFT_LOG_INFO, "skipped folder '%s' of module.path: %s", folder,
                       gr_file_errno_text(errno));
            GR_TRY(scan_folder(search, folder, error));
        }
        path += length + (path[length] == ':');
    }
    if (gr_environment_library_folder(folder, sizeof folder)) {
        const size_t length = strlen(folder);

        GR_TRY(scan_folder(search, folder, error));
        snprintf(folder + length, sizeof folder - length, "/graft");
        GR_TRY(scan_folder(search, folder, error));
    }
    return GRAFT_OK;
}

/* Replace the unused modules of the context by the found ones. */
static void take_found(struct gr_search *search)
{
    struct gr_modules *modules = &search->context->modules;

    for (int32_t i = 0; i < modules->count; i++) {
        struct gr_module *module = &modules->at[i];
        if (module->path == NULL || module->status == 1) continue;
        gr_free(search->context, module->path);
        gr_free(search->context, module->loaded);
        *module = (struct gr_module){ .path = NULL };
    }
    for (int32_t i = 0; i < search->found.count; i++) {
        struct gr_module *found = &search->found.at[i], *place = gr_module_place(search->context);

        if (place == NULL) {
            gr_log(search->context, GRAFT_LOG_WARNING, "skipped %s: %d modules are listed, which is the maximum",
                   found->path, GR_MODULE_MAX);
            gr_free(search->context, found->path);
            continue;
        }
        *place = *found;
    }
    search->found.count = 0;
}

int32_t gr_modules_search(graft_context *context, const char *path, struct gr_search **made, graft_error *error)
{
    struct gr_search *search = NULL;
    int32_t           rc;

    GR_TRY_DONE(GR_NEW(context, search, 1, error));
    search->context = context;
    GR_TRY_DONE(scan_folders(search, path, error));
    *made = search;
    search = NULL;
done:
    gr_modules_end(search, 0);
    return rc;
}

void gr_modules_end(struct gr_search *search, int take)
{
    if (search == NULL) return;
    if (take) take_found(search);
    for (int32_t i = 0; i < search->found.count; i++) gr_free(search->context, search->found.at[i].path);
    gr_free(search->context, search);
}
