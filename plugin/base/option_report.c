/* Warns of options that have no effect.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/option_row.h"

#include "base/assert.h"
#include "base/context.h"

#include <stdio.h>
#include <string.h>

/* One term of the field `needs` of an option, in the text: KEY, one of "=", "!=" and ">", and words. */
struct term {
    const char *key, *words;
    size_t      length, key_length, words_length;
    int         is_negated;
};

static struct term term_at(const char *text)
{
    struct term t = { .key = text, .length = strcspn(text, " )") };

    t.key_length = strcspn(text, "!=>");
    t.is_negated = text[t.key_length] == '!';
    t.words = text + t.key_length + 1 + t.is_negated;
    t.words_length = t.length - (size_t)(t.words - text);
    return t;
}

/* Find the option that a term names; NULL: the term is about the number of processes. */
static const struct gr_option_row *row_of(const struct gr_options *options, const struct term *t)
{
    char key[48];

    snprintf(key, sizeof key, "%.*s", (int)strcspn(t->key, ":!=>"), t->key);
    return gr_option_find(options, key);
}

/* Whether the bytes of a parsed value equal those of another one of the same option; texts are compared as texts. */
static int is_equal(const struct gr_option_row *row, const char *value, const char *other, uint64_t bytes)
{
    const char *texts[2];

    if (row->type != GR_TYPE_TEXT) return memcmp(value, other, bytes) == 0;
    memcpy(&texts[0], value, sizeof texts[0]);
    memcpy(&texts[1], other, sizeof texts[1]);
    return texts[0] != NULL && strcmp(texts[0], texts[1]) == 0;
}

/* Whether some bytes of the parsed value equal those of one of the words. */
static int is_one_of(const struct gr_options *options, const struct gr_option_row *row, const struct term *t,
                     uint64_t from, uint64_t bytes)
{
    union gr_option_value other;
    char                  word[32];

    for (size_t at = 0; at < t->words_length; at += strlen(word) + 1) {
        const size_t length = strcspn(t->words + at, "| )");

        snprintf(word, sizeof word, "%.*s", (int)length, t->words + at);
        if (gr_option_parse(row, word, &other) &&
            is_equal(row, (const char *)gr_option_value(options, row) + from, (const char *)&other + from, bytes))
            return 1;
    }
    return 0;
}

static int is_met(const struct gr_options *options, const struct term *t, uint32_t tables, int32_t n_processes)
{
    const struct gr_option_row *row = row_of(options, t);
    uint64_t                    bytes, step;

    if (row == NULL) return (t->key[t->key_length] == '>') == (n_processes > 1); /* "processes>1" or "processes=1" */
    if (!gr_option_in(options, row, tables)) return 1;
    bytes = row->type == GR_TYPE_FORM ? sizeof(int32_t) : gr_option_bytes(row); /* the word of a form */
    step = row->type == GR_TYPE_PAIR ? sizeof(int32_t) : bytes;
    if (strcspn(t->key, ":") < t->key_length) bytes = step; /* with "KEY:forward" only the first half */
    for (uint64_t from = 0; from < bytes; from += step)
        if (is_one_of(options, row, t, from, step) != t->is_negated) return 1;
    return 0;
}

/* Move from one term of alternatives to the next; NULL after the last. */
static const char *next_alternative(const char *at, const struct term *t)
{
    at += t->length;
    return strncmp(at, " or ", strlen(" or ")) == 0 ? at + strlen(" or ") : NULL;
}

/* Find the first condition that is not met; skip its parenthesis. \return an empty text if all are met */
static const char *first_unmet(const struct gr_options *options, const char *needs, uint32_t tables,
                               int32_t n_processes)
{
    while (*needs != '\0') {
        const char *const condition = needs + (*needs == '(');
        int               met = 0;

        for (const char *at = condition; at != NULL;) {
            const struct term t = term_at(at);

            met |= is_met(options, &t, tables, n_processes);
            needs = at + t.length;
            at = next_alternative(at, &t);
        }
        if (!met) return condition;
        needs += *needs == ')';
        if (*needs != '\0') needs += strlen(" and ");
    }
    return needs;
}

int gr_option_has_effect(const struct gr_options *options, const struct gr_option_row *row, uint32_t tables,
                         int32_t n_processes)
{
    return *first_unmet(options, row->needs, tables, n_processes) == '\0';
}

/* Whether the option has its default. Texts are compared as texts, all other values after parsing. */
static int is_default(const graft_context *context, const struct gr_option_row *row)
{
    union gr_option_value value;

    if (row->type == GR_TYPE_TEXT) return strcmp(gr_option_text(context, row), row->default_value) == 0;
    return gr_option_parse(row, row->default_value, &value) &&
           memcmp(gr_option_value(&context->options, row), &value, gr_option_bytes(row)) == 0;
}

/* Write "WORD, WORD or WORD" from "WORD|WORD|WORD". */
static void list_words(const struct term *t, char *list, size_t capacity)
{
    size_t length = 0;

    list[0] = '\0';
    for (size_t at = 0; at < t->words_length && length < capacity;) {
        const size_t word = strcspn(t->words + at, "| )"), next = at + word + 1;
        const int    is_last = next >= t->words_length;
        const char  *before = at == 0 ? "" : is_last ? " or " : ", ";

        length += (size_t)snprintf(list + length, capacity - length, "%s%.*s", before, (int)word, t->words + at);
        at = next;
    }
}

/* Write why a condition is not met, as "option 'KEY' is VALUE" for each of its terms. */
static void list_reasons(const graft_context *context, const char *condition, char *list, size_t capacity)
{
    size_t length = 0;

    list[0] = '\0';
    for (const char *at = condition; at != NULL && length < capacity;) {
        const struct term           t = term_at(at);
        const struct gr_option_row *other = row_of(&context->options, &t);
        char                        words[64] = "";

        if (!t.is_negated) list_words(&t, words, sizeof words);
        if (other == NULL) {
            length += (size_t)snprintf(list + length, capacity - length, "%sthere are several processes",
                                       at == condition ? "" : " and ");
            at = next_alternative(at, &t);
            continue;
        }
        length += (size_t)snprintf(list + length, capacity - length, "%soption '%s' is %.80s%s%s",
                                   at == condition ? "" : " and ", other->key, gr_option_text(context, other),
                                   t.is_negated ? "" : " and not ", words);
        at = next_alternative(at, &t);
    }
}

/* Whether an option was set, and no warning about it was logged yet. */
static int is_unreported(const graft_context *context, const struct gr_option_row *row)
{
    return !context->options.reported[gr_option_index(&context->options, row)] && !is_default(context, row);
}

static void warn(graft_context *context, const struct gr_option_row *row, const char *why)
{
    context->options.reported[gr_option_index(&context->options, row)] = 1;
    gr_log(context, GRAFT_LOG_WARNING, "option '%s' is %.80s, which has no effect %s", row->key,
           gr_option_text(context, row), why);
}

void gr_option_report_idle(graft_context *context, const char *key, const char *reason)
{
    const struct gr_option_row *row = gr_option_find(&context->options, key);
    char                        why[400];

    GR_ASSERT(row != NULL);
    if (!is_unreported(context, row)) return;
    snprintf(why, sizeof why, "because %s", reason);
    warn(context, row, why);
}

void gr_options_report(graft_context *context, uint32_t tables, int32_t n_processes)
{
    const struct gr_option_row *row;

    for (int32_t i = 0; (row = gr_option_at(&context->options, i)) != NULL; i++) {
        const char *unmet;
        char        reasons[400];

        if (!gr_option_in(&context->options, row, tables) || !is_unreported(context, row)) continue;
        unmet = first_unmet(&context->options, row->needs, tables, n_processes);
        if (*unmet == '\0') continue;
        if (strncmp(unmet, "processes", strlen("processes")) == 0) {
            warn(context, row, "in a single process");
            continue;
        }
        list_reasons(context, unmet, reasons, sizeof reasons);
        gr_option_report_idle(context, row->key, reasons);
    }
}
