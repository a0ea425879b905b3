/* Reads a list of vertices in the .npy format. A file has a magic string, a version, the length of the text of a Python
 * dict, this text, and the data.
 * SPDX-License-Identifier: Apache-2.0 */
#include "npy_read.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "values are read as they lie in the file");

enum { START = 8, TEXT = 4096 }; /* bytes before the length of the dict, and length of the longest accepted dict */

/** The values of the dict, as strings. */
struct header {
    char text[TEXT];
    char type[32], shape[64];
};

/** Copy the value of a key, which is the text between `open` and `close` after the key. Returns 0 if there is no
 * value. */
static int find_value(const char *text, const char *key, char open, char close, char *value, size_t capacity)
{
    const char *begin = strstr(text, key), *end;

    if (begin != NULL) begin = strchr(begin + strlen(key), open);
    end = begin != NULL ? strchr(begin + 1, close) : NULL;
    if (end == NULL || (size_t)(end - begin) > capacity) return 0;
    memcpy(value, begin + 1, (size_t)(end - begin - 1));
    value[end - begin - 1] = '\0';
    return 1;
}

static int32_t read_header(FILE *file, const char *path, struct header *header, graft_error *error)
{
    unsigned char start[START], length[4] = { 0 };
    size_t        bytes;

    memset(header, 0, sizeof *header);
    if (fread(start, 1, START, file) != START || memcmp(start, "\x93NUMPY", 6) != 0)
        return problem(error, GRAFT_ERR_FORMAT, "'%s' is no .npy file: it does not begin with \\x93NUMPY", path);
    if (start[6] < 1 || start[6] > 3)
        return problem(error, GRAFT_ERR_FORMAT, "'%s' is of version %d of .npy, expected 1 to 3", path, start[6]);
    bytes = fread(length, 1, start[6] == 1 ? 2 : 4, file);
    bytes = length[0] | (size_t)length[1] << 8 | (size_t)length[2] << 16 | (size_t)length[3] << 24;
    if (bytes >= TEXT || fread(header->text, 1, bytes, file) != bytes ||
        !find_value(header->text, "'descr':", '\'', '\'', header->type, sizeof header->type) ||
        !find_value(header->text, "'shape':", '(', ')', header->shape, sizeof header->shape))
        return problem(error, GRAFT_ERR_FORMAT, "'%s' has a header without 'descr' or 'shape' of an array", path);
    return GRAFT_OK;
}

/** Read the number of elements of a list from its shape, such as "(17,)". */
static int32_t read_count(const char *path, const struct header *header, int64_t *count, graft_error *error)
{
    char *end;

    *count = strtoll(header->shape, &end, 10);
    if (end > header->shape && strcmp(end, ",") == 0 && *count >= 0 && *count < INT64_MAX / 8) return GRAFT_OK;
    return problem(error, GRAFT_ERR_FORMAT, "'%s' has shape (%s), expected (m,), a list of vertices", path,
                   header->shape);
}

/** Check that the file has exactly the expected data after the header. */
static int32_t check_length(FILE *file, const char *path, int64_t expected, graft_error *error)
{
    struct stat about;
    const long  at = ftell(file);

    if (at < 0 || fstat(fileno(file), &about) != 0) return problem_errno(error, "read", path);
    if (about.st_size - at == expected) return GRAFT_OK;
    return problem(error, GRAFT_ERR_FORMAT, "'%s' has %" PRId64 " bytes behind its header, expected %" PRId64, path,
                   (int64_t)about.st_size - at, expected);
}

/** Convert int32 numbers at the beginning of `values` to int64 in place, beginning with the last number. */
static void widen(int64_t *values, int64_t count)
{
    for (int64_t i = count - 1; i >= 0; i--) {
        int32_t narrow;

        memcpy(&narrow, (char *)values + i * (int64_t)sizeof narrow, sizeof narrow);
        values[i] = narrow;
    }
}

int32_t npy_read_vertices(const char *path, int64_t **vertices, int64_t *count, graft_error *error)
{
    FILE         *file = fopen(path, "rbe");
    struct header header;
    int64_t      *values = NULL, n, bytes;
    int           wide;
    int32_t       rc = file != NULL ? GRAFT_OK : problem_errno(error, "read", path);

    TRY(rc);
    TRY(read_header(file, path, &header, error));
    wide = strcmp(header.type, "<i8") == 0;
    if (!wide && strcmp(header.type, "<i4") != 0)
        rc = problem(error, GRAFT_ERR_FORMAT, "'%s' has elements of type '%s', expected vertices: '<i8' or '<i4'", path,
                     header.type);
    TRY(rc);
    TRY(read_count(path, &header, &n, error));
    bytes = n * (wide ? 8 : 4);
    TRY(check_length(file, path, bytes, error));
    values = calloc((size_t)n + 1, sizeof *values);
    if (values == NULL) rc = problem_memory(error, "the list of vertices");
    else if (fread(values, 1, (size_t)bytes, file) != (size_t)bytes) rc = problem_errno(error, "read", path);
    TRY(rc);
    if (!wide) widen(values, n);
    *vertices = values;
    *count = n;
    values = NULL;
done:
    if (file != NULL) fclose(file);
    free(values);
    return rc;
}
