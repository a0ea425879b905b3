/* Checks graft-metis with 64-bit indices, and compares it with that of this machine: test_metis_wide WIDE-METIS
 * [GRAFT-METIS]. Graphs beyond 32 bits must be refused by one and accepted by the other.
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness/graphs.h"
#include "harness/tap.h"

#include "base/context.h"
#include "partition/metis.h"

#include <string.h>

static graft_context *context;

static void use_program(const char *program)
{
    graft_error error = GRAFT_INIT(graft_error);

    if (context->api->set(context, "partition.program", program, &error) < 0) abort();
}

/* The METIS of Debian has 32-bit indices, the stand-in of the test 64-bit ones. */
static void test_widths(const char *wide, const char *narrow)
{
    graft_error  error = GRAFT_INIT(graft_error);
    struct graph graph;
    int32_t      owner[400], rc;
    int          right = 1;

    if (narrow != NULL) {
        use_program(narrow);
        rc = gr_partition_metis_check_size(context, 1000, INT64_C(1) << 31, NULL, &error);
        if (!ok(rc == GRAFT_OK || (rc == GRAFT_ERR_UNSUPPORTED && strstr(error.message, "32-bit indices") != NULL),
                "graft-metis reports that METIS has 32-bit indices, or accepts 2^31 entries"))
            diag("%d %s", rc, error.message);
    }
    use_program(wide);
    rc = gr_partition_metis_check_size(context, 1000, INT64_C(1) << 40, NULL, &error);
    if (!ok(rc == GRAFT_OK, "a graft-metis with 64-bit indices accepts 2^40 entries")) diag("%d %s", rc, error.message);
    graph_init(&graph, 0);
    graph.slice.train_mask = NULL;
    rc = gr_partition_metis(&(struct gr_partition_input){ .context = context, .slice = &graph.slice, .parts = 8 },
                            owner, &error);
    for (int64_t v = 0; v < graph.rows.n_rows; v++) right = right && owner[v] == v % 8;
    if (!ok(rc == GRAFT_OK && right, "owners of a graft-metis with 64-bit indices are received"))
        diag("%d %s", rc, error.message);
    graph_fini(&graph);
}

int main(int argc, char **argv)
{
    const graft_api *api;
    graft_error      error = GRAFT_INIT(graft_error);

    if (argc < 2 || graft_open(GRAFT_ABI_VERSION, GRAFT_ABI_VERSION, NULL, &api, &error) < 0) return 2;
    context = api->context;
    test_widths(argv[1], argc > 2 ? argv[2] : NULL);
    api->close(context);
    return done();
}
