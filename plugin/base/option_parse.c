/* Parses the text of an option.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/option_row.h"

#include <ctype.h>
#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(sizeof(enum gr_choice) == sizeof(int32_t), "choices are stored as int32_t");

/* Read a text as a number in the C locale, whatever the host's locale. \return 0 if it is not a number. newlocale() of
 * "C" allocates nothing. */
static int parse_number(const char *text, double *number)
{
    locale_t c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    char    *end = NULL;

    if (c_locale == (locale_t)0) return 0;
    *number = strtod_l(text, &end, c_locale);
    freelocale(c_locale);
    return end != text && *end == '\0' && isfinite(*number) && !isspace((unsigned char)text[0]);
}

/* Read an integer, which may be written as 1e6. */
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

/* Whether a number is in the range with which a text begins: "low..high", "[low..high)", "low.." or "". */
static int in_range(const char *range, double number)
{
    const char *dots = strstr(range, ".."), *end;
    double      low, high;

    if (dots == NULL) return 1;
    /* The ends of ranges are integers, so the locale does not matter. */
    low = strtod(range + (range[0] == '[' || range[0] == '('), NULL);
    if (number < low || (range[0] == '(' && number == low)) return 0;
    high = strtod(dots + 2, (char **)&end);
    if (end == dots + 2) return 1;
    return *end == ')' ? number < high : number <= high;
}

int32_t gr_option_word(const char *words, const char *word, size_t length)
{
    for (int32_t i = 0;; i++) {
        const size_t here = strcspn(words, "|");

        if (here == length && strncmp(words, word, length) == 0) return i;
        if (words[here] == '\0') return -1;
        words += here + 1;
    }
}

static int parse_widths(const char *range, const char *value, struct gr_widths *widths)
{
    char digits[16];

    memset(widths, 0, sizeof *widths);
    for (;; value++) {
        const size_t length = strcspn(value, ",");
        int64_t     *width = &widths->width[widths->count];

        if (length == 0 || length >= sizeof digits || widths->count == GR_WIDTHS_MAX) return 0;
        memcpy(digits, value, length);
        digits[length] = '\0';
        if (!parse_integer(digits, width) || !in_range(range, (double)*width)) return 0;
        widths->count++;
        value += length;
        if (*value == '\0') return 1;
    }
}

/* Read "q2" or "q2/q8". */
static int parse_pair(const char *words, const char *value, struct gr_pair *pair)
{
    const size_t length = strcspn(value, "/");
    const char  *second = value[length] == '/' ? value + length + 1 : value;

    pair->word[0] = gr_option_word(words, value, length);
    pair->word[1] = gr_option_word(words, second, second == value ? length : strlen(second));
    return pair->word[0] >= 0 && pair->word[1] >= 0;
}

/* Find the part of a value after the next colon; NULL: there is none. */
static const char *next_part(const char *at)
{
    at += strcspn(at, ":");
    return *at == ':' ? at + 1 : NULL;
}

/* Read one number of a form. `domain` begins with the part for this number, such as "1..=30" or "first?"; *at is the
 * next part of the value, or NULL: then the default is read. If an optional word is expected and *at is another text,
 * *at belongs to the next part of the domain. \return whether the number is legal */
static int parse_form_number(const char *domain, const char **at, double *number)
{
    const size_t length = strcspn(domain, "=:|?"), given = *at != NULL ? strcspn(*at, ":") : 0;
    char         text[64];
    int64_t      whole;

    if (domain[length] == '?') {
        *number = *at != NULL && given == length && strncmp(*at, domain, length) == 0;
        if (*number != 0) *at = next_part(*at);
        return 1;
    }
    if ((*at == NULL && domain[length] != '=') || given >= sizeof text) return 0;
    if (*at != NULL) snprintf(text, sizeof text, "%.*s", (int)given, *at);
    else snprintf(text, sizeof text, "%.*s", (int)strcspn(domain + length + 1, ":|"), domain + length + 1);
    if (*at != NULL) *at = next_part(*at);
    if (domain[0] == '[' || domain[0] == '(') return parse_number(text, number) && in_range(domain, *number);
    if (!parse_integer(text, &whole)) return 0;
    *number = (double)whole;
    return in_range(domain, *number);
}

/* Whether the domain of a form begins with a range, so that its values have no word. */
static int is_wordless(const char *domain)
{
    const char *dots = strstr(domain, "..");

    return dots != NULL && (size_t)(dots - domain) < strcspn(domain, ":|");
}

/* Read "step:30:0.1", "step:30" or "step", with a domain such as "constant|step:1..=30:[0..1]=0.1". */
static int parse_form(const char *domain, const char *value, struct gr_form *form)
{
    const size_t length = strcspn(value, ":");
    const char  *at = value;

    memset(form, 0, sizeof *form);
    if (!is_wordless(domain)) {
        for (; strcspn(domain, ":|") != length || strncmp(domain, value, length) != 0; form->word++) {
            domain += strcspn(domain, "|");
            if (*domain++ == '\0') return 0;
        }
        domain += length + (domain[length] == ':');
        at = next_part(value);
    }
    for (int32_t n = 0; *domain != '\0' && *domain != '|'; n++) {
        if (n == GR_FORM_NUMBERS || !parse_form_number(domain, &at, &form->number[n])) return 0;
        domain += strcspn(domain, ":|");
        domain += *domain == ':';
    }
    return at == NULL;
}

uint64_t gr_option_bytes(const struct gr_option_row *row)
{
    switch (row->type) {
    case GR_TYPE_CHOICE: return sizeof(int32_t);
    case GR_TYPE_WIDTHS: return sizeof(struct gr_widths);
    case GR_TYPE_TEXT: return sizeof(char *);
    case GR_TYPE_PAIR: return sizeof(struct gr_pair);
    case GR_TYPE_FORM: return sizeof(struct gr_form);
    default: return sizeof(int64_t);
    }
}

int gr_option_parse(const struct gr_option_row *row, const char *value, union gr_option_value *v)
{
    switch (row->type) {
    case GR_TYPE_CHOICE: return (v->choice = gr_option_word(row->domain, value, strlen(value))) >= 0;
    case GR_TYPE_INTEGER: return parse_integer(value, &v->integer) && in_range(row->domain, (double)v->integer);
    case GR_TYPE_NUMBER: return parse_number(value, &v->number) && in_range(row->domain, v->number);
    case GR_TYPE_WIDTHS: return parse_widths(row->domain, value, &v->widths);
    case GR_TYPE_PAIR: return parse_pair(row->domain, value, &v->pair);
    case GR_TYPE_FORM: return parse_form(row->domain, value, &v->form);
    case GR_TYPE_TEXT:
        v->text = value;
        return row->domain[0] == '\0' || strchr(value, '/') != NULL ||
               gr_option_word(row->domain, value, strlen(value)) >= 0;
    }
    return 0;
}

int32_t gr_option_spread_widths(const struct gr_widths *list, int32_t count, const char *name, const char *places,
                                int64_t *widths, graft_error *error)
{
    if (list->count != 1 && list->count != count)
        return gr_fail(error, GRAFT_ERR_OPTION, "%s is a list of %d numbers, but there are %d %s", name, list->count,
                       count, places);
    for (int32_t i = 0; i < count; i++) widths[i] = list->width[list->count == 1 ? 0 : i];
    return GRAFT_OK;
}
