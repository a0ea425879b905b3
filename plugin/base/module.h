/* Modules: built in, or in files beside the library that are loaded on first use.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "graft_module.h"

enum { GR_MODULE_MAX = 32 };

/** The tables of a module in this library's sizes: missing fields of a shorter table are 0. */
struct gr_module_tables {
    graft_module_table  table;
    graft_kernel_ops    kernel;
    graft_dense_ops     dense;
    graft_transport_ops transport;
};

struct gr_module {
    char                     *path; /* NULL: built in */
    char                      kind[16];
    char                      name[32];
    int32_t                   status; /* 1: ready; 0: not tried; negative: why it failed */
    int32_t                   preference;
    int32_t                   noted; /* 1: its file has a note */
    char                      detail[448];
    const graft_module_table *table; /* of a built-in, or of `loaded` */
    struct gr_module_tables  *loaded;
    void                     *state;
};

/** The places of the modules of a context. A place without a kind is empty. */
struct gr_modules {
    int32_t          count;
    struct gr_module at[GR_MODULE_MAX];
};

/** Add a built-in module. \return OK; ERR_NOMEM */
int32_t gr_module_register(graft_context *context, const graft_module_table *table, graft_error *error);

/** An empty place in the list, or NULL. */
struct gr_module *gr_module_place(graft_context *context);

/** Put a ready module into the list, in the place of an unused module of its name. \return OK; ERR_NOMEM */
int32_t gr_module_put(graft_context *context, struct gr_module *made, graft_error *error);

void gr_module_set_name(struct gr_module *module, const char *kind, const char *name);

/** The preference that a table states. */
int32_t gr_module_preference(const graft_module_table *table);

/** List, without loading them, the files graft_KIND_NAME.so in the folders of `path` (separated by ':'), in the folder
 *  of the library, and in "graft" in that, where modules are installed. Of several files with one name the first is
 *  used; built-in modules and modules in use keep their names. \return OK; ERR_NOMEM */
struct gr_search;
int32_t gr_modules_search(graft_context *context, const char *path, struct gr_search **search, graft_error *error);
/** With `take` the found files replace listed files that are not in use. */
void    gr_modules_end(struct gr_search *search, int take);

/** Read the note of module->path, without loading it. \return OK; the status with the reason in error for which the
 *  module is not usable */
int32_t gr_module_examine(struct gr_module *module, graft_error *error);

/** Load a file that the host names. */
int32_t gr_module_load(graft_context *context, const char *path, graft_error *error);

/** The module of this kind and name, or from this file, or NULL. */
struct gr_module *gr_module_find_in(struct gr_modules *modules, const char *kind, const char *name);
struct gr_module *gr_module_find_file(graft_context *context, const char *real);
struct gr_module *gr_module_find(graft_context *context, const char *kind, const char *name);

/** Make a module ready: load it if necessary, and create its state. After a failure the reason is in module->detail. */
int32_t gr_module_use(graft_context *context, struct gr_module *module, graft_error *error);

/** Check the return value `rc` of function `call` of a module. Positive numbers are not statuses and become ERR_MODULE;
 *  a failure without a message gets one. \return OK; a failure */
int32_t gr_module_status(const struct gr_module *module, const char *call, int32_t rc, graft_error *error);

int32_t gr_module_describe(const graft_context *context, int32_t index, graft_module_entry *entry, graft_error *error);
void    gr_modules_fini(graft_context *context);

/** The modules of a kind in order: the chosen one first unless it is "auto", then by descending preference and by name.
 *  The order does not depend on earlier loading or use. Loads nothing; see gr_module_use(). order[GR_MODULE_MAX]
 *  receives indices, *count their number. \return OK; ERR_OPTION (no module of this kind has the chosen name) */
int32_t gr_modules_order(graft_context *context, const char *kind, const char *chosen, int32_t *order, int32_t *count,
                         graft_error *error);

/** Read the graft_module_note of an ELF file. No code of the file runs, and reads are bounded whatever its contents.
 *  \return 1; 0 if the file has no note; ERR_MODULE with the reason in error if it cannot be loaded: not a regular file
 *  or shared library, another processor, or a damaged note */
int32_t gr_module_note_read(const char *path, graft_module_note *note, graft_error *error);

/** Whether this library and this processor meet the note. \return OK; ERR_VERSION; ERR_UNSUPPORTED */
int32_t gr_module_note_check(const graft_module_note *note, graft_error *error);
