/* Writes files that appear complete or not at all.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/output.h"

#include "base/assert.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

int32_t gr_output_failed(const char *path, int code, graft_error *error)
{
    char shown[GR_FILE_NAME];

    gr_file_show_path(shown, path);
    return gr_fail_native(error, GRAFT_ERR_IO, code, "'%s' cannot be written: %s", shown, gr_file_errno_text(code));
}

int gr_output_fits(int64_t bytes)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || (rlim_t)bytes <= limit.rlim_cur)
        return 1;
    errno = EFBIG;
    return 0;
}

void gr_output_folder(char folder[PATH_MAX], const char *path)
{
    const char *slash = strrchr(path, '/');

    snprintf(folder, PATH_MAX, "%.*s", slash == NULL ? 1 : (int)(slash - path) + 1, slash == NULL ? "." : path);
}

/* Write the folder of a file to the disk, because after a crash the file has its name only if the folder was written
 * too. Some systems cannot do this. */
static void sync_folder(const char *path)
{
    char folder[PATH_MAX];
    int  fd;

    gr_output_folder(folder, path);
    fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return;
    (void)fsync(fd);
    close(fd);
}

/* Refuse a path that is not a regular file, because renaming would replace a device or a pipe by a file. */
static int32_t check_place(const char *path, graft_error *error)
{
    struct stat status;
    char        shown[GR_FILE_NAME];

    if (stat(path, &status) != 0 || S_ISREG(status.st_mode)) return GRAFT_OK;
    if (S_ISDIR(status.st_mode)) return gr_output_failed(path, EISDIR, error);
    gr_file_show_path(shown, path);
    return gr_fail_native(error, GRAFT_ERR_IO, EINVAL, "'%s' is a device or a pipe, expected a regular file or nothing",
                          shown);
}

/* Give the new file the permissions of the old one. Failure is ignored: some file systems have no permissions. */
static void copy_mode(const char *place, int to)
{
    struct stat status;

    if (stat(place, &status) == 0) (void)!fchmod(to, status.st_mode & 0777);
}

enum { LINKS_MOST = 40 }; /* the limit of Linux */

/* Find the file to which the symbolic links at `path` lead. It need not exist. \return 0, or errno */
static int follow_links(char place[PATH_MAX], const char *path)
{
    char target[PATH_MAX];

    if (snprintf(place, PATH_MAX, "%s", path) >= PATH_MAX) return ENAMETOOLONG;
    for (int links = 0; links < LINKS_MOST; links++) {
        const ssize_t length = readlink(place, target, sizeof target);
        char         *name = strrchr(place, '/');

        if (length < 0) return errno == EINVAL || errno == ENOENT ? 0 : errno; /* not a link, or no file */
        name = target[0] == '/' || name == NULL ? place : name + 1;
        if (length >= PATH_MAX - (name - place)) return ENAMETOOLONG;
        memcpy(name, target, (size_t)length);
        name[length] = '\0';
    }
    return ELOOP;
}

int32_t gr_output_begin(struct gr_output *output, const char *path, int64_t bytes, graft_error *error)
{
    const int32_t rc = check_place(path, error);
    int           code;

    output->temporary.fd = -1;
    output->written = 0;
    output->path = path;
    if (rc < 0) return rc;
    code = follow_links(output->place, path);
    if (code != 0) return gr_output_failed(path, code, error);
    if (!gr_output_fits(bytes)) return gr_output_failed(path, errno, error);
    gr_temporary_sweep(output->place);
    code = gr_temporary_create(&output->temporary, output->place);
    if (code != 0) return gr_output_failed(path, code, error);
    copy_mode(output->place, output->temporary.fd);
    return GRAFT_OK;
}

int32_t gr_output_write(struct gr_output *output, const void *from, int64_t bytes, graft_error *error)
{
    GR_ASSERT(output->temporary.fd >= 0 && bytes >= 0);
    if (gr_file_write(output->temporary.fd, output->written, from, bytes) != 0)
        return gr_output_failed(output->path, errno, error);
    output->written += bytes;
    return GRAFT_OK;
}

static int copy_contents(int from, int to)
{
    char    buffer[1 << 14];
    int64_t done = 0;
    ssize_t some;

    while ((some = pread(from, buffer, sizeof buffer, done)) != 0) {
        if (some < 0 && errno != EINTR) return -1;
        if (some > 0 && gr_file_write(to, done, buffer, some) != 0) return -1;
        if (some > 0) done += some;
    }
    return fsync(to);
}

static int copy_file(const char *path, const char *copy)
{
    const int from = open(path, O_RDONLY | O_CLOEXEC);
    const int to =
        from >= 0 ? gr_temporary_above_standard(open(copy, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666)) : -1;
    struct stat status;
    int failed = to < 0 || fstat(from, &status) != 0 || !gr_output_fits(status.st_size) || copy_contents(from, to) != 0
                     ? errno
                     : 0;

    if (to >= 0) copy_mode(path, to);
    if (to >= 0 && close(to) != 0 && failed == 0) failed = errno;
    if (from >= 0) close(from);
    errno = failed;
    return failed != 0 ? -1 : 0;
}

enum { PREVIOUS_TRIES = 100 };

/* Keep the current file as `previous`, by a hard link, or by a copy where the file system has no links. The link is
 * made under a temporary name and then renamed, so at every moment there is a complete file at `place`, and one at
 * `previous` if there was one. If the temporary name exists, a dead writer has left it, because only this writer has
 * the suffix. Another writer that does not see this one may remove it, so this is tried several times. */
static int keep_previous(const struct gr_output *output, const char *previous)
{
    char beside[PATH_MAX];
    int  failed = EEXIST;

    gr_temporary_sweep_second(previous, output->place);
    if (snprintf(beside, sizeof beside, "%s%s", previous, output->temporary.suffix) >= (int)sizeof beside)
        return ENAMETOOLONG;
    for (int i = 0; i < PREVIOUS_TRIES && (failed == EEXIST || failed == ENOENT); i++) {
        failed = 0;
        if (link(output->place, beside) != 0) {
            if (errno == ENOENT) return 0;
            if (errno != EEXIST && copy_file(output->place, beside) == 0) errno = 0;
            failed = errno;
        }
        if (failed == 0 && rename(beside, previous) != 0) failed = errno;
        unlink(beside); /* rename() does nothing if both names are links to one file */
    }
    return failed;
}

/* The temporary file stays open, and thereby locked, until it is renamed: other writers remove unlocked temporary
 * files. */
int32_t gr_output_end(struct gr_output *output, const char *previous, graft_error *error)
{
    int code = 0;

    GR_ASSERT(output->temporary.fd >= 0);
    if (fsync(output->temporary.fd) != 0) code = errno;
    if (code == 0 && previous != NULL) code = keep_previous(output, previous);
    if (code == 0 && rename(output->temporary.path, output->place) != 0) code = errno;
    if (code != 0) {
        gr_output_abort(output);
        return gr_output_failed(output->path, code, error);
    }
    close(output->temporary.fd);
    output->temporary.fd = -1;
    sync_folder(output->place);
    if (previous != NULL && strcmp(output->place, output->path) != 0) sync_folder(previous);
    return GRAFT_OK;
}

void gr_output_abort(struct gr_output *output)
{
    if (output->temporary.fd < 0) return;
    unlink(output->temporary.path);
    close(output->temporary.fd);
    output->temporary.fd = -1;
}
