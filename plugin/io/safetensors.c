/* Parses headers of safetensors files. The text is scanned forward once, without a stack, because the nesting of a
 * header has a fixed depth. Escapes are replaced in place.
 * SPDX-License-Identifier: Apache-2.0 */
#include "io/safetensors.h"

#include "base/file.h"

#include <stdlib.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "tensors are read as they lie in memory: little-endian");

static const int64_t HEADER_MOST = 100000000; /* the limit of the format's reference implementation */

static const struct {
    graft_dtype dtype;
    int64_t     bytes;
    const char *name;
} types[] = { { GRAFT_F32, 4, "F32" }, { GRAFT_F64, 8, "F64" }, { GRAFT_I64, 8, "I64" } };

enum { N_TYPES = sizeof types / sizeof *types };

const char *gr_io_tensor_type_name(graft_dtype dtype)
{
    for (int i = 0; i < N_TYPES; i++)
        if (types[i].dtype == dtype) return types[i].name;
    return NULL;
}

int64_t gr_io_tensor_type_bytes(graft_dtype dtype)
{
    for (int i = 0; i < N_TYPES; i++)
        if (types[i].dtype == dtype) return types[i].bytes;
    return 0;
}

int32_t gr_io_tensors_prefix(const unsigned char prefix[GR_TENSOR_PREFIX], int64_t file_bytes, const char *shown,
                             int64_t *header_bytes, graft_error *error)
{
    uint64_t length = 0;

    for (int i = 0; i < GR_TENSOR_PREFIX; i++) length |= (uint64_t)prefix[i] << (8 * i);
    if (length > (uint64_t)HEADER_MOST)
        return gr_fail(error, GRAFT_ERR_FORMAT,
                       "'%s': the length of the header, at byte 0, is %llu, expected at most %lld", shown,
                       (unsigned long long)length, (long long)HEADER_MOST);
    if ((int64_t)length > file_bytes - GR_TENSOR_PREFIX)
        return gr_fail(error, GRAFT_ERR_FORMAT,
                       "'%s' ends at byte %lld, but the length at byte 0 says that its header ends at byte %llu", shown,
                       (long long)file_bytes, (unsigned long long)length + GR_TENSOR_PREFIX);
    *header_bytes = (int64_t)length;
    return GRAFT_OK;
}

struct scan {
    char       *text, *at, *end; /* `end` is one past the last byte, and can be written to */
    const char *shown;
    const char *not_canonical; /* first byte that is not as in canonical JSON, or NULL */
};

static void note_not_canonical(struct scan *s, const char *at)
{
    if (s->not_canonical == NULL) s->not_canonical = at;
}

/* Report that the text is wrong at `at`. \return ERR_FORMAT */
static int32_t scan_fail(const struct scan *s, const char *at, const char *expected, graft_error *error)
{
    const long long byte = GR_TENSOR_PREFIX + (at - s->text);
    char            quoted[GR_FILE_QUOTE];

    if (at >= s->end)
        return gr_fail(error, GRAFT_ERR_FORMAT, "'%s': the header ends at byte %lld, expected %s", s->shown, byte,
                       expected);
    gr_file_quote(quoted, at, s->end - at < 12 ? s->end - at : 12);
    return gr_fail(error, GRAFT_ERR_FORMAT, "'%s': '%s' at byte %lld of the header, expected %s", s->shown, quoted,
                   byte, expected);
}

static void skip_space(struct scan *s)
{
    const char *const begin = s->at;

    while (s->at < s->end && (*s->at == ' ' || *s->at == '\t' || *s->at == '\n' || *s->at == '\r')) s->at++;
    if (s->at > begin) note_not_canonical(s, begin);
}

/* Whether the next character is `mark`, which is then skipped. */
static int takes(struct scan *s, char mark)
{
    skip_space(s);
    if (s->at >= s->end || *s->at != mark) return 0;
    s->at++;
    return 1;
}

static int32_t take_mark(struct scan *s, char mark, const char *expected, graft_error *error)
{
    return takes(s, mark) ? GRAFT_OK : scan_fail(s, s->at, expected, error);
}

/* The value of four hexadecimal digits; -1: they are not digits. */
static int32_t hex_of(const struct scan *s, const char *at)
{
    int32_t code = 0;

    if (s->end - at < 4) return -1;
    for (int i = 0; i < 4; i++) {
        const char c = at[i];

        if (c >= '0' && c <= '9') code = code * 16 + (c - '0');
        else if (c >= 'a' && c <= 'f') code = code * 16 + (c - 'a' + 10);
        else if (c >= 'A' && c <= 'F') code = code * 16 + (c - 'A' + 10);
        else return -1;
    }
    return code;
}

/* Write a code point in UTF-8, and return its end. A character is never longer than its escape. */
static char *put_code(char *to, int32_t code)
{
    if (code < 0x80) {
        *to++ = (char)code;
    } else if (code < 0x800) {
        *to++ = (char)(0xC0 | code >> 6);
        *to++ = (char)(0x80 | (code & 0x3F));
    } else if (code < 0x10000) {
        *to++ = (char)(0xE0 | code >> 12);
        *to++ = (char)(0x80 | (code >> 6 & 0x3F));
        *to++ = (char)(0x80 | (code & 0x3F));
    } else {
        *to++ = (char)(0xF0 | code >> 18);
        *to++ = (char)(0x80 | (code >> 12 & 0x3F));
        *to++ = (char)(0x80 | (code >> 6 & 0x3F));
        *to++ = (char)(0x80 | (code & 0x3F));
    }
    return to;
}

/* Read \uXXXX, or two of them for a code point above 0xFFFF. \return the code point; -1: neither, or a 0, which a text
 * cannot contain. */
static int32_t take_code(struct scan *s)
{
    const int32_t high = hex_of(s, s->at);
    int32_t       low;

    if (high <= 0 || (high >= 0xDC00 && high < 0xE000)) return -1;
    s->at += 4;
    if (high < 0xD800 || high >= 0xE000) return high;
    if (s->end - s->at < 6 || s->at[0] != '\\' || s->at[1] != 'u') return -1;
    low = hex_of(s, s->at + 2);
    if (low < 0xDC00 || low >= 0xE000) return -1;
    s->at += 6;
    return 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00);
}

/* Whether \uXXXX, with small letters, is the shortest escape of this control character. */
static int is_canonical_escape(const char *digits, int32_t code)
{
    for (int i = 0; i < 4; i++)
        if (digits[i] >= 'A' && digits[i] <= 'F') return 0;
    return code < ' ' && strchr("\b\f\n\r\t", code) == NULL;
}

/* Read an escape after its backslash. Returns the new end of the text, or NULL. */
static char *take_escape(struct scan *s, char *to)
{
    static const char letters[] = "\"\\/bfnrt", means[] = "\"\\/\b\f\n\r\t";
    const char *const begin = s->at;
    const char       *found;
    int32_t           code;

    if (s->at >= s->end) return NULL;
    if (*s->at == 'u') {
        s->at++;
        code = take_code(s);
        if (code >= 0 && !is_canonical_escape(begin + 1, code)) note_not_canonical(s, begin);
        return code < 0 ? NULL : put_code(to, code);
    }
    if (*s->at == '/') note_not_canonical(s, begin);
    found = *s->at != '\0' ? strchr(letters, *s->at) : NULL;
    if (found == NULL) return NULL;
    *to++ = means[found - letters];
    s->at++;
    return to;
}

/* The number of bytes of the UTF-8 character at `at`; 0: it is not one (Unicode 15, table 3-7). */
static int utf8_length(const struct scan *s, const char *at)
{
    const unsigned char *c = (const unsigned char *)at;
    const int length = c[0] < 0x80 ? 1 : c[0] < 0xC2 ? 0 : c[0] < 0xE0 ? 2 : c[0] < 0xF0 ? 3 : c[0] < 0xF5 ? 4 : 0;

    if (length == 0 || s->end - at < length) return 0;
    for (int i = 1; i < length; i++)
        if ((c[i] & 0xC0) != 0x80) return 0;
    if ((c[0] == 0xE0 && c[1] < 0xA0) || (c[0] == 0xED && c[1] > 0x9F)) return 0;
    return (c[0] == 0xF0 && c[1] < 0x90) || (c[0] == 0xF4 && c[1] > 0x8F) ? 0 : length;
}

/* Read a text between quotes. It is terminated in place. */
static int32_t take_text(struct scan *s, const char **text, const char *expected, graft_error *error)
{
    char *to;

    GR_TRY(take_mark(s, '"', expected, error));
    for (*text = to = s->at; s->at < s->end && *s->at != '"';) {
        const char *const here = s->at;
        const int         length = utf8_length(s, here);

        if (*here == '\\') {
            s->at++;
            to = take_escape(s, to);
            if (to == NULL) return scan_fail(s, here, "an escape of JSON, and not of the character 0", error);
            continue;
        }
        if (length == 0 || (unsigned char)*here < ' ')
            return scan_fail(s, here, "a character of UTF-8 that is no control character", error);
        memmove(to, here, (size_t)length);
        to += length;
        s->at += length;
    }
    if (s->at >= s->end) return scan_fail(s, s->at, "the end of a text, a quote", error);
    s->at++;
    *to = '\0'; /* the position of the quote, or an earlier one */
    return GRAFT_OK;
}

/* Read a count of at most 18 digits. */
static int32_t take_count(struct scan *s, int64_t *count, graft_error *error)
{
    const char *begin;

    skip_space(s);
    begin = s->at;
    for (*count = 0; s->at < s->end && *s->at >= '0' && *s->at <= '9' && s->at - begin < 18; s->at++)
        *count = *count * 10 + (*s->at - '0');
    if (s->at == begin || (*begin == '0' && s->at - begin > 1) ||
        (s->at < s->end && strchr("0123456789.eE", *s->at) != NULL && *s->at != '\0'))
        return scan_fail(s, begin, "a count of at most 18 digits", error);
    return GRAFT_OK;
}

/* Read at most `most` counts between brackets. */
static int32_t take_counts(struct scan *s, int64_t *counts, int32_t most, int32_t *n, graft_error *error)
{
    *n = 0;
    GR_TRY(take_mark(s, '[', "a list of counts", error));
    if (takes(s, ']')) return GRAFT_OK;
    do {
        if (*n == most) return scan_fail(s, s->at, "the end of a list of counts", error);
        GR_TRY(take_count(s, &counts[*n], error));
        ++*n;
    } while (takes(s, ','));
    return take_mark(s, ']', "the end of a list of counts", error);
}

static int32_t take_type(struct scan *s, graft_dtype *dtype, graft_error *error)
{
    const char *begin = s->at, *name;

    GR_TRY(take_text(s, &name, "a type", error));
    for (int i = 0; i < N_TYPES; i++) {
        if (strcmp(types[i].name, name) == 0) {
            *dtype = types[i].dtype;
            return GRAFT_OK;
        }
    }
    return gr_fail(error, GRAFT_ERR_FORMAT, "'%s': type '%.16s' at byte %lld of the header, expected F32, F64 or I64",
                   s->shown, name, (long long)(GR_TENSOR_PREFIX + (begin - s->text)));
}

enum { HAS_TYPE = 1, HAS_SHAPE = 2, HAS_OFFSETS = 4, HAS_ALL = 7 };

static int32_t take_member(struct scan *s, struct gr_tensor *t, int *has, graft_error *error)
{
    const char *begin = s->at, *key;
    int64_t     offsets[2];
    int32_t     n;
    int         which;

    GR_TRY(take_text(s, &key, "dtype, shape or data_offsets", error));
    which = strcmp(key, "dtype") == 0          ? HAS_TYPE
            : strcmp(key, "shape") == 0        ? HAS_SHAPE
            : strcmp(key, "data_offsets") == 0 ? HAS_OFFSETS
                                               : 0;
    if (which == 0 || (*has & which) != 0)
        return gr_fail(error, GRAFT_ERR_FORMAT,
                       "'%s': '%.32s' at byte %lld of the header, expected dtype, shape and data_offsets, once each",
                       s->shown, key, (long long)(GR_TENSOR_PREFIX + (begin - s->text)));
    *has |= which;
    GR_TRY(take_mark(s, ':', "':'", error));
    if (which == HAS_TYPE) return take_type(s, &t->dtype, error);
    if (which == HAS_SHAPE) return take_counts(s, t->shape, GR_TENSOR_DIMS, &t->n_dims, error);
    begin = s->at;
    GR_TRY(take_counts(s, offsets, 2, &n, error));
    if (n != 2 || offsets[0] > offsets[1]) return scan_fail(s, begin, "the begin and the end of the tensor", error);
    t->begin = offsets[0];
    t->end = offsets[1];
    return GRAFT_OK;
}

/* Check that a tensor has as many bytes as its type and shape require. */
static int32_t check_extent(const struct scan *s, const struct gr_tensor *t, graft_error *error)
{
    int64_t bytes = gr_io_tensor_type_bytes(t->dtype);
    int     overflows = 0;

    for (int32_t d = 0; d < t->n_dims; d++) overflows |= __builtin_mul_overflow(bytes, t->shape[d], &bytes);
    for (int32_t d = 0; d < t->n_dims; d++)
        if (t->shape[d] == 0) overflows = 0, bytes = 0;
    if (!overflows && bytes == t->end - t->begin) return GRAFT_OK;
    return gr_fail(error, GRAFT_ERR_FORMAT,
                   "'%s': tensor '%.64s', at byte %lld of the header, has a place of %lld bytes, which its type and "
                   "shape do not have",
                   s->shown, t->name, (long long)t->at, (long long)(t->end - t->begin));
}

static int32_t take_tensor(struct scan *s, struct gr_tensor *t, graft_error *error)
{
    const char *begin = s->at;
    int         has = 0;

    GR_TRY(take_mark(s, '{', "the type, shape and place of a tensor", error));
    do {
        GR_TRY(take_member(s, t, &has, error));
    } while (takes(s, ','));
    GR_TRY(take_mark(s, '}', "the end of a tensor", error));
    if (has != HAS_ALL) return scan_fail(s, begin, "dtype, shape and data_offsets", error);
    return check_extent(s, t, error);
}

static int32_t take_pair(struct scan *s, struct gr_tensors *f, graft_error *error)
{
    struct gr_tensor_pair *pair = &f->pairs[f->n_pairs];
    const char            *begin = s->at;

    if (f->n_pairs == GR_TENSOR_PAIRS_MAX) return scan_fail(s, begin, "at most 256 texts of metadata", error);
    GR_TRY(take_text(s, &pair->key, "a key of the metadata", error));
    GR_TRY(take_mark(s, ':', "':'", error));
    GR_TRY(take_text(s, &pair->value, "a text", error));
    if (gr_io_tensors_value(f, pair->key) != NULL) return scan_fail(s, begin, "no key twice in the metadata", error);
    f->n_pairs++;
    return GRAFT_OK;
}

static int32_t take_metadata(struct scan *s, struct gr_tensors *f, graft_error *error)
{
    if (f->pairs != NULL) return scan_fail(s, s->at, "__metadata__ once", error);
    GR_TRY(GR_NEW(f->context, f->pairs, GR_TENSOR_PAIRS_MAX, error));
    GR_TRY(take_mark(s, '{', "the metadata, an object of texts", error));
    if (takes(s, '}')) return GRAFT_OK;
    do {
        skip_space(s);
        GR_TRY(take_pair(s, f, error));
    } while (takes(s, ','));
    return take_mark(s, '}', "the end of the metadata", error);
}

static int32_t take_entry(struct scan *s, struct gr_tensors *f, int32_t most, graft_error *error)
{
    const char *begin, *name;

    skip_space(s);
    begin = s->at;
    GR_TRY(take_text(s, &name, "the name of a tensor", error));
    GR_TRY(take_mark(s, ':', "':'", error));
    skip_space(s);
    if (strcmp(name, "__metadata__") == 0) return take_metadata(s, f, error);
    if (f->n_tensors == most) return scan_fail(s, begin, "no more tensors", error);
    f->tensors[f->n_tensors] = (struct gr_tensor){ .name = name, .at = GR_TENSOR_PREFIX + (begin - s->text) };
    GR_TRY(take_tensor(s, &f->tensors[f->n_tensors], error));
    f->n_tensors++;
    return GRAFT_OK;
}

/* Count braces: each tensor has one, so there are not more tensors. */
static int32_t count_braces(const struct gr_tensors *f)
{
    int32_t count = 1;

    for (int64_t i = 0; i < f->header_bytes && count < GR_TENSORS_MAX; i++) count += f->text[i] == '{';
    return count;
}

/* Skip the spaces after the header. The compact form has as few as make its length a multiple of 8. */
static void take_padding(struct scan *s)
{
    const char *const begin = s->at, *not_canonical = s->not_canonical;

    skip_space(s);
    s->not_canonical = not_canonical;
    for (const char *at = begin; at < s->at; at++)
        if (*at != ' ' || at - begin == 7) note_not_canonical(s, at);
    if ((s->end - s->text) % 8 != 0) note_not_canonical(s, begin);
}

static int32_t scan_header(struct gr_tensors *f, const char *shown, graft_error *error)
{
    struct scan   s = { f->text, f->text, f->text + f->header_bytes, shown, NULL };
    const int32_t most = count_braces(f);

    GR_TRY(GR_NEW(f->context, f->tensors, most, error));
    GR_TRY(take_mark(&s, '{', "the header, a JSON object", error));
    if (!takes(&s, '}')) {
        do {
            GR_TRY(take_entry(&s, f, most, error));
        } while (takes(&s, ','));
        GR_TRY(take_mark(&s, '}', "',' or the end of the header", error));
    }
    take_padding(&s);
    if (s.at < s.end) return scan_fail(&s, s.at, "nothing behind the header but spaces", error);
    f->not_canonical = s.not_canonical != NULL ? GR_TENSOR_PREFIX + (s.not_canonical - s.text) : 0;
    return GRAFT_OK;
}

static int by_place(const void *left, const void *right)
{
    const struct gr_tensor *a = left, *b = right;

    if (a->begin != b->begin) return a->begin < b->begin ? -1 : 1;
    return (a->end > b->end) - (a->end < b->end);
}

/* Check that the tensors fill the data, without gap or overlap, and that each is aligned. */
static int32_t check_places(const struct gr_tensors *f, const char *shown, graft_error *error)
{
    const int64_t data = GR_TENSOR_PREFIX + f->header_bytes;
    int64_t       expected = 0;

    for (int32_t i = 0; i < f->n_tensors; i++) {
        const struct gr_tensor *t = &f->tensors[i];

        if (t->begin != expected)
            return gr_fail(error, GRAFT_ERR_FORMAT,
                           "'%s': tensor '%.64s' begins at byte %lld, expected byte %lld: tensors have no gap or "
                           "overlap",
                           shown, t->name, (long long)(data + t->begin), (long long)(data + expected));
        expected = t->end;
    }
    if (expected == f->data_bytes) return GRAFT_OK;
    return gr_fail(error, GRAFT_ERR_FORMAT, "'%s' ends at byte %lld, but its last tensor ends at byte %lld", shown,
                   (long long)(data + f->data_bytes), (long long)(data + expected));
}

int32_t gr_io_tensors_parse(struct gr_tensors *f, const char *shown, graft_error *error)
{
    GR_TRY(scan_header(f, shown, error));
    qsort(f->tensors, (size_t)f->n_tensors, sizeof *f->tensors, by_place);
    return check_places(f, shown, error);
}

void gr_io_tensors_fini(struct gr_tensors *f)
{
    if (f->context == NULL) return;
    gr_free(f->context, f->tensors);
    gr_free(f->context, f->pairs);
    gr_free(f->context, f->text);
    *f = (struct gr_tensors){ 0 };
}

const char *gr_io_tensors_value(const struct gr_tensors *f, const char *key)
{
    for (int32_t i = 0; i < f->n_pairs; i++)
        if (strcmp(f->pairs[i].key, key) == 0) return f->pairs[i].value;
    return NULL;
}

const struct gr_tensor *gr_io_tensors_find(const struct gr_tensors *f, const char *name)
{
    for (int32_t i = 0; i < f->n_tensors; i++)
        if (strcmp(f->tensors[i].name, name) == 0) return &f->tensors[i];
    return NULL;
}
