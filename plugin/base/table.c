/* The tables of calls. A host that closes a context twice, `api->close(api->context)`, reads the table of a closed
 * context. So tables are not memory of the host, which would be freed, and are used again late.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/table.h"

#include "base/context.h"
#include "base/lock.h"

#include <stdlib.h>
#include <unistd.h>

enum { LINE = 64 };

struct table {
    graft_api     api;
    struct table *next; /* of the retired tables, the next to be used */
};

/* A table is never freed: there are as many as contexts were open at a time, and GR_TABLES_KEPT. */
static struct {
    _Atomic pid_t lock;
    struct table *first, *last; /* the retired ones, the oldest first */
    int64_t       retired;
    graft_context closed; /* what they name: no handle, but memory for cancel() */
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
