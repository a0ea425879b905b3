/* Checks that GraphBLAS belongs to the host: the library must neither start nor end it. A process can start GraphBLAS
 * once, so each check has its own process. This file is compiled twice: for a host that is linked with GraphBLAS
 * (HOST_LINKS_GRAPHBLAS), and for one that is not. Usage: test_graphblas_host MODULE
 * SPDX-License-Identifier: Apache-2.0 */
#include "fuzz/data_files.h"
#include "harness/child.h"
#include "harness/tap.h"

#include "graft_load.h"
#include "graft_mxm.h"

#include <GraphBLAS.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { N = 5 };

/* The path 0 - 1 - 2 - 3, and vertex 4 alone. Sums over neighbours of 1, 2, 4, 8, 16 are 2, 5, 10, 4, 0. */
static const int64_t row_ptr[N + 1] = { 0, 1, 3, 5, 6, 6 };
static const int32_t col_idx[6] = { 1, 0, 2, 1, 3, 2 };
static const float   expected[N] = { 2, 5, 10, 4, 0 };

static float                features[N] = { 1, 2, 4, 8, 16 }, sums[N];
static const graft_api     *api;
static const graft_mxm_api *mxm;
static graft_matrix        *matrix;
static graft_error          error = GRAFT_INIT(graft_error);
static const char          *module_path;

#define TRY(condition, fault)                                                                                          \
    do {                                                                                                               \
        if (!(condition)) return fault;                                                                                \
    } while (0)

static const char *graphblas_open(uint32_t flags)
{
    const graft_host host = { .size = sizeof host, .flags = flags };
    graft_csr        csr = GRAFT_INIT(graft_csr);

    csr.index_type = GRAFT_I32;
    csr.n_rows = csr.n_cols = N;
    csr.row_ptr = row_ptr;
    csr.col_idx = col_idx;
    TRY(graft_load(getenv("GRAFT_LIBRARY"), &host, &api, &error) == GRAFT_OK, error.message);
    mxm = graft_interface(api, GRAFT_MXM_ID, GRAFT_HAS(graft_mxm_api, explain));
    TRY(mxm != NULL, "there are no products");
    TRY(mxm->matrix_create(api->context, &csr, 0, &matrix, &error) == GRAFT_OK, error.message);
    return NULL;
}

static void graphblas_close(void)
{
    mxm->matrix_destroy(matrix);
    api->close(api->context);
}

/* Compute the sums with this kernel. */
static int32_t graphblas_sum(const char *kernel, const char *strict)
{
    const graft_dense b = { sizeof b, GRAFT_F32, N, 1, 1, features }, c = { sizeof c, GRAFT_F32, N, 1, 1, sums };
    graft_mxm_args    args = GRAFT_INIT(graft_mxm_args);
    int32_t           rc = api->set(api->context, "mxm.kernel", kernel, &error);

    args.semiring = GRAFT_PLUS_SECOND;
    args.a = matrix;
    args.b = &b;
    args.c = &c;
    memset(sums, 0xff, sizeof sums);
    if (rc == GRAFT_OK) rc = api->set(api->context, "strict", strict, &error);
    return rc == GRAFT_OK ? mxm->run(api->context, &args, &error) : rc;
}

static const char *right(const char *kernel)
{
    char text[1024];

    TRY(memcmp(sums, expected, sizeof sums) == 0, "the sums are wrong");
    TRY(mxm->explain(api->context, NULL, text, sizeof text, &error) == GRAFT_OK, error.message);
    TRY(strncmp(text, kernel, strlen(kernel)) == 0 && text[strlen(kernel)] == ' ', "another kernel ran");
    return NULL;
}

static const char *works(void)
{
    TRY(graphblas_sum("graphblas", "yes") == GRAFT_OK, error.message);
    return right("graphblas");
}

/* Check that the kernel is refused with a sentence, or replaced by another one where the host allows it. */
static const char *graphblas_refused(void)
{
    char text[1024];

    TRY(graphblas_sum("graphblas", "yes") == GRAFT_ERR_UNSUPPORTED, "GraphBLAS was used before the host started it");
    TRY(strstr(error.message, "GrB_init() comes first") != NULL, error.message);
    TRY(graphblas_sum("graphblas", "no") == GRAFT_OK && right("simd") == NULL, "no other kernel ran");
    TRY(mxm->explain(api->context, NULL, text, sizeof text, &error) == GRAFT_OK &&
            strstr(text, "GrB_init() comes first") != NULL,
        "explain() does not say why");
    return NULL;
}

#ifdef HOST_LINKS_GRAPHBLAS

static const char *host_first(const void *arg)
{
    const char *fault;
    GrB_Matrix  own = NULL;

    (void)arg;
    TRY(GrB_init(GrB_NONBLOCKING) == GrB_SUCCESS, "GrB_init() of the host failed");
    if ((fault = graphblas_open(0)) != NULL || (fault = works()) != NULL) return fault;
    graphblas_close();
    TRY(GrB_Matrix_new(&own, GrB_FP32, N, N) == GrB_SUCCESS, "the host's GraphBLAS is gone");
    GrB_Matrix_free(&own);
    return NULL;
}

static const char *graft_first(const void *arg)
{
    const char *fault;

    (void)arg;
    if ((fault = graphblas_open(0)) != NULL) return fault;
    TRY(graphblas_sum("auto", "no") == GRAFT_OK, error.message);
    if ((fault = right("simd")) != NULL || (fault = graphblas_refused()) != NULL) return fault;
    TRY(api->load_module(api->context, module_path, &error) == GRAFT_OK, error.message);
    TRY(GrB_init(GrB_BLOCKING) == GrB_SUCCESS, "GrB_init() of the host failed");
    if ((fault = works()) != NULL) return fault;
    graphblas_close();
    return NULL;
}

static void test_all(void)
{
    ok_fault("a host that starts GraphBLAS first shares it", in_child(host_first, NULL));
    ok_fault("a host that is linked with GraphBLAS may start it last", in_child(graft_first, NULL));
}

#else

/* These functions stand for a host that is statically linked with libgraphblas.a and exports no symbols. */
static int own_starts;
GrB_Info   GrB_init(GrB_Mode mode)
{
    (void)mode;
    own_starts++;
    return GrB_SUCCESS;
}

static const char *never(const void *arg)
{
    const char *fault;

    (void)arg;
    for (int i = 0; i < 2; i++) {
        if ((fault = graphblas_open(0)) != NULL || (fault = works()) != NULL) return fault;
        graphblas_close();
    }
    return own_starts == 0 ? NULL : "the static copy of the host was started";
}

/* Load GraphBLAS and start it late, as a plug-in of the host may do. */
static const char *start_late(void)
{
    char  name[32];
    void *library, *symbol;
    GrB_Info (*init)(GrB_Mode mode);

    snprintf(name, sizeof name, "libgraphblas.so.%d", GxB_IMPLEMENTATION_MAJOR);
    library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    TRY(library != NULL, dlerror());
    symbol = dlsym(library, "GrB_init");
    TRY(symbol != NULL, dlerror());
    memcpy(&init, &symbol, sizeof init);
    TRY(init(GrB_BLOCKING) == GrB_SUCCESS, "GrB_init() of the host failed");
    return NULL;
}

static const char *late(const void *arg)
{
    const char *fault;

    (void)arg;
    if ((fault = graphblas_open(GRAFT_HOST_STARTS_LIBRARIES)) != NULL || (fault = graphblas_refused()) != NULL)
        return fault;
    if ((fault = start_late()) != NULL || (fault = works()) != NULL) return fault;
    graphblas_close();
    return NULL;
}

/* A product with more columns than kernel simd supports; "auto" uses its first five columns. */
static const char *automatic(const void *arg)
{
    const int64_t     columns = (int64_t)INT32_MAX + 2;
    static int64_t    wide_idx[6] = { 1, 0, 2, 1, 3, 2 };
    graft_dense       b = { sizeof b, GRAFT_F32, columns, 1, 1, NULL };
    const graft_dense c = { sizeof c, GRAFT_F32, N, 1, 1, sums };
    graft_csr         csr = GRAFT_INIT(graft_csr);
    graft_mxm_args    args = GRAFT_INIT(graft_mxm_args);
    const char       *fault = graphblas_open(0);

    (void)arg;
    if (fault != NULL) return fault;
    mxm->matrix_destroy(matrix);
    csr.index_type = GRAFT_I64;
    csr.n_rows = N;
    csr.n_cols = columns;
    csr.row_ptr = row_ptr;
    csr.col_idx = wide_idx;
    TRY(mxm->matrix_create(api->context, &csr, 0, &matrix, &error) == GRAFT_OK, error.message);
    b.data =
        mmap(NULL, (size_t)columns * 4, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    TRY(b.data != MAP_FAILED, "no address space for 2^31 numbers");
    memcpy(b.data, features, sizeof features);
    args.semiring = GRAFT_PLUS_SECOND;
    args.a = matrix;
    args.b = &b;
    args.c = &c;
    TRY(mxm->run(api->context, &args, &error) == GRAFT_OK, error.message);
    if ((fault = right("reference")) != NULL || (fault = start_late()) != NULL) return fault;
    graphblas_close();
    return NULL;
}

/* Make a copy of the module that needs a GraphBLAS library of another name, which no machine has. */
static void make_orphan(const struct data_folder *folder)
{
    static const char wanted[] = "libgraphblas.so";
    FILE             *file = fopen(module_path, "rb");
    char             *bytes;
    long              size, changed = 0;

    files_check(file != NULL && fseek(file, 0, SEEK_END) == 0 && (size = ftell(file)) > 0, module_path);
    rewind(file);
    bytes = malloc((size_t)size);
    files_check(bytes != NULL && fread(bytes, 1, (size_t)size, file) == (size_t)size, module_path);
    fclose(file);
    for (long i = 0; i + (long)sizeof wanted < size; i++) {
        if (memcmp(bytes + i, wanted, sizeof wanted - 1) != 0) continue;
        bytes[i + 3] = 'G'; /* changes the name libgraphblas.so to libGraphblas.so */
        changed++;
    }
    files_check(changed > 0, "the module names no libgraphblas.so");
    write_file(folder, "graft_kernel_graphblas.so", bytes, (size_t)size);
    free(bytes);
}

static const char *none(const void *arg)
{
    const char *fault = graphblas_open(0);

    if (fault != NULL) return fault;
    TRY(api->load_module(api->context, folder_path(arg, "graft_kernel_graphblas.so"), &error) == GRAFT_OK,
        error.message);
    TRY(graphblas_sum("graphblas", "yes") == GRAFT_ERR_UNSUPPORTED, "a product without a library was computed");
    TRY(strstr(error.message, "libGraphblas.so") != NULL, error.message);
    TRY(graphblas_sum("auto", "no") == GRAFT_OK, error.message);
    if ((fault = right("simd")) != NULL) return fault;
    graphblas_close();
    return NULL;
}

/* Set option graphblas.path to a file that exists, and to one that does not. */
static const char *by_path(const void *arg)
{
    const char *fault = graphblas_open(0);

    if (fault != NULL) return fault;
    TRY(api->set(api->context, "graphblas.path", arg, &error) == GRAFT_OK, error.message);
    if (strstr(arg, "nowhere") == NULL) {
        if ((fault = works()) != NULL) return fault;
    } else {
        TRY(graphblas_sum("graphblas", "yes") == GRAFT_ERR_UNSUPPORTED, "a file that is not there was used");
        TRY(strstr(error.message, arg) != NULL, error.message);
    }
    graphblas_close();
    return NULL;
}

static void test_all(void)
{
    struct data_folder folder;
    char               name[32];

    ok_fault("a host that never starts GraphBLAS can use it, beside a static copy of its own", in_child(never, NULL));
    ok_fault("a host that loads GraphBLAS later says so, and starts it", in_child(late, NULL));
    ok_fault("\"auto\" does not start GraphBLAS", in_child(automatic, NULL));
    snprintf(name, sizeof name, "libgraphblas.so.%d", GxB_IMPLEMENTATION_MAJOR);
    ok_fault("a path names the GraphBLAS", in_child(by_path, name));
    ok_fault("a path to nothing is named in the sentence", in_child(by_path, "/nowhere/libgraphblas.so"));
    folder_create(&folder);
    make_orphan(&folder);
    ok_fault("without GraphBLAS the module says what is missing", in_child(none, &folder));
    folder_destroy(&folder);
}

#endif

int main(int argc, char **argv)
{
    if (argc != 2) return 2;
    module_path = argv[1];
    test_all();
    return done();
}
