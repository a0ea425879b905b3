/* Parses the text of an option.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/option_row.h"

#include "base/assert.h"
#include "graft_codec.h"

#include <ctype.h>
#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(sizeof(enum gr_choice) == sizeof(int32_t), "choices are stored as int32_t");

/* The text as a number in the C locale, whatever the host's; 0 if it is not one. newlocale() of "C" allocates nothing.
 */
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
    /* Ends of ranges are whole numbers: the locale does not matter. */
    low = strtod(range + (range[0] == '[' || range[0] == '('), NULL);
    if (number < low || (range[0] == '(' && number == low)) return 0;
    if (dots[2] == '\0') return 1;
    high = strtod(dots + 2, NULL);
    return range[strlen(range) - 1] == ')' ? number < high : number <= high;
}

/* The place of a word of `length` letters in "a|b|c"; -1 if it is none of them. */
static int32_t find_word(const char *words, const char *word, size_t length)
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

#define CODEC_MEMBERS(word, bits, adaptive, code) { bits, adaptive, code },

static const struct gr_halo_codec codecs[] = { GR_CODEC_MAP(CODEC_MEMBERS) };

/* "q2", or "q2/q8". */
static int parse_codec(const char *words, const char *value, struct gr_halo_codec codec[2])
{
    const size_t  length = strcspn(value, "/");
    const char   *second = value[length] == '/' ? value + length + 1 : value;
    const int32_t forward = find_word(words, value, length);
    const int32_t backward = find_word(words, second, second == value ? length : strlen(second));

    if (forward < 0 || backward < 0) return 0;
    codec[0] = codecs[forward];
    codec[1] = codecs[backward];
    return 1;
}

/* "bytes:1e6", "error:0.1" or "balance:0.5". */
static int parse_budget(const char *value, struct gr_halo_budget *budget)
{
    const char *colon = strchr(value, ':');

    memset(budget, 0, sizeof *budget);
    if (colon == NULL) return 0;
    budget->kind = (enum gr_halo_budget_kind)find_word("bytes|error|balance", value, (size_t)(colon - value));
    switch (budget->kind) {
    case GR_HALO_BUDGET_BYTES: return parse_integer(colon + 1, &budget->bytes) && budget->bytes > 0;
    case GR_HALO_BUDGET_ERROR: return parse_number(colon + 1, &budget->share) && budget->share > 0;
    case GR_HALO_BUDGET_BALANCE: return parse_number(colon + 1, &budget->share) && in_range("0..1", budget->share);
    default: return 0;
    }
}

uint64_t gr_option_bytes(const struct gr_option_row *row)
{
    switch (row->type) {
    case GR_TYPE_CHOICE: return sizeof(int32_t);
    case GR_TYPE_WIDTHS: return sizeof(struct gr_widths);
    case GR_TYPE_TEXT: return sizeof(char *);
    case GR_TYPE_CODEC: return 2 * sizeof(struct gr_halo_codec);
    case GR_TYPE_BUDGET: return sizeof(struct gr_halo_budget);
    default: return sizeof(int64_t);
    }
}

int gr_option_parse(const struct gr_option_row *row, const char *value, struct gr_options *parsed)
{
    GR_ASSERT(row->at + gr_option_bytes(row) <= sizeof *parsed);
    union {
        int32_t               choice;
        int64_t               integer;
        double                number;
        struct gr_widths      widths;
        struct gr_halo_codec  codec[2];
        struct gr_halo_budget budget;
    } v;
    int is_legal = 0;

    switch (row->type) {
    case GR_TYPE_CHOICE: is_legal = (v.choice = find_word(row->domain, value, strlen(value))) >= 0; break;
    case GR_TYPE_INTEGER:
        is_legal = parse_integer(value, &v.integer) && in_range(row->domain, (double)v.integer);
        break;
    case GR_TYPE_COUNT:
        v.integer = GR_COUNT_AUTO;
        is_legal = strcmp(value, "auto") == 0 ||
                   (parse_integer(value, &v.integer) && in_range(row->domain, (double)v.integer));
        break;
    case GR_TYPE_NUMBER: is_legal = parse_number(value, &v.number) && in_range(row->domain, v.number); break;
    case GR_TYPE_WIDTHS: is_legal = parse_widths(row->domain, value, &v.widths); break;
    case GR_TYPE_CODEC: is_legal = parse_codec(row->domain, value, v.codec); break;
    case GR_TYPE_BUDGET: is_legal = parse_budget(value, &v.budget); break;
    case GR_TYPE_TEXT: return 1;
    }
    if (is_legal) memcpy((char *)parsed + row->at, &v, gr_option_bytes(row));
    return is_legal;
}
