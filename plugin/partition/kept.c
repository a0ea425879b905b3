/* Files of a head and a body.
 * SPDX-License-Identifier: Apache-2.0 */
#include "partition/kept.h"

#include "base/crc.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static uint32_t crc_of(const void *head, const void *body, int64_t bytes)
{
    char without[GR_KEPT_HEAD];

    memcpy(without, head, sizeof without);
    memset(without + GR_KEPT_CRC, 0, sizeof(uint32_t));
    return gr_crc(gr_crc(0, without, sizeof without), body, (uint64_t)bytes);
}

/* 0, or -1 with errno. */
static int write_bytes(int fd, int64_t offset, const void *from, int64_t bytes)
{
    for (int64_t done = 0; done < bytes;) {
        const ssize_t more = pwrite(fd, (const char *)from + done, (size_t)(bytes - done), offset + done);

        if (more < 0 && errno != EINTR) return -1;
        if (more > 0) done += more;
    }
    return 0;
}

/* A file that is larger than the process may write would end the host by a signal. */
static int check_limit(int64_t bytes)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || (rlim_t)bytes <= limit.rlim_cur)
        return 0;
    errno = EFBIG;
    return -1;
}

static void folder_of(char folder[PATH_MAX], const char *path)
{
    const char *slash = strrchr(path, '/');

    snprintf(folder, PATH_MAX, "%.*s", slash == NULL ? 1 : (int)(slash - path) + 1, slash == NULL ? "." : path);
}

/* What has a name on the disk after a crash is the folder's business. Some systems cannot do that to a folder. */
static void sync_folder(const char *path)
{
    char folder[PATH_MAX];
    int  fd;

    folder_of(folder, path);
    fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return;
    (void)fsync(fd);
    close(fd);
}

static int write_file(const char *path, const void *head, const void *body, int64_t bytes)
{
    int fd, code;

    unlink(path); /* of a process that died and had our number */
    fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0) return -1;
    if (check_limit(GR_KEPT_HEAD + bytes) == 0 && write_bytes(fd, 0, head, GR_KEPT_HEAD) == 0 &&
        write_bytes(fd, GR_KEPT_HEAD, body, bytes) == 0 && fsync(fd) == 0)
        return close(fd);
    code = errno;
    close(fd);
    errno = code;
    return -1;
}

static int32_t cannot_write(const char *path, int code, graft_error *error)
{
    char shown[GR_FILE_NAME];

    gr_file_show_path(shown, path);
    return gr_fail_native(error, GRAFT_ERR_IO, code, "'%s' cannot be written: %s", shown, gr_file_errno_text(code));
}

int32_t gr_kept_check_place(const char *path, graft_error *error)
{
    char folder[PATH_MAX];

    folder_of(folder, path);
    return access(folder, W_OK | X_OK) == 0 ? GRAFT_OK : cannot_write(path, errno, error);
}

int32_t gr_kept_write(const char *path, void *head, const void *body, int64_t bytes, graft_error *error)
{
    const uint32_t crc = crc_of(head, body, bytes);
    char           beside[PATH_MAX];
    int            code;

    memcpy((char *)head + GR_KEPT_CRC, &crc, sizeof crc);
    errno = ENAMETOOLONG;
    if (snprintf(beside, sizeof beside, "%s.%d.tmp", path, (int)getpid()) < (int)sizeof beside &&
        write_file(beside, head, body, bytes) == 0 && rename(beside, path) == 0) {
        sync_folder(path);
        return GRAFT_OK;
    }
    code = errno;
    if (code != ENAMETOOLONG) unlink(beside);
    return cannot_write(path, code, error);
}

int32_t gr_kept_open(struct gr_file *file, const char *path, const char *what, const char *magic, void *head,
                     graft_error *error)
{
    char    shown[GR_FILE_NAME], quoted[GR_FILE_QUOTE], expected[GR_FILE_QUOTE];
    int32_t rc = GRAFT_OK;

    gr_file_show_path(shown, path);
    GR_TRY(gr_file_open(file, AT_FDCWD, path, shown, error));
    if (file->size < GR_KEPT_HEAD)
        return gr_fail(error, GRAFT_ERR_FORMAT, "'%s' has %lld bytes, and %s has %d at least", file->name,
                       (long long)file->size, what, GR_KEPT_HEAD);
    GR_TRY(gr_file_read(file, 0, head, GR_KEPT_HEAD, error));
    if (memcmp(head, magic, GR_KEPT_MAGIC) != 0)
        return gr_fail(error, GRAFT_ERR_FORMAT, "'%s' is not %s: it begins with '%s', expected '%s'", file->name, what,
                       gr_file_quote(quoted, head, GR_KEPT_MAGIC), gr_file_quote(expected, magic, GR_KEPT_MAGIC));
done:
    return rc;
}

int32_t gr_kept_read(const struct gr_file *file, const void *head, void *body, graft_error *error)
{
    const int64_t bytes = file->size - GR_KEPT_HEAD;
    uint32_t      said, found;
    int32_t       rc = gr_file_read(file, GR_KEPT_HEAD, body, bytes, error);

    if (rc < 0) return rc;
    memcpy(&said, (const char *)head + GR_KEPT_CRC, sizeof said);
    found = crc_of(head, body, bytes);
    if (found == said) return GRAFT_OK;
    return gr_fail(error, GRAFT_ERR_FORMAT, "'%s' is damaged: its CRC32C is %08x, expected %08x", file->name, found,
                   said);
}
