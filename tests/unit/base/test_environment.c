/* Checks when the library reads environment variables: not if the host forbids it, and never in a set-user-ID program.
 * A variable that has an effect where it must not, or none where it must, fails a check: test_environment PARTITIONER
 * [secure]. With `secure` this is the set-user-ID copy of the test, which prints no TAP.
 * SPDX-License-Identifier: Apache-2.0 */
#include "fuzz/data_files.h"
#include "harness/graphs.h"
#include "harness/tap.h"

#include "graft_host.h"
#include "graft_transport.h"
#include "partition/metis.h"

#include <errno.h>
#include <grp.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NOBODY = 65534, NOT_SECURE = 77, CANNOT_RUN = 78 };

static struct data_folder folder; /* a folder in PATH with a program graft-metis */
static const char        *partitioner;
static graft_error        error = GRAFT_INIT(graft_error);

static char warned[4][512]; /* warnings since environment_open() */
static int  warnings;

static void environment_log(void *self, graft_log_level level, const char *message)
{
    (void)self;
    if (level == GRAFT_LOG_WARNING && warnings < 4) snprintf(warned[warnings++], sizeof warned[0], "%s", message);
}

static const graft_api *environment_open(uint32_t flags)
{
    const graft_host host = { .size = sizeof host, .flags = flags, .log = environment_log };
    const graft_api *api = NULL;

    warnings = 0;
    return graft_open(GRAFT_ABI_VERSION, GRAFT_ABI_VERSION, &host, &api, &error) == GRAFT_OK ? api : NULL;
}

/* Set options by variables, and check whether they were read. The result is NULL or an error in words. */
static const char *options_fault(uint32_t flags, int is_read)
{
    const graft_api *api;
    graft_option     option = GRAFT_INIT(graft_option);
    int              taken = 0;

    setenv("GRAFT_MXM_KERNEL", "from-outside", 1);
    api = environment_open(flags);
    for (int32_t i = 0; api != NULL && api->option_info(api->context, i, &option, NULL) == GRAFT_OK; i++)
        taken |= strcmp(option.value, "from-outside") == 0;
    if (api != NULL) api->close(api->context);
    setenv("GRAFT_LAYERS", "a", 1);
    api = environment_open(flags);
    unsetenv("GRAFT_LAYERS");
    unsetenv("GRAFT_MXM_KERNEL");
    if (api != NULL) api->close(api->context);
    if (taken != is_read) return taken ? "GRAFT_MXM_KERNEL was read" : "GRAFT_MXM_KERNEL was not read";
    if ((api == NULL) != is_read) return is_read ? "GRAFT_LAYERS was not read" : "GRAFT_LAYERS was read";
    return NULL;
}

/* Variables that no part of Graft reads must each give one warning, which has the nearest name. */
static const char *unknown_fault(uint32_t flags, int is_read)
{
    static const char *const names[][2] = {
        { "GRAFT_DENSE_MODUL", "'GRAFT_DENSE_MODULE'" },
        { "GRAFT_DEVICE", "CPUs only" },
        { "GRAFT_TEST_OF_MINE", NULL },
        { "GRAFT_GRB", NULL },
        { "GRAFT_ROOT", NULL },
        { "GRAFTED", NULL },
        { "GRAFT_SEED", NULL },
    };
    const size_t     count = sizeof names / sizeof *names;
    const graft_api *api;

    for (size_t i = 0; i < count; i++) setenv(names[i][0], "1", 1);
    api = environment_open(flags);
    for (size_t i = 0; i < count; i++) unsetenv(names[i][0]);
    if (api == NULL) return error.message;
    api->close(api->context);
    if (warnings != (is_read ? 2 : 0)) return warnings > 0 ? warned[warnings - 1] : "there is no warning";
    for (int k = 0; k < warnings; k++) {
        size_t i = 0;

        while (i < 2 && strstr(warned[k], names[i][0]) == NULL) i++;
        if (i == 2 || strstr(warned[k], names[i][1]) == NULL) return warned[k];
    }
    return NULL;
}

static const char *path_fault(const graft_api *api, int is_read)
{
    char          path[PATH_MAX];
    const int32_t rc = gr_partition_metis_find(api->context, path, sizeof path, &error);

    if (is_read && (rc != GRAFT_OK || strcmp(path, folder_path(&folder, "graft-metis")) != 0))
        return "PATH was not searched";
    if (!is_read && rc != GRAFT_ERR_NOT_FOUND) return "PATH was searched";
    return NULL;
}

/* The partitioning program fails if it gets the variable, and answers otherwise. */
static const char *child_fault(const graft_api *api, int is_read)
{
    struct graph graph;
    int32_t      rc, owner[1000];

    graph_init(&graph, 0);
    setenv("GRAFT_TEST_BEHAVIOUR", "fails", 1);
    rc = api->set(api->context, "partition.program", partitioner, &error);
    if (rc == GRAFT_OK && graph.rows.n_rows <= 1000) {
        rc = gr_partition_metis(
            &(struct gr_partition_input){ .context = api->context, .slice = &graph.slice, .parts = 2 }, owner, &error);
    }
    unsetenv("GRAFT_TEST_BEHAVIOUR");
    graph_fini(&graph);
    if (rc != (is_read ? GRAFT_ERR_MODULE : GRAFT_OK)) return rc == GRAFT_OK ? "a child got none" : error.message;
    return NULL;
}

/* Check which MPI would be started when the environment has the variables of launchers. */
static const char *launcher_fault(const graft_api *api, int is_read)
{
    const graft_transport_api *transports = api->get_interface(api->context, GRAFT_TRANSPORT_ID);
    const graft_communicator   start = { .size = sizeof start, .start = 1 };
    graft_transport            transport = GRAFT_INIT(graft_transport);
    int32_t                    rc;

    setenv("OMPI_COMM_WORLD_SIZE", "2", 1);
    rc = transports->open(api->context, "auto", &start, &transport, &error);
    unsetenv("OMPI_COMM_WORLD_SIZE");
    if (rc != GRAFT_ERR_NOT_FOUND) return "a transport was opened";
    return (strstr(error.message, "'openmpi'") != NULL) == is_read ? NULL : error.message;
}

static const char *environment_fault(uint32_t flags, int is_read)
{
    const char      *fault = options_fault(flags, is_read);
    const graft_api *api = environment_open(flags);

    if (fault == NULL) fault = unknown_fault(flags, is_read);
    if (fault != NULL) return fault;
    if (api == NULL) return error.message;
    fault = path_fault(api, is_read);
    if (fault == NULL) fault = child_fault(api, is_read);
    if (fault == NULL) fault = launcher_fault(api, is_read);
    api->close(api->context);
    return fault;
}

static int secure_main(void)
{
    const char *fault;

    if (getauxval(AT_SECURE) == 0) return NOT_SECURE;
    fault = environment_fault(0, 0);
    if (fault == NULL) return 0;
    fprintf(stderr, "# set-user-ID: %s\n", fault);
    return 1;
}

static void copy_program(const char *from, const char *to, mode_t mode)
{
    char   buffer[65536];
    FILE  *in = fopen(from, "rb"), *out = fopen(to, "wb");
    size_t count;

    files_check(in != NULL && out != NULL, to);
    while ((count = fread(buffer, 1, sizeof buffer, in)) > 0) files_check(fwrite(buffer, 1, count, out) == count, to);
    fclose(in);
    files_check(fclose(out) == 0 && chmod(to, mode) == 0, to);
}

/* Become a user without rights and run a copy of this program that belongs to root. That user may not be allowed to
 * enter the build folder. \return its exit status, or -1 for a signal */
static int run_secure_copy(void)
{
    struct data_folder place;
    char               copy[PATH_MAX + 256], child_program[PATH_MAX + 256];
    char *const        arguments[] = { copy, child_program, (char *)(uintptr_t)"secure", NULL };
    int                status = 0;
    pid_t              child;

    folder_create(&place); /* the library is part of this program, and looks for modules beside it first */
    snprintf(copy, sizeof copy, "%s", folder_path(&place, "copy"));
    copy_program("/proc/self/exe", copy, 04755);
    snprintf(child_program, sizeof child_program, "%s", folder_path(&place, "partitioner"));
    copy_program(partitioner, child_program, 0755);
    files_check(chmod(place.path, 0755) == 0, place.path);
    fflush(NULL);
    child = fork();
    if (child == 0) {
        if (setgroups(0, NULL) != 0 || setgid(NOBODY) != 0 || setuid(NOBODY) != 0) _exit(CANNOT_RUN);
        execv(arguments[0], arguments);
        _exit(CANNOT_RUN);
    }
    files_check(child > 0 && waitpid(child, &status, 0) == child, "fork");
    folder_destroy(&place);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void test_secure(void)
{
    static const char name[] = "a set-user-ID program reads no variables";
    const int         code = geteuid() == 0 ? run_secure_copy() : CANNOT_RUN;

    if (code == NOT_SECURE) skip(1, "this file system ignores the set-user-ID bit");
    else if (code == CANNOT_RUN) skip(1, "only root can try a set-user-ID program that others can run");
    else ok(code == 0, "%s", name);
}

int main(int argc, char **argv)
{
    if (argc < 2) return 2;
    partitioner = realpath(argv[1], NULL);
    files_check(partitioner != NULL, argv[1]);
    folder_create(&folder);
    files_check(symlink(partitioner, folder_path(&folder, "graft-metis")) == 0, "symlink");
    setenv("PATH", folder.path, 1);
    if (argc > 2) {
        const int code = secure_main();

        folder_destroy(&folder);
        return code;
    }
    ok_fault("without the host flag that forbids it, variables, PATH and launchers are read", environment_fault(0, 1));
    ok_fault("with the host flag that forbids it, variables, PATH and launchers are not read",
             environment_fault(GRAFT_HOST_NO_ENVIRONMENT, 0));
    ok(environment_open(1u << 31) == NULL && error.code == GRAFT_ERR_UNSUPPORTED &&
           strstr(error.message, "0x80000000") != NULL,
       "a host flag that the library does not know is refused");
    test_secure();
    folder_destroy(&folder);
    return done();
}
