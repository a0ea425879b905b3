/* Reads .npy files. The header is the text of a Python dict with three keys. It is parsed strictly, but keys may have
 * any order, and blanks any number. Errors state the byte of the file.
 * SPDX-License-Identifier: Apache-2.0 */
#include "io/npy.h"

#include "base/assert.h"

#include <stdio.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "elements are taken into memory as they lie in the file");

enum { HEADER_MAX = 10000, PREAMBLE_MAX = 12, TEXT_MAX = 64 };
enum { KEY_DESCR = 1, KEY_ORDER = 2, KEY_SHAPE = 4, KEYS_ALL = 7 };

struct cursor {
    const struct gr_file     *file;
    const struct gr_npy_form *form;
    graft_error              *error;
    const char               *text;
    int64_t                   at, length;
    int64_t                   begin; /* offset of text[0] in the file */
    char                      descr[TEXT_MAX];
};

static int32_t npy_syntax_error(const struct cursor *cursor, const char *expected)
{
    char quoted[GR_FILE_QUOTE];

    gr_file_quote(quoted, cursor->text + cursor->at, cursor->at < cursor->length);
    return gr_fail(cursor->error, GRAFT_ERR_FORMAT, "'%s': the header has '%s' at byte %lld, expected %s",
                   cursor->file->name, quoted, (long long)(cursor->begin + cursor->at), expected);
}

/* Skip blanks, and return the next character without consuming it; 0 at the end. */
static char npy_peek(struct cursor *cursor)
{
    while (cursor->at < cursor->length && memchr(" \t\r\n", cursor->text[cursor->at], 4) != NULL) cursor->at++;
    return cursor->at < cursor->length ? cursor->text[cursor->at] : '\0';
}

static int npy_take(struct cursor *cursor, char c)
{
    const int there = npy_peek(cursor) == c && cursor->at < cursor->length;

    cursor->at += there;
    return there;
}

static int npy_take_word(struct cursor *cursor, const char *word)
{
    const int64_t length = (int64_t)strlen(word);

    npy_peek(cursor);
    if (cursor->length - cursor->at < length || memcmp(cursor->text + cursor->at, word, (size_t)length) != 0) return 0;
    cursor->at += length;
    return 1;
}

static int32_t parse_string(struct cursor *cursor, char text[TEXT_MAX])
{
    const char quote = npy_peek(cursor);
    int        length = 0;

    if (quote != '\'' && quote != '"') return npy_syntax_error(cursor, "a quoted text");
    for (cursor->at++; cursor->at < cursor->length && cursor->text[cursor->at] != quote; cursor->at++) {
        const char c = cursor->text[cursor->at];

        if (c < ' ' || c > '~' || c == '\\' || length == TEXT_MAX - 1)
            return npy_syntax_error(cursor, "the end of a short text");
        text[length++] = c;
    }
    text[length] = '\0';
    return npy_take(cursor, quote) ? GRAFT_OK : npy_syntax_error(cursor, "a closing quote");
}

static int32_t parse_descr(struct cursor *cursor, struct gr_npy *npy)
{
    static const struct {
        const char *text;
        graft_dtype dtype;
        int32_t     bytes;
    } types[] = { { "<f4", GRAFT_F32, 4 }, { "<f8", GRAFT_F64, 8 },  { "<i4", GRAFT_I32, 4 },
                  { "<i8", GRAFT_I64, 8 }, { "|u1", GRAFT_U8, 1 },   { "<u1", GRAFT_U8, 1 },
                  { "<f2", GRAFT_F16, 2 }, { "<V2", GRAFT_BF16, 2 }, { "|V2", GRAFT_BF16, 2 } }; /* V2: ml_dtypes */
    const char *why = "";

    if (npy_peek(cursor) == '[') {
        return gr_fail(cursor->error, GRAFT_ERR_FORMAT, "'%s' holds records of several fields, expected %s",
                       cursor->file->name, cursor->form->text);
    }
    GR_TRY(parse_string(cursor, cursor->descr));
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        if (strcmp(cursor->descr, types[i].text) != 0) continue;
        npy->dtype = types[i].dtype;
        npy->item_bytes = types[i].bytes;
        return GRAFT_OK;
    }
    if (cursor->descr[0] == '>') why = ", which is big-endian";
    if (strchr(cursor->descr, 'O') != NULL) why = ", Python objects, which are never read";
    return gr_fail(cursor->error, GRAFT_ERR_FORMAT, "'%s' has elements of type '%s'%s; expected %s, little-endian",
                   cursor->file->name, cursor->descr, why, cursor->form->text);
}

static int32_t parse_order(struct cursor *cursor)
{
    if (npy_take_word(cursor, "False")) return GRAFT_OK;
    if (!npy_take_word(cursor, "True")) return npy_syntax_error(cursor, "True or False");
    return gr_fail(cursor->error, GRAFT_ERR_FORMAT,
                   "'%s' is in Fortran order (fortran_order is True), expected C order; write it with order='C'",
                   cursor->file->name);
}

static int32_t parse_dim(struct cursor *cursor, int64_t *dim)
{
    int64_t value = 0;
    int     digits = 0;

    if (npy_peek(cursor) == '-') return npy_syntax_error(cursor, "a length that is not negative");
    for (; cursor->at < cursor->length; cursor->at++, digits++) {
        const char c = cursor->text[cursor->at];

        if (c < '0' || c > '9') break;
        if (__builtin_mul_overflow(value, 10, &value) || __builtin_add_overflow(value, c - '0', &value)) {
            return npy_syntax_error(cursor, "the end of a length below 2^63");
        }
    }
    if (digits == 0) return npy_syntax_error(cursor, "a length");
    *dim = value;
    return GRAFT_OK;
}

static int32_t parse_shape(struct cursor *cursor, struct gr_npy *npy)
{
    int comma = 1; /* in Python (3) is a number, and (3,) a tuple */

    if (!npy_take(cursor, '(')) return npy_syntax_error(cursor, "'(' of the shape");
    npy->n_dims = 0;
    while (!npy_take(cursor, ')')) {
        if (!comma) return npy_syntax_error(cursor, "',' or ')'");
        if (npy->n_dims == GR_NPY_DIMS) return npy_syntax_error(cursor, "no more than 4 dimensions");
        GR_TRY(parse_dim(cursor, &npy->shape[npy->n_dims++]));
        comma = npy_take(cursor, ',');
    }
    return npy->n_dims == 1 && !comma ? npy_syntax_error(cursor, "',' after the only length of the shape") : GRAFT_OK;
}

static int32_t parse_item(struct cursor *cursor, struct gr_npy *npy, int *seen)
{
    char key[TEXT_MAX];
    int  bit = 0;

    GR_TRY(parse_string(cursor, key));
    if (strcmp(key, "descr") == 0) bit = KEY_DESCR;
    if (strcmp(key, "fortran_order") == 0) bit = KEY_ORDER;
    if (strcmp(key, "shape") == 0) bit = KEY_SHAPE;
    if (bit == 0 || (*seen & bit) != 0) {
        return gr_fail(cursor->error, GRAFT_ERR_FORMAT,
                       "'%s': the header has the key '%s'%s, expected descr, fortran_order and shape",
                       cursor->file->name, key, bit != 0 ? " twice" : "");
    }
    *seen |= bit;
    if (!npy_take(cursor, ':')) return npy_syntax_error(cursor, "':' after a key");
    if (bit == KEY_DESCR) return parse_descr(cursor, npy);
    return bit == KEY_ORDER ? parse_order(cursor) : parse_shape(cursor, npy);
}

static int32_t parse_dict(struct cursor *cursor, struct gr_npy *npy)
{
    int seen = 0, comma = 1;

    if (!npy_take(cursor, '{')) return npy_syntax_error(cursor, "'{'");
    while (!npy_take(cursor, '}')) {
        if (!comma) return npy_syntax_error(cursor, "',' or '}'");
        GR_TRY(parse_item(cursor, npy, &seen));
        comma = npy_take(cursor, ',');
    }
    if (npy_peek(cursor) != '\0' || cursor->at < cursor->length)
        return npy_syntax_error(cursor, "the end of the header");
    if (seen == KEYS_ALL) return GRAFT_OK;
    return gr_fail(cursor->error, GRAFT_ERR_FORMAT, "'%s': the header has no key '%s'", cursor->file->name,
                   !(seen & KEY_DESCR)   ? "descr"
                   : !(seen & KEY_ORDER) ? "fortran_order"
                                         : "shape");
}

static void print_shape(char *text, size_t capacity, const struct gr_npy *npy)
{
    size_t used = (size_t)snprintf(text, capacity, "(");

    for (int i = 0; i < npy->n_dims; i++) {
        used += (size_t)snprintf(text + used, capacity - used, "%s%lld", i > 0 ? ", " : "", (long long)npy->shape[i]);
    }
    snprintf(text + used, capacity - used, "%s", npy->n_dims == 1 ? ",)" : ")");
}

/* Check the type, the dimensions and the length of the file, before memory is allocated for its contents. */
static int32_t check_npy_header(const struct cursor *cursor, struct gr_npy *npy)
{
    const struct gr_npy_form *form = cursor->form;
    const int64_t             held = cursor->file->size - npy->offset;
    int64_t                   needed = 0;
    int                       overflow = 0;
    int                       is_legal = 0;
    char                      shape[96];

    print_shape(shape, sizeof shape, npy);
    for (int i = 0; i < GR_NPY_FORMS; i++) is_legal |= npy->dtype == form->dtype[i] && npy->n_dims == form->n_dims[i];
    if (!is_legal) {
        return gr_fail(cursor->error, GRAFT_ERR_FORMAT, "'%s' has shape %s of %s, expected %s", cursor->file->name,
                       shape, cursor->descr, form->text);
    }
    npy->count = 1;
    for (int i = 0; i < npy->n_dims; i++) overflow |= __builtin_mul_overflow(npy->count, npy->shape[i], &npy->count);
    overflow |= __builtin_mul_overflow(npy->count, (int64_t)npy->item_bytes, &needed);
    if (overflow || needed != held) {
        char text[32] = "more than 2^63";

        if (!overflow) snprintf(text, sizeof text, "%lld", (long long)needed);
        return gr_fail(cursor->error, GRAFT_ERR_FORMAT,
                       "'%s' holds %lld bytes of data after byte %lld, shape %s of %s needs %s", cursor->file->name,
                       (long long)held, (long long)npy->offset, shape, cursor->descr, text);
    }
    return GRAFT_OK;
}

/* Check magic and version. *begin and *length become the offset and the length of the header. */
static int32_t read_preamble(const struct gr_file *file, int64_t *begin, int64_t *length, graft_error *error)
{
    static const unsigned char magic[6] = { 0x93, 'N', 'U', 'M', 'P', 'Y' };
    unsigned char              bytes[PREAMBLE_MAX] = { 0 };
    const int64_t              have = file->size < PREAMBLE_MAX ? file->size : PREAMBLE_MAX;

    GR_TRY(gr_file_read(file, 0, bytes, have, error));
    if (have < (int64_t)sizeof magic || memcmp(bytes, magic, sizeof magic) != 0) {
        return gr_fail(error, GRAFT_ERR_FORMAT,
                       "'%s' (%lld bytes) does not begin with \\x93NUMPY: it is not an .npy file", file->name,
                       (long long)file->size);
    }
    if (have > 7 && (bytes[6] < 1 || bytes[6] > 3 || bytes[7] != 0)) {
        return gr_fail(error, GRAFT_ERR_FORMAT, "'%s' is .npy version %d.%d, expected 1.0, 2.0 or 3.0", file->name,
                       bytes[6], bytes[7]);
    }
    *begin = bytes[6] == 1 ? 10 : 12;
    *length = bytes[8] | bytes[9] << 8;
    if (bytes[6] > 1) *length |= (int64_t)bytes[10] << 16 | (int64_t)bytes[11] << 24;
    if (have >= *begin && *length > HEADER_MAX) {
        return gr_fail(error, GRAFT_ERR_FORMAT, "'%s' states a header of %lld bytes, expected at most %d", file->name,
                       (long long)*length, HEADER_MAX);
    }
    if (file->size < *begin + *length) {
        return gr_fail(error, GRAFT_ERR_FORMAT, "'%s' ends at byte %lld, inside its header, which goes to byte %lld",
                       file->name, (long long)file->size, (long long)(*begin + *length));
    }
    return GRAFT_OK;
}

int32_t gr_io_npy_begin(const struct gr_file *file, const struct gr_npy_form *form, struct gr_npy *npy,
                        graft_error *error)
{
    char          text[HEADER_MAX];
    struct gr_npy read = { 0 };
    struct cursor cursor = { .file = file, .form = form, .error = error, .text = text };

    GR_TRY(read_preamble(file, &cursor.begin, &cursor.length, error));
    GR_TRY(gr_file_read(file, cursor.begin, text, cursor.length, error));
    GR_TRY(parse_dict(&cursor, &read));
    read.offset = cursor.begin + cursor.length;
    GR_TRY(check_npy_header(&cursor, &read));
    *npy = read;
    return GRAFT_OK;
}

int32_t gr_io_npy_read(const struct gr_file *file, const struct gr_npy *npy, int64_t first, int64_t count, void *to,
                       graft_error *error)
{
    GR_ASSERT(first >= 0 && count >= 0 && first + count <= npy->count);
    return gr_file_read(file, npy->offset + first * npy->item_bytes, to, count * npy->item_bytes, error);
}
