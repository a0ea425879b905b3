/* A room's list of options: ROOM/options.h has one row for each, from which its field in the struct of parsed values
 * and its row in the room's table follow. entry/options.c puts the tables together.
 *
 *     #define GR_ROOM_OPTIONS(X) X(INTEGER("1..64"), layers, "layers", "3", SAME, GR_USUAL, "", "number of layers")
 *     struct gr_room_options { GR_ROOM_OPTIONS(GR_OPTION_FIELD) };
 *
 * SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/context.h"

#include <stddef.h>

/** A choice has one list of X(constant, "word"), from which follow its enum and the words of its option. */
#define GR_CHOICE_CONSTANT(constant, word) constant,
#define GR_CHOICE_WORD(constant, word) "|" word
#define GR_CHOICE_NAME(constant, word) word,
#define GR_WORDS(LIST) (&(LIST(GR_CHOICE_WORD))[1])

#define GR_CHOICE_LIST(X) X(GR_NO, "no") X(GR_YES, "yes") X(GR_AUTO, "auto")
enum gr_choice { GR_CHOICE_LIST(GR_CHOICE_CONSTANT) };

/** The parsed type of a value, and the contents of `domain`. */
enum gr_option_type {
    GR_TYPE_CHOICE,  /* an enum: its words, separated by '|' */
    GR_TYPE_INTEGER, /* int64_t: a range such as "1..64", or "0.." */
    GR_TYPE_NUMBER,  /* double: a range, "[0..1)" without the upper end, "(0.." without the lower one, or "" */
    GR_TYPE_WIDTHS,  /* struct gr_widths: the range of each */
    GR_TYPE_TEXT,    /* const char *: "", or words, of which the last stands for all texts with a '/': "no|FOLDER/" */
    GR_TYPE_PAIR,    /* struct gr_pair: the words */
    GR_TYPE_FORM     /* struct gr_form: words, each with the ranges and defaults of its numbers */
};

/* The C type of a field, and the type and domain of its row: TYPE(ARGUMENTS) of a list. */
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

/** A row of the table GR_OPTIONS_TABLE of the struct GR_OPTIONS_STRUCT, two macros of a room's options.c. */
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

/** EXPERT: listed after the others. LIVE: may change later. EVERYWHERE: read with every table. PREDICTS: of no table of
 *  a model, but changes its predictions. TRAINS: of a table of a model, but may differ from the value with which
 *  weights were trained. */
enum { GR_EXPERT = 0, GR_USUAL = 1, GR_LIVE = 2, GR_EVERYWHERE = 4, GR_PREDICTS = 8, GR_TRAINS = 16 };

struct gr_option_row {
    const struct gr_option_table *table;
    const char                   *key;
    enum gr_option_type           type;
    const char                   *domain, *default_value;
    uint32_t                      at; /* byte of the parsed value in the table's struct */
    graft_option_scope            scope;
    int32_t                       flags;
    /* The condition for an effect: terms "KEY=WORD|WORD", "KEY!=WORD", "processes>1" or "processes=1", or several as
     * "(TERM or TERM)", joined by " and "; "": always. For a pair one half is enough; KEY ":forward" reads only the
     * first. */
    const char                   *needs;
    const char                   *help; /* one line */
};

/** A condition of many rows. */
#define GR_NEEDS_RANKS "processes>1"

/** Options that are compared and reported together, with one struct of parsed values. */
struct gr_option_table {
    const char                 *title;
    const struct gr_option_row *rows;
    int32_t                     count;
    uint32_t                    bytes; /* of the struct */
};

#define GR_OPTION_TABLE(title, rows)                                                                                   \
    { title, rows, (int32_t)(sizeof rows / sizeof *rows), (uint32_t)sizeof(GR_OPTIONS_STRUCT) }

/** An option of an earlier release. */
struct gr_removed_option {
    const char *key;
    const char *advice; /* "write NEW=VALUE", or what is computed without it */
    /* Files of models may have the option. With this value, or one of several (A|B), they mean what the library
     * does without it. NULL: no file has it. */
    const char *harmless;
};

struct gr_option_entry {
    const struct gr_option_table *table;
    uint32_t                      keepers; /* kinds of handles (a bit for each) that keep the values they read */
};

/** All options of a library: what gr_options_init() gets. */
struct gr_option_list {
    const struct gr_option_entry   *tables;
    int32_t                         n_tables;
    uint32_t                        keepers_everywhere; /* of options with GR_EVERYWHERE */
    const struct gr_removed_option *removed;            /* ends with key NULL */
};

/** The struct of a table's parsed values. */
const void *gr_options_of(const struct gr_options *options, const struct gr_option_table *table);

/** The bit of a table in the sets of tables below. */
uint32_t gr_options_bit(const graft_context *context, const struct gr_option_table *table);

int32_t gr_option_table_index(const struct gr_options *options, const struct gr_option_table *table);

/** The number of all options. */
int32_t gr_option_count(const struct gr_options *options);

/** Row `index` of all options; NULL past the last. */
const struct gr_option_row *gr_option_at(const struct gr_options *options, int32_t index);

int32_t gr_option_index(const struct gr_options *options, const struct gr_option_row *row);

/** The row of an option, or NULL. */
const struct gr_option_row *gr_option_find(const struct gr_options *options, const char *key);

/** The removed option of this name, or NULL. */
const struct gr_removed_option *gr_option_removed(const struct gr_options *options, const char *key);

/** Whether files of models with this value of a removed option mean what the library does without it. */
int gr_option_is_harmless(const struct gr_removed_option *removed, const char *value);

/** The place of a word of `length` letters in "a|b|c"; -1 if it is none of them. */
int32_t gr_option_word(const char *words, const char *word, size_t length);

/** A value of any type. */
union gr_option_value {
    int32_t          choice;
    int64_t          integer;
    double           number;
    struct gr_widths widths;
    struct gr_pair   pair;
    struct gr_form   form;
    const char      *text;
};

/** Parse a value as its row says. A text is not copied. \return whether it is legal. */
int gr_option_parse(const struct gr_option_row *row, const char *value, union gr_option_value *parsed);

/** Bytes of the parsed value. */
uint64_t gr_option_bytes(const struct gr_option_row *row);

/** The parsed value. */
const void *gr_option_value(const struct gr_options *options, const struct gr_option_row *row);

/** The set value of a row, or its default. */
const char *gr_option_text(const graft_context *context, const struct gr_option_row *row);

/** Set `values` to the defaults. They have no texts; for the options of a model in a file. Always call
 *  gr_options_fini(). \return OK; ERR_NOMEM. */
int32_t gr_options_init_values(graft_context *context, struct gr_options *values, graft_error *error);
/** \return whether the value is legal. */
int     gr_option_set_value(struct gr_options *values, const struct gr_option_row *row, const char *value);
/** Copy the values of one table. */
void gr_options_copy_values(struct gr_options *to, const struct gr_options *from, const struct gr_option_table *table);

/** Whether a row belongs to a table of the set `tables` (a bit for each table). */
int gr_option_in(const struct gr_options *options, const struct gr_option_row *row, uint32_t tables);

/** Whether a row has an effect with these options in `n_processes` processes. Conditions on options of other tables
 *  than these (a bit for each) count as met. */
int gr_option_has_effect(const struct gr_options *options, const struct gr_option_row *row, uint32_t tables,
                         int32_t n_processes);

/** Warn once of each option of a set of tables that was set and has no effect with the others in
 *  `n_processes` processes. Conditions on options of other tables count as met. Not collective. */
void gr_options_report(graft_context *context, uint32_t tables, int32_t n_processes);

/** The same warning of one option, for a reason that the conditions of the table do not express. Not collective.
 * \param[in] reason  The end of the sentence "option 'KEY' is VALUE, which has no effect because". */
void gr_option_report_idle(graft_context *context, const char *key, const char *reason);

/** The values of options of some tables (a bit for each): "key", "value", ..., "", each terminated. \return OK;
 *  ERR_NOMEM. */
int32_t     gr_options_copy(const graft_context *context, uint32_t tables, char **copy, graft_error *error);
/** The value of a key in such a copy, or NULL. */
const char *gr_options_copied(const char *copy, const char *key);
