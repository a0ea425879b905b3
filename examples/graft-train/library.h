/* The library, its interfaces and its options.
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

/** Find and open the library, and fetch its interfaces. */
int32_t library_init(struct library *library, const graft_host *host, graft_error *error);
void    library_fini(struct library *library);

/** Set the options that the command line has. */
int32_t library_configure(const struct library *library, const struct arguments *arguments, graft_error *error);

/** Get the description of the option with a key. Returns ERR_NOT_FOUND if the option does not exist. */
int32_t library_option(const struct library *library, const char *key, graft_option *option, graft_error *error);

/** Print the usual options by group, or all of them. */
int32_t library_list_options(const struct library *library, int all, graft_error *error);

/** Get the name of the sparse kernel that ran last, or "none" if no kernel has run. */
void library_kernel(const struct library *library, char *name, size_t capacity);

#endif
