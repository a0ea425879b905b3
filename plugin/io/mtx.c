/* Reads Matrix Market files, field by field through one buffer, so that lines may have any length. Numbers are parsed
 * strictly, in the "C" locale, whatever the host's locale.
 * SPDX-License-Identifier: Apache-2.0 */
#include "io/contents.h"

#include "base/assert.h"
#include "base/limits.h"
#include "base/memory.h"

#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIELD_MAX = 128, AT_END = -1 };

/* A file, or the range of one rank in it, as a stream of characters. The first read error is stored in rc, and ends the
 * stream. */
struct stream {
    const struct gr_file *file;
    graft_error          *error;
    char                 *buffer;
    int64_t               begin, end; /* the part of the buffer that was not consumed yet */
    int64_t               offset;     /* offset in the file at which the buffer ends */
    int64_t               stop;       /* lines that begin after this offset belong to other ranks */
    int64_t               line;
    int32_t               rc;
};

struct header {
    int     weighted, whole, symmetric; /* `whole`: values are integers */
    int64_t n, entries;
};

static int mtx_peek(struct stream *stream)
{
    if (stream->begin == stream->end) {
        int64_t bytes = stream->file->size - stream->offset;

        if (bytes > GR_TEXT_BUFFER) bytes = GR_TEXT_BUFFER;
        if (bytes == 0 || stream->rc < 0) return AT_END;
        stream->rc = gr_file_read(stream->file, stream->offset, stream->buffer, bytes, stream->error);
        if (stream->rc < 0) return AT_END;
        stream->offset += bytes;
        stream->begin = 0;
        stream->end = bytes;
    }
    return (unsigned char)stream->buffer[stream->begin];
}

/* The offset of the next character in the file. */
static int64_t stream_position(const struct stream *stream)
{
    return stream->offset - (stream->end - stream->begin);
}

static int is_blank(int c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static void skip_blanks(struct stream *stream)
{
    while (is_blank(mtx_peek(stream))) stream->begin++;
}

static int32_t mtx_fail(const struct stream *stream, const char *found, int64_t length, const char *expected)
{
    char quoted[GR_FILE_QUOTE];

    if (stream->rc < 0) return stream->rc;
    return gr_fail(stream->error, GRAFT_ERR_FORMAT, "'%s', line %lld: found '%s', expected %s", stream->file->name,
                   (long long)stream->line, gr_file_quote(quoted, found, length), expected);
}

/* Move to the beginning of the next line, or to the end of the file. */
static void skip_line(struct stream *stream)
{
    int c = mtx_peek(stream);

    for (; c != '\n' && c != AT_END; c = mtx_peek(stream)) stream->begin++;
    if (c == AT_END) return;
    stream->begin++;
    stream->line++;
}

/* From the beginning of a line, move to the next line that is neither blank nor a comment. \return 0 if there is
 * none */
static int next_line(struct stream *stream)
{
    while (stream_position(stream) <= stream->stop) {
        int c;

        skip_blanks(stream);
        c = mtx_peek(stream);
        if (c == AT_END) return 0;
        if (c != '%' && c != '\n') return 1;
        skip_line(stream);
    }
    return 0;
}

/* Read the next field of the line; it is empty at the end of the line. */
static int32_t take_field(struct stream *stream, char field[FIELD_MAX])
{
    int length = 0;

    skip_blanks(stream);
    for (int c = mtx_peek(stream); c != AT_END && c != '\n' && !is_blank(c); c = mtx_peek(stream)) {
        if (length == FIELD_MAX - 1) return mtx_fail(stream, field, length, "a field of less than 128 characters");
        field[length++] = (char)c;
        stream->begin++;
    }
    field[length] = '\0';
    return stream->rc;
}

static int32_t end_line(struct stream *stream, const char *expected)
{
    char field[FIELD_MAX];

    GR_TRY(take_field(stream, field));
    if (field[0] != '\0') return mtx_fail(stream, field, (int64_t)strlen(field), expected);
    if (mtx_peek(stream) == '\n') {
        stream->begin++;
        stream->line++;
    }
    return stream->rc;
}

static int same_word(const char *a, const char *b)
{
    for (; *a != '\0' && *b != '\0'; a++, b++) {
        if ((*a >= 'A' && *a <= 'Z' ? *a - 'A' + 'a' : *a) != *b) return 0;
    }
    return *a == *b;
}

/* Read a field that must be one of `words`, which end with NULL. *which is its index. */
static int32_t mtx_take_word(struct stream *stream, const char *const *words, const char *expected, int *which)
{
    char field[FIELD_MAX];

    GR_TRY(take_field(stream, field));
    for (int i = 0; words[i] != NULL; i++) {
        if (!same_word(field, words[i])) continue;
        *which = i;
        return GRAFT_OK;
    }
    return mtx_fail(stream, field, (int64_t)strlen(field), expected);
}

static int32_t read_banner(struct stream *stream, struct header *header)
{
    static const char *const magic[] = { "%%matrixmarket", NULL }, *const object[] = { "matrix", NULL };
    static const char *const layout[] = { "coordinate", NULL };
    static const char *const type[] = { "pattern", "real", "integer", NULL };
    static const char *const symmetry[] = { "general", "symmetric", NULL };
    int                      which = 0;

    GR_TRY(mtx_take_word(stream, magic, "%%MatrixMarket at the beginning of the file", &which));
    GR_TRY(mtx_take_word(stream, object, "matrix", &which));
    GR_TRY(mtx_take_word(stream, layout, "coordinate: other layouts are not supported", &which));
    GR_TRY(mtx_take_word(stream, type, "real, integer or pattern: other values are not supported", &which));
    header->weighted = which > 0;
    header->whole = which == 2;
    GR_TRY(mtx_take_word(stream, symmetry, "general or symmetric: other symmetries are not supported", &which));
    header->symmetric = which == 1;
    return end_line(stream, "nothing after the symmetry");
}

/* Read an integer, of digits only, from low to high. Error messages call it `what`. */
static int32_t take_number(struct stream *stream, int64_t low, int64_t high, const char *what, int64_t *number)
{
    char    field[FIELD_MAX], expected[96];
    int64_t value = 0;
    int     bad = 0;

    GR_TRY(take_field(stream, field));
    for (const char *c = field; *c != '\0'; c++) {
        bad |= *c < '0' || *c > '9';
        bad |= __builtin_mul_overflow(value, 10, &value) || __builtin_add_overflow(value, *c - '0', &value);
    }
    if (bad || field[0] == '\0' || value < low || value > high) {
        snprintf(expected, sizeof expected, "%s, from %lld to %lld", what, (long long)low, (long long)high);
        return mtx_fail(stream, field, (int64_t)strlen(field), expected);
    }
    *number = value;
    return GRAFT_OK;
}

/* Read the line of sizes, and check that the rest of the file can contain so many entries. The shortest entry is "1
 * 1\n", or "1 1 1\n" with values; the last one need not end with a line feed. */
static int32_t read_sizes(struct stream *stream, struct header *header)
{
    const int64_t entry_bytes = header->weighted ? 6 : 4;
    int64_t       line, columns, rest;

    if (!next_line(stream)) return mtx_fail(stream, "", 0, "the numbers of rows, columns and entries");
    line = stream->line;
    GR_TRY(take_number(stream, 0, INT64_MAX, "a number of rows", &header->n));
    GR_TRY(take_number(stream, 0, INT64_MAX, "a number of columns", &columns));
    GR_TRY(take_number(stream, 0, INT64_MAX, "a number of entries", &header->entries));
    GR_TRY(end_line(stream, "three numbers: rows, columns, entries"));
    if (header->n != columns) {
        return gr_fail(stream->error, GRAFT_ERR_FORMAT, "'%s', line %lld: %lld rows, %lld columns, expected a square",
                       stream->file->name, (long long)line, (long long)header->n, (long long)columns);
    }
    rest = stream->file->size - stream->offset + stream->end - stream->begin;
    if (header->entries > (rest + 1) / entry_bytes) {
        return gr_fail(stream->error, GRAFT_ERR_FORMAT,
                       "'%s', line %lld: %lld entries are stated, the %lld bytes that follow hold at most %lld",
                       stream->file->name, (long long)line, (long long)header->entries, (long long)rest,
                       (long long)((rest + 1) / entry_bytes));
    }
    return GRAFT_OK;
}

static int32_t take_value(struct stream *stream, locale_t locale, int whole, float *value)
{
    const char *expected = whole ? "an integer in the range of a float" : "a finite number in the range of a float";
    char        field[FIELD_MAX], *end;
    double      number;

    GR_TRY(take_field(stream, field));
    number = strtod_l(field, &end, locale);
    if (field[0] == '\0' || *end != '\0' || field[strspn(field, whole ? "0123456789+-" : "0123456789+-.eE")] != '\0' ||
        !(fabs(number) <= FLT_MAX)) {
        return mtx_fail(stream, field, (int64_t)strlen(field), expected);
    }
    *value = (float)number;
    return GRAFT_OK;
}

static void append_edge(struct gr_coo *coo, int64_t row, int64_t col, float value)
{
    GR_ASSERT(row > 0 && col > 0);
    coo->row[coo->count] = (int32_t)(row - 1);
    coo->col[coo->count] = (int32_t)(col - 1);
    if (coo->value != NULL) coo->value[coo->count] = value;
    coo->count++;
}

static int32_t read_entry(struct stream *stream, const struct header *header, locale_t locale, struct gr_coo *coo)
{
    int64_t row, col;
    float   value = 1;

    GR_TRY(take_number(stream, 1, header->n, "a row", &row));
    GR_TRY(take_number(stream, 1, header->n, "a column", &col));
    if (header->weighted) GR_TRY(take_value(stream, locale, header->whole, &value));
    GR_TRY(end_line(stream, header->weighted ? "three fields: row, column, value" : "two fields: row, column"));
    append_edge(coo, row, col, value);
    if (header->symmetric && row != col) append_edge(coo, col, row, value);
    return GRAFT_OK;
}

/* Read at most `most` entries. *count is their number, plus 1 if another line follows or the last entry is
 * malformed. */
static int32_t read_mtx_entries(struct stream *stream, const struct header *header, int64_t most, struct gr_coo *coo,
                                int64_t *count)
{
    locale_t locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    int64_t  entry;
    int32_t  rc = GRAFT_OK;

    if (locale == (locale_t)0) return gr_fail(stream->error, GRAFT_ERR_NOMEM, "no memory for the \"C\" locale");
    for (entry = 0; entry < most && rc == GRAFT_OK && next_line(stream); entry++)
        rc = read_entry(stream, header, locale, coo);
    *count = entry;
    if (rc == GRAFT_OK) {
        *count += next_line(stream);
        rc = stream->rc;
    }
    freelocale(locale);
    return rc;
}

/* Continue at an offset in the file, which is in line number `line`. */
static void stream_seek(struct stream *stream, int64_t place, int64_t line)
{
    stream->offset = place;
    stream->begin = stream->end = 0;
    stream->line = line;
}

/* Count the line feeds between two offsets. */
static int32_t count_lines(struct stream *stream, int64_t begin, int64_t end, int64_t *lines)
{
    *lines = 0;
    for (int64_t at = begin, bytes; at < end && stream->rc == GRAFT_OK; at += bytes) {
        bytes = end - at < GR_TEXT_BUFFER ? end - at : GR_TEXT_BUFFER;
        stream->rc = gr_file_read(stream->file, at, stream->buffer, bytes, stream->error);
        for (int64_t i = 0; i < bytes; i++) *lines += stream->buffer[i] == '\n';
    }
    return stream->rc;
}

/* Move the stream to the first line of this rank. The bytes after the header are divided evenly among ranks. A line
 * belongs to the range in which the previous line ends, and the first line to rank 0. Lines before the range are
 * counted, because error messages state line numbers. *most is an upper bound of the number of entries. */
static int32_t take_range(const struct gr_reading *reading, struct stream *stream, const struct header *header,
                          int64_t *most)
{
    const int64_t behind = stream_position(stream), bytes = stream->file->size - behind;
    const int32_t rank = reading->comm->rank;
    const int64_t begin = behind + gr_io_reading_share(reading, bytes, rank);
    const int64_t end = behind + gr_io_reading_share(reading, bytes, rank + 1);
    int64_t       lines, before, total;

    *most = header->entries;
    if (reading->comm->n_ranks == 1) return GRAFT_OK;
    GR_TRY(gr_comm_agree(reading->comm, count_lines(stream, begin, end, &lines), stream->error));
    GR_TRY(gr_io_reading_before(reading, lines, &before, &total, stream->error));
    stream_seek(stream, begin, stream->line + before);
    stream->stop = end;
    if (rank > 0) skip_line(stream);
    else lines++; /* the first line after the header */
    if (lines < *most) *most = lines;
    return GRAFT_OK;
}

static int32_t fail_number(const struct stream *stream, const struct header *header, int64_t found)
{
    return gr_fail(stream->error, GRAFT_ERR_FORMAT, "'%s', line %lld: found %s after %lld of %lld entries",
                   stream->file->name, (long long)stream->line,
                   found < header->entries ? "the end of the file" : "one more line, expected the end of the file,",
                   (long long)found, (long long)header->entries);
}

/* Check that all ranks together have as many entries as the header states. If they are too few, the last rank reports
 * the end of the file. If they are too many, the rank with the first surplus entry reads its range again to find its
 * line, and discards the error of a malformed line after it. So the lowest rank that fails has the first wrong line of
 * the file. */
static int32_t check_number(const struct gr_reading *reading, struct stream *stream, const struct header *header,
                            const struct stream *start, int64_t count, int32_t rc, struct gr_coo *coo)
{
    int64_t       before, total, most;
    const int32_t told = gr_io_reading_before(reading, count, &before, &total, stream->error);

    if (told < 0) return told;
    most = header->entries > before ? header->entries - before : 0;
    if (count > most) {
        coo->count = 0;
        stream_seek(stream, stream_position(start), start->line);
        rc = read_mtx_entries(stream, header, most, coo, &count);
        if (rc == GRAFT_OK) rc = fail_number(stream, header, header->entries);
    } else if (rc == GRAFT_OK && total < header->entries && reading->comm->rank == reading->comm->n_ranks - 1) {
        rc = fail_number(stream, header, total);
    }
    return gr_comm_agree(reading->comm, rc, stream->error);
}

static int32_t read_mtx_range(const struct gr_reading *reading, struct stream *stream, const struct header *header,
                              struct gr_coo *coo)
{
    struct stream start;
    int64_t       most, count = 0;
    int32_t       rc, malformed;

    GR_TRY(take_range(reading, stream, header, &most));
    start = *stream;
    rc = gr_csr_coo_init(reading->context, coo, most * (1 + header->symmetric), header->weighted, stream->error);
    coo->count = 0;
    if (rc == GRAFT_OK) rc = read_mtx_entries(stream, header, most, coo, &count);
    malformed = rc == GRAFT_ERR_FORMAT ? rc : GRAFT_OK;
    GR_TRY(gr_comm_agree(reading->comm, malformed < 0 ? GRAFT_OK : rc, stream->error));
    return check_number(reading, stream, header, &start, count, malformed, coo);
}

int32_t gr_io_mtx_read(const struct gr_reading *reading, const struct gr_file *file, struct gr_vertices *vertices,
                       struct gr_coo *coo, graft_error *error)
{
    static const char *const names[] = { "the number of vertices", "the number of entries", "values", "symmetry" };
    struct stream            stream = { .file = file, .error = error, .stop = file->size, .line = 1 };
    struct header            header = { 0 };
    struct gr_coo            made = { 0 };
    int32_t                  rc = GR_NEW(reading->context, stream.buffer, GR_TEXT_BUFFER, error);

    if (rc == GRAFT_OK) rc = read_banner(&stream, &header);
    if (rc == GRAFT_OK) rc = read_sizes(&stream, &header);
    if (rc == GRAFT_OK) rc = gr_io_vertices_agree_named(vertices, file, header.n, error);
    GR_TRY_DONE(gr_comm_agree(reading->comm, rc, error));
    GR_TRY_DONE(gr_comm_compare(reading->comm, names,
                                (const uint64_t[]){ (uint64_t)header.n, (uint64_t)header.entries,
                                                    (uint64_t)header.weighted, (uint64_t)header.symmetric },
                                4, error));
    GR_TRY_DONE(read_mtx_range(reading, &stream, &header, &made));
    made.n_rows = made.n_cols = header.n;
    *coo = made;
    memset(&made, 0, sizeof made);
done:
    gr_csr_coo_fini(reading->context, &made);
    gr_free(reading->context, stream.buffer);
    return rc;
}
