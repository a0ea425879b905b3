/* Creates, locks and removes temporary files.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/temporary.h"

#include "base/clock.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { BOOT_DIGITS = 8, TRIES = 100, LOCK_TRIES = 20, DAY = 24 * 60 * 60 };

static const char no_boot_id[] = "00000000";

/* The first digits of the boot id, a number that a machine draws when it starts. Locks are reliable only among
 * processes of one machine that has not been restarted. */
static void boot_digits(char digits[BOOT_DIGITS + 1])
{
    const int file = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);

    digits[BOOT_DIGITS] = '\0';
    if (file < 0 || read(file, digits, BOOT_DIGITS) != BOOT_DIGITS || strspn(digits, "0123456789abcdef") < BOOT_DIGITS)
        memcpy(digits, no_boot_id, BOOT_DIGITS);
    if (file >= 0) close(file);
}

/* A random number makes repetitions rare; O_EXCL ensures that no two writers have the same name. */
static uint32_t random_number(void)
{
    uint32_t number;

    if (getrandom(&number, sizeof number, GRND_NONBLOCK) == sizeof number) return number;
    return (uint32_t)((uint64_t)(gr_seconds() * 1e9) ^ ((uint64_t)gettid() << 16));
}

/* Lock the writer's own file. Another writer may have found it before it was locked; that one locks it for a moment,
 * and removes it. The time to wait for that writer is limited, because it may be stopped. */
static int lock_own(int fd)
{
    const struct timespec rest = { 0, 1000 * 1000 };
    struct stat           status;

    for (int i = 0; flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK; i++) {
        if (i == LOCK_TRIES) return 0;
        nanosleep(&rest, NULL);
    }
    return fstat(fd, &status) == 0 && status.st_nlink > 0;
}

int gr_temporary_above_standard(int fd)
{
    const int moved = fd < 0 || fd > STDERR_FILENO ? fd : fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);

    if (moved != fd) close(fd);
    return moved;
}

int gr_temporary_create(struct gr_temporary *temporary, const char *place)
{
    char boot[BOOT_DIGITS + 1];

    boot_digits(boot);
    for (int i = 0; i < TRIES; i++) {
        snprintf(temporary->suffix, sizeof temporary->suffix, ".%s-%08x.tmp", boot, random_number());
        temporary->fd = -1;
        if (snprintf(temporary->path, PATH_MAX, "%s%s", place, temporary->suffix) >= PATH_MAX) return ENAMETOOLONG;
        temporary->fd =
            gr_temporary_above_standard(open(temporary->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
        if (temporary->fd < 0 && errno != EEXIST) return errno;
        if (temporary->fd < 0) continue;
        if (lock_own(temporary->fd)) return 0;
        close(temporary->fd); /* the file is not removed, because its name may now belong to another writer */
    }
    temporary->fd = -1;
    return EEXIST;
}

/* Find the suffix of a temporary file of `base`. \return NULL if `file` is another file */
static const char *suffix_of(const char *file, const char *base)
{
    static const char digits[] = "0123456789abcdef";
    const size_t      length = strlen(base);
    const char       *suffix = file + length;

    if (strncmp(file, base, length) != 0 || strlen(suffix) != GR_TEMPORARY_SUFFIX - 1) return NULL;
    return suffix[0] == '.' && strspn(suffix + 1, digits) == 8 && suffix[9] == '-' &&
                   strspn(suffix + 10, digits) == 8 && strcmp(suffix + 18, ".tmp") == 0
               ? suffix
               : NULL;
}

static int is_of_this_boot(const char *suffix)
{
    char boot[BOOT_DIGITS + 1];

    boot_digits(boot);
    return strcmp(boot, no_boot_id) != 0 && strncmp(suffix + 1, boot, BOOT_DIGITS) == 0;
}

static int is_old(const struct stat *status)
{
    return status->st_ctime < time(NULL) - DAY;
}

static int has_name(int fd, int folder, const char *file)
{
    struct stat opened, named;

    return fstat(fd, &opened) == 0 && fstatat(folder, file, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
           opened.st_ino == named.st_ino && opened.st_dev == named.st_dev;
}

/* Remove a file whose writer has ended, while holding its lock, so that a writer that is about to lock it notices. It
 * must still have its name: if it was renamed after it was opened, the name may belong to another writer's file. */
static void remove_unlocked(int folder, const char *file, const char *suffix)
{
    const int   fd = openat(folder, file, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct stat status;

    if (fd < 0) return;
    if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode)) {
        const int is_locked = flock(fd, LOCK_EX | LOCK_NB) != 0; /* also if the file system has no locks */
        const int is_in_use = is_locked && errno == EWOULDBLOCK;

        if (((!is_locked && is_of_this_boot(suffix)) || (!is_in_use && is_old(&status))) && has_name(fd, folder, file))
            unlinkat(folder, file, 0);
    }
    close(fd);
}

static void remove_orphan(int folder, const char *file, const char *suffix, const char *place)
{
    char        first[PATH_MAX];
    struct stat status;

    if (snprintf(first, sizeof first, "%s%s", place, suffix) >= (int)sizeof first) return;
    if (access(first, F_OK) == 0 || errno != ENOENT) return;
    if (fstatat(folder, file, &status, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(status.st_mode)) return;
    if (is_of_this_boot(suffix) || is_old(&status)) unlinkat(folder, file, 0);
}

static void sweep(const char *name, const char *place)
{
    const char    *slash = strrchr(name, '/'), *base = slash != NULL ? slash + 1 : name, *suffix;
    char           path[PATH_MAX];
    DIR           *list;
    struct dirent *entry;

    snprintf(path, sizeof path, "%.*s", slash == NULL ? 1 : (int)(slash - name) + 1, slash == NULL ? "." : name);
    list = opendir(path);
    while (list != NULL && (entry = readdir(list)) != NULL) {
        suffix = suffix_of(entry->d_name, base);
        if (suffix == NULL) continue;
        if (place == NULL) remove_unlocked(dirfd(list), entry->d_name, suffix);
        else remove_orphan(dirfd(list), entry->d_name, suffix, place);
    }
    if (list != NULL) closedir(list);
}

void gr_temporary_sweep(const char *place)
{
    sweep(place, NULL);
}

void gr_temporary_sweep_second(const char *name, const char *place)
{
    sweep(name, place);
}
