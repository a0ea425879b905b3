/* A file that appears whole or not at all.
 * SPDX-License-Identifier: Apache-2.0 */
#include "output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int32_t write_failed(const struct output_file *file, graft_error *error)
{
    return problem_errno(error, "write", file->path);
}

/** Set the permissions of the user's mask: mkstemp() creates files that only the owner can read. */
static int open_temporary(char *name)
{
    const mode_t mask = umask(0);
    const int    fd = mkostemp(name, O_CLOEXEC);

    umask(mask);
    if (fd >= 0 && fchmod(fd, 0666 & ~mask) != 0) {
        const int saved_errno = errno;
        close(fd);
        unlink(name);
        errno = saved_errno;
        return -1;
    }
    return fd;
}

int32_t output_begin(struct output_file *file, const char *path, graft_error *error)
{
    struct stat info;
    const int   exists = stat(path, &info) == 0;
    const int   in_place = exists && !S_ISREG(info.st_mode);
    int         fd = -1;
    int32_t     rc = GRAFT_OK;

    *file = (struct output_file){ .path = strdup(path) };
    if (file->path == NULL || (!in_place && asprintf(&file->temporary, "%s.XXXXXX", path) < 0)) {
        file->temporary = NULL;
        rc = problem_memory(error, "the name of a file");
        goto done;
    }
    fd = in_place ? open(path, O_WRONLY | O_CLOEXEC) : open_temporary(file->temporary);
    if (fd < 0) {
        rc = write_failed(file, error);
        free(file->temporary);
        file->temporary = NULL;
        goto done;
    }
    file->stream = fdopen(fd, "wb");
    if (file->stream == NULL) {
        rc = write_failed(file, error);
        close(fd);
    }
done:
    if (rc < 0) output_abort(file);
    return rc;
}

/** Make the new name itself safe from a power cut. File systems that cannot say so with EINVAL. */
static int sync_folder_of(const char *path)
{
    char *copy = strdup(path);
    int   fd = copy != NULL ? open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    int   bad = fd < 0 || (fsync(fd) != 0 && errno != EINVAL);

    if (fd >= 0) close(fd);
    free(copy);
    return bad;
}

int32_t output_end(struct output_file *file, graft_error *error)
{
    int32_t rc = GRAFT_OK;
    FILE   *stream = file->stream;
    int     bad = ferror(stream) | fflush(stream);

    if (!bad && file->temporary != NULL) bad = fsync(fileno(stream));
    if (bad) {
        rc = write_failed(file, error);
        goto done;
    }
    file->stream = NULL;
    if (fclose(stream) != 0) {
        rc = write_failed(file, error);
        goto done;
    }
    if (file->temporary == NULL) goto done;
    if (rename(file->temporary, file->path) != 0) {
        rc = write_failed(file, error);
        goto done;
    }
    free(file->temporary);
    file->temporary = NULL;
    if (sync_folder_of(file->path)) rc = write_failed(file, error);
done:
    output_abort(file);
    return rc;
}

void output_abort(struct output_file *file)
{
    if (file->stream != NULL) fclose(file->stream);
    if (file->temporary != NULL) unlink(file->temporary);
    free(file->temporary);
    free(file->path);
    *file = (struct output_file){ 0 };
}

int32_t output_check(const char *path, graft_error *error)
{
    struct output_file file;
    struct stat        info;
    int32_t            rc;

    if (stat(path, &info) == 0 && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode)) {
        /* Opening a pipe and closing it again would end it for its reader. */
        return access(path, W_OK) == 0 ? GRAFT_OK : problem_errno(error, "write", path);
    }
    rc = output_begin(&file, path, error);
    output_abort(&file);
    return rc;
}
