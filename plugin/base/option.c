/* Sets and describes options, and suggests the nearest name for an unknown one.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/option.h"

#include "base/assert.h"
#include "base/context.h"
#include "base/environment.h"
#include "base/memory.h"
#include "base/option_row.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

static const char *option_key(const void *options, int32_t index)
{
    const struct gr_option_row *row = gr_option_at(options, index);

    return row != NULL ? row->key : NULL;
}

/* Convert a letter for comparisons in which MXM_KERNEL equals mxm.kernel. */
static int folded(char letter)
{
    if (letter == '_') return '.';
    return letter >= 'A' && letter <= 'Z' ? letter - 'A' + 'a' : letter;
}

/* The number of insertions, deletions and replacements of letters that turn one text into the other. Texts have at most
 * 63 letters. */
static int edit_distance(const char *a, const char *b)
{
    int       row[64];
    const int n = (int)strnlen(b, 63);

    for (int j = 0; j <= n; j++) row[j] = j;
    for (int i = 1; a[i - 1] != '\0' && i < 64; i++) {
        int diagonal = row[0];
        row[0] = i;
        for (int j = 1; j <= n; j++) {
            const int replace = diagonal + (folded(a[i - 1]) != folded(b[j - 1]));
            const int step = (row[j] < row[j - 1] ? row[j] : row[j - 1]) + 1;
            diagonal = row[j];
            row[j] = replace < step ? replace : step;
        }
    }
    return row[n];
}

const char *gr_option_nearest(const char *text, const char *(*next)(const void *arg, int32_t index), const void *arg)
{
    const char *best = NULL, *name;
    int         best_distance = (int)strnlen(text, 63) / 3 + 2;

    for (int32_t i = 0; (name = next(arg, i)) != NULL; i++) {
        const int distance = edit_distance(text, name);
        if (distance < best_distance) {
            best_distance = distance;
            best = name;
        }
    }
    return best;
}

/* A description of the legal values: their words, or the kind of number. */
static const char *type_text(const struct gr_option_row *row)
{
    switch (row->type) {
    case GR_TYPE_INTEGER: return "integer";
    case GR_TYPE_NUMBER: return "number";
    case GR_TYPE_WIDTHS: return "integers separated by ','";
    case GR_TYPE_TEXT: return row->domain[0] != '\0' ? row->domain : "text";
    default: return row->domain;
    }
}

static const char *range_text(const struct gr_option_row *row)
{
    const int has_range = row->type == GR_TYPE_INTEGER || row->type == GR_TYPE_NUMBER || row->type == GR_TYPE_WIDTHS;

    return has_range ? row->domain : "";
}

static int32_t refuse(const struct gr_option_row *row, const char *name, const char *value, graft_error *error)
{
    const int has_words = strchr(type_text(row), '|') != NULL;

    return gr_fail(error, GRAFT_ERR_OPTION, "%s is '%.80s', but should be %s%s%s%s%s: %s", name, value,
                   has_words ? "one of " : "", type_text(row), row->type == GR_TYPE_PAIR ? ", or FORWARD/BACKWARD" : "",
                   range_text(row)[0] != '\0' ? " in " : "", range_text(row), row->help);
}

/* Whether a legal value equals the current value of the option. */
static int is_as_before(const graft_context *context, const struct gr_option_row *row, const char *value,
                        const union gr_option_value *parsed)
{
    if (row->type == GR_TYPE_TEXT) return strcmp(value, gr_option_text(context, row)) == 0;
    return memcmp(gr_option_value(&context->options, row), parsed, gr_option_bytes(row)) == 0;
}

/* The kinds of objects (a bit for each) that keep the value that the option had when they were created. */
static uint32_t keepers_of(const struct gr_options *options, const struct gr_option_row *row)
{
    const struct gr_option_list *list = options->list;

    if (row->flags & GR_LIVE) return 0;
    return list->tables[gr_option_table_index(options, row->table)].keepers |
           (row->flags & GR_EVERYWHERE ? list->keepers_everywhere : 0);
}

/* Refuse a new value while an object exists that keeps the old one, because the object would not change. */
static int32_t check_keepers(graft_context *context, const struct gr_option_row *row, graft_error *error)
{
    const uint32_t keepers = keepers_of(&context->options, row);

    for (int kind = 0; kind < GR_HANDLE_KINDS; kind++) {
        const char *word = gr_handle_word((enum gr_handle_kind)kind);

        if ((keepers >> kind & 1) == 0 || gr_handle_count(context, (enum gr_handle_kind)kind) == 0) continue;
        return gr_fail(error, GRAFT_ERR_STATE,
                       "option '%s' is read when a %s is created, and a %s of this context is alive, which keeps "
                       "'%.80s'; destroy it first, or open another context for other options",
                       row->key, word, word, gr_option_text(context, row));
    }
    return GRAFT_OK;
}

/* Set an option. Error messages call it `name`, which is the name of the option or of a variable. */
static int32_t put(graft_context *context, const struct gr_option_row *row, enum gr_option_source source,
                   const char *name, const char *value, graft_error *error)
{
    struct gr_options    *options = &context->options;
    const int32_t         index = gr_option_index(options, row);
    union gr_option_value parsed;
    char                 *copy = NULL, digits[24];

    if (!gr_option_parse(row, value, &parsed)) return refuse(row, name, value, error);
    if (!is_as_before(context, row, value, &parsed)) GR_TRY(check_keepers(context, row, error));
    /* 1e6 is stored as 1000000, because hosts that ask for the value expect digits. */
    if (row->type == GR_TYPE_INTEGER) {
        snprintf(digits, sizeof digits, "%lld", (long long)parsed.integer);
        value = digits;
    }
    GR_TRY(gr_text_copy(context, &copy, value, error));
    gr_free(context, options->text[index]);
    options->text[index] = copy;
    options->reported[index] = 0;
    options->source[index] = (uint8_t)source;
    options->changes++;
    gr_option_set_value(options, row, copy);
    return GRAFT_OK;
}

enum { VARIABLE_ROOM = 64, ADVICE_ROOM = 96 };

/* The environment variable of an option, such as GRAFT_MXM_KERNEL of mxm.kernel, independent of the host's locale. */
static const char *variable_of(const char *key, char variable[VARIABLE_ROOM])
{
    snprintf(variable, VARIABLE_ROOM, "GRAFT_%s", key);
    for (char *at = variable; *at != '\0'; at++) {
        if (*at == '.') *at = '_';
        if (*at >= 'a' && *at <= 'z') *at = (char)(*at - 'a' + 'A');
    }
    return variable;
}

static int32_t read_environment(graft_context *context, const struct gr_option_row *row, graft_error *error)
{
    char        variable[VARIABLE_ROOM];
    const char *value = gr_environment(context, variable_of(row->key, variable));

    return value != NULL ? put(context, row, GR_SOURCE_ENVIRONMENT, variable, value, error) : GRAFT_OK;
}

/* Advise a user who has written a name that no option has. */
static const char *advise(const graft_context *context, const char *name, int is_variable, char advice[ADVICE_ROOM])
{
    static const char *const devices[] = { "device", "gpu", "cuda", "rocm", "hip", "accelerator" };
    char                     variable[VARIABLE_ROOM];
    const char              *near = gr_option_nearest(name, option_key, &context->options);

    for (size_t i = 0; i < sizeof devices / sizeof *devices; i++)
        if (strcasecmp(name, devices[i]) == 0) return "Graft computes on CPUs only";
    if (near == NULL) return "option_info() and graft-info list all";
    snprintf(advice, ADVICE_ROOM, "did you mean '%s'?", is_variable ? variable_of(near, variable) : near);
    return advice;
}

/* Whether some part of Graft reads this variable, or package managers set it (abi/README.md, "The environment"). */
static int is_known_variable(const struct gr_options *options, const char *name)
{
    static const char *const others[] = { "LIBRARY", "GRB", "GRAPHBLAS", "ROOT", "HOME", "DIR", "PREFIX", "VERSION" };
    char                     variable[VARIABLE_ROOM];
    const char              *key;

    if (strncmp(name, "GRAFT_TEST_", 11) == 0) return 1;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strcmp(name + 6, others[i]) == 0) return 1;
    for (int32_t i = 0; (key = option_key(options, i)) != NULL; i++)
        if (strcmp(name, variable_of(key, variable)) == 0) return 1;
    return 0;
}

/* Find the removed option whose environment variable has this name; NULL: there is none. */
static const struct gr_removed_option *removed_variable(const struct gr_options *options, const char *name)
{
    char variable[VARIABLE_ROOM];

    for (const struct gr_removed_option *r = options->list->removed; r->key != NULL; r++)
        if (strcmp(name, variable_of(r->key, variable)) == 0) return r;
    return NULL;
}

static void warn_of_unknown_variables(const graft_context *context)
{
    char *const *entry = gr_environment_of_child(context);
    char         name[VARIABLE_ROOM], advice[ADVICE_ROOM];

    for (; entry != NULL && *entry != NULL; entry++) {
        const struct gr_removed_option *removed;

        if (strncmp(*entry, "GRAFT_", 6) != 0) continue;
        snprintf(name, sizeof name, "%.*s", (int)strcspn(*entry, "="), *entry);
        if (is_known_variable(&context->options, name)) continue;
        removed = removed_variable(&context->options, name);
        if (removed != NULL)
            gr_log(context, GRAFT_LOG_WARNING,
                   "environment variable %s has no effect, because option '%s' was removed: %s", name, removed->key,
                   removed->advice);
        else
            gr_log(context, GRAFT_LOG_WARNING,
                   "environment variable %s has no effect, because no option has this name; %s", name,
                   advise(context, name + 6, 1, advice));
    }
}

int32_t gr_options_init(graft_context *context, const struct gr_option_list *list, graft_error *error)
{
    struct gr_options          *options = &context->options;
    const struct gr_option_row *row;
    int32_t                     n;

    options->list = list;
    GR_TRY(gr_options_init_values(context, options, error));
    n = gr_option_count(options);
    GR_TRY(GR_NEW(context, options->text, n, error));
    GR_TRY(GR_NEW(context, options->reported, n, error));
    GR_TRY(GR_NEW(context, options->source, n, error));
    for (int32_t i = 0; (row = gr_option_at(options, i)) != NULL; i++) GR_TRY(read_environment(context, row, error));
    warn_of_unknown_variables(context);
    return GRAFT_OK;
}

void gr_options_fini(struct gr_options *options)
{
    if (options->list == NULL) return;
    for (int32_t i = 0; i < gr_option_count(options) && options->text != NULL; i++)
        gr_free(options->context, options->text[i]);
    gr_free(options->context, options->text);
    gr_free(options->context, options->reported);
    gr_free(options->context, options->source);
    gr_free(options->context, options->values);
}

int32_t gr_option_set(graft_context *context, const char *key, const char *value, graft_error *error)
{
    const struct gr_option_row     *row = gr_option_find(&context->options, key);
    const struct gr_removed_option *removed = gr_option_removed(&context->options, key);
    char                            name[80], advice[ADVICE_ROOM];

    if (removed != NULL) return gr_fail(error, GRAFT_ERR_OPTION, "option '%s' was removed: %s", key, removed->advice);
    if (row == NULL)
        return gr_fail(error, GRAFT_ERR_OPTION, "there is no option '%.80s'; %s", key, advise(context, key, 0, advice));
    snprintf(name, sizeof name, "option '%s'", key);
    return put(context, row, GR_SOURCE_HOST, name, value, error);
}

int32_t gr_option_describe(const graft_context *context, int32_t index, graft_option *option, graft_error *error)
{
    static const char *const sources[] = {
        [GR_SOURCE_DEFAULT] = "default", [GR_SOURCE_ENVIRONMENT] = "environment", [GR_SOURCE_HOST] = "host"
    };
    const struct gr_option_row *row = gr_option_at(&context->options, index);

    if (row == NULL)
        return gr_fail(error, GRAFT_ERR_NOT_FOUND, "option %d of %d", index, gr_option_count(&context->options));
    option->live = (row->flags & GR_LIVE) != 0;
    option->key = row->key;
    option->type = type_text(row);
    option->default_value = row->default_value;
    option->range = range_text(row);
    option->value = gr_option_text(context, row);
    option->help = row->help;
    option->group = row->table->title;
    option->needs = row->needs;
    option->scope = row->scope;
    option->usual = (row->flags & GR_USUAL) != 0;
    option->source = sources[context->options.source[index]];
    return GRAFT_OK;
}
