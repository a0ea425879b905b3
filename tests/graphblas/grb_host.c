/* A program that uses GraphBLAS and knows nothing of Graft, for test_preload.py: it multiplies, makes mistakes, and
 * prints what it got.
 *
 *     grb_host products | errors | threads | twice | early
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <GraphBLAS.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { N = 300, WIDTH = 40, THREADS = 4, ROUNDS = 20 };

static GrB_Matrix two_rings(GrB_Index n)
{
    GrB_Matrix a = NULL;

    GrB_Matrix_new(&a, GrB_FP32, n, n);
    for (GrB_Index i = 0; i < n; i++) {
        GrB_Matrix_setElement_FP32(a, 2, i, (i + 1) % n);
        GrB_Matrix_setElement_FP32(a, 0.5f, i, (i + 7) % n);
    }
    GrB_Matrix_wait(a, GrB_MATERIALIZE);
    return a;
}

static GrB_Matrix full_matrix(GrB_Index n, GrB_Index width)
{
    GrB_Matrix h = NULL;

    GrB_Matrix_new(&h, GrB_FP32, n, width);
    for (GrB_Index i = 0; i < n; i++) {
        for (GrB_Index j = 0; j < width; j++) GrB_Matrix_setElement_FP32(h, (float)((i * 3 + j) % 11), i, j);
    }
    GrB_Matrix_wait(h, GrB_MATERIALIZE);
    return h;
}

static double sum_of(GrB_Matrix c)
{
    double sum = 0;

    GrB_Matrix_reduce_FP64(&sum, NULL, GrB_PLUS_MONOID_FP64, c, NULL);
    return sum;
}

static double product_sum(GrB_Matrix a, GrB_Matrix h)
{
    GrB_Matrix c = NULL;
    double     sum;

    GrB_Matrix_new(&c, GrB_FP32, N, WIDTH);
    GrB_mxm(c, NULL, NULL, GrB_PLUS_TIMES_SEMIRING_FP32, a, h, NULL);
    sum = sum_of(c);
    GrB_Matrix_free(&c);
    return sum;
}

static void print_products(void)
{
    GrB_Matrix a = two_rings(N), h = full_matrix(N, WIDTH);

    printf("plain %.17g\n", product_sum(a, h));
    GrB_Matrix_free(&a);
    GrB_Matrix_free(&h);
}

static void print_errors(void)
{
    GrB_Matrix  a = two_rings(N), h = full_matrix(N + 1, WIDTH), c = NULL;
    const char *text = "";

    GrB_Matrix_new(&c, GrB_FP32, N, WIDTH);
    printf("shape %d", (int)GrB_mxm(c, NULL, NULL, GrB_PLUS_TIMES_SEMIRING_FP32, a, h, NULL));
    GrB_error(&text, c);
    printf(" %s\n", text);
    printf("null %d\n", (int)GrB_mxm(c, NULL, NULL, NULL, a, h, NULL));
    printf("null %d\n", (int)GrB_mxm(NULL, NULL, NULL, GrB_PLUS_TIMES_SEMIRING_FP32, a, h, NULL));
    GrB_Matrix_free(&a);
    printf("freed %d\n", (int)GrB_mxm(c, NULL, NULL, GrB_PLUS_TIMES_SEMIRING_FP32, a, h, NULL));
    GrB_Matrix_free(&h);
    GrB_Matrix_free(&c);
}

struct share {
    GrB_Matrix a, h;
    double     sums[ROUNDS];
};

static void *multiply_often(void *arg)
{
    struct share *share = arg;

    for (int i = 0; i < ROUNDS; i++) share->sums[i] = product_sum(share->a, share->h);
    return NULL;
}

static void print_threads(void)
{
    GrB_Matrix   a = two_rings(N), h = full_matrix(N, WIDTH);
    struct share shares[THREADS];
    pthread_t    threads[THREADS];
    const double expected = product_sum(a, h);
    int          wrong = 0;

    for (int i = 0; i < THREADS; i++) {
        shares[i] = (struct share){ .a = a, .h = h };
        pthread_create(&threads[i], NULL, multiply_often, &shares[i]);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        for (int k = 0; k < ROUNDS; k++) wrong += shares[i].sums[k] != expected;
    }
    printf("threads %.17g, %d wrong\n", expected, wrong);
    GrB_Matrix_free(&a);
    GrB_Matrix_free(&h);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "products";

    if (strcmp(what, "early") == 0) {
        printf("before init %d\n", (int)GrB_mxm(NULL, NULL, NULL, NULL, NULL, NULL, NULL));
        return 0;
    }
    printf("init %d\n", (int)GrB_init(GrB_NONBLOCKING));
    if (strcmp(what, "products") == 0) print_products();
    if (strcmp(what, "errors") == 0) print_errors();
    if (strcmp(what, "threads") == 0) print_threads();
    if (strcmp(what, "twice") == 0) {
        printf("finalize %d\n", (int)GrB_finalize());
        printf("init %d\n", (int)GrB_init(GrB_NONBLOCKING));
        print_products();
    }
    printf("finalize %d\n", (int)GrB_finalize());
    return 0;
}
