/* Finds the rows of options in their tables, and their values.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/option_row.h"

#include "base/assert.h"
#include "base/memory.h"

#include <stdio.h>
#include <string.h>

/* The structs of parsed values begin at multiples of this. */
enum { ALIGNMENT = 16 };

static uint64_t place_of(const struct gr_options *options, int32_t table)
{
    uint64_t at = 0;

    for (int32_t i = 0; i < table; i++)
        at += (options->list->tables[i].table->bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    return at;
}

int32_t gr_option_table_index(const struct gr_options *options, const struct gr_option_table *table)
{
    int32_t i = 0;

    while (options->list->tables[i].table != table) i++;
    GR_ASSERT(i < options->list->n_tables);
    return i;
}

const void *gr_options_of(const struct gr_options *options, const struct gr_option_table *table)
{
    return options->values + place_of(options, gr_option_table_index(options, table));
}

uint32_t gr_options_bit(const graft_context *context, const struct gr_option_table *table)
{
    return 1u << gr_option_table_index(&context->options, table);
}

int gr_option_in(const struct gr_options *options, const struct gr_option_row *row, uint32_t tables)
{
    return (row->flags & GR_EVERYWHERE) != 0 || (tables >> gr_option_table_index(options, row->table) & 1) != 0;
}

int32_t gr_option_count(const struct gr_options *options)
{
    int32_t count = 0;

    for (int32_t i = 0; i < options->list->n_tables; i++) count += options->list->tables[i].table->count;
    return count;
}

int32_t gr_option_index(const struct gr_options *options, const struct gr_option_row *row)
{
    int32_t before = 0;

    for (int32_t i = 0; options->list->tables[i].table != row->table; i++)
        before += options->list->tables[i].table->count;
    return before + (int32_t)(row - row->table->rows);
}

const struct gr_option_row *gr_option_at(const struct gr_options *options, int32_t index)
{
    for (int32_t i = 0; i < options->list->n_tables && index >= 0; i++) {
        const struct gr_option_table *table = options->list->tables[i].table;

        if (index < table->count) return &table->rows[index];
        index -= table->count;
    }
    return NULL;
}

const struct gr_option_row *gr_option_find(const struct gr_options *options, const char *key)
{
    const struct gr_option_row *row;

    for (int32_t i = 0; (row = gr_option_at(options, i)) != NULL; i++)
        if (strcmp(row->key, key) == 0) return row;
    return NULL;
}

const struct gr_removed_option *gr_option_removed(const struct gr_options *options, const char *key)
{
    for (const struct gr_removed_option *r = options->list->removed; r->key != NULL; r++)
        if (strcmp(r->key, key) == 0) return r;
    return NULL;
}

int gr_option_is_harmless(const struct gr_removed_option *removed, const char *value)
{
    return removed->harmless != NULL && gr_option_word(removed->harmless, value, strlen(value)) >= 0;
}

const void *gr_option_value(const struct gr_options *options, const struct gr_option_row *row)
{
    return (const char *)gr_options_of(options, row->table) + row->at;
}

const char *gr_option_text(const graft_context *context, const struct gr_option_row *row)
{
    const char *text = context->options.text[gr_option_index(&context->options, row)];

    return text != NULL ? text : row->default_value;
}

const char *gr_option_find_text(const graft_context *context, const char *key)
{
    const struct gr_option_row *row = gr_option_find(&context->options, key);

    return row != NULL && row->type == GR_TYPE_TEXT ? gr_option_text(context, row) : NULL;
}

int gr_option_is_default(const graft_context *context, const char *key)
{
    const struct gr_option_row *row = gr_option_find(&context->options, key);

    GR_ASSERT(row != NULL);
    return context->options.source[gr_option_index(&context->options, row)] == GR_SOURCE_DEFAULT;
}

int32_t gr_options_init_values(graft_context *context, struct gr_options *values, graft_error *error)
{
    const struct gr_option_row *row;

    values->context = context;
    values->list = context->options.list;
    if (GR_NEW(context, values->values, (int64_t)place_of(values, values->list->n_tables), error) < 0)
        return GRAFT_ERR_NOMEM;
    for (int32_t i = 0; (row = gr_option_at(values, i)) != NULL; i++) {
        const int is_legal = gr_option_set_value(values, row, row->default_value);

        GR_ASSERT(is_legal);
        (void)is_legal;
    }
    return GRAFT_OK;
}

int gr_option_set_value(struct gr_options *values, const struct gr_option_row *row, const char *value)
{
    union gr_option_value parsed;

    if (!gr_option_parse(row, value, &parsed)) return 0;
    memcpy(values->values + place_of(values, gr_option_table_index(values, row->table)) + row->at, &parsed,
           gr_option_bytes(row));
    return 1;
}

void gr_options_copy_values(struct gr_options *to, const struct gr_options *from, const struct gr_option_table *table)
{
    memcpy(to->values + place_of(to, gr_option_table_index(to, table)), gr_options_of(from, table), table->bytes);
}

/* Append the key and the value of one option to a copy. */
static int32_t copy_option(const graft_context *context, const struct gr_option_row *row, char *to, int64_t bytes)
{
    return 1 + snprintf(to, (size_t)bytes, "%s%c%s", row->key, 0, gr_option_text(context, row));
}

int32_t gr_options_copy(const graft_context *context, uint32_t tables, char **copy, graft_error *error)
{
    const struct gr_option_row *row;
    int64_t                     bytes = 1, at = 0;

    for (int32_t i = 0; (row = gr_option_at(&context->options, i)) != NULL; i++)
        if (gr_option_in(&context->options, row, tables)) bytes += copy_option(context, row, NULL, 0);
    if (GR_NEW(context, *copy, bytes, error) < 0) return GRAFT_ERR_NOMEM;
    for (int32_t i = 0; (row = gr_option_at(&context->options, i)) != NULL; i++)
        if (gr_option_in(&context->options, row, tables)) at += copy_option(context, row, *copy + at, bytes - at);
    return GRAFT_OK;
}

const char *gr_options_copied(const char *copy, const char *key)
{
    for (const char *at = copy; *at != '\0'; at += strlen(at) + 1) {
        const char *value = at + strlen(at) + 1;

        if (strcmp(at, key) == 0) return value;
        at = value;
    }
    return NULL;
}
