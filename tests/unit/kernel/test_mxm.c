/* Checks graft.mxm/1: every kernel against the oracle, with threads and transposes, the arguments that must be refused,
 * and the text of explain().
 * SPDX-License-Identifier: Apache-2.0 */
#include "harness/effort.h"
#include "harness/kernels.h"
#include "harness/tap.h"
#include "judge/judge.h"
#include "oracle/oracle.h"
#include "oracle/product.h"
#include "oracle/sample.h"

#include "graft_load.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int choose_kernel(const char *name)
{
    return judge.api->set(judge.context, "mxm.kernel", name, NULL) == GRAFT_OK;
}

/** Products with a transpose after its original was destroyed. Ties among entries show the order of a row. */
static void test_transpose(int64_t m, int64_t k, graft_dtype index_type, int weighted)
{
    const struct product_shape shape = { k, m, 9, index_type, GRAFT_F32, weighted, 1, PRODUCT_EXACT };
    struct sample              sample = { 11 };
    struct product             product;
    struct sample_csr          original;
    struct tally               tally = { 0 };
    graft_matrix              *matrix, *transpose = NULL;
    int64_t                    bytes;

    product_init(&product, &sample, &shape);
    sample_csr_init(&original, &sample, m, k, index_type, weighted ? GRAFT_F32 : 0, 1);
    sample_csr_fini(&product.a);
    sample_csr_transpose(&product.a, &original);
    matrix = judge_matrix(&original.csr);
    ok(judge.mxm->matrix_transpose(judge.context, matrix, &transpose, NULL) == GRAFT_OK,
       "the transpose of a %lld x %lld matrix is right", (long long)m, (long long)k);
    judge.mxm->matrix_destroy(matrix);
    bytes = 8 * (k + 1) + original.row_ptr[m] * ((index_type == GRAFT_I32 ? 4 : 8) + (weighted ? 4 : 0));
    /* Blocks of memory have multiples of 64 bytes, and begin with 64 bytes of their own. */
    ok(judge.mxm->matrix_bytes(transpose) >= bytes && judge.mxm->matrix_bytes(transpose) <= bytes + 3 * 128,
       "the transpose takes %lld bytes, expected %lld", (long long)judge.mxm->matrix_bytes(transpose),
       (long long)bytes);
    sample_csr_fini(&original);
    product.args.a = transpose;
    for (graft_semiring s = GRAFT_PLUS_TIMES; s <= GRAFT_MIN_SECOND; s++)
        judge_masks(&product, "reference", s, &sample, &tally);
    ok_or(tally.faults == 0, tally.first, "it is the naive transpose");
    judge.mxm->matrix_destroy(transpose);
    product_fini(&product);
}

/** A product without special properties. */
static const struct product_shape ordinary = { 31, 29, 17, GRAFT_I32, GRAFT_F32, 1, 0, PRODUCT_EXACT };

/** Expect a call to fail with this status and a message that has all of the words, which are separated by '|'. */
static void mxm_refused(int32_t rc, int32_t expected, const graft_error *error, const char *words, const char *what)
{
    const char *at = words;
    int         all = rc == expected && error->code == expected && error->where[0] != '\0';

    while (*at != '\0') {
        char         word[64];
        const size_t length = strcspn(at, "|");
        snprintf(word, sizeof word, "%.*s", (int)length, at);
        if (strstr(error->message, word) == NULL) all = 0;
        at += length + (at[length] == '|');
    }
    if (!ok(all, "refused: %s", what))
        diag("status %d, expected %d; words '%s' wanted in: %s: %s", rc, expected, words, error->where, error->message);
}

/** Expect matrix_create() to fail and leave the pointer unchanged. */
static void refuse_csr(const graft_csr *csr, int32_t expected, const char *words, const char *what)
{
    graft_error         error = GRAFT_INIT(graft_error);
    graft_matrix *const sentinel = (graft_matrix *)(uintptr_t)64;
    graft_matrix       *matrix = sentinel;
    const int32_t       rc = judge.mxm->matrix_create(judge.context, csr, 0, &matrix, &error);

    if (matrix != sentinel) expected = 1; /* no status is 1, so the check below fails */
    mxm_refused(rc, expected, &error, words, what);
}

static void test_bad_rows(void)
{
    const int64_t good[] = { 0, 2, 2, 4 }, late[] = { 1, 2, 2, 4 }, falling[] = { 0, 3, 2, 4 },
                  negative[] = { 0, -1, 2, 4 };
    const int32_t columns[] = { 0, 2, 1, 4 };
    graft_csr     csr = GRAFT_INIT(graft_csr);

    csr.index_type = GRAFT_I32;
    csr.n_rows = 3;
    csr.n_cols = 5;
    csr.col_idx = columns;
    csr.row_ptr = late;
    refuse_csr(&csr, GRAFT_ERR_FORMAT, "row_ptr|1|expected 0", "row pointers that begin at 1");
    csr.row_ptr = falling;
    refuse_csr(&csr, GRAFT_ERR_FORMAT, "row 1|3|2", "row pointers that fall from 3 to 2 at row 1");
    csr.row_ptr = negative;
    refuse_csr(&csr, GRAFT_ERR_FORMAT, "row 0|-1", "row pointers that fall from 0 to -1 at row 0");
    csr.row_ptr = NULL;
    refuse_csr(&csr, GRAFT_ERR_ARG, "row_ptr|null", "no row pointers");
    csr.row_ptr = good;
    csr.col_idx = NULL;
    refuse_csr(&csr, GRAFT_ERR_ARG, "col_idx|null|4", "no columns for 4 entries");
    csr.col_idx = columns;
    csr.n_rows = -3;
    refuse_csr(&csr, GRAFT_ERR_ARG, "-3", "-3 rows");
    csr.n_rows = 3;
    csr.n_cols = -5;
    refuse_csr(&csr, GRAFT_ERR_ARG, "-5", "-5 columns");
    csr.n_cols = 5;
    csr.index_type = GRAFT_F32;
    refuse_csr(&csr, GRAFT_ERR_ARG, "index_type|1|3|4", "float columns");
    csr.index_type = GRAFT_I32;
    csr.values = columns;
    csr.value_type = GRAFT_I32;
    refuse_csr(&csr, GRAFT_ERR_ARG, "value_type|3|1|2", "integer values");
    csr.values = NULL;
    csr.size = 0;
    refuse_csr(&csr, GRAFT_ERR_ARG, "size", "a struct without its size");
    refuse_csr(NULL, GRAFT_ERR_ARG, "null", "no matrix");
}

static void test_bad_entries(void)
{
    const int64_t row_ptr[] = { 0, 2, 2, 4 }, wide[] = { 0, 1, 2, 1LL << 40 };
    const int32_t too_large[] = { 0, 2, 1, 5 }, negative[] = { 0, 2, -7, 1 }, good[] = { 0, 2, 1, 4 };
    const float   nan_value[] = { 1, 2, NAN, 4 };
    const double  infinite[] = { 1, INFINITY, 3, 4 };
    graft_csr     csr = GRAFT_INIT(graft_csr);
    graft_matrix *matrix = NULL;

    csr.index_type = GRAFT_I32;
    csr.n_rows = 3;
    csr.n_cols = 5;
    csr.row_ptr = row_ptr;
    csr.col_idx = too_large;
    refuse_csr(&csr, GRAFT_ERR_FORMAT, "row 2|column 5|4", "column 5 of 5 in row 2");
    csr.col_idx = negative;
    refuse_csr(&csr, GRAFT_ERR_FORMAT, "row 2|column -7|4", "column -7 in row 2");
    csr.index_type = GRAFT_I64;
    csr.col_idx = wide;
    refuse_csr(&csr, GRAFT_ERR_FORMAT, "row 2|column 1099511627776", "a 64-bit column whose low half is 0");
    csr.index_type = GRAFT_I32;
    csr.col_idx = good;
    csr.value_type = GRAFT_F32;
    csr.values = nan_value;
    refuse_csr(&csr, GRAFT_ERR_FORMAT, "row 2|not finite", "a weight NaN in row 2");
    csr.value_type = GRAFT_F64;
    csr.values = infinite;
    refuse_csr(&csr, GRAFT_ERR_FORMAT, "row 0|not finite", "an infinite weight in row 0");
    ok(judge.mxm->matrix_create(judge.context, &csr, 1, &matrix, NULL) == GRAFT_OK,
       "a matrix of a host that vouches for its values is not checked");
    judge.mxm->matrix_destroy(matrix);
    judge.mxm->matrix_destroy(NULL);
    ok(judge.mxm->matrix_bytes(NULL) == 0, "matrix_bytes() of NULL is 0");
}

/* Good arguments. Each bad case changes one of them. */
static graft_mxm_args good;

/** run() and explain() must both refuse the product and change no byte. Afterwards the arguments are good again. */
static void refuse_product(struct product *p, int32_t expected, const char *words, const char *what)
{
    graft_error error = GRAFT_INIT(graft_error);
    char        text[64] = "as it was";
    int32_t     rc = judge.mxm->run(judge.context, &p->args, &error);

    mxm_refused(rc, expected, &error, words, what);
    rc = judge.mxm->explain(judge.context, &p->args, text, sizeof text, NULL);
    ok(product_is_untouched(p) && rc == expected && strcmp(text, "as it was") == 0,
       "a refused product leaves all arrays unchanged, and explain() gives the same status");
    p->args = good;
}

static void test_bad_operands(struct product *p)
{
    graft_dense other = p->b_view;

    p->args.b = &other;
    other.n_rows = 28;
    refuse_product(p, GRAFT_ERR_ARG, "B 28 x 17|A 31 x 29", "B with a row too few");
    p->args.c = &other;
    other = p->c_view;
    other.n_cols = 16;
    refuse_product(p, GRAFT_ERR_ARG, "C is 31 x 16|B 29 x 17", "C with a column too few");
    p->args.c = &other;
    other = p->c_view;
    other.n_rows = 30;
    refuse_product(p, GRAFT_ERR_ARG, "C is 30 x 17|A 31 x 29", "C with a row too few");
    p->args.c = &other;
    other = p->c_view;
    other.stride = 16;
    refuse_product(p, GRAFT_ERR_ARG, "C|stride 16", "a stride less than a row");
    p->args.b = &other;
    other = p->b_view;
    other.dtype = GRAFT_F64;
    refuse_product(p, GRAFT_ERR_ARG, "types differ|B 2", "B of another type");
    p->args.b = &other;
    other = p->b_view;
    other.dtype = GRAFT_U8;
    refuse_product(p, GRAFT_ERR_ARG, "B|dtype is 5", "B of bytes");
    p->args.b = &other;
    other = p->b_view;
    other.data = NULL;
    refuse_product(p, GRAFT_ERR_ARG, "B|null", "B without data");
    p->args.b = &other;
    other = p->b_view;
    other.data = p->c_view.data;
    refuse_product(p, GRAFT_ERR_ARG, "overlap", "B in the place of C");
    p->args.b = &other;
    other = p->b_view;
    other.data = (float *)p->c_view.data + 30 * p->c_view.stride + 16;
    refuse_product(p, GRAFT_ERR_ARG, "overlap", "B that begins in the last element of C");
    p->args.b = NULL;
    refuse_product(p, GRAFT_ERR_ARG, "b|null", "no B");
    p->args.c = NULL;
    refuse_product(p, GRAFT_ERR_ARG, "c|null", "no C");
    p->args.a = NULL;
    refuse_product(p, GRAFT_ERR_ARG, "a|null", "no A");
    p->args.size = 0;
    refuse_product(p, GRAFT_ERR_ARG, "size", "arguments without their size");
}

static void test_bad_arguments(struct product *p)
{
    const graft_semiring unknown[] = { 0, 7, -1 };
    const char *const    said[] = { "semiring is 0|1|6", "semiring is 7|1|6", "semiring is -1|1|6" };

    for (int i = 0; i < 3; i++) {
        p->args.semiring = unknown[i];
        refuse_product(p, GRAFT_ERR_ARG, said[i], "an unknown semiring");
    }
    p->args.flags = 4;
    refuse_product(p, GRAFT_ERR_ARG, "flags|4", "an unknown flag");
    product_set_extras(p, 0, 1);
    p->args.semiring = GRAFT_PLUS_TIMES;
    refuse_product(p, GRAFT_ERR_ARG, "winner|sum", "the winner of a sum");
    product_set_extras(p, 0, 1);
    p->args.winner = p->b_view.data;
    refuse_product(p, GRAFT_ERR_ARG, "winner overlaps", "winner in the place of B");
    product_set_extras(p, 0, 1);
    p->args.winner_stride = 16;
    refuse_product(p, GRAFT_ERR_ARG, "winner_stride is 16|17", "a stride of winner less than a row");
    p->args.rows_arg = p;
    refuse_product(p, GRAFT_ERR_ARG, "rows_arg|rows_done", "an argument for nothing");
    product_set_mask(p, 1);
    p->mask.kind = 4;
    refuse_product(p, GRAFT_ERR_ARG, "mask|kind is 4", "an unknown kind of mask");
    product_set_mask(p, 1);
    p->mask.flags = 4;
    refuse_product(p, GRAFT_ERR_ARG, "mask|flags|4", "an unknown flag of a mask");
    product_set_mask(p, 5);
    p->mask.stride = 2;
    refuse_product(p, GRAFT_ERR_ARG, "mask|stride is 2|17|3", "2 bytes for 17 bits");
    product_set_mask(p, 9);
    p->mask.stride = 16;
    refuse_product(p, GRAFT_ERR_ARG, "mask|stride is 16|17", "16 bytes for 17 columns");
    product_set_mask(p, 5);
    p->mask.present = NULL;
    refuse_product(p, GRAFT_ERR_ARG, "mask|present is null", "a mask of bits without bits");
    product_set_mask(p, 1);
    p->mask.values = p->values.data;
    refuse_product(p, GRAFT_ERR_ARG, "mask|values", "a mask of rows with values");
}

static void test_bad_kernel(struct product *p)
{
    ok(choose_kernel("refrence"), "option mxm.kernel accepts any name, because the kernel may be loaded later");
    refuse_product(p, GRAFT_ERR_OPTION, "'refrence'|'reference'", "an unknown kernel, naming the near one");
    choose_kernel("auto");
    ok(judge.mxm->run(judge.context, &p->args, NULL) == GRAFT_OK, "after all refused products a correct product runs");
}

static void test_bad_products(void)
{
    struct sample  sample = { 3 };
    struct product product;
    graft_error    error = GRAFT_INIT(graft_error);

    judge_product_open(&product, &sample, &ordinary);
    product.args.semiring = GRAFT_MAX_TIMES;
    good = product.args;
    test_bad_operands(&product);
    test_bad_arguments(&product);
    test_bad_kernel(&product);
    mxm_refused(judge.mxm->run(judge.context, NULL, &error), GRAFT_ERR_ARG, &error, "null", "no arguments");
    judge_product_close(&product);
}

static void test_mxm_explain(const char *kernel)
{
    struct sample  sample = { 3 };
    struct product product;
    char           text[512] = "", cut[8] = "1234567";

    judge_product_open(&product, &sample, &ordinary);
    choose_kernel(kernel);
    ok(judge.mxm->explain(judge.context, &product.args, text, sizeof text, NULL) == GRAFT_OK &&
           strstr(text, kernel) == text,
       "explain() names kernel %s for a product that has not run", kernel);
    ok(product_is_untouched(&product), "explain() does not run the product");
    ok(judge.mxm->explain(judge.context, &product.args, cut, sizeof cut, NULL) == GRAFT_OK &&
           strncmp(cut, text, 7) == 0 && cut[7] == '\0',
       "a text of explain() that is too long is truncated");
    ok(judge.mxm->run(judge.context, &product.args, NULL) == GRAFT_OK &&
           product_ran_by(judge.mxm, judge.context, kernel),
       "explain() names kernel %s as the last one", kernel);
    judge_product_close(&product);
}

/** Two products that GrB_mxm cannot compute. Another kernel must stand in, and explain() must say which and why. */
static void test_fall(int winner)
{
    struct sample        sample = { 3 };
    struct product_shape shape = ordinary;
    struct product       product;
    const char          *differs;
    char                 text[512] = "", last[512] = "";

    shape.repeats = !winner;
    judge_product_open(&product, &sample, &shape);
    product.args.semiring = GRAFT_MAX_TIMES;
    product_set_extras(&product, 0, winner);
    choose_kernel("graphblas");
    ok(judge.mxm->explain(judge.context, &product.args, text, sizeof text, NULL) == GRAFT_OK &&
           strstr(text, "graphblas") != text && strstr(text, "graphblas cannot: ") != NULL,
       "explain() says that a maximum with %s falls from graphblas to another kernel",
       winner ? "winner" : "repeated columns");
    differs = product_try(&product, judge.mxm, judge.context, 2);
    ok_or(differs == NULL, differs, "the other kernel computes the product correctly");
    judge.mxm->explain(judge.context, NULL, last, sizeof last, NULL);
    if (!ok(strncmp(last, text, strcspn(text, " ") + 1) == 0 && strstr(last, "graphblas cannot: ") != NULL,
            "the kernel that explain() has named ran, and explain() says which kernel it replaces"))
        diag("%s; it said: %s", last, text);
    judge_product_close(&product);
}

/* Whether a kernel is named in the arguments after `first`, or none is named. */
static int is_listed(const char *kernel, int argc, char **argv, int first)
{
    for (int i = first; i < argc; i++)
        if (strcmp(argv[i], kernel) == 0) return 1;
    return argc <= first;
}

static void test_mxm_kernels(int large, int argc, char **argv)
{
    graft_module_entry entry = GRAFT_INIT(graft_module_entry);
    const char        *lack;
    int                references = 0;

    for (int32_t i = 0; judge.api->module_info(judge.context, i, &entry, NULL) == GRAFT_OK; i++) {
        if (strcmp(entry.kind, "kernel") != 0 || !is_listed(entry.name, argc, argv, 1 + large)) continue;
        lack = kernel_lack(judge.api, i, &entry);
        if (lack != NULL) {
            skip(1, "kernel %s cannot be used: %s", entry.name, lack);
            continue;
        }
        ok(choose_kernel(entry.name), "option mxm.kernel accepts kernel %s", entry.name);
        (large ? judge_kernel_large : judge_kernel)(entry.name);
        if (!large) test_mxm_explain(entry.name);
        references += strcmp(entry.name, "reference") == 0;
        if (strcmp(entry.name, "graphblas") != 0) continue;
        test_fall(0);
        test_fall(1);
    }
    if (is_listed("reference", argc, argv, 1 + large)) ok(references == 1, "the kernel with plain loops exists");
}

int main(int argc, char **argv)
{
    graft_error error = GRAFT_INIT(graft_error);

    if (!ok(graft_load(getenv("GRAFT_LIBRARY"), NULL, &judge.api, &error) == GRAFT_OK, "the library opens")) {
        diag("%s", error.message);
        return done();
    }
    judge.context = judge.api->context;
    judge.mxm = judge.api->get_interface(judge.context, GRAFT_MXM_ID);
    judge.case_step = case_step();
    if (!ok(judge.mxm != NULL && judge.mxm->size >= sizeof *judge.mxm, "it has " GRAFT_MXM_ID)) return done();
    test_mxm_kernels(argc > 1 && strcmp(argv[1], "large") == 0, argc, argv);
    choose_kernel("reference");
    test_transpose(41, 29, GRAFT_I32, 1);
    test_transpose(29, 41, GRAFT_I64, 0);
    test_transpose(0, 4, GRAFT_I32, 0);
    test_transpose(4, 0, GRAFT_I32, 1);
    test_bad_rows();
    test_bad_entries();
    test_bad_products();
    judge.api->close(judge.context);
    return done();
}
