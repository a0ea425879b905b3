/* Writes files of tensors with checksums.
 * SPDX-License-Identifier: Apache-2.0 */
#include "base/crc.h"
#include "io/checksum.h"
#include "io/tensor_file.h"

#include <stdio.h>
#include <string.h>

/* The header so far. Bytes beyond the capacity are only counted. */
struct header_text {
    char   *to;
    int64_t bytes, capacity;
};

static void put_bytes(struct header_text *h, const char *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++, h->bytes++)
        if (h->bytes < h->capacity) h->to[h->bytes] = bytes[i];
}

static void put_plain(struct header_text *h, const char *text)
{
    put_bytes(h, text, strlen(text));
}

static void put_quoted(struct header_text *h, const char *text)
{
    static const char means[] = "\"\\\b\f\n\r\t", letters[] = "\"\\bfnrt";
    char              escape[8];

    put_bytes(h, "\"", 1);
    for (; *text != '\0'; text++) {
        const char *found = strchr(means, *text);

        if (found == NULL && (unsigned char)*text >= ' ') {
            put_bytes(h, text, 1);
            continue;
        }
        if (found != NULL) snprintf(escape, sizeof escape, "\\%c", letters[found - means]);
        else snprintf(escape, sizeof escape, "\\u%04x", (unsigned)(unsigned char)*text);
        put_plain(h, escape);
    }
    put_bytes(h, "\"", 1);
}

static void put_counts(struct header_text *h, const int64_t *counts, int32_t n)
{
    char digits[24];

    put_bytes(h, "[", 1);
    for (int32_t i = 0; i < n; i++) {
        snprintf(digits, sizeof digits, "%s%lld", i > 0 ? "," : "", (long long)counts[i]);
        put_plain(h, digits);
    }
    put_bytes(h, "]", 1);
}

static void put_tensor(struct header_text *h, const struct gr_tensor *t)
{
    put_bytes(h, ",", 1);
    put_quoted(h, t->name);
    put_plain(h, ":{\"dtype\":");
    put_quoted(h, gr_io_tensor_type_name(t->dtype));
    put_plain(h, ",\"shape\":");
    put_counts(h, t->shape, t->n_dims);
    put_plain(h, ",\"data_offsets\":");
    put_counts(h, (const int64_t[]){ t->begin, t->end }, 2);
    put_bytes(h, "}", 1);
}

/* Write the prefix and the header to `to`, up to `capacity` bytes. The byte ranges of the tensors are set. Spaces pad
 * the header, so that data begin at a multiple of 8. \return the number of bytes of prefix and header */
static int64_t write_header(const struct gr_tensor *tensors, int32_t n_tensors, const struct gr_tensor_pair *pairs,
                            int32_t n_pairs, char *to, int64_t capacity)
{
    struct header_text h = { to, GR_TENSOR_PREFIX, capacity };

    put_plain(&h, "{\"__metadata__\":{");
    for (int32_t i = 0; i < n_pairs; i++) {
        if (i > 0) put_bytes(&h, ",", 1);
        put_quoted(&h, pairs[i].key);
        put_bytes(&h, ":", 1);
        put_quoted(&h, pairs[i].value);
    }
    put_bytes(&h, "}", 1);
    for (int32_t i = 0; i < n_tensors; i++) put_tensor(&h, &tensors[i]);
    put_bytes(&h, "}", 1);
    while (h.bytes % 8 != 0) put_bytes(&h, " ", 1);
    for (int i = 0; i < GR_TENSOR_PREFIX && i < capacity; i++)
        to[i] = (char)((uint64_t)(h.bytes - GR_TENSOR_PREFIX) >> (8 * i));
    return h.bytes;
}

/* The tensors with their byte ranges in the file. Tensors with elements of 8 bytes come first, so that all are
 * aligned. */
struct layout {
    struct gr_tensor             *tensors;
    const struct gr_tensor_data **data;
    int32_t                       n;
    int64_t                       bytes;
};

static int64_t tensor_elements(const struct gr_tensor_data *d)
{
    int64_t count = 1;

    for (int32_t k = 0; k < d->n_dims; k++) count *= d->shape[k];
    return count;
}

static void place_tensors(const struct gr_tensor_data *data, int32_t n_data, struct layout *l)
{
    for (int64_t wide = 8; wide >= 4; wide -= 4) {
        for (int32_t i = 0; i < n_data; i++) {
            const struct gr_tensor_data *d = &data[i];
            struct gr_tensor            *t = &l->tensors[l->n];

            if (gr_io_tensor_type_bytes(d->dtype) != wide) continue;
            *t = (struct gr_tensor){ .name = d->name, .dtype = d->dtype, .n_dims = d->n_dims, .begin = l->bytes };
            memcpy(t->shape, d->shape, sizeof t->shape);
            t->end = l->bytes += wide * tensor_elements(d);
            l->data[l->n++] = d;
        }
    }
}

/* Find the bytes of a tensor from `at` on. *some is the number of those that are contiguous. */
static const char *bytes_at(const struct layout *l, int32_t i, int64_t at, int64_t *some)
{
    const struct gr_tensor_data *d = l->data[i];
    const int64_t                bytes = l->tensors[i].end - l->tensors[i].begin;
    int64_t                      slice;

    *some = bytes - at;
    if (d->slices == NULL) return (const char *)d->data + at;
    slice = bytes / d->shape[0];
    *some = slice - at % slice;
    return (const char *)d->slices[at / slice] + at % slice;
}

/* Write the checksums of all blocks of all tensors. */
static void write_checksums(const struct layout *l, char *text)
{
    for (int32_t i = 0; i < l->n; i++) {
        const int64_t bytes = l->tensors[i].end - l->tensors[i].begin;
        char         *to = text + gr_io_checksum_place(l->tensors, l->n, l->tensors[i].name);
        uint32_t      crc = 0;

        for (int64_t at = 0, some; at < bytes; at += some) {
            const int64_t left = GR_CHECKSUM_BLOCK - at % GR_CHECKSUM_BLOCK;
            const char   *from = bytes_at(l, i, at, &some);

            if (some > left) some = left;
            crc = gr_crc(at % GR_CHECKSUM_BLOCK == 0 ? 0 : crc, from, (uint64_t)some);
            if ((at + some) % GR_CHECKSUM_BLOCK != 0 && at + some < bytes) continue;
            gr_io_checksum_write(to, crc);
            to += GR_CHECKSUM_DIGITS;
        }
    }
}

/* Make the metadata of a file from the pairs of the caller and the checksums of header and tensors. */
static int32_t make_pairs(const graft_context *context, const struct layout *l, const struct gr_tensor_pair *theirs,
                          int32_t n_theirs, const char *of_tensors, char *of_header, struct gr_tensor_pair **pairs,
                          int32_t *n, graft_error *error)
{
    *n = 0;
    GR_TRY(GR_NEW(context, *pairs, n_theirs + 2, error));
    for (int32_t i = 0; i < n_theirs; i++)
        if (strcmp(theirs[i].key, GR_CHECKSUM_OF_TENSORS) != 0 && strcmp(theirs[i].key, GR_CHECKSUM_OF_HEADER) != 0)
            (*pairs)[(*n)++] = theirs[i];
    (*pairs)[(*n)++] = (struct gr_tensor_pair){ GR_CHECKSUM_OF_TENSORS, of_tensors };
    gr_io_checksum_write(of_header, gr_io_checksum_header(l->tensors, l->n, *pairs, *n));
    (*pairs)[(*n)++] = (struct gr_tensor_pair){ GR_CHECKSUM_OF_HEADER, of_header };
    return GRAFT_OK;
}

static int32_t make_header(const graft_context *context, const struct layout *l, const struct gr_tensor_pair *theirs,
                           int32_t n_theirs, char **header, int64_t *bytes, graft_error *error)
{
    struct gr_tensor_pair *pairs = NULL;
    char                  *of_tensors = NULL, of_header[GR_CHECKSUM_DIGITS + 1] = "";
    int32_t                n, rc = GRAFT_OK;

    GR_TRY_DONE(GR_NEW(context, of_tensors, gr_io_checksum_place(l->tensors, l->n, NULL) + 1, error));
    write_checksums(l, of_tensors);
    GR_TRY_DONE(make_pairs(context, l, theirs, n_theirs, of_tensors, of_header, &pairs, &n, error));
    *bytes = write_header(l->tensors, l->n, pairs, n, NULL, 0);
    GR_TRY_DONE(GR_NEW(context, *header, *bytes, error));
    write_header(l->tensors, l->n, pairs, n, *header, *bytes);
done:
    gr_free(context, pairs);
    gr_free(context, of_tensors);
    return rc;
}

static int32_t write_all(const struct layout *l, const char *header, int64_t header_bytes, const char *path,
                         struct gr_output *output, graft_error *error)
{
    GR_TRY(gr_output_begin(output, path, header_bytes + l->bytes, error));
    GR_TRY(gr_output_write(output, header, header_bytes, error));
    for (int32_t i = 0; i < l->n; i++) {
        const int64_t bytes = l->tensors[i].end - l->tensors[i].begin;

        for (int64_t at = 0, some; at < bytes; at += some) {
            const char *from = bytes_at(l, i, at, &some);

            GR_TRY(gr_output_write(output, from, some, error));
        }
    }
    return GRAFT_OK;
}

int32_t gr_io_tensor_file_write(const graft_context *context, const struct gr_tensor_data *data, int32_t n_data,
                                const struct gr_tensor_pair *pairs, int32_t n_pairs, const char *path,
                                struct gr_output *output, graft_error *error)
{
    struct layout l = { 0 };
    char         *header = NULL;
    int64_t       header_bytes = 0;
    int32_t       rc = GRAFT_OK;

    output->temporary.fd = -1;
    if (n_data > GR_TENSORS_MAX)
        return gr_fail(error, GRAFT_ERR_UNSUPPORTED, "a file has at most %d tensors, and these are %d", GR_TENSORS_MAX,
                       n_data);
    GR_TRY_DONE(GR_NEW(context, l.tensors, n_data, error));
    GR_TRY_DONE(GR_NEW(context, l.data, n_data, error));
    place_tensors(data, n_data, &l);
    GR_TRY_DONE(make_header(context, &l, pairs, n_pairs, &header, &header_bytes, error));
    rc = write_all(&l, header, header_bytes, path, output, error);
done:
    gr_free(context, header);
    gr_free(context, l.data);
    gr_free(context, l.tensors);
    return rc;
}
