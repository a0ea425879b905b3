/* A program for test_plugins.py that is not linked with GraphBLAS and loads plugins and libraries in any order.
 *
 *     grb_plugins [load|global|deep]:NUMBER:FILE | WORD:NUMBER ...
 *
 * It makes one step for each argument and prints the results. A number stands for a loaded file.
 * SPDX-License-Identifier: Apache-2.0 */
#include "grb_plugin.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FILES = 4, THREADS = 8, ROUNDS = 5 };

struct plugin {
    void *handle;
    int (*init)(void);
    int (*finalize)(void);
    double (*product)(product_function, enum operators);
    init_function (*init_function)(void);
    product_function (*product_function)(void);
};

static struct plugin plugins[FILES];

static void load_file(struct plugin *plugin, const char *file, int flags)
{
    plugin->handle = dlopen(file, RTLD_LAZY | flags);
    if (plugin->handle == NULL) {
        printf("%s\n", dlerror());
        exit(2);
    }
    *(void **)&plugin->init = dlsym(plugin->handle, "plugin_init");
    *(void **)&plugin->finalize = dlsym(plugin->handle, "plugin_finalize");
    *(void **)&plugin->product = dlsym(plugin->handle, "plugin_product");
    *(void **)&plugin->init_function = dlsym(plugin->handle, "plugin_init_function");
    *(void **)&plugin->product_function = dlsym(plugin->handle, "plugin_product_function");
}

static double multiply_in_child(const struct plugin *plugin)
{
    double result = -1;
    int    ends[2];

    if (pipe(ends) != 0) return result;
    if (fork() == 0) {
        alarm(30);
        result = plugin->product(NULL, BUILT_IN);
        _exit(write(ends[1], &result, sizeof result) != sizeof result);
    }
    close(ends[1]);
    if (read(ends[0], &result, sizeof result) != sizeof result) result = -2;
    close(ends[0]);
    wait(NULL);
    return result;
}

/* Run threads of all plugins at the same time. Threads with even numbers start with the other kind of product. */
static void *multiply_by_turns(void *arg)
{
    const int number = (int)(intptr_t)arg, kind = number / FILES % 2;
    double   *results = calloc(2 * ROUNDS, sizeof *results);

    for (int i = 0; i < 2 * ROUNDS; i++)
        results[i] = plugins[number % FILES].product(NULL, (i + kind) % 2 ? BUILT_IN : OWN_SEMIRING);
    return results;
}

static int multiply_in_threads(void)
{
    pthread_t threads[THREADS];
    double   *results = NULL;
    int       wrong = 0, used[THREADS];

    for (int i = 0; i < THREADS; i++) {
        used[i] = plugins[i % FILES].product != NULL;
        if (used[i]) pthread_create(&threads[i], NULL, multiply_by_turns, (void *)(intptr_t)i);
    }
    for (int i = 0; i < THREADS; i++) {
        if (used[i]) pthread_join(threads[i], (void **)&results);
        for (int k = 0; used[i] && k < 2 * ROUNDS; k++)
            wrong += results[k] != plugins[i % FILES].product(NULL, BUILT_IN);
        if (used[i]) free(results);
    }
    return wrong;
}

static void step(const char *word, struct plugin *plugin)
{
    if (strcmp(word, "init") == 0) printf("%d\n", plugin->init());
    if (strcmp(word, "point") == 0)
        printf("%d\n", plugin->init_function()(GrB_NONBLOCKING, malloc, calloc, realloc, free));
    if (strcmp(word, "finalize") == 0) printf("%d\n", plugin->finalize());
    if (strcmp(word, "product") == 0) printf("%.9g\n", plugin->product(NULL, BUILT_IN));
    if (strcmp(word, "own") == 0) printf("%.9g\n", plugin->product(NULL, OWN_SEMIRING));
    if (strcmp(word, "type") == 0) printf("%.9g\n", plugin->product(NULL, OWN_TYPE));
    if (strcmp(word, "null") == 0) printf("%.9g\n", plugin->product(NULL, NO_OPERATORS));
    if (strcmp(word, "called") == 0) printf("%.9g\n", plugin->product(plugin->product_function(), BUILT_IN));
    if (strcmp(word, "called-own") == 0) printf("%.9g\n", plugin->product(plugin->product_function(), OWN_SEMIRING));
    if (strcmp(word, "called-null") == 0) printf("%.9g\n", plugin->product(plugin->product_function(), NO_OPERATORS));
    if (strcmp(word, "fork") == 0) printf("%.9g\n", multiply_in_child(plugin));
    if (strcmp(word, "threads") == 0) printf("%d wrong\n", multiply_in_threads());
    if (strcmp(word, "close") == 0) printf("%d\n", dlclose(plugin->handle));
    if (strcmp(word, "close") == 0) memset(plugin, 0, sizeof *plugin);
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        const char    *word = strtok(argv[i], ":"), *number = strtok(NULL, ":"), *file = strtok(NULL, ":");
        struct plugin *plugin = &plugins[number != NULL ? atoi(number) % FILES : 0];

        printf("%s %s: ", word, number);
        if (file == NULL) step(word, plugin);
        else load_file(plugin, file, word[0] == 'g' ? RTLD_GLOBAL : word[0] == 'd' ? RTLD_DEEPBIND : RTLD_LOCAL);
        if (file != NULL) printf("\n");
        fflush(stdout);
    }
    return 0;
}
