/* Checks that graft.mxm/1 is GrB_mxm: every kernel, and the oracle that other tests use, are compared with GrB_mxm with
 * a real mask, descriptor and accumulator. This host uses GraphBLAS itself: it initialises GraphBLAS before Graft is
 * loaded, has unusual settings, and finalises it after Graft is closed.
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness/kernels.h"
#include "harness/tap.h"
#include "oracle/oracle.h"
#include "oracle/product.h"
#include "oracle/sample.h"

#include "graft_load.h"

#include <GraphBLAS.h>
#include <stdlib.h>
#include <string.h>

enum { KERNELS_MAX = 16, SEMIRINGS = GRAFT_MIN_SECOND + 1 };

/** A kernel or the oracle, whose results are compared with those of GraphBLAS. */
struct candidate {
    char         name[48];
    int          is_oracle;
    struct tally tally[SEMIRINGS]; /* counts for each semiring, in one type of numbers */
    int          runs, by_itself;
};

static const graft_api     *api;
static const graft_mxm_api *mxm;
static graft_context       *context;
static struct candidate     candidates[KERNELS_MAX];
static int                  n_candidates, n_finalized;

static const char *const semiring_name[SEMIRINGS] = { "",           "plus_times", "plus_second", "max_times",
                                                      "max_second", "min_times",  "min_second" };

static void graphblas_spec_must(int succeeded, const char *call)
{
    if (succeeded) return;
    printf("Bail out! %s failed\n", call);
    exit(1);
}
#define CHECKED(call) graphblas_spec_must((call) == GrB_SUCCESS, #call)

/* -- GraphBLAS matrices ------------------------------------------------------------------------------------------- */

/** The entries of a GrB_Matrix. They are stored as double, which holds every float and bool. */
struct entries {
    GrB_Index *row, *column, count;
    double    *value;
};

static struct entries new_entries(int64_t capacity)
{
    const struct entries entries = { oracle_new(capacity, sizeof(GrB_Index)), oracle_new(capacity, sizeof(GrB_Index)),
                                     0, oracle_new(capacity, sizeof(double)) };
    return entries;
}

static void free_entries(struct entries *entries)
{
    free(entries->row);
    free(entries->column);
    free(entries->value);
}

static void add_entry(struct entries *entries, int64_t row, int64_t column, double value)
{
    entries->row[entries->count] = (GrB_Index)row;
    entries->column[entries->count] = (GrB_Index)column;
    entries->value[entries->count++] = value;
}

/** Make a matrix, and free the entries. */
static GrB_Matrix graphblas_spec_build(struct entries *entries, GrB_Type type, int64_t m, int64_t n)
{
    GrB_Matrix matrix = NULL;

    CHECKED(GrB_Matrix_new(&matrix, type, (GrB_Index)m, (GrB_Index)n));
    /* There is no operator for duplicates, so a duplicate would be an error. */
    CHECKED(GrB_Matrix_build_FP64(matrix, entries->row, entries->column, entries->value, entries->count, GrB_NULL));
    free_entries(entries);
    return matrix;
}

static double graphblas_spec_number_at(const void *data, graft_dtype dtype, int64_t at)
{
    switch (dtype) {
    case GRAFT_F32: return (double)((const float *)data)[at];
    case GRAFT_F64: return ((const double *)data)[at];
    case GRAFT_I32: return ((const int32_t *)data)[at];
    default: return (double)((const int64_t *)data)[at];
    }
}

static GrB_Type type_of(graft_dtype dtype)
{
    return dtype == GRAFT_F32 ? GrB_FP32 : GrB_FP64;
}

static GrB_Matrix from_csr(const graft_csr *csr, GrB_Type type)
{
    struct entries entries = new_entries(csr->row_ptr[csr->n_rows]);

    for (int64_t i = 0; i < csr->n_rows; i++) {
        for (int64_t p = csr->row_ptr[i]; p < csr->row_ptr[i + 1]; p++) {
            add_entry(&entries, i, (int64_t)graphblas_spec_number_at(csr->col_idx, csr->index_type, p),
                      csr->values != NULL ? graphblas_spec_number_at(csr->values, csr->value_type, p) : 1);
        }
    }
    return graphblas_spec_build(&entries, type, csr->n_rows, csr->n_cols);
}

/** Make a full matrix. */
static GrB_Matrix from_dense(const graft_dense *dense)
{
    struct entries entries = new_entries(dense->n_rows * dense->n_cols);

    for (int64_t i = 0; i < dense->n_rows; i++)
        for (int64_t j = 0; j < dense->n_cols; j++)
            add_entry(&entries, i, j, graphblas_spec_number_at(dense->data, dense->dtype, i * dense->stride + j));
    return graphblas_spec_build(&entries, type_of(dense->dtype), dense->n_rows, dense->n_cols);
}

/** Make the mask that a graft_mask describes: its entries with their values. NULL if there is none. */
static GrB_Matrix from_mask(const graft_mask *mask, int64_t m, int64_t n)
{
    struct entries entries;

    if (mask == NULL) return NULL;
    entries = new_entries(m * n);
    for (int64_t i = 0; i < m; i++) {
        for (int64_t j = 0; j < n; j++) {
            const int64_t at = i * mask->stride + j;
            int           there, value = 1;

            if (mask->kind == GRAFT_MASK_ROWS) {
                there = mask->present[i / 8] & 1 << i % 8;
            } else if (mask->kind == GRAFT_MASK_BITS) {
                there = mask->present[i * mask->stride + j / 8] & 1 << j % 8;
            } else {
                there = mask->present == NULL || mask->present[at];
                value = mask->values == NULL || mask->values[at];
            }
            if (there) add_entry(&entries, i, j, value);
        }
    }
    return graphblas_spec_build(&entries, GrB_BOOL, m, n);
}

/** All elements by rows, 0 where there is no entry. */
static void to_dense(GrB_Matrix matrix, int64_t m, int64_t n, double *dense)
{
    struct entries entries = new_entries(m * n);

    entries.count = (GrB_Index)(m * n);
    CHECKED(GrB_Matrix_extractTuples_FP64(entries.row, entries.column, entries.value, &entries.count, matrix));
    for (int64_t at = 0; at < m * n; at++) dense[at] = 0;
    for (GrB_Index e = 0; e < entries.count; e++)
        dense[entries.row[e] * (GrB_Index)n + entries.column[e]] = entries.value[e];
    free_entries(&entries);
}

/* -- the product as GraphBLAS has it ------------------------------------------------------------------------------ */

/** A product, the same product in GraphBLAS, and its results. */
struct trial {
    struct product              product;
    const struct product_shape *shape;
    int                         mask_number;
    GrB_Matrix                  a, b, c, mask; /* c is C before the product */
    double                     *allowed;       /* [m x n] 1 where the mask allows C to be written, otherwise 0 */
    double                     *expected;      /* [m x n] C after GrB_mxm */
};

static GrB_Semiring new_semiring(graft_semiring semiring, graft_dtype dtype, GrB_BinaryOp *add)
{
    const int          wide = dtype == GRAFT_F64, monoid = (semiring - GRAFT_PLUS_TIMES) / 2;
    const int          second = (semiring - GRAFT_PLUS_TIMES) % 2;
    const GrB_Monoid   monoids[3][2] = { { GrB_PLUS_MONOID_FP32, GrB_PLUS_MONOID_FP64 },
                                         { GrB_MAX_MONOID_FP32, GrB_MAX_MONOID_FP64 },
                                         { GrB_MIN_MONOID_FP32, GrB_MIN_MONOID_FP64 } };
    const GrB_BinaryOp adds[3][2] = { { GrB_PLUS_FP32, GrB_PLUS_FP64 },
                                      { GrB_MAX_FP32, GrB_MAX_FP64 },
                                      { GrB_MIN_FP32, GrB_MIN_FP64 } };
    const GrB_BinaryOp multiplies[2][2] = { { GrB_TIMES_FP32, GrB_TIMES_FP64 }, { GrB_SECOND_FP32, GrB_SECOND_FP64 } };
    GrB_Semiring       made = NULL;

    CHECKED(GrB_Semiring_new(&made, monoids[monoid][wide], multiplies[second][wide]));
    *add = adds[monoid][wide];
    return made;
}

static GrB_Descriptor descriptor_of(const graft_mask *mask, uint32_t flags)
{
    const GrB_Descriptor descriptors[2][4] = {
        { GrB_NULL, GrB_DESC_S, GrB_DESC_C, GrB_DESC_SC },
        { GrB_DESC_R, GrB_DESC_RS, GrB_DESC_RC, GrB_DESC_RSC },
    };

    return descriptors[(flags & GRAFT_MXM_REPLACE) != 0][mask != NULL ? mask->flags : 0];
}

/** Find out with GrB_assign which elements the mask allows. */
static void ask_allowed(struct trial *trial)
{
    const graft_dense *c = &trial->product.c_view;
    GrB_Matrix         marks = NULL;

    CHECKED(GrB_Matrix_new(&marks, GrB_BOOL, (GrB_Index)c->n_rows, (GrB_Index)c->n_cols));
    CHECKED(GrB_Matrix_assign_BOOL(marks, trial->mask, GrB_NULL, true, GrB_ALL, (GrB_Index)c->n_rows, GrB_ALL,
                                   (GrB_Index)c->n_cols, descriptor_of(trial->product.args.mask, 0)));
    to_dense(marks, c->n_rows, c->n_cols, trial->allowed);
    CHECKED(GrB_Matrix_free(&marks));
}

static void ask_product(struct trial *trial)
{
    const graft_mxm_args *args = &trial->product.args;
    GrB_BinaryOp          add;
    GrB_Semiring          semiring = new_semiring(args->semiring, args->c->dtype, &add);
    GrB_Matrix            c = NULL;

    CHECKED(GrB_Matrix_dup(&c, trial->c));
    CHECKED(GrB_mxm(c, trial->mask, args->flags & GRAFT_MXM_ACCUMULATE ? add : GrB_NULL, semiring, trial->a, trial->b,
                    descriptor_of(args->mask, args->flags)));
    to_dense(c, args->c->n_rows, args->c->n_cols, trial->expected);
    CHECKED(GrB_Matrix_free(&c));
    CHECKED(GrB_Semiring_free(&semiring));
}

/* -- trials ------------------------------------------------------------------------------------------------------- */

static graft_matrix *graphblas_spec_make_matrix(const graft_csr *csr)
{
    graft_matrix *matrix = NULL;

    graphblas_spec_must(mxm->matrix_create(context, csr, 0, &matrix, NULL) == GRAFT_OK,
                        "matrix_create() of a good matrix");
    return matrix;
}

/** Replace some zeros of C by negative ones, which elements that the mask protects must keep. */
static void plant_negative_zeros(struct product *product)
{
    const graft_dense *c = &product->c_view;

    for (int64_t at = 0; at < c->n_rows * c->n_cols; at += 7)
        sample_put(c->data, c->dtype, at / c->n_cols * c->stride + at % c->n_cols, -0.0);
    memcpy(product->c.before, product->c.memory, product->c.bytes);
}

static void open_trial(struct trial *trial, struct sample *sample, const struct product_shape *shape)
{
    memset(trial, 0, sizeof *trial);
    trial->shape = shape;
    product_init(&trial->product, sample, shape);
    plant_negative_zeros(&trial->product);
    trial->product.args.a = graphblas_spec_make_matrix(&trial->product.a.csr);
    trial->a = from_csr(&trial->product.a.csr, type_of(shape->dtype));
    trial->b = from_dense(&trial->product.b_view);
    trial->c = from_dense(&trial->product.c_view);
    trial->allowed = oracle_new(shape->m * shape->n, sizeof(double));
    trial->expected = oracle_new(shape->m * shape->n, sizeof(double));
}

static void close_trial(struct trial *trial)
{
    mxm->matrix_destroy(trial->product.args.a);
    product_fini(&trial->product);
    CHECKED(GrB_Matrix_free(&trial->a));
    CHECKED(GrB_Matrix_free(&trial->b));
    CHECKED(GrB_Matrix_free(&trial->c));
    free(trial->allowed);
    free(trial->expected);
}

static void graphblas_spec_set_mask(struct trial *trial, int number)
{
    trial->mask_number = number;
    product_set_mask(&trial->product, number);
    trial->mask = from_mask(trial->product.args.mask, trial->shape->m, trial->shape->n);
    ask_allowed(trial);
}

/** Compare the elements that the mask protects bitwise with those before. The result is NULL or a sentence in static
 *  memory. */
static const char *forbidden_differs(const struct trial *trial)
{
    static char           text[96];
    const struct product *p = &trial->product;
    const graft_dense    *c = &p->c_view;
    const size_t          bytes = c->dtype == GRAFT_F32 ? 4 : 8;
    const unsigned char  *data = p->c.data, *before = p->c.before + (data - p->c.memory);

    for (int64_t at = 0; at < c->n_rows * c->n_cols; at++) {
        const size_t place = (size_t)(at / c->n_cols * c->stride + at % c->n_cols) * bytes;

        if (trial->allowed[at] != 0 || memcmp(data + place, before + place, bytes) == 0) continue;
        snprintf(text, sizeof text, "the mask forbids C(%lld,%lld), but it has changed", (long long)(at / c->n_cols),
                 (long long)(at % c->n_cols));
        return text;
    }
    return NULL;
}

/** Compute C with the candidate. The result is NULL, or the reason why it cannot. */
static const char *compute(struct trial *trial, const struct candidate *candidate)
{
    static graft_error error;
    struct product    *p = &trial->product;
    const graft_dense *c = &p->c_view;

    product_restore(p);
    if (candidate->is_oracle) {
        product_expect(p);
        for (int64_t at = 0; at < c->n_rows * c->n_cols; at++)
            sample_put(c->data, c->dtype, at / c->n_cols * c->stride + at % c->n_cols, p->expect_c[at]);
        return NULL;
    }
    error = GRAFT_INIT(graft_error);
    if (api->set(context, "mxm.kernel", candidate->name, &error) == GRAFT_OK &&
        mxm->run(context, &p->args, &error) == GRAFT_OK)
        return NULL;
    return error.message;
}

static void note_fault(const struct trial *trial, const char *fault, struct tally *tally)
{
    const struct product_shape *shape = trial->shape;
    const graft_mask            none = { 0 };
    const graft_mask           *mask = trial->product.args.mask != NULL ? trial->product.args.mask : &none;

    if (tally->faults++ > 0) return;
    snprintf(
        tally->first, sizeof tally->first,
        "A %lld x %lld%s, %lld columns, numbers %d, flags %u, mask %d (kind %d flags %u present %d values %d): %.300s",
        (long long)shape->m, (long long)shape->k, shape->weighted ? " weighted" : "", (long long)shape->n,
        (int)shape->numbers, trial->product.args.flags, trial->mask_number, mask->kind, mask->flags,
        mask->present != NULL, mask->values != NULL, fault);
}

static void graphblas_spec_judge(struct trial *trial, struct candidate *candidate)
{
    struct product *p = &trial->product;
    struct tally   *tally = &candidate->tally[p->args.semiring];
    const char     *fault = compute(trial, candidate);

    tally->runs++;
    candidate->runs++;
    candidate->by_itself += candidate->is_oracle || product_ran_by(mxm, context, candidate->name);
    memcpy(p->expect_c, trial->expected, (size_t)(p->c_view.n_rows * p->c_view.n_cols) * sizeof(double));
    if (fault == NULL) fault = product_differs(p);
    if (fault == NULL && !(p->args.flags & GRAFT_MXM_REPLACE)) fault = forbidden_differs(trial);
    if (fault != NULL) note_fault(trial, fault, tally);
}

/** Try all masks, semirings and flags of one product; `which` chooses the kind of numbers. */
static void try_product(int64_t m, int64_t k, int64_t n, graft_dtype dtype, int which, struct sample *sample)
{
    const enum product_numbers numbers = which & 2 ? PRODUCT_ROUGH : PRODUCT_EXACT;
    const graft_dtype          index_type = sample_below(sample, 2) ? GRAFT_I64 : GRAFT_I32;
    const struct product_shape shape = { m, k, n, index_type, dtype, which & 1, 0, numbers };
    struct trial               trial;

    open_trial(&trial, sample, &shape);
    for (int mask = 0; mask < PRODUCT_MASKS; mask++) {
        graphblas_spec_set_mask(&trial, mask);
        for (graft_semiring s = GRAFT_PLUS_TIMES; s <= GRAFT_MIN_SECOND; s++) {
            trial.product.args.semiring = s;
            /* Only sums have rounding errors that depend on an order. */
            trial.product.rough = numbers == PRODUCT_ROUGH && s <= GRAFT_PLUS_SECOND;
            for (uint32_t flags = 0; flags < 4; flags++) {
                trial.product.args.flags = flags;
                ask_product(&trial);
                for (int i = 0; i < n_candidates; i++) graphblas_spec_judge(&trial, &candidates[i]);
            }
        }
        CHECKED(GrB_Matrix_free(&trial.mask));
    }
    close_trial(&trial);
}

/* -- groups of trials --------------------------------------------------------------------------------------------- */

static void graphblas_spec_report(const char *type)
{
    for (int i = 0; i < n_candidates; i++) {
        for (graft_semiring s = GRAFT_PLUS_TIMES; s <= GRAFT_MIN_SECOND; s++) {
            struct tally *tally = &candidates[i].tally[s];

            ok_or(tally->runs > 0 && tally->faults == 0, tally->first,
                  "%s, %s, %s: %d products, %d differ from GrB_mxm", candidates[i].name, semiring_name[s], type,
                  tally->runs, tally->faults);
            memset(tally, 0, sizeof *tally);
        }
    }
}

static void test_type(graft_dtype dtype)
{
    const int64_t widths[] = { 1, 15, 16, 17, 33 };
    /* Shapes without rows, inner dimension or columns, with one of each, and with rows so wide that kernels split
     * them. */
    const int64_t odd[][3] = { { 0, 5, 3 }, { 7, 0, 3 },  { 0, 0, 17 }, { 7, 5, 0 },
                               { 1, 1, 1 }, { 8, 6, 83 }, { 7, 9, 300 } };
    struct sample sample = { (uint64_t)dtype };

    for (int w = 0; w < 5; w++) {
        for (int which = 0; which < 4; which++) {
            const int64_t m = 6 + sample_below(&sample, 30), k = 2 + sample_below(&sample, 30);
            try_product(m, k, widths[w], dtype, which, &sample);
        }
    }
    for (int i = 0; i < 7; i++) try_product(odd[i][0], odd[i][1], odd[i][2], dtype, i + 1, &sample);
    graphblas_spec_report(dtype == GRAFT_F32 ? "float" : "double");
}

static void find_kernels(void)
{
    graft_module_entry entry = GRAFT_INIT(graft_module_entry);
    const char        *lack;

    for (int32_t i = 0; api->module_info(context, i, &entry, NULL) == GRAFT_OK; i++) {
        if (strcmp(entry.kind, "kernel") != 0) continue;
        lack = kernel_lack(api, i, &entry);
        if (lack == NULL && n_candidates < KERNELS_MAX)
            snprintf(candidates[n_candidates++].name, sizeof candidates[0].name, "%s", entry.name);
        else skip(1, "kernel %s cannot be used: %s", entry.name, lack);
    }
}

static int has_kernel(const char *name)
{
    for (int i = 0; i < n_candidates; i++)
        if (strcmp(candidates[i].name, name) == 0) return 1;
    return 0;
}

static void test_graphblas_spec_kernels(void)
{
    candidates[n_candidates++] = (struct candidate){ .name = "oracle", .is_oracle = 1 };
    find_kernels();
    ok(has_kernel("reference"), "the kernel with plain loops exists");
    ok(has_kernel("graphblas"), "kernel graphblas can be used after the host has started GraphBLAS");
    test_type(GRAFT_F32);
    test_type(GRAFT_F64);
    for (int i = 0; i < n_candidates; i++) {
        if (candidates[i].is_oracle) continue;
        ok(2 * candidates[i].by_itself >= candidates[i].runs, "kernel %s computed %d of its %d products itself",
           candidates[i].name, candidates[i].by_itself, candidates[i].runs);
    }
}

/* -- the host's GraphBLAS ----------------------------------------------------------------------------------------- */

/** The global settings of GraphBLAS, which are compared as bytes. */
struct settings {
    GrB_Mode         mode;
    GxB_Format_Value format;
    int              threads;
    bool             burble;
    double           chunk, hyper_switch, bitmap_switch[GxB_NBITMAP_SWITCH];
    int64_t          pool[64];
};

static void read_settings(struct settings *settings)
{
    memset(settings, 0, sizeof *settings);
    CHECKED(GxB_Global_Option_get(GxB_MODE, &settings->mode));
    CHECKED(GxB_Global_Option_get(GxB_FORMAT, &settings->format));
    CHECKED(GxB_Global_Option_get(GxB_NTHREADS, &settings->threads));
    CHECKED(GxB_Global_Option_get(GxB_BURBLE, &settings->burble));
    CHECKED(GxB_Global_Option_get(GxB_CHUNK, &settings->chunk));
    CHECKED(GxB_Global_Option_get(GxB_HYPER_SWITCH, &settings->hyper_switch));
    CHECKED(GxB_Global_Option_get(GxB_BITMAP_SWITCH, settings->bitmap_switch));
    CHECKED(GxB_Global_Option_get(GxB_MEMORY_POOL, settings->pool));
}

/** Choose settings far from those that a kernel would choose for speed. */
static void init_graphblas(struct settings *settings)
{
    CHECKED(GrB_init(GrB_BLOCKING));
    CHECKED(GxB_Global_Option_set(GxB_FORMAT, GxB_BY_COL));
    CHECKED(GxB_Global_Option_set(GxB_NTHREADS, 2));
    CHECKED(GxB_Global_Option_set(GxB_CHUNK, 32768.0));
    CHECKED(GxB_Global_Option_set(GxB_HYPER_SWITCH, 0.5));
    read_settings(settings);
}

/** Replaces GrB_finalize of the library, to see whether anything but this host finalises GraphBLAS. */
GrB_Info GrB_finalize(void)
{
    GrB_Info (*finalize)(void) = NULL;
    void *const symbol = dlsym(RTLD_NEXT, "GrB_finalize");

    graphblas_spec_must(symbol != NULL, "dlsym() of GrB_finalize");
    memcpy(&finalize, &symbol, sizeof finalize); /* ISO C cannot convert an object pointer to a function pointer */
    n_finalized++;
    return finalize();
}

int main(void)
{
    graft_error     error = GRAFT_INIT(graft_error);
    struct settings before, after;
    GrB_Matrix      matrix = NULL;

    init_graphblas(&before);
    if (!ok(graft_load(getenv("GRAFT_LIBRARY"), NULL, &api, &error) == GRAFT_OK, "the library opens")) {
        diag("%s", error.message);
        return done();
    }
    context = api->context;
    mxm = api->get_interface(context, GRAFT_MXM_ID);
    if (!ok(mxm != NULL && mxm->size >= sizeof *mxm, "it has " GRAFT_MXM_ID)) return done();
    test_graphblas_spec_kernels();
    api->close(context);
    read_settings(&after);
    ok(memcmp(&before, &after, sizeof before) == 0, "the host's settings of GraphBLAS are unchanged");
    ok(n_finalized == 0 && GrB_Matrix_new(&matrix, GrB_FP32, 3, 3) == GrB_SUCCESS &&
           GrB_Matrix_free(&matrix) == GrB_SUCCESS,
       "GraphBLAS still works after the context was closed");
    ok(GrB_finalize() == GrB_SUCCESS && n_finalized == 1, "the host ends GraphBLAS itself");
    return done();
}
