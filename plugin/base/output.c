/* Files that appear complete or not at all.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/output.h"

#include "base/assert.h"
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
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

/* Writing more than the process may would end the host by a signal. */
static int check_limit(int64_t bytes)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || (rlim_t)bytes <= limit.rlim_cur)
        return 0;
    errno = EFBIG;
    return -1;
}

void gr_output_folder(char folder[PATH_MAX], const char *path)
{
    const char *slash = strrchr(path, '/');

    snprintf(folder, PATH_MAX, "%.*s", slash == NULL ? 1 : (int)(slash - path) + 1, slash == NULL ? "." : path);
}

/* After a crash the file has its name only if the folder is on the disk too. Some systems cannot sync a folder. */
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

/* A rename would replace a device or a pipe by a file. */
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

int32_t gr_output_begin(struct gr_output *output, const char *path, int64_t bytes, graft_error *error)
{
    const int32_t rc = check_place(path, error);

    output->fd = -1;
    output->written = 0;
    output->path = path;
    if (rc < 0) return rc;
    if (snprintf(output->beside, sizeof output->beside, "%s.%d.tmp", path, (int)gettid()) >= (int)sizeof output->beside)
        return gr_output_failed(path, ENAMETOOLONG, error);
    if (check_limit(bytes) < 0) return gr_output_failed(path, errno, error);
    unlink(output->beside); /* of a thread that died and had our number */
    output->fd = open(output->beside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    return output->fd >= 0 ? GRAFT_OK : gr_output_failed(path, errno, error);
}

int32_t gr_output_write(struct gr_output *output, const void *from, int64_t bytes, graft_error *error)
{
    GR_ASSERT(output->fd >= 0 && bytes >= 0);
    for (int64_t done = 0; done < bytes;) {
        const ssize_t more =
            pwrite(output->fd, (const char *)from + done, (size_t)(bytes - done), output->written + done);

        if (more < 0 && errno != EINTR) return gr_output_failed(output->path, errno, error);
        if (more > 0) done += more;
    }
    output->written += bytes;
    return GRAFT_OK;
}

/* The file at `path` gets a second name, so that at every moment there is one at `path`. Where a file system has no
 * links, it moves there. */
static int keep_previous(const char *path, const char *previous, const char *beside)
{
    unlink(beside); /* of a thread that died and had our number */
    if (link(path, beside) == 0) {
        const int failed = rename(beside, previous);

        unlink(beside); /* it is still there if `previous` was the same file already */
        return failed;
    }
    return errno == ENOENT ? 0 : rename(path, previous);
}

int32_t gr_output_end(struct gr_output *output, const char *previous, graft_error *error)
{
    char link_name[PATH_MAX];
    int  code = 0;

    GR_ASSERT(output->fd >= 0);
    if (fsync(output->fd) != 0) code = errno;
    if (close(output->fd) != 0 && code == 0) code = errno;
    output->fd = -1;
    if (snprintf(link_name, sizeof link_name, "%s.%d.old", output->path, (int)gettid()) >= (int)sizeof link_name)
        code = ENAMETOOLONG;
    if (code == 0 && previous != NULL && keep_previous(output->path, previous, link_name) != 0) code = errno;
    if (code == 0 && rename(output->beside, output->path) != 0) code = errno;
    if (code != 0) {
        unlink(output->beside);
        return gr_output_failed(output->path, code, error);
    }
    sync_folder(output->path);
    return GRAFT_OK;
}

void gr_output_abort(struct gr_output *output)
{
    if (output->fd < 0) return;
    close(output->fd);
    output->fd = -1;
    unlink(output->beside);
}
