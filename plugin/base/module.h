/* Modules: what is built in, what lies beside the library, and loading on first use.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef GR_BASE_MODULE_H
#define GR_BASE_MODULE_H

#include "graft_module.h"

enum { GR_MODULE_MAX = 32 };

struct gr_module {
    char                     *path; /* NULL: built in */
    char                      kind[16];
    char                      name[32];
    int32_t                   status; /* 1 ready, 0 not tried, negative why not */
    char                      detail[448];
    const graft_module_table *table;
    void                     *state;
};

struct gr_modules {
    int32_t          count;
    struct gr_module at[GR_MODULE_MAX];
};

/** Add a built-in. */
int32_t gr_module_register(graft_context *context, const graft_module_table *table, graft_error *error);

/** List, without loading, the files graft_KIND_NAME.so that are not listed yet: those of the folders of `path`, parted
 *  by ':', of the folder of the library, and of "graft" in it, where modules are installed. */
int32_t gr_modules_scan(graft_context *context, const char *path, graft_error *error);

/** Load a file the host names. */
int32_t gr_module_load(graft_context *context, const char *path, graft_error *error);

/** The module of this kind and name, or NULL. */
struct gr_module *gr_module_find(graft_context *context, const char *kind, const char *name);

/** What a table offers as a transport, or NULL. */
const graft_transport_ops *gr_module_transport(const graft_module_table *table);

/** Make a module ready: load it if need be and create its state. After a failure the reason stays in the module. */
int32_t gr_module_use(graft_context *context, struct gr_module *module, graft_error *error);

int32_t gr_module_describe(const graft_context *context, int32_t index, graft_module_entry *entry, graft_error *error);
void    gr_modules_fini(graft_context *context);

/** The modules of a kind in the order "auto" or a chosen name asks for: the chosen one first, then by preference, the
 *  highest first; nothing is loaded for this, see gr_module_use(). order[GR_MODULE_MAX] receives indices, *count how
 *  many. ERR_OPTION if no module of this kind has the chosen name. */
int32_t gr_modules_order(graft_context *context, const char *kind, const char *chosen, int32_t *order, int32_t *count,
                         graft_error *error);

#endif
