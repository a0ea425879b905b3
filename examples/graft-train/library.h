/* The library: finding and opening it, its interfaces, its options.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef LIBRARY_H
#define LIBRARY_H

#include "arguments.h"
#include "problem.h"

#include "graft_data.h"
#include "graft_group.h"
#include "graft_model.h"
#include "graft_mxm.h"
#include "graft_report.h"
#include "graft_train.h"

#include <stddef.h>

struct library {
    const graft_api        *api;
    const graft_data_api   *data;
    const graft_train_api  *train;
    const graft_report_api *report;
    const graft_group_api  *groups;
    const graft_mxm_api    *mxm;
    const graft_graph_api  *graphs;
    const graft_model_api  *models;
};

/** Open the library. */
int32_t library_init(struct library *library, const graft_host *host, graft_error *error);
void    library_fini(struct library *library);

/** Set the options of the command line. */
int32_t library_configure(const struct library *library, const struct arguments *arguments, graft_error *error);

/** Description of an option by key; ERR_NOT_FOUND if there is none. */
int32_t library_option(const struct library *library, const char *key, graft_option *option, graft_error *error);

/** Print the usual options by group, or all of them. */
int32_t library_list_options(const struct library *library, int all, graft_error *error);

/** Name of the sparse kernel that ran last; "none" if none has. */
void library_kernel(const struct library *library, char *name, size_t capacity);

#endif
