/* graft-check judges the file of a module. Usage: graft-check [--library FILE] [--large] [--timeout SECONDS] MODULE.so.
 * It prints TAP. The exit status is 0 if nothing is wrong, 1 if something is wrong, and 2 if the module could not be
 * tried. A child process judges the module, so that a crash, an exit or a hang is reported and does not end this
 * program.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE 1 /* declares dladdr() and dlinfo() */
#include "judge.h"
#include "manners.h"

#include "../../examples/find_library.h"
#include "graft_module.h"
#include "harness/strict_host.h"
#include "harness/tap.h"

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROUNDS = 20, SECONDS = 300, SECONDS_MOST = 1000000 };

static const char usage[] = "usage: graft-check [--library FILE] [--large] [--timeout SECONDS] MODULE.so\n"
                            "Judges a kernel or a dense module of Graft against the definition of what it computes.\n"
                            "  --library FILE     the library, else that of GRAFT_LIBRARY or of this program\n"
                            "  --large            products that are shared among threads, too\n"
                            "  --timeout SECONDS  after which a module counts as hanging (300; with --large 3000)\n"
                            "  --version          print the release of the library and its file\n";

struct wish {
    const char *library, *module;
    int         large, version;
    long        seconds; /* timeout; 0 for the default */
};

static struct strict_host host;

static int32_t open_library(const struct wish *wish, graft_error *error)
{
    int32_t rc = find_library(wish->library, &host.table, &judge.api, error);

    if (rc < 0) return rc;
    judge.context = judge.api->context;
    judge.mxm = graft_interface(judge.api, GRAFT_MXM_ID, GRAFT_HAS(graft_mxm_api, matrix_update_values));
    if (judge.mxm != NULL) return GRAFT_OK;
    snprintf(error->message, sizeof error->message, "the library is older than this program");
    return GRAFT_ERR_VERSION;
}

/* Find the entry point of the module that was loaded last. */
static int find_entry(const char *path, graft_module_entry *entry)
{
    *entry = GRAFT_INIT(graft_module_entry);
    for (int32_t i = 0; judge.api->module_info(judge.context, i, entry, NULL) == GRAFT_OK; i++)
        if (strcmp(entry->path, path) == 0) return 1;
    return 0;
}

/* Check the linker options of the file. */
static void check_link(const char *path)
{
    void            *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    struct link_map *map = NULL;
    unsigned long    flags = 0, flags_1 = 0;
    int              text_relocations = 0;

    if (!ok(library != NULL && dlinfo(library, RTLD_DI_LINKMAP, &map) == 0, "the file can be loaded")) return;
    for (const ElfW(Dyn) *d = map->l_ld; d->d_tag != DT_NULL; d++) {
        if (d->d_tag == DT_FLAGS) flags = d->d_un.d_val;
        if (d->d_tag == DT_FLAGS_1) flags_1 = d->d_un.d_val;
        if (d->d_tag == DT_TEXTREL) text_relocations = 1;
    }
    ok((flags_1 & DF_1_NODELETE) != 0, "it is linked with -z nodelete, because its threads may outlive a context");
    ok(!text_relocations && (flags & (DF_TEXTREL | DF_STATIC_TLS)) == 0,
       "it has no text relocations and no static thread-local storage");
}

/* Run a small product many times, to find out whether memory or threads grow. */
static int32_t small_products(void)
{
    const struct product_shape shape = { 31, 29, 17, GRAFT_I32, GRAFT_F32, 0, 0, PRODUCT_EXACT };
    struct sample              sample = { 3 };
    int32_t                    rc = GRAFT_OK;

    for (int i = 0; i < ROUNDS && rc == GRAFT_OK; i++) {
        struct product product;

        judge_product_open(&product, &sample, &shape);
        product.args.semiring = GRAFT_PLUS_SECOND;
        product.args.threads = 2;
        rc = judge.mxm->run(judge.context, &product.args, NULL);
        judge_product_close(&product);
    }
    return rc;
}

static void check_manners(const char *name)
{
    const char *fault;
    int64_t     bytes;
    int32_t     rc;
    int         threads;

    manners_begin();
    rc = small_products();
    threads = manners_threads();
    bytes = host.live_bytes;
    if (rc == GRAFT_OK) rc = small_products();
    fault = manners_end();
    if (rc == GRAFT_ERR_UNSUPPORTED) {
        skip(3, "%s supports no sum over neighbours of float", name);
        return;
    }
    ok_fault("it prints nothing, and leaves settings of the process alone", rc == GRAFT_OK ? fault : "it fails");
    ok(manners_threads() <= threads, "it leaves no more threads than the %d of its team and the process", threads);
    ok(host.live_bytes <= bytes, "it frees what it prepares for a matrix: %lld bytes before, %lld after",
       (long long)bytes, (long long)host.live_bytes);
}

static void judge_one_kernel(const struct wish *wish, const graft_module_entry *entry)
{
    char name[64];

    snprintf(name, sizeof name, "%s", entry->name);
    judge.strict = 1;
    if (!ok(judge.api->set(judge.context, "mxm.kernel", name, NULL) == GRAFT_OK &&
                judge.api->set(judge.context, "strict", "yes", NULL) == GRAFT_OK,
            "kernel %s is chosen", name))
        return;
    check_manners(name);
    judge_kernel(name);
    judge_epilogue(name);
    if (wish->large) judge_kernel_large(name);
    ok(judge.by_kernel > 0, "kernel %s ran %d products", name, judge.by_kernel);
}

static void check_module(const struct wish *wish, const char *path)
{
    graft_error        error = GRAFT_INIT(graft_error);
    graft_module_entry entry;
    const char        *fault;
    int32_t            rc;

    manners_begin();
    rc = judge.api->load_module(judge.context, path, &error);
    fault = manners_end();
    if (rc == GRAFT_OK && find_entry(path, &entry) && strcmp(entry.kind, "transport") == 0) {
        skip(1, "transport modules are not judged");
        return;
    }
    if (!ok(rc == GRAFT_OK && find_entry(path, &entry), "%s is a module that can be used here", path)) {
        diag("%s", error.message);
        return;
    }
    ok_fault("loading it changes and prints nothing", fault);
    if (entry.noted) ok(1, "it has a note, with preference %d", entry.preference);
    else skip(1, "it has no note: GRAFT_MODULE_NOTE in graft_module.h; with auto it counts as preference 1");
    check_link(path);
    if (strcmp(entry.kind, "kernel") == 0) judge_one_kernel(wish, &entry);
    else judge_dense(path);
}

/* Make all checks of the module in this child process. \return the exit status */
static int judge_module(const struct wish *wish)
{
    graft_error error = GRAFT_INIT(graft_error);
    char        path[PATH_MAX];

    alarm((unsigned)(wish->seconds > 0 ? wish->seconds : wish->large ? 10 * SECONDS : SECONDS));
    strict_host_init(&host);
    if (realpath(wish->module, path) == NULL) {
        printf("Bail out! there is no file '%s'\n", wish->module);
        return 2;
    }
    if (open_library(wish, &error) < 0) {
        printf("Bail out! %s\n", error.message);
        return 2;
    }
    check_module(wish, path);
    judge.api->close(judge.context);
    ok(host.fault == NULL && host.live_blocks == 0, "all memory of the host is freed: %lld bytes are left%s%s",
       (long long)host.live_bytes, host.fault != NULL ? "; " : "", host.fault != NULL ? host.fault : "");
    done();
    return tap_failed > 0;
}

/* Read the arguments. \return 1 to go on; 0 if the program is done; -1 after an error message */
static int read_wish(int argc, char **argv, struct wish *wish)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--library") == 0 && i + 1 < argc) wish->library = argv[++i];
        else if (strcmp(argv[i], "--large") == 0) wish->large = 1;
        else if (strcmp(argv[i], "--timeout") == 0 && i + 1 < argc) {
            wish->seconds = strtol(argv[++i], NULL, 10);
            if (wish->seconds >= 1 && wish->seconds <= SECONDS_MOST) continue;
            return fprintf(stderr, "graft-check: --timeout is '%s', expected 1 to %d seconds\n", argv[i], SECONDS_MOST),
                   -1;
        } else if (strcmp(argv[i], "--version") == 0) wish->version = 1;
        else if (strcmp(argv[i], "--help") == 0) return printf("%s", usage), 0;
        else if (argv[i][0] != '-' && wish->module == NULL) wish->module = argv[i];
        else return fprintf(stderr, "graft-check: unknown argument '%s'\n%s", argv[i], usage), -1;
    }
    if (wish->module == NULL && !wish->version) return fprintf(stderr, "%s", usage), -1;
    return 1;
}

/* Report how the child process ended. \return the exit status */
static int tell_end(int status)
{
    if (WIFEXITED(status)) {
        printf("Bail out! the module ends the process: exit(%d)\n", WEXITSTATUS(status));
        return 1;
    }
    printf("Bail out! the module %s\n", WTERMSIG(status) == SIGALRM ? "hangs" : "ends the process: a crash");
    printf("# signal %d (%s)\n", WTERMSIG(status), strsignal(WTERMSIG(status)));
    return 1;
}

int main(int argc, char **argv)
{
    struct wish wish = { 0 };
    const int   go = read_wish(argc, argv, &wish);
    int         ends[2], status = 0;
    char        verdict;
    pid_t       child;

    if (go <= 0) return go < 0 ? 2 : 0;
    if (wish.version) return print_version(stdout, "graft-check", wish.library);
    fflush(NULL);
    child = pipe(ends) == 0 ? fork() : -1;
    if (child == 0) {
        verdict = (char)judge_module(&wish);
        fflush(NULL);
        _exit(write(ends[1], &verdict, 1) == 1 ? 0 : 2);
    }
    if (child < 0 || waitpid(child, &status, 0) != child) {
        printf("Bail out! no process can be made\n");
        return 2;
    }
    /* If the child has written no byte to the pipe, the module has ended the process before all checks were made. */
    close(ends[1]);
    return read(ends[0], &verdict, 1) == 1 ? verdict : tell_end(status);
}
