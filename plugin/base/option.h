/* Options: named values, which are parsed once, when they are set. A room lists its options in ROOM/options.h (see
 * base/option_row.h).
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "graft_host.h"

enum { GR_WIDTHS_MAX = 64 };

/** A list of widths, such as "128" or "256,64". */
struct gr_widths {
    int32_t count;
    int64_t width[GR_WIDTHS_MAX];
};

/** Write `count` numbers: the only number of the list for all places, or the list. `name` and `places` are for the
 *  sentence "NAME is a list of 2 numbers, but there are 3 PLACES". \return OK; ERR_OPTION: the list has another
 *  length. */
int32_t gr_option_spread_widths(const struct gr_widths *list, int32_t count, const char *name, const char *places,
                                int64_t *widths, graft_error *error);

/** A choice for each of two uses, with the same words: "q2/q8". A single word is chosen for both. */
struct gr_pair {
    int32_t word[2];
};

enum { GR_FORM_NUMBERS = 3 };

/** A word with numbers, such as "step:30:0.1". The domain states a range for each number and, after '=', its default:
 *  "constant|step:1..=30:[0..1]=0.1". Ranges without brackets are of integers. Numbers without a default must be
 *  given. A domain that begins with a range has no word: "[0..):first?" is for "0.1" and for "0.1:first". An optional
 *  word, such as "first?", is stored as a number: whether it is there. */
struct gr_form {
    int32_t word;
    double  number[GR_FORM_NUMBERS];
};

enum gr_option_source { GR_SOURCE_DEFAULT, GR_SOURCE_ENVIRONMENT, GR_SOURCE_HOST };

struct gr_option_list;

/** The values of a context's options. */
struct gr_options {
    const struct gr_option_list *list;
    graft_context               *context;  /* the context whose host allocates the memory */
    char                        *values;   /* memory with the structs of all tables, one after the other */
    char                       **text;     /* [all options] the value as it was set; NULL: the default */
    uint8_t                     *reported; /* [all options] 1: a warning has said that the value has no effect */
    uint8_t                     *source;   /* [all options] who set the value, enum gr_option_source */
    int64_t                      changes;  /* number of calls so far that have set an option */
};

/** Set all options to their defaults or to the values of environment variables GRAFT_... `list` must outlive the
 *  options. Always call gr_options_fini(). \return OK; ERR_OPTION: a variable has an illegal value; ERR_NOMEM. */
int32_t gr_options_init(graft_context *context, const struct gr_option_list *list, graft_error *error);
void    gr_options_fini(struct gr_options *options);

/** Set one option. \return OK; ERR_OPTION: no such option, or not a legal value; ERR_NOMEM. */
int32_t gr_option_set(graft_context *context, const char *key, const char *value, graft_error *error);

/** Whether an existing option has its default because it was not set. */
int gr_option_is_default(const graft_context *context, const char *key);

/** The value of an option of type text; NULL if there is no such option. */
const char *gr_option_find_text(const graft_context *context, const char *key);

/** Describe option number `index` of the list. \return OK; ERR_NOT_FOUND after the last. */
int32_t gr_option_describe(const graft_context *context, int32_t index, graft_option *option, graft_error *error);

/** Find the text nearest to `text` among next(arg, 0), next(arg, 1), ..., which end with NULL. \return NULL if none is
 *  near */
const char *gr_option_nearest(const char *text, const char *(*next)(const void *arg, int32_t index), const void *arg);
