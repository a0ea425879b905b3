/* Writes and maps scratch files.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/scratch.h"

#include "base/file.h"
#include "base/output.h"
#include "base/temporary.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Create a file and remove its name at once. */
static int open_nameless(const char *folder)
{
    char path[PATH_MAX];
    int  fd;

    if (snprintf(path, sizeof path, "%s/graft-XXXXXX", folder) >= (int)sizeof path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    fd = gr_temporary_above_standard(mkostemp(path, O_CLOEXEC));
    if (fd >= 0) unlink(path);
    return fd;
}

int32_t gr_scratch_init(struct gr_scratch *scratch, const char *folder, int64_t bytes, graft_error *error)
{
    const int64_t size = bytes > 0 ? bytes : 1;
    void         *data = MAP_FAILED;
    const int     fd = gr_output_fits(size) ? open_nameless(folder) : -1;

    if (fd >= 0 && ftruncate(fd, size) == 0) data = mmap(NULL, (size_t)size, PROT_READ, MAP_SHARED, fd, 0);
    if (data == MAP_FAILED) {
        const int code = errno;
        char      shown[GR_FILE_NAME];

        if (fd >= 0) close(fd);
        gr_file_show_path(shown, folder);
        return gr_fail_native(error, GRAFT_ERR_IO, code, "a file of %lld bytes in folder '%s' cannot be made: %s",
                              (long long)bytes, shown, gr_file_errno_text(code));
    }
    *scratch = (struct gr_scratch){ .has_file = 1, .fd = fd, .data = data, .bytes = bytes };
    return GRAFT_OK;
}

int32_t gr_scratch_write(const struct gr_scratch *scratch, int64_t offset, const void *from, int64_t bytes,
                         graft_error *error)
{
    if (gr_file_write(scratch->fd, offset, from, bytes) == 0) return GRAFT_OK;
    return gr_fail_native(error, GRAFT_ERR_IO, errno, "outputs of a layer cannot be written to a file: %s",
                          gr_file_errno_text(errno));
}

void gr_scratch_fini(struct gr_scratch *scratch)
{
    if (!scratch->has_file) return;
    munmap((void *)(uintptr_t)scratch->data, (size_t)(scratch->bytes > 0 ? scratch->bytes : 1));
    close(scratch->fd);
    *scratch = (struct gr_scratch){ 0 };
}
