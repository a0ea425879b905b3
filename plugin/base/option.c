/* The option table: checking, reading, listing, and the nearest name for a wrong one.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/option.h"

#include "base/context.h"
#include "base/memory.h"

#include <ctype.h>
#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct option_row {
    const char *key;
    int32_t     live;
    const char *type, *initial, *range, *help;
};

#define OPTION_ROW(name, key, live, type, initial, range, help) { key, live, type, initial, range, help },
static const struct option_row table[GR_OPTION_COUNT] = { GR_OPTION_MAP(OPTION_ROW) };
#undef OPTION_ROW

static const char *option_key(const void *unused, int32_t index)
{
    (void)unused;
    return index < GR_OPTION_COUNT ? table[index].key : NULL;
}

/* Number of insertions, deletions and replacements between two texts of at most 63 letters. */
static int edit_distance(const char *a, const char *b)
{
    int       row[64];
    const int n = (int)strnlen(b, 63);

    for (int j = 0; j <= n; j++) row[j] = j;
    for (int i = 1; a[i - 1] != '\0' && i < 64; i++) {
        int diagonal = row[0];
        row[0] = i;
        for (int j = 1; j <= n; j++) {
            const int replace = diagonal + (a[i - 1] != b[j - 1]);
            const int step = (row[j] < row[j - 1] ? row[j] : row[j - 1]) + 1;
            diagonal = row[j];
            row[j] = replace < step ? replace : step;
        }
    }
    return row[n];
}

const char *gr_nearest(const char *text, const char *(*next)(const void *arg, int32_t index), const void *arg)
{
    const char *best = NULL, *name;
    int         best_distance = (int)strnlen(text, 63) / 2 + 2;

    for (int32_t i = 0; (name = next(arg, i)) != NULL; i++) {
        const int distance = edit_distance(text, name);
        if (distance < best_distance) {
            best_distance = distance;
            best = name;
        }
    }
    return best;
}

/* The text as a number in the C locale, whatever the host's; 0 if it is not one. newlocale() of "C" allocates nothing.
 * */
static int parse_number(const char *text, double *number)
{
    locale_t c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    char    *end = NULL;

    if (c_locale == (locale_t)0) return 0;
    *number = strtod_l(text, &end, c_locale);
    freelocale(c_locale);
    return end != text && *end == '\0' && isfinite(*number) && !isspace((unsigned char)text[0]);
}

/* A whole number, which may be written as in 1e6. */
static int parse_integer(const char *text, int64_t *number)
{
    char  *end = NULL;
    double value;

    errno = 0;
    *number = strtoll(text, &end, 10);
    if (end != text && *end == '\0' && errno == 0 && !isspace((unsigned char)text[0])) return 1;
    if (text[strspn(text, "0123456789.+eE")] != '\0' || strpbrk(text, "eE") == NULL) return 0;
    if (!parse_number(text, &value) || value != floor(value) || fabs(value) > 9007199254740992.0) return 0;
    *number = (int64_t)value;
    return 1;
}

/* Whether a number lies in "low..high", "[low..high)", "low.." or "". */
static int in_range(const char *range, double number)
{
    const char *dots = strstr(range, "..");
    double      low, high;

    if (dots == NULL) return 1;
    low = strtod(range + (range[0] == '['), NULL); /* Ends of ranges are whole numbers: no locale in sight. */
    if (number < low) return 0;
    if (dots[2] == '\0') return 1;
    high = strtod(dots + 2, NULL);
    return range[strlen(range) - 1] == ')' ? number < high : number <= high;
}

static int is_choice(const char *choices, const char *value)
{
    const size_t length = strcspn(value, "|"); /* A value with a '|' is none, and stops short of its end. */

    for (const char *at = choices; at != NULL; at = strchr(at, '|') != NULL ? strchr(at, '|') + 1 : NULL) {
        if (length > 0 && value[length] == '\0' && strncmp(at, value, length) == 0 &&
            (at[length] == '|' || at[length] == '\0')) {
            return 1;
        }
    }
    return 0;
}

/* The next width of a list such as "128" or "256,64": 1 and the place behind it, 0 at the end, -1 if it is not a
 * width. */
static int next_width(const char **at, const char *range, int64_t *width)
{
    char   digits[16];
    size_t length = strcspn(*at, ",");

    if (**at == '\0') return 0;
    if (length == 0 || length >= sizeof digits) return -1;
    memcpy(digits, *at, length);
    digits[length] = '\0';
    *at += length;
    if (**at == ',' && *++*at == '\0') return -1;
    return parse_integer(digits, width) && in_range(range, (double)*width) ? 1 : -1;
}

static int value_fits(const struct option_row *row, const char *value)
{
    int64_t integer;
    double  number;
    int     found = 0, state;

    if (strchr(row->type, '|') != NULL) return is_choice(row->type, value);
    if (strcmp(row->type, "integer") == 0)
        return parse_integer(value, &integer) && in_range(row->range, (double)integer);
    if (strcmp(row->type, "number") == 0) return parse_number(value, &number) && in_range(row->range, number);
    if (strcmp(row->type, "widths") == 0) {
        while ((state = next_width(&value, row->range, &integer)) > 0) found++;
        return state == 0 && found > 0;
    }
    return 1;
}

static const char *type_text(const struct option_row *row)
{
    return strcmp(row->type, "widths") == 0 ? "integer, or integers parted by ','" : row->type;
}

/* Put a value into row `index`; `source` names where it came from, for the message. */
static int32_t put(graft_context *context, int32_t index, const char *source, const char *value, graft_error *error)
{
    const struct option_row *row = &table[index];
    char                    *copy = NULL, digits[24];
    int64_t                  integer;
    int32_t                  rc;

    if (!value_fits(row, value)) {
        return gr_fail(error, GRAFT_ERR_OPTION, "%s is '%.80s', but should be %s%s%s%s: %s", source, value,
                       strchr(row->type, '|') != NULL ? "one of " : "", type_text(row), row->range[0] ? " in " : "",
                       row->range, row->help);
    }
    /* 1e6 is kept as 1000000: hosts that ask for an option read digits. */
    if (strcmp(row->type, "integer") == 0 && parse_integer(value, &integer)) {
        snprintf(digits, sizeof digits, "%lld", (long long)integer);
        value = digits;
    }
    rc = gr_text_copy(context, &copy, value, error);
    if (rc < 0) return rc;
    gr_free(context, context->options.text[index]);
    context->options.text[index] = copy;
    return GRAFT_OK;
}

int32_t gr_options_init(graft_context *context, graft_error *error)
{
    for (int32_t i = 0; i < GR_OPTION_COUNT; i++) {
        char        variable[64] = "GRAFT_";
        const char *value;

        for (size_t j = 0; table[i].key[j] != '\0'; j++) {
            const char c = table[i].key[j];
            variable[6 + j] = c == '.' ? '_' : (char)toupper((unsigned char)c);
        }
        value = secure_getenv(variable);
        if (value != NULL) {
            const int32_t rc = put(context, i, variable, value, error);
            if (rc < 0) return rc;
        }
    }
    return GRAFT_OK;
}

void gr_options_fini(graft_context *context)
{
    for (int32_t i = 0; i < GR_OPTION_COUNT; i++) gr_free(context, context->options.text[i]);
}

int32_t gr_option_set(graft_context *context, const char *key, const char *value, graft_error *error)
{
    char        source[80];
    const char *near;

    for (int32_t i = 0; i < GR_OPTION_COUNT; i++) {
        if (strcmp(table[i].key, key) != 0) continue;
        snprintf(source, sizeof source, "option '%s'", key);
        return put(context, i, source, value, error);
    }
    near = gr_nearest(key, option_key, NULL);
    return gr_fail(error, GRAFT_ERR_OPTION, "there is no option '%.80s'%s%s%s", key, near ? "; did you mean '" : "",
                   near ? near : "", near ? "'?" : "");
}

int32_t gr_option_describe(const graft_context *context, int32_t index, graft_option *option, graft_error *error)
{
    if (index < 0 || index >= GR_OPTION_COUNT) {
        return gr_fail(error, GRAFT_ERR_NOT_FOUND, "option %d of %d", index, (int)GR_OPTION_COUNT);
    }
    option->live = table[index].live;
    option->key = table[index].key;
    option->type = type_text(&table[index]);
    option->initial = table[index].initial;
    option->range = table[index].range;
    option->value = gr_option_text(context, (enum gr_option_id)index);
    option->help = table[index].help;
    return GRAFT_OK;
}

const char *gr_option_text(const graft_context *context, enum gr_option_id id)
{
    return context->options.text[id] != NULL ? context->options.text[id] : table[id].initial;
}

int64_t gr_option_integer(const graft_context *context, enum gr_option_id id)
{
    int64_t number = 0;

    parse_integer(gr_option_text(context, id), &number);
    return number;
}

int gr_option_is_initial(const graft_context *context, enum gr_option_id id)
{
    const char *text = gr_option_text(context, id);
    double      number, initial;

    if (strcmp(text, table[id].initial) == 0) return 1;
    return strcmp(table[id].type, "number") == 0 && parse_number(text, &number) &&
           parse_number(table[id].initial, &initial) && number == initial;
}

double gr_option_number(const graft_context *context, enum gr_option_id id)
{
    double number = 0;

    parse_number(gr_option_text(context, id), &number);
    return number;
}

int gr_option_is(const graft_context *context, enum gr_option_id id, const char *choice)
{
    return strcmp(gr_option_text(context, id), choice) == 0;
}

int32_t gr_option_widths(const graft_context *context, enum gr_option_id id, int32_t count, int64_t *widths,
                         graft_error *error)
{
    const char *at = gr_option_text(context, id);
    int64_t     width = 0;
    int32_t     found = 0;

    while (next_width(&at, table[id].range, &width) > 0) {
        if (found < count) widths[found] = width;
        found++;
    }
    if (found != 1 && found != count) {
        return gr_fail(error, GRAFT_ERR_OPTION, "option '%s' is '%.80s', %d widths, but there are %d hidden layers",
                       table[id].key, gr_option_text(context, id), found, count);
    }
    for (int32_t i = 1; i < count && found == 1; i++) widths[i] = widths[0];
    return GRAFT_OK;
}
