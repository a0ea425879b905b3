/* Computes products with arbitrary descriptors of a sparse matrix, a mask and dense matrices, whose contents come from
 * the input. Either a product is refused with a message, or GraphBLAS computes the same result as plain loops, and
 * elements outside of C stay unchanged. Values are small multiples of 1/4, so that sums are exact. If the GraphBLAS
 * module is missing, plain loops run twice. Arrays have the lengths that the interface requires of a host.
 * SPDX-License-Identifier: Apache-2.0 */
#include "graft_mxm.h"
#include "target.h"

enum { MOST = 12, ENTRIES = 64, STRIDE = 20 };

static struct memory        memory = MEMORY_INIT;
static const graft_api     *api;
static const graft_mxm_api *mxm;

struct product {
    int64_t     row_ptr[MOST + 1];
    void       *columns, *values; /* arrays that have exactly as many elements as there are entries */
    int64_t     n_entries;
    graft_csr   csr;
    graft_dense b, c;
    graft_mask  mask;
    double      b_data[MOST * STRIDE], c_data[2][MOST * STRIDE], scale[MOST];
    uint8_t     present[MOST * STRIDE], allowed[MOST * STRIDE];
};

void target_begin(void)
{
    api = target_load(&memory);
    mxm = graft_interface(api, GRAFT_MXM_ID, sizeof(graft_mxm_api));
}

void target_end(void)
{
    api->close(api->context);
    ok(memory.live_bytes == 0, "no memory is left after close");
}

static double small_value(struct supply *s)
{
    return (int8_t)supply_byte(s) * 0.25;
}

static void fill_small(struct supply *s, graft_dtype type, double *data, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        if (type == GRAFT_F64) data[i] = small_value(s);
        else ((float *)data)[i] = (float)small_value(s);
    }
}

static int is_hostile; /* whether the input has wrong numbers; one input of four does */

/* Return the right number, or sometimes any number. */
static int64_t any_number(struct supply *s, int64_t usual)
{
    const uint8_t how = supply_byte(s);

    return how < 250 || !is_hostile ? usual : how < 253 ? (int8_t)supply_byte(s) : supply_i64(s);
}

static void any_csr(struct supply *s, struct product *p)
{
    const uint8_t types = supply_byte(s);
    const int     wide = types & 1, doubles = types & 2;
    int64_t       at = 0, place[ENTRIES] = { 0 }; /* position of each entry in its row */
    uint8_t       first = 0;

    p->csr = (graft_csr)GRAFT_INIT(graft_csr);
    p->csr.n_rows = 1 + supply_byte(s) % MOST;
    p->csr.n_cols = 1 + supply_byte(s) % MOST;
    for (int64_t row = 0; row < p->csr.n_rows; row++) {
        const int64_t begin = at;

        p->row_ptr[row] = any_number(s, at);
        if (at < ENTRIES - 4) at += supply_byte(s) % (p->csr.n_cols < 4 ? p->csr.n_cols + 1 : 5);
        for (int64_t e = begin; e < at; e++) place[e] = e - begin;
    }
    p->row_ptr[p->csr.n_rows] = p->n_entries = at;
    p->columns = malloc((size_t)at * (wide ? 8 : 4) + 1);
    p->values = malloc((size_t)at * 8 + 1);
    files_check(p->columns != NULL && p->values != NULL, "malloc");
    for (int64_t e = 0; e < at; e++) {
        int64_t column;

        /* GraphBLAS does not accept repeated columns in a row, so most matrices have none. */
        if (place[e] == 0 || types & 16) first = supply_byte(s);
        column = any_number(s, (first + place[e]) % p->csr.n_cols);
        if (wide) ((int64_t *)p->columns)[e] = column;
        else ((int32_t *)p->columns)[e] = (int32_t)column;
    }
    fill_small(s, doubles ? GRAFT_F64 : GRAFT_F32, p->values, at);
    p->csr.index_type = (graft_dtype)any_number(s, wide ? GRAFT_I64 : GRAFT_I32);
    /* With wider indices the array would be too short. */
    if ((p->csr.index_type == GRAFT_I64) != wide) p->csr.index_type = wide ? GRAFT_I64 : 99;
    p->csr.value_type = types & 4 ? 0 : doubles ? GRAFT_F64 : GRAFT_F32;
    p->csr.row_ptr = is_hostile && types & 8 && supply_byte(s) == 0 ? NULL : p->row_ptr;
    p->csr.col_idx = p->columns;
    p->csr.values = types & 4 ? NULL : p->values;
}

static void any_mask(struct supply *s, struct product *p)
{
    p->mask = (graft_mask)GRAFT_INIT(graft_mask);
    p->mask.kind = (int32_t)any_number(s, 1 + supply_byte(s) % 3);
    p->mask.flags = (uint32_t)any_number(s, supply_byte(s) % 4);
    p->mask.stride = STRIDE;
    supply_bytes(s, p->present, sizeof p->present);
    supply_bytes(s, p->allowed, sizeof p->allowed);
    for (size_t i = 0; i < sizeof p->allowed; i++) p->allowed[i] &= 1;
    p->mask.present = p->mask.kind == GRAFT_MASK_BYTES && supply_byte(s) % 4 == 0 ? NULL : p->present;
    p->mask.values = supply_byte(s) & 1 && (is_hostile || p->mask.kind == GRAFT_MASK_BYTES) ? p->allowed : NULL;
}

static int32_t run_product(const struct product *p, graft_matrix *matrix, struct supply s, const char *kernel,
                           const double *data, graft_error *error)
{
    graft_mxm_args args = GRAFT_INIT(graft_mxm_args);
    graft_dense    c = p->c;
    const uint8_t  how = supply_byte(&s);

    c.data = (void *)(uintptr_t)data;
    args.semiring = (int32_t)any_number(&s, 1 + supply_byte(&s) % 6);
    args.flags = (uint32_t)any_number(&s, supply_byte(&s) % 4);
    args.threads = 1;
    args.a = matrix;
    args.b = &p->b;
    args.c = &c;
    args.mask = how & 1 ? &p->mask : NULL;
    args.row_scale = how & 2 ? p->scale : NULL;
    if (api->set(api->context, "mxm.kernel", kernel, error) < 0)
        api->set(api->context, "mxm.kernel", "reference", error);
    return mxm->run(api->context, &args, error);
}

/* Compute the same product with both kernels, on copies of C. */
static const char *compare_kernels(struct product *p, graft_matrix *matrix, struct supply s)
{
    graft_error   error[2] = { GRAFT_INIT(graft_error), GRAFT_INIT(graft_error) };
    const int32_t first = run_product(p, matrix, s, "reference", p->c_data[0], &error[0]);
    const int32_t second = run_product(p, matrix, s, "graphblas", p->c_data[1], &error[1]);
    const size_t  size = p->c.dtype == GRAFT_F64 ? 8 : 4;
    static char   fault[1000];

    if (first != second) {
        snprintf(fault, sizeof fault, "plain loops return %d %s, GraphBLAS %d %s", first,
                 first < 0 ? error[0].message : "", second, second < 0 ? error[1].message : "");
        return fault;
    }
    if (first < 0 && (error[0].message[0] == '\0' || error[1].message[0] == '\0')) return "no sentence";
    for (size_t i = 0; i < sizeof p->c_data[0] / size; i++) {
        const double a = size == 8 ? p->c_data[0][i] : (double)((float *)p->c_data[0])[i];
        const double b = size == 8 ? p->c_data[1][i] : (double)((float *)p->c_data[1])[i];

        if (a != b) return "kernels differ in an element";
    }
    return NULL;
}

static const char *product_fault(const uint8_t *bytes, size_t count)
{
    static struct product p;
    struct supply         s = { bytes, bytes + count };
    graft_matrix         *matrix = NULL;
    graft_error           error = GRAFT_INIT(graft_error);
    graft_dtype           type;
    const char           *fault = NULL;
    int32_t               rc;

    memset(&p, 0, sizeof p);
    is_hostile = supply_byte(&s) % 4 == 3;
    any_csr(&s, &p);
    type = p.csr.value_type != 0 ? p.csr.value_type : supply_byte(&s) & 1 ? GRAFT_F64 : GRAFT_F32;
    p.b = p.c = (graft_dense)GRAFT_INIT(graft_dense);
    p.b.dtype = p.c.dtype = type;
    p.b.n_rows = any_number(&s, p.csr.n_cols);
    p.c.n_rows = any_number(&s, p.csr.n_rows);
    p.b.n_cols = 1 + supply_byte(&s) % MOST;
    p.c.n_cols = any_number(&s, p.b.n_cols);
    p.b.stride = any_number(&s, STRIDE);
    p.c.stride = any_number(&s, STRIDE);
    /* With larger strides the arrays would be too short. */
    if (p.b.stride > STRIDE || p.c.stride > STRIDE) p.b.stride = p.c.stride = 1;
    p.b.data = p.b_data;
    p.c.data = p.c_data[0];
    fill_small(&s, type, p.b_data, MOST * STRIDE);
    fill_small(&s, type, p.c_data[0], MOST * STRIDE);
    fill_small(&s, type, p.scale, MOST);
    memcpy(p.c_data[1], p.c_data[0], sizeof p.c_data[0]);
    any_mask(&s, &p);
    rc = mxm->matrix_create(api->context, &p.csr, 0, &matrix, &error);
    if (rc == GRAFT_OK) fault = compare_kernels(&p, matrix, s);
    else if (error.message[0] == '\0') fault = "no sentence";
    mxm->matrix_destroy(matrix);
    free(p.columns);
    free(p.values);
    return fault;
}

/* The first use of a module allocates memory that stays allocated. Only memory that a second run adds is a leak. */
const char *target_fault(const uint8_t *bytes, size_t count)
{
    int64_t     live = memory.live_bytes;
    const char *fault = product_fault(bytes, count);

    if (fault != NULL || memory.live_bytes == live) return fault;
    live = memory.live_bytes;
    fault = product_fault(bytes, count);
    return fault == NULL && memory.live_bytes != live ? "memory leaked" : fault;
}
