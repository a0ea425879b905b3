/* The tables of public calls. A host that closes a context twice, with `api->close(api->context)`, reads the table of a
 * closed context. So tables are not in memory of the host, which would be freed, and a table is not reused soon.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/table.h"

#include "base/context.h"
#include "base/lock.h"

#include <stdlib.h>
#include <unistd.h>

enum { LINE = 64 };

struct table {
    graft_api     api;
    struct table *next; /* next table in the list of retired ones */
};

/* A table is never freed: there are at most GR_TABLES_KEPT more than contexts that were open at the same time. */
static struct {
    _Atomic pid_t lock;
    struct table *first, *last; /* retired tables, oldest first */
    int64_t       retired;
    graft_context closed; /* context of retired tables: not a valid handle, but cancel() may write to it */
} gr_tables;

static struct table *take_oldest(void)
{
    struct table *table = NULL;

    gr_lock_word(&gr_tables.lock, getpid());
    if (gr_tables.retired > GR_TABLES_KEPT) {
        table = gr_tables.first;
        gr_tables.first = table->next;
        gr_tables.retired--;
    }
    gr_unlock_word(&gr_tables.lock);
    return table;
}

int32_t gr_table_create(const graft_api *calls, graft_context *context, graft_api **api, graft_error *error)
{
    struct table *made = take_oldest();

    if (made == NULL) made = aligned_alloc(LINE, (sizeof *made + LINE - 1) / LINE * LINE);
    if (made == NULL) return gr_fail(error, GRAFT_ERR_NOMEM, "no memory for a table of calls");
    made->api = *calls;
    made->api.context = context;
    *api = &made->api;
    return GRAFT_OK;
}

void gr_table_retire(graft_api *api)
{
    struct table *table = (struct table *)api;

    if (table == NULL) return;
    gr_lock_word(&gr_tables.lock, getpid());
    api->context = &gr_tables.closed;
    table->next = NULL;
    if (gr_tables.retired++ == 0) gr_tables.first = table;
    else gr_tables.last->next = table;
    gr_tables.last = table;
    gr_unlock_word(&gr_tables.lock);
}
