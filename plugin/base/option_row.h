/* The lists of options. ROOM/options.h has one line for each option of a room, from which macros make its field in the
 * struct of parsed values and its row in the table of the room. entry/options.c lists all tables.
 *
 *     #define GR_ROOM_OPTIONS(X) X(INTEGER("1..64"), layers, "layers", "3", SAME, GR_USUAL, "", "number of layers")
 *     struct gr_room_options { GR_ROOM_OPTIONS(GR_OPTION_FIELD) };
 *
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/context.h"

#include <stddef.h>

/** The words of a choice are one list of X(constant, "word"), from which macros make its enum and the words of its
 *  option. */
#define GR_CHOICE_CONSTANT(constant, word) constant,
#define GR_CHOICE_WORD(constant, word) "|" word
#define GR_CHOICE_NAME(constant, word) word,
#define GR_WORDS(LIST) (&(LIST(GR_CHOICE_WORD))[1])

#define GR_CHOICE_LIST(X) X(GR_NO, "no") X(GR_YES, "yes") X(GR_AUTO, "auto")
enum gr_choice { GR_CHOICE_LIST(GR_CHOICE_CONSTANT) };

/** The types of options. Each comment states the C type of the parsed value, and what `domain` contains. */
enum gr_option_type {
    GR_TYPE_CHOICE,  /* an enum; `domain` is its words, separated by '|' */
    GR_TYPE_INTEGER, /* int64_t; a range such as "1..64" or "0.." */
    GR_TYPE_NUMBER,  /* double; a range, "[0..1)" without the upper end, "(0.." without the lower one, or "" */
    GR_TYPE_WIDTHS,  /* struct gr_widths; a range for each width */
    GR_TYPE_TEXT,    /* const char *; "", or words, the last of which stands for all texts with a '/': "no|FOLDER/" */
    GR_TYPE_PAIR,    /* struct gr_pair; the words */
    GR_TYPE_FORM     /* struct gr_form; words, each with ranges and defaults of its numbers */
};

/* TYPE(ARGUMENTS) in a list gives the C type of the field, GR_FIELD_TYPE, and type and domain of the row,
 * GR_DOMAIN_TYPE. */
#define GR_FIELD_CHOICE(name, LIST) enum name
#define GR_FIELD_WORDS(name, words) enum name
#define GR_FIELD_SWITCH() int32_t
#define GR_FIELD_INTEGER(range) int64_t
#define GR_FIELD_NUMBER(range) double
#define GR_FIELD_WIDTHS(range) struct gr_widths
#define GR_FIELD_TEXT() const char *
#define GR_FIELD_FOLDER(words) const char *
#define GR_FIELD_PAIR(words) struct gr_pair
#define GR_FIELD_FORM(LIST) struct gr_form
#define GR_FIELD_FORMS(words) struct gr_form

#define GR_DOMAIN_CHOICE(name, LIST) GR_TYPE_CHOICE, GR_WORDS(LIST)
#define GR_DOMAIN_WORDS(name, words) GR_TYPE_CHOICE, words
#define GR_DOMAIN_SWITCH() GR_TYPE_CHOICE, "no|yes"
#define GR_DOMAIN_INTEGER(range) GR_TYPE_INTEGER, range
#define GR_DOMAIN_NUMBER(range) GR_TYPE_NUMBER, range
#define GR_DOMAIN_WIDTHS(range) GR_TYPE_WIDTHS, range
#define GR_DOMAIN_TEXT() GR_TYPE_TEXT, ""
#define GR_DOMAIN_FOLDER(words) GR_TYPE_TEXT, words "|FOLDER/"
#define GR_DOMAIN_PAIR(words) GR_TYPE_PAIR, words
#define GR_DOMAIN_FORM(LIST) GR_TYPE_FORM, GR_WORDS(LIST)
#define GR_DOMAIN_FORMS(words) GR_TYPE_FORM, words

#define GR_OPTION_FIELD(type, field, key, value, scope, flags, needs, help) GR_FIELD_##type field;

/** A row of the table GR_OPTIONS_TABLE. The values are in a struct GR_OPTIONS_STRUCT. A room's options.c defines both
 *  macros. */
#define GR_OPTION_ROW(type, field, key, value, scope, flags, needs, help)                                              \
    { &GR_OPTIONS_TABLE,                                                                                               \
      key,                                                                                                             \
      GR_DOMAIN_##type,                                                                                                \
      value,                                                                                                           \
      (uint32_t)offsetof(GR_OPTIONS_STRUCT, field),                                                                    \
      GRAFT_SCOPE_##scope,                                                                                             \
      flags,                                                                                                           \
      needs,                                                                                                           \
      help },

/** Flags of an option. EXPERT: lists show it after the others. LIVE: it may change while objects exist. EVERYWHERE: it
 *  belongs to every set of tables. PREDICTS: it is in no table that a model stores, but changes predictions. TRAINS: it
 *  is in such a table, but may differ from the value with which the weights were trained. */
enum { GR_EXPERT = 0, GR_USUAL = 1, GR_LIVE = 2, GR_EVERYWHERE = 4, GR_PREDICTS = 8, GR_TRAINS = 16 };

struct gr_option_row {
    const struct gr_option_table *table;
    const char                   *key;
    enum gr_option_type           type;
    const char                   *domain, *default_value;
    uint32_t                      at; /* offset of the parsed value in the struct of the table */
    graft_option_scope            scope;
    int32_t                       flags;
    /* The condition under which the option has an effect, or "": always. Terms "KEY=WORD|WORD", "KEY!=WORD",
     * "processes>1" and "processes=1" are joined by " and "; alternatives are written "(TERM or TERM)". A term about a
     * pair is true if it is for one half; KEY ":forward" reads only the first half. */
    const char                   *needs;
    const char                   *help; /* text of one line */
};

/** The condition of options that only matter if there are several ranks. */
#define GR_NEEDS_RANKS "processes>1"

/** Options whose parsed values are in one struct, and which are compared and reported together. */
struct gr_option_table {
    const char                 *title;
    const struct gr_option_row *rows;
    int32_t                     count;
    uint32_t                    bytes; /* size of the struct of parsed values */
};

#define GR_OPTION_TABLE(title, rows)                                                                                   \
    { title, rows, (int32_t)(sizeof rows / sizeof *rows), (uint32_t)sizeof(GR_OPTIONS_STRUCT) }

/** An option of an earlier release, which this release does not have. */
struct gr_removed_option {
    const char *key;
    const char *advice; /* how to get its effect: "write NEW=VALUE", or what is computed without the option */
    /* Values with which the option can be ignored in files of models, because they mean what this release computes:
     * one, or several (A|B). NULL: no file has the option. */
    const char *harmless;
};

struct gr_option_entry {
    const struct gr_option_table *table;
    uint32_t                      keepers; /* set of kinds of handles that keep the values of their creation */
};

/** All options of a library, the argument of gr_options_init(). */
struct gr_option_list {
    const struct gr_option_entry   *tables;
    int32_t                         n_tables;
    uint32_t                        keepers_everywhere; /* `keepers` of options with GR_EVERYWHERE */
    const struct gr_removed_option *removed;            /* an array whose last element has key NULL */
};

/** The struct with the parsed values of a table. */
const void *gr_options_of(const struct gr_options *options, const struct gr_option_table *table);

/** The bit that stands for a table in sets of tables. */
uint32_t gr_options_bit(const graft_context *context, const struct gr_option_table *table);

int32_t gr_option_table_index(const struct gr_options *options, const struct gr_option_table *table);

/** The number of options in all tables. */
int32_t gr_option_count(const struct gr_options *options);

/** The row with this index among those of all tables; NULL after the last. */
const struct gr_option_row *gr_option_at(const struct gr_options *options, int32_t index);

int32_t gr_option_index(const struct gr_options *options, const struct gr_option_row *row);

/** Find the row of an option by its key; NULL: there is none. */
const struct gr_option_row *gr_option_find(const struct gr_options *options, const char *key);

/** Find the removed option with this key; NULL: there is none. */
const struct gr_removed_option *gr_option_removed(const struct gr_options *options, const char *key);

/** Whether a removed option with this value can be ignored in files of models: see `harmless`. */
int gr_option_is_harmless(const struct gr_removed_option *removed, const char *value);

/** The index of a word of `length` letters in a list "a|b|c"; -1: it is not in the list. */
int32_t gr_option_word(const char *words, const char *word, size_t length);

/** A parsed value of any type. */
union gr_option_value {
    int32_t          choice;
    int64_t          integer;
    double           number;
    struct gr_widths widths;
    struct gr_pair   pair;
    struct gr_form   form;
    const char      *text;
};

/** Parse a value by the type and domain of its row. A text is not copied. \return whether the value is legal */
int gr_option_parse(const struct gr_option_row *row, const char *value, union gr_option_value *parsed);

/** The size of the parsed value of a row. */
uint64_t gr_option_bytes(const struct gr_option_row *row);

/** The parsed value of a row. */
const void *gr_option_value(const struct gr_options *options, const struct gr_option_row *row);

/** The text of the value that was set for a row, or of its default. */
const char *gr_option_text(const graft_context *context, const struct gr_option_row *row);

/** Set `values`, the options of a model that is read from a file, to their defaults, without storing texts. Always call
 *  gr_options_fini(). \return OK; ERR_NOMEM. */
int32_t gr_options_init_values(graft_context *context, struct gr_options *values, graft_error *error);
/** Parse and store the value of a row. \return whether it is legal */
int     gr_option_set_value(struct gr_options *values, const struct gr_option_row *row, const char *value);
/** Copy the parsed values of one table. */
void gr_options_copy_values(struct gr_options *to, const struct gr_options *from, const struct gr_option_table *table);

/** Whether a row belongs to the set `tables` (a bit for each table). Rows with GR_EVERYWHERE belong to all sets. */
int gr_option_in(const struct gr_options *options, const struct gr_option_row *row, uint32_t tables);

/** Whether a row has an effect if `n_processes` processes use these options. Conditions on options outside of the set
 *  `tables` (a bit for each table) are regarded as met. */
int gr_option_has_effect(const struct gr_options *options, const struct gr_option_row *row, uint32_t tables,
                         int32_t n_processes);

/** Warn once of each option in the set `tables` that was set, but has no effect with the other options in `n_processes`
 *  processes. Conditions on options of other tables are regarded as met. Not collective. */
void gr_options_report(graft_context *context, uint32_t tables, int32_t n_processes);

/** Warn once that one option has no effect, for a reason that the conditions in the table do not express. Not
 *  collective.
 *  \param[in] reason  The end of the sentence "option 'KEY' is VALUE, which has no effect because". */
void gr_option_report_idle(graft_context *context, const char *key, const char *reason);

/** Copy the texts of the options in the set `tables` (a bit for each table): "key", "value", ..., "", each terminated.
 *  \return OK; ERR_NOMEM */
int32_t     gr_options_copy(const graft_context *context, uint32_t tables, char **copy, graft_error *error);
/** Find the value of a key in a copy of gr_options_copy(); NULL: there is none. */
const char *gr_options_copied(const char *copy, const char *key);
