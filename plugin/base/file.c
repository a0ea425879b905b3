/* Opens and reads regular files without blocking or killing the host: opening a pipe does not wait, and files are not
 * mapped, because access to a truncated mapped file raises a signal.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/file.h"

#include "base/assert.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const char *gr_file_errno_text(int code)
{
#ifdef __GLIBC__
    const char *text = strerrordesc_np(code);
#else
    const char *text = strerror(code); /* musl has no strerrordesc_np(), but its strerror() does not allocate either */
#endif

    return text != NULL ? text : "unknown error";
}

static const char *kind_of(mode_t mode)
{
    if (S_ISDIR(mode)) return "a folder";
    if (S_ISFIFO(mode)) return "a pipe";
    if (S_ISCHR(mode) || S_ISBLK(mode)) return "a device";
    return "no regular file";
}

int32_t gr_file_open(struct gr_file *file, int at, const char *path, const char *shown, graft_error *error)
{
    struct stat status;
    int         fd;

    file->fd = -1;
    snprintf(file->name, sizeof file->name, "%s", shown);
    do {
        fd = openat(at, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    } while (fd < 0 && errno == EINTR);
    if (fd < 0 || fstat(fd, &status) < 0) {
        const int     code = errno;
        const int32_t rc = code == ENOENT || code == ENOTDIR ? GRAFT_ERR_NOT_FOUND : GRAFT_ERR_IO;

        if (fd >= 0) close(fd);
        return gr_fail_native(error, rc, code, "'%s' cannot be opened: %s", shown, gr_file_errno_text(code));
    }
    if (!S_ISREG(status.st_mode)) {
        close(fd);
        return gr_fail(error, GRAFT_ERR_FORMAT, "'%s' is %s, expected a regular file", shown, kind_of(status.st_mode));
    }
    file->fd = fd;
    file->size = status.st_size;
    return GRAFT_OK;
}

int32_t gr_file_read(const struct gr_file *file, int64_t offset, void *to, int64_t bytes, graft_error *error)
{
    GR_ASSERT(file->fd >= 0 && offset >= 0 && bytes >= 0);
    for (int64_t have = 0; have < bytes;) {
        const ssize_t more = pread(file->fd, (char *)to + have, (size_t)(bytes - have), offset + have);

        if (more < 0 && errno == EINTR) continue;
        if (more < 0) {
            const int code = errno;
            return gr_fail_native(error, GRAFT_ERR_IO, code, "'%s' cannot be read at byte %lld: %s", file->name,
                                  (long long)(offset + have), gr_file_errno_text(code));
        }
        if (more == 0) {
            return gr_fail(error, GRAFT_ERR_IO, "'%s' ended at byte %lld, it had %lld bytes when it was opened",
                           file->name, (long long)(offset + have), (long long)file->size);
        }
        have += more;
    }
    return GRAFT_OK;
}

int gr_file_write(int fd, int64_t offset, const void *from, int64_t bytes)
{
    for (int64_t done = 0; done < bytes;) {
        const ssize_t more = pwrite(fd, (const char *)from + done, (size_t)(bytes - done), offset + done);

        if (more < 0 && errno != EINTR) return -1;
        if (more > 0) done += more;
    }
    return 0;
}

void gr_file_close(struct gr_file *file)
{
    if (file->fd >= 0) close(file->fd);
    file->fd = -1;
}

/* If `at` is in the middle of a UTF-8 character, return the beginning of the next one. */
static const char *skip_half(const char *at)
{
    while ((*at & 0xC0) == 0x80) at++;
    return at;
}

/* Find the last `parts` components of a path, without trailing slashes. */
static const char *path_tail(const char *path, int parts, int *length)
{
    const char *end = path + strlen(path), *begin;

    while (end > path + 1 && end[-1] == '/') end--;
    for (begin = end; begin > path; begin--) {
        if (begin[-1] == '/' && begin < end && --parts == 0) break;
    }
    if (end - begin > GR_FILE_NAME / 2) begin = skip_half(end - GR_FILE_NAME / 2);
    *length = (int)(end - begin);
    return begin;
}

static void make_printable(char *text)
{
    for (; *text != '\0'; text++) {
        if ((unsigned char)*text < ' ') *text = '?';
    }
}

void gr_file_show(char shown[GR_FILE_NAME], const char *folder, const char *file)
{
    int         length;
    const char *last = path_tail(folder, file != NULL ? 1 : 2, &length);

    snprintf(shown, GR_FILE_NAME, "%.*s%s%s", length, last, file != NULL ? "/" : "", file != NULL ? file : "");
    make_printable(shown);
}

void gr_file_show_path(char shown[GR_FILE_NAME], const char *path)
{
    const size_t length = strlen(path), room = GR_FILE_NAME - sizeof "...";
    const char  *end = path;

    if (length >= GR_FILE_NAME) end = skip_half(path + length - room);
    snprintf(shown, GR_FILE_NAME, "%s%s", end == path ? "" : "...", end);
    make_printable(shown);
}

const char *gr_file_quote(char quoted[GR_FILE_QUOTE], const char *bytes, int64_t count)
{
    int64_t length = count < GR_FILE_QUOTE ? count : GR_FILE_QUOTE - 1;

    for (int64_t i = 0; i < length; i++) quoted[i] = bytes[i] >= ' ' && bytes[i] <= '~' ? bytes[i] : '?';
    if (length < count) memcpy(quoted + length - 3, "...", 3);
    quoted[length] = '\0';
    return quoted;
}
