/* Writes output files atomically.
 * SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE 1 /* program_invocation_short_name */
#include "output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* If two processes write the same file, one waits for the other for at most five seconds. */
enum { TRIES = 500, PAUSE_MS = 10, WHILE_SECONDS = 60, LINKS_MOST = 40 };

static int32_t write_failed(const struct output_file *file, graft_error *error)
{
    return problem_errno(error, "write", file->path);
}

/** Returns whether the name still refers to the open file. */
static int is_there(int fd, const char *name)
{
    struct stat here, there;

    return fstat(fd, &here) == 0 && stat(name, &there) == 0 && here.st_ino == there.st_ino &&
           here.st_dev == there.st_dev;
}

/** Returns whether no process is writing the file. Then the file is not locked or, on a file system without locks, it
 *  has not changed for WHILE_SECONDS. */
static int is_dead(int fd)
{
    struct stat info;

    if (flock(fd, LOCK_EX | LOCK_NB) == 0) return 1;
    return errno != EWOULDBLOCK && fstat(fd, &info) == 0 && info.st_mtime < time(NULL) - WHILE_SECONDS;
}

/** Remove the temporary file of a process that was killed. Fails with EBUSY if a process is still writing the file. */
static int remove_dead(const char *name)
{
    const int fd = open(name, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    int       code = 0;

    if (fd < 0) return errno == ENOENT ? 0 : -1;
    if (!is_dead(fd)) code = EBUSY;
    else if (is_there(fd, name) && unlink(name) != 0) code = errno;
    close(fd);
    errno = code;
    return code == 0 ? 0 : -1;
}

/** Create the temporary file, and lock it while it is open, if the file system supports locks. Another process may have
 *  removed the file before it was locked. */
static int open_temporary(const char *name)
{
    for (int i = 0; i < TRIES; i++) {
        const int fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);

        if (fd >= 0 && (flock(fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) && is_there(fd, name)) return fd;
        if (fd >= 0) close(fd);
        else if (errno != EEXIST) return -1;
        if (fd < 0 && remove_dead(name) != 0) {
            if (errno != EBUSY) return -1;
            nanosleep(&(struct timespec){ .tv_nsec = PAUSE_MS * 1000000 }, NULL);
        }
    }
    errno = EBUSY;
    return -1;
}

/** Returns the target of symbolic links, which need not exist. The caller frees it. Failures return NULL and set errno.
 */
static char *follow_links(const char *path)
{
    char  target[PATH_MAX];
    char *place = strdup(path);

    for (int links = 0; place != NULL && links < LINKS_MOST; links++) {
        const ssize_t length = readlink(place, target, sizeof target);
        const char   *slash = strrchr(place, '/');
        const int     folder = slash != NULL && target[0] != '/' ? (int)(slash + 1 - place) : 0;
        char         *next = NULL;

        if (length < 0) return place;
        if (asprintf(&next, "%.*s%.*s", folder, place, (int)length, target) < 0) next = NULL;
        free(place);
        place = next;
    }
    if (place != NULL) errno = ELOOP;
    free(place);
    return NULL;
}

int32_t output_begin(struct output_file *file, const char *path, graft_error *error)
{
    struct stat info;
    const int   exists = stat(path, &info) == 0;
    const int   in_place = exists && !S_ISREG(info.st_mode);
    int         fd = -1;
    int32_t     rc = GRAFT_OK;

    *file = (struct output_file){ .path = in_place ? strdup(path) : follow_links(path) };
    if (file->path == NULL) {
        rc = problem_errno(error, "write", path);
        goto done;
    }
    if (!in_place && asprintf(&file->temporary, "%s.graft-train.tmp", file->path) < 0) {
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

/** Flush the folder, so that the new name survives a power failure. File systems that do not support this return
 * EINVAL. */
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
    if (file->temporary != NULL && rename(file->temporary, file->path) != 0) {
        rc = write_failed(file, error);
        goto done;
    }
    file->stream = NULL;
    if (fclose(stream) != 0) rc = write_failed(file, error);
    if (rc < 0 || file->temporary == NULL) goto done;
    free(file->temporary);
    file->temporary = NULL;
    if (sync_folder_of(file->path)) rc = write_failed(file, error);
done:
    output_abort(file);
    return rc;
}

void output_abort(struct output_file *file)
{
    if (file->temporary != NULL) unlink(file->temporary);
    if (file->stream != NULL) fclose(file->stream);
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
        /* A pipe is not opened here, because closing it again would be the end of the file for its reader. */
        return access(path, W_OK) == 0 ? GRAFT_OK : problem_errno(error, "write", path);
    }
    rc = output_begin(&file, path, error);
    output_abort(&file);
    return rc;
}
