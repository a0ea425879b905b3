/* Opens transports of modules. A module for an MPI is linked with the library of that MPI. It is loaded only if the
 * process has this MPI already, or has none and the host asks to start one. So no process ever gets a second MPI.
 * SPDX-License-Identifier: Apache-2.0 */
#include "comm/open.h"

#include "base/assert.h"
#include "base/environment.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

enum { MPI_MOST = 4, PATH_MOST = 512 };

static const char *const family_title[] = { "Open MPI", "MPICH" };
static const char *const family_module[] = { "openmpi", "mpich" };
enum family { OPEN_MPI, MPICH, FAMILIES, NO_FAMILY = FAMILIES };

/* The MPI libraries in the process. */
struct loaded {
    int  count;
    char path[MPI_MOST][PATH_MOST];
};

static int note_library(struct dl_phdr_info *info, size_t bytes, void *arg)
{
    static const char *const stems[] = { "libmpi.so", "libmpich.so", "libmpi_abi.so" };
    struct loaded           *loaded = arg;
    const char              *file = info->dlpi_name != NULL ? strrchr(info->dlpi_name, '/') : NULL;

    (void)bytes;
    file = file != NULL ? file + 1 : info->dlpi_name;
    for (int i = 0; file != NULL && i < 3 && loaded->count < MPI_MOST; i++) {
        if (strncmp(file, stems[i], strlen(stems[i])) != 0) continue;
        snprintf(loaded->path[loaded->count++], PATH_MOST, "%s", info->dlpi_name);
    }
    return 0;
}

/* Find the family of an MPI by a symbol that only Open MPI has. Every other MPI is assumed to have the binary interface
 * of MPICH. */
static enum family family_of(const char *path)
{
    void       *library = dlopen(path, RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD);
    enum family family = MPICH;

    if (library == NULL) return NO_FAMILY;
    if (dlsym(library, "ompi_mpi_comm_world") != NULL) family = OPEN_MPI;
    dlclose(library);
    return family;
}

/* Find the family of the MPI in this process; NO_FAMILY: there is none. \return OK; ERR_STATE if there are several, or
 * if it is linked statically, where no module can use it. */
static int32_t find_mpi(enum family *family, struct loaded *loaded, graft_error *error)
{
    loaded->count = 0;
    dl_iterate_phdr(note_library, loaded);
    *family = loaded->count > 0 ? family_of(loaded->path[0]) : NO_FAMILY;
    if (loaded->count > 1)
        return gr_fail(error, GRAFT_ERR_STATE, "this process has two MPIs, '%.150s' and '%.150s'; expected one",
                       loaded->path[0], loaded->path[1]);
    if (loaded->count == 0 && dlsym(RTLD_DEFAULT, "MPI_Init") != NULL)
        return gr_fail(error, GRAFT_ERR_STATE,
                       "MPI is linked statically into this program, where no module can reach it; compile "
                       "adapters/mpi/graft_mpi.h into the program instead");
    return GRAFT_OK;
}

/* Find the family whose launcher started this process, by the environment variables that launchers set. */
static enum family launcher(const graft_context *context)
{
    if (gr_environment(context, "OMPI_COMM_WORLD_SIZE") != NULL) return OPEN_MPI;
    if (gr_environment(context, "PMI_SIZE") != NULL || gr_environment(context, "PMI_RANK") != NULL) return MPICH;
    return NO_FAMILY;
}

static enum family family_named(const char *module)
{
    enum family family = 0;

    while (family < FAMILIES && strcmp(module, family_module[family]) != 0) family++;
    return family;
}

/* Check that the module of a family, and with it its MPI library, may be loaded. */
static int32_t check_family(const graft_context *context, enum family wanted, int32_t start, graft_error *error)
{
    struct loaded loaded;
    enum family   found;
    const int32_t rc = find_mpi(&found, &loaded, error);

    if (rc < 0) return rc;
    if (found != NO_FAMILY && found != wanted)
        return gr_fail(error, GRAFT_ERR_STATE, "this process has %s ('%.150s'), and transport module '%s' is for %s",
                       family_title[found], loaded.path[0], family_module[wanted], family_title[wanted]);
    if (found == NO_FAMILY && !start)
        return gr_fail(error, GRAFT_ERR_STATE,
                       "this process has not started MPI, and transport module '%s' was not asked to start it",
                       family_module[wanted]);
    found = launcher(context);
    if (start && found != NO_FAMILY && found != wanted)
        return gr_fail(error, GRAFT_ERR_STATE,
                       "this process was started by the launcher of %s, and transport module '%s' is for %s",
                       family_title[found], family_module[wanted], family_title[wanted]);
    return GRAFT_OK;
}

static int32_t choose_module(const graft_context *context, int32_t start, const char **module, graft_error *error)
{
    struct loaded loaded;
    enum family   family;
    const int32_t rc = find_mpi(&family, &loaded, error);

    if (rc < 0) return rc;
    if (family == NO_FAMILY && start) family = launcher(context);
    if (family == NO_FAMILY)
        return gr_fail(error, GRAFT_ERR_NOT_FOUND,
                       start ? "this process has no MPI, and no launcher of Open MPI or MPICH started it, for neither "
                               "OMPI_COMM_WORLD_SIZE nor PMI_SIZE or PMI_RANK is set"
                             : "this process has no MPI; start it, or ask for it to be started");
    *module = family_module[family];
    return GRAFT_OK;
}

int32_t gr_comm_transport_open(graft_context *context, const char *module, const graft_communicator *communicator,
                               graft_transport *transport, graft_error *error)
{
    const graft_transport_ops *ops;
    struct gr_module          *found;
    struct loaded              loaded;
    enum family                family;

    if (strcmp(module, "auto") == 0) GR_TRY(choose_module(context, communicator->start, &module, error));
    family = family_named(module);
    if (family != NO_FAMILY) GR_TRY(check_family(context, family, communicator->start, error));
    found = gr_module_find(context, "transport", module);
    if (found == NULL)
        return gr_fail(error, GRAFT_ERR_NOT_FOUND,
                       "there is no transport module '%.60s': no folder of modules has graft_transport_%.60s.so%s",
                       module, module,
                       family != NO_FAMILY ? "; a build of Graft has it if the headers of that MPI were there" : "");
    GR_TRY(gr_module_use(context, found, error));
    /* Check again, because the module may have loaded another build of the MPI. */
    if (family != NO_FAMILY) GR_TRY(find_mpi(&family, &loaded, error));
    ops = found->table->transport;
    GR_ASSERT(ops != NULL);
    return gr_module_status(found, "open", ops->open(&context->host, communicator, transport, error), error);
}
