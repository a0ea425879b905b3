/* Finds, loads and orders modules.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/module.h"

#include "base/assert.h"
#include "base/context.h"
#include "base/environment.h"
#include "base/memory.h"

#include <dirent.h>
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct gr_module *append_module(graft_context *context, const char *kind, const char *name, graft_error *error)
{
    struct gr_modules *modules = &context->modules;
    struct gr_module  *module;

    GR_ASSERT(modules->count >= 0 && modules->count <= GR_MODULE_MAX);
    if (modules->count == GR_MODULE_MAX) {
        gr_fail(error, GRAFT_ERR_NOMEM, "%d modules are listed, which is the maximum, so '%s' cannot be added",
                GR_MODULE_MAX, name);
        return NULL;
    }
    module = &modules->at[modules->count++];
    memset(module, 0, sizeof *module);
    snprintf(module->kind, sizeof module->kind, "%s", kind);
    snprintf(module->name, sizeof module->name, "%s", name);
    return module;
}

struct gr_module *gr_module_find(graft_context *context, const char *kind, const char *name)
{
    for (int32_t i = 0; i < context->modules.count; i++) {
        struct gr_module *module = &context->modules.at[i];
        if (strcmp(module->kind, kind) == 0 && strcmp(module->name, name) == 0) return module;
    }
    return NULL;
}

/* Split "graft_KIND_NAME.so" into kind and name. \return 0 if the file has another name */
static int split_file_name(const char *file, char kind[16], char name[32])
{
    int used = 0;

    return sscanf(file, "graft_%15[a-z]_%31[a-z0-9].so%n", kind, name, &used) == 2 && used > 0 && file[used] == '\0' &&
           (strcmp(kind, "kernel") == 0 || strcmp(kind, "dense") == 0 || strcmp(kind, "transport") == 0);
}

/* List the modules of a folder by absolute path, because the host may change its directory before one is loaded. A
 * folder that cannot be read has none, and modules beyond the capacity are skipped. */
static int32_t scan_folder(graft_context *context, const char *folder, graft_error *error)
{
    char           real[PATH_MAX];
    int32_t        rc = GRAFT_OK;
    DIR           *stream = realpath(folder, real) != NULL ? opendir(real) : NULL;
    struct dirent *entry;

    while (stream != NULL && (entry = readdir(stream)) != NULL) {
        char              path[PATH_MAX], kind[16], name[32];
        struct gr_module *module;

        if (!split_file_name(entry->d_name, kind, name) || gr_module_find(context, kind, name) != NULL) continue;
        if (snprintf(path, sizeof path, "%s/%s", real, entry->d_name) >= (int)sizeof path) continue;
        module = append_module(context, kind, name, error);
        if (module == NULL) {
            gr_log(context, GRAFT_LOG_WARNING, "%s is skipped: %s", path, error->message);
            continue;
        }
        rc = gr_text_copy(context, &module->path, path, error);
        if (rc < 0) context->modules.count--;
        GR_TRY(rc);
    }
done:
    if (stream != NULL) closedir(stream);
    return rc;
}

/* The folders of module.path, then the library's, then "graft" in it, where modules are installed. */
int32_t gr_modules_scan(graft_context *context, const char *path, graft_error *error)
{
    int32_t rc = GRAFT_OK;
    char    folder[PATH_MAX];

    while (*path != '\0') {
        const size_t length = strcspn(path, ":");
        if (length > 0 && length < sizeof folder) {
            memcpy(folder, path, length);
            folder[length] = '\0';
            GR_TRY(scan_folder(context, folder, error));
        }
        path += length + (path[length] == ':');
    }
    if (gr_library_folder(folder, sizeof folder)) {
        const size_t length = strlen(folder);

        GR_TRY(scan_folder(context, folder, error));
        snprintf(folder + length, sizeof folder - length, "/graft");
        GR_TRY(scan_folder(context, folder, error));
    }
done:
    return rc;
}

int32_t gr_module_register(graft_context *context, const graft_module_table *table, graft_error *error)
{
    struct gr_module *module = append_module(context, table->kind, table->name, error);

    if (module == NULL) return GRAFT_ERR_NOMEM;
    module->table = table;
    return GRAFT_OK;
}

/* dlsym() also finds symbols of libraries that the module depends on; only the module's own symbol counts. */
static graft_module_fn own_entry(void *library, const char *path)
{
    graft_module_fn entry = NULL;
    void           *symbol = dlsym(library, "graft_module");
    Dl_info         info;
    char            real_symbol[PATH_MAX], real_path[PATH_MAX];

    if (symbol == NULL || dladdr(symbol, &info) == 0) return NULL;
    if (realpath(info.dli_fname, real_symbol) == NULL || realpath(path, real_path) == NULL) return NULL;
    if (strcmp(real_symbol, real_path) == 0) memcpy(&entry, &symbol, sizeof entry);
    return entry;
}

/* The sizes in version 1 of the contract, with which tables are whole: fields that were added since may be missing. */
static int table_is_whole(const graft_module_table *table)
{
    const uint32_t             least = offsetof(graft_module_table, transport);
    const graft_transport_ops *t;

    if (table == NULL || table->size < least || table->kind == NULL || table->name == NULL) return 0;
    t = table->size >= GRAFT_HAS(graft_module_table, transport) ? table->transport : NULL;
    if ((table->kernel != NULL) + (table->dense != NULL) + (t != NULL) != 1) return 0;
    if (strcmp(table->kind, "kernel") == 0) {
        const graft_kernel *k = table->kernel;
        return k != NULL && k->size >= GRAFT_HAS(graft_kernel, reserved) && k->description && k->init && k->fini &&
               k->supports && k->prepare && k->release && k->run;
    }
    if (strcmp(table->kind, "dense") == 0) {
        const graft_dense_ops *d = table->dense;
        return d != NULL && d->size >= GRAFT_HAS(graft_dense_ops, reserved) && d->description && d->init && d->fini &&
               d->gemm && d->supports;
    }
    return strcmp(table->kind, "transport") == 0 && t != NULL && t->size >= GRAFT_HAS(graft_transport_ops, open) &&
           t->description && t->open;
}

/* Copy what both sides know of a table, in whole fields; the rest stays 0. */
static void copy_known(void *ours, uint32_t our_size, const void *theirs)
{
    uint32_t size;

    memcpy(&size, theirs, sizeof size);
    memcpy(ours, theirs, size < our_size ? size / 8 * 8 : our_size);
}

static void copy_tables(struct gr_module_tables *ours, const graft_module_table *theirs)
{
    graft_module_table *table = &ours->table;

    copy_known(table, sizeof *table, theirs);
    if (table->kernel != NULL) {
        copy_known(&ours->kernel, sizeof ours->kernel, table->kernel);
        table->kernel = &ours->kernel;
    } else if (table->dense != NULL) {
        copy_known(&ours->dense, sizeof ours->dense, table->dense);
        table->dense = &ours->dense;
    } else {
        copy_known(&ours->transport, sizeof ours->transport, table->transport);
        table->transport = &ours->transport;
    }
}

/* Load a module file and copy its tables. The file is never unloaded, because its threads may outlive the context. */
static int32_t load_tables(graft_context *context, const char *path, struct gr_module_tables **tables,
                           graft_error *error)
{
    const graft_module_table *found = NULL;
    void                     *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    graft_module_fn           entry;
    int32_t                   rc;

    if (library == NULL) {
        const char *reason = dlerror();
        return gr_fail(error, GRAFT_ERR_MODULE, "module '%.150s' cannot be loaded: %.200s", path, reason ? reason : "");
    }
    entry = own_entry(library, path);
    if (entry == NULL) {
        dlclose(library);
        return gr_fail(error, GRAFT_ERR_MODULE, "'%.200s' is not a Graft module: it has no graft_module() of its own",
                       path);
    }
    rc = entry(GRAFT_ABI_VERSION, GRAFT_ABI_VERSION, &found, error);
    if (rc < 0) return rc;
    if (rc != GRAFT_OK) {
        return gr_fail(error, GRAFT_ERR_MODULE, "graft_module() of '%.200s' returned %d, which is not a status", path,
                       rc);
    }
    if (!table_is_whole(found)) {
        return gr_fail(error, GRAFT_ERR_MODULE,
                       "the table of module '%.200s' has an unknown kind, is too short, or lacks a function", path);
    }
    if (found->abi != GRAFT_ABI_VERSION) {
        return gr_fail(error, GRAFT_ERR_VERSION, "module '%.200s' has version %u of the contract, expected %u", path,
                       found->abi, GRAFT_ABI_VERSION);
    }
    rc = GR_NEW(context, *tables, 1, error);
    if (rc == GRAFT_OK) copy_tables(*tables, found);
    return rc;
}

static int32_t init_module_state(graft_context *context, struct gr_module *module, graft_error *error)
{
    const graft_module_table *table = module->table;

    if (table->kernel != NULL) return table->kernel->init(&context->host, &module->state, error);
    if (table->dense != NULL) return table->dense->init(&context->host, &module->state, error);
    return GRAFT_OK;
}

static void fini_module_state(struct gr_module *module)
{
    if (module->status != 1) return;
    if (module->table->kernel != NULL) module->table->kernel->fini(module->state);
    if (module->table->dense != NULL) module->table->dense->fini(module->state);
}

static const char *module_description(const graft_module_table *table)
{
    if (table->kernel != NULL) return table->kernel->description;
    return table->dense != NULL ? table->dense->description : table->transport->description;
}

int32_t gr_module_use(graft_context *context, struct gr_module *module, graft_error *error)
{
    int32_t rc = GRAFT_OK;

    if (module->status == 1) return GRAFT_OK;
    if (module->table == NULL) {
        GR_TRY(load_tables(context, module->path, &module->loaded, error));
        module->table = &module->loaded->table;
    }
    if (strcmp(module->table->kind, module->kind) != 0 || strcmp(module->table->name, module->name) != 0) {
        rc = gr_fail(error, GRAFT_ERR_MODULE, "file '%.150s' contains %s '%s', but its name states %s '%s'",
                     module->path, module->table->kind, module->table->name, module->kind, module->name);
        goto done;
    }
    GR_TRY(init_module_state(context, module, error));
    module->status = 1;
    snprintf(module->detail, sizeof module->detail, "%s", module_description(module->table));
    gr_log(context, GRAFT_LOG_DEBUG, "using %s '%s': %s", module->kind, module->name, module->detail);
done:
    if (rc < 0) {
        /* Lack of memory may pass; any other failure is final. */
        module->status = rc == GRAFT_ERR_NOMEM ? 0 : rc;
        snprintf(module->detail, sizeof module->detail, "%s", error->message);
        gr_log(context, GRAFT_LOG_INFO, "%s '%s' is not used: %s", module->kind, module->name, module->detail);
    }
    return rc;
}

/* The module of this file, or NULL. */
static struct gr_module *listed_file(graft_context *context, const char *real)
{
    for (int32_t i = 0; i < context->modules.count; i++) {
        struct gr_module *module = &context->modules.at[i];
        if (module->path != NULL && strcmp(module->path, real) == 0) return module;
    }
    return NULL;
}

int32_t gr_module_load(graft_context *context, const char *path, graft_error *error)
{
    const graft_module_table *table;
    struct gr_module         *module, made = { .path = NULL };
    int32_t                   rc = GRAFT_OK;
    char                      real[PATH_MAX], *copy = NULL;

    if (path == NULL) return gr_fail(error, GRAFT_ERR_ARG, "path is null");
    if (realpath(path, real) == NULL)
        return gr_fail(error, GRAFT_ERR_NOT_FOUND, "there is no module file '%.200s'", path);
    module = listed_file(context, real);
    if (module != NULL && module->status == 0) return gr_module_use(context, module, error);
    GR_TRY(load_tables(context, real, &made.loaded, error));
    table = &made.loaded->table;
    GR_TRY(gr_text_copy(context, &copy, real, error));
    module = gr_module_find(context, table->kind, table->name);
    if (module != NULL && module->status == 1 && module->path != NULL && strcmp(module->path, real) == 0) goto done;
    if (module != NULL && module->status == 1) {
        rc = gr_fail(error, GRAFT_ERR_STATE, "%s '%s' is in use already, from '%.150s'", table->kind, table->name,
                     module->path != NULL ? module->path : "the library itself");
        goto done;
    }
    /* A module replaces another of its name only when it is ready. */
    made.table = table;
    made.path = real;
    snprintf(made.kind, sizeof made.kind, "%s", table->kind);
    snprintf(made.name, sizeof made.name, "%s", table->name);
    GR_TRY(gr_module_use(context, &made, error));
    if (module == NULL) module = append_module(context, table->kind, table->name, error);
    if (module == NULL) {
        fini_module_state(&made);
        rc = GRAFT_ERR_NOMEM;
        goto done;
    }
    gr_free(context, module->path);
    gr_free(context, module->loaded);
    *module = made;
    module->path = copy;
    made.loaded = NULL;
    copy = NULL;
done:
    gr_free(context, made.loaded);
    gr_free(context, copy);
    return rc;
}

int32_t gr_module_describe(const graft_context *context, int32_t index, graft_module_entry *entry, graft_error *error)
{
    const struct gr_module *module;

    if (index < 0 || index >= context->modules.count) {
        return gr_fail(error, GRAFT_ERR_NOT_FOUND, "module index is %d, expected 0 to %d", index,
                       context->modules.count - 1);
    }
    module = &context->modules.at[index];
    entry->state = module->status;
    entry->kind = module->kind;
    entry->name = module->name;
    entry->path = module->path != NULL ? module->path : "";
    entry->detail = module->detail;
    return GRAFT_OK;
}

void gr_modules_fini(graft_context *context)
{
    for (int32_t i = context->modules.count - 1; i >= 0; i--) {
        struct gr_module *module = &context->modules.at[i];

        fini_module_state(module);
        gr_free(context, module->path);
        gr_free(context, module->loaded);
    }
}

struct names {
    const graft_context *context;
    const char          *kind;
};

static const char *name_of_kind(const void *arg, int32_t index)
{
    const struct names *names = arg;

    for (int32_t i = 0; i < names->context->modules.count; i++) {
        const struct gr_module *module = &names->context->modules.at[i];
        if (strcmp(module->kind, names->kind) == 0 && index-- == 0) return module->name;
    }
    return NULL;
}

/* A module that is not loaded comes before the reference (0), and after all loaded ones: loading it starts the library
 * behind it, which the host may want to start itself. */
static int32_t module_preference(const struct gr_module *module)
{
    if (module->table == NULL) return 1;
    if (module->table->kernel != NULL) return module->table->kernel->preference;
    return module->table->dense != NULL ? module->table->dense->preference : 0;
}

int32_t gr_modules_order(graft_context *context, const char *kind, const char *chosen, int32_t *order, int32_t *count,
                         graft_error *error)
{
    const int    automatic = strcmp(chosen, "auto") == 0;
    struct names names = { context, kind };
    const char  *near;
    int32_t      found = 0;

    if (!automatic && gr_module_find(context, kind, chosen) == NULL) {
        near = gr_nearest(chosen, name_of_kind, &names);
        if (near == NULL) near = name_of_kind(&names, 0);
        return gr_fail(error, GRAFT_ERR_OPTION, "there is no %s module '%.60s'; did you mean '%s'?", kind, chosen,
                       near != NULL ? near : "auto");
    }
    for (int32_t i = 0; i < context->modules.count; i++) {
        struct gr_module *module = &context->modules.at[i];
        int32_t           at = found;

        if (strcmp(module->kind, kind) != 0) continue;
        while (at > 0 && module_preference(module) > module_preference(&context->modules.at[order[at - 1]])) {
            order[at] = order[at - 1];
            at--;
        }
        order[at] = i;
        found++;
    }
    for (int32_t i = 0; i < found && !automatic; i++) {
        const int32_t index = order[i];
        if (strcmp(context->modules.at[index].name, chosen) != 0) continue;
        memmove(order + 1, order, (size_t)i * sizeof *order);
        order[0] = index;
    }
    *count = found;
    return GRAFT_OK;
}
