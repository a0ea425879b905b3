/* Finds out which kernels this machine can use, see harness/kernels.h.
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness/kernels.h"

#include "graft_load.h"

#include <string.h>

/* Ask explain() about the smallest product. The first line of its text names the kernel that would run, and further
 * lines say why other kernels cannot. */
static void explain_smallest(const graft_api *api, char *text, uint64_t capacity)
{
    static int64_t       row_ptr[] = { 0, 1 };
    static int32_t       column[] = { 0 };
    static float         one[] = { 1 }, result[1];
    const graft_mxm_api *mxm = graft_interface(api, GRAFT_MXM_ID, sizeof *mxm);
    graft_csr            csr = GRAFT_INIT(graft_csr);
    graft_dense          b = { sizeof b, GRAFT_F32, 1, 1, 1, one };
    graft_dense          c = { sizeof c, GRAFT_F32, 1, 1, 1, result };
    graft_mxm_args       args = GRAFT_INIT(graft_mxm_args);
    graft_matrix        *matrix = NULL;

    csr.index_type = GRAFT_I32;
    csr.n_rows = csr.n_cols = 1;
    csr.row_ptr = row_ptr;
    csr.col_idx = column;
    if (mxm->matrix_create(api->context, &csr, 0, &matrix, NULL) < 0) return;
    args.semiring = GRAFT_PLUS_TIMES;
    args.a = matrix;
    args.b = &b;
    args.c = &c;
    mxm->explain(api->context, &args, text, capacity, NULL);
    mxm->matrix_destroy(matrix);
}

const char *kernel_lack(const graft_api *api, int32_t index, graft_module_entry *entry)
{
    static const char refusal[] = "graphblas cannot: ";
    static char       text[512];
    char             *reason;

    text[0] = '\0';
    api->set(api->context, "mxm.kernel", entry->name, NULL);
    explain_smallest(api, text, sizeof text);
    api->module_info(api->context, index, entry, NULL);
    if (entry->state != 1) return entry->detail;
    reason = strstr(text, refusal);
    if (reason == NULL || strcmp(entry->name, "graphblas") != 0) return NULL;
    reason += strlen(refusal);
    reason[strcspn(reason, "\n")] = '\0';
    return reason;
}
