/* The command line.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef ARGUMENTS_H
#define ARGUMENTS_H

#include "graft_base.h"

/** All texts point to argv. */
struct arguments {
    const char  *dataset;  /* NULL only with list_options */
    const char **settings; /* [n_settings] "key=value" in the order given */
    int          n_settings;
    const char  *kernel; /* this and the following are NULL if not given */
    const char  *json;
    const char  *profile;
    const char  *predict;
    const char  *model; /* a file, to predict with */
    const char  *vertices;
    const char  *probabilities;
    const char  *save;
    const char  *resume;
    int          list_options, list_all;
    int          explain;
    int          verbose;
};

/** Parse, or print the help and exit. Errors are printed too; but over ranks they are returned in `error`, because the
 *  others would wait for a rank that exits before it has joined them. */
int32_t arguments_init(struct arguments *arguments, int argc, char **argv, graft_error *error);
void    arguments_fini(struct arguments *arguments);

/** Whether outputs are asked for that only training has. */
int arguments_report(const struct arguments *arguments);

#endif
