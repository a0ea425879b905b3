/* Reads arbitrary bytes as a file of owners, unchanged and with a corrected CRC. They must be read or refused. Outputs
 * must be unchanged after an error, and owners that are read must be in range.
 * SPDX-License-Identifier: Apache-2.0 */
#include "target.h"

#include "base/crc.h"
#include "partition/owners.h"

enum { HEAD = 64, MOST = 4096, UNTOUCHED = 0x5a5a5a5a };

static struct memory      memory = MEMORY_INIT;
static graft_context      context;
static struct data_folder folder;

void target_begin(void)
{
    context.host.self = &memory;
    context.host.allocate = data_allocate;
    context.host.deallocate = data_deallocate;
    folder_create(&folder);
}

void target_end(void)
{
    folder_destroy(&folder);
    ok(memory.live_bytes == 0, "no memory is left");
}

static const char *owners_fault(const uint8_t *bytes, size_t count, const struct gr_graph_identity *graph,
                                int32_t parts)
{
    static int32_t owner[MOST];
    graft_error    error = GRAFT_INIT(graft_error);
    int32_t        rc;

    for (int i = 0; i < MOST; i++) owner[i] = UNTOUCHED;
    write_file(&folder, "owners", bytes, count);
    rc = gr_partition_owners_read(&context, folder_path(&folder, "owners"), graph, parts, owner, &error);
    if (memory.live_bytes != 0) return "memory leaked";
    for (int64_t v = 0; v < MOST; v++) {
        if (rc == GRAFT_OK && v < graph->n_vertices) {
            if (owner[v] < 0 || owner[v] >= parts) return "an owner is out of range";
        } else if (owner[v] != UNTOUCHED) {
            return "an output was written";
        }
    }
    if (rc == GRAFT_OK) return NULL;
    if (rc != GRAFT_ERR_FORMAT) return "another status than FORMAT";
    return strstr(error.message, "owners'") != NULL ? NULL : "no file in the message";
}

const char *target_fault(const uint8_t *bytes, size_t count)
{
    struct gr_graph_identity graph = { 5, 12, 7 };
    int32_t                  parts = 3;
    const char              *fault;
    uint8_t                 *copy;
    uint32_t                 crc;

    if (count >= HEAD) {
        memcpy(&parts, bytes + 12, sizeof parts);
        memcpy(&graph, bytes + 16, sizeof graph);
    }
    if (graph.n_vertices < 0 || graph.n_vertices > MOST) graph.n_vertices = 5;
    fault = owners_fault(bytes, count, &graph, parts);
    if (fault != NULL || count < HEAD) return fault;
    copy = malloc(count);
    files_check(copy != NULL, "malloc");
    memcpy(copy, bytes, count);
    memcpy(copy, "graftPF1", 8);
    memset(copy + 8, 0, 4);
    crc = gr_crc_plain(0, copy, count);
    memcpy(copy + 8, &crc, 4);
    fault = owners_fault(copy, count, &graph, parts);
    free(copy);
    return fault;
}
