/* A program for test_preload.py that uses GraphBLAS and does not know about Graft. It multiplies, makes mistakes, and
 * prints the results, which must be the same with and without the drop-in.
 *
 *     grb_host products | errors | threads | crowd | places | small | fork | processors | twice | early
 * SPDX-License-Identifier: Apache-2.0 */
#include <GraphBLAS.h>
#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { N = 300, WIDTH = 40, THREADS = 4, CROWD = 300, ROUNDS = 20, LARGE = 8000 };

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

/* After a call with an error, a product that is written into the full matrix C must be right, and GrB_error() must
 * return an empty text again. */
static void print_in_place(GrB_Matrix a, GrB_Matrix c)
{
    GrB_Matrix  h = full_matrix(N, WIDTH);
    const char *text = "";

    GrB_Matrix_assign_FP32(c, NULL, NULL, 1, GrB_ALL, N, GrB_ALL, WIDTH, NULL);
    GrB_Matrix_setElement_FP32(c, 2, 0, 0);
    GrB_Matrix_wait(c, GrB_MATERIALIZE);
    for (int accumulates = 0; accumulates < 2; accumulates++) {
        GrB_mxm(c, NULL, NULL, GrB_PLUS_TIMES_SEMIRING_FP32, h, a, NULL); /* this call is a mistake on purpose */
        printf(", in place %d",
               (int)GrB_mxm(c, NULL, accumulates ? GrB_PLUS_FP32 : NULL, GrB_PLUS_TIMES_SEMIRING_FP32, a, h, NULL));
        GrB_error(&text, c);
        printf(" '%s' %.17g", text, sum_of(c));
    }
    printf("\n");
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
    printf("again %d", (int)GrB_mxm(c, NULL, NULL, GrB_PLUS_TIMES_SEMIRING_FP32, a, h, NULL));
    print_in_place(a, c);
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

/* Multiply in several threads at the same time, at most CROWD. */
static void print_threads(int count)
{
    static struct share shares[CROWD];
    GrB_Matrix          a = two_rings(N), h = full_matrix(N, WIDTH);
    pthread_t           threads[CROWD];
    const double        expected = product_sum(a, h);
    int                 wrong = 0;

    for (int i = 0; i < count; i++) {
        shares[i] = (struct share){ .a = a, .h = h };
        pthread_create(&threads[i], NULL, multiply_often, &shares[i]);
    }
    for (int i = 0; i < count; i++) {
        pthread_join(threads[i], NULL);
        for (int k = 0; k < ROUNDS; k++) wrong += shares[i].sums[k] != expected;
    }
    printf("threads %.17g, %d wrong\n", expected, wrong);
    GrB_Matrix_free(&a);
    GrB_Matrix_free(&h);
}

/* Multiply in calls from more than 256 places of the program. */
static void print_places(void)
{
#define FOUR_PLACES(call) call call call call
#define MANY_PLACES(call) FOUR_PLACES(FOUR_PLACES(FOUR_PLACES(FOUR_PLACES(call call))))
    GrB_Matrix a = two_rings(N), h = full_matrix(N, WIDTH), c = full_matrix(N, WIDTH);

    MANY_PLACES(GrB_mxm(c, NULL, GrB_PLUS_FP32, GrB_PLUS_TIMES_SEMIRING_FP32, a, h, NULL);)
    printf("places %.17g\n", sum_of(c));
    GrB_Matrix_free(&a);
    GrB_Matrix_free(&h);
    GrB_Matrix_free(&c);
}

static int live_threads(void)
{
    DIR *list = opendir("/proc/self/task");
    int  count = -2; /* the entries "." and ".." are not counted */

    while (list != NULL && readdir(list) != NULL) count++;
    if (list != NULL) closedir(list);
    return count;
}

/* Run a product of fewer than 2 x 65536 operations, which uses one thread, in a thread of the program. */
static void *multiply_small(void *arg)
{
    const int  before = live_threads();
    GrB_Matrix a = two_rings(1600), h = full_matrix(1600, WIDTH), c = NULL;

    (void)arg;
    GrB_Matrix_new(&c, GrB_FP32, 1600, WIDTH);
    GrB_mxm(c, NULL, NULL, GrB_PLUS_TIMES_SEMIRING_FP32, a, h, NULL);
    printf("small %.17g, %d threads\n", sum_of(c), live_threads() - before);
    GrB_Matrix_free(&a);
    GrB_Matrix_free(&h);
    GrB_Matrix_free(&c);
    return NULL;
}

static void print_small(void)
{
    pthread_t thread;

    if (pthread_create(&thread, NULL, multiply_small, NULL) == 0) pthread_join(thread, NULL);
}

/* Print a matrix without starting threads, because a child of fork() cannot use them. */
static void print_some(const char *name, GrB_Matrix c)
{
    printf("%s", name);
    for (GrB_Index i = 0; i < LARGE; i += LARGE / 16) {
        float value = -1;

        GrB_Matrix_extractElement_FP32(&value, c, i, i % WIDTH);
        printf(" %.9g", value);
    }
    printf("\n");
    fflush(stdout);
}

/* Multiply after fork() in a process that has used teams of threads. */
static void print_fork(void)
{
    GrB_Matrix a = two_rings(LARGE), h = full_matrix(LARGE, WIDTH), c = full_matrix(LARGE, WIDTH);
    pid_t      child;

    GrB_mxm(c, NULL, GrB_PLUS_FP32, GrB_PLUS_TIMES_SEMIRING_FP32, a, h, NULL);
    fflush(stdout);
    child = fork();
    if (child == 0) {
        alarm(30);
        GrB_mxm(c, NULL, GrB_PLUS_FP32, GrB_PLUS_TIMES_SEMIRING_FP32, a, h, NULL);
        print_some("child", c);
        _exit(0);
    }
    waitpid(child, NULL, 0);
    GrB_mxm(c, NULL, GrB_PLUS_FP32, GrB_PLUS_TIMES_SEMIRING_FP32, a, h, NULL);
    print_some("parent", c);
    GrB_Matrix_free(&a);
    GrB_Matrix_free(&h);
    GrB_Matrix_free(&c);
}

struct processors {
    cpu_set_t  all;
    GrB_Matrix a, h, c;
};

/* Check that a thread that may run on all processors still may do so after its first product, which starts a team. */
static void *check_processors(void *arg)
{
    struct processors *p = arg;
    cpu_set_t          after;

    GrB_mxm(p->c, NULL, NULL, GrB_MAX_TIMES_SEMIRING_FP32, p->a, p->h, NULL);
    sched_getaffinity(0, sizeof after, &after);
    printf("processors are %s\n", CPU_EQUAL(&after, &p->all) ? "kept" : "changed");
    return NULL;
}

/* A new thread inherits the processors of its parent. OpenMP has bound the parent to some of them when GraphBLAS was
 * loaded. */
static void print_processors(void)
{
    struct processors p = { .a = two_rings(LARGE), .h = full_matrix(LARGE, WIDTH), .c = full_matrix(LARGE, WIDTH) };
    pthread_t         thread;

    memset(&p.all, 0xff, sizeof p.all);
    sched_setaffinity(0, sizeof p.all, &p.all);
    sched_getaffinity(0, sizeof p.all, &p.all);
    if (pthread_create(&thread, NULL, check_processors, &p) == 0) pthread_join(thread, NULL);
    GrB_Matrix_free(&p.a);
    GrB_Matrix_free(&p.h);
    GrB_Matrix_free(&p.c);
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
    if (strcmp(what, "threads") == 0) print_threads(THREADS);
    if (strcmp(what, "crowd") == 0) print_threads(CROWD);
    if (strcmp(what, "places") == 0) print_places();
    if (strcmp(what, "small") == 0) print_small();
    if (strcmp(what, "fork") == 0) print_fork();
    if (strcmp(what, "processors") == 0) print_processors();
    if (strcmp(what, "twice") == 0) {
        printf("finalize %d\n", (int)GrB_finalize());
        printf("init %d\n", (int)GrB_init(GrB_NONBLOCKING));
        print_products();
    }
    printf("finalize %d\n", (int)GrB_finalize());
    return 0;
}
