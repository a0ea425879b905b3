/* Checks that all ranks have the same options.
 * SPDX-License-Identifier: Apache-2.0 */
#include "comm/compare_options.h"

#include "base/assert.h"
#include "base/context.h"
#include "base/crc.h"
#include "base/option_row.h"

#include <stdio.h>
#include <string.h>

/* The options of one comparison. */
struct batch {
    int32_t     count;
    uint64_t    values[GR_COMPARE_MAX];
    const char *names[GR_COMPARE_MAX], *texts[GR_COMPARE_MAX];
    char        name[GR_COMPARE_MAX][48];
};

/* The number by which an option is compared. Texts of a value that are parsed alike, such as 1e6 and 1000000, have the
 * same number. */
static uint64_t value_of(const graft_context *context, const struct gr_option_row *row)
{
    const char    *text = gr_option_text(context, row), *parsed = gr_option_value(&context->options, row);
    const uint64_t bytes = gr_option_bytes(row);
    uint64_t       value = 0;

    if (row->type == GR_TYPE_TEXT) return gr_crc(0, text, strlen(text));
    if (bytes > sizeof value) return gr_crc(0, parsed, bytes);
    memcpy(&value, parsed, bytes);
    return value;
}

static void batch_add(const graft_context *context, const struct gr_option_row *row, struct batch *b)
{
    const char *text = gr_option_text(context, row);

    GR_ASSERT(b->count < GR_COMPARE_MAX);
    snprintf(b->name[b->count], sizeof b->name[0], "option %s", row->key);
    b->names[b->count] = b->name[b->count];
    b->texts[b->count] = text[0] != '\0' ? text : "''";
    b->values[b->count++] = value_of(context, row);
}

/* Whether an option belongs to the set of tables `groups`, has all `flags`, and must have the same value on all
 * ranks. */
static int is_compared(const struct gr_options *options, const struct gr_option_row *row, uint32_t groups,
                       uint32_t flags)
{
    return row->scope == GRAFT_SCOPE_SAME && (row->flags & flags) == flags && gr_option_in(options, row, groups);
}

uint64_t gr_comm_digest_live_options(const graft_context *context, uint32_t groups)
{
    const struct gr_option_row *row;
    uint32_t                    crc = 0;

    for (int32_t i = 0; (row = gr_option_at(&context->options, i)) != NULL; i++) {
        const uint64_t value = value_of(context, row);

        if (is_compared(&context->options, row, groups, GR_LIVE)) crc = gr_crc(crc, &value, sizeof value);
    }
    return crc;
}

static int32_t compare_with(const graft_context *context, struct gr_comm *comm, uint32_t groups, uint32_t flags,
                            graft_error *error)
{
    const struct gr_option_row *row;
    struct batch                b = { .count = 0 };

    for (int32_t i = 0; (row = gr_option_at(&context->options, i)) != NULL; i++) {
        if (is_compared(&context->options, row, groups, flags)) batch_add(context, row, &b);
        if (b.count < GR_COMPARE_MAX && gr_option_at(&context->options, i + 1) != NULL) continue;
        GR_TRY(gr_comm_compare_texts(comm, b.names, b.values, b.texts, b.count, error));
        b.count = 0;
    }
    return GRAFT_OK;
}

int32_t gr_comm_compare_options(const graft_context *context, struct gr_comm *comm, uint32_t groups, graft_error *error)
{
    return compare_with(context, comm, groups, 0, error);
}

int32_t gr_comm_compare_live_options(const graft_context *context, struct gr_comm *comm, uint32_t groups,
                                     graft_error *error)
{
    return compare_with(context, comm, groups, GR_LIVE, error);
}
