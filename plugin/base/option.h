/* Options: named values, each parsed once, when it is set. A room has its list in ROOM/options.h (base/option_row.h).
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "graft_host.h"

enum { GR_WIDTHS_MAX = 64 };

/** A list of widths, such as "128" or "256,64". */
struct gr_widths {
    int32_t count;
    int64_t width[GR_WIDTHS_MAX];
};

/** The numbers of `count` places: one for all, or a list. `name` and `places` are for the sentence "NAME is a list of 2
 *  numbers, but there are 3 PLACES". \return OK; ERR_OPTION: a list of other length. */
int32_t gr_option_spread_widths(const struct gr_widths *list, int32_t count, const char *name, const char *places,
                                int64_t *widths, graft_error *error);

/** Two choices of the same words, "q2/q8". One word is both. */
struct gr_pair {
    int32_t word[2];
};

enum { GR_FORM_NUMBERS = 3 };

/** A choice with numbers, such as "step:30:0.1". Its domain has for each number a range and, after '=', the default:
 *  "constant|step:1..=30:[0..1]=0.1". Ranges without brackets are of whole numbers; those without a default must be
 *  given. A domain that begins with a range has no word: "[0..):first?" is for "0.1" and for "0.1:first". The number of
 *  an optional word such as "first?" is whether it is there. */
struct gr_form {
    int32_t word;
    double  number[GR_FORM_NUMBERS];
};

enum gr_option_source { GR_SOURCE_DEFAULT, GR_SOURCE_ENVIRONMENT, GR_SOURCE_HOST };

struct gr_option_list;

/** The values of a context's options. */
struct gr_options {
    const struct gr_option_list *list;
    graft_context               *context;  /* which has the memory */
    char                        *values;   /* the structs of all tables, one after the other */
    char                       **text;     /* [all options] the set value, or NULL for the default */
    uint8_t                     *reported; /* [all options] the log has reported that this value has no effect */
    uint8_t                     *source;   /* [all options] enum gr_option_source */
    int64_t                      changes;  /* the number of calls that set an option */
};

/** Take the defaults, and values from GRAFT_... variables of the environment. `list` must outlive the options.
 *  \return OK; ERR_OPTION: a variable holds a bad value; ERR_NOMEM. Always call gr_options_fini(). */
int32_t gr_options_init(graft_context *context, const struct gr_option_list *list, graft_error *error);
void    gr_options_fini(struct gr_options *options);

/** Set one option. \return OK; ERR_OPTION: no such option, or not a legal value; ERR_NOMEM. */
int32_t gr_option_set(graft_context *context, const char *key, const char *value, graft_error *error);

/** Whether the option of this name, which exists, has its default because it was not set. */
int gr_option_is_default(const graft_context *context, const char *key);

/** The value of an option of type text; NULL if there is none. */
const char *gr_option_find_text(const graft_context *context, const char *key);

/** Describe option `index`. \return OK; ERR_NOT_FOUND past the last. */
int32_t gr_option_describe(const graft_context *context, int32_t index, graft_option *option, graft_error *error);

/** Of the texts that next(arg, i) returns until NULL, the text nearest to `text`; NULL if none is near. */
const char *gr_option_nearest(const char *text, const char *(*next)(const void *arg, int32_t index), const void *arg);
