/* Loads modules, and makes them ready for use.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/module.h"

#include "base/affinity.h"
#include "base/available.h"
#include "base/context.h"
#include "base/memory.h"

#include <dlfcn.h>
#include <limits.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Find graft_module() of the module itself. dlsym() also finds symbols of libraries that the module depends on. */
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

/* Whether a table has all fields that version 1 of the contract requires. Fields that were added later may be
 * missing. */
static int table_is_whole(const graft_module_table *table)
{
    const uint32_t             least = offsetof(graft_module_table, transport);
    const graft_transport_ops *t;

    if (table == NULL || table->size < least || table->kind == NULL || table->name == NULL) return 0;
    t = table->size >= GRAFT_HAS(graft_module_table, transport) ? table->transport : NULL;
    if ((table->kernel != NULL) + (table->dense != NULL) + (t != NULL) != 1) return 0;
    if (strcmp(table->kind, "kernel") == 0) {
        const graft_kernel_ops *k = table->kernel;
        return k != NULL && k->size >= GRAFT_HAS(graft_kernel_ops, reserved) && k->description && k->init && k->fini &&
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

/* Copy the fields of a table that both this library and the module know. Other fields stay 0. */
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

/* The address space that a module needs for its library. OpenBLAS maps 128 MB for each thread while it is loaded, and
 * again when our threads call it; if the process may not map as much, OpenBLAS retries for ever. oneDNN crashes if it
 * has no memory for generated code. */
static int64_t address_space_of(const struct gr_module *module)
{
    const int64_t mb = 1 << 20, threads = omp_get_max_threads(), processors = omp_get_num_procs();
    const int64_t used = threads < processors ? threads : processors;

    if (strcmp(module->kind, "dense") != 0) return 0;
    if (strcmp(module->name, "cblas") == 0) return (64 + 2 * 128 * used) * mb;
    return strcmp(module->name, "onednn") == 0 ? (128 + 16 * used) * mb : 0;
}

static int32_t check_address_space(const struct gr_module *module, graft_error *error)
{
    const int64_t mb = 1 << 20, need = address_space_of(module), left = need > 0 ? gr_available_address_space() : 0;

    if (left >= need) return GRAFT_OK;
    return gr_fail(error, GRAFT_ERR_UNSUPPORTED,
                   "the process may map %lld MB more (ulimit -v, -d), and %s may need %lld with its threads: raise the "
                   "limit, set OMP_NUM_THREADS lower, or take another dense.module",
                   (long long)(left / mb), module->name, (long long)(need / mb));
}

/* Call dlopen(). A library that the module depends on may bind the calling thread to processors; this is undone. */
static void *load_library(const char *path)
{
    struct gr_affinity affinity;
    void              *library;

    gr_affinity_save(&affinity);
    library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    gr_affinity_restore(&affinity);
    return library;
}

/* Load a module file and copy its tables. The file is never unloaded, because its threads may outlive the context. */
static int32_t load_tables(graft_context *context, const char *path, struct gr_module_tables **tables,
                           graft_error *error)
{
    const graft_module_table *found = NULL;
    void                     *library = load_library(path);
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

int32_t gr_module_status(const struct gr_module *module, const char *call, int32_t rc, graft_error *error)
{
    if (rc > 0)
        return gr_fail(error, GRAFT_ERR_MODULE, "%s() of %s %s returned %d, which is not a status", call, module->kind,
                       module->name, rc);
    if (rc < 0 && error->message[0] == '\0')
        return gr_fail(error, rc, "%s() of %s %s failed with status %d, and gives no reason", call, module->kind,
                       module->name, rc);
    return rc;
}

static int32_t init_module_state(graft_context *context, struct gr_module *module, graft_error *error)
{
    const graft_module_table *table = module->table;
    struct gr_affinity        affinity;
    int32_t                   rc = GRAFT_OK;

    gr_affinity_save(&affinity);
    if (table->kernel != NULL) rc = table->kernel->init(&context->module_host, &module->state, error);
    if (table->dense != NULL) rc = table->dense->init(&context->module_host, &module->state, error);
    gr_affinity_restore(&affinity);
    return gr_module_status(module, "init", rc, error);
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

/* A module without a note has preference 1 in the list: the preference in its table is known only after loading, and
 * the order of modules must not depend on loading. */
int32_t gr_module_examine(struct gr_module *module, graft_error *error)
{
    graft_module_note note;
    const int32_t     noted = gr_module_note_read(module->path, &note, error);

    if (noted < 0) return noted;
    module->noted = noted;
    module->preference = noted ? note.preference : 1;
    if (!noted) return GRAFT_OK;
    if (module->kind[0] == '\0') gr_module_set_name(module, note.kind, note.name);
    if (strcmp(module->kind, note.kind) != 0 || strcmp(module->name, note.name) != 0)
        return gr_fail(error, GRAFT_ERR_MODULE, "its note says %s '%s', its name states %s '%s'", note.kind, note.name,
                       module->kind, module->name);
    return gr_module_note_check(&note, error);
}

/* Check that the loaded table agrees with the name in the list and with the note. */
static int32_t check_identity(const struct gr_module *module, graft_error *error)
{
    const graft_module_table *table = module->table;

    if (strcmp(table->kind, module->kind) != 0 || strcmp(table->name, module->name) != 0)
        return gr_fail(error, GRAFT_ERR_MODULE, "file '%.150s' contains %s '%s', but its name states %s '%s'",
                       module->path, table->kind, table->name, module->kind, module->name);
    if (module->noted && gr_module_preference(table) != module->preference)
        return gr_fail(error, GRAFT_ERR_MODULE, "file '%.150s' has preference %d in its note and %d in its table",
                       module->path, module->preference, gr_module_preference(table));
    return GRAFT_OK;
}

int32_t gr_module_use(graft_context *context, struct gr_module *module, graft_error *error)
{
    int32_t rc = GRAFT_OK;

    if (module->status == 1) return GRAFT_OK;
    if (module->status < 0)
        return gr_fail(error, module->status, "%s '%s' is not usable: %s", module->kind, module->name, module->detail);
    if (module->table == NULL) {
        GR_TRY_DONE(check_address_space(module, error));
        GR_TRY_DONE(load_tables(context, module->path, &module->loaded, error));
        module->table = &module->loaded->table;
    }
    GR_TRY_DONE(check_identity(module, error));
    GR_TRY_DONE(init_module_state(context, module, error));
    module->status = 1;
    snprintf(module->detail, sizeof module->detail, "%s", module_description(module->table));
    gr_log(context, GRAFT_LOG_DEBUG, "using %s '%s': %s", module->kind, module->name, module->detail);
done:
    if (rc < 0) {
        /* A lack of memory may be temporary; any other failure is final. */
        module->status = rc == GRAFT_ERR_NOMEM ? 0 : rc;
        snprintf(module->detail, sizeof module->detail, "%s", error->message);
        gr_log(context, GRAFT_LOG_INFO, "%s '%s' is not used: %s", module->kind, module->name, module->detail);
    }
    return rc;
}

/* Load a file that is not listed, or whose name differs from its module's name. */
static int32_t load_unlisted(graft_context *context, char *real, graft_error *error)
{
    struct gr_module        made = { .path = real };
    const struct gr_module *other;
    graft_error             why = { .size = sizeof why };
    int32_t                 rc = gr_module_examine(&made, &why);

    if (rc < 0) return gr_fail(error, rc, "module '%.200s' is not usable: %.200s", real, why.message);
    GR_TRY_DONE(check_address_space(&made, error));
    GR_TRY_DONE(load_tables(context, real, &made.loaded, error));
    made.table = &made.loaded->table;
    if (!made.noted) gr_module_set_name(&made, made.table->kind, made.table->name);
    other = gr_module_find(context, made.kind, made.name);
    if (other != NULL && (other->path == NULL || other->status == 1)) {
        rc = gr_fail(error, GRAFT_ERR_STATE, "%s '%s' is %s%.150s", made.kind, made.name,
                     other->path != NULL ? "in use already, from " : "built in, and nothing replaces it",
                     other->path != NULL ? other->path : "");
        goto done;
    }
    GR_TRY_DONE(gr_module_use(context, &made, error));
    rc = gr_module_put(context, &made, error);
    if (rc < 0) fini_module_state(&made);
done:
    if (rc < 0) gr_free(context, made.loaded);
    return rc;
}

int32_t gr_module_load(graft_context *context, const char *path, graft_error *error)
{
    struct gr_module *module;
    char              real[PATH_MAX];
    int32_t           rc;

    if (path == NULL) return gr_fail(error, GRAFT_ERR_ARG, "path is null");
    if (realpath(path, real) == NULL)
        return gr_fail(error, GRAFT_ERR_NOT_FOUND, "there is no module file '%.200s'", path);
    module = gr_module_find_file(context, real);
    rc = module != NULL ? gr_module_use(context, module, error) : load_unlisted(context, real, error);
    if (rc < 0) return rc;
    /* A module that the host loaded has the preference of its table, even without a note. */
    module = gr_module_find_file(context, real);
    module->preference = gr_module_preference(module->table);
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
