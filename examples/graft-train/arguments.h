/* The command line.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef ARGUMENTS_H
#define ARGUMENTS_H

#include "graft_base.h"

/** The arguments of the command line. All strings point to argv. */
struct arguments {
    const char  *dataset;  /* NULL only with list_options */
    const char **settings; /* [n_settings] "key=value" in the order given */
    int          n_settings;
    const char  *kernel; /* this and the following fields are NULL if not given */
    const char  *json;
    const char  *profile;
    const char  *predict;
    const char  *model; /* file of a model that predicts */
    const char  *vertices;
    const char  *probabilities;
    const char  *save;
    const char  *resume;
    int          list_options, list_all;
    int          explain;
    int          verbose;
};

/** Parse the command line. With --help the function prints the help and exits. In one process it prints an error and
 *  exits. Over ranks it returns the error in `error`, because the other ranks would wait for a rank that exits before
 *  it has joined them. */
int32_t arguments_init(struct arguments *arguments, int argc, char **argv, graft_error *error);
void    arguments_fini(struct arguments *arguments);

/** Returns whether outputs are requested that exist only after training. */
int arguments_report(const struct arguments *arguments);

#endif
