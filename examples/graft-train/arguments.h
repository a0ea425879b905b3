/* The command line.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef ARGUMENTS_H
#define ARGUMENTS_H

/** All texts are those of argv. */
struct arguments {
    const char  *dataset;  /* NULL only with list_options */
    const char **settings; /* [n_settings] "key=value" in the order given */
    int          n_settings;
    const char  *kernel; /* NULL: not given, as for all that follow */
    const char  *json;
    const char  *profile;
    const char  *predict;
    const char  *save;
    const char  *resume;
    int          list_options;
    int          explain;
    int          verbose;
};

/** Parse, or print what is wrong (or the help) and exit. */
void arguments_init(struct arguments *arguments, int argc, char **argv);
void arguments_fini(struct arguments *arguments);

#endif
