/* Writes arrays of numbers in the .npy format. A file has a magic string, a version, the length of the text of a Python
 * dict, this text with padding, and the data.
 * SPDX-License-Identifier: Apache-2.0 */
#include "npy_write.h"
#include "output_file.h"

#include <inttypes.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "values are written as they lie in memory");

enum { PREFIX = 10, HEAD = 128 }; /* the data begin at a multiple of 64 bytes */

int32_t npy_write(const char *path, const void *values, int64_t count, int64_t columns, graft_error *error)
{
    static const unsigned char prefix[PREFIX] = { 0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, HEAD - PREFIX, 0 };
    struct output_file         file;
    char                       head[HEAD + 1], more[32] = "";
    int32_t                    rc = output_begin(&file, path, error);

    if (rc < 0) return rc;
    memcpy(head, prefix, PREFIX);
    if (columns > 0) snprintf(more, sizeof more, " %" PRId64, columns);
    const int used = PREFIX + snprintf(head + PREFIX, HEAD - PREFIX,
                                       "{'descr': '<%s', 'fortran_order': False, 'shape': (%" PRId64 ",%s), }",
                                       columns > 0 ? "f4" : "i4", count, more);
    memset(head + used, ' ', (size_t)(HEAD - used));
    head[HEAD - 1] = '\n';
    fwrite(head, 1, HEAD, file.stream);
    fwrite(values, sizeof(int32_t), (size_t)(count * (columns > 0 ? columns : 1)), file.stream);
    return output_end(&file, error); /* also reports a failed write */
}
