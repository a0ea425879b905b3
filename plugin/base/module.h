/* The modules of a context, which are built in, or in files beside the library that are loaded on first use.
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "graft_module.h"

enum { GR_MODULE_MAX = 32 };

/** Copies of the tables of a module. Fields that a shorter table of the module does not have are 0. */
struct gr_module_tables {
    graft_module_table  table;
    graft_kernel_ops    kernel;
    graft_dense_ops     dense;
    graft_transport_ops transport;
};

struct gr_module {
    char                     *path; /* path of the file; NULL: built in */
    char                      kind[16];
    char                      name[32];
    int32_t                   status; /* 1: ready; 0: not tried; negative: the code of its failure */
    int32_t                   preference;
    int32_t                   noted; /* 1: the file has a note (graft_module_note) */
    char                      detail[448];
    const graft_module_table *table; /* table of a built-in module, or `loaded->table` */
    struct gr_module_tables  *loaded;
    void                     *state;
};

/** The modules of a context. An entry whose `kind` is empty is free. */
struct gr_modules {
    int32_t          count;
    struct gr_module at[GR_MODULE_MAX];
};

/** Add a built-in module. \return OK; ERR_NOMEM */
int32_t gr_module_register(graft_context *context, const graft_module_table *table, graft_error *error);

/** Find a free entry of the list, and clear it. \return NULL: there is none */
struct gr_module *gr_module_place(graft_context *context);

/** Put a ready module into the list, where it replaces an unused module of the same name. \return OK; ERR_NOMEM */
int32_t gr_module_put(graft_context *context, struct gr_module *made, graft_error *error);

void gr_module_set_name(struct gr_module *module, const char *kind, const char *name);

/** The preference of a module according to its table. */
int32_t gr_module_preference(const graft_module_table *table);

/** List, without loading them, the files graft_KIND_NAME.so in the folders of `path` (separated by ':'), in the folder
 *  of the library, and in its subfolder "graft", where modules are installed. Of several files with the same name the
 *  first is used. A name of a built-in module or of a module in use is not replaced. \return OK; ERR_NOMEM */
struct gr_search;
int32_t gr_modules_search(graft_context *context, const char *path, struct gr_search **search, graft_error *error);
/** End a search. With `take` the found files replace the listed files that are not in use. */
void    gr_modules_end(struct gr_search *search, int take);

/** Read the note of the file module->path, without loading the file. \return OK; another code if the module is not
 *  usable, with the reason in error */
int32_t gr_module_examine(struct gr_module *module, graft_error *error);

/** Load a file whose path the host states. */
int32_t gr_module_load(graft_context *context, const char *path, graft_error *error);

/** Find a module of a list or context by kind and name, or by the real path of its file. NULL: there is none. */
struct gr_module *gr_module_find_in(struct gr_modules *modules, const char *kind, const char *name);
struct gr_module *gr_module_find_file(graft_context *context, const char *real);
struct gr_module *gr_module_find(graft_context *context, const char *kind, const char *name);

/** Make a module ready: load it if necessary, and create its state. After a failure the reason is in module->detail. */
int32_t gr_module_use(graft_context *context, struct gr_module *module, graft_error *error);

/** Check the return value `rc` of function `call` of a module. Positive numbers are not statuses and become ERR_MODULE;
 *  a failure without a message gets a message. \return OK; a failure */
int32_t gr_module_status(const struct gr_module *module, const char *call, int32_t rc, graft_error *error);

int32_t gr_module_describe(const graft_context *context, int32_t index, graft_module_entry *entry, graft_error *error);
void    gr_modules_fini(graft_context *context);

/** The modules of a kind in order: the chosen one first unless it is "auto", then by descending preference and by name.
 *  The order does not depend on earlier loading or use. No module is loaded; see gr_module_use(). order[GR_MODULE_MAX]
 *  receives indices in the list, and *count their number. \return OK; ERR_OPTION (no module of this kind has the chosen
 *  name) */
int32_t gr_modules_order(graft_context *context, const char *kind, const char *chosen, int32_t *order, int32_t *count,
                         graft_error *error);

/** Read the graft_module_note of an ELF file. No code of the file is run, and any contents are safe to read.
 *  \return 1; 0 if the file has no note; ERR_MODULE with the reason in error if it cannot be loaded: not a regular file
 *  or shared library, another processor, or a damaged note */
int32_t gr_module_note_read(const char *path, graft_module_note *note, graft_error *error);

/** Check that this library and this processor meet the requirements of the note. \return OK; ERR_VERSION;
 *  ERR_UNSUPPORTED */
int32_t gr_module_note_check(const graft_module_note *note, graft_error *error);
