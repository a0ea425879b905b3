/* Keeps the list of the modules of a context, and orders them.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/assert.h"
#include "base/context.h"
#include "base/memory.h"
#include "base/module.h"

#include <stdio.h>
#include <string.h>

/* A free entry had an unused module whose file has vanished. Other modules are never moved, because matrices store data
 * that a kernel has prepared by the index of the kernel. */
struct gr_module *gr_module_place(graft_context *context)
{
    struct gr_modules *modules = &context->modules;
    int32_t            at = 0;

    GR_ASSERT(modules->count >= 0 && modules->count <= GR_MODULE_MAX);
    while (at < modules->count && modules->at[at].kind[0] != '\0') at++;
    if (at == GR_MODULE_MAX) return NULL;
    if (at == modules->count) modules->count++;
    modules->at[at] = (struct gr_module){ .path = NULL };
    return &modules->at[at];
}

static int32_t no_place(const char *name, graft_error *error)
{
    return gr_fail(error, GRAFT_ERR_NOMEM, "%d modules are listed, which is the maximum, so '%s' cannot be added",
                   GR_MODULE_MAX, name);
}

void gr_module_set_name(struct gr_module *module, const char *kind, const char *name)
{
    snprintf(module->kind, sizeof module->kind, "%s", kind);
    snprintf(module->name, sizeof module->name, "%s", name);
}

int32_t gr_module_preference(const graft_module_table *table)
{
    if (table->kernel != NULL) return table->kernel->preference;
    return table->dense != NULL ? table->dense->preference : 0;
}

int32_t gr_module_register(graft_context *context, const graft_module_table *table, graft_error *error)
{
    struct gr_module *module = gr_module_place(context);

    if (module == NULL) return no_place(table->name, error);
    gr_module_set_name(module, table->kind, table->name);
    module->table = table;
    module->preference = gr_module_preference(table);
    return GRAFT_OK;
}

struct gr_module *gr_module_find_in(struct gr_modules *modules, const char *kind, const char *name)
{
    for (int32_t i = 0; i < modules->count; i++) {
        struct gr_module *module = &modules->at[i];
        if (strcmp(module->kind, kind) == 0 && strcmp(module->name, name) == 0) return module;
    }
    return NULL;
}

struct gr_module *gr_module_find(graft_context *context, const char *kind, const char *name)
{
    return gr_module_find_in(&context->modules, kind, name);
}

struct gr_module *gr_module_find_file(graft_context *context, const char *real)
{
    for (int32_t i = 0; i < context->modules.count; i++) {
        struct gr_module *module = &context->modules.at[i];
        if (module->path != NULL && strcmp(module->path, real) == 0) return module;
    }
    return NULL;
}

int32_t gr_module_put(graft_context *context, struct gr_module *made, graft_error *error)
{
    struct gr_module *module = gr_module_find(context, made->kind, made->name);
    char             *copy = NULL;
    int32_t           rc = gr_text_copy(context, &copy, made->path, error);

    if (rc < 0) return rc;
    if (module == NULL) module = gr_module_place(context);
    if (module == NULL) {
        gr_free(context, copy);
        return no_place(made->name, error);
    }
    gr_free(context, module->path);
    gr_free(context, module->loaded);
    *module = *made;
    module->path = copy;
    return GRAFT_OK;
}

int32_t gr_module_describe(const graft_context *context, int32_t index, graft_module_entry *entry, graft_error *error)
{
    const struct gr_module *module = NULL;
    int32_t                 used = 0;

    for (int32_t i = 0; i < context->modules.count && module == NULL; i++)
        if (context->modules.at[i].kind[0] != '\0' && used++ == index) module = &context->modules.at[i];
    if (module == NULL)
        return gr_fail(error, GRAFT_ERR_NOT_FOUND, "module index is %d, expected 0 to %d", index, used - 1);
    entry->state = module->status;
    entry->kind = module->kind;
    entry->name = module->name;
    entry->path = module->path != NULL ? module->path : "";
    entry->detail = module->detail;
    entry->preference = module->preference;
    entry->noted = module->noted;
    return GRAFT_OK;
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

/* Modules of equal preference are ordered by name, because the order of files in a folder is arbitrary. */
static int comes_before(const struct gr_module *a, const struct gr_module *b)
{
    return a->preference != b->preference ? a->preference > b->preference : strcmp(a->name, b->name) < 0;
}

int32_t gr_modules_order(graft_context *context, const char *kind, const char *chosen, int32_t *order, int32_t *count,
                         graft_error *error)
{
    const int    automatic = strcmp(chosen, "auto") == 0;
    struct names names = { context, kind };
    const char  *near;
    int32_t      found = 0;

    if (!automatic && gr_module_find(context, kind, chosen) == NULL) {
        near = gr_option_nearest(chosen, name_of_kind, &names);
        if (near == NULL) near = name_of_kind(&names, 0);
        return gr_fail(error, GRAFT_ERR_OPTION, "there is no %s module '%.60s'; did you mean '%s'?", kind, chosen,
                       near != NULL ? near : "auto");
    }
    for (int32_t i = 0; i < context->modules.count; i++) {
        struct gr_module *module = &context->modules.at[i];
        int32_t           at = found;

        if (strcmp(module->kind, kind) != 0) continue;
        while (at > 0 && comes_before(module, &context->modules.at[order[at - 1]])) {
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
